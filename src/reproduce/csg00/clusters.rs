//! Figure 12 and Table 2: similar clusters by cardinality and size.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::super::source::{Run, not_ours, put};
use super::super::{Options, Row, beside, draw, figure};
use crate::error::Result;

/// Table 2: description, cardinality, size. (The text gives LDP 1349 pages.)
const PUBLISHED: [(&str, f64, f64); 5] = [
    ("TUCOWS WinSock utilities", 360.0, 1052.0),
    ("LDP Linux Documentation Project", 143.0, 1359.0),
    ("Apache Web server", 125.0, 115.0),
    ("JAVA 1.0.2 API", 59.0, 552.0),
    ("Mars Pathfinder", 49.0, 498.0),
];

/// "small size (less than 10 pages in their collections)" (section 5.1): the area labelled "Noise".
const NOISE: u64 = 10;

/// Collections, and pages of the largest, of every similar cluster.
fn clusters(run: &Run) -> Result<Vec<(u64, u64)>> {
    let (collections, members) = (run.table("collections")?, run.table("members")?);
    let mut cardinality: BTreeMap<u64, u64> = BTreeMap::new();
    collections.u64("similar_cluster")?.iter().for_each(|&cluster| *cardinality.entry(cluster).or_default() += 1);
    let mut sizes: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for (&cluster, &collection) in members.u64("similar_cluster")?.iter().zip(members.u64("collection")?) {
        *sizes.entry((cluster, collection)).or_default() += 1;
    }
    let mut largest: BTreeMap<u64, u64> = BTreeMap::new();
    for ((cluster, _), size) in sizes {
        let most = largest.entry(cluster).or_default();
        *most = size.max(*most);
    }
    Ok(cardinality.into_iter().map(|(cluster, cardinality)| (cardinality, largest[&cluster])).collect())
}

pub(super) fn figure_12(options: &Options) -> Result<Vec<Row>> {
    let job = include_str!("../../../jobs/repro/csg00-figure12.toml");
    let run = Run::given_or_made(options, "jobs/repro/csg00-figure12.toml", job)?;
    let clusters = clusters(&run)?;
    let mut points: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    clusters.iter().for_each(|&point| *points.entry(point).or_default() += 1);
    let mut tsv = String::from("cardinality\tsize\tclusters\n");
    for ((cardinality, size), count) in &points {
        let _ = writeln!(tsv, "{cardinality}\t{size}\t{count}");
    }
    let places: Vec<(f64, f64)> = points.keys().map(|&(cardinality, size)| (cardinality as f64, size as f64)).collect();
    let title = "Similar clusters by cardinality and size (CSG00 Figure 12)";
    put(options, "csg00-figure12", draw::log_points(title, "cluster cardinality", "collection size", &places), tsv)?;

    let noise = clusters.iter().filter(|cluster| cluster.1 < NOISE).count() as f64;
    let most = |of: fn(&(u64, u64)) -> u64| clusters.iter().map(of).max().unwrap_or(0) as f64;
    Ok(vec![
        figure("pages", run.summary.pages.pages as f64, "pages"),
        figure("similar clusters", clusters.len() as f64, "clusters"),
        figure("of fewer than 10 pages (the paper's \"noise\")", noise, "clusters"),
        figure("widely replicated: on ten hosts and more", wide(&clusters), "clusters"),
        beside("largest cardinality", most(|cluster| cluster.0), 360.0, "collections"),
        beside("largest size", most(|cluster| cluster.1), 1359.0, "pages"),
        not_ours("LDP, the point named in the text: cardinality", 143.0, "collections"),
        not_ours("LDP: size", 1349.0, "pages"),
    ])
}

fn wide(clusters: &[(u64, u64)]) -> f64 {
    clusters.iter().filter(|cluster| cluster.0 >= 10 && cluster.1 >= NOISE).count() as f64
}

pub(super) fn table_2(options: &Options) -> Result<Vec<Row>> {
    let job = include_str!("../../../jobs/repro/csg00-table2.toml");
    let run = Run::given_or_made(options, "jobs/repro/csg00-table2.toml", job)?;
    let mut rows = vec![figure("pages", run.summary.pages.pages as f64, "pages")];
    for (rank, largest) in run.summary.largest_similar_clusters.iter().take(5).enumerate() {
        let name = format!("{}: {}", rank + 1, largest.url);
        rows.push(figure(&format!("{name}: cardinality"), f64::from(largest.copies), "collections"));
        rows.push(figure(&format!("{name}: size"), f64::from(largest.size), "pages"));
    }
    // None of these was in our crawl.
    for (rank, (what, cardinality, size)) in PUBLISHED.into_iter().enumerate() {
        let name = format!("{}: {what} (the paper's)", rank + 1);
        rows.push(not_ours(&format!("{name}: cardinality"), cardinality, "collections"));
        rows.push(not_ours(&format!("{name}: size"), size, "pages"));
    }
    Ok(rows)
}
