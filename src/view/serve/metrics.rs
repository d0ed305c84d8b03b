//! Counters of look-ups and reloads. The front counts requests.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use super::current::Served;
use crate::lookup::answer::UrlAction;
use webtwin_http::gauge;

/// Routes that are counted separately. A route that ends with a slash includes all paths below it.
pub(super) const ROUTES: &[&str] = &[
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
    "/v1/search",
    "/v1/reload",
    "/",
    "/collections",
    "/sets",
    "/set/",
    "/collection/",
    "/page",
    "/compare",
    "/search",
    "/style.css",
];

/// Counters of the server.
#[derive(Default)]
pub(super) struct LookupMetrics {
    lookups: [AtomicU64; UrlAction::ALL.len()],
    reloads: [AtomicU64; 2],
}

impl LookupMetrics {
    pub(super) fn count_lookups(&self, action: UrlAction, count: u64) {
        self.lookups[action as usize].fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn reloaded(&self, is_ok: bool) {
        self.reloads[usize::from(is_ok)].fetch_add(1, Ordering::Relaxed);
    }

    /// Renders all counters in the text format of Prometheus.
    pub(super) fn text(&self, snapshot: &Served) -> String {
        let mut output = String::new();
        let mut line = |args: std::fmt::Arguments<'_>| writeln!(output, "{args}").expect("writing to a string");
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        line(format_args!(
            "# HELP webtwin_lookups_total URLs and ids that were looked up.\n# TYPE webtwin_lookups_total counter"
        ));
        for action in UrlAction::ALL {
            let count = read(&self.lookups[action as usize]);
            line(format_args!("webtwin_lookups_total{{action=\"{}\"}} {count}", action.as_str()));
        }
        line(format_args!(
            "# HELP webtwin_reloads_total Reloads of the index, by success.\n# TYPE webtwin_reloads_total counter"
        ));
        for (is_ok, count) in ["false", "true"].iter().zip(&self.reloads) {
            line(format_args!("webtwin_reloads_total{{ok=\"{is_ok}\"}} {}", read(count)));
        }
        let about_run = &snapshot.index.about;
        line(format_args!("# HELP webtwin_index_info The index that is served.\n# TYPE webtwin_index_info gauge"));
        line(format_args!(
            "webtwin_index_info{{run=\"{}\",digest=\"{}\"}} 1",
            about_run.run.result, about_run.run.digest
        ));
        gauge(&mut output, "webtwin_index_pages", "Pages of the index.", about_run.pages);
        gauge(
            &mut output,
            "webtwin_index_bytes",
            "Size of the mapped files of the index in bytes.",
            snapshot.index.len_bytes(),
        );
        output
    }
}
