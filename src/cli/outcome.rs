//! Summary of a result on stderr.

use super::records;
use webtwin_base::console::{notify, notify_object};
use webtwin_base::error::Result;
use webtwin_core::hamming::fingerprint_file::FingerprintManifest;
use webtwin_dataflow as dataflow;
use webtwin_dataflow::batch::BatchCounts;
use webtwin_dataflow::clusters::context_pairs::ContextPassCounts;
use webtwin_dataflow::pairs::given::GivenCounts;
use webtwin_dataflow::reading::foreign_rows::RowCounts;
use webtwin_dataflow::sinks::summary::{ContainmentBar, RunSummary};
use webtwin_dataflow::sinks::url_rules::RuleCounts;
use webtwin_job::{Guard, Job, Measure};
use webtwin_results::{FinishedRun, compared};
use webtwin_storage::location::Location;

/// Reports the number of fingerprints that a job has built.
pub(super) fn fingerprints(set: &FingerprintManifest, folder: &str) {
    let bytes: u64 = set.chunks.iter().map(|chunk| chunk.bytes).sum();
    notify(format_args!(
        "{} fingerprints of {} bits ({}) in {} chunks",
        set.count,
        set.f,
        set.recipe,
        set.chunks.len()
    ));
    notify(format_args!("{:.1} MB with doc ids: {}", bytes as f64 / 1e6, folder));
}

/// Reports the number of pairs and groups of fingerprints.
pub(super) fn hamming(k: u32, groups: bool, summary: &dataflow::hamming::work::HammingSummary, folder: &str) {
    notify(format_args!(
        "{} documents, {} queries ({} distinct)",
        summary.documents, summary.queries, summary.distinct_queries
    ));
    notify(format_args!(
        "{} pairs of fingerprints within {k} bits: {} pairs of documents",
        summary.near, summary.pairs
    ));
    for (distance, pairs) in &summary.pairs_by_distance {
        notify(format_args!("  {distance} bits: {pairs}"));
    }
    if groups {
        notify(format_args!("in {} groups", summary.groups));
    }
    notify(format_args!("results: {}", folder));
}

/// Reports the outcome of growth in a graph.
pub(super) fn grow(summary: &dataflow::grow::GrowSummary, folder: &str) {
    let (trivial, links) = (summary.trivial, summary.links);
    notify(format_args!(
        "of {} rows of labels, {} are used, {} are malformed ({} bytes), {} repeat others; they \
         name {} nodes",
        trivial.read, trivial.used, trivial.malformed, trivial.malformed_bytes, trivial.duplicates, summary.nodes
    ));
    notify(format_args!(
        "of {} links, {} are used, {} have an end without a label, {} are malformed ({} bytes), {} \
         lead from a node to itself, {} repeat others",
        links.read,
        links.used,
        links.unknown,
        links.malformed,
        links.malformed_bytes,
        links.self_pairs,
        links.duplicates
    ));
    notify(format_args!(
        "{} trivial clusters; {} of {} linked pairs of clusters meet the merge condition",
        summary.trivial_clusters, summary.merging, summary.link_summary
    ));
    notify(format_args!(
        "{} collections with {} nodes in {} similar clusters",
        summary.collections, summary.members, summary.similar_clusters
    ));
    notify(format_args!("results: {folder}"));
}

