//! Originals with their mirrors, from the tables `collections`, `members` and `avoid`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::page_rows::PageRows;
use crate::report::contract::{MirrorCopy, MirrorGroup, MirrorReport};
use crate::report::top::SmallestKeys;
use webtwin_base::error::Result;
use webtwin_base::ids::DocId;
use webtwin_results::FinishedRun;
use webtwin_results::scan::{scan, scan_some};
use webtwin_storage::table::Table;

/// Maximum number of mirrors to display.
const MAX_MIRRORS: usize = 200;

/// Maximum number of copies of a mirror to display.
const COPIES: usize = 12;

/// Maximum number of hosts that are counted for a mirror. A mirror on more hosts is reported with
/// this number.
const HOSTS: usize = 1 << 16;

/// Maximum number of members that are held to find those that may be skipped; 32 bytes each.
const MAX_HELD_MEMBERS: usize = 1 << 20;

/// Data of the displayed mirrors, by their index in that list.
#[derive(Debug, Default)]
pub struct MirrorDetails {
    /// Root of the kept copy of each mirror, in order.
    pub roots: Vec<DocId>,
    /// Members of the mirrors that fit, ascending by page.
    members: Vec<Membership>,
    /// Number of mirrors, from the first, all of whose members are held.
    n_complete: usize,
    /// Number of pages to skip, and sum of their `contained` fractions, by mirror.
    containments: BTreeMap<u32, (u64, f64)>,
}

/// Member of a mirror. Orders by page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Membership {
    page: DocId,
    cluster: DocId,
    collection: DocId,
    mirror: u32,
}

impl MirrorDetails {
    /// Returns the held members that may be skipped with the index of their mirror, ascending by
    /// page.
    ///
    /// # Errors
    /// Returns any error of [`scan`].
    pub fn skipped(&mut self, run: &FinishedRun) -> Result<Vec<(DocId, u32)>> {
        let mut skipped_pages = Vec::new();
        let (members, containments) = (&self.members, &mut self.containments);
        scan_some(run, "avoid", (&["doc_id"], &["contained"]), |_| Ok(true), &mut |batch| {
            let pages = batch.u64("doc_id")?;
            let Some((&first, &last)) = pages.first().zip(pages.last()) else { return Ok(()) };
            let fractions = batch.f64("contained").ok();
            let start = members.partition_point(|of| of.page < first);
            for membership in members[start..].iter().take_while(|of| of.page <= last) {
                let Ok(row) = pages.binary_search(&membership.page) else { continue };
                skipped_pages.push((membership.page, membership.mirror));
                if let Some(fractions) = fractions {
                    let (pages, sum) = containments.entry(membership.mirror).or_default();
                    (*pages, *sum) = (*pages + 1, *sum + fractions[row]);
                }
            }
            Ok(())
        })?;
        Ok(skipped_pages)
    }

    /// Returns a page of another collection of a mirror that is in the same set as the root of its
    /// kept copy; the one with the smallest id.
    pub fn counterpart(&self, mirror: usize) -> Option<DocId> {
        let root = *self.roots.get(mirror)?;
        let root_member = self.members.iter().find(|of| of.page == root && of.mirror == mirror as u32)?;
        let is_counterpart = |membership: &&Membership| {
            membership.mirror == root_member.mirror
                && membership.cluster == root_member.cluster
                && membership.collection != root_member.collection
        };
        self.members.iter().find(is_counterpart).map(|of| of.page)
    }
}

/// Mirror whose collections are being read.
struct Growing {
    id: u64,
    copies: u64,
    hosts: BTreeSet<String>,
    largest_pages: u64,
    pages: u64,
    kept_pages: u64,
    root: DocId,
    top_copies: SmallestKeys<(Reverse<bool>, Reverse<u64>, u64), MirrorCopy>,
}

impl Growing {
    fn new(id: u64) -> Growing {
        let top_copies = SmallestKeys::new(COPIES);
        Growing {
            id,
            copies: 0,
            hosts: BTreeSet::new(),
            largest_pages: 0,
            pages: 0,
            kept_pages: 0,
            root: 0,
            top_copies,
        }
    }

    fn add(&mut self, copy: MirrorCopy, root: DocId) {
        self.copies += 1;
        self.pages += copy.size;
        self.largest_pages = self.largest_pages.max(copy.size);
        if copy.keep {
            (self.kept_pages, self.root) = (self.kept_pages + copy.size, root);
        }
        if self.hosts.len() < HOSTS {
            self.hosts.insert(copy.host.clone());
        }
        self.top_copies.offer((Reverse(copy.keep), Reverse(copy.size), copy.id), copy);
    }

