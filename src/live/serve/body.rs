//! Records in request bodies: NDJSON or a WARC file. A body is buffered whole, so that a slow
//! client does not block other requests.

use std::borrow::Cow;
use std::cell::Cell;
use std::pin::Pin;
use std::sync::Arc;

use axum::body::Body;
use axum::http::StatusCode;
use data_encoding::BASE64;
use hyper::body::Body as _;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use webtwin_base::error::{Error, Result};
use webtwin_base::read_at::Bytes;
use webtwin_http::Problem;
use webtwin_job::InputSettings;
use webtwin_pages::fetch_time;
use webtwin_pages::record::{ReadResult, Reason, RecordSink, RefusedRecord};
use webtwin_pages::{jsonl, warc};

/// Format of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyForm {
    Ndjson,
    Warc,
}

/// A buffered body, with the permits for its memory.
pub(super) struct BodyReservation {
    pub bytes: Vec<u8>,
    _memory: Option<OwnedSemaphorePermit>,
}

/// Buffers a body of at most `limit` bytes. `memory` has one permit for each byte that all buffered
/// bodies together may take.
pub(super) async fn take(
    mut body: Body,
    limit: usize,
    memory: &Arc<Semaphore>,
) -> std::result::Result<BodyReservation, Problem> {
    if body.size_hint().lower() > limit as u64 {
        return Err(Problem::too_large(limit));
    }
    let (mut bytes, mut permit) = (Vec::new(), None::<OwnedSemaphorePermit>);
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let frame = frame.map_err(|_| Problem::ended_early())?;
        let Some(data) = frame.data_ref() else { continue };
        if bytes.len() + data.len() > limit {
            return Err(Problem::too_large(limit));
        }
        // The request fails instead of waiting for memory: two bodies that are half buffered could
        // otherwise wait for each other forever.
        let extra_permit = Arc::clone(memory).try_acquire_many_owned(data.len() as u32);
        let extra_permit = extra_permit.map_err(|_| Problem::busy("other requests fill the memory for bodies"))?;
        match &mut permit {
            Some(permit) => permit.merge(extra_permit),
            None => permit = Some(extra_permit),
        }
        bytes.extend_from_slice(data);
    }
    Ok(BodyReservation { bytes, _memory: permit })
}

/// Passes the records of a body, with their offsets, to `sink`; at most `limit` records.
pub(super) fn records(
    bytes: &[u8],
    form: BodyForm,
    limit: usize,
    input: &InputSettings,
    sink: &mut RecordSink<'_>,
) -> std::result::Result<(), Problem> {
    if form == BodyForm::Warc && !bytes.is_empty() && warc::probe(&Bytes(bytes))?.is_none() {
        let message = format!("the body is not a WARC file, but {}", warc::looks_like(&Bytes(bytes))?);
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "not_warc", message));
    }
    let count = Cell::new(0);
    let mut count_and_pass = |record| {
        count.set(count.get() + 1);
        match count.get() > limit {
            true => Err(Error::Invariant("a body has too many records".into())),
            false => sink(record),
        }
    };
    let result = match form {
        BodyForm::Ndjson => lines(bytes, input, &mut count_and_pass),
        BodyForm::Warc => warc::read_range(&Bytes(bytes), 0..bytes.len() as u64, input, &mut count_and_pass).map(drop),
    };
    if count.get() > limit {
        let message =
            format!("the body has more than {limit} records, and none was added; send them in smaller bodies");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_many", message));
    }
    Ok(result?)
}

/// Fields of a response line that JSONL records do not have.
#[derive(Deserialize)]
struct Response<'l> {
    #[serde(borrow)]
    url: Option<Field<'l>>,
    #[serde(borrow)]
    status: Option<Field<'l>>,
    #[serde(borrow)]
    body_base64: Option<Field<'l>>,
    #[serde(borrow)]
    content_type: Option<Field<'l>>,
    fetch_time: Option<Value>,
}

/// Value of a field. Bodies are long, so that strings are borrowed.
#[derive(Deserialize)]
#[serde(untagged)]
enum Field<'l> {
    Text(#[serde(borrow)] Cow<'l, str>),
    Other(Value),
}

