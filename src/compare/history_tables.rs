//! Output tables of a history. The tables have no nulls: a boolean column marks rows that have a
//! value.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::chronicle::{Chronicle, MirrorChange};
use super::collections::{Collection, MILLION};
use super::fates::Fate;
use super::lives::Version;
use super::rates::{DAY, Visits, rate, six_digits};
use super::worthwhile::CollectionVisit;
use webtwin_base::error::Result;
use webtwin_base::ids::DocId;
use webtwin_results::FinishedRun;
use webtwin_results::scan::scan;
use webtwin_storage::table::{Table, TableColumn};

/// Builds `mirrors_changed`: the change of each collection, those that need most attention first.
pub fn mirrors_changed(chronicle: &Chronicle, mirror_change: &[MirrorChange]) -> Table {
    let version = |mirror_change: &MirrorChange| mirror_change.new.or(mirror_change.old).expect("a row has a version");
    let collection_of = |mirror_change: &MirrorChange| chronicle.collection(version(mirror_change));
    let id = |version: Option<Version>| version.map_or(0, |version| chronicle.collection(version).id);
    let host =
        |version: Option<Version>| version.map_or(String::new(), |version| chronicle.collection(version).host.clone());
    let time = |crawl: u32| chronicle.crawls()[&crawl].time;
    // The leader of the version's own crawl, which may be an earlier one.
    let leaders = leaders(chronicle);
    let leader = |mirror_change: &MirrorChange| {
        leaders.get(&(version(mirror_change).crawl, collection_of(mirror_change).similar_cluster)).copied()
    };
    let lag = |mirror_change: &MirrorChange| mirror_change.new.and_then(|new| chronicle.collection(new).lag);
    // The lag counts kept crawls, so its time is that of the crawl as many positions earlier.
    let days = |mirror_change: &MirrorChange| {
        let (Some(lag), Some(new)) = (lag(mirror_change), mirror_change.new) else { return 0.0 };
        let crawl_behind = chronicle.crawls().range(..=new.crawl).rev().nth(lag.crawls as usize);
        crawl_behind.map_or(0.0, |(_, then)| six_digits((time(new.crawl) - then.time) as f64 / DAY as f64))
    };
    let share = |part: u32, whole: u32| six_digits(f64::from(part) / f64::from(whole.max(1)));

    macro_rules! column {
        ($kind:ident, $of:expr) => {
            TableColumn::$kind(mirror_change.iter().map($of).collect())
        };
    }
    Table::new([
        ("rank", column!(U32, |mirror_change| mirror_change.fate as u32)),
        ("what", column!(Text, |mirror_change| mirror_change.fate.word().to_string())),
        ("similar_cluster", column!(Id, |mirror_change| collection_of(mirror_change).similar_cluster)),
        ("has_old", column!(Bool, |mirror_change| mirror_change.old.is_some())),
        ("collection_old", column!(Id, |mirror_change| id(mirror_change.old))),
        ("host_old", column!(Text, |mirror_change| host(mirror_change.old))),
        ("has_new", column!(Bool, |mirror_change| mirror_change.new.is_some())),
        ("collection_new", column!(Id, |mirror_change| id(mirror_change.new))),
        ("host_new", column!(Text, |mirror_change| host(mirror_change.new))),
        ("prefix", column!(Text, |mirror_change| collection_of(mirror_change).prefix.clone())),
        ("root_url", column!(Text, |mirror_change| collection_of(mirror_change).root_url.clone())),
        ("keep", column!(Bool, |mirror_change| collection_of(mirror_change).keep)),
        ("size_old", column!(U32, |mirror_change| mirror_change.seen.sizes.0)),
        ("size_new", column!(U32, |mirror_change| mirror_change.seen.sizes.1)),
        ("shared", column!(U32, |mirror_change| mirror_change.shared)),
        ("same_text", column!(U32, |mirror_change| mirror_change.same_text)),
        ("changed", column!(U32, |mirror_change| mirror_change.changed)),
        ("original", column!(Id, |mirror_change| leader(mirror_change).map_or(0, |leader| leader.id))),
        (
            "original_url",
            column!(Text, |mirror_change| leader(mirror_change)
                .map_or(String::new(), |leader| leader.root_url.clone())),
        ),
        ("is_original", column!(Bool, |mirror_change| collection_of(mirror_change).leads)),
        ("has_resemblance", column!(Bool, |mirror_change| collection_of(mirror_change).resemblance.is_some())),
        (
            "resemblance",
            column!(F64, |mirror_change| f64::from(collection_of(mirror_change).resemblance.unwrap_or(0))
                / MILLION as f64),
        ),
        ("has_lag", column!(Bool, |mirror_change| lag(mirror_change).is_some())),
        ("lag_crawls", column!(U32, |mirror_change| lag(mirror_change).map_or(0, |lag| lag.crawls))),
        ("lag_days", column!(F64, days)),
        ("lag_share", column!(F64, |mirror_change| lag(mirror_change).map_or(0.0, |lag| share(lag.shared, lag.texts)))),
        ("unseen", column!(U32, |mirror_change| collection_of(mirror_change).unseen)),
        ("first_crawl", column!(Time, |mirror_change| time(mirror_change.line.crawl))),
        ("last_crawl", column!(Time, |mirror_change| time(version(mirror_change).crawl))),
    ])
}

