//! Admission of requests: who may send them, how many at a time, and how long each may take. Also
//! the headers of every response.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, HOST, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Request, Response, StatusCode};
use tokio::time::timeout;
use tower_service::Service;

use crate::Front;
use crate::places::ConnectionSlot;
use crate::problem::Problem;

/// Returns the names by which the server may be addressed: the given ones and the address itself,
/// with and without the port.
pub(crate) fn names(address: SocketAddr, names_given: &[String]) -> Vec<String> {
    let (ip, port) = (address.ip(), address.port());
    let mut hosts: Vec<String> = names_given.iter().map(|name| name.to_ascii_lowercase()).collect();
    hosts.push(if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() });
    if ip.is_loopback() {
        hosts.extend(["localhost", "127.0.0.1", "[::1]"].map(String::from));
    }
    let with_port: Vec<String> = hosts.iter().map(|host| format!("{host}:{port}")).collect();
    hosts.extend(with_port);
    hosts
}

/// Answers a request, valid or not. Handlers get the place of its connection as an extension.
pub(crate) async fn answer(
    front: &Front,
    place: &Arc<ConnectionSlot>,
    router: axum::Router,
    mut request: Request<Body>,
) -> Response<Body> {
    let start = Instant::now();
    let route = front.metrics.route_of(request.uri().path());
    let _in_flight = Counted::new(front);
    let mut response = match refused(front, place, &request) {
        Some(response) => response,
        None => {
            request.extensions_mut().insert(Arc::clone(place));
            routed(front, router, request).await
        }
    };
    let headers = response.headers_mut();
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    }
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    headers.insert("referrer-policy", HeaderValue::from_static("no-referrer"));
    front.metrics.answered(route, response.status(), start.elapsed());
    response
}

async fn routed(front: &Front, mut router: axum::Router, request: Request<Body>) -> Response<Body> {
    // The router never fails: its error type is `Infallible`.
    match timeout(front.settings.limits.request, router.call(request)).await {
        Ok(Ok(response)) => response,
        Ok(Err(impossible)) => match impossible {},
        Err(_) => Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "timeout",
            "the request was not received and answered in time; send it again",
        )
        .response(),
    }
}

/// Returns the response to a request that is refused before routing; `None` for admitted requests.
fn refused(front: &Front, place: &ConnectionSlot, request: &Request<Body>) -> Option<Response<Body>> {
    let path = request.uri().path();
    // Monitors of the process address it by an IP address of their own and have no key. They learn
    // nothing from these paths.
    let open = matches!(path, "/health" | "/ready");
    if !open {
        if let Some(refusal) = wrong_host(front, request) {
            return Some(refusal.response());
        }
        if !front.keys.is_empty() && !has_key(front, request) {
            let refusal = Problem::new(
                StatusCode::UNAUTHORIZED,
                "no_key",
                "the request has no key of the server; send the header Authorization: Bearer KEY",
            );
            let mut response = refusal.response();
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return Some(response);
        }
        place.let_in();
        if front.places.answering() > front.settings.limits.in_flight {
            return Some(Problem::busy("the server has reached its limit of simultaneous requests").response());
        }
    }
    None
}

/// Returns a problem if `Host` is not a name of the server. A browser that shows a page of another
/// site must not reach the server under a name of that site (DNS rebinding).
fn wrong_host(front: &Front, request: &Request<Body>) -> Option<Problem> {
    let message = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let authority = request.uri().authority().map(|authority| authority.as_str());
    let Some(host) = authority.or(message) else {
        return Some(Problem::new(StatusCode::BAD_REQUEST, "no_host", "the request has no Host header; send one"));
    };
    let host = host.to_ascii_lowercase();
    match front.names.contains(&host) {
        true => None,
        false => Some(Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "wrong_host",
            "the Host header does not name this server; start the server with --host NAME to allow the name",
        )),
    }
}

fn has_key(front: &Front, request: &Request<Body>) -> bool {
    let key_given = request.headers().get(AUTHORIZATION).map(|value| value.as_bytes());
    let key = key_given
        .and_then(|given| given.split_at_checked(7))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"Bearer "));
    key.is_some_and(|(_, key)| front.keys.name(key.trim_ascii()).is_some())
}

/// Guard of a request that is counted as in flight until it is dropped.
struct Counted<'s> {
    front: &'s Front,
}

impl<'s> Counted<'s> {
    fn new(front: &'s Front) -> Counted<'s> {
        front.metrics.in_flight.fetch_add(1, Ordering::Relaxed);
        Counted { front }
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.front.metrics.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
