//! One crawl after another: which collections live on, which mirrors lag behind, and what to visit again; all that `webtwin diff`
//! adds of that to what became of pages.
//!
//! A crawl is here what its tables say of its [`collections`]. Of two crawls, [`matching`] tells which collections
//! have pages, texts or places in common; [`lifelines`] makes of that, over all crawls, what became of each collection, and
//! [`lives`] is its plain twin. [`fates`] puts that in words, [`lag`] says how far a mirror is behind, [`rates`] how often
//! pages change, and [`revisit`] which pages of the avoid list are worth a visit. [`saved`] is the file in which a comparison
//! leaves to the next one what it has to know of the crawls before.
//!
//! [`collections`]: super::collections
//! [`matching`]: super::matching
//! [`lifelines`]: super::lifelines
//! [`lives`]: super::lives
//! [`fates`]: super::fates
//! [`lag`]: super::lag
//! [`rates`]: super::rates
//! [`revisit`]: super::revisit
//! [`saved`]: super::saved

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::chronicle::{Chronicle, Told};
use super::fates::Fate;
use super::overlap::{self, Overlap};
use super::past_texts::{Past, SavedPast};
use super::same_settings::{comparable, will_be_comparable};
use super::saved::{NAME, SavedHistory};
use super::two_crawls::Comparison;
use super::worthwhile::{Visit, exports, singles, visits_worthwhile};
use super::writer::Writer;
use super::{Summary, history_tables};
use webtwin_base::error::Result;
use webtwin_base::ids::DocId;
use webtwin_job::Job;
use webtwin_results::Run;
use webtwin_results::scan::scan;
use webtwin_storage::table::Table;

/// What is known of the crawls before the older one.
pub struct Before {
    /// Their results as far as they were named, oldest first.
    earlier: Vec<Run>,
    history: Option<SavedHistory>,
}

impl Before {
    /// Opens results and an earlier comparison; `new` is the newest result.
    ///
    /// # Errors
    /// Those of [`Run::open`] and [`SavedHistory::open`].
    pub fn open(earlier: &[String], history: Option<&str>, new: &str) -> Result<Before> {
        let earlier = earlier.iter().map(|url| Run::open(url)).collect::<Result<_>>()?;
        let open = |url| SavedHistory::open(url, &Run::open(new)?.manifest.recipes);
        Ok(Before { earlier, history: history.map(open).transpose()? })
    }

    /// Where texts of those crawls are.
    ///
    /// # Errors
    /// Those of [`Run::open`].
    pub fn past(&self, old: &str) -> Result<Past> {
        let results: Vec<String> = self.earlier.iter().rev().map(|run| run.folder.name().to_string()).collect();
        let Some(SavedHistory { url, saved, .. }) = &self.history else {
            return Ok(Past { results, ..Past::default() });
        };
        let old = Run::open(old)?;
        let number = |run: &Run| saved.results.iter().find(|one| *one.1 == run.manifest.attempt).map(|one| *one.0);
        let known = [&old].into_iter().chain(self.earlier.iter().rev()).map(number);
        let newest = known.enumerate().find_map(|(at, number)| Some((at, number?)));
        let saved = newest.map(|(at, number)| {
            let later = saved.results.range(number + 1..).count() as u32;
            SavedPast { comparison: url.clone(), newest: at as u32 + 1, later }
        });
        Ok(Past { results, saved, ..Past::default() })
    }
}

/// Refuses before a job what would make its comparison with the result `old` fail after it: other settings, and a history
/// that does not know that result or was made with other ones. A result that is not there is not looked at.
///
/// # Errors
/// [`webtwin_base::error::Error::Usage`] with what differs; those of a history that is damaged.
pub fn refuse_what_will_differ(job: &Job, old: &str, history: Option<&str>) -> Result<()> {
    let Ok(old) = Run::open(old) else { return Ok(()) };
    will_be_comparable(&old, job)?;
    if let Some(url) = history.filter(|_| !job.recrawl.across_settings) {
        let SavedHistory { name, saved, .. } = SavedHistory::open(url, &old.manifest.recipes)?;
        Chronicle::take_up(&name, saved, &old.manifest.attempt, &job.recrawl)?;
    }
    Ok(())
}

