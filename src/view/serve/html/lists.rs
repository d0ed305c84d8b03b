//! Overview page, and the lists of mirrors and sets with search by words.

use axum::extract::Extension;
use axum::http::Uri;
use serde::Deserialize;

use super::page::ask;
use super::{HtmlReply, ROWS, begin_form, begin_link, begin_table, end_form, end_table, field, whole};
use crate::lookup::lists::{HOST_COUNT_PAGES, ListPage, ListRequest, ListedOriginal, ListedSet, originals, sets};
use crate::report::charts::bars::strip;
use crate::report::figures::{count, counted};
use crate::report::html::Html;
use crate::report::markup::{name, tile};
use crate::serve::routes::RouteQuery;
use webtwin_http::Problem;
use webtwin_http::answer::query;

/// Number of rows of a list on the overview page.
const LARGEST_ROWS: usize = 5;

/// Query string of a list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::serve) struct OfList {
    #[serde(default)]
    q: String,
    #[serde(default)]
    from: u32,
    limit: Option<usize>,
}

impl OfList {
    /// Converts the query string into a request for at most `limit` rows; the default is [`ROWS`].
    pub(crate) fn asked(&self, limit: usize) -> Result<ListRequest<'_>, Problem> {
        if self.q.len() > crate::lookup::names::QUESTION {
            return Err(Problem::bad(format!("q must have at most {} bytes", crate::lookup::names::QUESTION)));
        }
        Ok(ListRequest { words: &self.q, from: self.from, limit: self.limit.unwrap_or(ROWS).min(limit) })
    }
}

