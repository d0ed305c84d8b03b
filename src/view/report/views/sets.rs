//! View of sets of similar pages. Sets that may be false come first.

use super::{filter, heading, member};
use crate::report::charts::graph;
use crate::report::contract::{ReportedMeasure, ResultReport, SimilarSet};
use crate::report::figures::{count, counted};
use crate::report::html::Html;
use crate::report::markup::{alike, name};

pub(super) fn write(html: &mut Html, report: &ResultReport) {
    let sets = &report.sets;
    let pairs: Vec<String> = sets
        .pairs
        .iter()
        .map(|(measure, &pairs)| match measure.as_str() {
            "exact" => format!("{} of equal text", counted(pairs, "pair", "pairs")),
            measure => format!("{} by {measure}", counted(pairs, "pair", "pairs")),
        })
        .collect();
    let lead = match sets.all {
        0 => "No two pages of this crawl are similar.".to_string(),
        total => format!(
            "{}, joined by {}. Check the weakest links first: a single false pair joins two sets.",
            counted(total, "set", "sets"),
            pairs.join(" and ")
        ),
    };
    heading(html, "sets", "Sets of similar pages", &lead);
    if sets.looked_at < sets.all {
        html.markup("<p class=note>The weakest links were determined for ").text(count(sets.looked_at));
        html.markup(" sets, the largest and a sample by id, because there are too many for memory.</p>");
    }
    if sets.shown.is_empty() {
        return;
    }
    filter(html, "set-list", "Filter by title, host or path");
    html.markup("<div class=\"tools script-only\" role=group aria-label=Order><button class=chip type=button data-order=weak aria-pressed=true>");
    html.markup("weakest link first</button><button class=chip type=button data-order=size aria-pressed=false>largest first</button></div>");
    html.markup("<div id=set-list>");
    for (number, set) in sets.shown.iter().enumerate() {
        item(html, number, set);
    }
    html.markup("</div>");
    super::write_cut_note(html, sets.shown.len(), sets.all, "sets", "clusters");
}

fn item(html: &mut Html, number: usize, set: &SimilarSet) {
    let first = &set.members[0];
    html.markup("<details class=\"card item\" id=\"set-").text(set.id).markup("\"").attribute("data-weak", number);
    html.attribute("data-size", set.pages).markup("><summary><span class=size>").text(count(set.pages));
    html.markup("<span class=unseen> pages: </span></span><span class=what><span>")
        .crawled(name(&first.title, &first.url));
    html.markup("</span><span class=sub>")
        .text(hosts_text(set))
        .text(" · ")
        .crawled(&first.host)
        .markup("</span></span>");
    match set.links.first() {
        // Links are in ascending order of strength, so the first is the weakest.
        Some(weakest) if weakest.by.measure != ReportedMeasure::Exact => {
            html.markup("<span class=\"tag similar\">").text(alike(weakest.by)).markup("</span>")
        }
        _ => html.markup("<span class=\"tag exact\">same text</span>"),
    };
    html.markup("</summary><div class=inside><p class=ask>").text(sentence(set)).markup("</p>");
    // The graph is drawn only if it is complete; with members missing, its links would not connect.
    let is_whole = set.members.len() as u64 == set.pages;
    if is_whole {
        html.markup("<div class=beside>").piece(&graph::set(set));
    }
    html.markup("<div class=scroll tabindex=0 role=group aria-label=pages><table class=small data-mark=pages><thead><tr><th scope=col class=num>no.</th><th scope=col>role</th><th scope=col>page</th>");
    html.markup("<th scope=col class=num>bytes of text</th><th scope=col class=num>chunks</th></tr></thead><tbody>");
    for (number, set_member) in set.members.iter().enumerate() {
        member(html, number + 1, set_member);
    }
    html.markup("</tbody></table></div>");
    if is_whole {
        html.markup("</div>");
    } else {
        html.markup("<p class=note>").text(counted(
            set.pages - set.members.len() as u64,
            "more page is",
            "more pages are",
        ));
        html.markup(" in the set.</p>");
    }
    links(html, set);
    html.markup("</div></details>");
}

fn hosts_text(set: &SimilarSet) -> String {
    match set.members.len() as u64 == set.pages {
        true => counted(set.hosts, "host", "hosts"),
        false => format!("at least {}", counted(set.hosts, "host", "hosts")),
    }
}

/// Describes the set and its weakest link.
fn sentence(set: &SimilarSet) -> String {
    let pages = format!("{} on {}.", counted(set.pages, "page", "pages"), hosts_text(set));
    match set.links.first() {
        Some(weakest) if weakest.by.measure != ReportedMeasure::Exact => format!(
            "{pages} Its weakest link: {}. Without this link, there would be two sets of {} and {} pages.",
            alike(weakest.by),
            count(weakest.sides[0]),
            count(weakest.sides[1])
        ),
        _ => format!("{pages} All have the same text."),
    }
}

/// Renders the links that connect the set as a table.
fn links(html: &mut Html, set: &SimilarSet) {
    if set.links.is_empty() {
        return;
    }
    html.markup("<details class=data><summary>").text(match set.members.len() as u64 == set.pages {
        true => {
            "The links of the graph, weakest first (dashed: the weakest; blue: same text; green: the page that stays)"
        }
        false => "The weakest links",
    });
    html.markup("</summary><div class=scroll tabindex=0 role=group aria-label=links><table class=small data-mark=links><thead><tr><th scope=col>pages</th>");
    html.markup("<th scope=col>similarity</th><th scope=col class=num>pages on each side</th></tr></thead><tbody>");
    for link in &set.links {
        html.markup("<tr><td>").text(link.a + 1).text(" and ").text(link.b + 1);
        html.markup("</td><td>")
            .text(alike(link.by))
            .markup("</td><td class=num>")
            .text(count(link.sides[0]))
            .text(" + ");
        html.text(count(link.sides[1])).markup("</td></tr>");
    }
    html.markup("</tbody></table></div></details>");
}