/// Maps each similar cluster of each crawl to the collection that leads it.
fn leaders(chronicle: &Chronicle) -> BTreeMap<(u32, DocId), &Collection> {
    let crawl_rows = chronicle.crawls().iter();
    crawl_rows
        .flat_map(|(&crawl, of)| of.collections.iter().map(move |one| ((crawl, one.similar_cluster), one)))
        .filter(|row| row.1.leads)
        .collect()
}

/// Change of a similar cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterChange {
    /// Rank of `what`; changes that need most attention come first.
    pub rank: u32,
    /// `died`, `kept_changed`, `born`, `grew`, `shrank` or `lives`.
    pub what: &'static str,
    /// Id before and now; `None` where the cluster does not exist.
    pub similar_cluster: [Option<DocId>; 2],
    /// Number of collections before and now.
    pub cardinality: [u32; 2],
    /// Number of pages before and now.
    pub pages: [u64; 2],
    /// Root URLs of the kept collections before and now.
    pub keep: [String; 2],
}

/// Similar cluster of a crawl.
struct Cluster {
    cardinality: u32,
    pages: u64,
    keep: Option<Version>,
}

/// Compares the similar clusters of the last two crawls. An old and a new cluster are the same if
/// more collections live on from one to the other than between either and any third cluster; ties
/// go to the smaller cluster.
pub fn similar_clusters(chronicle: &Chronicle, mirror_change: &[MirrorChange]) -> Vec<ClusterChange> {
    let mut numbers = chronicle.crawls().keys().rev().copied();
    let (now, previous_crawl) = (numbers.next(), numbers.next());
    let clusters = |crawl: Option<u32>| -> BTreeMap<DocId, Cluster> {
        let mut clusters: BTreeMap<DocId, Cluster> = BTreeMap::new();
        let Some(crawl) = crawl else { return clusters };
        for (collection, row) in (0..).zip(&chronicle.crawls()[&crawl].collections) {
            let cluster =
                clusters.entry(row.similar_cluster).or_insert(Cluster { cardinality: 0, pages: 0, keep: None });
            cluster.cardinality += 1;
            cluster.pages += u64::from(row.size);
            if row.keep {
                cluster.keep = Some(Version { crawl, collection });
            }
        }
        clusters
    };
    let (old, new) = (clusters(previous_crawl), clusters(now));
    // A split or joined collection continues no other one, so it does not connect clusters.
    let successors_of: BTreeMap<Version, Version> = mirror_change
        .iter()
        .filter(|mirror_change| !matches!(mirror_change.fate, Fate::Split | Fate::Joined))
        .filter_map(|mirror_change| {
            Some((mirror_change.old.filter(|old| Some(old.crawl) == previous_crawl)?, mirror_change.new?))
        })
        .collect();
    let mut shared_counts: BTreeMap<(DocId, DocId), u32> = BTreeMap::new();
    let cluster = |version: &Version| chronicle.collection(*version).similar_cluster;
    successors_of.iter().for_each(|(old, new)| *shared_counts.entry((cluster(old), cluster(new))).or_default() += 1);
    let best = |side: fn(&(DocId, DocId)) -> (DocId, DocId)| {
        let mut best: BTreeMap<DocId, (Reverse<u32>, DocId)> = BTreeMap::new();
        for (pair, count) in &shared_counts {
            let (side_cluster, counterpart) = side(pair);
            let rank = (Reverse(*count), counterpart);
            best.entry(side_cluster).and_modify(|best| *best = rank.min(*best)).or_insert(rank);
        }
        best
    };
    let (best_of_old, best_of_new) = (best(|pair| *pair), best(|pair| (pair.1, pair.0)));
    // Each of the two clusters must be the other's best match, as for collections.
    let successor = |id: &DocId| best_of_old.get(id).map(|best| best.1).filter(|other| best_of_new[other].1 == *id);
    let url = |cluster: Option<&Cluster>| {
        cluster.and_then(|one| one.keep).map_or(String::new(), |keep| chronicle.collection(keep).root_url.clone())
    };
    let change = |id_old: Option<DocId>, id_new: Option<DocId>| {
        let cluster_pair = [id_old.and_then(|id| old.get(&id)), id_new.and_then(|id| new.get(&id))];
        let cardinality = cluster_pair.map(|one| one.map_or(0, |one| one.cardinality));
        let kept_hosts = cluster_pair.map(|one| one.and_then(|one| one.keep));
        let (rank, what) = match cluster_pair {
            [Some(_), None] => (0, "died"),
            [None, _] => (2, "born"),
            _ if kept_hosts[0].and_then(|keep| successors_of.get(&keep).copied()) != kept_hosts[1] => {
                (1, "kept_changed")
            }
            _ if cardinality[1] > cardinality[0] => (3, "grew"),
            _ if cardinality[1] < cardinality[0] => (4, "shrank"),
            _ => (5, "lives"),
        };
        let pages = cluster_pair.map(|one| one.map_or(0, |one| one.pages));
        ClusterChange { rank, what, similar_cluster: [id_old, id_new], cardinality, pages, keep: cluster_pair.map(url) }
    };
    let mut changes: Vec<ClusterChange> = old.keys().map(|id| change(Some(*id), successor(id))).collect();
    let continued_clusters: Vec<DocId> = old.keys().filter_map(successor).collect();
    changes.extend(new.keys().filter(|id| !continued_clusters.contains(id)).map(|id| change(None, Some(*id))));
    changes.sort_unstable();
    changes
}

