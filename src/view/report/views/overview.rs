//! Overview: the savings for a crawler, and the causes of copies.

use super::counts;
use crate::report::charts::bars::{spot, stack};
use crate::report::charts::figure;
use crate::report::charts::histogram::histogram;
use crate::report::charts::scatter::{Spot, scatter};
use crate::report::charts::waterfall::{WaterfallStep, waterfall};
use crate::report::contract::{Amount, Overview, ResultReport};
use crate::report::figures::{bytes, count, counted, share};
use crate::report::html::Html;
use crate::report::markup::tile;

/// Reasons in display order: value in the table, class, label, and the label of the waterfall chart
/// in two lines.
const REASONS: [(&str, &str, &str, [&str; 2]); 3] = [
    ("exact", "f-exact", "skip: same text as a page that stays", ["same text", "as another"]),
    (
        "collection",
        "f-collection",
        "skip: in a mirror of a collection that is kept",
        ["in a mirror", "that is not kept"],
    ),
    ("similar", "f-similar", "skip: nearly the same text", ["similar text", "otherwise"]),
];

pub(super) fn write(html: &mut Html, report: &ResultReport) {
    let overview = &report.overview;
    html.markup("<h1 class=headline id=overview-head>");
    match (overview.crawl.pages, overview.skip.pages) {
        (0, _) => html.text("This crawl has no pages"),
        (_, 0) => html.text("Every page of this crawl is worth fetching again"),
        _ => html
            .text(share(overview.skip.pages, overview.crawl.pages))
            .text(" of the pages of this crawl need not be fetched again"),
    };
    html.markup("</h1><p class=lead>").text(lead(overview)).markup("</p>");
    stacks(html, overview);
    html.markup("<div class=tiles>");
    tile(html, &count(overview.crawl.pages), &format!("pages, of {}", counted(overview.records, "record", "records")));
    tile(html, &count(overview.hosts), "hosts");
    tile(html, &count(overview.sets), "sets of similar pages");
    tile(html, &count(overview.originals), "originals with mirrors");
    tile(html, &count(overview.collections), "collections, originals and mirrors");
    tile(html, &count(overview.prefixes), "URL prefixes to skip");
    html.markup("</div><div class=pair><div class=card><h2>From crawled pages to pages that stay</h2>");
    html.markup("<p class=ask>Pages that the next crawl may skip, by reason.</p>");
    steps(html, overview);
    html.markup("</div><div class=card><h2>Originals with mirrors: copies × pages</h2>");
    html.markup("<p class=ask>Largest savings. Area: pages to skip. (CSG00, Figure 12)</p>");
    spots(html, report);
    html.markup("</div><div class=card><h2>Number of replicas of a page</h2>");
    html.markup("<p class=ask>Per cent of pages by their number of replicas. (SGM98, Figure 1)</p>");
    replication(html, overview);
    html.markup("</div><div class=card><h2>Location of copies</h2>");
    html.markup("<p class=ask>Surplus pages by the location of their copy, each counted once. (SGM98, section 3)</p>");
    counts(html, &overview.surplus, "f-collection", "surplus pages by the location of their copy");
    html.markup(
        "<h2 class=gap>From text to pairs</h2><p class=ask>Data that was compared, and data that was left out.</p>",
    );
    counts(html, &overview.text_to_pairs, "f-total", "chunks and pairs");
    html.markup("</div></div>");
}

fn lead(overview: &Overview) -> String {
    if overview.skip.pages == 0 {
        return format!(
            "{} on {}; there are no copies that a crawler may skip.",
            counted(overview.crawl.pages, "page", "pages"),
            counted(overview.hosts, "host", "hosts")
        );
    }
    let mut lead = format!(
        "{} of {} pages ({} of {}) are copies of pages that stay.",
        count(overview.skip.pages),
        count(overview.crawl.pages),
        bytes(overview.skip.bytes),
        bytes(overview.crawl.bytes)
    );
    if overview.originals > 0 {
        lead += &format!(
            " {} are in {}: {} with mirrors.",
            counted(overview.pages_in_collections, "page", "pages"),
            counted(overview.collections, "collection", "collections"),
            counted(overview.originals, "original", "originals")
        );
    }
    lead
}

/// Returns the pages that may be skipped for a reason.
fn amount_of_reason(overview: &Overview, reason: &str) -> Amount {
    overview.by_reason.get(reason).copied().unwrap_or_default()
}

