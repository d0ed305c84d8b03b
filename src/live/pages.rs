//! In-memory table of the pages: columns with a few numbers for each page, and hash tables that
//! find a page by them.
//!
//! # Memory
//! 54 bytes for each page, and 5 to 11 bytes for each of four hash tables.

use std::collections::HashMap;

use hashbrown::HashTable;

use crate::log::LogPosition;
use webtwin_base::ids::{DocId, splitmix64};

/// Bytes of the columns for each page.
const PAGE_BYTES: usize = 54;

/// Bytes of an entry of a hash table, whether it is in use or not.
const TABLE_ENTRY_BYTES: usize = 6;

/// Bytes of a host, with its name.
const HOST_BYTES: usize = 80;

/// Page number that stands for no page.
pub(crate) const NONE: u32 = u32::MAX;

/// Row of a page that is added to the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LivePageRow {
    /// Hash of the URL.
    pub doc_id: DocId,
    /// Fingerprint of the text; 0 for none.
    pub exact: u64,
    /// Hash of the part of the URL that is equal in mirrors ([`crate::advice::place`]).
    pub place: u64,
    /// Position of the page's record in the log.
    pub record: LogPosition,
    /// Number of the host.
    pub host: u32,
    /// Hash of the title; 0 for none.
    pub title: u32,
    /// Number of chunks of the sample that were not boilerplate when the page was added.
    pub counting: u16,
    /// Number of the page that this page is a copy of, or [`NONE`].
    pub original: u32,
}

/// All pages, numbered in the order in which they were added.
#[derive(Debug, Default)]
pub(crate) struct LivePages {
    doc_ids: Vec<DocId>,
    exact_hashes: Vec<u64>,
    places: Vec<u64>,
    records: Vec<LogPosition>,
    hosts: Vec<u32>,
    titles: Vec<u32>,
    counting: Vec<u16>,
    /// An earlier page of the cluster of each page, or the page itself: a union-find forest. The
    /// root of a tree is the first page of the cluster, and names the cluster.
    parents: Vec<u32>,
    /// Another page of the cluster of each page: the pages of a cluster form a circular list.
    next: Vec<u32>,
    copies: u32,
    /// The previous page of the same host, for each page.
    previous_pages: Vec<u32>,
    by_id: HashTable<u32>,
    by_exact: HashTable<u32>,
    by_place: HashTable<u32>,
    by_title: HashTable<u32>,
    host_numbers: HashMap<Box<str>, u32>,
    host_pages: Vec<u32>,
    /// The newest page of each host.
    host_last: Vec<u32>,
}

impl LivePages {
    /// Returns the number of pages, including those that a newer page of the same URL replaces.
    pub(crate) fn len(&self) -> usize {
        self.doc_ids.len()
    }

    /// Adds a page; returns its number. From then on, look-ups by URL return this page and no
    /// earlier page of the same URL.
    pub(crate) fn push(&mut self, row: LivePageRow) -> u32 {
        let number = self.len() as u32;
        let LivePages { doc_ids, exact_hashes: exacts, places, hosts, titles, .. } = self;
        doc_ids.push(row.doc_id);
        exacts.push(row.exact);
        places.push(row.place);
        hosts.push(row.host);
        titles.push(row.title);
        self.records.push(row.record);
        self.counting.push(row.counting);
        insert_page(&mut self.by_id, number, Put::Last, doc_ids, |doc_ids, page| doc_ids[page]);
        insert_page(&mut self.by_place, number, Put::First, places, |places, page| places[page]);
        if row.exact != 0 {
            insert_page(&mut self.by_exact, number, Put::First, exacts, |exacts, page| exacts[page]);
        }
        if row.title != 0 {
            let title_keys = (&*hosts, &*titles);
            insert_page(&mut self.by_title, number, Put::Last, &title_keys, |(hosts, titles), page| {
                title_key(hosts[page], titles[page])
            });
        }
        self.host_pages[row.host as usize] += 1;
        self.previous_pages.push(std::mem::replace(&mut self.host_last[row.host as usize], number));
        self.parents.push(number);
        self.next.push(number);
        if row.original != NONE {
            self.join(row.original, number);
        }
        number
    }

