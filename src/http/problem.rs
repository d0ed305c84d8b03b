//! Errors as `application/problem+json` (RFC 9457).

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Response, StatusCode};
use axum::response::IntoResponse;

use webtwin_base::console::tell;
use webtwin_base::error::Error;

/// What is wrong with a request, or with its answer.
#[derive(Debug)]
pub struct Problem {
    /// Status of the answer.
    pub status: StatusCode,
    code: &'static str,
    /// What happened, for people.
    pub detail: String,
}

impl Problem {
    /// A problem with its code, a word for programs.
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Problem {
        Problem { status, code, detail: detail.into() }
    }

    /// A thing that is not there.
    pub fn missing(what: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "not_found", what)
    }

    /// A value that is none.
    pub fn bad(what: impl Into<String>) -> Problem {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_value", what)
    }

    /// Name of its status.
    pub fn title(&self) -> &'static str {
        self.status.canonical_reason().unwrap_or("error")
    }

    /// The server does as much as it can; to be asked again in a second.
    pub fn busy(what: &str) -> Problem {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", format!("{what}; try again in a moment"))
    }

    /// The server failed.
    pub fn broken() -> Problem {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "broken", "the server failed; its log says why")
    }

    /// A body of more than `most` bytes.
    pub fn too_large(most: usize) -> Problem {
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", format!("the body has more than {most} bytes"))
    }

    /// A body that did not come to its end.
    pub fn ended_early() -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, "bad_body", "the body ended early")
    }

    /// The answer.
    pub fn response(self) -> Response<Body> {
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
        if self.code == "busy" {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
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