fn stacks(html: &mut Html, overview: &Overview) {
    let stay =
        Amount { pages: overview.crawl.pages - overview.skip.pages, bytes: overview.crawl.bytes - overview.skip.bytes };
    let mut parts = vec![("stays", "f-stay", stay)];
    parts.extend(REASONS.map(|(reason, class, words, _)| (words, class, amount_of_reason(overview, reason))));
    let mut chart = Html::new();
    for (name, amount) in [("pages", (|amount| amount.pages) as fn(&Amount) -> u64), ("bytes", |amount| amount.bytes)] {
        chart.markup("<p class=ask>").markup(name).markup("</p>");
        stack(&mut chart, &parts.iter().map(|part| (part.1, amount(&part.2))).collect::<Vec<_>>());
    }
    chart.markup("<ul class=legend>");
    for (words, class, _) in &parts {
        chart.markup("<li>");
        spot(&mut chart, class);
        chart.markup(words).markup("</li>");
    }
    chart.markup("</ul>");
    let rows: Vec<Vec<String>> =
        parts.iter().map(|(words, _, of)| vec![words.to_string(), count(of.pages), count(of.bytes)]).collect();
    let sentence = format!(
        "{} of the pages and {} of the bytes may be skipped",
        share(overview.skip.pages, overview.crawl.pages),
        share(overview.skip.bytes, overview.crawl.bytes)
    );
    html.markup("<div class=card>");
    figure(html, &sentence, &chart, &["part", "pages", "bytes"], &rows);
    html.markup("</div>");
}

fn steps(html: &mut Html, overview: &Overview) {
    let steps = REASONS.map(|(reason, class, _, [words, words_more])| WaterfallStep {
        words,
        more: words_more,
        class,
        pages: amount_of_reason(overview, reason).pages,
    });
    let stay = overview.crawl.pages - overview.skip.pages;
    let sentence = format!(
        "Of {} pages, {} after the pages that may be skipped",
        counted(overview.crawl.pages, "crawled", "crawled"),
        if stay == 1 { "1 stays".into() } else { format!("{} stay", count(stay)) }
    );
    let mut rows = vec![vec!["crawled".into(), count(overview.crawl.pages)]];
    rows.extend(steps.iter().map(|step| vec![format!("{} {}", step.words, step.more), count(step.pages)]));
    rows.push(vec!["stay".into(), count(stay)]);
    figure(html, &sentence, &waterfall(overview.crawl.pages, &steps), &["step", "pages"], &rows);
}

fn spots(html: &mut Html, report: &ResultReport) {
    let mirrors = &report.mirrors;
    let Some(first) = mirrors.shown.first() else {
        html.markup("<p class=note>No collection of this crawl has a mirror.</p>");
        return;
    };
    let spots: Vec<Spot<'_>> = mirrors
        .shown
        .iter()
        .map(|group| Spot {
            id: group.id,
            name: &group.shown[0].host,
            copies: group.copies,
            pages: group.largest,
            surplus: group.surplus,
        })
        .collect();
    let sentence = format!(
        "{}; the largest saving is the collection kept at {}, with {} of up to {}",
        counted(mirrors.all, "original has mirrors", "originals have mirrors"),
        first.shown[0].host,
        counted(first.copies, "copy", "copies"),
        counted(first.largest, "page", "pages")
    );
    let row = |group: &crate::report::contract::MirrorGroup| {
        vec![group.url.clone(), count(group.copies), count(group.largest), count(group.surplus)]
    };
    let rows: Vec<Vec<String>> = mirrors.shown.iter().map(row).collect();
    figure(html, &sentence, &scatter(&spots), &["kept at", "copies", "pages of the largest", "pages not kept"], &rows);
}

fn replication(html: &mut Html, overview: &Overview) {
    let bars: Vec<(&str, [u64; 2])> =
        overview.replication.iter().map(|bar| (bar.replicas.as_str(), [bar.exact, bar.similar])).collect();
    let single_documents = overview.replication.first().map_or([0, 0], |bar| [bar.exact, bar.similar]);
    let sentence = format!(
        "{} of the pages have a copy with the same text, {} have one with similar text",
        share(overview.crawl.pages - single_documents[0], overview.crawl.pages),
        share(overview.crawl.pages - single_documents[1], overview.crawl.pages)
    );
    let mut chart =
        histogram(&bars, ["f-exact", "f-similar"], overview.crawl.pages, "replicas of a page, including itself");
    chart.markup("<ul class=legend><li>");
    spot(&mut chart, "f-exact");
    chart.markup("left bars: equal text</li><li>");
    spot(&mut chart, "f-similar");
    chart.markup("right bars: similar text</li></ul>");
    let rows: Vec<Vec<String>> = overview
        .replication
        .iter()
        .map(|bar| vec![bar.replicas.clone(), count(bar.exact), count(bar.similar)])
        .collect();
    figure(html, &sentence, &chart, &["replicas", "pages by equal text", "pages by similar text"], &rows);
}
