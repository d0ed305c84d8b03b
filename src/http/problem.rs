//! Errors as `application/problem+json` (RFC 9457).

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Response, StatusCode};
use axum::response::IntoResponse;

use webtwin_base::console::notify;
use webtwin_base::error::Error;

/// A problem with a request or with its response.
#[derive(Debug)]
pub struct Problem {
    /// Status of the response.
    pub status: StatusCode,
    code: &'static str,
    /// Description of the problem, for users.
    pub detail: String,
}

impl Problem {
    /// Makes a problem with a code for programs.
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Problem {
        Problem { status, code, detail: detail.into() }
    }

    /// Makes the problem for an object that does not exist.
    pub fn missing(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// Makes the problem for an invalid value.
    pub fn bad(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_value", message)
    }

    /// Returns the title of the status.
    pub fn title(&self) -> &'static str {
        self.status.canonical_reason().unwrap_or("error")
    }

    /// Makes the problem of an overloaded server. The client may retry in a second.
    pub fn busy(message: &str) -> Problem {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", format!("{message}; try again in a moment"))
    }

    /// Makes the problem of an internal failure.
    pub fn broken() -> Problem {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "broken", "the server failed; see its log for the cause")
    }

    /// Makes the problem for a body of more than `limit` bytes.
    pub fn too_large(limit: usize) -> Problem {
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too_large",
            format!("the body has more than {limit} bytes; send less"),
        )
    }

    /// Makes the problem for an incomplete body.
    pub fn ended_early() -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, "bad_body", "the body ended early; send it again")
    }

    /// Makes the response.
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
    /// Reports damage of the index to the operator on stderr. The client only learns that there is
    /// no result.
    fn from(error: Error) -> Problem {
        notify(format_args!("error: {error}"));
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "index",
            "the index is damaged or cannot be read; see the log of the server for the cause",
        )
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response<Body> {
        self.response()
    }
}
