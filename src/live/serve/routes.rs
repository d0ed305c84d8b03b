//! Routes of the service and their handlers.

use std::sync::{Arc, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_ENCODING;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::body::{BodyForm, BodyReservation, records, take};
use super::reading::{ReadCounts, ReadOutcome, ReadRecord, read};
use super::{Service, events, openapi};
use crate::answer::{AddedPageAnswer, UrlVerdict};
use webtwin_http::answer::{AnswerResult, bytes_of, json as in_json, media_type, plain, query, with_fallbacks};
use webtwin_http::{Problem, gauge};
use webtwin_pages::url::CanonicalUrl;

/// Routes with metrics of their own.
pub(super) const ROUTES: &[&str] = &["/v1/pages", "/v1/pages.txt", "/v1/page", "/v1/advice", "/v1/run"];

type Of = State<Arc<Service>>;

pub(super) fn router(service: Arc<Service>) -> Router {
    let router = Router::new()
        .route("/v1/pages", post(pages))
        .route("/v1/pages.txt", post(pages_txt))
        .route("/v1/page", get(page))
        .route("/v1/advice", get(events::advice))
        .route("/v1/run", get(run))
        .route("/ready", get(|| async { in_json(&json!({ "ready": true })) }))
        .route("/metrics", get(metrics))
        .route("/openapi.json", get(|| async { in_json(&openapi::document()) }));
    with_fallbacks(router).with_state(service)
}

fn unsupported(message: &str) -> Problem {
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media_type", message)
}

/// Returns the format of a body, from the headers of its request.
fn form(headers: &HeaderMap) -> Result<BodyForm, Problem> {
    if headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(unsupported(
            "the body must have no content encoding; a WARC file may consist of gzip members or zstd frames",
        ));
    }
    match media_type(headers) {
        (media, charset) if media == "application/x-ndjson" => match charset.as_deref() {
            None | Some("utf-8" | "utf8") => Ok(BodyForm::Ndjson),
            Some(_) => Err(unsupported("the charset of the body must be utf-8")),
        },
        (media, _) if media == "application/warc" => Ok(BodyForm::Warc),
        _ => Err(unsupported("the body must be application/x-ndjson or application/warc")),
    }
}

/// Line of the answer to posted records.
#[derive(Serialize)]
#[serde(untagged)]
enum Line<'a> {
    Page {
        offset: u64,
        #[serde(flatten)]
        answer: &'a AddedPageAnswer,
    },
    Missing {
        offset: u64,
        missing: &'a str,
    },
    Rejected {
        offset: u64,
        rejected: &'static str,
        detail: &'a str,
    },
}

async fn pages(State(service): Of, headers: HeaderMap, body: Body) -> AnswerResult {
    let form = form(&headers)?;
    let body = take(body, service.front.limits().text, &service.bodies).await?;
    let _turn = service.turns.acquire().await;
    let work = Arc::clone(&service);
    service.front.heavy(move || add_records(&work, &body, form)).await
}

/// Adds the records of a body, and returns one line for each, and a last line with the counts.
fn add_records(service: &Service, body: &BodyReservation, form: BodyForm) -> AnswerResult {
    let mut read_records: Vec<ReadRecord> = Vec::new();
    let limit = service.front.limits().batch;
    service.digesters.with(|digester| {
        records(&body.bytes, form, limit, &service.digesters.job().input, &mut |record| {
            read_records.push(read(digester, record)?);
            Ok(())
        })
    })?;
    let mut counts = ReadCounts::default();
    read_records.iter().for_each(|record| counts.add(&record.outcome));
    // Bytes between two records count as bytes of the first one.
    let ends = read_records.iter().skip(1).map(|record| record.offset).chain([body.bytes.len() as u64]);
    let mut kept_bytes = 0;
    let mut start = 0;
    for (record, end) in read_records.iter().zip(ends) {
        if matches!(record.outcome, ReadOutcome::Item(super::writer::WriterItem::Page(_))) {
            kept_bytes += end - start;
        }
        start = end;
    }
    let (mut items, mut rejected_lines) = (Vec::new(), Vec::new());
    for record in read_records {
        match record.outcome {
            ReadOutcome::Item(item) => {
                let url = match &item {
                    super::writer::WriterItem::Missing(url) => url.as_str().to_string(),
                    super::writer::WriterItem::Page(_) => String::new(),
                };
                items.push(item);
                rejected_lines.push((record.offset, None, url));
            }
            ReadOutcome::Rejected(reason, detail) => rejected_lines.push((record.offset, Some(reason), detail)),
        }
    }
    // Records without an item do not wait for the disk.
    let answers = match items.is_empty() {
        true => Vec::new(),
        false => service.writer.add(items, None).map_err(|why| {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not_written", format!("no record was acknowledged: {why}"))
        })?,
    };
    service.counts.lock().unwrap_or_else(PoisonError::into_inner).merge(&counts);
    let mut answers = answers.into_iter();
    let mut text = String::with_capacity(300 * rejected_lines.len());
    let mut put_line = |line: &dyn Fn() -> serde_json::Result<String>| {
        text.push_str(&line().expect("answers are plain values"));
        text.push('\n');
    };
    for (offset, reason, detail) in &rejected_lines {
        let answer = if reason.is_none() { answers.next().flatten() } else { None };
        let line = match (reason, &answer) {
            (Some(reason), _) => Line::Rejected { offset: *offset, rejected: reason.as_str(), detail },
            (None, Some(answer)) => Line::Page { offset: *offset, answer },
            (None, None) => Line::Missing { offset: *offset, missing: detail },
        };
        put_line(&|| serde_json::to_string(&line));
    }
    let bytes = body.bytes.len() as u64;
    // A URL without a page counts as rejected here, because the sum must be the number of records.
    let closing = json!({
        "read": counts.read,
        "kept": counts.kept,
        "rejected": counts.read - counts.kept,
        "read_bytes": bytes,
        "kept_bytes": kept_bytes,
        "rejected_bytes": bytes - kept_bytes,
    });
    put_line(&|| Ok(closing.to_string()));
    Ok(plain("application/x-ndjson", text))
}

