//! `LinkSummary`, the TCG and its components: kept up to date by a process that lives on, against made anew by sorting and union-find.

use super::super::made::link_graph::LinkGraph;
use super::super::measure::{core_seconds, forget_peak_memory};
use super::super::{Options, Row, figure};
use super::growth::labels;
use webtwin_base::build_info::{memory_bytes, peak_memory_bytes};
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{ClusterId, HostId, Page, splitmix64};
use webtwin_compare::history::live_growth::{Edit, LiveGrowth, made_anew};
use webtwin_job::{Job, MergeCondition};

/// One page in so many changes.
const ONE_IN: u64 = 100;

/// Rows of which changes leave one each, ascending.
fn left<Row: Ord + Copy>(mut changes: Vec<(Row, i32)>) -> Vec<Row> {
    changes.sort_unstable();
    let of_rows = changes.chunk_by(|x, y| x.0 == y.0);
    of_rows.filter(|same| same.iter().map(|change| change.1).sum::<i32>() == 1).map(|same| same[0].0).collect()
}

/// Measures loading, and an edit of a hundredth of the pages.
pub(super) fn run(options: &Options) -> Result<Vec<Row>> {
    let pages =
        u32::try_from(options.scale).map_err(|_| Error::Usage(format!("--scale {}: too many pages", options.scale)))?;
    let graph = LinkGraph::new(pages, 1);
    let single_site = Job::default().clusters.single_site;
    let hosts: Vec<HostId> = Page::first(pages as usize).map(|page| graph.host(page)).collect();
    let (mut labels, mut links, mut targets) = (labels(&graph), Vec::new(), Vec::new());
    for page in Page::first(pages as usize) {
        targets.clear();
        graph.links(page, &mut targets);
        targets.sort_unstable();
        targets.dedup();
        let within = |target: &Page| *target != page && (!single_site || hosts[*target] == hosts[page]);
        links.extend(targets.iter().copied().filter(within).map(|target| (page, target)));
    }
    let trivial = Page::first(pages as usize).map(|page| ((page, labels[page]), 1)).collect();
    let all = Edit { trivial, links: links.iter().map(|&link| (link, 1)).collect() };

    // A page that changes loses its links and its copies.
    let changes = |page: Page| splitmix64(page.0.into()).is_multiple_of(ONE_IN);
    let mut edit = Edit::default();
    for page in Page::first(pages as usize).filter(|&page| changes(page)) {
        let alone = ClusterId::of(page);
        // The smallest page of a cluster names it.
        if labels[page] == alone {
            continue;
        }
        edit.trivial.extend([((page, labels[page]), -1), ((page, alone), 1)]);
        labels[page] = alone;
    }
    edit.links = links.iter().filter(|link| changes(link.0)).map(|&link| (link, -1)).collect();
    let stay: Vec<(Page, Page)> = links.iter().copied().filter(|link| !changes(link.0)).collect();

    let base = memory_bytes();
    forget_peak_memory();
    let mut live = LiveGrowth::new(MergeCondition::Extended, single_site);
    let (loaded, mut held) = core_seconds(|| live.edit(&all));
    let (edited, changed) = core_seconds(|| live.edit(&edit));
    let peak = peak_memory_bytes().saturating_sub(base);
    drop(live);
    let rows_changed = changed.link_summary.len() + changed.components.len();
    held.link_summary.extend(changed.link_summary);
    held.components.extend(changed.components);
    let (made, want) = core_seconds(|| made_anew(&labels, &hosts, &stay, (MergeCondition::Extended, single_site)));
    let equal = (left(held.link_summary), left(held.components)) == want;
    Ok(vec![
        figure("pages", f64::from(pages), "pages"),
        figure("links", links.len() as f64, "links"),
        figure("rows of LinkSummary after the edit", want.0.len() as f64, "rows"),
        figure("made anew, by sorting and union-find", made, "s"),
        figure("the dataflow is loaded", loaded, "s"),
        figure("the dataflow takes an edit of a hundredth of the pages", edited, "s"),
        figure("rows that come or go for it", rows_changed as f64, "rows"),
        figure("loading, by making anew", loaded / made, ""),
        figure("an edit, by making anew", edited / made, ""),
        figure("memory of the dataflow at its peak", peak as f64 / 1e6, "MB"),
        figure("the same rows both ways", f64::from(u8::from(equal)), "").at_least(1.0),
    ])
}
