//! `LinkSummary` after trivial clusters have changed: reused for unchanged clusters, and equal to a
//! computation from scratch.

use std::sync::Arc;

use proptest::prelude::*;
use webtwin::clusters::labels::SetLabels;
use webtwin::clusters::link_summary::{LinkSummary, cluster_links, link_summary};
use webtwin::clusters::merge::may_merge;
use webtwin::clusters::union_find::sizes;
use webtwin::dataflow::clusters::link_summary::{PriorLinks, of_clusters};
use webtwin::dataflow::clusters::links::WorkerLinks;
use webtwin::dataflow::clusters::trivial::TrivialClusters;
use webtwin::dataflow::shuffle::directory::{Directory, TablePartitions};
use webtwin::engine::{ClusterLayout, run};
use webtwin::ids::{ClusterId, HostId, Page};
use webtwin::job::Job;

/// Number of pages in each case.
const PAGES: u32 = 18;

/// Names clusters by their smallest pages.
fn named(clusters: &[u32]) -> Vec<ClusterId> {
    let smallest = |of: u32| clusters.iter().position(|&other| other == of).unwrap() as u32;
    clusters.iter().map(|&of| ClusterId(smallest(of))).collect()
}

/// Returns the rows, and the links that merge, computed from all links in one place.
fn reference(
    labels: &[ClusterId],
    hosts: &[HostId],
    links: &[(Page, Page)],
    job: &Job,
) -> (Vec<LinkSummary>, Vec<(Page, Page)>) {
    let mut between = cluster_links(labels, hosts, links, job.clusters.single_site);
    let sizes = sizes(labels);
    let rows = link_summary(&mut between, |cluster| sizes[cluster.0 as usize]);
    let merges = |src, dst| {
        let row = rows.iter().find(|row| (row.src_cluster, row.dst_cluster) == (src, dst));
        row.is_some_and(|row| may_merge(row, job.clusters.merge))
    };
    let merging = between.iter().filter(|link| merges(link.src_cluster, link.dst_cluster));
    let mut merging: Vec<_> = merging.map(|link| (link.src, link.dst)).collect();
    merging.sort_unstable();
    (rows, merging)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn link_summary_after_changed_clusters_equals_one_from_scratch(
        clusters in prop::collection::vec(0u32..6, PAGES as usize),
        changes in prop::collection::vec((0u32..PAGES, 0u32..8), 0..5),
        hosts in prop::collection::vec(0u32..3, PAGES as usize),
        links in prop::collection::btree_set((0u32..PAGES, 0u32..PAGES), 0..150),
        workers in 1usize..4,
        single_site: bool,
    ) {
        let mut clusters_now = clusters.clone();
        changes.iter().for_each(|&(page, cluster)| clusters_now[page as usize] = cluster);
        let labels = [named(&clusters), named(&clusters_now)];
        let hosts: Vec<HostId> = hosts.into_iter().map(HostId).collect();
        let links: Vec<(Page, Page)> =
            links.into_iter().filter(|(src, dst)| src != dst).map(|(src, dst)| (Page(src), Page(dst))).collect();
        let mut job = Job::default();
        job.clusters.single_site = single_site;
        let want = reference(&labels[1], &hosts, &links, &job);
        let labels = labels.each_ref().map(|labels| Arc::new(SetLabels::from_list(labels)));

        let inputs = (links, hosts, labels, job);
        let parts = run(&ClusterLayout::local(workers), 0, [0; 32], move |net| {
            let (links, hosts, labels, job) = &inputs;
            let directory = Arc::new(Directory::even(hosts.clone(), TablePartitions::new(8, net.peers())));
            let links = WorkerLinks::new(net, directory, |page, targets| {
                targets.extend(links.iter().filter(|link| link.0 == page).map(|link| link.1));
            })?;
            let mut before = None;
            let mut rows_found = (Vec::new(), Vec::new());
            for (labels, now) in [(&labels[0], &labels[1]), (&labels[1], &labels[1])] {
                let clusters = TrivialClusters::new(net, Arc::clone(labels))?;
                let (rows, merging) =
                    of_clusters(net, &links, hosts, &clusters, before.take(), &job.clusters)?;
                rows_found = (rows.all_rows()?.into_owned(), merging.blocks().flat_map(Result::unwrap).map(<(Page, Page)>::from).collect::<Vec<_>>());
                before = Some(PriorLinks::new(net, rows, merging, labels, now)?);
            }
            Ok(rows_found)
        }).unwrap();
        let (rows, merging): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let (mut rows, mut merging) = (rows.concat(), merging.concat());
        rows.sort_unstable();
        merging.sort_unstable();
        prop_assert_eq!((rows, merging), want);
    }
}
