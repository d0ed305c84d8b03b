//! Reports of other jobs as generic views: a study, a join of fingerprints, a comparison of two
//! crawls, an evaluation.

use std::cmp::Reverse;
use std::collections::HashMap;

use serde_json::Value;

use super::{ReportOptions, corpus, count, counts, run_facts};
use crate::report::contract::{Bars, FORMAT, LabeledCount, ResultOutline, TableCell, TablePreview, Tile, ViewPart};
use crate::report::figures;
use crate::report::top::SmallestKeys;
use webtwin_base::error::{Error, Result};
use webtwin_results::FinishedRun;
use webtwin_results::scan::scan;

/// Maximum number of rows of a table.
const ROWS: usize = 50;

/// Number of documents of a study above which clusters are not counted. Counting holds 16 bytes a
/// cluster.
const MAX_DOCUMENTS: u64 = 4_000_000;

/// Reads the report of a result that has no pages of its own.
///
/// # Errors
/// Returns [`Error::Usage`] for a result of an unknown kind, and [`Error::Input`] for files that
/// differ from the manifest.
///
/// # Memory
/// A batch of rows. For a study of at most 4,000,000 documents about 24 bytes a cluster.
pub fn outline(run: &FinishedRun, options: &ReportOptions) -> Result<ResultOutline> {
    let job = &run.manifest.job;
    let kind = job["kind"].as_str().unwrap_or_default().to_string();
    let summary = run.summary()?;
    let mut clusters = None;
    let parts = match kind.as_str() {
        "study" => vec![study(run, &summary)?],
        "hamming" => vec![hamming(run, &summary)?],
        "diff" => vec![comparison(run, &summary)?],
        "dedup" => {
            let corpus = corpus::gather(run, &summary, options.pairs)?;
            clusters = Some(corpus.clusters);
            corpus.parts
        }
        _ => {
            let message = format!(
                "{}: there is no report of a job of kind `{kind}`; name a result of run, dedup, diff, hamming batch \
                 or a study",
                run.folder
            );
            return Err(Error::Usage(message));
        }
    };
    let texts = |values: &[&Value]| values.iter().filter_map(|of| Some(of.as_str()?.to_string())).collect();
    let inputs: Vec<String> = match kind.as_str() {
        "dedup" => texts(&job["inputs"].as_array().into_iter().flatten().collect::<Vec<_>>()),
        "diff" => texts(&[&job["old"]["url"], &job["new"]["url"]]),
        "hamming" => {
            let queries = job["batch"]["queries"].as_array().into_iter().flatten();
            texts(&[&job["batch"]["fingerprints"]].into_iter().chain(queries).collect::<Vec<_>>())
        }
        _ => texts(&job["input"]["urls"].as_array().into_iter().flatten().collect::<Vec<_>>()),
    };
    Ok(ResultOutline {
        format: FORMAT,
        kind,
        digest: run.manifest.digest.clone(),
        inputs,
        parts,
        clusters,
        run: run_facts::gather(run, &summary, options.machine)?,
    })
}

pub(super) fn tile(figure: impl Into<String>, label: impl Into<String>) -> Tile {
    Tile { figure: figure.into(), what: label.into() }
}

/// Builds a bar chart of counts by name. Names in `words` come first, in that order and with these
/// labels.
pub(super) fn bars(heading: &str, question: &str, counts: &Value, words: &[(&str, &str)]) -> Bars {
    let all_counts = super::counts(counts);
    let known_counts = words.iter().filter_map(|(name, what)| Some(((*what).to_string(), *all_counts.get(*name)?)));
    let other_counts = all_counts.iter().filter(|(name, _)| words.iter().all(|word| word.0 != name.as_str()));
    let bars = known_counts.chain(other_counts.map(|(name, &count)| (name.replace('_', " "), count)));
    let bars = bars.map(|(what, count)| LabeledCount { what, count }).collect();
    Bars { heading: heading.into(), ask: question.into(), bars }
}

