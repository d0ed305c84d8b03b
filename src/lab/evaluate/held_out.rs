//! Tuning and held-out targets.
//!
//! A setting that was tuned on a crawl can only be trusted on targets that were not inspected
//! meanwhile. A run is therefore measured three times: with all targets, without the held-out ones,
//! and without the others. Excluded targets are removed from truth and run as if they had not been
//! crawled: their pages are in no pair, cluster or collection. A similar cluster that mixes targets
//! of both sides is therefore only mixed in the measurement of all targets.

use std::collections::HashSet;

use webtwin_base::ids::DocId;
use webtwin_evaluate::{ResultRows, TruthPageRow, TruthRow};

/// Reads a list of targets, one per line. `#` begins a comment.
pub(super) fn read_targets(text: &str) -> HashSet<&str> {
    text.lines().map(|line| line.split('#').next().unwrap_or("").trim()).filter(|name| !name.is_empty()).collect()
}

/// Returns the rows without the pages of the held-out targets.
pub(super) fn tuning(rows: &ResultRows, targets: &HashSet<&str>) -> ResultRows {
    rows_without(rows, |row| targets.contains(row.target.as_str()))
}

/// Returns the rows without the pages of all other targets. Pages without a target remain.
pub(super) fn held_out(rows: &ResultRows, targets: &HashSet<&str>) -> ResultRows {
    rows_without(rows, |row| row.is_of_target() && !targets.contains(row.target.as_str()))
}

fn rows_without(rows: &ResultRows, is_left_out: impl Fn(&TruthRow) -> bool) -> ResultRows {
    let (removed_rows, truth): (Vec<TruthRow>, Vec<TruthRow>) = rows.truth.iter().cloned().partition(is_left_out);
    let urls: HashSet<&str> = removed_rows.iter().map(|row| row.url.as_str()).collect();
    let (removed_pages, pages): (Vec<TruthPageRow>, Vec<TruthPageRow>) =
        rows.pages.iter().cloned().partition(|page| urls.contains(page.url.as_str()));
    let removed_ids: HashSet<DocId> = removed_pages.iter().map(|page| page.doc_id).collect();
    let mut rows = ResultRows { pages, truth, ..rows.clone() };
    rows.clusters.retain(|row| !removed_ids.contains(&row.doc_id));
    rows.members.retain(|row| !removed_ids.contains(&row.doc_id));
    rows.links.retain(|row| !removed_ids.contains(&row.src) && !removed_ids.contains(&row.dst));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use webtwin_evaluate::{ClusterRow, LinkRow, TruthMemberRow};

    #[test]
    fn each_side_is_as_if_the_other_had_not_been_crawled() {
        let row = |(number, (target, variant)): (usize, (&str, &str))| TruthRow {
            url: format!("http://h/{number}"),
            target: target.into(),
            version: String::new(),
            page: "p".into(),
            variant: variant.into(),
            ..Default::default()
        };
        let truth = [("a", "real"), ("a", "exact"), ("b", "real"), ("b", "exact"), ("single:s", "single")];
        let truth: Vec<TruthRow> = truth.into_iter().enumerate().map(row).collect();
        let rows = ResultRows {
            pages: (0..)
                .zip(&truth)
                .map(|(doc_id, row)| TruthPageRow { doc_id, url: row.url.clone(), body: 0 })
                .collect(),
            clusters: (0..5).map(|doc_id| ClusterRow { cluster: 0, doc_id }).collect(),
            members: (0..5).map(|doc_id| TruthMemberRow { similar_cluster: 0, collection: 0, doc_id }).collect(),
            links: (0..5).map(|doc_id| LinkRow { src: doc_id, dst: doc_id }).collect(),
            truth,
        };
        let held_targets = read_targets("# why\n\nb # this one\n");
        let left = |rows: ResultRows| {
            assert!(rows.clusters.iter().map(|row| row.doc_id).eq(rows.pages.iter().map(|row| row.doc_id)));
            let len = rows.pages.len();
            assert_eq!((rows.members.len(), rows.links.len(), rows.truth.len()), (len, len, len));
            rows.pages.iter().map(|page| page.doc_id).collect::<Vec<_>>()
        };
        assert_eq!(left(tuning(&rows, &held_targets)), [0, 1, 4]);
        assert_eq!(left(held_out(&rows, &held_targets)), [2, 3, 4]);
    }
}