    /// Merges the clusters of two pages. The first page of both clusters names the result.
    pub(crate) fn join(&mut self, x: u32, y: u32) {
        let (x, y) = (self.cluster(x), self.cluster(y));
        if x != y {
            self.parents[x.max(y) as usize] = x.min(y);
            // Swapping one link of each of two circular lists joins them.
            self.next.swap(x as usize, y as usize);
            self.copies += 1;
        }
    }

    /// Returns the number of a host; assigns the next number to a new host.
    pub(crate) fn host(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.host_numbers.get(name) {
            return number;
        }
        let number = self.host_pages.len() as u32;
        self.host_numbers.insert(name.into(), number);
        self.host_pages.push(0);
        self.host_last.push(NONE);
        number
    }

    /// Returns the number of a host; `None` if the host is unknown.
    pub(crate) fn known_host(&self, name: &str) -> Option<u32> {
        self.host_numbers.get(name).copied()
    }

    /// Returns the memory that the table takes, in bytes; an estimate.
    pub(crate) fn bytes(&self) -> u64 {
        let tables = [&self.by_id, &self.by_exact, &self.by_place, &self.by_title];
        let entries: usize = tables.map(HashTable::capacity).iter().sum();
        (PAGE_BYTES * self.len() + TABLE_ENTRY_BYTES * entries + HOST_BYTES * self.host_pages.len()) as u64
    }

    /// Returns the number of hosts.
    pub(crate) fn hosts(&self) -> usize {
        self.host_pages.len()
    }

    /// Returns the number of clusters.
    pub(crate) fn clusters(&self) -> usize {
        self.len() - self.copies as usize
    }

    /// Returns the pages of a host, the newest first.
    pub(crate) fn on_host(&self, host: u32) -> impl Iterator<Item = u32> + '_ {
        let page = |page: u32| Some(page).filter(|&page| page != NONE);
        std::iter::successors(page(self.host_last[host as usize]), move |&at| page(self.previous_pages[at as usize]))
    }

    /// Returns the number of pages of a host.
    pub(crate) fn pages_of_host(&self, host: u32) -> u32 {
        self.host_pages[host as usize]
    }

    /// Returns the newest page of a URL.
    pub(crate) fn by_id(&self, doc_id: DocId) -> Option<u32> {
        self.by_id.find(splitmix64(doc_id), |&page| self.doc_ids[page as usize] == doc_id).copied()
    }

    /// Returns the first page with a text.
    pub(crate) fn by_exact(&self, exact: u64) -> Option<u32> {
        self.by_exact.find(splitmix64(exact), |&page| self.exact_hashes[page as usize] == exact).copied()
    }

    /// Returns the first page at a place.
    pub(crate) fn by_place(&self, place: u64) -> Option<u32> {
        self.by_place.find(splitmix64(place), |&page| self.places[page as usize] == place).copied()
    }

    /// Returns the newest page of a host with a title.
    pub(crate) fn by_title(&self, host: u32, title: u32) -> Option<u32> {
        let is_match = |&page: &u32| (self.hosts[page as usize], self.titles[page as usize]) == (host, title);
        self.by_title.find(splitmix64(title_key(host, title)), is_match).copied()
    }

    /// Returns the hash of a page's URL.
    pub(crate) fn doc_id(&self, page: u32) -> DocId {
        self.doc_ids[page as usize]
    }

    /// Returns the fingerprint of a page's text.
    pub(crate) fn exact(&self, page: u32) -> u64 {
        self.exact_hashes[page as usize]
    }

    /// Returns the position of a page's record in the log.
    pub(crate) fn record(&self, page: u32) -> LogPosition {
        self.records[page as usize]
    }

    /// Returns the host of a page.
    pub(crate) fn host_of(&self, page: u32) -> u32 {
        self.hosts[page as usize]
    }

    /// Returns the number of chunks of a page that were not boilerplate when the page was added.
    pub(crate) fn counting(&self, page: u32) -> u32 {
        u32::from(self.counting[page as usize])
    }

    /// Returns the cluster of a page: the number of its first page.
    pub(crate) fn cluster(&self, page: u32) -> u32 {
        let mut root = page;
        while self.parents[root as usize] != root {
            root = self.parents[root as usize];
        }
        root
    }

    /// Returns the other pages of a page's cluster.
    pub(crate) fn copies(&self, page: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(self.next[page as usize]), |&at| Some(self.next[at as usize]))
            .take_while(move |&at| at != page)
    }
}

