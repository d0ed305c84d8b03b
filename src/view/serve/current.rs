//! The index that is served at this moment.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use axum::http::HeaderValue;

use super::metrics::Metrics;
use super::{Settings, Shared};
use crate::lookup::Index;
use crate::lookup::answer::{Asker, Recheck};
use crate::lookup::check::Checker;
use webtwin_base::console::tell;
use webtwin_base::error::{Error, Result};
use webtwin_storage::location::{Location, is_plain};

/// How often a followed folder is looked at.
const FOLLOW: Duration = Duration::from_millis(500);

/// Name of the file that names the index, in a folder that is followed.
const CURRENT: &str = "CURRENT";

/// An index that is served, and what goes with it.
pub(super) struct Served {
    pub index: Index,
    /// The run's result, for the header `X-Webtwin-Run`.
    pub run: HeaderValue,
    /// The same as an `ETag`.
    pub tag: HeaderValue,
    /// Folder that it was opened from.
    pub folder: String,
    recheck: f64,
    /// Checkers that are not at work.
    checkers: Mutex<Vec<Checker>>,
}

impl Served {
    fn open(folder: String, settings: &Settings) -> Result<Served> {
        let index = Index::open(&folder)?;
        if settings.verify {
            index.verify()?;
        }
        let run = &index.about.run.result;
        let header =
            |text: String| HeaderValue::from_str(&text).map_err(|_| Error::input(&folder, "has no hash of its run"));
        let (run, tag) = (header(run.clone())?, header(format!("\"{run}\""))?);
        Ok(Served { index, run, tag, folder, recheck: settings.recheck, checkers: Mutex::default() })
    }

    /// Who asks the index today.
    pub(super) fn asker(&self) -> Asker<'_> {
        let recheck = (self.recheck > 0.0).then(|| Recheck::new(self.recheck, today()));
        Asker::new(&self.index, recheck)
    }

    /// Lends a checker.
    pub(super) fn with_checker<T>(&self, work: impl FnOnce(&mut Checker) -> T) -> T {
        let idle = || self.checkers.lock().unwrap_or_else(PoisonError::into_inner);
        let free = idle().pop();
        let mut checker = free.unwrap_or_else(|| Checker::new(&self.index));
        let done = work(&mut checker);
        idle().push(checker);
        done
    }
}

/// Days since 1970.
fn today() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400)
}

/// The index that requests take.
pub(super) struct Current {
    served: RwLock<Arc<Served>>,
    /// Whether the last attempt to reload failed.
    failed: AtomicBool,
    /// One reload at a time.
    reloading: Mutex<()>,
}

impl Current {
    pub(super) fn open(settings: &Settings) -> Result<Current> {
        let served = Arc::new(Served::open(named(settings)?, settings)?);
        Ok(Current { served: RwLock::new(served), failed: AtomicBool::new(false), reloading: Mutex::default() })
    }

    /// The index of this moment.
    pub(super) fn get(&self) -> Arc<Served> {
        Arc::clone(&self.served.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the last reload failed, so that an older index is served than is wanted.
    pub(super) fn is_stale(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Opens the index that is wanted now and lets it take the place of the one before, whose files stay mapped until the last
    /// request for it has ended.
    pub(super) fn reload(&self, settings: &Settings, metrics: &Metrics) -> Result<()> {
        let _one = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = named(settings).and_then(|folder| Served::open(folder, settings));
        metrics.reloaded(opened.is_ok());
        self.failed.store(opened.is_err(), Ordering::Relaxed);
        match opened {
            Ok(served) => {
                let told = format!("serving {}: run {}", served.folder, served.index.about.run.result);
                *self.served.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(served);
                // Whoever reads it gets answers of this index from now on.
                tell(format_args!("{told}"));
                Ok(())
            }
            Err(error) => {
                tell(format_args!("warning: not reloaded, the index before is still served: {error}"));
                Err(error)
            }
        }
    }

    /// Whether a followed folder names another index than the one that is served.
    pub(super) fn is_behind(&self, settings: &Settings) -> bool {
        settings.follow && named(settings).is_ok_and(|folder| folder != self.get().folder)
    }
}

/// Looks again and again whether a followed folder names another index.
pub(super) async fn follow(shared: Arc<Shared>) {
    if !shared.settings.follow {
        return;
    }
    loop {
        tokio::select! {
            () = shared.front.stopped() => return,
            () = tokio::time::sleep(FOLLOW) => {}
        }
        let shared = Arc::clone(&shared);
        let looked = tokio::task::spawn_blocking(move || {
            if shared.current.is_behind(&shared.settings) {
                // What is wrong has been told.
                let _ = shared.current.reload(&shared.settings, &shared.metrics);
            }
        });
        let _ = looked.await;
    }
}

/// The folder of the index that is wanted.
fn named(settings: &Settings) -> Result<String> {
    if !settings.follow {
        return Ok(settings.index.clone());
    }
    let folder = Location::parse(&settings.index)?.into_folder();
    let file = folder.join(CURRENT)?;
    let bytes = file
        .get()?
        .ok_or_else(|| Error::input(file.name(), "there is no such file; it names the folder of an index"))?;
    let name = String::from_utf8_lossy(&bytes).trim().to_string();
    match name.is_empty() {
        true => Err(Error::input(file.name(), "is empty; it names the folder of an index")),
        // A path from the root, or a URL, is where it says; others are below the folder.
        false if name.starts_with('/') || name.contains("://") => Ok(name),
        false if !is_plain(name.trim_end_matches('/')) => Err(Error::input(
            file.name(),
            format!("names {name:?}; it names a folder below its own, or an absolute path or URL"),
        )),
        false => Ok(folder.join(&name)?.name().to_string()),
    }
}
