//! Figure 12 and Table 2: similar clusters by cardinality and size.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

use super::super::source::{MeasuredRun, not_ours, put};
use super::super::{FigureRow, Options, draw, figure, row_against_published};
use webtwin_base::error::{Error, Result};
use webtwin_storage::table::TableColumn;

/// Table 2: description, cardinality, size. (The text gives 1349 pages for LDP.)
const PUBLISHED: [(&str, f64, f64); 5] = [
    ("TUCOWS WinSock utilities", 360.0, 1052.0),
    ("LDP Linux Documentation Project", 143.0, 1359.0),
    ("Apache Web server", 125.0, 115.0),
    ("JAVA 1.0.2 API", 59.0, 552.0),
    ("Mars Pathfinder", 49.0, 498.0),
];

/// Size in pages below which a cluster is in the area labelled "Noise": "small size (less than 10
/// pages in their collections)" (section 5.1).
const NOISE: u64 = 10;

/// A similar cluster of a run, in the terms of Figure 12.
struct Cluster {
    /// Number of its collections.
    cardinality: u64,
    /// Number of pages of its largest collection.
    size: u64,
    /// URL of the root of the kept collection.
    url: String,
}

/// Returns all similar clusters, in order of their smallest pages.
fn clusters(run: &MeasuredRun) -> Result<Vec<Cluster>> {
    let (collections, members) = (run.table("collections")?, run.table("members")?);
    let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
    members.u64("collection")?.iter().for_each(|&collection| *sizes.entry(collection).or_default() += 1);
    let keep_column = collections.columns.iter().find_map(|column| match column {
        (name, TableColumn::Bool(flags)) if name == "keep" => Some(flags),
        _ => None,
    });
    let keep_flags =
        keep_column.ok_or_else(|| Error::input("collections", "has no column keep; run again with this build"))?;
    let urls = collections.text("root_url")?;
    let mut clusters_by_id: BTreeMap<u64, Cluster> = BTreeMap::new();
    for (row, (cluster, collection)) in
        collections.u64("similar_cluster")?.iter().zip(collections.u64("collection")?).enumerate()
    {
        let cluster =
            clusters_by_id.entry(*cluster).or_insert(Cluster { cardinality: 0, size: 0, url: urls[row].to_string() });
        cluster.cardinality += 1;
        cluster.size = cluster.size.max(sizes.get(collection).copied().unwrap_or(0));
        if keep_flags[row] {
            cluster.url = urls[row].to_string();
        }
    }
    Ok(clusters_by_id.into_values().collect())
}

/// Reproduces Figure 12.
pub(super) fn figure_12(options: &Options) -> Result<Vec<FigureRow>> {
    let job = include_str!("../../../jobs/repro/csg00-figure12.toml");
    let run = MeasuredRun::given_or_made(options, "jobs/repro/csg00-figure12.toml", job)?;
    let clusters = clusters(&run)?;
    let mut points: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for cluster in &clusters {
        *points.entry((cluster.cardinality, cluster.size)).or_default() += 1;
    }
    let mut tsv = String::from("cardinality\tsize\tclusters\n");
    for ((cardinality, size), count) in &points {
        let _ = writeln!(tsv, "{cardinality}\t{size}\t{count}");
    }
    let places: Vec<(f64, f64)> = points.keys().map(|&(cardinality, size)| (cardinality as f64, size as f64)).collect();
    let title = "Similar clusters by cardinality and size (CSG00 Figure 12)";
    put(options, "csg00-figure12", draw::log_points(title, "cluster cardinality", "collection size", &places), tsv)?;

    let noise_count = clusters.iter().filter(|cluster| cluster.size < NOISE).count() as f64;
    let wide = clusters.iter().filter(|cluster| cluster.cardinality >= 10 && cluster.size >= NOISE).count() as f64;
    let max_of = |of: fn(&Cluster) -> u64| clusters.iter().map(of).max().unwrap_or(0) as f64;
    Ok(vec![
        figure("pages", run.summary.pages.pages as f64, "pages"),
        figure("similar clusters", clusters.len() as f64, "clusters"),
        figure("of fewer than 10 pages (the paper's \"noise\")", noise_count, "clusters"),
        figure("of ten collections and more of ten pages and more", wide, "clusters"),
        row_against_published("largest cardinality", max_of(|cluster| cluster.cardinality), 360.0, "collections"),
        row_against_published("largest size", max_of(|cluster| cluster.size), 1359.0, "pages"),
        not_ours("LDP, the point named in the text: cardinality", 143.0, "collections"),
        not_ours("LDP: size", 1349.0, "pages"),
    ])
}

/// Reproduces the form of Table 2.
pub(super) fn table_2(options: &Options) -> Result<Vec<FigureRow>> {
    let job = include_str!("../../../jobs/repro/csg00-table2.toml");
    let run = MeasuredRun::given_or_made(options, "jobs/repro/csg00-table2.toml", job)?;
    let mut rows = vec![figure("pages", run.summary.pages.pages as f64, "pages")];
    let mut clusters = clusters(&run)?;
    clusters.retain(|cluster| cluster.size >= NOISE);
    clusters.sort_by_key(|cluster| Reverse((cluster.cardinality, cluster.size)));
    for (rank, cluster) in clusters.iter().take(5).enumerate() {
        let name = format!("{}: {}", rank + 1, cluster.url);
        rows.push(figure(&format!("{name}: cardinality"), cluster.cardinality as f64, "collections"));
        rows.push(figure(&format!("{name}: size"), cluster.size as f64, "pages"));
    }
    // The crawls that we can measure do not contain these collections, so the rows are separate.
    for (rank, (label, cardinality, size)) in PUBLISHED.into_iter().enumerate() {
        let name = format!("{}: {label} (the paper's)", rank + 1);
        rows.push(not_ours(&format!("{name}: cardinality"), cardinality, "collections"));
        rows.push(not_ours(&format!("{name}: size"), size, "pages"));
    }
    Ok(rows)
}
