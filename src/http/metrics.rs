//! Counters of requests and their durations, in the text format of Prometheus.
//!
//! No metrics library is used: all names are known in advance, so counters are arrays of atomics
//! without locks, and a library would only shorten the formatting.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::StatusCode;

use crate::places::ConnectionSlots;

const CODES: [u16; 15] = [200, 302, 304, 400, 401, 404, 405, 408, 413, 415, 421, 422, 500, 503, 0];

/// Upper bounds of the histogram buckets, in microseconds.
const BOUNDS: [u64; 10] = [50, 100, 250, 500, 1000, 5000, 25_000, 100_000, 1_000_000, 10_000_000];

#[derive(Default)]
struct OfRoute {
    codes: [AtomicU64; CODES.len()],
    buckets: [AtomicU64; BOUNDS.len()],
    micros: AtomicU64,
}

/// Counters of a service.
pub(crate) struct ConnectionMetrics {
    /// Counters of each route with its path. A path that ends with a slash includes all paths below
    /// it. The last route counts all other paths.
    routes: Vec<(&'static str, OfRoute)>,
    /// Number of requests in flight.
    pub in_flight: AtomicUsize,
}

impl ConnectionMetrics {
    /// Makes counters for the routes of a service, and for those that every service has.
    pub(crate) fn new(routes: &[&'static str]) -> ConnectionMetrics {
        let routes = routes.iter().chain(&["/health", "/ready", "/metrics", "/openapi.json", "other"]);
        let routes = routes.map(|&route| (route, OfRoute::default())).collect();
        ConnectionMetrics { routes, in_flight: AtomicUsize::new(0) }
    }

    /// Returns the index of the route of a path.
    pub(crate) fn route_of(&self, path: &str) -> usize {
        let is_below = |route: &str| route.len() > 1 && route.ends_with('/') && path.starts_with(route);
        let exact = self.routes.iter().position(|(route, _)| *route == path);
        exact.or_else(|| self.routes.iter().position(|(route, _)| is_below(route))).unwrap_or(self.routes.len() - 1)
    }

    /// Counts a request with the status and the duration of its response.
    pub(crate) fn answered(&self, route: usize, status: StatusCode, duration: Duration) {
        let route_counts = &self.routes[route].1;
        let code = CODES.iter().position(|code| *code == status.as_u16()).unwrap_or(CODES.len() - 1);
        let micros = duration.as_micros() as u64;
        route_counts.codes[code].fetch_add(1, Ordering::Relaxed);
        route_counts.micros.fetch_add(micros, Ordering::Relaxed);
        if let Some(bucket) = BOUNDS.iter().position(|bound| micros <= *bound) {
            route_counts.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Formats all metrics.
    pub(crate) fn text(&self, places: &ConnectionSlots) -> String {
        let mut text = String::new();
        let mut line = |args: std::fmt::Arguments<'_>| writeln!(text, "{args}").expect("writing to a string");
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        line(format_args!(
            "# HELP webtwin_requests_total Requests answered, by route and status code.\n\
             # TYPE webtwin_requests_total counter"
        ));
        for (route, route_counts) in &self.routes {
            for (code, count) in CODES.iter().zip(&route_counts.codes).filter(|one| read(one.1) > 0) {
                line(format_args!("webtwin_requests_total{{route=\"{route}\",code=\"{code}\"}} {}", read(count)));
            }
        }
        line(format_args!(
            "# HELP webtwin_request_seconds Seconds from the head of a request to its answer.\n\
             # TYPE webtwin_request_seconds histogram"
        ));
        for (route, route_counts) in &self.routes {
            let total: u64 = route_counts.codes.iter().map(read).sum();
            if total == 0 {
                continue;
            }
            // Buckets of Prometheus are cumulative, but each counter only has its own interval.
            let mut cumulative = 0;
            for (bound, count) in BOUNDS.iter().zip(&route_counts.buckets) {
                cumulative += read(count);
                let seconds = *bound as f64 / 1e6;
                line(format_args!("webtwin_request_seconds_bucket{{route=\"{route}\",le=\"{seconds}\"}} {cumulative}"));
            }
            line(format_args!("webtwin_request_seconds_bucket{{route=\"{route}\",le=\"+Inf\"}} {total}"));
            line(format_args!(
                "webtwin_request_seconds_sum{{route=\"{route}\"}} {}",
                read(&route_counts.micros) as f64 / 1e6
            ));
            line(format_args!("webtwin_request_seconds_count{{route=\"{route}\"}} {total}"));
        }
        let (connections, n_displaced) = places.counts();
        line(format_args!(
            "# HELP webtwin_connections_displaced_total Connections closed in favour of others.\n\
             # TYPE webtwin_connections_displaced_total counter\nwebtwin_connections_displaced_total {n_displaced}"
        ));
        for (name, help, value) in [
            ("webtwin_connections", "Open connections.", connections as u64),
            ("webtwin_requests_in_flight", "Requests in progress.", self.in_flight.load(Ordering::Relaxed) as u64),
            ("process_resident_memory_bytes", "Resident memory in bytes, including mapped pages.", resident_bytes()),
        ] {
            gauge(&mut text, name, help, value);
        }
        text
    }
}

/// Writes a gauge.
pub fn gauge(text: &mut String, name: &str, help: &str, value: u64) {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}").expect("writing to a string");
}

/// Returns the resident memory of this process in bytes; 0 if the system does not report it.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).map_or(0, |kib| kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_belong_to_one_route() {
        let metrics = ConnectionMetrics::new(&["/v1/near", "/v1/near/", "/", "/set/"]);
        let route_name = |path: &str| metrics.routes[metrics.route_of(path)].0;
        for (path, route) in [
            ("/", "/"),
            ("/v1/near/00", "/v1/near/"),
            ("/v1/near", "/v1/near"),
            ("/v1/nearby", "other"),
            ("/x", "other"),
            ("/set/1", "/set/"),
        ] {
            assert_eq!(route_name(path), route);
        }
    }
}