impl Field<'_> {
    /// Returns the type of the value, with an article.
    fn kind(&self) -> &'static str {
        match self {
            Field::Text(_) => "a string",
            Field::Other(Value::Number(_)) => "a number",
            Field::Other(Value::Bool(_)) => "a boolean",
            Field::Other(Value::Array(_)) => "an array",
            Field::Other(_) => "an object",
        }
    }
}

impl Response<'_> {
    /// Returns the status: a number, or a string of digits, as the exports of some crawlers have
    /// it. The default is 200.
    ///
    /// # Errors
    /// Returns a description of any other value.
    fn status(&self) -> std::result::Result<u16, String> {
        let (status, status_text) = match &self.status {
            None => return Ok(200),
            Some(Field::Text(text)) => (text.trim().parse().ok(), format!("{text:?}")),
            Some(Field::Other(Value::Number(number))) => (number.as_u64(), number.to_string()),
            Some(other) => (None, other.kind().to_string()),
        };
        let status = status.and_then(|status| u16::try_from(status).ok()).filter(|status| *status < 1000);
        let status_text: String = status_text.chars().take(80).collect();
        status.ok_or_else(|| format!("status is {status_text}, but must be a number from 100 to 599"))
    }
}

/// Returns the string in a field; an absent one is empty.
fn text<'f>(name: &str, field: &'f Option<Field<'_>>) -> std::result::Result<&'f str, String> {
    match field {
        None => Ok(""),
        Some(Field::Text(text)) => Ok(text),
        Some(other) => Err(format!("{name} is {}, but must be a string", other.kind())),
    }
}

/// Passes the records of NDJSON lines to `sink`. Lines with responses are read here, and all others
/// by [`jsonl`].
fn lines(bytes: &[u8], input: &InputSettings, sink: &mut RecordSink<'_>) -> Result<()> {
    // Lines between two responses are read together.
    let pass_lines = |start: usize, end: usize, sink: &mut RecordSink<'_>| match start < end {
        true => jsonl::read_range(&Bytes(bytes), start as u64..end as u64, &input.limits, &input.fields, sink),
        false => Ok(()),
    };
    let (mut start, mut pending) = (0, 0);
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let end = start + line.len();
        if let Some(response) = response(line) {
            pass_lines(pending, start, sink)?;
            pending = end;
            pass_response(response, start as u64, line.len() as u64, input, sink)?;
        }
        start = end;
    }
    pass_lines(pending, start, sink)
}

/// Parses a line as a response; `None` if it is not one. A response has a status other than 2xx, or
/// a body in base64.
fn response(line: &[u8]) -> Option<Response<'_>> {
    let has_header = |name: &[u8]| memchr::memmem::find(line, name).is_some();
    let response: Response<'_> = if has_header(b"\"status\"") || has_header(b"\"body_base64\"") {
        serde_json::from_slice(line).ok()?
    } else {
        return None;
    };
    // A line without a body may be a page with a field `status` of another meaning.
    let has_other_status = || response.status().is_ok_and(|status| !(200..300).contains(&status));
    let is_response = response.body_base64.is_some() || has_other_status();
    is_response.then_some(response)
}

