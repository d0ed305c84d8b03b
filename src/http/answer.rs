//! Pieces of handlers: bodies and queries in, texts and JSON out.

use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, Uri};
use axum::{Router, extract::Query};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::problem::Problem;

/// An answer, or why there is none.
pub type Answered = Result<Response<Body>, Problem>;

/// An answer of a media type.
pub fn plain(kind: &'static str, text: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(text.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// A value as JSON.
pub fn json(value: &impl Serialize) -> Response<Body> {
    plain("application/json", serde_json::to_string(value).expect("answers are plain values"))
}

/// The query of a request, as a value.
///
/// # Errors
/// A problem with status 400 when it is another one.
pub fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Problem> {
    let read = Query::<T>::try_from_uri(uri);
    read.map(|query| query.0).map_err(|cause| Problem::new(StatusCode::BAD_REQUEST, "bad_query", cause.body_text()))
}

/// The bytes of a body of at most `most`.
///
/// # Errors
/// A problem when the body is longer, or does not come to its end.
pub async fn bytes_of(body: Body, most: usize) -> Result<Bytes, Problem> {
    use std::error::Error;
    to_bytes(body, most).await.map_err(|cause| {
        let is_long = cause.source().is_some_and(|source| source.to_string().contains("length limit"));
        if is_long { Problem::too_large(most) } else { Problem::ended_early() }
    })
}

/// The media type of a request, without parameters, and its charset.
pub fn media_type(headers: &HeaderMap) -> (String, Option<String>) {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default().to_ascii_lowercase();
    let mut parts = text.split(';').map(str::trim);
    let media = parts.next().unwrap_or_default().to_string();
    let charset = parts.find_map(|part| part.strip_prefix("charset=")).map(|name| name.trim_matches('"').to_string());
    (media, charset)
}

/// Adds what every service answers: whether its process lives, and that other paths and methods are none.
pub fn with_fallbacks<S: Clone + Send + Sync + 'static>(router: Router<S>) -> Router<S> {
    router
        .route("/health", axum::routing::get(|| async { plain("text/plain; charset=utf-8", "ok\n") }))
        .fallback(|| async { Problem::missing("there is no such path; /openapi.json lists them") })
        .method_not_allowed_fallback(|| async {
            Problem::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method",
                "the path takes another method; /openapi.json says which",
            )
        })
}
