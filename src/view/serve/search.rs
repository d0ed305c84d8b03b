//! Search over HTTP: `/v1/search` returns JSON, `/search` an HTML page.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::http::Uri;
use serde::Deserialize;
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use super::Shared;
use super::current::Served;
use super::html::{HtmlReply, end_form, field, to_page, whole};
use super::openapi::{self, JSON, count, hex, list, named, object, or_null, text};
use super::routes::{Flag, RouteQuery, SharedState};
use crate::lookup::search::{CollectionMatches, OtherReplicas, SearchMatches, SearchOptions, SearchResult, search};
use crate::report::html::Html;
use crate::search::texts::MarkedWords;
use crate::search::words::Question;
use webtwin_http::Problem;
use webtwin_http::answer::{AnswerResult, json as in_json, query};

/// Maximum number of results in an answer.
const MAX_RESULTS: usize = 100;

/// Default number of results in an answer.
const RESULTS: usize = 10;

/// Maximum index of the first result. Later results are not read in practice.
const MAX_FIRST_INDEX: usize = 10_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchRequest {
    #[serde(default)]
    q: String,
    roll: Option<Flag>,
    #[serde(default)]
    reorder: Flag,
    #[serde(default)]
    from: usize,
    limit: Option<usize>,
}

impl SearchRequest {
    fn wanted(&self) -> SearchOptions {
        SearchOptions {
            roll: self.roll != Some(Flag::Off),
            reorder: self.reorder == Flag::On,
            from: self.from.min(MAX_FIRST_INDEX),
            limit: self.limit.unwrap_or(RESULTS).min(MAX_RESULTS),
        }
    }

    /// Searches on the threads for heavy work, because a common word matches many pages.
    async fn find(&self, shared: &Arc<Shared>, served: Arc<Served>) -> Result<SearchMatches, Problem> {
        if served.index.words().is_none() {
            return Err(Problem::missing("the index has no texts; build it with --text"));
        }
        let question = Question::parse(&self.q).map_err(|why| Problem::bad(format!("q: {why}")))?;
        let wanted = self.wanted();
        shared.front.heavy(move || Ok(search(&served.index, &question, wanted)?)).await
    }

    /// Renders a link to the same query with other options.
    fn link(&self, html: &mut Html, wanted: SearchOptions, shown: &'static str) {
        let mut query = Serializer::new(String::new());
        query.append_pair("q", &self.q);
        for (name, value) in [("roll", (!wanted.roll).then_some("0")), ("reorder", wanted.reorder.then_some("1"))] {
            value.map(|value| query.append_pair(name, value));
        }
        if wanted.from > 0 {
            query.append_pair("from", &wanted.from.to_string());
        }
        html.markup("<a href=\"/search?").text(query.finish()).markup("\">").markup(shown).markup("</a> ");
    }
}

pub(super) async fn answer(State(shared): SharedState, Extension(served): RouteQuery, uri: Uri) -> AnswerResult {
    let asked: SearchRequest = query(&uri)?;
    Ok(in_json(&asked.find(&shared, served).await?))
}

pub(super) async fn page(State(shared): SharedState, Extension(served): RouteQuery, uri: Uri) -> HtmlReply {
    let asked: SearchRequest = query(&uri)?;
    let mut html = Html::new();
    html.markup(
        "<p class=lead>Mirrored collections and sets of copies are one result each, which lists the other copies.</p>",
    );
    html.markup("<form action=\"/search\" class=tools role=search>");
    field(&mut html, "q", "Words of a text", &asked.q);
    let wanted = asked.wanted();
    // Hidden fields keep the options of this answer for the next query.
    if !wanted.roll {
        html.markup("<input name=roll type=hidden value=0>");
    }
    if wanted.reorder {
        html.markup("<input name=reorder type=hidden value=1>");
    }
    end_form(&mut html, "Search");
    html.markup("<p class=note>A page must contain all words; <code>host:NAME</code> and ");
    html.markup("<code>in:mirrors</code> restrict the search.</p>");
    if asked.q.trim().is_empty() {
        return Ok(whole(Some(&served), "search", "Search", &html));
    }
    let found = asked.find(&shared, Arc::clone(&served)).await?;
    html.markup("<p class=verdict role=status>").text(found.head()).markup("</p><p>");
    let roll = if wanted.roll { "Do not roll up" } else { "Roll up" };
    asked.link(&mut html, SearchOptions { roll: !wanted.roll, from: 0, ..wanted }, roll);
    let reorder = if wanted.reorder { "Sort by score only" } else { "Move repeated texts down" };
    asked.link(&mut html, SearchOptions { reorder: !wanted.reorder, from: 0, ..wanted }, reorder);
    html.markup("</p><ol class=results");
    html.attribute("start", found.from + 1).markup(">");
    found.shown.iter().for_each(|shown| result(&mut html, shown));
    html.markup("</ol><p>");
    if found.from > 0 {
        asked.link(
            &mut html,
            SearchOptions { from: found.from.saturating_sub(wanted.limit), ..wanted },
            "previous results",
        );
    }
    // There is no link to results beyond `MAX_FIRST_INDEX`, because they are not served.
    let next = found.from + found.shown.len();
    if next < found.results.min(MAX_FIRST_INDEX) && !found.shown.is_empty() {
        asked.link(&mut html, SearchOptions { from: next, ..wanted }, "next results");
    }
    html.markup("</p>");
    Ok(whole(Some(&served), "search", "Search", &html))
}

