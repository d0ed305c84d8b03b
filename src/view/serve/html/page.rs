//! Look-up page of a URL: the answer, its reason, and advice for unknown URLs.

use axum::extract::Extension;
use axum::http::Uri;
use serde::Deserialize;

use super::{
    HtmlReply, ROWS, begin_form, begin_link, begin_table, end_form, end_table, field, link_to_compare, titled, to_page,
    whole,
};
use crate::lookup::alternates::{Alternate, CopyOrder, alternates};
use crate::lookup::answer::{LookupAnswer, UrlAction};
use crate::report::figures::{count, counted};
use crate::report::html::Html;
use crate::report::markup::{name, role};
use crate::serve::routes::RouteQuery;
use webtwin_http::answer::query;

#[derive(Deserialize)]
struct OfUrl {
    #[serde(default)]
    url: String,
}

/// Renders a form for a URL.
pub(super) fn ask(html: &mut Html, url: &str) {
    begin_form(html, "/page");
    field(html, "url", "URL of a page", url);
    end_form(html, "Look up");
}

pub(in crate::serve) async fn one_page(Extension(snapshot): RouteQuery, uri: Uri) -> HtmlReply {
    let OfUrl { url } = query(&uri)?;
    let mut html = Html::new();
    ask(&mut html, &url);
    if url.trim().is_empty() {
        html.markup("<p class=lead>Enter a URL, canonical or not. The answer is the advice to a crawler: ");
        html.markup("<b>fetch</b>, the page stays; <b>skip</b>, another page stays instead; <b>unknown</b>, the URL ");
        html.markup("was not crawled; <b>reject</b>, it is not an http or https URL.</p>");
        return Ok(whole(Some(&snapshot), "page", "Look up a URL", &html));
    }
    let mut asker = snapshot.asker();
    let (hit, answer) = (asker.url(&url)?, asker.answer(&url)?);
    verdict(&mut html, &answer);
    facts(&mut html, &answer);
    if let Some(page) = hit.page {
        let copies = alternates(&snapshot.index, page, CopyOrder::default(), ROWS)?;
        other_copies(&mut html, answer.canonical.as_deref().unwrap_or(&url), &copies);
    }
    let title = answer.title.as_deref().unwrap_or("");
    Ok(whole(Some(&snapshot), "page", name(title, answer.canonical.as_deref().unwrap_or(&url)), &html))
}

/// Describes the reason of an answer.
fn reason(why: &str) -> &str {
    match why {
        "exact" => "a page that stays has the same text",
        "collection" => "it is in a mirror of a collection that is kept",
        "similar" => "a page that stays has nearly the same text",
        "prefix" => "it was not crawled, but the crawled pages below this prefix may be skipped",
        "rule" => "it was not crawled, but URL rules rewrite it to the URL of a crawled page",
        "recheck" => "it may be skipped, but is fetched today to check that it is still a copy",
        "not_a_url" => "this is not an http or https URL",
        name => name,
    }
}

fn verdict(html: &mut Html, answer: &LookupAnswer) {
    html.markup(match answer.action {
        UrlAction::Fetch => "<p class=verdict><b>",
        _ => "<p class=\"verdict apart\"><b>",
    });
    html.text(answer.action.as_str()).markup("</b>: ");
    match (&answer.why, &answer.unknown) {
        (_, Some(problem)) => html.text(problem.advice),
        (Some(why), None) if matches!(&**why, "exact" | "collection" | "similar") && !answer.known => {
            html.markup("it was not crawled, but is on the avoid list in force: ").text(reason(why))
        }
        (Some(why), None) => html.text(reason(why)),
        (None, None) => html.markup("it was crawled, and stays"),
    };
    html.markup("</p>");
}

/// Starts an entry of the list of facts.
fn fact<'h>(html: &'h mut Html, label: &'static str) -> &'h mut Html {
    html.markup("<dt>").markup(label).markup("</dt><dd>")
}

fn facts(html: &mut Html, answer: &LookupAnswer) {
    html.markup("<dl class=\"card facts\">");
    if let Some(url) = &answer.canonical {
        fact(html, "URL").link(url, url).markup("</dd>");
    }
    if let Some(keep) = &answer.keep {
        to_page(fact(html, "Page that stays"), &keep.url);
        html.markup("</dd>");
    }
    if let Some(word) = &answer.role {
        role(fact(html, "Role"), word);
        html.markup("</dd>");
    }
    if let Some(set) = &answer.cluster {
        fact(html, "Set").markup("<a href=\"/set/").text(set).markup("\">its copies</a></dd>");
    }
    if let Some(collection) = &answer.collection {
        fact(html, "Collection").markup("<a href=\"/collection/").text(&collection.id).markup("\">");
        html.text(counted(collection.size.into(), "page", "pages")).markup("</a>, with ");
        html.text(counted(u64::from(collection.cardinality.saturating_sub(1)), "mirror", "mirrors")).markup("</dd>");
    }
    if let Some(prefix) = &answer.prefix {
        fact(html, "Prefix to skip").crawled(prefix).markup("</dd>");
    }
    if let Some(rule) = &answer.rule {
        fact(html, "URL rule").text(rule.kind).markup(" ").crawled(&rule.pattern);
        html.markup(if rule.replacement.is_empty() { "" } else { " → " }).crawled(&rule.replacement);
        html.markup(", for ").crawled(&rule.scope).markup("</dd>");
    }
    // Without a kept page, the rewritten URL was not crawled, so the rules decide nothing.
    if let Some(canonical_url) = &answer.rewritten {
        to_page(fact(html, "URL rewritten by rules"), canonical_url);
        html.markup(if answer.keep.is_some() { "</dd>" } else { ", which was not crawled either</dd>" });
    }
    if let Some(problem) = &answer.unknown {
        if let Some(reason) = &problem.rejected {
            fact(html, "Rejected because of").markup("<code>").text(reason).markup("</code></dd>");
        }
        if let Some(pages) = problem.host_pages {
            fact(html, "Pages of its host").text(count(pages.into()));
            // Host names are words of URLs, so the search by words finds the sets of the host.
            if let Some(host) = answer.canonical.as_deref().and_then(|url| url.split('/').nth(2)).filter(|_| pages > 0)
            {
                begin_link(html.markup(": "), "/sets?", &[("q", host)]);
                html.markup("its sets of copies</a>");
            }
            html.markup("</dd>");
        }
    }
    html.markup("</dl>");
}

fn other_copies(html: &mut Html, url: &str, copies: &[Alternate]) {
    if copies.is_empty() {
        return;
    }
    html.markup("<h2 class=gap>Copies</h2>");
    let heads = [("", "page"), ("", "similarity"), ("unseen", "side by side")];
    begin_table(html, "copies", &heads);
    for copy in copies {
        html.markup("<tr><td class=url>");
        titled(html, &copy.title, &copy.url);
        html.markup("</td><td>");
        match copy.bits {
            _ if copy.same_text => _ = html.markup("<span class=\"tag exact\">same text</span>"),
            Some(bits) => _ = html.text(counted(bits.into(), "bit", "bits")).markup(" apart"),
            None => {}
        }
        html.markup("</td><td>");
        link_to_compare(html, url, &copy.url);
        html.markup("</td></tr>");
    }
    end_table(html);
}
