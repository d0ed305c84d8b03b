//! Pages for people: what is served, sets page by page, a URL, two pages beside each other.
//!
//! Whatever was crawled goes through [`Html`], which makes text of it. The policy allows one stylesheet of the server's own, and no
//! script.

use std::sync::Arc;

use axum::extract::{Extension, Path, State};
use axum::http::header::CONTENT_SECURITY_POLICY;
use axum::http::{HeaderValue, Response, Uri};
use serde::Deserialize;
use url::form_urlencoded::byte_serialize;

use super::gate::query;
use super::problem::Problem;
use super::routes::{All, Answered, Of, explained, id, plain};
use crate::explain::tell;
use crate::lookup::alternates::{Wanted, alternates};
use crate::lookup::answer::{Answer, hexadecimal};
use crate::lookup::sets::{self, Member};
use crate::report::html::{Html, STYLE};

/// What a browser may load for a page, and where forms may go.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
);

/// Rows of a page.
const ROWS: usize = 100;

/// Lines of a difference, and chunks, that are shown.
const LINES: usize = 200;

/// A whole page around its content.
pub(super) fn whole(title: &str, content: &Html) -> Response<axum::body::Body> {
    let mut html = Html::new();
    html.markup(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\"><title>",
    );
    // Without an icon of its own a browser asks for /favicon.ico.
    html.text(title)
        .markup(" - webtwin</title><link rel=icon href=\"data:,\"><link rel=stylesheet href=\"/style.css\">");
    html.markup(
        "<header class=top><div class=brand><span class=logo>webtwin</span></div><nav class=views aria-label=Views>",
    );
    html.markup("<a href=\"/\">Overview</a><a href=\"/sets\">Sets</a>");
    if cfg!(feature = "search") {
        html.markup("<a href=\"/search\">Search</a>");
    }
    html.markup("</nav></header><main><h1>").text(title).markup("</h1>");
    html.piece(content).markup("</main></html>\n");
    let mut response = plain("text/html; charset=utf-8", html.finish());
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, POLICY);
    response
}

/// A form that asks for a URL.
fn ask(html: &mut Html, url: &str) {
    html.markup("<form action=\"/page\" class=tools><label>URL <input name=url type=text size=60");
    html.attribute("value", url).markup("></label> <button>Look up</button></form>");
}

pub(super) fn to_page(html: &mut Html, url: &str) {
    let escaped: String = byte_serialize(url.as_bytes()).collect();
    html.markup("<a href=\"/page?url=").text(escaped).markup("\">").crawled(url).markup("</a>");
}

fn to_compare(html: &mut Html, a: &str, b: &str) {
    let [a, b] = [a, b].map(|url| byte_serialize(url.as_bytes()).collect::<String>());
    html.markup("<a href=\"/compare?a=").text(a).markup("&amp;b=").text(b).markup("\">compare</a>");
}

pub(super) async fn style() -> Response<axum::body::Body> {
    plain("text/css; charset=utf-8", STYLE.into())
}

pub(super) async fn overview(Extension(served): Of) -> Answered {
    let (index, about) = (&served.index, &served.index.about);
    let mut html = Html::new();
    html.markup("<p class=lead>Run <code>").text(&about.run.result).markup("</code>, made from ").text(&about.run.url);
    html.markup("</p>");
    ask(&mut html, "");
    html.markup("<div class=scroll><table><tbody>");
    for (what, count) in [
        ("pages", index.pages()),
        ("sets of copies", index.clusters()),
        ("collections that have mirrors", index.collections()),
        ("prefixes on the avoid list", index.prefixes()),
    ] {
        html.markup("<tr><th scope=row>").text(what).markup("</th><td class=num>").text(count).markup("</td></tr>");
    }
    html.markup("</tbody></table></div><p class=note>For programs: <a href=\"/openapi.json\">openapi.json</a></p>");
    Ok(whole("Overview", &html))
}

#[derive(Deserialize)]
struct From {
    #[serde(default)]
    from: usize,
}

