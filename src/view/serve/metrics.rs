//! What was asked and how long it took, in the text format of Prometheus.
//!
//! It is our own because all names are known beforehand: counters are arrays, which no request waits for, and a library would
//! shorten only how they are written.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::StatusCode;

use super::current::Served;
use super::places::Places;
use crate::lookup::answer::Action;

/// Routes that are counted apart; a path below one that ends with a slash is of that one.
pub(super) const ROUTES: [&str; 28] = [
    "/v1/page",
    "/v1/pages",
    "/v1/pages.txt",
    "/v1/check",
    "/v1/near",
    "/v1/near/",
    "/v1/sets",
    "/v1/collections",
    "/v1/set/",
    "/v1/collection/",
    "/v1/explain",
    "/v1/run",
    "/v1/alternates",
    "/v1/redirect",
    "/v1/reload",
    "/openapi.json",
    "/health",
    "/ready",
    "/metrics",
    "/",
    "/collections",
    "/sets",
    "/set/",
    "/collection/",
    "/page",
    "/compare",
    "/style.css",
    "other",
];

/// Number of the route of a path.
pub(super) fn route_of(path: &str) -> usize {
    let below = |route: &&str| route.len() > 1 && route.ends_with('/') && path.starts_with(*route);
    let exact = ROUTES.iter().position(|route| *route == path);
    exact.or_else(|| ROUTES.iter().position(below)).unwrap_or(ROUTES.len() - 1)
}

const CODES: [u16; 15] = [200, 302, 304, 400, 401, 404, 405, 408, 413, 415, 421, 422, 500, 503, 0];

/// Upper bounds of the histogram, in microseconds.
const BOUNDS: [u64; 10] = [50, 100, 250, 500, 1000, 5000, 25_000, 100_000, 1_000_000, 10_000_000];

#[derive(Default)]
struct OfRoute {
    codes: [AtomicU64; CODES.len()],
    buckets: [AtomicU64; BOUNDS.len()],
    micros: AtomicU64,
}

/// Counters.
#[derive(Default)]
pub(super) struct Metrics {
    routes: [OfRoute; ROUTES.len()],
    lookups: [AtomicU64; Action::ALL.len()],
    reloads: [AtomicU64; 2],
    /// Requests on their way.
    pub in_flight: AtomicUsize,
}

impl Metrics {
    pub(super) fn answered(&self, route: usize, status: StatusCode, took: Duration) {
        let of = &self.routes[route];
        let code = CODES.iter().position(|code| *code == status.as_u16()).unwrap_or(CODES.len() - 1);
        let micros = took.as_micros() as u64;
        of.codes[code].fetch_add(1, Ordering::Relaxed);
        of.micros.fetch_add(micros, Ordering::Relaxed);
        if let Some(bucket) = BOUNDS.iter().position(|bound| micros <= *bound) {
            of.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn looked_up(&self, action: Action, count: u64) {
        self.lookups[action as usize].fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn reloaded(&self, well: bool) {
        self.reloads[usize::from(well)].fetch_add(1, Ordering::Relaxed);
    }

    /// All of it.
    pub(super) fn text(&self, served: &Served, places: &Places) -> String {
        let mut out = String::new();
        let mut line = |args: std::fmt::Arguments<'_>| writeln!(out, "{args}").expect("writing to a string");
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        line(format_args!(
            "# HELP webtwin_requests_total Requests that were answered.\n# TYPE webtwin_requests_total counter"
        ));
        for (route, of) in ROUTES.iter().zip(&self.routes) {
            for (code, count) in CODES.iter().zip(&of.codes).filter(|one| read(one.1) > 0) {
                line(format_args!("webtwin_requests_total{{route=\"{route}\",code=\"{code}\"}} {}", read(count)));
            }
        }
        line(format_args!(
            "# HELP webtwin_request_seconds Time from the head of a request to its answer.\n# TYPE webtwin_request_seconds histogram"
        ));
        for (route, of) in ROUTES.iter().zip(&self.routes) {
            let all: u64 = of.codes.iter().map(read).sum();
            if all == 0 {
                continue;
            }
            let mut below = 0;
            for (bound, count) in BOUNDS.iter().zip(&of.buckets) {
                below += read(count);
                let seconds = *bound as f64 / 1e6;
                line(format_args!("webtwin_request_seconds_bucket{{route=\"{route}\",le=\"{seconds}\"}} {below}"));
            }
            line(format_args!("webtwin_request_seconds_bucket{{route=\"{route}\",le=\"+Inf\"}} {all}"));
            line(format_args!("webtwin_request_seconds_sum{{route=\"{route}\"}} {}", read(&of.micros) as f64 / 1e6));
            line(format_args!("webtwin_request_seconds_count{{route=\"{route}\"}} {all}"));
        }
        line(format_args!(
            "# HELP webtwin_lookups_total URLs and ids that were looked up.\n# TYPE webtwin_lookups_total counter"
        ));
        for action in Action::ALL {
            let count = read(&self.lookups[action as usize]);
            line(format_args!("webtwin_lookups_total{{action=\"{}\"}} {count}", action.as_str()));
        }
        line(format_args!(
            "# HELP webtwin_reloads_total Indexes that were to be taken over.\n# TYPE webtwin_reloads_total counter"
        ));
        for (well, count) in ["false", "true"].iter().zip(&self.reloads) {
            line(format_args!("webtwin_reloads_total{{ok=\"{well}\"}} {}", read(count)));
        }
        let (connections, displaced) = places.counts();
        line(format_args!(
            "# HELP webtwin_connections_displaced_total Connections that have given way to others.\n\
             # TYPE webtwin_connections_displaced_total counter\nwebtwin_connections_displaced_total {displaced}"
        ));
        let about = &served.index.about;
        line(format_args!("# HELP webtwin_index_info The index that is served.\n# TYPE webtwin_index_info gauge"));
        line(format_args!("webtwin_index_info{{run=\"{}\",digest=\"{}\"}} 1", about.run.result, about.run.digest));
        for (name, help, value) in [
            ("webtwin_index_pages", "Pages of the index.", about.pages),
            ("webtwin_index_bytes", "Bytes of its files, which are mapped.", served.index.len_bytes()),
            ("webtwin_connections", "Connections that have a place.", connections as u64),
            ("webtwin_requests_in_flight", "Requests on their way.", self.in_flight.load(Ordering::Relaxed) as u64),
            ("process_resident_memory_bytes", "Resident memory, mapped pages included.", resident_bytes()),
        ] {
            line(format_args!("# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}"));
        }
        out
    }
}

/// Resident bytes of this process; 0 where the system does not tell.
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
        let of = |path: &str| ROUTES[route_of(path)];
        for (path, route) in [
            ("/", "/"),
            ("/v1/near/00", "/v1/near/"),
            ("/v1/near", "/v1/near"),
            ("/v1/nearby", "other"),
            ("/x", "other"),
            ("/set/1", "/set/"),
        ] {
            assert_eq!(of(path), route);
        }
    }
}
