//! View of skip lists: the exports and their use in crawlers.

use super::heading;
use crate::report::contract::{ExportFile, ResultReport};
use crate::report::figures::{bytes, count, counted};
use crate::report::html::Html;
use webtwin_core::applications::file_part::FilePart;

/// Displayed exports: file, crawler, and location in the crawler's configuration.
const PLACES: [(&str, &str, &str); 11] = [
    ("regex-urlfilter.txt", "Nutch", "conf/regex-urlfilter.txt, before its last rule"),
    (
        "scrapy_webtwin.py",
        "Scrapy",
        "DOWNLOADER_MIDDLEWARES and SPIDER_MIDDLEWARES; it reads prefixes.txt, urls.txt and url-substitutions.tsv",
    ),
    ("scrapy-deny.txt", "Scrapy's LinkExtractor", "deny"),
    ("browsertrix.yaml", "Browsertrix", "part of the crawl's configuration"),
    ("heritrix-surts.txt", "Heritrix 3", "next to crawler-beans.cxml of the job, with the beans of heritrix-beans.xml"),
    ("regex-normalize.xml", "Nutch, URL rules", "conf/regex-normalize.xml"),
    (
        "heritrix-canonicalization.xml",
        "Heritrix 3, URL rules",
        "in place of canonicalizationPolicy in crawler-beans.cxml",
    ),
    ("stormcrawler-urlfilters.json", "StormCrawler, URL rules", "in urlfilters.json, before other entries"),
    ("norconex-url-normalizer.xml", "Norconex, URL rules", "in the configuration of the crawler"),
    ("prefixes.txt", "any crawler", "URL prefixes, one a line"),
    ("urls.txt", "any crawler", "whole URLs that no prefix covers"),
];

pub(super) fn write(html: &mut Html, report: &ResultReport) {
    let lead = format!(
        "{}, and single URLs of other pages, that a crawler may skip.",
        counted(report.overview.prefixes, "URL prefix", "URL prefixes")
    );
    heading(html, "skip", "Skip lists for crawlers", &lead);
    html.markup("<p class=warn>A prefix also covers pages that were never crawled. Check the list before a crawler obeys it.</p>");
    html.markup("<div class=pair><div class=card><h2>Prefixes that cover the most pages</h2>");
    if report.skip.prefixes.is_empty() {
        html.markup("<p class=note>There are none.</p>");
    } else {
        html.markup("<div class=scroll tabindex=0 role=group aria-label=prefixes><table class=small><thead><tr><th scope=col>prefix</th>");
        html.markup("<th scope=col class=num>pages</th><th scope=col class=num>bytes</th></tr></thead><tbody>");
        for prefix in &report.skip.prefixes {
            html.markup("<tr><td class=url>")
                .crawled(&prefix.prefix)
                .markup("</td><td class=num>")
                .text(count(prefix.covers.pages));
            html.markup("</td><td class=num>").text(bytes(prefix.covers.bytes)).markup("</td></tr>");
        }
        html.markup("</tbody></table></div>");
        super::write_cut_note(html, report.skip.prefixes.len(), report.overview.prefixes, "prefixes", "avoid");
    }
    rules(html, report);
    html.markup("</div><div class=card><h2>Files for crawlers</h2>");
    for (file, audience, place) in PLACES {
        let path = format!("exports/{file}");
        if let Some(export) = report.skip.exports.iter().find(|export| FilePart::is_part(&export.path, &path)) {
            head(html, export, audience, place);
        }
    }
    html.markup("</div></div>");
}

/// Renders the URL rules and the pages that they save.
fn rules(html: &mut Html, report: &ResultReport) {
    let skip = &report.skip;
    html.markup("<h2>URL rules</h2>");
    if skip.rules.is_empty() {
        html.markup("<p class=note>There are none.</p>");
        return;
    }
    html.markup("<p class=ask>With these rules, the crawl would have fetched ")
        .text(counted(skip.saved_by_rules, "page", "pages"))
        .markup(
            " fewer.</p><div class=scroll tabindex=0 role=group aria-label=\"URL rules\"><table \
            class=small><thead><tr>",
        );
    html.markup("<th scope=col>URLs of</th><th scope=col>rule</th><th scope=col class=num>pages saved</th>");
    html.markup("<th scope=col class=num>evidence for</th><th scope=col class=num>against</th></tr></thead><tbody>");
    for rule in &skip.rules {
        html.markup("<tr><td class=url>")
            .crawled(&rule.scope)
            .markup("</td><td class=url>")
            .text(&rule.kind)
            .markup(" ");
        html.crawled(&rule.pattern).markup(if rule.replacement.is_empty() { "" } else { " → " });
        html.crawled(&rule.replacement).markup("</td><td class=num>").text(count(rule.saved));
        html.markup("</td><td class=num>").text(count(rule.support));
        html.markup("</td><td class=num>").text(count(rule.violations)).markup("</td></tr>");
    }
    html.markup("</tbody></table></div>");
    super::write_cut_note(html, skip.rules.len(), skip.all_rules, "rules", "url_rules");
}

fn head(html: &mut Html, export: &ExportFile, audience: &'static str, place: &'static str) {
    html.markup("<h3>")
        .markup(audience)
        .markup(": <code>")
        .text(&export.path)
        .markup("</code></h3><p class=ask>")
        .markup(place)
        .text(". ");
    html.text(bytes(export.bytes)).markup("</p>");
    if !export.head.is_empty() && !export.path.ends_with(".py") {
        html.markup("<pre tabindex=0 role=group")
            .attribute("aria-label", format_args!("first lines of {}", export.path))
            .markup(">");
        html.crawled(&export.head.join("\n")).markup("\n…</pre>");
    }
}
