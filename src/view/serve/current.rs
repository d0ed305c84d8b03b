//! Index that is currently served, and its replacement.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use axum::http::HeaderValue;

use super::metrics::LookupMetrics;
use super::{ServeSettings, Shared};
use crate::lookup::LookupIndex;
use crate::lookup::answer::{LookupSession, Recheck};
use crate::lookup::check::Checker;
use webtwin_base::console::notify;
use webtwin_base::error::{Error, Result};
use webtwin_storage::location::{Location, is_plain};

/// Interval between two checks of a followed folder.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(500);

/// Name of the file in a followed folder that names the index.
const CURRENT: &str = "CURRENT";

/// Served index with data derived from it.
pub(super) struct Served {
    pub index: LookupIndex,
    /// Result hash of the run, for the header `X-Webtwin-Run`.
    pub run: HeaderValue,
    /// Result hash of the run as an `ETag`.
    pub tag: HeaderValue,
    /// Folder from which the index was opened.
    pub folder: String,
    recheck: f64,
    /// Pool of idle checkers.
    checkers: Mutex<Vec<Checker>>,
}

impl Served {
    fn open(folder: String, settings: &ServeSettings) -> Result<Served> {
        let index = LookupIndex::open(&folder)?;
        if settings.verify {
            index.verify()?;
        }
        let run = &index.about.run.result;
        let header = |text: String| {
            HeaderValue::from_str(&text)
                .map_err(|_| Error::input(&folder, "the hash of the run is damaged; rebuild the index"))
        };
        let (run, tag) = (header(run.clone())?, header(format!("\"{run}\""))?);
        Ok(Served { index, run, tag, folder, recheck: settings.recheck, checkers: Mutex::default() })
    }

    /// Returns an asker with today's pages to recheck.
    pub(super) fn asker(&self) -> LookupSession<'_> {
        let recheck = (self.recheck > 0.0).then(|| Recheck::new(self.recheck, today()));
        LookupSession::new(&self.index, recheck)
    }

    /// Runs `work` with a checker from the pool.
    pub(super) fn with_checker<T>(&self, work: impl FnOnce(&mut Checker) -> T) -> T {
        let free_checkers = || self.checkers.lock().unwrap_or_else(PoisonError::into_inner);
        let free = free_checkers().pop();
        let mut checker = free.unwrap_or_else(|| Checker::new(&self.index));
        let result = work(&mut checker);
        free_checkers().push(checker);
        result
    }
}

/// Returns the number of days since 1970.
fn today() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400)
}

/// Holder of the served index.
pub(super) struct Current {
    snapshot: RwLock<Arc<Served>>,
    /// True if the last reload failed.
    failed: AtomicBool,
    /// Lock that serializes reloads.
    reloading: Mutex<()>,
}

impl Current {
    pub(super) fn open(settings: &ServeSettings) -> Result<Current> {
        let snapshot = Arc::new(Served::open(index_folder(settings)?, settings)?);
        Ok(Current { snapshot: RwLock::new(snapshot), failed: AtomicBool::new(false), reloading: Mutex::default() })
    }

    /// Returns the current index.
    pub(super) fn get(&self) -> Arc<Served> {
        Arc::clone(&self.snapshot.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// True if the last reload failed, so that the served index is older than the requested one.
    pub(super) fn is_stale(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Opens the index that the settings name and replaces the current one, whose files stay mapped
    /// until its last request has ended.
    pub(super) fn reload(&self, settings: &ServeSettings, metrics: &LookupMetrics) -> Result<()> {
        let _one = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = index_folder(settings).and_then(|folder| Served::open(folder, settings));
        metrics.reloaded(snapshot.is_ok());
        self.failed.store(snapshot.is_err(), Ordering::Relaxed);
        match snapshot {
            Ok(loaded) => {
                let message = format!("serving {}: run {}", loaded.folder, loaded.index.about.run.result);
                *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(loaded);
                // Reports only after the switch: from this line on, answers come from the new
                // index.
                notify(format_args!("{message}"));
                Ok(())
            }
            Err(error) => {
                notify(format_args!(
                    "warning: the index was not reloaded, and the previous one is still served: {error}"
                ));
                Err(error)
            }
        }
    }

    /// True if a followed folder names another index than the served one.
    pub(super) fn is_behind(&self, settings: &ServeSettings) -> bool {
        settings.follow && index_folder(settings).is_ok_and(|folder| folder != self.get().folder)
    }
}

/// Polls a followed folder and reloads when it names another index.
pub(super) async fn follow(state: Arc<Shared>) {
    if !state.settings.follow {
        return;
    }
    loop {
        tokio::select! {
            () = state.front.stopped() => return,
            () = tokio::time::sleep(FOLLOW_INTERVAL) => {}
        }
        let state = Arc::clone(&state);
        let reload = tokio::task::spawn_blocking(move || {
            if state.current.is_behind(&state.settings) {
                // `reload` has reported the error already.
                let _ = state.current.reload(&state.settings, &state.metrics);
            }
        });
        let _ = reload.await;
    }
}

/// Returns the folder of the index that the settings name.
fn index_folder(settings: &ServeSettings) -> Result<String> {
    if !settings.follow {
        return Ok(settings.index.clone());
    }
    let folder = Location::parse(&settings.index)?.into_folder();
    let file = folder.join(CURRENT)?;
    let bytes = file.get()?.ok_or_else(|| {
        Error::input(file.name(), "there is no such file; create it with the name of the folder of an index")
    })?;
    let name = String::from_utf8_lossy(&bytes).trim().to_string();
    match name.is_empty() {
        true => Err(Error::input(file.name(), "the file is empty; write the name of the folder of an index to it")),
        // Absolute paths and URLs are used as they are; other names are relative to the folder.
        false if name.starts_with('/') || name.contains("://") => Ok(name),
        false if !is_plain(name.trim_end_matches('/')) => Err(Error::input(
            file.name(),
            format!("the file names {name:?}, but must name a folder next to it, an absolute path or a URL"),
        )),
        false => Ok(folder.join(&name)?.name().to_string()),
    }
}
