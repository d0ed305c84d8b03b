//! Broadcast of groups of pages to every process.

use std::sync::Arc;

use super::packed::{OpenRow, PackedNumbers, PackedRow, groups_of, of_signed, signed};
use webtwin_base::error::Result;
use webtwin_base::ids::Page;
use webtwin_engine::Net;

/// Broadcasts groups of pages, and returns one value for each process that contains the groups of
/// all workers. `begin` creates the value. `open` receives the head of a group and returns a number
/// for the group. `put_page` receives the number of a group and a page of the group. Groups of one
/// sender arrive in the given order, interleaved with groups of other senders.
///
/// # Errors
/// Returns an error only if the run has ended.
///
/// # Cost
/// Takes one round. Each process receives about 3 bytes for each page, and as much for each page of
/// a head; fewer if a page is near the one before it.
pub fn broadcast_groups<const N: usize, Pages: IntoIterator<Item = Page>, V: Send + Sync + 'static>(
    net: &mut Net<'_>,
    name: &str,
    groups: impl IntoIterator<Item = ([Page; N], Pages)>,
    begin: impl FnOnce() -> V,
    mut open: impl FnMut(&mut V, [Page; N]) -> u32,
    mut put_page: impl FnMut(&mut V, u32, Page),
) -> Result<Arc<V>> {
    let words = groups
        .into_iter()
        .flat_map(|(head, pages)| std::iter::once(Word::Head(head)).chain(pages.into_iter().map(Word::Page)));
    let mut numbers_of = vec![0; net.peers()];
    net.broadcast_into(name, packed(words), begin, |value, from, row: &PackedRow| {
        each_word(row, |word| match word {
            Word::Head(head) => numbers_of[from] = open(value, head),
            Word::Page(page) => put_page(value, numbers_of[from], page),
        });
    })
}

/// Item of the sequence that a group is sent as: its head, then its pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word<const N: usize> {
    Head([Page; N]),
    Page(Page),
}

/// Stands for a head.
const HEAD: u64 = 0;

/// Packs words into rows. A row begins with a page in full, and then has 0 if that page is the
/// first of a head, and otherwise one. Then comes the distance of each page from the page before,
/// plus one; or 0 for a head, and the distance of its first page from that of the head before. The
/// first page of a head is followed by the distances of the others from it.
fn packed<const N: usize>(words: impl Iterator<Item = Word<N>>) -> impl Iterator<Item = PackedRow> {
    let mut words = words.peekable();
    std::iter::from_fn(move || {
        let word = words.next()?;
        let Page(first) = match word {
            Word::Head(head) => head[0],
            Word::Page(page) => page,
        };
        let (mut row, mut head_before, mut previous_page) = (OpenRow::new(first), first, first);
        let push_rest = |row: &mut OpenRow, head: &[Page; N]| {
            head[1..].iter().for_each(|page| row.push(signed(page.0, head[0].0)));
        };
        match &word {
            Word::Head(head) => {
                row.push(HEAD);
                push_rest(&mut row, head);
            }
            Word::Page(_) => row.push(1),
        }
        while let Some(word) = words.peek() {
            match word {
                Word::Page(page) => {
                    let distance = signed(page.0, previous_page) + 1;
                    if !row.has_room_for(groups_of(distance)) {
                        break;
                    }
                    row.push(distance);
                    previous_page = page.0;
                }
                Word::Head(head) => {
                    let distance = signed(head[0].0, head_before);
                    let tail_groups: usize = head[1..].iter().map(|page| groups_of(signed(page.0, head[0].0))).sum();
                    if !row.has_room_for(1 + groups_of(distance) + tail_groups) {
                        break;
                    }
                    row.push(HEAD);
                    row.push(distance);
                    push_rest(&mut row, head);
                    (head_before, previous_page) = (head[0].0, head[0].0);
                }
            }
            words.next();
        }
        Some(row.finish())
    })
}

/// Calls `visit` with the words of a row.
fn each_word<const N: usize>(row: &PackedRow, mut visit: impl FnMut(Word<N>)) {
    let mut numbers = row.numbers();
    let (mut head_before, mut previous_page) = (row.first, row.first);
    let head_of = |first: u32, numbers: &mut PackedNumbers<'_>| {
        let mut head = [Page(first); N];
        head[1..].iter_mut().zip(numbers).for_each(|(page, distance)| *page = Page(of_signed(distance, first)));
        Word::Head(head)
    };
    match numbers.next() {
        Some(HEAD) => visit(head_of(row.first, &mut numbers)),
        _ => visit(Word::Page(Page(row.first))),
    }
    while let Some(number) = numbers.next() {
        if number == HEAD {
            head_before = of_signed(numbers.next().unwrap_or(0), head_before);
            previous_page = head_before;
            visit(head_of(head_before, &mut numbers));
        } else {
            previous_page = of_signed(number - 1, previous_page);
            visit(Word::Page(Page(previous_page)));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use webtwin_engine::{ClusterLayout, run};

    #[test]
    fn every_worker_receives_the_groups_of_all() {
        // The words exceed one block.
        let groups = |worker: u32| (0..300).map(move |n| ([Page(worker), Page(n)], (0..n * 2).map(Page)));
        let results = run(&ClusterLayout::local(3), 0, [0; 32], move |net| {
            let open = |groups_found: &mut Vec<([Page; 2], Vec<Page>)>, head| {
                groups_found.push((head, Vec::new()));
                groups_found.len() as u32 - 1
            };
            let put_page = |groups_found: &mut Vec<([Page; 2], Vec<Page>)>, number: u32, page| {
                groups_found[number as usize].1.push(page)
            };
            broadcast_groups(net, "groups", groups(net.index() as u32), Vec::new, open, put_page)
        });
        for result in results.unwrap() {
            let mut sorted = result.to_vec();
            sorted.sort();
            let expected: Vec<_> =
                (0..3).flat_map(groups).map(|(head, pages)| (head, pages.collect::<Vec<_>>())).collect();
            assert!(sorted == expected);
        }
    }

    proptest! {
        #[test]
        fn packed_words_are_unpacked_unchanged(
            given in prop::collection::vec((0u8..3, any::<[u32; 3]>(), 0u32..33), 0..200)
        ) {
            let words: Vec<Word<3>> = given.iter().map(|&(kind, pages, bits)| {
                let pages = pages.map(|page| Page((u64::from(page) >> bits) as u32));
                if kind == 0 { Word::Head(pages) } else { Word::Page(pages[0]) }
            }).collect();
            let mut unpacked = Vec::new();
            packed(words.iter().copied()).for_each(|row| each_word(&row, |word| unpacked.push(word)));
            prop_assert_eq!(unpacked, words);
        }
    }
}