/// Builds the view of a study (\[PBZ06\]): its tables as figures, and its largest clusters by their
/// first documents.
fn study(run: &FinishedRun, summary: &Value) -> Result<ViewPart> {
    let (tables, web) = (&summary["tables"], &summary["web"]);
    let complete = &tables["complete"];
    let [documents, clusters, duplicates] = ["documents", "clusters", "duplicates"].map(|name| count(&complete[name]));
    let row: Vec<LabeledCount> = tables["near"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|row| LabeledCount {
            what: format!("at least {} % of their paragraphs", count(&row["percent"])),
            count: count(&row["near_duplicates"]),
        })
        .collect();
    let mut sizes: Vec<(u64, u64)> = super::counts(&complete["documents_per_cluster"])
        .into_iter()
        .filter_map(|(size, clusters)| Some((size.parse().ok()?, clusters)))
        .collect();
    sizes.sort_unstable();
    // JSON objects order keys as text, but sizes must be ordered as numbers.
    let labeled = |&(size, clusters): &(u64, u64)| LabeledCount {
        what: figures::counted(size, "document", "documents"),
        count: clusters,
    };
    let connected = |label: &str, part_json: &Value| {
        vec![
            TableCell::Text(label.into()),
            TableCell::Count(count(&part_json["all"])),
            TableCell::Count(count(&part_json["connected"])),
            TableCell::Text(part_json["percent"].as_f64().map_or("–".into(), |percent| format!("{percent:.1} %"))),
        ]
    };
    // A crawl that only follows links finds the connected part only.
    let in_connected = TablePreview {
        heading: "Documents that a crawl along links reaches".into(),
        heads: vec!["what", "in all", "in the connected part", "share"],
        rows: vec![
            connected("clusters with a document in the connected part", &tables["clusters_in_connected"]),
            connected("unique documents", &tables["unique_in_connected"]),
            connected("useful documents: unique, or the first of a cluster", &tables["useful_in_connected"]),
        ],
        all: 3,
        table: String::new(),
    };
    Ok(ViewPart {
        id: "study",
        name: "Study",
        headline: match documents {
            0 => "This crawl has no documents".into(),
            _ => format!("{} of the documents are duplicates", figures::share(duplicates, documents)),
        },
        lead: format!(
            "{} of {} in {}; a crawl along links from {} reaches {} of {}.",
            figures::counted(duplicates, "duplicate", "duplicates"),
            figures::counted(documents, "document", "documents"),
            figures::counted(clusters, "cluster", "clusters"),
            web["seed"].as_str().filter(|seed| !seed.is_empty()).unwrap_or("no page"),
            figures::count(count(&web["connected"])),
            figures::counted(count(&web["pages"]), "page", "pages")
        ),
        tiles: vec![
            tile(figures::count(documents), "documents"),
            tile(figures::count(clusters), "clusters of duplicates"),
            tile(figures::count(duplicates), "duplicates"),
            tile(figures::count(count(&complete["unique"])), "unique documents"),
            tile(figures::count(count(&complete["useful"])), "useful documents"),
            tile(figures::count(count(&web["links"])), "links"),
        ],
        charts: vec![
            Bars {
                heading: "Near-duplicates".into(),
                ask: "Documents that share this part with another, except one of each set. (PBZ06, Table 3)".into(),
                bars: row,
            },
            bars(
                "Places in the bow tie",
                "Pages by their position in the graph of links.",
                &web["pages_by_place"],
                &[("core", "core"), ("in", "leads to the core"), ("out", "reached from the core")],
            ),
            Bars {
                heading: "Clusters by size".into(),
                ask: "Number of clusters by their number of documents. (PBZ06, Figures 2 to 4)".into(),
                bars: sizes.iter().take(ROWS).map(labeled).collect(),
            },
        ],
        tables: [Some(in_connected), largest_clusters(run, documents)?].into_iter().flatten().collect(),
    })
}

