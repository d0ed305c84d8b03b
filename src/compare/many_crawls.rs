//! Comparison of many crawls: collections that live on, mirrors that lag behind, and pages to visit
//! again. This is everything that `webtwin diff` reports in addition to changes of pages.
//!
//! A crawl is represented by the tables of its [`collections`]. [`matching`] finds the collections
//! of two crawls that share pages, texts or places. [`lifelines`] derives the facts about each
//! collection over all crawls; [`lives`] is its plain twin. [`fates`] classifies the facts, [`lag`]
//! computes the lag of mirrors, [`rates`] estimates how often pages change, and [`revisit`] ranks
//! the pages of the avoid list that a crawler should visit. [`saved`] is the file with the state
//! that the next comparison needs.
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

use super::chronicle::{Chronicle, MirrorChange};
use super::fates::Fate;
use super::overlap::{self, CrawlOverlap};
use super::past_texts::{PastIntervals, SavedPast};
use super::same_settings::{comparable, will_be_comparable};
use super::saved::{NAME, SavedHistory};
use super::two_crawls::ComparableResults;
use super::worthwhile::{CollectionVisit, exports, singles, visits_worthwhile};
use super::writer::ResultWriter;
use super::{CompareSummary, history_tables};
use webtwin_base::error::Result;
use webtwin_base::ids::DocId;
use webtwin_job::Job;
use webtwin_results::FinishedRun;
use webtwin_results::scan::scan;
use webtwin_storage::table::Table;

/// State of the crawls before the older one.
pub struct PriorCrawls {
    /// Their results, oldest first, if they were named.
    earlier: Vec<FinishedRun>,
    history: Option<SavedHistory>,
}

impl PriorCrawls {
    /// Opens earlier results and an earlier comparison. `new` is the newest result.
    ///
    /// # Errors
    /// Returns any error of [`FinishedRun::open`] and [`SavedHistory::open`].
    pub fn open(earlier: &[String], history: Option<&str>, new: &str) -> Result<PriorCrawls> {
        let earlier = earlier.iter().map(|url| FinishedRun::open(url)).collect::<Result<_>>()?;
        let open = |url| SavedHistory::open(url, &FinishedRun::open(new)?.manifest.recipes);
        Ok(PriorCrawls { earlier, history: history.map(open).transpose()? })
    }

    /// Locates the texts of those crawls.
    ///
    /// # Errors
    /// Returns any error of [`FinishedRun::open`].
    pub fn past(&self, old: &str) -> Result<PastIntervals> {
        let results: Vec<String> = self.earlier.iter().rev().map(|run| run.folder.name().to_string()).collect();
        let Some(SavedHistory { url, saved: saved_history, .. }) = &self.history else {
            return Ok(PastIntervals { results, ..PastIntervals::default() });
        };
        let old = FinishedRun::open(old)?;
        let number = |run: &FinishedRun| {
            saved_history.results.iter().find(|one| *one.1 == run.manifest.attempt).map(|one| *one.0)
        };
        let known_numbers = [&old].into_iter().chain(self.earlier.iter().rev()).map(number);
        let newest = known_numbers.enumerate().find_map(|(at, number)| Some((at, number?)));
        let saved_history = newest.map(|(position, number)| {
            let n_later = saved_history.results.range(number + 1..).count() as u32;
            SavedPast { comparison: url.clone(), newest: position as u32 + 1, later: n_later }
        });
        Ok(PastIntervals { results, comparison: saved_history, ..PastIntervals::default() })
    }
}

/// Checks before a job runs that its comparison with the result `old` can succeed: the settings
/// must agree, and the history must have that result and have been written with the same settings.
/// If the result `old` does not exist yet, nothing is checked.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::Usage`] naming the difference, and any error of a damaged
/// history.
pub fn refuse_what_will_differ(job: &Job, old: &str, history: Option<&str>) -> Result<()> {
    let Ok(old) = FinishedRun::open(old) else { return Ok(()) };
    will_be_comparable(&old, job)?;
    if let Some(url) = history.filter(|_| !job.recrawl.across_settings) {
        let SavedHistory { name, saved: comparison, .. } = SavedHistory::open(url, &old.manifest.recipes)?;
        Chronicle::restore(&name, comparison, &old.manifest.attempt, &job.recrawl)?;
    }
    Ok(())
}