/// Builds `similar_clusters_changed`.
pub fn similar_clusters_changed(changes: &[ClusterChange]) -> Table {
    let [old, new] = [0, 1];
    let has_side =
        |side: usize| TableColumn::Bool(changes.iter().map(|row| row.similar_cluster[side].is_some()).collect());
    let id = |side: usize| TableColumn::Id(changes.iter().map(|row| row.similar_cluster[side].unwrap_or(0)).collect());
    let cardinality = |side: usize| TableColumn::U32(changes.iter().map(|row| row.cardinality[side]).collect());
    let pages = |side: usize| TableColumn::Count(changes.iter().map(|row| row.pages[side]).collect());
    let keep = |side: usize| TableColumn::Text(changes.iter().map(|row| row.keep[side].clone()).collect());
    Table::new([
        ("rank", TableColumn::U32(changes.iter().map(|row| row.rank).collect())),
        ("what", TableColumn::Text(changes.iter().map(|row| row.what.to_string()).collect())),
        ("has_old", has_side(old)),
        ("similar_cluster_old", id(old)),
        ("has_new", has_side(new)),
        ("similar_cluster_new", id(new)),
        ("cardinality_old", cardinality(old)),
        ("cardinality_new", cardinality(new)),
        ("pages_old", pages(old)),
        ("pages_new", pages(new)),
        ("keep_url_old", keep(old)),
        ("keep_url_new", keep(new)),
    ])
}