/// Lists the largest clusters of a study by their first documents. Returns `None` if there are too
/// many documents to count clusters.
fn largest_clusters(run: &FinishedRun, documents: u64) -> Result<Option<TablePreview>> {
    if documents > MAX_DOCUMENTS {
        return Ok(None);
    }
    let mut sizes: HashMap<u64, u64> = HashMap::new();
    scan(run, "duplicates", &["cluster", "role"], &mut |batch| {
        let in_cluster = batch.u64("cluster")?.iter().zip(batch.text("role")?).filter(|row| row.1 != "unique");
        in_cluster.for_each(|(cluster, _)| *sizes.entry(*cluster).or_default() += 1);
        Ok(())
    })?;
    let mut top = SmallestKeys::new(ROWS);
    sizes.iter().for_each(|(&cluster, &size)| top.offer((Reverse(size), cluster), (cluster, size)));
    let clusters: Vec<(u64, u64)> = top.finish();
    let mut urls: HashMap<u64, String> = HashMap::new();
    scan(run, "duplicates", &["doc_id", "url"], &mut |batch| {
        let pages = batch.u64("doc_id")?.iter().zip(batch.text("url")?);
        urls.extend(
            pages.filter(|row| clusters.iter().any(|of| of.0 == *row.0)).map(|(id, url)| (*id, url.to_string())),
        );
        Ok(())
    })?;
    let row = |(id, size): &(u64, u64)| {
        vec![TableCell::Url(urls.get(id).cloned().unwrap_or_default()), TableCell::Count(*size)]
    };
    Ok(Some(TablePreview {
        heading: "Largest clusters".into(),
        heads: vec!["first document", "documents"],
        rows: clusters.iter().map(row).collect(),
        all: sizes.len() as u64,
        table: "duplicates".into(),
    }))
}

/// Builds the view of fingerprints joined with a batch or with themselves (\[MJS07\]).
fn hamming(run: &FinishedRun, summary: &Value) -> Result<ViewPart> {
    let [documents, queries, near_queries, pairs, groups] =
        ["documents", "queries", "near", "pairs", "groups"].map(|name| count(&summary[name]));
    // JSON objects order keys as text, but distances must be ordered as numbers.
    let mut distance_counts: Vec<(u64, u64)> = counts(&summary["pairs_by_distance"])
        .into_iter()
        .filter_map(|(distance, pairs)| Some((distance.parse().ok()?, pairs)))
        .collect();
    distance_counts.sort_unstable();
    let mut top = SmallestKeys::new(ROWS);
    scan(run, "pairs", &["a", "b", "value"], &mut |batch| {
        let rows = batch.u64("a")?.iter().zip(batch.u64("b")?).zip(batch.u32("value")?);
        rows.for_each(|((&a, &b), &bits)| top.offer((bits, a, b), (a, b, bits)));
        Ok(())
    })?;
    let row = |(a, b, bits): (u64, u64, u32)| {
        vec![TableCell::Text(a.to_string()), TableCell::Text(b.to_string()), TableCell::Count(u64::from(bits))]
    };
    let nearest = TablePreview {
        heading: "Nearest pairs".into(),
        heads: vec!["document", "near document", "bits apart"],
        rows: top.finish().into_iter().map(row).collect(),
        // With `batch.groups` the result has groups of documents instead of pairs.
        all: if groups > 0 { 0 } else { pairs },
        table: "pairs".into(),
    };
    let message = match groups {
        0 => figures::counted(pairs, "pair of documents is", "pairs of documents are"),
        _ => format!("{} of documents are", figures::counted(groups, "group", "groups")),
    };
    let k = count(&run.manifest.job["hamming"]["k"]);
    let query_text = match queries {
        0 => "joined with themselves".to_string(),
        _ => format!("and {}", figures::counted(queries, "query", "queries")),
    };
    Ok(ViewPart {
        id: "near",
        name: "Near fingerprints",
        headline: format!("{message} within {}", figures::counted(k, "bit", "bits")),
        lead: format!("Fingerprints of {}, {query_text}.", figures::counted(documents, "document", "documents")),
        tiles: vec![
            tile(figures::count(documents), "documents"),
            tile(figures::count(queries), "queries"),
            tile(figures::count(near_queries), "near pairs of distinct fingerprints"),
            tile(figures::count(pairs), "pairs of documents with these fingerprints"),
        ],
        charts: vec![Bars {
            heading: "Pairs by distance".into(),
            ask: "Number of bits in which near documents differ.".into(),
            bars: distance_counts
                .into_iter()
                .map(|(bits, count)| LabeledCount { what: figures::counted(bits, "bit", "bits"), count })
                .collect(),
        }],
        tables: vec![nearest].into_iter().filter(|rows| !rows.rows.is_empty()).collect(),
    })
}

