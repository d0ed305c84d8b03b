//! Table 2: the sets of pages on the most servers. Only its form is reproduced, because its rows
//! describe the web of 1997.

use super::super::source::{MeasuredRun, not_ours};
use super::super::{FigureRow, Options, figure};
use webtwin_base::error::Result;

/// Table 2: description and approximate number of server replicas, by rank.
const PUBLISHED: [(&str, f64); 5] = [
    ("TUCOWS WinSock utilities", 100.0),
    ("Microsoft Internet Information Server 2.0 Manuals", 90.0),
    ("UNIX Help Pages", 75.0),
    ("RedHat Linux Manual Version 4.2", 55.0),
    ("JAVA 1.0.2 API Documentation", 50.0),
];

/// Reproduces the form of Table 2.
pub(super) fn table_2(options: &Options) -> Result<Vec<FigureRow>> {
    let job = include_str!("../../../jobs/repro/sgm98-table2.toml");
    let run = MeasuredRun::given_or_made(options, "jobs/repro/sgm98-table2.toml", job)?;
    let mut rows = vec![figure("pages", run.summary.pages.pages as f64, "pages")];
    let mut clusters: Vec<_> = run.summary.largest_similar_clusters.iter().collect();
    clusters.sort_by_key(|cluster| std::cmp::Reverse(cluster.servers));
    for (rank, cluster) in clusters.into_iter().take(5).enumerate() {
        let label = format!("{}: {} ({} pages)", rank + 1, cluster.url, cluster.size);
        rows.push(figure(&label, f64::from(cluster.servers), "servers"));
    }
    let servers = &run.summary.servers;
    rows.push(figure("hosts", run.summary.hosts as f64, "hosts"));
    rows.push(figure("servers, aliases folded", servers.servers as f64, "servers"));
    for (label, pages) in [
        ("copies by URL aliases", servers.surplus.url_alias),
        ("copies on the same server that are similar only", servers.surplus.same_server),
        ("copies by server aliases", servers.surplus.server_alias),
        ("copies on other servers", servers.surplus.replicated),
        ("pages on ten servers and more, all copies", servers.surplus.popular_pages),
    ] {
        rows.push(figure(label, pages as f64, "pages"));
    }
    // The crawls that we can measure do not contain these, so the rows are separate. The paper has
    // no counts for its reasons.
    for (rank, (label, servers)) in PUBLISHED.into_iter().enumerate() {
        rows.push(not_ours(&format!("{}: {label} (the paper's)", rank + 1), servers, "servers"));
    }
    Ok(rows)
}
