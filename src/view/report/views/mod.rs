//! HTML page of a report, generated from the report's content only.
//!
//! Without a script all views are complete and follow each other. The script switches between
//! views, sorts, filters, and records the decisions of the user; it creates no content.

mod clusters;
pub mod compare;
mod hosts;
mod mirrors;
mod overview;
mod parts;
mod run_facts;
mod sets;
mod skip_lists;

use super::charts::bars::bar;
use super::contract::{LabeledCount, ResultOutline, ResultReport, SetMember, ViewPart};
use super::figures::count;
use super::html::{Html, STYLE, policy_hash};
use super::markup::{self, role, top};

/// Script of the page.
const SCRIPT: &str = include_str!("../script.js");

/// Id, name and writer of a view.
type View<'r> = (&'static str, &'static str, Box<dyn Fn(&mut Html) + 'r>);

/// Renders the page of a report.
///
/// # Cost
/// Holds the page in memory twice.
pub fn page(report: &ResultReport) -> String {
    let view = |id, name, write: fn(&mut Html, &ResultReport)| -> View<'_> {
        (id, name, Box::new(move |html| write(html, report)))
    };
    let mut views = vec![
        view("overview", "Overview", overview::write),
        view("mirrors", "Mirrors", mirrors::write),
        view("hosts", "Hosts", hosts::write),
        view("sets", "Sets", sets::write),
        view("compare", "Compare", compare::write),
        view("skip", "Skip lists", skip_lists::write),
    ];
    views.extend(report.parts.iter().map(part));
    views.push(view("run", "Run", |html, report| run_facts::write(html, &report.inputs, &report.digest, &report.run)));
    page_of_views(&report.inputs.join(", "), &report.digest, &views)
}

/// Renders the page of a report of generic views.
pub fn outline_page(outline: &ResultOutline) -> String {
    let mut views: Vec<View<'_>> = outline.parts.iter().map(part).collect();
    if let Some(clusters) = &outline.clusters {
        let first_view = views.len().min(1);
        views.insert(first_view, ("clusters", "Clusters", Box::new(|html| clusters::write(html, clusters))));
    }
    let run = |html: &mut Html| run_facts::write(html, &outline.inputs, &outline.digest, &outline.run);
    views.push(("run", "Run", Box::new(run)));
    page_of_views(&outline.inputs.join(", "), &outline.digest, &views)
}

fn part(part: &ViewPart) -> View<'_> {
    (part.id, part.name, Box::new(|html| parts::write(html, part)))
}

/// Renders a page around its views.
fn page_of_views(title: &str, digest: &str, views: &[View<'_>]) -> String {
    let mut html = Html::new();
    head(&mut html, title);
    let mut top_markup = Html::new();
    top_markup.markup("<div class=where>").crawled(title).markup(" · job ").text(&digest[..digest.len().min(12)]);
    top_markup.markup("</div><button class=\"chip script-only\" id=theme type=button>Dark</button>");
    let names: Vec<(&str, &str)> = views.iter().map(|(id, name, _)| (*id, *name)).collect();
    top(&mut html, &top_markup, "#", &names, None);
    html.markup("<main id=main").attribute("data-job", digest).markup(">");
    for (id, _, write) in views {
        html.markup("<section class=view id=").markup(id).markup(" aria-labelledby=\"").markup(id).markup("-head\">");
        write(&mut html);
        html.markup("</section>");
    }
    html.markup("</main><script>").markup(SCRIPT).markup("</script></body></html>\n");
    html.finish()
}

/// Renders the head: its policy allows only what is in the page, and this script only.
fn head(html: &mut Html, title: &str) {
    let policy = format!(
        "default-src 'none'; style-src {}; script-src {}; img-src data:",
        policy_hash(STYLE),
        policy_hash(SCRIPT)
    );
    let mut head = Html::new();
    // The single quotes of a policy need no escape between double quotes.
    head.markup("<meta name=referrer content=no-referrer><meta http-equiv=Content-Security-Policy content=\"")
        .text(policy);
    head.markup("\"><style>").markup(STYLE).markup("</style>");
    markup::head(html, format_args!("{title} - webtwin report"), &head);
}

/// Renders the heading of a view and its introduction.
fn heading(html: &mut Html, id: &'static str, words: &str, lead: &str) {
    html.markup("<h1 id=\"")
        .markup(id)
        .markup("-head\">")
        .text(words)
        .markup("</h1><p class=lead>")
        .text(lead)
        .markup("</p>");
}

/// Renders a row of a page: number, role, URL, and size of its text.
fn member(html: &mut Html, number: usize, member: &SetMember) {
    // HTML ends a cell or row where the next one starts, so no end tags are needed.
    html.markup("<tr><td class=num>").text(number).markup("<td>");
    role(html, &member.role);
    html.markup("<td class=url>")
        .link(&member.url, &member.url)
        .markup("<td class=num>")
        .text(count(member.text_bytes));
    html.markup("<td class=num>").text(count(member.chunks));
}

/// Renders counts with bars: a table that is a chart.
fn counts(html: &mut Html, counts: &[LabeledCount], class: &'static str, caption: &str) {
    let longest = counts.iter().map(|of| of.count).max().unwrap_or(0);
    html.markup("<table class=bars><caption class=unseen>").text(caption).markup("</caption><tbody>");
    for row in counts {
        html.markup("<tr><th scope=row>").text(&row.what).markup("</th><td class=num>").text(count(row.count));
        html.markup("</td><td class=level>");
        bar(html, &[(class, row.count)], longest);
        html.markup("</td></tr>");
    }
    html.markup("</tbody></table>");
}

/// Renders a filter above the table or list with the id `target`.
fn filter(html: &mut Html, target: &'static str, words: &'static str) {
    html.markup("<div class=\"tools script-only\"><input type=search autocomplete=off data-filter=\"").markup(target);
    html.markup("\" placeholder=\"").markup(words).markup("\" aria-label=\"").markup(words);
    html.markup("\"><span class=count role=status data-count=\"").markup(target).markup("\"></span></div>");
}

/// Renders a note that a list is the top of a longer one.
fn write_cut_note(html: &mut Html, n_shown: usize, total: u64, label: &str, table: &str) {
    if (n_shown as u64) < total {
        html.markup("<p class=note>").text(count(n_shown as u64)).text(" of ").text(count(total)).text(" ").text(label);
        html.text(" are shown; to list all, run ").markup("<code>webtwin show RUN ").text(table).markup("</code></p>");
    }
}