/// Labels for the changes of pages.
const PAGES: [(&str, &str); 10] = [
    ("same", "same bytes"),
    ("bytes", "same text, other bytes"),
    ("near", "nearly the same text"),
    ("changed", "other text"),
    ("rewritten", "almost entirely another text"),
    ("reverted", "the text of an earlier crawl"),
    ("new", "new"),
    ("moved_to", "moved here"),
    ("moved_from", "moved away"),
    ("gone", "gone"),
];

/// Builds the view of a comparison of two crawls, which is also a part of the newer crawl's report.
///
/// # Errors
/// Returns any error of [`scan`].
pub fn comparison(run: &FinishedRun, summary: &Value) -> Result<ViewPart> {
    let pages = counts(&summary["pages"]);
    let sum_of = |names: &[&str]| names.iter().filter_map(|name| pages.get(*name)).sum::<u64>();
    let [old, new] = ["pages_old", "pages_new"].map(|name| count(&summary[name]));
    // A page of which only the bytes differ still has the same text.
    let text_stays = sum_of(&["same", "bytes"]);
    let overlap = |(unit, unit_counts): (&String, &Value)| {
        let share = figures::share(count(&unit_counts["both"]), count(&unit_counts["new"]));
        let counts = ["old", "new", "both"].map(|name| TableCell::Count(count(&unit_counts[name])));
        [vec![TableCell::Text(unit.clone())], counts.to_vec(), vec![TableCell::Text(share)]].concat()
    };
    let overlap: Vec<Vec<TableCell>> = summary["overlap"].as_object().into_iter().flatten().map(overlap).collect();
    let exports = summary["exports"].as_object().into_iter().flatten().map(|(name, lines)| {
        vec![
            TableCell::Text(name.clone()),
            TableCell::Count(count(&lines["added"])),
            TableCell::Count(count(&lines["removed"])),
        ]
    });
    let exports: Vec<Vec<TableCell>> = exports.collect();
    let mut tables = vec![TablePreview {
        heading: "Overlap of the two crawls".into(),
        heads: vec!["distinct", "older crawl", "newer crawl", "both", "share of the newer"],
        all: overlap.len() as u64,
        rows: overlap,
        table: "crawl_overlap".into(),
    }];
    tables.push(hosts_changed(run)?);
    tables.extend(mirrors_changed(run)?);
    tables.push(TablePreview {
        heading: "Lists for crawlers: lines to add and to remove".into(),
        heads: vec!["list", "added", "removed"],
        all: exports.len() as u64,
        rows: exports,
        table: String::new(),
    });
    // A comparison across settings has no exports and no mirrors.
    tables.retain(|table| !table.rows.is_empty());
    Ok(ViewPart {
        id: "changes",
        name: "Changes",
        headline: format!(
            "{} of the pages of the newer crawl have the same text as before",
            figures::share(text_stays, new)
        ),
        lead: format!(
            "{} in the older crawl, {} in the newer one. Pages that are gone are not in the newer crawl, but may \
             still exist.",
            figures::counted(old, "page", "pages"),
            figures::count(new)
        ),
        tiles: vec![
            tile(figures::count(text_stays), "pages with the same text"),
            tile(figures::count(sum_of(&["near", "changed", "rewritten", "reverted"])), "pages with another text"),
            tile(figures::count(sum_of(&["new"])), "new pages"),
            tile(figures::count(sum_of(&["gone"])), "pages gone"),
            tile(figures::count(sum_of(&["moved_to"])), "pages moved"),
            tile(figures::count(counts(&summary["sites_changed"]).values().sum()), "changed sites"),
        ],
        charts: vec![
            bars("Pages", "Change of each page, of either crawl.", &summary["pages"], &PAGES),
            bars(
                "Pages that are gone",
                "Pages that only the older crawl has, by the reason of their absence.",
                &summary["gone"],
                &[],
            ),
            bars("The avoid list", "Pages whose entry on it has changed.", &summary["avoid_changed"], &[]),
            bars("Mirrors", "Change of each copy of a collection.", &summary["mirrors"], &[("lives", "live on")]),
        ]
        .into_iter()
        .filter(|chart| !chart.bars.is_empty())
        .collect(),
        tables,
    })
}

