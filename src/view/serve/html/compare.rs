//! Page that shows any two pages of the run side by side, in the layout of the report. Their texts
//! are read again from the run's tables and input.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::http::Uri;
use serde::Deserialize;

use super::{HtmlReply, begin_form, end_form, field, whole};
use crate::lookup::LookupIndex;
use crate::report::contract::{
    MeasuredValue, PageComparison, ReportedMeasure, ReportedStep, SetMember, SharedText, SharedTexts,
};
use crate::report::html::Html;
use crate::report::side_by_side::rows;
use crate::report::views::compare::{pair, verdict};
use crate::serve::routes::{RouteQuery, SharedState, explained};
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

pub(in crate::serve) async fn compare(
    State(state): SharedState,
    Extension(snapshot): RouteQuery,
    uri: Uri,
) -> HtmlReply {
    let Two { a, b } = query(&uri)?;
    let mut html = Html::new();
    html.markup(
        "<p class=lead>Explains why two pages are copies of each other or not. Their texts are read again from the ",
    );
    html.markup("input of the run.</p>");
    begin_form(&mut html, "/compare");
    field(&mut html, "a", "URL of a page", &a);
    field(&mut html, "b", "URL of another page", &b);
    end_form(&mut html, "Compare");
    if ![&a, &b].iter().any(|url| url.trim().is_empty()) {
        let compared_snapshot = Arc::clone(&snapshot);
        let reply = explained(&state, Arc::clone(&snapshot), [a, b], move |explanation| {
            content(explanation, &compared_snapshot.index)
        })
        .await?;
        html.markup("<div class=card>").piece(&reply?).markup("</div>");
    }
    Ok(whole(Some(&snapshot), "compare", "Two pages side by side", &html))
}

/// Renders the explanation of two pages.
fn content(explanation: &Explanation<'_>, index: &LookupIndex) -> webtwin_base::error::Result<Html> {
    let page = |number: usize| -> webtwin_base::error::Result<SetMember> {
        let side = &explanation.pages[number];
        let rank = index.rank(side.doc_id)?;
        let role = rank.map(|rank| index.page(rank).map(|row| index.word(row.role).to_string()));
        Ok(SetMember {
            id: side.doc_id,
            url: side.url.clone(),
            title: rank.map_or(Ok(String::new()), |rank| index.title(rank))?,
            host: host(&side.url),
            role: role.transpose()?.unwrap_or_default(),
            text_bytes: side.text_bytes,
            chunks: side.chunks as u64,
        })
    };
    let texts = explanation.shared_chunks.iter().take(CHUNKS).map(|chunk| SharedText {
        text: chunk.text.chars().take(CHUNK).collect(),
        pages: (explanation.overlap.known == Knowledge::Crawl).then_some(chunk.pages.into()),
    });
    let comparison = PageComparison {
        why: String::new(),
        pages: [page(0)?, page(1)?],
        together: explanation.together,
        same_text: explanation.overlap.exact,
        bits: explanation.hamming.distance,
        chain: chain(explanation),
        shared: Some(SharedTexts {
            both: explanation.shared_chunks.len() as u64,
            of: [0, 1].map(|number| explanation.pages[number].chunks as u64),
            some: texts.collect(),
        }),
        diff: rows(&explanation.diff),
        unread: String::new(),
    };
    let words = if explanation.together { verdict(&comparison) } else { explanation.reasons.join("; ") };
    let mut html = Html::new();
    pair(&mut html, &comparison, &words, explanation.overlap.pair.map(u64::from));
    Ok(html)
}

/// Returns the chain of pairs that connects the two pages, from the first to the second.
fn chain(explanation: &Explanation<'_>) -> Vec<ReportedStep> {
    let (mut url, mut steps) = (&explanation.pages[0].url, Vec::new());
    for chain_link in &explanation.chain {
        let [a, b] = &chain_link.pages;
        url = if url == a { b } else { a };
        if let Some(measure) = ReportedMeasure::parse(&chain_link.measure) {
            let value = MeasuredValue { measure, value: chain_link.value };
            steps.push(ReportedStep {
                id: webtwin_base::ids::doc_id(url),
                url: url.clone(),
                host: host(url),
                by: value,
            });
        }
    }
    steps
}

/// Returns the host of a canonical URL.
fn host(url: &str) -> String {
    webtwin_pages::url::CanonicalUrl::parse(url).map_or_else(|_| String::new(), |url| url.host().to_string())
}