/// Renders a page's text with marked query words, isolated from the direction of the surrounding
/// text.
fn marked(html: &mut Html, words: &MarkedWords) {
    html.markup("<bdi>");
    for (is_marked, piece) in words.pieces() {
        match is_marked {
            true => html.markup("<mark>").text(piece).markup("</mark>"),
            false => html.text(piece),
        };
    }
    html.markup("</bdi>");
}

fn result(html: &mut Html, shown: &SearchResult) {
    html.markup("<li class=card><h2>");
    // A result without a title is named by its URL.
    if shown.title.text.is_empty() {
        html.crawled(&shown.page.url)
    } else {
        html.piece(&title(shown))
    };
    html.markup("</h2><p class=url>").link(&shown.page.url, &shown.page.url).markup("</p><p>");
    marked(html, &shown.snippet);
    html.markup("</p>");
    if let Some(explanation) = &shown.said_by {
        html.markup("<p class=note>").text(explanation.shared).markup(" of its ").text(explanation.chunks);
        html.markup(" chunks are in ");
        to_page(html, &explanation.page.url);
        html.markup("</p>");
    }
    if let Some(CollectionMatches { id, pages, named }) = &shown.collection {
        html.markup("<details><summary>Collection · ").text(pages);
        html.markup(if *pages == 1 { " page" } else { " pages" }).markup("</summary><ul>");
        for page in named {
            html.markup("<li class=url>");
            to_page(html, &page.url);
            html.markup("</li>");
        }
        html.markup("</ul><p><a href=\"/collection/").text(id).markup("\">the whole collection</a></p></details>");
    }
    if let Some(OtherReplicas { kind, count, named }) = shown.replica.as_ref().filter(|replica| replica.count > 0) {
        let (word, words) = if *kind == "collections" { (" mirror", " mirrors") } else { (" copy", " copies") };
        html.markup("<details><summary>Replica · ").text(count).markup(if *count == 1 { word } else { words });
        html.markup("</summary><ul>");
        for one in named {
            html.markup("<li class=url>");
            to_page(html, &one.url);
            if *kind == "collections" {
                // A copy is a single page, whose link is complete.
                html.markup(" <a href=\"/collection/").text(&one.id).markup("\">").text(one.pages);
                html.markup(if one.pages == 1 { " page matches</a>" } else { " pages match</a>" });
            }
            html.markup("</li>");
        }
        html.markup("</ul></details>");
    }
    html.markup("</li>");
}

fn title(shown: &SearchResult) -> Html {
    let mut html = Html::new();
    marked(&mut html, &shown.title);
    html
}

/// Adds the path of search and its schemas to the document.
pub(super) fn described(mut document: Value) -> Value {
    // The values that `Flag` accepts.
    let flag = |name: &str, about: &str| {
        openapi::query(name, false, about, json!({ "enum": ["1", "0", "true", "false", ""] }))
    };
    // Added in builds with search only, so that the document describes what this server answers.
    document["paths"]["/v1/search"] = openapi::get(
        "Searches texts by words, with mirrored collections and copies rolled up to one result each",
        vec![
            openapi::query(
                "q",
                true,
                "Words that a page must contain; host:NAME and in:mirrors restrict the search",
                text(),
            ),
            flag("roll", "0 returns each page as a result"),
            flag("reorder", "1 moves results down that repeat higher ones"),
            openapi::query("from", false, "Number of results to skip", count()),
            openapi::query("limit", false, "Maximum number of results", count()),
        ],
        JSON,
        named("Found"),
    );
    let boolean = || json!({ "type": "boolean" });
    let marked = object(&[("text", text()), ("marks", list(list(count())))]);
    let replica = object(&[("id", hex()), ("url", text()), ("pages", count())]);
    let schemas = &mut document["components"]["schemas"];
    schemas["Found"] = object(&[
        ("pages", count()),
        ("results", count()),
        ("rolled_up", boolean()),
        ("reordered", boolean()),
        ("from", count()),
        ("shown", list(named("Result"))),
    ]);
    schemas["Result"] = object(&[
        ("id", hex()),
        ("url", text()),
        ("title", marked.clone()),
        ("snippet", marked),
        ("score", json!({ "type": "number" })),
        ("pages", count()),
        ("collection", or_null(object(&[("id", hex()), ("pages", count()), ("named", list(named("Page")))]))),
        (
            "replica",
            or_null(object(&[
                ("kind", json!({ "enum": ["collections", "copies"] })),
                ("count", count()),
                ("named", list(replica)),
            ])),
        ),
        ("said_by", or_null(object(&[("id", hex()), ("url", text()), ("shared", count()), ("chunks", count())]))),
    ]);
    document
}