/// Reports the main figures of a study.
pub(super) fn study(summary: &dataflow::study::StudySummary, folder: &str) {
    let (tables, web) = (&summary.tables, &summary.web);
    records::report(&summary.records);
    notify(format_args!("{} pages, {} documents", web.pages, tables.complete.documents));
    let parts =
        [("complete", &tables.complete), ("connected", &tables.connected), ("disconnected", &tables.disconnected)];
    for (name, part) in parts {
        notify(format_args!(
            "  {name:<12} {:>9} documents, {:>8} clusters, {:>8} duplicates ({:.1} %), {:>9} useful",
            part.documents, part.clusters, part.duplicates, part.duplicates_percent, part.useful
        ));
    }
    for row in &tables.near {
        notify(format_args!(
            "  near-duplicates at {} %: {} ({:.1} %)",
            row.percent, row.near_duplicates, row.near_duplicates_percent
        ));
    }
    for estimate in &summary.estimates_by_reference {
        notify(format_args!(
            "  from {} % of the steps: {:.1} % duplicates expected, {:.1} % found",
            estimate.percent,
            estimate.expected(),
            estimate.real()
        ));
    }
    notify(format_args!("a crawl from {} reaches {} pages", web.seed, web.connected));
    notify(format_args!("results: {folder}"));
}

/// Compares a run on a synthetic crawl with the truth, which is known without a file.
pub(super) fn truth(url: &str, folder: &Location) -> Result<()> {
    let report = compared::report(&FinishedRun::open(folder.name())?, compared::planted(url)?)?;
    notify(format_args!("compared with the replicas planted in the crawl:"));
    let message = ["pair precision", "pair recall", "targets", "targets found", "problem share", "coverage"];
    for row in report.rows().iter().filter(|row| message.contains(&row.what.as_str())) {
        notify(format_args!("  {:<16} {}", row.what, row.ours.map_or("-".into(), |ours| format!("{ours:.3}"))));
    }
    Ok(())
}

/// Returns for each measure of the job its guard, the number of similar pairs, and the number of
/// pairs that the guard refused.
fn guard_counts(job: &Job, summary: &RunSummary) -> Vec<(&'static str, Guard, u64, u64)> {
    let measure = job.similar.by;
    let mut measures = Vec::new();
    if matches!(measure, Measure::Overlap | Measure::Both) {
        measures.push(("overlap", job.overlap.guard, summary.overlap.similar, summary.overlap.guarded));
    }
    if matches!(measure, Measure::Hamming | Measure::Both) {
        measures.push(("simhash", job.hamming.guard, summary.hamming.near, summary.hamming.guarded));
    }
    if measure == Measure::Signatures {
        measures.push(("signatures", job.signatures.guard, summary.signatures.collisions, summary.signatures.guarded));
    }
    if measure == Measure::Minhash {
        measures.push(("minhash", job.minhash.guard, summary.minhash.similar, summary.minhash.guarded));
    }
    measures.extend(summary.given.map(|given| ("pairs.from", job.hamming.guard, given.similar, given.guarded)));
    measures
}

/// Reports the matches of a batch with earlier crawls.
fn report_batch(batch: &BatchCounts) {
    let BatchCounts { documents, queries, pairs, superseded, unknown_pages, earlier_pages, .. } = batch;
    notify(format_args!(
        "{pairs} near pairs between {documents} fingerprints of earlier crawls and {queries} of this one"
    ));
    notify(format_args!(
        "{earlier_pages} pages of earlier crawls are near pages of this one, and stay in their \
         place"
    ));
    if *superseded > 0 {
        notify(format_args!(
            "{superseded} pairs dropped because their page of an earlier crawl is in this crawl, \
             too, whose version is used"
        ));
    }
    if *unknown_pages > 0 {
        notify(format_args!(
            "warning: {unknown_pages} near documents of the fingerprint file are in no result of \
             batch.results and appear without URLs; add the results that have them"
        ));
    }
}