    fn finish(self) -> (DocId, MirrorGroup) {
        let copies = self.top_copies.finish();
        let mirror = MirrorGroup {
            id: self.id,
            title: String::new(),
            language: String::new(),
            url: copies.first().map(|copy| copy.url.clone()).unwrap_or_default(),
            copies: self.copies,
            hosts: self.hosts.len() as u64,
            largest: self.largest_pages,
            pages: self.pages,
            surplus: self.pages - self.kept_pages,
            skip: None,
            contained: None,
            shown: copies,
        };
        (self.root, mirror)
    }
}

/// Reads the mirrors with the most pages in copies that are not kept, and their data.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::Input`] if a column is missing, and any error of [`scan`].
pub fn gather(run: &FinishedRun) -> Result<(MirrorReport, MirrorDetails)> {
    let columns =
        ["similar_cluster", "collection", "size", "host", "root", "root_url", "prefix", "keep", "links_from_elsewhere"];
    let (mut total, mut top, mut current) = (0, SmallestKeys::new(MAX_MIRRORS), None::<Growing>);
    let mut push_group = |group: Growing| {
        total += 1;
        let (root, mirror) = group.finish();
        top.offer((Reverse(mirror.surplus), mirror.id), (root, mirror));
    };
    scan(run, "collections", &columns, &mut |batch| {
        let (ids, roots) = (batch.u64("similar_cluster")?, batch.u64("root")?);
        for row in 0..batch.rows() {
            if current.as_ref().is_none_or(|of| of.id != ids[row]) {
                current.replace(Growing::new(ids[row])).into_iter().for_each(&mut push_group);
            }
            let growing_mirror = current.as_mut().expect("it was begun");
            growing_mirror.add(copy(batch, row)?, roots[row]);
        }
        Ok(())
    })?;
    current.into_iter().for_each(&mut push_group);
    let (roots, groups): (Vec<DocId>, Vec<MirrorGroup>) = top.finish().into_iter().unzip();
    let mut details = MirrorDetails { roots, ..MirrorDetails::default() };
    details.read_members(run, &groups)?;
    Ok((MirrorReport { all: total, shown: groups }, details))
}

fn copy(batch: &Table, row: usize) -> Result<MirrorCopy> {
    Ok(MirrorCopy {
        id: batch.u64("collection")?[row],
        host: batch.text("host")?[row].to_string(),
        url: batch.text("root_url")?[row].to_string(),
        prefix: batch.text("prefix")?[row].to_string(),
        size: u64::from(batch.u32("size")?[row]),
        keep: batch.bool("keep")?[row],
        links_from_elsewhere: batch.u64("links_from_elsewhere").ok().map(|links| links[row]),
    })
}

impl MirrorDetails {
    /// Reads the members of the first mirrors, as many as fit.
    fn read_members(&mut self, run: &FinishedRun, groups: &[MirrorGroup]) -> Result<()> {
        let mut budget = MAX_HELD_MEMBERS as u64;
        for mirror in groups {
            match budget.checked_sub(mirror.pages) {
                Some(budget_left) => (budget, self.n_complete) = (budget_left, self.n_complete + 1),
                None => break,
            }
        }
        let number: HashMap<u64, u32> = groups[..self.n_complete].iter().map(|mirror| mirror.id).zip(0..).collect();
        scan(run, "members", &["similar_cluster", "collection", "cluster", "doc_id"], &mut |batch| {
            let (ids, collections) = (batch.u64("similar_cluster")?, batch.u64("collection")?);
            let (clusters, pages) = (batch.u64("cluster")?, batch.u64("doc_id")?);
            for row in 0..batch.rows() {
                if let Some(&mirror) = number.get(&ids[row]) {
                    let (page, cluster, collection) = (pages[row], clusters[row], collections[row]);
                    self.members.push(Membership { page, cluster, collection, mirror });
                }
            }
            Ok(())
        })?;
        self.members.sort_unstable();
        Ok(())
    }
}

/// Adds data of pages: titles of roots, and the pages that may be skipped. Then sorts the mirrors
/// by these.
pub fn name(mirrors: &mut MirrorReport, details: &MirrorDetails, rows: &PageRows) {
    for (number, (mirror, root)) in mirrors.shown.iter_mut().zip(&details.roots).enumerate() {
        if let Some(page) = rows.get(*root) {
            mirror.title.clone_from(&page.member.title);
            mirror.language.clone_from(&page.language);
        }
        if number < details.n_complete {
            mirror.skip = Some(rows.sums.get(&(number as u32)).copied().unwrap_or_default());
            let mean = |&(pages, sum): &(u64, f64)| (sum / pages as f64 * 1000.0).round() as u32;
            mirror.contained = details.containments.get(&(number as u32)).map(mean);
        }
    }
    mirrors.shown.sort_by_key(|mirror| Reverse(mirror.skip.map_or(mirror.surplus, |skip| skip.pages)));
}