/// Lists the sites with the most changed pages.
fn hosts_changed(run: &FinishedRun) -> Result<TablePreview> {
    let parts = ["near", "changed", "rewritten", "new", "gone"];
    let (mut total, mut top) = (0, SmallestKeys::new(ROWS));
    let columns = [&["site", "what", "pages_old", "pages_new"][..], &parts].concat();
    scan(run, "hosts_changed", &columns, &mut |batch| {
        let (sites, what) = (batch.text("site")?, batch.text("what")?);
        let [old, new] = [batch.u64("pages_old")?, batch.u64("pages_new")?];
        let columns = parts.iter().map(|part| batch.u64(part)).collect::<Result<Vec<_>>>()?;
        for row in 0..sites.len() {
            total += 1;
            let row_counts: Vec<u64> = columns.iter().map(|column| column[row]).collect();
            let key = (Reverse(row_counts.iter().sum::<u64>()), sites[row].to_string());
            if top.takes(&key) {
                let mut cells =
                    vec![TableCell::Text(sites[row].to_string()), TableCell::Text(what[row].replace('_', " "))];
                cells.extend([old[row], new[row]].into_iter().chain(row_counts).map(TableCell::Count));
                top.offer(key, cells);
            }
        }
        Ok(())
    })?;
    Ok(TablePreview {
        heading: "Sites with the most changes".into(),
        heads: vec!["site", "what", "pages before", "pages now", "near", "changed", "rewritten", "new", "gone"],
        rows: top.finish(),
        all: total,
        table: "hosts_changed".into(),
    })
}

/// Lists the changes of mirrors, those that matter most first. Returns `None` if the comparison has
/// no mirrors.
fn mirrors_changed(run: &FinishedRun) -> Result<Option<TablePreview>> {
    let (mut total, mut rows) = (0, Vec::new());
    // Sorted by change.
    let has_table = scan(run, "mirrors_changed", &["what", "root_url", "size_old", "size_new"], &mut |batch| {
        let (what, urls) = (batch.text("what")?, batch.text("root_url")?);
        let [old, new] = [batch.u32("size_old")?, batch.u32("size_new")?];
        for row in 0..what.len() {
            total += 1;
            if &what[row] != "lives" && rows.len() < ROWS {
                let words = TableCell::Text(what[row].replace('_', " "));
                let sizes = [old[row], new[row]].map(|size| TableCell::Count(u64::from(size)));
                rows.push([vec![TableCell::Url(urls[row].to_string()), words], sizes.to_vec()].concat());
            }
        }
        Ok(())
    })?;
    let heads = vec!["root page", "what", "pages before", "pages now"];
    Ok(has_table.then(|| TablePreview {
        heading: "Mirrors that have changed".into(),
        heads,
        rows,
        all: total,
        table: "mirrors_changed".into(),
    }))
}

