//! Routes and their handlers.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Shared;
use super::current::Served;
use super::html::{self, lists::OfList};
use super::openapi;
use super::versions::of_run;
use crate::lookup::alternates::{CopyOrder, alternates};
use crate::lookup::answer::{LookupAnswer, LookupSession, hexadecimal, id_of};
use crate::lookup::check::{CheckRequest, RequestForm};
use crate::lookup::{lists, sets};
use webtwin_core::explain::Explanation;
use webtwin_http::Problem;
use webtwin_http::answer::{AnswerResult, bytes_of, json, media_type, plain, query, with_fallbacks};
use webtwin_pages::url::CanonicalUrl;
use webtwin_results::FinishedRun;
use webtwin_results::explained::PagePairTables as Explained;

/// Maximum number of members of a set in an answer.
const MAX_MEMBERS: usize = 1000;

/// Maximum number of fingerprints in a request, and of doc ids found for one.
const MAX_NEAR: usize = 1000;

pub(super) type RouteQuery = Extension<Arc<Served>>;
pub(super) type SharedState = State<Arc<Shared>>;

pub(super) fn router(state: Arc<Shared>) -> Router {
    let router = Router::new();
    #[cfg(feature = "search")]
    let router = router.route("/v1/search", get(super::search::answer)).route("/search", get(super::search::page));
    let router = router
        .route("/v1/page", get(page))
        .route("/v1/pages", post(pages))
        .route("/v1/pages.txt", post(pages_txt))
        .route("/v1/check", post(check))
        .route("/v1/near", post(near_batch))
        .route("/v1/near/{fingerprint}", get(near_one))
        .route("/v1/sets", get(sets_listed))
        .route("/v1/collections", get(originals_listed))
        .route("/v1/set/{id}", get(set))
        .route("/v1/collection/{id}", get(collection))
        .route("/v1/explain", get(explain))
        .route("/v1/alternates", get(other_copies))
        .route("/v1/redirect", get(redirect))
        .route("/v1/run", get(run))
        .route("/v1/reload", post(reload))
        .route("/openapi.json", get(|| async { json(&openapi::document()) }))
        .route("/", get(html::lists::overview))
        .route("/collections", get(html::lists::all_mirrors))
        .route("/sets", get(html::lists::all_sets))
        .route("/set/{id}", get(html::sets::one_set))
        .route("/collection/{id}", get(html::sets::one_collection))
        .route("/page", get(html::page::one_page))
        .route("/compare", get(html::compare::compare))
        .route("/style.css", get(html::style))
        .route("/ready", get(is_ready))
        .route("/metrics", get(metrics));
    let middleware = from_fn_with_state(Arc::clone(&state), of_run);
    with_fallbacks(router).route_layer(middleware).with_state(state)
}

fn json_of<'b, T: Deserialize<'b>>(headers: &HeaderMap, body: &'b [u8]) -> Result<T, Problem> {
    if media_type(headers).0 != "application/json" {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "media_type",
            "the body must be application/json",
        ));
    }
    serde_json::from_slice(body).map_err(|cause| match cause.is_data() {
        true => Problem::bad(cause.to_string()),
        false => Problem::new(StatusCode::BAD_REQUEST, "bad_json", cause.to_string()),
    })
}

pub(super) fn id(text: &str) -> Result<u64, Problem> {
    id_of(text).ok_or_else(|| Problem::bad("an id must have 16 hexadecimal digits"))
}

