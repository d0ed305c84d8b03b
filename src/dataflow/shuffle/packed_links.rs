//! Links on their way to a worker each, in [`PackedRow`]s: the source once for all of its targets
//! in a row, and each target as its distance from the one before.
//!
//! A row begins with a source in full. Then comes the distance of each target from the one before
//! in the row, of the first of a source from -1; 0 stands for another source, and is followed by
//! its distance from the source before, which may be negative.
//!
//! # Memory
//! 150 bytes for each worker.

use webtwin_base::error::Result;
use webtwin_base::ids::Page;

use super::packed::{OpenRow, PackedRow, groups_of, of_signed, signed};

/// A row that is being written for a worker, and the link that was written last.
#[derive(Debug, Clone)]
struct OpenLinks {
    row: OpenRow,
    source: u32,
    target: u32,
}

/// Packs links, given one by one, into rows for their workers.
#[derive(Debug)]
pub struct LinkPacker(Vec<Option<OpenLinks>>);

impl LinkPacker {
    /// Packs links for `peers` workers.
    pub fn new(peers: usize) -> LinkPacker {
        LinkPacker(vec![None; peers])
    }

    /// Appends a link for a worker; returns the row for that worker that was full before. Links
    /// that ascend take the fewest bytes.
    #[inline]
    pub fn push(&mut self, to: usize, source: Page, target: Page) -> Option<PackedRow> {
        let open = &mut self.0[to];
        if open.as_mut().is_some_and(|open| open.push(source, target)) {
            return None;
        }
        let mut next = OpenLinks { row: OpenRow::new(source.0), source: source.0, target: u32::MAX };
        next.push(source, target);
        open.replace(next).map(|full| full.row.finish())
    }

    /// Returns the rows that are not full, one for each worker at most.
    pub fn finish(&mut self) -> impl Iterator<Item = PackedRow> + '_ {
        self.0.iter_mut().filter_map(Option::take).map(|open| open.row.finish())
    }
}

impl OpenLinks {
    /// Appends a link if it fits; returns whether it was appended.
    #[inline]
    fn push(&mut self, source: Page, target: Page) -> bool {
        let previous_target = if source.0 == self.source { self.target } else { u32::MAX };
        let target_distance = u64::from(target.0.wrapping_sub(previous_target));
        // A distance of 0 would be taken for another source.
        if target_distance == 0 {
            return false;
        }
        if source.0 == self.source {
            if !self.row.has_room_for(groups_of(target_distance)) {
                return false;
            }
        } else {
            let source_distance = signed(source.0, self.source);
            if !self.row.has_room_for(1 + groups_of(source_distance) + groups_of(target_distance)) {
                return false;
            }
            self.row.push(0);
            self.row.push(source_distance);
            self.source = source.0;
        }
        self.row.push(target_distance);
        self.target = target.0;
        true
    }
}

/// Returns the rows of links for the workers `to(source)`, of which there are `peers`; each row is
/// for the worker of its first source.
pub fn packed_links(
    links: impl IntoIterator<Item = Result<(Page, Page)>>,
    to: impl Fn(Page) -> usize,
    peers: usize,
) -> impl Iterator<Item = Result<PackedRow>> {
    let (mut links, mut packer) = (links.into_iter(), LinkPacker::new(peers));
    let mut last: Option<std::vec::IntoIter<PackedRow>> = None;
    std::iter::from_fn(move || {
        if last.is_none() {
            for link in links.by_ref() {
                let (source, target) = match link {
                    Ok(link) => link,
                    Err(error) => return Some(Err(error)),
                };
                if let Some(row) = packer.push(to(source), source, target) {
                    return Some(Ok(row));
                }
            }
        }
        let last = last.get_or_insert_with(|| packer.finish().collect::<Vec<_>>().into_iter());
        last.next().map(Ok)
    })
}

/// Calls `visit` with the links of a row.
///
/// # Errors
/// The first error of `visit`.
pub fn each_link(row: &PackedRow, mut visit: impl FnMut(Page, Page) -> Result<()>) -> Result<()> {
    let (mut source, mut target) = (row.first, u32::MAX);
    let mut numbers = row.numbers();
    while let Some(number) = numbers.next() {
        if number == 0 {
            source = of_signed(numbers.next().unwrap_or(0), source);
            target = u32::MAX;
            continue;
        }
        target = target.wrapping_add(number as u32);
        visit(Page(source), Page(target))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_link_arrives_at_its_worker(
            mut given in prop::collection::vec(((0u32..50).prop_map(|n| n * n * n), 0u32..u32::MAX), 0..400),
            ascend: bool, peers in 1usize..5
        ) {
            if ascend {
                given.sort_unstable();
            }
            let to = |source: Page| source.0 as usize % peers;
            let links = given.iter().map(|&(source, target)| Ok((Page(source), Page(target))));
            let mut unpacked = Vec::new();
            for row in packed_links(links, to, peers) {
                let row = row.unwrap();
                each_link(&row, |source, target| {
                    assert_eq!(to(source), to(Page(row.first)));
                    unpacked.push((source.0, target.0));
                    Ok(())
                }).unwrap();
            }
            unpacked.sort_unstable();
            given.sort_unstable();
            prop_assert_eq!(unpacked, given);
        }
    }
}