/// What a comparison of collections found.
pub struct Compared {
    /// Tables by name, with their rows in order.
    tables: Vec<(&'static str, Table)>,
    /// Other files by path.
    files: Vec<(String, Vec<u8>)>,
    /// Counts for the summary, by name.
    summary: BTreeMap<String, Value>,
    /// Collections before, now, and those that both crawls have.
    collections: Overlap,
    /// Pages of collections that have ended with the newer crawl, ascending: what stands of the avoid list for them does so no more.
    pub ended: Vec<DocId>,
    /// Whether the newer crawl was made before the older one, by its fetch times.
    is_backwards: bool,
    /// What it depends on beside the two results, by its name.
    beside: BTreeMap<String, Value>,
}

impl Compared {
    /// Adds it to a comparison.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn add(self, writer: &mut Writer, summary: &mut Summary) -> Result<()> {
        summary.beside.extend(self.beside);
        summary.is_backwards = self.is_backwards;
        for (name, table) in self.tables {
            writer.add(name, table)?;
        }
        for (path, bytes) in self.files {
            writer.file(&path, bytes)?;
        }
        writer.add("crawl_overlap", overlap::table(&[([1, 0], "collection", self.collections)]))?;
        summary.overlap.insert("collection", self.collections);
        summary.more.extend(self.summary);
        Ok(())
    }
}

/// Compares the collections of all crawls that are known of with those of the newest.
///
/// # Errors
/// Those of the tables, and of [`Chronicle::take_up`]; [`webtwin_base::error::Error::Usage`] if a result before the older one differs
/// by a setting.
///
/// # Cost
/// Of each result that is not known the tables `pages`, `members` and `avoid`. In memory the pages of the collections of
/// four crawls, 32 bytes each, and a row for each collection of every crawl.
pub fn compare(before: Before, of: &Comparison) -> Result<Compared> {
    let Before { earlier, history } = before;
    let Comparison { old, new, recrawl: settings, workers, .. } = of;
    for run in &earlier {
        comparable(run, new, false)?;
    }
    let attempts: Vec<&str> = earlier.iter().map(|run| run.manifest.attempt.as_str()).collect();
    let mut beside = BTreeMap::from([("earlier".to_string(), json!(attempts))]);
    let before: Vec<&Run> = earlier.iter().chain([old]).collect();
    let mut chronicle = match history {
        None => Chronicle::new(settings),
        Some(SavedHistory { url, name, checksum, saved }) => {
            beside.insert("history".into(), json!({ "url": url, "xxh3": checksum }));
            let known = |run: &&&Run| saved.results.values().any(|attempt| *attempt == run.manifest.attempt);
            let newest = before.iter().rev().find(known).unwrap_or(&old).manifest.attempt.clone();
            Chronicle::take_up(&name, saved, &newest, settings)?
        }
    };
    for (at, run) in before.iter().enumerate() {
        if chronicle.has(&run.manifest.attempt) {
            continue;
        }
        let told = chronicle.add(run, at.checked_sub(1).map(|last| before[last]), *workers)?;
        // After the first crawl nothing was compared, and nobody asked for probes.
        if at > 0 {
            let own = |with: &mut dyn FnMut(DocId, &str)| each_listed(run, with);
            let others =
                |with: &mut dyn FnMut(DocId, &str)| before[..at].iter().try_for_each(|run| each_listed(run, with));
            let visits = visits_worthwhile(&chronicle, &told, [&own, &others], settings)?;
            chronicle.ask(urls_within_budget(&visits));
        }
    }
    let told = chronicle.add(new, Some(old), *workers)?;
    let own = |with: &mut dyn FnMut(DocId, &str)| each_listed(new, with);
    let others = |with: &mut dyn FnMut(DocId, &str)| {
        of.each_in_force(with)?;
        earlier.iter().try_for_each(|run| each_listed(run, with))
    };
    let visits = visits_worthwhile(&chronicle, &told, [&own, &others], settings)?;
    let ended = ended(&chronicle, &told);
    let singles = singles(&chronicle, (&visits, &ended), [&own, &others], new, settings)?;
    chronicle.ask(urls_within_budget(&visits));
    let clusters = history_tables::similar_clusters(&chronicle, &told);
    let mut compared = Compared {
        tables: vec![
            ("mirrors_changed", history_tables::mirrors_changed(&chronicle, &told)),
            ("similar_clusters_changed", history_tables::similar_clusters_changed(&clusters)),
            ("change_rates", history_tables::change_rates(&chronicle, new)?),
            ("revisit", history_tables::revisit(&chronicle, &visits)),
        ],
        summary: summary(&chronicle, &told, &clusters, (&visits, &singles)),
        collections: collections(&chronicle, &told),
        ended,
        is_backwards: chronicle
            .crawls()
            .values()
            .rev()
            .take(2)
            .is_sorted_by(|new, old| 0 < new.time && new.time < old.time),
        files: exports(&chronicle, &visits, &singles, settings),
        beside,
    };
    compared.files.push((NAME.into(), chronicle.save().encode(&new.manifest.recipes)));
    Ok(compared)
}

