//! Answers to requests that cannot be answered as asked: RFC 9457, `application/problem+json`.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Response, StatusCode};
use axum::response::IntoResponse;

use webtwin_base::console::tell;
use webtwin_base::error::Error;

/// What is wrong with a request, or with its answer.
#[derive(Debug)]
pub(super) struct Problem {
    pub status: StatusCode,
    code: &'static str,
    pub detail: String,
}

impl Problem {
    pub(super) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Problem {
        Problem { status, code, detail: detail.into() }
    }

    /// A thing that is not there.
    pub(super) fn missing(what: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "not_found", what)
    }

    /// A value that is none.
    pub(super) fn bad(what: impl Into<String>) -> Problem {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_value", what)
    }

    /// Name of its status.
    pub(super) fn title(&self) -> &'static str {
        self.status.canonical_reason().unwrap_or("error")
    }

    pub(super) fn response(self) -> Response<Body> {
        let text = serde_json::json!({
            "type": "about:blank",
            "title": self.title(),
            "status": self.status.as_u16(),
            "code": self.code,
            "detail": self.detail,
        });
        let mut response = Response::new(Body::from(text.to_string() + "\n"));
        *response.status_mut() = self.status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        response
    }
}

impl From<Error> for Problem {
    /// Damage of the index is the operator's business, and is told there; who asks learns that there is no answer.
    fn from(error: Error) -> Problem {
        tell(format_args!("error: {error}"));
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "index", "the index cannot answer; the server's log says why")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response<Body> {
        self.response()
    }
}
