//! Broadcast of groups of pages to every process.

use std::sync::Arc;

use webtwin_base::error::Result;
use webtwin_base::ids::Page;
use webtwin_engine::Net;

/// Group that is being received from one sender.
#[derive(Debug, Clone, Copy)]
struct Open<const N: usize> {
    head: [Page; N],
    /// Words of the head that have not arrived yet.
    missing: usize,
    number: u32,
}

/// Broadcasts groups of pages, and returns one value for each process that contains the groups of
/// all workers. `begin` creates the value. `open` receives the head of a group and returns a number
/// for the group. `put` receives the number of a group and a page of the group. Groups of one
/// sender arrive in the given order, interleaved with groups of other senders.
///
/// # Errors
/// Returns an error only if the run has ended.
///
/// # Cost
/// Takes one round. Each process receives 4 bytes for each page, and 4 + 4 N for each group.
pub fn broadcast_groups<const N: usize, Pages: IntoIterator<Item = Page>, V: Send + Sync + 'static>(
    net: &mut Net<'_>,
    name: &str,
    groups: impl IntoIterator<Item = ([Page; N], Pages)>,
    begin: impl FnOnce() -> V,
    mut open: impl FnMut(&mut V, [Page; N]) -> u32,
    mut put: impl FnMut(&mut V, u32, Page),
) -> Result<Arc<V>> {
    let words = groups.into_iter().flat_map(|(head, pages)| std::iter::once(Page::NONE).chain(head).chain(pages));
    let mut senders = vec![Open { head: [Page::NONE; N], missing: 0, number: 0 }; net.peers()];
    net.broadcast_into(name, words, begin, |value, from, &word| {
        let sender = &mut senders[from];
        match sender.missing {
            0 if word == Page::NONE => sender.missing = N,
            0 => put(value, sender.number, word),
            missing => {
                sender.head[N - missing] = word;
                sender.missing -= 1;
                if sender.missing == 0 {
                    sender.number = open(value, sender.head);
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use webtwin_engine::{Cluster, run};

    #[test]
    fn every_worker_has_the_groups_of_all() {
        // The words exceed one block.
        let groups = |worker: u32| (0..300).map(move |n| ([Page(worker), Page(n)], (0..n * 2).map(Page)));
        let found = run(&Cluster::local(3), 0, [0; 32], move |net| {
            let open = |found: &mut Vec<([Page; 2], Vec<Page>)>, head| {
                found.push((head, Vec::new()));
                found.len() as u32 - 1
            };
            let put = |found: &mut Vec<([Page; 2], Vec<Page>)>, number: u32, page| found[number as usize].1.push(page);
            broadcast_groups(net, "groups", groups(net.index() as u32), Vec::new, open, put)
        });
        for found in found.unwrap() {
            let mut found = found.to_vec();
            found.sort();
            let want: Vec<_> = (0..3).flat_map(groups).map(|(head, pages)| (head, pages.collect::<Vec<_>>())).collect();
            assert!(found == want);
        }
    }
}
