//! URLs host by host, with the owners of hosts, in bounded memory: in shares on disk where memory has a bound.

use super::avoid_table::BYTES_AT_ONCE;
use super::prefix_roots::PrefixRoots;
use crate::reading::byte_lists::ByteLists;
use crate::reading::captures::Crawl;
use crate::reading::lists::until_failure;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{HostId, Number, Page, splitmix64};
use webtwin_core::applications::prefixes::Visited;
use webtwin_engine::{HashOwners, Net, Owners};
use webtwin_storage::spill::TAPE_BLOCK_BYTES;
use webtwin_storage::spill_file::Disk;

/// Calls `each` with the pages of one host after the other, ascending by URL, with the owner of the host; `to_skip` are those of this worker's
/// pages that may be skipped, ascending, and `roots` bound the prefixes over them. One exchange, or with a `disk` as many as it takes to send some megabytes at a time.
///
/// # Errors
/// Those of `each`, and of the disk, which captures may be on, too; or when the run has ended.
///
/// # Memory
/// All URLs; or with a disk 4 bytes a page, one share, and as much again for the ends of all shares: about the square root of the
/// bytes of a worker's URLs in MiB.
pub fn each_host(
    net: &mut Net<'_>,
    crawl: &Crawl,
    (to_skip, roots): (&[Page], &PrefixRoots),
    disk: Option<&Disk>,
    mut each: impl FnMut(&[Visited]) -> Result<()>,
) -> Result<()> {
    let owners = HashOwners::new(net);
    let mut to_skip = to_skip.iter().peekable();
    let mut roots = roots.reader();
    let rows = crawl.pages.map(|row| {
        let avoid = to_skip.next_if_eq(&&row.page).is_some();
        let root = if avoid { roots.root(row.page, row.url())? } else { 0 };
        let host = crawl.directory.hosts[row.page];
        let visited = Visited { url: row.url().to_string(), avoid, bytes: row.body_bytes, root };
        Result::Ok((owners.owner(host), (host, visited)))
    });
    let rows = rows.map(|row| row?);
    let Some(disk) = disk else {
        let visited = until_failure(rows, |rows| net.exchange_rows("URLs by host", rows))?;
        return host_by_host(visited, each);
    };
    let mut bytes = 0;
    crawl.pages.each(|row| bytes += weight(row.url()))?;
    let [bytes] = net.sum("bytes of URLs", [bytes])?;
    let count = (bytes / net.peers() as u64 / TAPE_BLOCK_BYTES as u64).isqrt() + 1;
    let mut shares = (0..count).map(|_| ByteLists::on(disk)).collect::<Result<Vec<_>>>()?;
    let mut record = Vec::new();
    let take = |(host, visited): (HostId, Visited)| {
        write(host, &visited, &mut record);
        // Owners go by the low bits.
        shares[((splitmix64(host.into()) >> 32) % count) as usize].push(&record)
    };
    let most = (BYTES_AT_ONCE, |(_, visited): &(HostId, Visited)| weight(&visited.url));
    until_failure(rows, |rows| net.exchange_in_rounds("URLs by host", rows, most, take))?;
    for share in shares {
        net.check()?;
        let mut reader = share.reader();
        let visited = (0..share.len()).map(|number| read(reader.get(number)?)).collect::<Result<Vec<_>>>()?;
        host_by_host(visited, &mut each)?;
    }
    Ok(())
}

/// Bytes of a page with this URL.
fn weight(url: &str) -> u64 {
    (size_of::<(HostId, Visited)>() + url.len()) as u64
}

fn host_by_host(mut visited: Vec<(HostId, Visited)>, mut each: impl FnMut(&[Visited]) -> Result<()>) -> Result<()> {
    visited.sort_unstable();
    let (hosts, visited): (Vec<HostId>, Vec<Visited>) = visited.into_iter().unzip();
    let mut rest = &visited[..];
    for of_host in hosts.chunk_by(|x, y| x == y) {
        let pages;
        (pages, rest) = rest.split_at(of_host.len());
        each(pages)?;
    }
    Ok(())
}

/// Replaces the content of `into` by the bytes that a page has on disk.
fn write(host: HostId, Visited { url, avoid, bytes, root }: &Visited, into: &mut Vec<u8>) {
    into.clear();
    into.extend(host.number().to_le_bytes());
    into.extend(bytes.to_le_bytes());
    into.extend(root.to_le_bytes());
    into.push(u8::from(*avoid));
    into.extend(url.as_bytes());
}

fn read(record: &[u8]) -> Result<(HostId, Visited)> {
    let damaged = || Error::Invariant("a URL on disk is no text".into());
    let (host, rest) = record.split_first_chunk().ok_or_else(damaged)?;
    let (bytes, rest) = rest.split_first_chunk().ok_or_else(damaged)?;
    let (root, rest) = rest.split_first_chunk().ok_or_else(damaged)?;
    let ([avoid], url) = rest.split_first_chunk().ok_or_else(damaged)?;
    let url = std::str::from_utf8(url).map_err(|_| damaged())?.to_string();
    let (bytes, root) = (u64::from_le_bytes(*bytes), u32::from_le_bytes(*root));
    Ok((HostId(u32::from_le_bytes(*host)), Visited { url, avoid: *avoid == 1, bytes, root }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_page_on_disk_is_what_it_was(host: u32, url: String, avoid: bool, bytes: u64, root: u32) {
            let visited = Visited { url, avoid, bytes, root };
            let mut record = vec![9];
            write(HostId(host), &visited, &mut record);
            prop_assert_eq!(read(&record).unwrap(), (HostId(host), visited));
        }
    }
}
