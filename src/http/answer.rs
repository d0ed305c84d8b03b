//! Building blocks of handlers: parsing of bodies and queries, and responses with text and JSON.

use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, Uri};
use axum::{Router, extract::Query};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::problem::Problem;

/// Response of a handler, or the problem with the request.
pub type AnswerResult = Result<Response<Body>, Problem>;

/// Makes a response with a media type.
pub fn plain(kind: &'static str, text: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(text.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Makes a response with a value as JSON.
pub fn json(value: &impl Serialize) -> Response<Body> {
    plain("application/json", serde_json::to_string(value).expect("answers are plain values"))
}

/// Parses the query of a request.
///
/// # Errors
/// Returns a problem with status 400 if the query does not match the type.
pub fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Problem> {
    let read = Query::<T>::try_from_uri(uri);
    read.map(|query| query.0).map_err(|cause| Problem::new(StatusCode::BAD_REQUEST, "bad_query", cause.body_text()))
}

/// Reads a body of at most `limit` bytes.
///
/// # Errors
/// Returns a problem if the body is longer, or is incomplete.
pub async fn bytes_of(body: Body, limit: usize) -> Result<Bytes, Problem> {
    use std::error::Error;
    to_bytes(body, limit).await.map_err(|cause| {
        let is_long = cause.source().is_some_and(|source| source.to_string().contains("length limit"));
        if is_long { Problem::too_large(limit) } else { Problem::ended_early() }
    })
}

/// Returns the media type of a request without parameters, and its charset.
pub fn media_type(headers: &HeaderMap) -> (String, Option<String>) {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default().to_ascii_lowercase();
    let mut parts = text.split(';').map(str::trim);
    let media = parts.next().unwrap_or_default().to_string();
    let charset = parts.find_map(|part| part.strip_prefix("charset=")).map(|name| name.trim_matches('"').to_string());
    (media, charset)
}

/// Adds the routes of every service: whether its process is alive, and problems for unknown paths
/// and methods.
pub fn with_fallbacks<S: Clone + Send + Sync + 'static>(router: Router<S>) -> Router<S> {
    router
        .route("/health", axum::routing::get(|| async { plain("text/plain; charset=utf-8", "ok\n") }))
        .fallback(|| async { Problem::missing("there is no such path; /openapi.json lists the paths") })
        .method_not_allowed_fallback(|| async {
            Problem::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method",
                "the path does not support this method; /openapi.json lists the methods",
            )
        })
}
