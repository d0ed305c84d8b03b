//! Figures of the whole run, from `summary.json`.

use serde_json::Value;

use super::count;
use crate::report::contract::{Amount, LabeledCount, Overview, ReplicaHistogram};

/// Reads the figures of a summary. `job` names the measure that was used.
pub fn gather(summary: &Value, job: &Value) -> Overview {
    let amount = |value: &Value| Amount { pages: count(&value["pages"]), bytes: count(&value["bytes"]) };
    let reasons = summary["skip_by_reason"].as_object().into_iter().flatten();
    let bars = |name: &str| summary[name].as_array().cloned().unwrap_or_default();
    let replication = bars("replication_exact").into_iter().zip(bars("replication_similar"));
    let labels = |counts_json: &Value, names: &[(&str, &str)]| -> Vec<LabeledCount> {
        names.iter().map(|&(name, what)| LabeledCount { what: what.into(), count: count(&counts_json[name]) }).collect()
    };
    Overview {
        crawl: amount(&summary["pages"]),
        skip: amount(&summary["skip"]),
        by_reason: reasons.map(|(why, value)| (why.clone(), amount(value))).collect(),
        records: count(&summary["records"]["read"]),
        hosts: count(&summary["hosts"]),
        links: count(&summary["links"]),
        sets: count(&summary["trivial_clusters"]),
        originals: count(&summary["similar_clusters"]),
        collections: count(&summary["collections"]),
        pages_in_collections: count(&summary["pages_in_collections"]),
        prefixes: count(&summary["avoid_prefixes"]),
        replication: replication
            .map(|(exact, n_similar)| ReplicaHistogram {
                // Shortened, because the label must fit below its bars.
                replicas: exact["replicas"].as_str().unwrap_or_default().replace(" and more", "+"),
                exact: count(&exact["pages"]),
                similar: count(&n_similar["pages"]),
            })
            .collect(),
        surplus: labels(
            &summary["servers"]["surplus"],
            &[
                ("replicated", "on another host"),
                ("same_server", "on the same host"),
                ("url_alias", "same host and text, another URL"),
                ("server_alias", "on the same server by another name"),
            ],
        ),
        text_to_pairs: text_to_pairs(
            summary,
            if summary["batch"].is_null() { &job["similar"]["by"] } else { &job["kind"] },
        ),
    }
}

/// Returns the counts of the steps from text to pairs, in their order.
fn text_to_pairs(summary: &Value, reasons: &Value) -> Vec<LabeledCount> {
    // Section of the summary, name of the count, label.
    let steps: &[(&str, &str, &str)] = match reasons.as_str().unwrap_or_default() {
        "batch" => &[
            ("batch", "documents", "fingerprints of earlier crawls"),
            ("batch", "queries", "pages of this crawl with a simhash"),
            ("batch", "pairs", "pairs of these within k bits"),
            ("batch", "earlier_pages", "pages of earlier crawls among them"),
            ("hamming", "guarded", "refused: a better match on the same host"),
        ],
        "hamming" => &[
            ("hamming", "simhashes", "pages with a simhash of their own"),
            ("hamming", "distinct", "distinct simhashes"),
            ("hamming", "near", "pairs of these within k bits"),
            ("hamming", "guarded", "refused: a better match on the same host"),
        ],
        "signatures" => &[
            ("signatures", "signatures", "pages with signatures"),
            ("signatures", "joined", "of distinct text"),
            ("signatures", "collisions", "pairs of these that collide"),
            ("signatures", "guarded", "refused: a better match on the same host"),
        ],
        "minhash" => &[
            ("minhash", "pages", "pages with shingles and a text of their own"),
            ("minhash", "candidates", "pairs of these that were compared"),
            ("minhash", "similar", "similar pairs"),
            ("minhash", "guarded", "refused by the guard"),
        ],
        "given" => &[
            ("given", "read", "rows of pairs.from"),
            ("given", "used", "of these with pages of this crawl"),
            ("given", "similar", "distinct pairs of these"),
            ("given", "guarded", "refused: a better match on the same host"),
        ],
        _ => &[
            ("overlap", "tuples", "chunks of text on pages"),
            ("overlap", "template_tuples", "left out: boilerplate of a site"),
            ("overlap", "frequent_tuples", "left out: on too many pages"),
            ("overlap", "emitted", "chunks shared by two pages"),
            ("overlap", "similar", "similar pairs of pages"),
            ("overlap", "guarded", "of these refused by the guard"),
        ],
    };
    let mut counts: Vec<LabeledCount> = steps
        .iter()
        .map(|&(of, name, what)| LabeledCount { what: what.into(), count: count(&summary[of][name]) })
        .collect();
    // Exact copies are found for every measure.
    counts.push(LabeledCount { what: "pairs of equal text".into(), count: count(&summary["exact_pairs"]) });
    counts
}
