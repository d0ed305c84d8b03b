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
    fn options(&self) -> SearchOptions {
        SearchOptions {
            roll: self.roll != Some(Flag::Off),
            reorder: self.reorder == Flag::On,
            from: self.from.min(MAX_FIRST_INDEX),
            limit: self.limit.unwrap_or(RESULTS).min(MAX_RESULTS),
        }
    }

    /// Searches on the threads for heavy work, because a common word matches many pages.
    async fn find(&self, state: &Arc<Shared>, snapshot: Arc<Served>) -> Result<SearchMatches, Problem> {
        if snapshot.index.words().is_none() {
            return Err(Problem::missing("the index has no texts; build it with --text"));
        }
        let question = Question::parse(&self.q).map_err(|why| Problem::bad(format!("q: {why}")))?;
        let options = self.options();
        state.front.heavy(move || Ok(search(&snapshot.index, &question, options)?)).await
    }

    /// Renders a link to the same query with other options.
    fn link(&self, html: &mut Html, options: SearchOptions, label: &'static str) {
        let mut query = Serializer::new(String::new());
        query.append_pair("q", &self.q);
        for (name, value) in [("roll", (!options.roll).then_some("0")), ("reorder", options.reorder.then_some("1"))] {
            value.map(|value| query.append_pair(name, value));
        }
        if options.from > 0 {
            query.append_pair("from", &options.from.to_string());
        }
        html.markup("<a href=\"/search?").text(query.finish()).markup("\">").markup(label).markup("</a> ");
    }
}

pub(super) async fn answer(State(state): SharedState, Extension(snapshot): RouteQuery, uri: Uri) -> AnswerResult {
    let request: SearchRequest = query(&uri)?;
    Ok(in_json(&request.find(&state, snapshot).await?))
}

pub(super) async fn page(State(state): SharedState, Extension(snapshot): RouteQuery, uri: Uri) -> HtmlReply {
    let request: SearchRequest = query(&uri)?;
    let mut html = Html::new();
    html.markup(
        "<p class=lead>Mirrored collections and sets of copies are one result each, which lists the other copies.</p>",
    );
    html.markup("<form action=\"/search\" class=tools role=search>");
    field(&mut html, "q", "Words of a text", &request.q);
    let options = request.options();
    // Hidden fields keep the options of this answer for the next query.
    if !options.roll {
        html.markup("<input name=roll type=hidden value=0>");
    }
    if options.reorder {
        html.markup("<input name=reorder type=hidden value=1>");
    }
    end_form(&mut html, "Search");
    html.markup("<p class=note>A page must contain all words; <code>host:NAME</code> and ");
    html.markup("<code>in:mirrors</code> restrict the search.</p>");
    if request.q.trim().is_empty() {
        return Ok(whole(Some(&snapshot), "search", "Search", &html));
    }
    let matches = request.find(&state, Arc::clone(&snapshot)).await?;
    html.markup("<p class=verdict role=status>").text(matches.head()).markup("</p><p>");
    let roll = if options.roll { "Do not roll up" } else { "Roll up" };
    request.link(&mut html, SearchOptions { roll: !options.roll, from: 0, ..options }, roll);
    let reorder = if options.reorder { "Sort by score only" } else { "Move repeated texts down" };
    request.link(&mut html, SearchOptions { reorder: !options.reorder, from: 0, ..options }, reorder);
    html.markup("</p><ol class=results");
    html.attribute("start", matches.from + 1).markup(">");
    matches.shown.iter().for_each(|shown| result(&mut html, shown));
    html.markup("</ol><p>");
    if matches.from > 0 {
        request.link(
            &mut html,
            SearchOptions { from: matches.from.saturating_sub(options.limit), ..options },
            "previous results",
        );
    }
    // There is no link to results beyond `MAX_FIRST_INDEX`, because they are not served.
    let next = matches.from + matches.shown.len();
    if next < matches.results.min(MAX_FIRST_INDEX) && !matches.shown.is_empty() {
        request.link(&mut html, SearchOptions { from: next, ..options }, "next results");
    }
    html.markup("</p>");
    Ok(whole(Some(&snapshot), "search", "Search", &html))
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

fn result(html: &mut Html, result: &SearchResult) {
    html.markup("<li class=card><h2>");
    // A result without a title is named by its URL.
    if result.title.text.is_empty() {
        html.crawled(&result.page.url)
    } else {
        html.piece(&title(result))
    };
    html.markup("</h2><p class=url>").link(&result.page.url, &result.page.url).markup("</p><p>");
    marked(html, &result.snippet);
    html.markup("</p>");
    if let Some(explanation) = &result.said_by {
        html.markup("<p class=note>").text(explanation.shared).markup(" of its ").text(explanation.chunks);
        html.markup(" chunks are in ");
        to_page(html, &explanation.page.url);
        html.markup("</p>");
    }
    if let Some(CollectionMatches { id, pages, named: examples }) = &result.collection {
        html.markup("<details><summary>Collection · ").text(pages);
        html.markup(if *pages == 1 { " page" } else { " pages" }).markup("</summary><ul>");
        for page in examples {
            html.markup("<li class=url>");
            to_page(html, &page.url);
            html.markup("</li>");
        }
        html.markup("</ul><p><a href=\"/collection/").text(id).markup("\">the whole collection</a></p></details>");
    }
    if let Some(OtherReplicas { kind, count, named: examples }) =
        result.replica.as_ref().filter(|replica| replica.count > 0)
    {
        let (word, words) = if *kind == "collections" { (" mirror", " mirrors") } else { (" copy", " copies") };
        html.markup("<details><summary>Replica · ").text(count).markup(if *count == 1 { word } else { words });
        html.markup("</summary><ul>");
        for example in examples {
            html.markup("<li class=url>");
            to_page(html, &example.url);
            if *kind == "collections" {
                // A copy is a single page, whose link is complete.
                html.markup(" <a href=\"/collection/").text(&example.id).markup("\">").text(example.pages);
                html.markup(if example.pages == 1 { " page matches</a>" } else { " pages match</a>" });
            }
            html.markup("</li>");
        }
        html.markup("</ul></details>");
    }
    html.markup("</li>");
}

fn title(result: &SearchResult) -> Html {
    let mut html = Html::new();
    marked(&mut html, &result.title);
    html
}

/// Adds the path of search and its schemas to the document.
pub(super) fn described(mut document: Value) -> Value {
    // The values that `Flag` accepts.
    let flag = |name: &str, description: &str| {
        openapi::query(name, false, description, json!({ "enum": ["1", "0", "true", "false", ""] }))
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
