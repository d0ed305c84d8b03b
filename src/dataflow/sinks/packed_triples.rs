//! Links out of collections on their way to the owners of their targets, in [`PackedRow`]s: what is
//! known of the source once for its targets.
//!
//! A row begins with a target in full, and the distances of a collection and a cluster from it.
//! Then comes the distance of each target from the one before; 0 stands for another source, and is
//! followed by the distances of its collection, cluster and first target from those before.

use webtwin_base::ids::Page;

use crate::shuffle::packed::{OpenRow, PackedRow, groups_of, of_signed, signed};

/// A link: its target, and collection and trivial cluster of its source.
pub(super) type Triple = [Page; 3];

/// Packs links, given one by one, into rows for their workers.
#[derive(Debug)]
pub(super) struct TriplePacker(Vec<Option<(OpenRow, Triple)>>);

impl TriplePacker {
    /// Packs links for `peers` workers.
    pub(super) fn new(peers: usize) -> TriplePacker {
        TriplePacker(vec![None; peers])
    }

    /// Appends a link for a worker; returns the row for that worker that was full before. Links of
    /// one source should come together, ascending.
    pub(super) fn push(&mut self, to: usize, link: Triple) -> Option<PackedRow> {
        let open = &mut self.0[to];
        if let Some((row, previous)) = open
            && append(row, previous, link)
        {
            *previous = link;
            return None;
        }
        let [target, collection, cluster] = link.map(|page| page.0);
        let mut row = OpenRow::new(target);
        row.push(signed(collection, target));
        row.push(signed(cluster, target));
        open.replace((row, link)).map(|(full, _)| full.finish())
    }

    /// Returns the rows that are not full, one for each worker at most.
    pub(super) fn finish(&mut self) -> impl Iterator<Item = PackedRow> + '_ {
        self.0.iter_mut().filter_map(Option::take).map(|(row, _)| row.finish())
    }
}

/// Appends a link to a row if it fits; returns whether it was appended.
fn append(row: &mut OpenRow, previous: &Triple, link: Triple) -> bool {
    let distances: [u64; 3] = std::array::from_fn(|at| signed(link[at].0, previous[at].0));
    if previous[1..] == link[1..] && previous[0] < link[0] {
        let distance = u64::from(link[0].0 - previous[0].0);
        let fits = row.has_room_for(groups_of(distance));
        if fits {
            row.push(distance);
        }
        return fits;
    }
    let fits = row.has_room_for(1 + distances.iter().map(|&distance| groups_of(distance)).sum::<usize>());
    if fits {
        row.push(0);
        distances.iter().for_each(|&distance| row.push(distance));
    }
    fits
}

/// Calls `visit` with the links of a row.
pub(super) fn each_triple(row: &PackedRow, mut visit: impl FnMut(Triple)) {
    let mut numbers = row.numbers();
    let mut from = |before: u32| of_signed(numbers.next().unwrap_or(0), before);
    let mut link = [row.first, from(row.first), from(row.first)];
    visit(link.map(Page));
    while let Some(number) = numbers.next() {
        match number {
            0 => {
                for number in &mut link {
                    *number = of_signed(numbers.next().unwrap_or(0), *number);
                }
            }
            distance => link[0] += distance as u32,
        }
        visit(link.map(Page));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_link_arrives_at_its_worker(
            given in prop::collection::vec((0u32..9, any::<u32>(), prop::collection::vec(any::<u32>(), 0..9)), 0..60), peers in 1usize..5
        ) {
            let to = |target: Page| target.0 as usize % peers;
            let links = given.iter().flat_map(|(collection, cluster, targets)| {
                targets.iter().map(|&target| [target, *collection, *cluster].map(Page))
            });
            let mut links: Vec<Triple> = links.collect();
            let (mut packer, mut rows, mut unpacked) = (TriplePacker::new(peers), Vec::new(), Vec::new());
            rows.extend(links.iter().filter_map(|&link| packer.push(to(link[0]), link)));
            rows.extend(packer.finish());
            for row in &rows {
                each_triple(row, |link| {
                    assert_eq!(to(link[0]), to(Page(row.first)));
                    unpacked.push(link);
                });
            }
            unpacked.sort_unstable();
            links.sort_unstable();
            prop_assert_eq!(unpacked, links);
        }
    }
}
