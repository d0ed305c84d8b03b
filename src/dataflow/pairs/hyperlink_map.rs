//! Computes the HM recursion over the links of a crawl
//! ([`webtwin_core::signatures::hyperlink_map`]). The values of children are sent to the owners of
//! their parents, once for each worker that asks, even if several of its pages link to the child.
//!
//! Takes one exchange to ask, one for each iteration, and one for the largest value.
//!
//! # Memory
//! Takes 8 bytes for each component of each distinct child of a worker's pages, 24 for each
//! component of each page, and 4 for each link.

use crate::clusters::links::WorkerLinks;
use crate::shuffle::directory::Directory;
use webtwin_base::error::Result;
use webtwin_base::ids::Page;
use webtwin_core::signatures::hyperlink_map::{part, step};
use webtwin_core::signatures::number;
use webtwin_engine::{Net, Owners};
use webtwin_job::VectorRecipe;

/// Question of a worker for the values of a child, sent to the child's owner.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct ChildRequest {
    child: Page,
    /// Index of the child among the children of the asking worker.
    at: u32,
    worker: u32,
}

/// One component of the product x · r of a child, sent to a worker that asked for the child.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Answer {
    /// Index at which the asking worker stores the product.
    at: u64,
    product: f64,
    worker: u64,
}

/// Computes the HM signatures of this worker's pages: K components for each page, in the order of
/// `rp`, which has their RP signatures. A page without a signature has K zeros. `links` are the
/// links of these pages.
pub fn hyperlink_map(
    net: &mut Net<'_>,
    directory: &Directory,
    rp: &[u64],
    signed: &[bool],
    links: &WorkerLinks,
    settings: &VectorRecipe,
) -> Result<Vec<u64>> {
    let dims = settings.dims as usize;
    let targets: Vec<Page> = links.read(0..links.len())?.into_iter().map(|link| link.1).collect();
    let mut children = targets.clone();
    children.sort_unstable();
    children.dedup();
    let place = |child: Page| children.partition_point(|&other| other < child) as u32;
    let places: Vec<u32> = targets.into_iter().map(place).collect();

    let own_index = net.index() as u32;
    let requests = children.iter().zip(0..).map(|(&child, at)| ChildRequest { child, at, worker: own_index });
    let received = net.exchange("children", requests, |row| directory.owner(row.child))?;
    // A child without a signature adds nothing to its parents.
    let components_of_child = |child: Page| directory.place(child) * dims..(directory.place(child) + 1) * dims;
    let non_zero: Vec<ChildRequest> =
        received.into_iter().filter(|row| rp[components_of_child(row.child)].iter().any(|&part| part > 0)).collect();

    let r: Vec<f64> = rp.iter().map(|&part| number(part)).collect();
    let mut x = r.clone();
    let mut products = vec![0.0; children.len() * dims];
    for _ in 0..settings.depth {
        let rows = non_zero.iter().flat_map(|&ChildRequest { child, at, worker }| {
            let (x, r) = (&x, &r);
            let components = components_of_child(child).zip(at as usize * dims..);
            components.map(move |(component, at)| Answer {
                at: at as u64,
                product: x[component] * r[component],
                worker: u64::from(worker),
            })
        });
        net.exchange_into(
            "children's values",
            rows,
            |row| row.worker as usize,
            |rows: &[Answer]| {
                rows.iter().for_each(|row| products[row.at as usize] = row.product);
                Ok(())
            },
        )?;
        let mut next = r.clone();
        // Links are stored page by page, so `at` advances through the children of one parent after
        // the other.
        let mut at = 0;
        for (parent, count) in links.counts().enumerate() {
            let children_places = &places[at..at + count];
            at += count;
            if !signed[parent] || count == 0 {
                continue;
            }
            let parent = parent * dims;
            for dim in 0..dims {
                let values = children_places.iter().map(|&child| products[child as usize * dims + dim]);
                next[parent + dim] = step(r[parent + dim], settings, values);
            }
        }
        x = next;
    }
    let largest = net.all_reduce("largest component", x.iter().copied().fold(0.0, f64::max), f64::max)?;
    Ok(x.iter().map(|&x| part(x, largest)).collect())
}