/// Page that a hash table keeps of two pages with one key.
#[derive(Clone, Copy, PartialEq)]
enum Put {
    First,
    Last,
}

/// Inserts a page into the hash table of a key.
fn insert_page<Columns>(
    table: &mut HashTable<u32>,
    number: u32,
    policy: Put,
    columns: &Columns,
    key: impl Fn(&Columns, usize) -> u64,
) {
    let hash_of_page = |page: &u32| splitmix64(key(columns, *page as usize));
    let row_key = key(columns, number as usize);
    let entry = table.entry(splitmix64(row_key), |&page| key(columns, page as usize) == row_key, hash_of_page);
    match entry {
        hashbrown::hash_table::Entry::Occupied(mut occupied) if policy == Put::Last => *occupied.get_mut() = number,
        hashbrown::hash_table::Entry::Occupied(_) => {}
        hashbrown::hash_table::Entry::Vacant(free) => drop(free.insert(number)),
    }
}

fn title_key(host: u32, title: u32) -> u64 {
    u64::from(host) << 32 | u64::from(title)
}

#[cfg(test)]
mod tests {
    use webtwin_base::ids::doc_id as hash;

    use super::*;

    fn row(url: &str, exact: u64, title: u32, original: u32) -> LivePageRow {
        let doc_id = hash(url);
        LivePageRow {
            doc_id,
            exact,
            place: doc_id,
            record: LogPosition::default(),
            host: 0,
            title,
            counting: 0,
            original,
        }
    }

    #[test]
    fn pages_are_found_by_their_properties() {
        let mut pages = LivePages::default();
        assert_eq!((pages.host("a.example"), pages.host("b.example"), pages.host("a.example")), (0, 1, 0));
        let first = pages.push(row("http://a.example/1", 5, 7, NONE));
        let copy = pages.push(row("http://a.example/2", 5, 7, first));
        let repeated_page = pages.push(row("http://a.example/1", 6, 0, NONE));
        let third_page = pages.push(row("http://a.example/3", 0, 0, copy));
        assert_eq!(pages.by_id(hash("http://a.example/1")), Some(repeated_page));
        assert_eq!(pages.by_place(hash("http://a.example/1")), Some(first));
        assert_eq!((pages.by_exact(5), pages.by_exact(6), pages.by_exact(0)), (Some(first), Some(repeated_page), None));
        assert_eq!((pages.by_title(0, 7), pages.by_title(1, 7)), (Some(copy), None));
        let copies = |pages: &LivePages, page| {
            let mut copies: Vec<u32> = pages.copies(page).collect();
            copies.sort_unstable();
            copies
        };
        assert_eq!((copies(&pages, first), copies(&pages, repeated_page)), (vec![copy, third_page], vec![]));
        assert_eq!((pages.clusters(), pages.pages_of_host(0), pages.pages_of_host(1)), (2, 4, 0));
        pages.join(repeated_page, third_page);
        assert_eq!(
            (copies(&pages, repeated_page), pages.cluster(repeated_page)),
            (vec![first, copy, third_page], first)
        );
    }
}
