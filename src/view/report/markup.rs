//! Markup components that the report and the pages of `webtwin serve` share: the frame of a page,
//! and the display of figures, roles and similarity.

use std::fmt::Display;

use super::contract::{MeasuredValue, ReportedMeasure};
use super::figures::count;
use super::html::Html;

/// Appends the head of a page. `extra_head` is markup for its stylesheet and policy.
pub fn head(html: &mut Html, title: impl Display, extra_head: &Html) {
    html.markup("<!doctype html><html lang=en><head><meta charset=utf-8>");
    html.markup("<meta name=viewport content=\"width=device-width, initial-scale=1\"><meta name=color-scheme content=\"light dark\">");
    // Without an explicit icon a browser requests /favicon.ico.
    html.markup("<link rel=icon href=\"data:,\"><title>")
        .text(title)
        .markup("</title>")
        .piece(extra_head)
        .markup("</head>");
}

/// Appends the start of the body: a link to the content, the program's name with `description` next
/// to it, and the navigation. The link of a view is `base` and the view's id; `current` is the id
/// of the displayed view.
pub fn top(
    html: &mut Html,
    description: &Html,
    base: &'static str,
    views: &[(&'static str, &'static str)],
    current: Option<&str>,
) {
    html.markup("<body><a class=to-main href=\"#main\">To the content</a><header class=top><div class=brand>");
    html.markup(
        "<div class=logo><svg viewBox=\"0 0 32 32\" aria-hidden=true><rect x=3 y=7 width=15 height=19 rx=3 fill=\"#0f766e\"/>\
         <rect x=13 y=4 width=15 height=19 rx=3 fill=\"#7c3aed\" fill-opacity=\".8\"/></svg>webtwin</div>",
    );
    html.piece(description).markup("</div><nav class=views aria-label=Views>");
    for (id, name) in views {
        html.markup("<a href=\"").markup(base).markup(id);
        html.markup(if current == Some(*id) { "\" aria-current=page>" } else { "\">" }).markup(name).markup("</a>");
    }
    html.markup("</nav></header>");
}

/// Appends a tile: a figure with its label.
pub fn tile(html: &mut Html, figure: &str, label: &str) {
    html.markup("<div class=\"card tile\"><b>").text(figure).markup("</b><span>").text(label).markup("</span></div>");
}

/// Appends the role of a page as a tag.
pub fn role(html: &mut Html, role: &str) {
    let (class, words) = match role {
        "keep" => ("tag stay", "stays"),
        "way" => ("tag stay", "stays: leads to other pages"),
        "must-visit" => ("tag stay", "stays: never skipped"),
        "unlike" => ("tag stay", "stays: not similar enough"),
        "language" => ("tag stay", "stays: another language"),
        "collection" => ("tag collection", "skip: collection"),
        "exact" => ("tag exact", "skip: same text"),
        "similar" => ("tag similar", "skip: similar"),
        _ => ("tag", "no copies"),
    };
    html.markup("<span").attribute("class", class).markup(">").text(words).markup("</span>");
}

/// Returns the name of a page: its title, or else its URL without the scheme.
pub fn name<'p>(title: &'p str, url: &'p str) -> &'p str {
    if !title.is_empty() {
        return title;
    }
    let label = url.split_once("://").map_or(url, |(_, rest)| rest);
    label.trim_end_matches('/')
}

/// Describes the similarity of two pages.
pub fn alike(measured: MeasuredValue) -> String {
    match measured.measure {
        ReportedMeasure::Exact => "same text".into(),
        ReportedMeasure::Overlap if measured.value == 1 => "1 chunk shared".into(),
        ReportedMeasure::Overlap => format!("{} chunks shared", count(u64::from(measured.value))),
        ReportedMeasure::Hamming => format!("{} bits apart", measured.value),
        ReportedMeasure::Signatures => format!("signatures {:.5} apart", f64::from(measured.value) / 1e9),
        ReportedMeasure::Views => format!("{:.1} % similar without boilerplate", f64::from(measured.value) / 1e4),
        ReportedMeasure::Declared => {
            format!("{:.1} % similar, and one declares the other canonical", f64::from(measured.value) / 1e4)
        }
        ReportedMeasure::Placeholder => {
            format!("{:.1} % similar, and placeholders for missing pages", f64::from(measured.value) / 1e4)
        }
        ReportedMeasure::Minhash => format!("{:.1} % similar", f64::from(measured.value) / 1e4),
        ReportedMeasure::Given => format!("given, with value {}", count(u64::from(measured.value))),
        ReportedMeasure::Context => format!("{:.1} % similar by links and text", f64::from(measured.value) / 1e4),
    }
}
