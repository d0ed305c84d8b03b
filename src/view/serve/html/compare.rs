//! Page that shows any two pages of the run side by side, in the layout of the report. Their texts
//! are read again from the run's tables and input.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::http::Uri;
use serde::Deserialize;

use super::{HtmlReply, begin_form, end_form, field, whole};
use crate::lookup::Index;
use crate::report::contract::{By, Chunk, Compared, Measure, Member, Shared, Step};
use crate::report::html::Html;
use crate::report::side_by_side::rows;
use crate::report::views::compare::{pair, verdict};
use crate::serve::routes::{All, Of, explained};
use webtwin_core::explain::{Explanation, Knowledge};
use webtwin_http::answer::query;

/// Maximum number of common chunks on the page.
const CHUNKS: usize = 20;

/// Maximum number of characters of a chunk.
const CHUNK: usize = 120;

#[derive(Deserialize)]
struct Two {
    #[serde(default)]
    a: String,
    #[serde(default)]
    b: String,
}

pub(in crate::serve) async fn compare(State(shared): All, Extension(served): Of, uri: Uri) -> HtmlReply {
    let Two { a, b } = query(&uri)?;
    let mut html = Html::new();
    html.markup(
        "<p class=lead>Why two pages are copies of each other, or are not. Their texts are read again from the ",
    );
    html.markup("input of the run.</p>");
    begin_form(&mut html, "/compare");
    field(&mut html, "a", "URL of a page", &a);
    field(&mut html, "b", "URL of another page", &b);
    end_form(&mut html, "Compare");
    if ![&a, &b].iter().any(|url| url.trim().is_empty()) {
        let of = Arc::clone(&served);
        let found = explained(&shared, Arc::clone(&served), [a, b], move |said| content(said, &of.index)).await?;
        html.markup("<div class=card>").piece(&found?).markup("</div>");
    }
    Ok(whole(Some(&served), "compare", "Two pages side by side", &html))
}

/// Renders the explanation of two pages.
fn content(said: &Explanation<'_>, index: &Index) -> webtwin_base::error::Result<Html> {
    let page = |number: usize| -> webtwin_base::error::Result<Member> {
        let side = &said.pages[number];
        let rank = index.rank(side.doc_id)?;
        let role = rank.map(|rank| index.page(rank).map(|row| index.word(row.role).to_string()));
        Ok(Member {
            id: side.doc_id,
            url: side.url.clone(),
            title: rank.map_or(Ok(String::new()), |rank| index.title(rank))?,
            host: host(&side.url),
            role: role.transpose()?.unwrap_or_default(),
            text_bytes: side.text_bytes,
            chunks: side.chunks as u64,
        })
    };
    let shown = said.shared_chunks.iter().take(CHUNKS).map(|chunk| Chunk {
        text: chunk.text.chars().take(CHUNK).collect(),
        pages: (said.overlap.known == Knowledge::Crawl).then_some(chunk.pages.into()),
    });
    let compared = Compared {
        why: String::new(),
        pages: [page(0)?, page(1)?],
        together: said.together,
        same_text: said.overlap.exact,
        bits: said.hamming.distance,
        chain: chain(said),
        shared: Some(Shared {
            both: said.shared_chunks.len() as u64,
            of: [0, 1].map(|number| said.pages[number].chunks as u64),
            some: shown.collect(),
        }),
        diff: rows(&said.diff),
        unread: String::new(),
    };
    let words = if said.together { verdict(&compared) } else { said.reasons.join("; ") };
    let mut html = Html::new();
    pair(&mut html, &compared, &words, said.overlap.pair.map(u64::from));
    Ok(html)
}

/// Returns the chain of pairs that connects the two pages, from the first to the second.
fn chain(said: &Explanation<'_>) -> Vec<Step> {
    let (mut at, mut steps) = (&said.pages[0].url, Vec::new());
    for of in &said.chain {
        let [a, b] = &of.pages;
        at = if at == a { b } else { a };
        if let Some(measure) = Measure::parse(&of.measure) {
            let by = By { measure, value: of.value };
            steps.push(Step { id: webtwin_base::ids::doc_id(at), url: at.clone(), host: host(at), by });
        }
    }
    steps
}

/// Returns the host of a canonical URL.
fn host(url: &str) -> String {
    webtwin_pages::url::CanonicalUrl::parse(url).map_or_else(|_| String::new(), |url| url.host().to_string())
}