/// Links to the rows before and after.
fn turn(html: &mut Html, path: &'static str, id: &str, from: usize, all: usize) {
    let mut link = |from: usize, word: &'static str| {
        html.markup("<a href=\"")
            .markup(path)
            .text(id)
            .markup("?from=")
            .text(from)
            .markup("\">")
            .markup(word)
            .markup("</a> ");
    };
    if from > 0 {
        link(from.saturating_sub(ROWS), "before");
    }
    if from.saturating_add(ROWS) < all {
        link(from + ROWS, "after");
    }
}

pub(super) async fn all_sets(Extension(served): Of, uri: Uri) -> Answered {
    let (From { from }, index) = (query(&uri)?, &served.index);
    let mut html = Html::new();
    html.markup("<p class=lead>")
        .text(index.clusters())
        .markup(" sets of copies, by their ids.</p><div class=scroll><table>");
    html.markup(
        "<thead><tr><th scope=col>Set</th><th scope=col>Pages</th><th scope=col>One of them</th></tr></thead><tbody>",
    );
    for number in (from..index.clusters()).take(ROWS) {
        let mut pages = index.cluster(number as u32)?;
        let (count, first) = (pages.len(), pages.next());
        let set = hexadecimal(index.cluster_id(number as u32)?);
        html.markup("<tr><td><a href=\"/set/").text(&set).markup("\">").text(&set).markup("</a></td><td class=num>");
        html.text(count).markup("</td><td class=url>");
        if let Some(page) = first {
            to_page(&mut html, &index.url(page)?);
        }
        html.markup("</td></tr>");
    }
    html.markup("</tbody></table></div><p>");
    turn(&mut html, "/sets", "", from, index.clusters());
    html.markup("</p>");
    Ok(whole("Sets", &html))
}

/// Rows of members; each can be compared with the first of them that stays.
fn members(html: &mut Html, members: &[Member]) {
    let stays = members.iter().find(|member| member.why.is_none()).map(|member| member.url.clone());
    html.markup(
        "<div class=scroll><table><thead><tr><th scope=col>Page</th><th scope=col>Role</th><th scope=col>Text</th>",
    );
    html.markup("<th scope=col>Simhash</th><th scope=col><span class=unseen>Beside the page that stays</span></th></tr></thead><tbody>");
    for member in members {
        html.markup("<tr><td class=url>");
        to_page(html, &member.url);
        html.markup("</td><td>").text(member.role.as_deref().unwrap_or("")).markup("</td><td><code>");
        html.text(member.text.as_deref().unwrap_or("")).markup("</code></td><td><code>");
        html.text(member.simhash.as_deref().unwrap_or("")).markup("</code></td><td>");
        if let Some(stays) = stays.as_ref().filter(|stays| **stays != member.url) {
            to_compare(html, &member.url, stays);
        }
        html.markup("</td></tr>");
    }
    html.markup("</tbody></table></div>");
}

pub(super) async fn one_set(Extension(served): Of, Path(text): Path<String>, uri: Uri) -> Answered {
    let From { from } = query(&uri)?;
    let found = sets::set(&served.index, id(&text)?, from, ROWS)?;
    let set = found.ok_or_else(|| Problem::missing("no page of a trivial cluster has this id"))?;
    let mut html = Html::new();
    html.markup("<p class=lead>").text(set.pages).markup(" pages that are copies of each other.</p>");
    members(&mut html, &set.members);
    html.markup("<p>");
    turn(&mut html, "/set/", &set.id, from, set.pages);
    html.markup("</p>");
    Ok(whole(&format!("Set {}", set.id), &html))
}