fn urls_within_budget(visits: &[Visit]) -> impl Iterator<Item = String> {
    visits.iter().filter(|visit| visit.chosen).flat_map(|visit| visit.urls.iter().cloned())
}

fn ended(chronicle: &Chronicle, told: &[Told]) -> Vec<DocId> {
    let old = told.iter().filter(|told| told.fate.is_end()).filter_map(|told| told.old);
    let pages = old.flat_map(|old| chronicle.crawls()[&old.crawl].members_of(old.collection));
    let mut pages: Vec<DocId> = pages.map(|page| page.doc_id).collect();
    pages.sort_unstable();
    pages.dedup();
    pages
}

/// Calls something for each page of a result's avoid list.
fn each_listed(run: &Run, with: &mut dyn FnMut(DocId, &str)) -> Result<()> {
    scan(run, "avoid", &["doc_id", "url"], &mut |part| {
        part.u64("doc_id")?.iter().zip(part.text("url")?).for_each(|(&doc_id, url)| with(doc_id, url));
        Ok(())
    })?;
    Ok(())
}

/// Collections of the last crawl but one, of the last, and those that live on from the one to the other.
fn collections(chronicle: &Chronicle, told: &[Told]) -> Overlap {
    let mut newest = chronicle.crawls().iter().rev();
    let now = newest.next().map_or(0, |(_, crawl)| crawl.collections.len());
    let (before, count) = newest.next().map_or((u32::MAX, 0), |(number, crawl)| (*number, crawl.collections.len()));
    let lives = |told: &&Told| {
        let went_on = !matches!(told.fate, Fate::Split | Fate::Joined);
        went_on && told.new.is_some() && told.old.is_some_and(|old| old.crawl == before)
    };
    Overlap { old: count as u64, new: now as u64, both: told.iter().filter(lives).count() as u64 }
}

fn summary(
    chronicle: &Chronicle,
    told: &[Told],
    clusters: &[history_tables::ClusterChange],
    (visits, singles): (&[Visit], &[String]),
) -> BTreeMap<String, Value> {
    let mut mirrors: BTreeMap<&str, u64> = Fate::ALL.iter().map(|fate| (fate.word(), 0)).collect();
    told.iter().for_each(|told| *mirrors.entry(told.fate.word()).or_default() += 1);
    let mut of_clusters: BTreeMap<&str, u64> = BTreeMap::new();
    clusters.iter().for_each(|change| *of_clusters.entry(change.what).or_default() += 1);
    let mut behind: BTreeMap<String, u64> = BTreeMap::new();
    let newest = chronicle.crawls().last_key_value().map_or(&[][..], |(_, crawl)| &crawl.collections);
    for collection in newest.iter().filter(|collection| !collection.leads) {
        let crawls = collection.lag.map_or("unknown".into(), |lag| lag.crawls.to_string());
        *behind.entry(crawls).or_default() += 1;
    }
    let chosen = || visits.iter().filter(|visit| visit.chosen);
    BTreeMap::from([
        ("crawls".into(), json!(chronicle.crawls().len())),
        ("mirrors".into(), json!(mirrors)),
        ("crawls_behind".into(), json!(behind)),
        ("similar_clusters".into(), json!(of_clusters)),
        (
            "revisit".into(),
            json!({
                "collections": visits.len(),
                "within_budget": chosen().count(),
                "pages": chosen().map(|visit| visit.urls.len() as u64).sum::<u64>(),
                "singles": singles.len(),
            }),
        ),
    ])
}
