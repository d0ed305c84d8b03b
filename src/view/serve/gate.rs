//! Who may ask, how much at a time, and how long it may take; and what every answer says of itself.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Instant;

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, ETAG, HOST, IF_NONE_MATCH, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use tokio::time::timeout;
use tower_service::Service;

use super::Shared;
use super::current::Served;
use super::metrics::route_of;
use super::places::Place;
use super::problem::Problem;

/// The run of which an answer is.
const RUN: HeaderName = HeaderName::from_static("x-webtwin-run");

/// Names by which the server may be called: those given, and the address itself, with and without the port.
pub(super) fn names(address: SocketAddr, given: &[String]) -> Vec<String> {
    let (ip, port) = (address.ip(), address.port());
    let mut hosts: Vec<String> = given.iter().map(|name| name.to_ascii_lowercase()).collect();
    hosts.push(if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() });
    if ip.is_loopback() {
        hosts.extend(["localhost", "127.0.0.1", "[::1]"].map(String::from));
    }
    let with_port: Vec<String> = hosts.iter().map(|host| format!("{host}:{port}")).collect();
    hosts.extend(with_port);
    hosts
}

/// Answers a request, whatever it is.
pub(super) async fn answer(
    shared: &Shared,
    place: &Place,
    router: axum::Router,
    mut request: Request<Body>,
) -> Response<Body> {
    let began = Instant::now();
    let route = route_of(request.uri().path());
    let served = shared.current.get();
    let _in_flight = Counted::new(shared);
    let mut response = match checked(shared, place, &served, &request) {
        Some(response) => response,
        None => {
            request.extensions_mut().insert(std::sync::Arc::clone(&served));
            routed(shared, router, request).await
        }
    };
    let headers = response.headers_mut();
    headers.insert(RUN, served.run.clone());
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    }
    if matches!(response.status(), StatusCode::OK | StatusCode::NOT_MODIFIED) && depends_on_run_alone(shared, route) {
        response.headers_mut().insert(ETAG, served.tag.clone());
    }
    let headers = response.headers_mut();
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    headers.insert("referrer-policy", HeaderValue::from_static("no-referrer"));
    shared.metrics.answered(route, response.status(), began.elapsed());
    response
}

/// Whether the answers of a route are the same as long as the run is: not where a day decides, nor on how the server is.
fn depends_on_run_alone(shared: &Shared, route: usize) -> bool {
    shared.settings.recheck == 0.0
        && !matches!(super::metrics::ROUTES[route], "/health" | "/ready" | "/metrics" | "other")
}

async fn routed(shared: &Shared, mut router: axum::Router, request: Request<Body>) -> Response<Body> {
    // Its own error is that there is none.
    match timeout(shared.settings.limits.request, router.call(request)).await {
        Ok(Ok(response)) => response,
        Ok(Err(never)) => match never {},
        Err(_) => Problem::new(StatusCode::REQUEST_TIMEOUT, "timeout", "the request took too long, or came too slowly")
            .response(),
    }
}

/// The answer to a request that is not even routed; `None` for others.
fn checked(shared: &Shared, place: &Place, served: &Served, request: &Request<Body>) -> Option<Response<Body>> {
    let path = request.uri().path();
    // Whoever watches the process calls it by an address of its own, has no key, and learns nothing.
    let open = matches!(path, "/health" | "/ready");
    if !open {
        if let Some(refusal) = wrong_host(shared, request) {
            return Some(refusal.response());
        }
        if !shared.keys.is_empty() && !has_key(shared, request) {
            let refusal = Problem::new(
                StatusCode::UNAUTHORIZED,
                "no_key",
                "send one of the server's keys: Authorization: Bearer KEY",
            );
            let mut response = refusal.response();
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return Some(response);
        }
        place.let_in();
        if shared.places.answering() > shared.settings.limits.in_flight {
            let refusal = Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "busy",
                "too many requests at a time; try again in a moment",
            );
            let mut response = refusal.response();
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            return Some(response);
        }
    }
    let is_get = request.method() == Method::GET || request.method() == Method::HEAD;
    let known = request.headers().get(IF_NONE_MATCH);
    if is_get && known == Some(&served.tag) && depends_on_run_alone(shared, route_of(path)) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return Some(response);
    }
    None
}

/// A page of another site that a browser shows must not talk to the server by a name of its own (DNS rebinding).
fn wrong_host(shared: &Shared, request: &Request<Body>) -> Option<Problem> {
    let told = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let authority = request.uri().authority().map(|authority| authority.as_str());
    let Some(host) = authority.or(told) else {
        return Some(Problem::new(StatusCode::BAD_REQUEST, "no_host", "the request has no Host"));
    };
    let host = host.to_ascii_lowercase();
    match shared.names.contains(&host) {
        true => None,
        false => Some(Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "wrong_host",
            "the server is not called by this name; --host NAME lets it be",
        )),
    }
}

fn has_key(shared: &Shared, request: &Request<Body>) -> bool {
    let given = request.headers().get(AUTHORIZATION).map(|value| value.as_bytes());
    let key =
        given.and_then(|given| given.split_at_checked(7)).filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"Bearer "));
    key.is_some_and(|(_, key)| shared.keys.name(key.trim_ascii()).is_some())
}

/// A request that is counted while it is on its way.
struct Counted<'s> {
    shared: &'s Shared,
}

impl<'s> Counted<'s> {
    fn new(shared: &'s Shared) -> Counted<'s> {
        shared.metrics.in_flight.fetch_add(1, Ordering::Relaxed);
        Counted { shared }
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.shared.metrics.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The query of a request, as a value.
pub(super) fn query<T: serde::de::DeserializeOwned>(uri: &Uri) -> Result<T, Problem> {
    let read = axum::extract::Query::<T>::try_from_uri(uri);
    read.map(|query| query.0).map_err(|cause| Problem::new(StatusCode::BAD_REQUEST, "bad_query", cause.body_text()))
}