fn canonical(url: &str) -> Result<CanonicalUrl, Problem> {
    CanonicalUrl::parse(url).map_err(|why| Problem::bad(format!("url: {why}")))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OnePage {
    url: Option<String>,
    id: Option<String>,
}

async fn page(State(state): SharedState, Extension(snapshot): RouteQuery, uri: Uri) -> AnswerResult {
    let mut asker = snapshot.asker();
    let answer = match query(&uri)? {
        OnePage { url: Some(url), id: None } => asker.answer(&url)?,
        OnePage { url: None, id: Some(text) } => asker.answer_id(id(&text)?)?,
        _ => return Err(Problem::new(StatusCode::BAD_REQUEST, "bad_query", "the query must have either url or id")),
    };
    state.metrics.count_lookups(answer.action, 1);
    Ok(json(&answer))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Batch {
    urls: Option<Vec<String>>,
    ids: Option<Vec<String>>,
    fields: Option<Vec<String>>,
}

/// Fields of an answer that a request may select.
const FIELDS: [&str; 15] = [
    "url",
    "canonical",
    "id",
    "title",
    "known",
    "action",
    "why",
    "role",
    "keep",
    "cluster",
    "collection",
    "prefix",
    "rewritten",
    "rule",
    "unknown",
];

async fn pages(
    State(state): SharedState,
    Extension(snapshot): RouteQuery,
    headers: HeaderMap,
    body: Body,
) -> AnswerResult {
    let body = bytes_of(body, state.front.limits().body).await?;
    let Batch { urls, ids, fields } = json_of(&headers, &body)?;
    if let Some(unknown_field) = fields.iter().flatten().find(|field| !FIELDS.contains(&field.as_str())) {
        return Err(Problem::bad(format!("fields: {unknown_field:?} is unknown; use some of {}", FIELDS.join(", "))));
    }
    let keys = urls.as_ref().or(ids.as_ref()).filter(|_| urls.is_none() || ids.is_none());
    let Some(keys) = keys else { return Err(Problem::bad("the body must have either urls or ids")) };
    batch(&state, keys.len())?;
    let mut asker = snapshot.asker();
    let mut text = format!("{{\"run\":\"{}\",\"answers\":[", snapshot.index.about.run.result);
    for (number, key) in keys.iter().enumerate() {
        let answer = if urls.is_some() { asker.answer(key)? } else { asker.answer_id(id(key)?)? };
        state.metrics.count_lookups(answer.action, 1);
        if number > 0 {
            text.push(',');
        }
        text.push_str(&with_fields(&answer, fields.as_deref()));
    }
    text.push_str("]}");
    Ok(plain("application/json", text))
}

fn with_fields(answer: &LookupAnswer, fields: Option<&[String]>) -> String {
    let to_json = || serde_json::to_value(answer).expect("an answer is plain values");
    match fields {
        None => serde_json::to_string(answer).expect("an answer is plain values"),
        Some(fields) => {
            let mut value = to_json();
            if let Some(object) = value.as_object_mut() {
                object.retain(|name, _| fields.iter().any(|field| field == name));
            }
            value.to_string()
        }
    }
}

fn batch(state: &Shared, count: usize) -> Result<(), Problem> {
    let limit = state.front.limits().batch;
    let too_many = || {
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too_many",
            format!("the body has more than {limit} URLs or ids; send several bodies"),
        )
    };
    if count > limit { Err(too_many()) } else { Ok(()) }
}

async fn pages_txt(State(state): SharedState, Extension(snapshot): RouteQuery, body: Body) -> AnswerResult {
    let body = bytes_of(body, state.front.limits().body).await?;
    let lines = std::str::from_utf8(&body)
        .map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "not_utf8", "the body is not UTF-8"))?;
    batch(&state, lines.lines().take(state.front.limits().batch + 1).count())?;
    let mut asker = snapshot.asker();
    let (mut text, mut counts) = (String::with_capacity(lines.len()), [0; 4]);
    for line in lines.lines() {
        let url = asker.url(line)?;
        counts[url.action as usize] += 1;
        asker.line(&url, &mut text)?;
    }
    for (action, count) in crate::lookup::answer::UrlAction::ALL.into_iter().zip(counts) {
        state.metrics.count_lookups(action, count);
    }
    Ok(plain("text/plain; charset=utf-8", text))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfText {
    url: Option<String>,
    charset: Option<String>,
}

async fn check(
    State(state): SharedState,
    Extension(snapshot): RouteQuery,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> AnswerResult {
    let OfText { url, charset } = query(&uri)?;
    let url = url.as_deref().map(canonical).transpose()?;
    let (media, message) = media_type(&headers);
    let form = match media.as_str() {
        "text/html" => RequestForm::Html,
        "application/xhtml+xml" => RequestForm::Xhtml,
        "text/plain" => RequestForm::Text,
        _ => {
            return Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "media_type",
                "the body must be text/html or text/plain",
            ));
        }
    };
    let body = bytes_of(body, state.front.limits().text).await?;
    let result = state.front.heavy(move || {
        let charset = charset.or(message);
        let request = CheckRequest { body: &body, form, charset: charset.as_deref(), url: url.as_ref() };
        Ok(snapshot.with_checker(|checker| checker.check(&snapshot.index, request))?)
    });
    Ok(json(&result.await?))
}

#[derive(Serialize)]
struct NearFingerprint {
    fingerprint: String,
    distance: u32,
    ids: Vec<String>,
}