/// Texts and paths of a list page.
struct List {
    path: &'static str,
    /// Path before a query string.
    path_and_mark: &'static str,
    /// Noun for the rows.
    rows: &'static str,
    /// Placeholder of the search field.
    field: &'static str,
    /// Noun for one row and for several rows.
    names: [&'static str; 2],
}

const MIRRORS: List = List {
    path: "/collections",
    path_and_mark: "/collections?",
    rows: "mirrors",
    field: "Words of titles, hosts or paths of root pages",
    names: ["original has mirrors", "originals have mirrors"],
};

const SETS: List = List {
    path: "/sets",
    path_and_mark: "/sets?",
    rows: "sets of copies",
    field: "Words of titles, hosts or paths",
    names: ["set of copies", "sets of copies"],
};

pub(in crate::serve) async fn overview(Extension(snapshot): RouteQuery) -> HtmlReply {
    let index = &snapshot.index;
    let mut html = Html::new();
    html.markup("<p class=lead>Pages of the crawl that stay, and their copies.</p>");
    ask(&mut html, "");
    find(&mut html, &SETS, "");
    html.markup("<div class=tiles>");
    for (number, label) in [
        (index.pages(), "pages"),
        (index.originals(), "originals with mirrors"),
        (index.collections(), "collections, originals and mirrors"),
        (index.clusters(), "sets of copies"),
        (index.prefixes(), "URL prefixes to skip"),
        (index.rules().all().len(), "URL rules"),
    ] {
        tile(&mut html, &count(number as u64), label);
    }
    html.markup("</div>");
    let request = ListRequest { words: "", from: 0, limit: LARGEST_ROWS };
    html.markup("<h2 class=gap>The largest mirrors</h2>");
    mirror_rows(&mut html, &originals(index, request)?);
    html.markup("<h2 class=gap>The largest sets of copies</h2>");
    set_rows(&mut html, &sets(index, request)?);
    html.markup("<p class=note>For programs: <a href=\"/openapi.json\">openapi.json</a></p>");
    Ok(whole(Some(&snapshot), "", "Overview", &html))
}

pub(in crate::serve) async fn all_mirrors(Extension(snapshot): RouteQuery, uri: Uri) -> HtmlReply {
    let request: OfList = query(&uri)?;
    let page = originals(&snapshot.index, request.asked(ROWS)?)?;
    let mut html = Html::new();
    html.markup("<p class=lead>Each row is an original with its mirrors, those with the most pages in mirrors first. ");
    html.markup("Its bars show the pages of each copy; the first one, in green, is kept.</p>");
    list(&mut html, [&MIRRORS, &SETS], &request, &page, mirror_rows);
    Ok(whole(Some(&snapshot), "collections", "Mirrored collections", &html))
}

pub(in crate::serve) async fn all_sets(Extension(snapshot): RouteQuery, uri: Uri) -> HtmlReply {
    let request: OfList = query(&uri)?;
    let page = sets(&snapshot.index, request.asked(ROWS)?)?;
    let mut html = Html::new();
    html.markup("<p class=lead>A set consists of pages that are copies of each other. The largest sets come first; ");
    html.markup("each has the title of the page that stays.</p>");
    list(&mut html, [&SETS, &MIRRORS], &request, &page, set_rows);
    Ok(whole(Some(&snapshot), "sets", "Sets of copies", &html))
}

/// Renders a search form for a list.
fn find(html: &mut Html, list: &List, words: &str) {
    begin_form(html, list.path);
    field(html, "q", list.field, words);
    end_form(html, "Find");
}

/// Renders a part of a list below its form, with links to the first rows, to the next ones, and to
/// the same query in the other list.
fn list<T>(
    html: &mut Html,
    [list, plural]: [&List; 2],
    request: &OfList,
    page: &ListPage<T>,
    rows: fn(&mut Html, &ListPage<T>),
) {
    find(html, list, &request.q);
    let total = counted(page.all as u64, list.names[0], list.names[1]);
    let row_count = count(page.shown.len() as u64);
    let has_words = !request.q.trim().is_empty();
    html.markup("<p class=count role=status>");
    match page.matches {
        Some(matches) if has_words => html.text(count(matches as u64)).text(" of ").text(total),
        Some(_) => html.text(total),
        None if page.next.is_some() => html.text(row_count).text(" or more of ").text(total),
        None => html.text(row_count).text(" of ").text(total),
    };
    html.markup("</p>");
    rows(html, page);
    html.markup("<p>");
    if request.from > 0 {
        begin_link(html, list.path_and_mark, &[("q", &request.q)]);
        html.markup("first rows</a> ");
    }
    if let Some(next) = page.next {
        begin_link(html, list.path_and_mark, &[("q", &request.q), ("from", &next.to_string())]);
        html.markup(if page.shown.is_empty() { "none yet; continue the search" } else { "next rows" }).markup("</a>");
    }
    html.markup("</p>");
    if has_words {
        html.markup("<p class=note>");
        begin_link(html, plural.path_and_mark, &[("q", &request.q)]);
        html.markup("search for the same words in ").markup(plural.rows).markup("</a></p>");
    }
}

fn mirror_rows(html: &mut Html, page: &ListPage<ListedOriginal>) {
    if page.shown.is_empty() {
        html.markup("<p class=note>none</p>");
        return;
    }
    let heads = [
        ("num", "in mirrors"),
        ("", "original"),
        ("num", "copies"),
        ("num wide-only", "pages"),
        ("wide-only", "each copy"),
    ];
    begin_table(html, "mirrors", &heads);
    for original in &page.shown {
        html.markup("<tr><td class=num><b>")
            .text(count(original.surplus.into()))
            .markup("</b></td><td class=url><a href=\"/collection/");
        html.text(&original.id)
            .markup("\">")
            .crawled(name(&original.title, &original.root.url))
            .markup("</a><div class=sub>");
        html.link(&original.root.url, &original.root.url).markup("</div></td><td class=num>");
        html.text(count(original.copies.into())).markup("</td><td class=\"num wide-only\">");
        html.text(count(original.pages.into())).markup("</td><td class=\"wide-only level\">");
        let sizes = original.sizes.iter().enumerate().map(|(number, &size)| (number == 0, u64::from(size)));
        strip(html, &sizes.collect::<Vec<_>>());
        html.markup("</td></tr>");
    }
    end_table(html);
}

fn set_rows(html: &mut Html, page: &ListPage<ListedSet>) {
    if page.shown.is_empty() {
        html.markup("<p class=note>none</p>");
        return;
    }
    let heads = [("num", "pages"), ("", "set"), ("num", "hosts")];
    begin_table(html, "sets", &heads);
    for set in &page.shown {
        html.markup("<tr><td class=num><b>")
            .text(count(set.pages as u64))
            .markup("</b></td><td class=url><a href=\"/set/");
        html.text(&set.id).markup("\">").crawled(name(&set.title, &set.page.url)).markup("</a><div class=sub>");
        html.link(&set.page.url, &set.page.url).markup("</div></td><td class=num>");
        html.text(count(set.hosts as u64)).markup(if set.pages > HOST_COUNT_PAGES { " or more" } else { "" });
        html.markup("</td></tr>");
    }
    end_table(html);
}
