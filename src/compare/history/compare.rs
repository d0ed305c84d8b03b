//! The newest crawl of a history against the one before: the tables, exports and counts that `webtwin diff` adds to those of pages.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::chronicle::{Chronicle, Told};
use super::fates::Fate;
use super::saved::{NAME, Saved};
use super::worthwhile::{EachListed, Visit, exports, singles, visits_worthwhile};
use super::{read, tables};
use webtwin_base::error::Result;
use webtwin_base::ids::DocId;
use webtwin_job::Recrawl;
use webtwin_results::Run;
use webtwin_storage::table::Table;

/// What a comparison of collections found.
#[derive(Debug, Clone)]
pub struct Compared {
    /// Tables by name, with their rows in order.
    pub tables: Vec<(&'static str, Table)>,
    /// Other files by path.
    pub files: Vec<(String, Vec<u8>)>,
    /// Counts for the summary, by name.
    pub summary: BTreeMap<String, Value>,
    /// Collections before, now, and those that both crawls have.
    pub collections: [u64; 3],
    /// Pages of collections that have ended with the newer crawl, ascending: what stands of the avoid list for them does so no more.
    pub ended: Vec<DocId>,
    /// Whether the newer crawl was made before the older one, by its fetch times.
    pub is_backwards: bool,
}

/// What is known of the crawls before the newer one.
pub struct Before<'a> {
    /// Results before the older one, oldest first.
    pub earlier: &'a [Run],
    /// The older result.
    pub old: &'a Run,
    /// What an earlier comparison saved, with its name for messages; results that it knows are not read again.
    pub saved: Option<(String, Saved)>,
    /// Tells the avoid list in force before the newer crawl.
    pub each_in_force: &'a EachListed<'a>,
}

/// Compares the collections of results with those of the newest.
///
/// # Errors
/// Those of the tables, and of [`Chronicle::take_up`].
///
/// # Cost
/// Of each result that is not known the tables `pages`, `members` and `avoid`. In memory the pages of the collections of
/// `recrawl.versions` crawls, 32 bytes each, and a row for each collection of every crawl.
pub fn compare(before: Before<'_>, new: &Run, settings: &Recrawl, workers: usize) -> Result<Compared> {
    let Before { earlier, old, saved, each_in_force } = before;
    let before: Vec<&Run> = earlier.iter().chain([old]).collect();
    let mut chronicle = match saved {
        None => Chronicle::new(settings),
        Some((name, saved)) => {
            let known = |run: &&&Run| saved.results.values().any(|attempt| *attempt == run.manifest.attempt);
            let newest = before.iter().rev().find(known).unwrap_or(&old).manifest.attempt.clone();
            Chronicle::take_up(&name, saved, &newest, settings)?
        }
    };
    for (at, run) in before.iter().enumerate() {
        if chronicle.has(&run.manifest.attempt) {
            continue;
        }
        let told = chronicle.add(run, at.checked_sub(1).map(|last| before[last]), workers)?;
        // After the first crawl nothing was compared, and nobody asked for probes.
        if at > 0 {
            let own = |with: &mut dyn FnMut(DocId, &str)| each_listed(run, with);
            let others =
                |with: &mut dyn FnMut(DocId, &str)| before[..at].iter().try_for_each(|run| each_listed(run, with));
            let visits = visits_worthwhile(&chronicle, &told, [&own, &others], settings)?;
            chronicle.ask(urls_within_budget(&visits));
        }
    }
    let told = chronicle.add(new, Some(old), workers)?;
    let own = |with: &mut dyn FnMut(DocId, &str)| each_listed(new, with);
    let others = |with: &mut dyn FnMut(DocId, &str)| {
        each_in_force(with)?;
        earlier.iter().try_for_each(|run| each_listed(run, with))
    };
    let visits = visits_worthwhile(&chronicle, &told, [&own, &others], settings)?;
    let ended = ended(&chronicle, &told);
    let singles = singles(&chronicle, (&visits, &ended), [&own, &others], new, settings)?;
    chronicle.ask(urls_within_budget(&visits));
    let clusters = tables::similar_clusters(&chronicle, &told);
    let mut compared = Compared {
        tables: vec![
            ("mirrors_changed", tables::mirrors_changed(&chronicle, &told)),
            ("similar_clusters_changed", tables::similar_clusters_changed(&clusters)),
            ("change_rates", tables::change_rates(&chronicle, new)?),
            ("revisit", tables::revisit(&chronicle, &visits)),
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
    read::each_part(run, "avoid", &["doc_id", "url"], |part| {
        part.u64("doc_id")?.iter().zip(part.text("url")?).for_each(|(&doc_id, url)| with(doc_id, url));
        Ok(())
    })
}

/// Collections of the last crawl but one, of the last, and those that live on from the one to the other.
fn collections(chronicle: &Chronicle, told: &[Told]) -> [u64; 3] {
    let mut newest = chronicle.crawls().iter().rev();
    let now = newest.next().map_or(0, |(_, crawl)| crawl.collections.len());
    let (before, count) = newest.next().map_or((u32::MAX, 0), |(number, crawl)| (*number, crawl.collections.len()));
    let lives = |told: &&Told| {
        let went_on = !matches!(told.fate, Fate::Split | Fate::Joined);
        went_on && told.new.is_some() && told.old.is_some_and(|old| old.crawl == before)
    };
    [count as u64, now as u64, told.iter().filter(lives).count() as u64]
}

fn summary(
    chronicle: &Chronicle,
    told: &[Told],
    clusters: &[tables::ClusterChange],
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