/// Builds `change_rates`: change rates of pages in total, by domain, host and collection.
///
/// # Errors
/// Returns any error of the table `hosts`.
pub fn change_rates(chronicle: &Chronicle, new: &FinishedRun) -> Result<Table> {
    let mut hosts: BTreeMap<String, (String, u64)> = BTreeMap::new();
    scan(new, "hosts", &["host", "domain", "pages"], &mut |part| {
        let pages = part.u64("pages")?;
        for (row, host) in part.text("host")?.iter().enumerate() {
            hosts.insert(host.to_string(), (part.text("domain")?[row].to_string(), pages[row]));
        }
        Ok(())
    })?;
    // Visits by crawl, and number of pages.
    type Sums = (BTreeMap<u32, Visits>, u64);
    let mut sums_by_key: BTreeMap<(&str, &str), Sums> = BTreeMap::new();
    let mut add = |scope: &'static str, key, visits: &[(u32, Visits)], pages: u64| {
        let (interval_rows, sum) = sums_by_key.entry((scope, key)).or_default();
        *sum += pages;
        for &(crawl, visits) in visits {
            let sum = interval_rows.entry(crawl).or_insert(Visits { interval: visits.interval, ..Visits::default() });
            (sum.visits, sum.changed) = (sum.visits + visits.visits, sum.changed + visits.changed);
        }
    };
    for (host, visits) in chronicle.hosts() {
        let (domain, pages) = hosts.get(host).map_or(("", 0), |(domain, pages)| (domain.as_str(), *pages));
        add("all", "", visits, pages);
        add("host", host.as_str(), visits, pages);
        if !domain.is_empty() {
            add("domain", domain, visits, pages);
        }
    }
    let newest = chronicle.crawls().last_key_value().map_or(&[][..], |(_, crawl)| &crawl.collections);
    newest.iter().for_each(|one| add("collection", &one.prefix, &one.visits, u64::from(one.size)));

    // Without visits there is no rate and no row.
    let rows = sums_by_key.iter().filter_map(|(&(scope, key), (visits, pages))| {
        let visits: Vec<Visits> = visits.values().copied().collect();
        Some((scope, key, *pages, rate(&visits)?))
    });
    let rows: Vec<_> = rows.collect();
    let number = |of: fn(&super::rates::Rate) -> f64| TableColumn::F64(rows.iter().map(|row| of(&row.3)).collect());
    Ok(Table::new([
        ("scope", TableColumn::Text(rows.iter().map(|row| row.0.to_string()).collect())),
        ("key", TableColumn::Text(rows.iter().map(|row| row.1.to_string()).collect())),
        ("pages", TableColumn::Count(rows.iter().map(|row| row.2).collect())),
        ("visits", TableColumn::Count(rows.iter().map(|row| row.3.visits).collect())),
        ("changed", TableColumn::Count(rows.iter().map(|row| row.3.n_changed).collect())),
        ("rate", number(|rate| rate.rate)),
        ("rate_low", number(|rate| rate.low)),
        ("has_rate_high", TableColumn::Bool(rows.iter().map(|row| row.3.high.is_finite()).collect())),
        ("rate_high", number(|rate| if rate.high.is_finite() { rate.high } else { 0.0 })),
        ("freshness", number(|rate| rate.freshness)),
        ("interval_days", number(|rate| rate.interval_days)),
    ]))
}

/// Builds `revisit`: the collections on the avoid list, the most valuable first.
pub fn revisit(chronicle: &Chronicle, visits: &[CollectionVisit]) -> Table {
    let collection_of = |visit: &CollectionVisit| chronicle.collection(visit.version);
    macro_rules! column {
        ($kind:ident, $of:expr) => {
            TableColumn::$kind(visits.iter().map($of).collect())
        };
    }
    Table::new([
        ("rank", TableColumn::U32((0..visits.len() as u32).collect())),
        ("priority", column!(F64, |visit| visit.value.priority)),
        ("within_budget", column!(Bool, |visit| visit.is_chosen)),
        ("why", column!(Text, |visit| visit.why.to_string())),
        ("similar_cluster", column!(Id, |visit| collection_of(visit).similar_cluster)),
        ("collection", column!(Id, |visit| collection_of(visit).id)),
        ("host", column!(Text, |visit| collection_of(visit).host.clone())),
        ("prefix", column!(Text, |visit| collection_of(visit).prefix.clone())),
        ("root_url", column!(Text, |visit| collection_of(visit).root_url.clone())),
        ("kind", column!(Text, |visit| visit.relation.kind.word().to_string())),
        ("size", column!(U32, |visit| collection_of(visit).size)),
        ("skipped", column!(U32, |visit| visit.relation.n_skipped)),
        ("hazard", column!(F64, |visit| visit.value.hazard)),
        ("intervals", column!(U32, |visit| visit.relation.intervals)),
        ("ends", column!(U32, |visit| visit.relation.ends)),
        ("age", column!(U32, |visit| visit.relation.age)),
        ("probes", column!(U32, |visit| visit.urls.len() as u32)),
        ("probe_urls", column!(Text, |visit| visit.urls.join(" "))),
    ])
}