/// Reports the main figures of a run.
pub(super) fn replicas(job: &Job, summary: &RunSummary, folder: &str) {
    let folder = folder.trim_end_matches('/');
    records::report(&summary.records);
    notify(format_args!("{} hosts, {} links between the pages", summary.hosts, summary.links));
    if let Some(GivenCounts { rows, .. }) = summary.given {
        let RowCounts { read, used: n_used, unknown: n_unknown, malformed, malformed_bytes, self_pairs, duplicates } =
            rows;
        notify(format_args!(
            "of {read} rows in {}: {n_used} are used, {n_unknown} have a page that is not in this \
             crawl, {malformed} are malformed ({malformed_bytes} bytes), {self_pairs} pair a page \
             with itself, {duplicates} repeat others",
            job.pairs.from.join(", ")
        ));
    }
    for (measure, guard, n_similar, refused) in guard_counts(job, summary) {
        notify(format_args!(
            "{n_similar} similar pairs by {measure}, of which the guard `{}` refused {refused}",
            guard.name()
        ));
    }
    // Many pages without any remaining text are a sign of wrong filter settings, not of empty
    // pages.
    let emptied = summary.overlap.emptied;
    if emptied * 100 > summary.pages.pages {
        notify(format_args!(
            "the filters overlap.template_pages and overlap.max_documents removed all text of \
             {emptied} pages, for which the overlap finds only views and exact copies; raise these \
             settings if such pages have more than boilerplate"
        ));
    }
    if summary.views.pairs > 0 {
        notify(format_args!(
            "{} pairs of views: pages of the same site with the same title or path and almost the \
             same text",
            summary.views.pairs
        ));
    }
    if summary.views.placeholders > 0 {
        notify(format_args!(
            "{} pairs of placeholders: pages of the same host whose texts announce that there is no \
             content at their URLs",
            summary.views.placeholders
        ));
    }
    if summary.views.declared > 0 {
        notify(format_args!("{} pairs of a page and its declared canonical page", summary.views.declared));
    }
    if summary.views.contradicted > 0 {
        notify(format_args!(
            "{} pages declare a canonical page with a different text, and do not count as its copies",
            summary.views.contradicted
        ));
    }
    if summary.editions.refused > 0 {
        notify(format_args!(
            "{} pairs refused, because a page declares the other as its edition in another language \
             (hreflang)",
            summary.editions.refused
        ));
    }
    if let Some(batch) = &summary.batch {
        report_batch(batch);
    }
    let ContextPassCounts { matched: n_matched, refused, by_place: n_by_place, alone: n_alone, .. } =
        summary.second_look;
    if n_matched + n_by_place > 0 {
        let n_found = n_matched + n_by_place;
        notify(format_args!(
            "{n_found} pairs found by the context of their collections, of which the guard refused \
             {refused}"
        ));
    }
    if n_alone > 0 {
        notify(format_args!(
            "{n_alone} unsupported pairs dropped: they have low resemblance, and their pages are not \
             in mirrored collections"
        ));
    }
    notify(format_args!(
        "{} sets of similar pages; {} mirrored collections in {} similar clusters",
        summary.trivial_clusters, summary.collections, summary.similar_clusters
    ));
    notify(format_args!(
        "a crawler may skip {} pages ({:.1} %) and {:.1} MB ({:.1} %)",
        summary.skip.pages,
        100.0 * summary.skip_share_of_pages,
        summary.skip.bytes as f64 / 1e6,
        100.0 * summary.skip_share_of_bytes
    ));
    // A crawler that skips these pages loses the text that the kept pages lack.
    if summary.skip_contained.below_all > 0 {
        let ContainmentBar { below_half, below_four_fifths, below_all } = summary.skip_contained;
        notify(format_args!(
            "{below_all} of these pages have text that the page to keep lacks: in {below_four_fifths} \
             it is more than a fifth of the text, in {below_half} more than half"
        ));
    }
    let RuleCounts { rules, domains, saved: saved_pages } = summary.url_rules;
    if rules > 0 {
        notify(format_args!(
            "{rules} URL rules for {domains} domains, which would have saved {saved_pages} fetches: webtwin show {folder} url_rules"
        ));
    }
    if let Some(kept_before) = &summary.kept_before {
        let measures: Vec<String> = kept_before.flipped_by.iter().map(|(by, n)| format!("{n} by {by}")).collect();
        let measures = if measures.is_empty() { String::new() } else { format!(" ({})", measures.join(", ")) };
        notify(format_args!(
            "of {} pages kept by {}: {} are kept again, {} flipped{measures}, {} are visited in addition \
             to another, {} have no copy any more, {} are gone",
            kept_before.pages,
            job.keep.sticky,
            kept_before.kept,
            kept_before.flipped,
            kept_before.visited,
            kept_before.alone,
            kept_before.gone
        ));
    }
    if let Some(apart_pages) = &summary.apart {
        notify(format_args!(
            "of {} pairs in {}: {} would be in one set, to prevent which {} pairs of equal text and \
             {} similar pairs were refused; {} are in different sets anyway, {} have a page that is \
             not in this crawl",
            apart_pages.pairs,
            job.pairs.apart,
            apart_pages.parted,
            apart_pages.refused_exact,
            apart_pages.refused_similar,
            apart_pages.unjoined,
            apart_pages.gone
        ));
    }
    if let Some(pins) = &summary.pins {
        notify(format_args!(
            "of {} pages in {}: {} stay in place of their copies, {} have no copies, {} yield to \
             another pin, {} are not in this crawl",
            pins.pins, job.keep.pins, pins.kept, pins.alone, pins.second, pins.gone
        ));
        for pin in pins.shown.iter().filter(|pin| pin.outcome == "second").take(5) {
            notify(format_args!("  {} does not stay, because {} is pinned as well", pin.url, pin.keep_url));
        }
    }
    // A set with a hundredth of all pages is more often a chain than a page with that many copies.
    for giant_cluster in
        summary.giant_trivial_clusters.iter().filter(|giant| u64::from(giant.pages) * 100 >= summary.pages.pages)
    {
        notify(format_args!(
            "  {} pages on {} hosts form one set of similar pages: {}",
            giant_cluster.pages, giant_cluster.hosts, giant_cluster.url
        ));
        let weak_link = giant_cluster.bridges.first().map(|weak| ("is connected by a single pair", weak));
        if let Some((how, weak_link)) =
            weak_link.or(giant_cluster.splits.as_ref().map(|weak| ("splits above a pair", weak)))
        {
            notify(format_args!(
                "    it {how}, which joins {} pages to the rest: {} and {}",
                weak_link.cuts_off, weak_link.a, weak_link.b
            ));
        }
    }
    for cluster in summary.largest_similar_clusters.iter().take(5) {
        notify(format_args!("  {:>4} hosts have copies of {:>5} pages: {}", cluster.hosts, cluster.size, cluster.url));
    }
    // Main figures for programs that read stderr as JSON.
    notify_object(serde_json::json!({
        "level": "result", "results": folder, "records": summary.records.read, "pages": summary.records.kept,
        "rejected": summary.records.rejected, "mended": summary.records.repaired, "hosts": summary.hosts,
        "links": summary.links, "trivial_clusters": summary.trivial_clusters,
        "similar_clusters": summary.similar_clusters, "collections": summary.collections,
        "skip_pages": summary.skip.pages, "skip_bytes": summary.skip.bytes,
    }));
    notify(format_args!("results: {folder}"));
    // The suggested commands depend on the findings.
    if summary.records.kept > 0 {
        notify(format_args!("next: webtwin report {folder}  # writes report.html, to view in a browser"));
    }
    if summary.collections > 0 {
        notify(format_args!(
            "next: webtwin show {folder} collections --sort -size --columns cardinality,size,keep,prefix"
        ));
    } else if summary.trivial_clusters > 0 {
        notify(format_args!("next: webtwin show {folder} clusters --urls"));
    }
    if summary.skip.pages > 0 {
        notify(format_args!(
            "next: webtwin show {folder} avoid --columns url,keep_url,why  # lists for crawlers: {folder}/exports/"
        ));
    }
    let bad: u64 = summary.records.rejected.values().sum();
    if summary.records.kept == 0 && bad > 0 {
        notify(format_args!("next: webtwin show {folder} rejected  # lists the reasons for which no record was kept"));
    }
}