/// Finds the fingerprints within k bits of one, the nearest first.
fn near_fingerprints(
    snapshot: &Served,
    fingerprint: u64,
    k: Option<u32>,
    limit: Option<usize>,
) -> Result<Vec<NearFingerprint>, Problem> {
    let tables = snapshot.index.simhashes();
    let tables = tables.ok_or_else(|| Problem::missing("the index has no simhashes; build it with --simhashes"))?;
    let design = &tables.manifest().design;
    let k = k.unwrap_or(design.k);
    if k > design.k || design.f < 64 && fingerprint >> design.f != 0 {
        return Err(Problem::bad(format!("k must be at most {}, and a fingerprint below 2^{}", design.k, design.f)));
    }
    let mut fingerprints = tables.near(fingerprint, k)?;
    fingerprints.sort_unstable_by_key(|one| (one.distance, one.fingerprint));
    let limit = limit.unwrap_or(100).min(MAX_NEAR);
    let (mut matches, mut message) = (Vec::new(), 0);
    for candidate in fingerprints {
        if message >= limit {
            break;
        }
        let ids: Vec<String> = tables.doc_ids(candidate.fingerprint)?.take(limit - message).map(hexadecimal).collect();
        message += ids.len();
        matches.push(NearFingerprint {
            fingerprint: hexadecimal(candidate.fingerprint),
            distance: candidate.distance,
            ids,
        });
    }
    Ok(matches)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Near {
    k: Option<u32>,
    limit: Option<usize>,
}

async fn near_one(Extension(snapshot): RouteQuery, Path(fingerprint): Path<String>, uri: Uri) -> AnswerResult {
    let Near { k, limit } = query(&uri)?;
    Ok(json(&near_fingerprints(&snapshot, id(&fingerprint)?, k, limit)?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NearBatch {
    fingerprints: Vec<String>,
    k: Option<u32>,
    limit: Option<usize>,
}

async fn near_batch(
    State(state): SharedState,
    Extension(snapshot): RouteQuery,
    headers: HeaderMap,
    body: Body,
) -> AnswerResult {
    let body = bytes_of(body, state.front.limits().body).await?;
    let NearBatch { fingerprints, k, limit } = json_of(&headers, &body)?;
    if fingerprints.len() > MAX_NEAR {
        let message =
            format!("{} fingerprints, but at most {MAX_NEAR} are allowed; send several bodies", fingerprints.len());
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_many", message));
    }
    let lookup = |text: &String| near_fingerprints(&snapshot, id(text)?, k, limit);
    let matches: Vec<Vec<NearFingerprint>> = fingerprints.iter().map(lookup).collect::<Result<_, Problem>>()?;
    Ok(json(&matches))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    #[serde(default)]
    from: usize,
    limit: Option<usize>,
}

async fn sets_listed(Extension(snapshot): RouteQuery, uri: Uri) -> AnswerResult {
    let request: OfList = query(&uri)?;
    Ok(json(&lists::sets(&snapshot.index, request.asked(MAX_MEMBERS)?)?))
}

async fn originals_listed(Extension(snapshot): RouteQuery, uri: Uri) -> AnswerResult {
    let request: OfList = query(&uri)?;
    Ok(json(&lists::originals(&snapshot.index, request.asked(MAX_MEMBERS)?)?))
}

async fn set(Extension(snapshot): RouteQuery, Path(text): Path<String>, uri: Uri) -> AnswerResult {
    let Page { from: first, limit } = query(&uri)?;
    let page = sets::set(&snapshot.index, id(&text)?, first, limit.unwrap_or(100).min(MAX_MEMBERS))?;
    Ok(json(&page.ok_or_else(|| Problem::missing("no page of a trivial cluster has this id"))?))
}

async fn collection(Extension(snapshot): RouteQuery, Path(text): Path<String>, uri: Uri) -> AnswerResult {
    let Page { from: first, limit } = query(&uri)?;
    let page = sets::collection(&snapshot.index, id(&text)?, first, limit.unwrap_or(100).min(MAX_MEMBERS))?;
    Ok(json(&page.ok_or_else(|| Problem::missing("no collection has this id"))?))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    a: String,
    b: String,
}

async fn explain(State(state): SharedState, Extension(snapshot): RouteQuery, uri: Uri) -> AnswerResult {
    let Pair { a, b } = query(&uri)?;
    let in_json =
        |explanation: &Explanation<'_>| serde_json::to_string(explanation).expect("an explanation is plain values");
    Ok(plain("application/json", explained(&state, snapshot, [a, b], in_json).await?))
}

/// Explains why two pages are together or apart. Reads the result and its input, and converts the
/// explanation with `render`.
pub(super) async fn explained<T: Send + 'static>(
    state: &Arc<Shared>,
    snapshot: Arc<Served>,
    urls: [String; 2],
    render: impl FnOnce(&Explanation<'_>) -> T + Send + 'static,
) -> Result<T, Problem> {
    for url in &urls {
        if snapshot.asker().url(url)?.page.is_none() {
            return Err(Problem::missing(format!("{url} is not a page of the run")));
        }
    }
    let explanation = state.front.heavy(move || {
        let log_failure = |cause| {
            webtwin_base::console::notify(format_args!("warning: two pages could not be compared: {cause}"));
            let message = "the server cannot read the run or its input; see the log of the server";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no_run", message)
        };
        let run = FinishedRun::open(&snapshot.index.about.run.url).map_err(log_failure)?;
        let mut comparison = Explained::read(&run, [&urls[0], &urls[1]], false).map_err(log_failure)?;
        Ok(render(&comparison.explain().map_err(log_failure)?))
    });
    explanation.await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Copies {
    url: String,
    #[serde(default)]
    newest: Flag,
    #[serde(default)]
    elsewhere: Flag,
    limit: Option<usize>,
}

/// Boolean in a query string: true if empty, `1` or `true`.
#[derive(Debug, Deserialize, Default, Clone, Copy, PartialEq)]
pub(super) enum Flag {
    #[serde(rename = "1", alias = "true", alias = "")]
    On,
    #[default]
    #[serde(rename = "0", alias = "false")]
    Off,
}

impl Copies {
    fn find(
        &self,
        asker: &mut LookupSession<'_>,
        limit: usize,
    ) -> Result<Vec<crate::lookup::alternates::Alternate>, Problem> {
        let hit = asker.canonical(&canonical(&self.url)?)?;
        let page =
            hit.page.ok_or_else(|| Problem::missing("the URL is not a page of the run, so it has no known copies"))?;
        let order = CopyOrder { newest: self.newest == Flag::On, elsewhere: self.elsewhere == Flag::On };
        Ok(alternates(asker.index, page, order, limit)?)
    }
}

async fn other_copies(Extension(snapshot): RouteQuery, uri: Uri) -> AnswerResult {
    let copies: Copies = query(&uri)?;
    let limit = copies.limit.unwrap_or(20).min(MAX_MEMBERS);
    let pages = copies.find(&mut snapshot.asker(), limit)?;
    Ok(json(&json!({ "url": copies.url, "alternates": pages })))
}

async fn redirect(Extension(snapshot): RouteQuery, uri: Uri) -> AnswerResult {
    let copies: Copies = query(&uri)?;
    let best = copies.find(&mut snapshot.asker(), 1)?.into_iter().next();
    let best = best.ok_or_else(|| Problem::missing("no copy of the page is known"))?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    let location = HeaderValue::from_str(&best.url)
        .map_err(|_| Problem::missing("the URL of the copy cannot be sent in a header"))?;
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}

async fn run(Extension(snapshot): RouteQuery) -> AnswerResult {
    let (index, run_summary) = (&snapshot.index, &snapshot.index.about);
    Ok(json(&json!({
        "run": run_summary.run.result,
        "digest": run_summary.run.digest,
        "made_from": run_summary.run.url,
        "in_force": run_summary.in_force,
        "index": snapshot.folder,
        "pages": run_summary.pages,
        "clusters": index.clusters(),
        "collections": index.collections(),
        "prefixes": index.prefixes(),
        "bytes": index.len_bytes(),
        "chunks": index.chunks().is_some(),
        "simhash_k": run_summary.simhash_k,
        "texts": run_summary.texts,
        "recipes": run_summary.run.recipes,
    })))
}

async fn reload(State(state): SharedState, Extension(_served): RouteQuery) -> AnswerResult {
    let work = Arc::clone(&state);
    let outcome = tokio::task::spawn_blocking(move || {
        let result = work.current.reload(&work.settings, &work.metrics).map_err(|error| error.to_string());
        result.map(|()| work.current.get().index.about.run.result.clone())
    });
    match outcome.await {
        Ok(Ok(run)) => Ok(json(&json!({ "run": run }))),
        _ => Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "not_reloaded",
            "the index was not reloaded, and the previous one is still served; see the log of the server",
        )),
    }
}

async fn is_ready(State(state): SharedState) -> AnswerResult {
    Ok(json(&json!({ "ready": true, "stale": state.current.is_stale() })))
}

async fn metrics(State(state): SharedState, Extension(snapshot): RouteQuery) -> AnswerResult {
    Ok(plain("text/plain; version=0.0.4; charset=utf-8", state.metrics.text(&snapshot) + &state.front.metrics()))
}