/// Passes the record of a response to `sink`. The response is converted to a WARC record, so that
/// the same rules apply as to a WARC file with these bytes.
fn pass_response(
    response: Response<'_>,
    offset: u64,
    length: u64,
    input: &InputSettings,
    sink: &mut RecordSink<'_>,
) -> Result<()> {
    let mut refuse = |reason, detail: &str| {
        sink(ReadResult::Refused(RefusedRecord { bytes: length, ..RefusedRecord::new(offset, reason, detail) }))
    };
    let fields = || -> std::result::Result<_, String> {
        let [url, body, media] = [
            text("url", &response.url)?,
            text("body_base64", &response.body_base64)?,
            text("content_type", &response.content_type)?,
        ];
        Ok((url, body, media, response.status()?))
    };
    let (url, body, media, status) = match fields() {
        Ok(fields) => fields,
        Err(detail) => return refuse(Reason::BadField, &detail),
    };
    if url.is_empty() {
        return refuse(Reason::BadField, "the field url is missing");
    }
    let Ok(body) = BASE64.decode(body.as_bytes()) else {
        return refuse(Reason::BadField, "body_base64 is not base64");
    };
    // A line end in a header value would let a client forge further headers of the WARC record.
    if [url, media].iter().any(|text| text.contains(['\r', '\n'])) {
        return refuse(Reason::BadField, "url or content_type contains a line break");
    }
    let time = match &response.fetch_time {
        None | Some(Value::Null) => Some(0),
        Some(Value::Number(number)) => number.as_f64().map(|number| fetch_time::of_number(number as i64)),
        Some(Value::String(text)) => fetch_time::parse(text),
        Some(_) => None,
    };
    let kind = if media.is_empty() { String::new() } else { format!("Content-Type: {media}\r\n") };
    let http = format!("HTTP/1.1 {status} -\r\n{kind}\r\n");
    let head = format!(
        "WARC/1.0\r\nWARC-Type: response\r\nContent-Type: application/http\r\nWARC-Target-URI: {url}\r\nContent-Length: {}\r\n\r\n",
        http.len() + body.len()
    );
    let record = [head.as_bytes(), http.as_bytes(), &body, b"\r\n\r\n"].concat();
    warc::read_range(&Bytes(&record[..]), 0..record.len() as u64, input, &mut |record_read| {
        sink(match record_read {
            ReadResult::Page(mut page) => {
                // Counts of bytes and warnings must refer to the line of the body, not to the
                // converted record.
                (page.offset, page.length, page.fetch_time) = (offset, length, time.unwrap_or(0));
                page.repaired = time.is_none().then_some(Reason::BadDate);
                ReadResult::Page(page)
            }
            ReadResult::Refused(refused) => ReadResult::Refused(RefusedRecord { offset, bytes: length, ..refused }),
        })
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the results of NDJSON lines: a URL, or a reason and its detail.
    fn results(text: &str) -> Vec<std::result::Result<String, (Reason, String)>> {
        let mut results = Vec::new();
        lines(text.as_bytes(), &InputSettings::default(), &mut |result| {
            results.push(match result {
                ReadResult::Page(page) => Ok(page.url),
                ReadResult::Refused(refused) => Err((refused.reason, refused.detail)),
            });
            Ok(())
        })
        .unwrap();
        results
    }

    #[test]
    fn status_is_a_number_or_a_string_of_digits() {
        let body = BASE64.encode(b"<p>some words");
        let line = |fields: &str| {
            format!("{{\"url\":\"http://a/\",\"content_type\":\"text/html\",\"body_base64\":\"{body}\"{fields}}}\n")
        };
        for fields in ["", ",\"status\":200", ",\"status\":\"200\"", ",\"status\":null", ",\"status\":\"204\""] {
            assert_eq!(results(&line(fields)), [Ok("http://a/".into())], "{fields}");
        }
        for fields in [",\"status\":404", ",\"status\":\"404\""] {
            let missing = Err((Reason::StatusNot2xx, "404 http://a/".into()));
            assert_eq!(results(&line(fields)), std::slice::from_ref(&missing), "{fields}");
            let without_body = format!("{{\"url\":\"http://a/\",\"html\":\"<p>Not found\"{fields}}}\n");
            assert_eq!(results(&without_body), [missing], "{fields}");
        }
        for (value, status_text) in [("\"ok\"", "\"ok\""), ("70000", "70000"), ("2.5", "2.5"), ("[200]", "an array")] {
            let detail = format!("status is {status_text}, but must be a number from 100 to 599");
            assert_eq!(results(&line(&format!(",\"status\":{value}"))), [Err((Reason::BadField, detail))]);
        }
        // The status of a page in a corpus may be anything.
        assert_eq!(
            results("{\"url\":\"http://a/\",\"text\":\"words\",\"status\":\"published\"}\n"),
            [Ok("http://a/".into())]
        );
    }

    #[test]
    fn field_of_a_response_with_another_type_is_named() {
        for (line, detail) in [
            ("{\"url\":7,\"body_base64\":\"\"}", "url is a number, but must be a string"),
            ("{\"url\":\"http://a/\",\"body_base64\":[]}", "body_base64 is an array, but must be a string"),
            (
                "{\"body_base64\":\"\",\"url\":\"a\",\"content_type\":{}}",
                "content_type is an object, but must be a string",
            ),
            ("{\"body_base64\":\"\"}", "the field url is missing"),
        ] {
            assert_eq!(results(line), [Err((Reason::BadField, detail.into()))], "{line}");
        }
    }
}