pub(super) async fn one_collection(Extension(served): Of, Path(text): Path<String>, uri: Uri) -> Answered {
    let From { from } = query(&uri)?;
    let found = sets::collection(&served.index, id(&text)?, from, ROWS)?;
    let collection = found.ok_or_else(|| Problem::missing("no collection has this id"))?;
    let mut html = Html::new();
    html.markup("<p class=lead>").text(collection.own.size).markup(" pages, ").text(collection.cardinality);
    html.markup(" collections that are copies of each other:</p><div class=scroll><table><tbody>");
    for mirror in &collection.mirrors {
        html.markup("<tr><td><a href=\"/collection/")
            .text(&mirror.id)
            .markup("\">")
            .text(&mirror.id)
            .markup("</a></td><td class=url>");
        to_page(&mut html, &mirror.root.url);
        html.markup("</td><td class=num>").text(mirror.size).markup("</td><td>");
        html.text(if mirror.keep { "kept" } else { "" }).markup("</td></tr>");
    }
    html.markup("</tbody></table></div><h2>Pages</h2>");
    members(&mut html, &collection.members);
    html.markup("<p>");
    turn(&mut html, "/collection/", &collection.own.id, from, collection.own.size as usize);
    html.markup("</p>");
    Ok(whole(&format!("Collection {}", collection.own.id), &html))
}

#[derive(Deserialize)]
struct OfUrl {
    #[serde(default)]
    url: String,
}

pub(super) async fn one_page(Extension(served): Of, uri: Uri) -> Answered {
    let OfUrl { url } = query(&uri)?;
    let mut asker = served.asker();
    let (found, answer) = (asker.url(&url)?, asker.answer(&url)?);
    let mut html = Html::new();
    ask(&mut html, &url);
    verdict(&mut html, &answer);
    if let Some(page) = found.page {
        let copies = alternates(&served.index, page, Wanted::default(), ROWS)?;
        if !copies.is_empty() {
            html.markup("<h2>Copies</h2><div class=scroll><table><tbody>");
        }
        for copy in &copies {
            html.markup("<tr><td class=url>");
            to_page(&mut html, &copy.url);
            html.markup("</td><td>").text(if copy.same_text { "same text" } else { "" });
            if let Some(bits) = copy.bits.filter(|_| !copy.same_text) {
                html.text(format_args!("{bits} bits apart"));
            }
            html.markup("</td><td>");
            to_compare(&mut html, answer.canonical.as_deref().unwrap_or(&url), &copy.url);
            html.markup("</td></tr>");
        }
        if !copies.is_empty() {
            html.markup("</tbody></table></div>");
        }
    }
    Ok(whole("Page", &html))
}

/// What is known of a URL, in words.
fn verdict(html: &mut Html, answer: &Answer) {
    html.markup("<p class=\"verdict url\"><b>").text(answer.action.as_str()).markup("</b>");
    if let Some(why) = &answer.why {
        html.markup(": ").text(why);
    }
    if let Some(keep) = &answer.keep {
        html.markup("; ");
        to_page(html, &keep.url);
        html.markup(" stays");
    }
    html.markup("</p><ul class=url>");
    if let Some(url) = &answer.canonical {
        html.markup("<li>").link(url, url).markup("</li>");
    }
    if let Some(set) = &answer.cluster {
        html.markup("<li>in <a href=\"/set/").text(set).markup("\">set ").text(set).markup("</a></li>");
    }
    if let Some(collection) = &answer.collection {
        html.markup("<li>in <a href=\"/collection/")
            .text(&collection.id)
            .markup("\">a collection of ")
            .text(collection.size);
        html.markup(" pages with ").text(collection.cardinality.saturating_sub(1)).markup(" mirrors</a></li>");
    }
    if let Some(prefix) = &answer.prefix {
        html.markup("<li>below ").crawled(prefix).markup("</li>");
    }
    html.markup("</ul>");
}

#[derive(Deserialize)]
struct Two {
    a: String,
    b: String,
}

pub(super) async fn compare(State(shared): All, Extension(served): Of, uri: Uri) -> Answered {
    let Two { a, b } = query(&uri)?;
    let said = explained(&shared, Arc::clone(&served), [a.clone(), b.clone()], |said| tell(said, LINES)).await?;
    let mut html = Html::new();
    html.markup("<p class=url>A: ");
    to_page(&mut html, &a);
    html.markup("<br>B: ");
    to_page(&mut html, &b);
    html.markup("</p><pre tabindex=0 role=group aria-label=\"what the run says of both\">").text(said).markup("</pre>");
    Ok(whole("Compare", &html))
}
