//! The table `hosts`, which is the Server Map of the papers. (The URL Map is `pages`.)

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::parts::TablePart;
use crate::reading::captures::{Crawl, host};
use crate::shuffle::directory::TablePartitions;
use webtwin_base::error::Result;
use webtwin_base::ids::{HostId, Page};
use webtwin_engine::{Net, Owners};
use webtwin_pages::public_suffix::registered_domain;
use webtwin_storage::table::{Table, TableColumn};

/// Row of the `hosts` table. Ordered by host id.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct HostRow {
    host_id: u64,
    host: String,
    pages: u64,
    body_bytes: u64,
    skip_pages: u64,
    skip_bytes: u64,
}

/// Builds the `hosts` table: pages and bytes of each host, and pages and bytes that a crawler may
/// skip. Takes one exchange.
pub fn hosts(
    net: &mut Net<'_>,
    crawl: &Crawl,
    pages_to_skip: &[Page],
    partitions: TablePartitions,
) -> Result<Vec<TablePart>> {
    let mut rows: BTreeMap<HostId, HostRow> = BTreeMap::new();
    let mut skipped = pages_to_skip.iter().peekable();
    crawl.pages.for_each(|page| {
        let row = rows.entry(crawl.directory.hosts[page.page]).or_insert_with(|| {
            let name = host(page.url());
            HostRow { host_id: xxh3_64(name.as_bytes()), host: name.to_string(), ..HostRow::default() }
        });
        let skip = u64::from(skipped.next_if_eq(&&page.page).is_some());
        row.pages += 1;
        row.body_bytes += page.body_bytes;
        row.skip_pages += skip;
        row.skip_bytes += skip * page.body_bytes;
    })?;
    let rows: Vec<_> = rows.into_values().map(|row| Ok((partitions.owner(row.host_id), row))).collect();
    let mut sums: BTreeMap<(u64, String), HostRow> = BTreeMap::new();
    for row in net.exchange_values("hosts by name", rows)? {
        let sum = sums.entry((row.host_id, row.host.clone())).or_default();
        sum.pages += row.pages;
        sum.body_bytes += row.body_bytes;
        sum.skip_pages += row.skip_pages;
        sum.skip_bytes += row.skip_bytes;
    }
    let rows: Vec<HostRow> = sums.into_iter().map(|((host_id, host), sum)| HostRow { host_id, host, ..sum }).collect();
    let runs = rows.chunk_by(|x, y| partitions.partition(x.host_id) == partitions.partition(y.host_id));
    let part = |rows: &[HostRow]| TablePart {
        name: "hosts",
        partition: partitions.partition(rows[0].host_id),
        rows: host_table(rows),
    };
    Ok(runs.map(part).collect())
}

fn host_table(rows: &[HostRow]) -> Table {
    let counts = |value: fn(&HostRow) -> u64| TableColumn::Count(rows.iter().map(value).collect());
    let domain = |row: &HostRow| registered_domain(row.host.split(':').next().unwrap_or_default()).to_string();
    Table::new([
        ("host_id", TableColumn::Id(rows.iter().map(|row| row.host_id).collect())),
        ("host", TableColumn::Text(rows.iter().map(|row| row.host.clone()).collect())),
        ("domain", TableColumn::Text(rows.iter().map(domain).collect())),
        ("pages", counts(|row| row.pages)),
        ("body_bytes", counts(|row| row.body_bytes)),
        ("skip_pages", counts(|row| row.skip_pages)),
        ("skip_bytes", counts(|row| row.skip_bytes)),
    ])
}