async fn pages_txt(State(service): Of, body: Body) -> AnswerResult {
    let limits = service.front.limits();
    let body = bytes_of(body, limits.body).await?;
    let lines = std::str::from_utf8(&body)
        .map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "not_utf8", "the body is not UTF-8"))?;
    if lines.lines().count() > limits.batch {
        let message = format!("the body has more than {} URLs; send them in smaller bodies", limits.batch);
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_many", message));
    }
    let mut text = String::with_capacity(lines.len());
    for line in lines.lines() {
        match CanonicalUrl::parse(line.trim()) {
            Err(_) => text.push_str("reject"),
            // The lock is taken for each URL, so that the writer can add pages in between.
            Ok(url) => match service.index.index().ask(&url)? {
                UrlVerdict::Fetch { .. } => text.push_str("fetch"),
                UrlVerdict::Skip { url: None, .. } => text.push_str("skip"),
                UrlVerdict::Skip { url: Some(url), .. } => text.extend(["skip\t", &url]),
                UrlVerdict::Rewrite { url, .. } => text.extend(["rewrite\t", &url]),
            },
        }
        text.push('\n');
    }
    Ok(plain("text/plain; charset=utf-8", text))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OnePage {
    url: String,
}

async fn page(State(service): Of, uri: Uri) -> AnswerResult {
    let OnePage { url } = query(&uri)?;
    let url = CanonicalUrl::parse(&url).map_err(|why| Problem::bad(format!("url: {why}")))?;
    let index = service.index.index();
    let (verdict, known_page) = (index.ask(&url)?, index.known(&url)?);
    Ok(in_json(&json!({ "url": url.as_str(), "verdict": verdict, "page": known_page })))
}

async fn run(State(service): Of) -> AnswerResult {
    let counts = service.counts.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let index = service.index.index();
    let files: serde_json::Map<_, _> = index.files().map(|(name, offset)| (name.to_string(), offset.into())).collect();
    Ok(in_json(&json!({
        "folder": service.folder,
        "figures": index.figures(),
        "files": files,
        "records": counts,
    })))
}

async fn metrics(State(service): Of) -> AnswerResult {
    let figures = service.index.index().figures();
    let counts = service.counts.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut text = service.front.metrics();
    for (name, help, value) in [
        ("webtwin_live_pages", "Pages, with each version counted.", figures.pages),
        ("webtwin_live_clusters", "Trivial clusters, including those of one page.", figures.clusters),
        ("webtwin_live_missing", "URLs that returned no page.", figures.missing),
        ("webtwin_live_mirrors", "Mirrors and aliases that are now rewritten.", figures.mirrors),
        ("webtwin_live_url_rules", "URL rules in effect.", figures.url_rules),
        ("webtwin_live_advice", "Sequence number of the last advice.", figures.advice),
        ("webtwin_live_log_bytes", "Size of the log in bytes.", figures.log_bytes),
        ("webtwin_live_runs", "Sorted runs of postings.", figures.runs),
    ] {
        gauge(&mut text, name, help, value);
    }
    text.push_str("# HELP webtwin_live_records_total Records that were read, by outcome.\n");
    text.push_str("# TYPE webtwin_live_records_total counter\n");
    let mut record = |outcome: &str, count| {
        text.push_str(&format!("webtwin_live_records_total{{outcome=\"{outcome}\"}} {count}\n"));
    };
    record("kept", counts.kept);
    record("missing", counts.missing);
    counts.rejected.iter().for_each(|(reason, count)| record(reason, *count));
    Ok(plain("text/plain; version=0.0.4; charset=utf-8", text))
}