/// Builds the view of an evaluation from the output of `webtwin-lab evaluate --json`. `digest` is
/// the digest of the result of the report.
///
/// # Errors
/// Returns [`Error::Input`] if the text has another format, and [`Error::Usage`] if it evaluates
/// another result.
pub fn evaluation(file: &str, text: &str, digest: &str) -> Result<ViewPart> {
    let refuse = || Error::input(file, "the file is not output of `webtwin-lab evaluate --json`; name such a file");
    let reply: Value = serde_json::from_str(text).map_err(|cause| Error::input(file, cause))?;
    let rows = reply["rows"].as_array().filter(|_| reply["name"] == "evaluate").ok_or_else(refuse)?;
    // An evaluation without a digest cannot be checked and is accepted.
    if let Some(recorded_digest) = reply["digest"].as_str().filter(|other| *other != digest) {
        return Err(Error::Usage(format!(
            "{file}: evaluates the result of another job, {recorded_digest}, not of {digest}; evaluate this result"
        )));
    }
    let figure = |row: &Value| {
        let measured = row["ours"].as_f64();
        match (measured, row["unit"].as_str().unwrap_or_default()) {
            (None, _) => "–".to_string(),
            (Some(measured), "share") => format!("{measured:.3}"),
            // JSON has one type of numbers; counts are shown without decimals.
            (Some(measured), _) if measured.fract() == 0.0 && (0.0..1e15).contains(&measured) => {
                figures::count(measured as u64)
            }
            (Some(measured), _) => format!("{measured:.3}"),
        }
    };
    let row_of = |name: &str| rows.iter().find(|row| row["what"] == name);
    let measures =
        ["pair precision", "pair recall", "pair precision by tags", "pair recall by tags", "targets found", "coverage"];
    let tiles: Vec<Tile> = measures.iter().filter_map(|name| Some(tile(figure(row_of(name)?), *name))).collect();
    let tagged = rows.iter().filter(|row| row["what"].as_str().is_some_and(|what| what.contains(" pairs tagged ")));
    let tagged: Vec<LabeledCount> = tagged
        .map(|row| LabeledCount {
            what: row["what"].as_str().unwrap_or_default().into(),
            count: row["ours"].as_f64().unwrap_or(0.0) as u64,
        })
        .collect();
    let cells = |row: &Value| {
        let words = row["what"].as_str().unwrap_or_default();
        let reach = row["reach"].as_f64().map_or(String::new(), |reach| format!("{reach}"));
        vec![TableCell::Text(words.into()), TableCell::Number(figure(row)), TableCell::Number(reach)]
    };
    let headline = match (row_of("pair precision"), row_of("pair recall")) {
        (Some(precision), Some(recall)) => {
            format!("Pairs of pages: precision {}, recall {}", figure(precision), figure(recall))
        }
        _ => "Comparison with a truth".into(),
    };
    Ok(ViewPart {
        id: "evaluation",
        name: "Evaluation",
        headline,
        lead: "Differences between the sets and collections of this run and a truth. A truth made from names is often \
               wrong; pairs that a person has judged, weighted by the sizes of their strata, are more reliable."
            .into(),
        tiles,
        charts: (!tagged.is_empty())
            .then(|| Bars {
                heading: "Pairs judged by a person".into(),
                ask: "Pairs that the run found, found wrongly, or missed.".into(),
                bars: tagged,
            })
            .into_iter()
            .collect(),
        tables: vec![TablePreview {
            heading: "All figures".into(),
            heads: vec!["figure", "this run", "target"],
            rows: rows.iter().map(cells).collect(),
            all: rows.len() as u64,
            table: String::new(),
        }],
    })
}
