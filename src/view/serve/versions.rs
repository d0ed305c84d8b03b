//! Headers that tag each answer with its run, so that clients can cache it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{ETAG, IF_NONE_MATCH};
use axum::http::{HeaderName, Method, Response, StatusCode};
use axum::middleware::Next;

use super::routes::SharedState;

/// Header with the result hash of the run.
const RUN: HeaderName = HeaderName::from_static("x-webtwin-run");

/// Gives a request the current index until it ends, and answers conditional requests.
pub(super) async fn of_run(State(state): SharedState, mut request: Request, next: Next) -> Response<Body> {
    let snapshot = state.current.get();
    // An answer that depends on the day or on the state of the server must not be cached.
    let depends_on_run_alone =
        state.settings.recheck == 0.0 && !matches!(request.uri().path(), "/health" | "/ready" | "/metrics");
    let is_get = request.method() == Method::GET || request.method() == Method::HEAD;
    let mut response = match request.headers().get(IF_NONE_MATCH) {
        Some(tag) if is_get && *tag == snapshot.tag && depends_on_run_alone => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        }
        _ => {
            request.extensions_mut().insert(Arc::clone(&snapshot));
            next.run(request).await
        }
    };
    let is_kept = depends_on_run_alone && matches!(response.status(), StatusCode::OK | StatusCode::NOT_MODIFIED);
    let headers = response.headers_mut();
    headers.insert(RUN, snapshot.run.clone());
    if is_kept {
        headers.insert(ETAG, snapshot.tag.clone());
    }
    response
}