/// Output of a comparison of collections.
pub struct CollectionComparison {
    /// Tables by name, with rows in output order.
    tables: Vec<(&'static str, Table)>,
    /// Other files, by path.
    files: Vec<(String, Vec<u8>)>,
    /// Counts for the summary, by name.
    summary: BTreeMap<String, Value>,
    /// Number of collections before, now, and in both crawls.
    collections: CrawlOverlap,
    /// Pages of collections that ended with the newer crawl, ascending. Entries of the avoid list
    /// for these pages no longer stand.
    pub ended_pages: Vec<DocId>,
    /// True if the newer crawl was made before the older one, by its fetch times.
    is_backwards: bool,
    /// Inputs that the comparison depends on in addition to the two results, by name.
    extra_inputs: BTreeMap<String, Value>,
}

impl CollectionComparison {
    /// Adds tables, files and counts to a comparison of two crawls.
    ///
    /// # Errors
    /// Returns any error of the writer.
    pub fn add(self, writer: &mut ResultWriter, summary: &mut CompareSummary) -> Result<()> {
        summary.beside.extend(self.extra_inputs);
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

/// Compares the collections of all known crawls with those of the newest.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::Usage`] if a result before the older one differs in a
/// setting, and any error of the tables and of [`Chronicle::restore`].
///
/// # Cost
/// Reads the tables `pages`, `members` and `avoid` of each result that the history does not have.
/// Holds in memory the pages of the collections of four crawls, 32 bytes each, and a row for each
/// collection of every crawl.
pub fn compare(prior: PriorCrawls, results: &ComparableResults) -> Result<CollectionComparison> {
    let PriorCrawls { earlier, history } = prior;
    let ComparableResults { old, new, recrawl: settings, workers, .. } = results;
    for run in &earlier {
        comparable(run, new, false)?;
    }
    let attempts: Vec<&str> = earlier.iter().map(|run| run.manifest.attempt.as_str()).collect();
    let mut extra_inputs = BTreeMap::from([("earlier".to_string(), json!(attempts))]);
    let previous_runs: Vec<&FinishedRun> = earlier.iter().chain([old]).collect();
    let mut chronicle = match history {
        None => Chronicle::new(settings),
        Some(SavedHistory { url, name, checksum, saved: saved_history }) => {
            extra_inputs.insert("history".into(), json!({ "url": url, "xxh3": checksum }));
            let is_known =
                |run: &&&FinishedRun| saved_history.results.values().any(|attempt| *attempt == run.manifest.attempt);
            let newest = previous_runs.iter().rev().find(is_known).unwrap_or(&old).manifest.attempt.clone();
            Chronicle::restore(&name, saved_history, &newest, settings)?
        }
    };
    // Results before the older one are replayed as their own comparisons would have been, so that a
    // comparison with all results at hand equals one that continues a history.
    for (number, run) in previous_runs.iter().enumerate() {
        if chronicle.has_attempt(&run.manifest.attempt) {
            continue;
        }
        let changes = chronicle.add(run, number.checked_sub(1).map(|last| previous_runs[last]), *workers)?;
        // Nothing is compared after the first crawl, so no probes are requested.
        if number > 0 {
            let new_list = |with: &mut dyn FnMut(DocId, &str)| each_listed(run, with);
            let other_lists = |visit: &mut dyn FnMut(DocId, &str)| {
                previous_runs[..number].iter().try_for_each(|run| each_listed(run, visit))
            };
            let visits = visits_worthwhile(&chronicle, &changes, [&new_list, &other_lists], settings)?;
            chronicle.add_probes(urls_within_budget(&visits));
        }
    }
    let changes = chronicle.add(new, Some(old), *workers)?;
    let new_list = |with: &mut dyn FnMut(DocId, &str)| each_listed(new, with);
    let other_lists = |visit: &mut dyn FnMut(DocId, &str)| {
        results.each_in_force(visit)?;
        earlier.iter().try_for_each(|run| each_listed(run, visit))
    };
    let visits = visits_worthwhile(&chronicle, &changes, [&new_list, &other_lists], settings)?;
    let ended_mirrors = ended_pages(&chronicle, &changes);
    // After the visits to mirrors, which have the first claim to the budget.
    let single_urls = singles(&chronicle, (&visits, &ended_mirrors), [&new_list, &other_lists], new, settings)?;
    chronicle.add_probes(urls_within_budget(&visits));
    let clusters = history_tables::similar_clusters(&chronicle, &changes);
    let mut comparison = CollectionComparison {
        tables: vec![
            ("mirrors_changed", history_tables::mirrors_changed(&chronicle, &changes)),
            ("similar_clusters_changed", history_tables::similar_clusters_changed(&clusters)),
            ("change_rates", history_tables::change_rates(&chronicle, new)?),
            ("revisit", history_tables::revisit(&chronicle, &visits)),
        ],
        summary: summary(&chronicle, &changes, &clusters, (&visits, &single_urls)),
        collections: collections(&chronicle, &changes),
        ended_pages: ended_mirrors,
        is_backwards: chronicle
            .crawls()
            .values()
            .rev()
            .take(2)
            .is_sorted_by(|new, old| 0 < new.time && new.time < old.time),
        files: exports(&chronicle, &visits, &single_urls, settings),
        extra_inputs,
    };
    comparison.files.push((NAME.into(), chronicle.save().encode(&new.manifest.recipes)));
    Ok(comparison)
}

fn urls_within_budget(visits: &[CollectionVisit]) -> impl Iterator<Item = String> {
    visits.iter().filter(|visit| visit.is_chosen).flat_map(|visit| visit.urls.iter().cloned())
}

fn ended_pages(chronicle: &Chronicle, changes: &[MirrorChange]) -> Vec<DocId> {
    let old = changes.iter().filter(|changes| changes.fate.is_end()).filter_map(|changes| changes.old);
    let pages = old.flat_map(|old| chronicle.crawls()[&old.crawl].members_of(old.collection));
    let mut pages: Vec<DocId> = pages.map(|page| page.doc_id).collect();
    pages.sort_unstable();
    pages.dedup();
    pages
}

/// Calls `visit` for each page of a result's avoid list, with the page's URL.
fn each_listed(run: &FinishedRun, visit: &mut dyn FnMut(DocId, &str)) -> Result<()> {
    scan(run, "avoid", &["doc_id", "url"], &mut |part| {
        part.u64("doc_id")?.iter().zip(part.text("url")?).for_each(|(&doc_id, url)| visit(doc_id, url));
        Ok(())
    })?;
    Ok(())
}

/// Counts the collections of the last two crawls, and those that live on from one to the other.
fn collections(chronicle: &Chronicle, changes: &[MirrorChange]) -> CrawlOverlap {
    let mut newest = chronicle.crawls().iter().rev();
    let now = newest.next().map_or(0, |(_, crawl)| crawl.collections.len());
    let (previous_number, count) =
        newest.next().map_or((u32::MAX, 0), |(number, crawl)| (*number, crawl.collections.len()));
    let lives = |changes: &&MirrorChange| {
        let is_continued = !matches!(changes.fate, Fate::Split | Fate::Joined);
        is_continued && changes.new.is_some() && changes.old.is_some_and(|old| old.crawl == previous_number)
    };
    CrawlOverlap { old: count as u64, new: now as u64, both: changes.iter().filter(lives).count() as u64 }
}

fn summary(
    chronicle: &Chronicle,
    changes: &[MirrorChange],
    clusters: &[history_tables::ClusterChange],
    (visits, single_urls): (&[CollectionVisit], &[String]),
) -> BTreeMap<String, Value> {
    let mut mirrors: BTreeMap<&str, u64> = Fate::ALL.iter().map(|fate| (fate.word(), 0)).collect();
    changes.iter().for_each(|changes| *mirrors.entry(changes.fate.word()).or_default() += 1);
    let mut cluster_counts: BTreeMap<&str, u64> = BTreeMap::new();
    clusters.iter().for_each(|change| *cluster_counts.entry(change.what).or_default() += 1);
    let mut behind_counts: BTreeMap<String, u64> = BTreeMap::new();
    let newest = chronicle.crawls().last_key_value().map_or(&[][..], |(_, crawl)| &crawl.collections);
    for collection in newest.iter().filter(|collection| !collection.leads) {
        let crawls = collection.lag.map_or("unknown".into(), |lag| lag.crawls.to_string());
        *behind_counts.entry(crawls).or_default() += 1;
    }
    let chosen_visits = || visits.iter().filter(|visit| visit.is_chosen);
    BTreeMap::from([
        ("crawls".into(), json!(chronicle.crawls().len())),
        ("mirrors".into(), json!(mirrors)),
        ("crawls_behind".into(), json!(behind_counts)),
        ("similar_clusters".into(), json!(cluster_counts)),
        (
            "revisit".into(),
            json!({
                "collections": visits.len(),
                "within_budget": chosen_visits().count(),
                "pages": chosen_visits().map(|visit| visit.urls.len() as u64).sum::<u64>(),
                "singles": single_urls.len(),
            }),
        ),
    ])
}
