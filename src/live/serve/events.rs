//! Delivery of advice: immediately, by long poll, or as server-sent events.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Extension, State};
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, Uri};
use serde::Deserialize;
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::Service;
use crate::advice::Advice;
use webtwin_http::answer::{AnswerResult, json as in_json, plain, query};
use webtwin_http::{ConnectionPhase, ConnectionSlot, Problem};

/// Maximum wait of a long poll.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Time without events after which a client receives a comment, so that each side notices if the
/// other one is gone.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Maximum number of advice items in one answer.
const MAX_ITEMS: usize = 1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    since: Option<u64>,
    #[serde(default)]
    wait: f64,
}

pub(super) async fn advice(
    State(service): State<Arc<Service>>,
    Extension(place): Extension<Arc<ConnectionSlot>>,
    uri: Uri,
    headers: HeaderMap,
) -> AnswerResult {
    let Asked { since: first, wait } = query(&uri)?;
    let accepts = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accepts.contains("text/event-stream") {
        let last =
            headers.get("last-event-id").map(|value| value.to_str().ok().and_then(|text| text.trim().parse().ok()));
        let last = match last {
            Some(None) => return Err(Problem::bad("Last-Event-ID is not the sequence number of an event")),
            last => last.flatten(),
        };
        return Ok(events(service, place, last.or(first).unwrap_or(0)));
    }
    if !(0.0..=LONGEST_WAIT.as_secs_f64()).contains(&wait) {
        return Err(Problem::bad(format!("wait must be between 0 and {} seconds", LONGEST_WAIT.as_secs())));
    }
    let first = first.unwrap_or(0);
    if wait > 0.0 {
        // Unlike a request in progress, a waiting long poll may be displaced by a new connection.
        place.waits_for(ConnectionPhase::Events);
        let mut last = service.index.advice.subscribe();
        tokio::select! {
            _ = timeout(Duration::from_secs_f64(wait), last.wait_for(|last| *last > first)) => {}
            () = service.front.stopped() => {}
        }
        place.waits_for(ConnectionPhase::Answer);
    }
    let index = service.index.index();
    let advice = index.advice(first);
    let page = &advice[..advice.len().min(MAX_ITEMS)];
    let last = page.last().map_or(first, |advice| advice.sequence);
    Ok(in_json(&json!({ "advice": page, "last": last })))
}

/// Returns a streaming answer that continues until the client disconnects or the server stops.
fn events(service: Arc<Service>, place: Arc<ConnectionSlot>, first: u64) -> axum::http::Response<Body> {
    let stream = futures_util::stream::unfold((service, place, first), |(service, place, first)| async move {
        place.waits_for(ConnectionPhase::Events);
        let mut last = service.index.advice.subscribe();
        tokio::select! {
            _ = last.wait_for(|last| *last > first) => {}
            () = sleep(HEARTBEAT) => {}
            () = service.front.stopped() => return None,
        }
        let (text, last) = {
            let index = service.index.index();
            let advice = index.advice(first);
            let advice = &advice[..advice.len().min(MAX_ITEMS)];
            match advice.last() {
                Some(last) => (advice.iter().map(event).collect(), last.sequence),
                None => (":\n\n".to_string(), first),
            }
        };
        Some((Ok::<_, std::convert::Infallible>(Bytes::from(text)), (service, place, last)))
    });
    plain("text/event-stream", Body::from_stream(stream))
}

fn event(advice: &Advice) -> String {
    let data = serde_json::to_string(advice).expect("advice is plain values");
    format!("id: {}\nevent: advice\ndata: {data}\n\n", advice.sequence)
}
