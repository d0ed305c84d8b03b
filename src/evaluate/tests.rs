use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

fn truth_row(url: &str, target: &str, version: &str, page: &str, variant: &str) -> TruthRow {
    let [url, target, version, page, variant] = [url, target, version, page, variant].map(str::to_owned);
    TruthRow { url, target, version, page, variant, ..Default::default() }
}

/// Returns a crawl of two targets: `a` in three copies of 12 pages, `b` in two of 10, two unrelated
/// pages, and a hub.
fn truth() -> Vec<TruthRow> {
    let mut truth = Vec::new();
    for (host, target, version, variant, pages) in [
        ("www.a", "a", "2", "primary", 12),
        ("m1", "a", "2", "exact", 12),
        ("m2", "a", "1", "version", 12),
        ("www.b", "b", "1", "primary", 10),
        ("m1", "b", "1", "exact", 10),
    ] {
        for page in 0..pages {
            truth.push(truth_row(
                &format!("http://{host}/{target}/{page}"),
                target,
                version,
                &page.to_string(),
                variant,
            ));
        }
    }
    truth.push(truth_row("http://s/1", "s", "-", "1", "single"));
    truth.push(truth_row("http://s/2", "s", "-", "1", "single"));
    truth.push(truth_row("http://s/", "s", "-", "", "hub"));
    truth
}

fn pages(truth: &[TruthRow]) -> Vec<TruthPageRow> {
    (100..).zip(truth).map(|(doc_id, row)| TruthPageRow { doc_id, url: row.url.clone(), body: 0 }).collect()
}

/// Returns clusters in which every page is together with all its copies.
fn perfect_clusters(truth: &[TruthRow]) -> Vec<ClusterRow> {
    let mut first = BTreeMap::new();
    (100..)
        .zip(truth)
        .filter(|(_, row)| !["single", "hub"].contains(&row.variant.as_str()))
        .map(|(doc_id, row)| ClusterRow { cluster: *first.entry((&row.target, &row.page)).or_insert(doc_id), doc_id })
        .collect()
}

/// Returns a collection of the pages in a range of the truth.
fn collection(similar_cluster: u64, collection: u64, places: std::ops::Range<u64>) -> Vec<TruthMemberRow> {
    places.map(|place| TruthMemberRow { similar_cluster, collection, doc_id: 100 + place }).collect()
}

#[test]
fn a_perfect_run_scores_one_throughout() {
    let truth = truth();
    let members = [
        collection(1, 1, 0..12),
        collection(1, 2, 12..24),
        collection(1, 3, 24..36),
        collection(2, 1, 36..46),
        collection(2, 2, 46..56),
    ];
    let report = evaluate(&pages(&truth), &perfect_clusters(&truth), &members.concat(), &[], &truth);
    assert_eq!(report.pairs, KnownPairCounts { predicted: 46, actual: 46, hits: 46, ..Default::default() });
    assert_eq!(report.clusters, ClusterCounts { clusters: 22, pure: 22, groups: 22, whole: 22 });
    let expected = CollectionCounts {
        collections: 5,
        corresponding: 5,
        targets_found: 2,
        targets: 2,
        pages_covered: 56,
        pages: 56,
        copies_whole: 5,
        copies_found: 5,
        copies: 5,
        pages_with_copy: 56,
        pages_with_copy_covered: 56,
        parts: 0,
        parts_whole: 0,
        parts_of_copies_found: 0,
        corresponding_in_parts: 0,
        mixed: 0,
        clusters: 2,
    };
    assert_eq!(report.collections, expected);
    assert_eq!(report.collections.collections_a_copy().value(), Some(1.0));
    let complete = |part| Ratio { part, whole: part };
    assert_eq!(report.variants["exact"], VariantCounts { recall: complete(22), copies: complete(2) });
    assert_eq!(report.variants["version"], VariantCounts { recall: complete(12), copies: complete(1) });
    assert_eq!(report.variants["primary"].copies, complete(2));
    assert!(
        report
            .rows()
            .iter()
            .filter(|row| row.unit == "share")
            .all(|row| [None, Some(1.0), Some(0.0)].contains(&row.ours))
    );
}

#[test]
fn pairs_of_single_pages_are_false_even_when_target_and_page_are_equal() {
    let truth = truth();
    let clusters = [ClusterRow { cluster: 156, doc_id: 156 }, ClusterRow { cluster: 156, doc_id: 157 }];
    let report = evaluate(&pages(&truth), &clusters, &[], &[], &truth);
    assert_eq!(report.pairs, KnownPairCounts { predicted: 1, actual: 46, hits: 0, ..Default::default() });
    assert_eq!((report.clusters.clusters, report.clusters.pure), (1, 0));
}

#[test]
fn byte_copies_and_uncertain_pages_are_not_errors() {
    let rows = [
        // Two editions of a page. In version 1, the French edition is still in English.
        ("http://a/en", "1", "en", "same", ""),
        ("http://b/fr", "1", "fr", "same", ""),
        ("http://c/en", "2", "en", "later", ""),
        ("http://d/fr", "2", "fr", "translated", ""),
        ("http://e/x", "1", "x", "x", "number-7 number-8"),
        ("http://f/y", "2", "y", "y", "number-8"),
    ];
    let truth = rows.map(|(url, version, page, origin, possible_names)| TruthRow {
        origin: origin.into(),
        perhaps: possible_names.into(),
        ..truth_row(url, "t", version, page, "real")
    });
    let pages = pages(&truth);
    let are_together = |places: &[u64]| {
        let clusters: Vec<ClusterRow> =
            places.iter().map(|place| ClusterRow { cluster: 1, doc_id: 100 + place }).collect();
        let counts = evaluate(&pages, &clusters, &[], &[], &truth).pairs;
        (counts.predicted, counts.hits, counts.accidental, counts.open)
    };
    assert_eq!(are_together(&[0, 1]), (1, 0, 1, 0), "the same bytes");
    assert_eq!(are_together(&[1, 2]), (1, 0, 1, 0), "the bytes of an older version");
    assert_eq!(are_together(&[0, 1, 2]), (3, 1, 2, 0));
    assert_eq!(are_together(&[2, 3]), (1, 0, 0, 0), "an error: in this version they are two pages");
    assert_eq!(are_together(&[4, 5]), (1, 0, 0, 1));
    assert_eq!(are_together(&[0, 4]), (1, 0, 0, 0));
}

#[test]
fn pages_known_to_one_side_only_are_counted_without_pairs() {
    let truth = truth();
    let mut pages = pages(&truth);
    let clusters = perfect_clusters(&truth);
    pages.retain(|page| page.doc_id != 100);
    pages.push(TruthPageRow { doc_id: 900, url: "http://elsewhere/".into(), body: 0 });
    let clusters_with_unknown =
        [clusters.clone(), vec![ClusterRow { cluster: clusters[1].cluster, doc_id: 900 }]].concat();
    let report = evaluate(&pages, &clusters_with_unknown, &[], &[], &truth);
    assert_eq!((report.unknown(), report.missing, report.known), (1, 1, 58));
    assert_eq!(report.pairs, KnownPairCounts { predicted: 44, actual: 44, hits: 44, ..Default::default() });
}

#[test]
fn joining_everything_shows_as_mixed_clusters() {
    let truth = truth();
    let members = [
        collection(1, 1, 0..12),
        collection(1, 2, 12..24),
        collection(1, 3, 24..36),
        collection(1, 4, 36..46),
        collection(1, 5, 46..56),
    ];
    let report = evaluate(&pages(&truth), &[], &members.concat(), &[], &truth).collections;
    assert_eq!((report.corresponding, report.targets_found, report.mixed, report.clusters), (5, 2, 1, 1));
    let two_heaps = [collection(1, 1, 0..56), collection(1, 2, 56..58)].concat();
    let report = evaluate(&pages(&truth), &[], &two_heaps, &[], &truth).collections;
    assert_eq!((report.collections, report.corresponding, report.mixed), (1, 0, 1));
}

#[test]
fn a_stray_page_in_ten_neither_spoils_a_collection_nor_mixes_its_cluster() {
    let truth = truth();
    let strayed =
        |first: u64| [collection(1, first, first..first + 9), collection(1, first, 40 + first / 12..41 + first / 12)];
    let members = [strayed(0), strayed(12)].concat().concat();
    let report = evaluate(&pages(&truth), &[], &members, &[], &truth).collections;
    assert_eq!((report.collections, report.corresponding, report.mixed), (2, 2, 0));
    assert_eq!((report.copies_found, report.copies_whole, report.pages_covered), (2, 0, 20));
    let members = [members, collection(1, 0, 50..51)].concat();
    let report = evaluate(&pages(&truth), &[], &members, &[], &truth).collections;
    assert_eq!((report.collections, report.corresponding, report.mixed), (2, 0, 1), "9 of 11 are too few");
}

#[test]
fn a_collection_needs_ten_pages_and_a_sibling_of_another_copy() {
    let truth = truth();
    let count = |members: &[Vec<TruthMemberRow>]| {
        let report = evaluate(&pages(&truth), &[], &members.concat(), &[], &truth).collections;
        (report.collections, report.corresponding)
    };
    assert_eq!(count(&[collection(1, 1, 0..12)]), (0, 0), "alone in its cluster");
    assert_eq!(count(&[collection(1, 1, 0..9), collection(1, 2, 12..21)]), (0, 0), "nine pages");
    assert_eq!(count(&[collection(1, 1, 0..12), collection(1, 2, 12..15)]), (1, 1), "a small sibling is one");
    assert_eq!(count(&[collection(1, 1, 0..10), collection(1, 2, 10..12)]), (1, 0), "two pieces of one copy");
    assert_eq!(count(&[collection(1, 1, 0..12), collection(1, 2, 36..46)]), (2, 0), "another target");
    assert_eq!(count(&[collection(1, 1, 0..12), collection(2, 1, 12..24)]), (0, 0), "another cluster");
}

#[test]
fn single_texts_count_for_pairs_and_not_for_collections() {
    let truth = [
        truth_row("http://s1/n", "near-0", "0", "text", "near"),
        truth_row("http://s2/n", "near-0", "1", "text", "near"),
        truth_row("http://s3/n", "near-0", "2", "text", "near"),
    ];
    let clusters = [ClusterRow { cluster: 100, doc_id: 100 }, ClusterRow { cluster: 100, doc_id: 101 }];
    let report = evaluate(&pages(&truth), &clusters, &[], &[], &truth);
    assert_eq!(report.pairs, KnownPairCounts { predicted: 1, actual: 3, hits: 1, ..Default::default() });
    assert_eq!(report.collections, CollectionCounts::default());
    assert_eq!(report.variants["near"].recall, Ratio { part: 1, whole: 2 });
}

#[test]
fn the_truth_of_a_synthetic_crawl_is_a_perfect_run_of_itself() {
    let synth = webtwin_synth::Synth::parse("synth://?pages=3000&seed=2").unwrap();
    let mut text = Vec::new();
    synth.truth_tsv(&mut text).unwrap();
    let truth = read_truth("truth.tsv", std::str::from_utf8(&text).unwrap()).unwrap();
    assert_eq!(truth.len() as u64, synth.len());
    let (mut targets, mut copies) = (BTreeMap::new(), BTreeMap::new());
    let mut members = Vec::new();
    for (doc_id, row) in
        (100..).zip(&truth).filter(|(_, row)| !["single", "hub", "near"].contains(&row.variant.as_str()))
    {
        let (next, host) = (targets.len() as u64, row.url.split('/').nth(2).unwrap());
        let similar_cluster = *targets.entry(&row.target).or_insert(next);
        let next = copies.len() as u64;
        let collection = *copies.entry((&row.target, &row.version, host)).or_insert(next);
        members.push(TruthMemberRow { similar_cluster, collection, doc_id });
    }
    let report = evaluate(&pages(&truth), &perfect_clusters(&truth), &members, &[], &truth);
    assert_eq!((report.missing, report.repeated, report.unknown()), (0, 0, 0));
    assert_eq!(report.pairs.precision().value().zip(report.pairs.recall().value()), Some((1.0, 1.0)));
    assert_eq!(report.collections.targets_found, targets.len() as u64);
    // A partial copy may have fewer pages than the minimum. Everything else is found.
    assert_eq!(report.collections.problem_share().value(), Some(0.0));
    assert!(report.collections.coverage().value().unwrap() > 0.97);
    assert_eq!(report.variants["exact"].copies.value(), Some(1.0));
}

/// Returns links that join the pages in a range of the truth to a chain.
fn row_of_links(places: std::ops::Range<u64>) -> Vec<LinkRow> {
    places.clone().zip(places.skip(1)).map(|(src, dst)| LinkRow { src: 100 + src, dst: 100 + dst }).collect()
}

#[test]
fn editions_that_no_link_joins_are_parts_and_pages_without_a_copy_count_apart() {
    // Ten pages each in two languages, on two hosts, and one more page that exists only on the
    // first host.
    let mut truth = Vec::new();
    for host in ["www.a", "m1"] {
        for page in 0..20 {
            let page = format!("{}/{page}", if page < 10 { "en" } else { "ja" });
            truth.push(truth_row(&format!("http://{host}/{page}"), "a", "1", &page, "real"));
        }
    }
    truth.push(truth_row("http://www.a/new", "a", "1", "new", "real"));
    let links = [row_of_links(0..10), row_of_links(10..20), row_of_links(20..30), row_of_links(30..40)].concat();
    let members =
        [collection(1, 1, 0..10), collection(1, 2, 20..30), collection(2, 3, 10..20), collection(2, 4, 30..40)]
            .concat();
    let counts = |links: &[LinkRow], members: &[TruthMemberRow]| {
        evaluate(&pages(&truth), &[], members, links, &truth).collections
    };
    let separate_counts = counts(&links, &members);
    assert_eq!(
        (separate_counts.copies_found, separate_counts.copies_whole, separate_counts.collections_a_copy().value()),
        (2, 0, Some(2.0))
    );
    assert_eq!(
        (separate_counts.parts, separate_counts.parts_whole, separate_counts.collections_a_part().value()),
        (4, 4, Some(1.0))
    );
    assert_eq!(
        (separate_counts.coverage(), separate_counts.coverage_of_copied()),
        (Ratio { part: 40, whole: 41 }, Ratio { part: 40, whole: 40 })
    );
    // With a link between the languages, both copies would be split.
    let joined_links = [&links[..], &[LinkRow { src: 109, dst: 110 }, LinkRow { src: 139, dst: 120 }]].concat();
    let pieces = counts(&joined_links, &members);
    assert_eq!((pieces.parts, pieces.parts_whole, pieces.collections_a_part().value()), (2, 0, Some(2.0)));
    // Links between hosts do not join copies, and nine pages are too few for a part.
    let links_elsewhere = [row_of_links(0..9), vec![LinkRow { src: 108, dst: 129 }]].concat();
    assert_eq!(counts(&links_elsewhere, &members).parts, 0);
}

/// Computes the definitions one by one, over all pairs of pages.
fn reference(
    pages: &[TruthPageRow],
    clusters: &[ClusterRow],
    members: &[TruthMemberRow],
    links: &[LinkRow],
    truth: &[TruthRow],
) -> EvaluationReport {
    let known_rows: Vec<(u64, &TruthRow)> = truth
        .iter()
        .filter_map(|row| pages.iter().find(|page| page.url == row.url).map(|page| (page.doc_id, row)))
        .collect();
    let is_target = |row: &TruthRow| row.variant != "single" && row.variant != "hub";
    let same_page =
        |a: &TruthRow, b: &TruthRow| is_target(a) && is_target(b) && a.target == b.target && a.page == b.page;
    let body = |doc: u64| pages.iter().find(|page| page.doc_id == doc).map_or(0, |page| page.body);
    let is_same_source = |(a, row_a): (&u64, &TruthRow), (b, row_b): (&u64, &TruthRow)| match (
        row_a.origin.as_str(),
        row_b.origin.as_str(),
    ) {
        ("", "") => body(*a) != 0 && body(*a) == body(*b),
        (a, b) => a == b,
    };
    let cluster = |doc: u64| clusters.iter().find(|row| row.doc_id == doc).map(|row| row.cluster);
    let are_together = |a: u64, b: u64| cluster(a).is_some() && cluster(a) == cluster(b);
    let copy =
        |row: &TruthRow| (row.target.clone(), row.version.clone(), row.url.split('/').nth(2).unwrap().to_owned());
    type Copy = (String, String, String);

    // For each page, the pages made of the same bytes, including the page itself.
    let stand_ins: BTreeMap<u64, Vec<&(u64, &TruthRow)>> = known_rows
        .iter()
        .map(|a| (a.0, known_rows.iter().filter(|x| x.0 == a.0 || is_same_source((&x.0, x.1), (&a.0, a.1))).collect()))
        .collect();
    let mut pairs = KnownPairCounts::default();
    for (number, (a, row_a)) in known_rows.iter().enumerate() {
        for (b, row_b) in &known_rows[number + 1..] {
            pairs.predicted += u64::from(are_together(*a, *b));
            pairs.actual += u64::from(same_page(row_a, row_b));
            pairs.hits += u64::from(are_together(*a, *b) && same_page(row_a, row_b));
            let is_accidental = are_together(*a, *b)
                && stand_ins[a].iter().any(|x| stand_ins[b].iter().any(|y| x.0 == y.0 || same_page(x.1, y.1)));
            let undecided = are_together(*a, *b) && !same_page(row_a, row_b);
            let is_possible =
                row_a.perhaps.split(' ').any(|word| !word.is_empty() && row_b.perhaps.split(' ').any(|x| x == word));
            pairs.accidental += u64::from(undecided && is_accidental);
            pairs.open += u64::from(undecided && !is_accidental && is_possible);
        }
    }
    let mut counts = ClusterCounts::default();
    for name in known_rows.iter().filter_map(|(doc, _)| cluster(*doc)).collect::<BTreeSet<_>>() {
        let rows: Vec<_> = known_rows.iter().filter(|(doc, _)| cluster(*doc) == Some(name)).collect();
        counts.clusters += u64::from(rows.len() > 1);
        counts.pure += u64::from(rows.len() > 1 && rows.iter().all(|row| same_page(row.1, rows[0].1)));
    }
    for (number, (_, row)) in known_rows.iter().enumerate() {
        let group: Vec<_> = known_rows.iter().filter(|other| same_page(other.1, row)).collect();
        if group.len() > 1 && group[0].0 == known_rows[number].0 {
            counts.groups += 1;
            counts.whole += u64::from(group.iter().all(|other| are_together(other.0, group[0].0)));
        }
    }

    let rows_of =
        |doc: u64| known_rows.iter().find(|known| known.0 == doc).map(|known| known.1).filter(|row| is_target(row));
    let mut collections: BTreeMap<(u64, u64), BTreeSet<u64>> = BTreeMap::new();
    for row in members {
        collections.entry((row.similar_cluster, row.collection)).or_default().insert(row.doc_id);
    }
    let all_copies: BTreeSet<Copy> =
        known_rows.iter().filter(|known| is_target(known.1)).map(|known| copy(known.1)).collect();
    let share = |docs: &BTreeSet<u64>, wanted_copy: &Copy| {
        docs.iter().filter(|doc| rows_of(**doc).is_some_and(|row| copy(row) == *wanted_copy)).count()
    };
    let copy_held =
        |docs: &BTreeSet<u64>| all_copies.iter().find(|copy| 10 * share(docs, copy) >= 9 * docs.len()).cloned();
    let siblings = |similar: u64| collections.iter().filter(move |(key, _)| key.0 == similar).map(|(_, docs)| docs);
    let compared_collections: Vec<(u64, &BTreeSet<u64>)> = collections
        .iter()
        .filter(|(key, docs)| docs.len() >= 10 && siblings(key.0).count() >= 2)
        .map(|(key, docs)| (key.0, docs))
        .collect();
    let matching_copies: Vec<(Copy, &BTreeSet<u64>)> = compared_collections
        .iter()
        .filter_map(|(cluster, docs)| {
            let own_copy = copy_held(docs)?;
            let has_twin = siblings(*cluster)
                .any(|other| copy_held(other).is_some_and(|other| other.0 == own_copy.0 && other != own_copy));
            has_twin.then_some((own_copy, *docs))
        })
        .collect();
    let copies_found: BTreeSet<&Copy> = matching_copies.iter().map(|(copy, _)| copy).collect();
    let targets_held = |docs: &BTreeSet<u64>| {
        let targets: Vec<&String> = docs.iter().filter_map(|&doc| rows_of(doc)).map(|row| &row.target).collect();
        let main = |target: &&String| targets.iter().filter(|other| *other == target).count() * 10 >= targets.len() * 9;
        let main: BTreeSet<&String> = targets.iter().copied().filter(main).collect();
        if main.is_empty() { targets.into_iter().collect() } else { main }
    };
    let clusters: BTreeSet<u64> = compared_collections.iter().map(|(similar, _)| *similar).collect();
    let size = |of: &Copy| known_rows.iter().filter(|known| is_target(known.1) && copy(known.1) == *of).count();
    let is_whole = |of: &&Copy| compared_collections.iter().any(|(_, docs)| 10 * share(docs, of) >= 8 * size(of));
    let is_covered = |doc: u64| matching_copies.iter().any(|(_, docs)| docs.contains(&doc));
    let mixed = |cluster: &&u64| {
        let targets: BTreeSet<_> = compared_collections
            .iter()
            .filter(|(of, _)| of == *cluster)
            .flat_map(|(_, docs)| targets_held(docs))
            .collect();
        targets.len() > 1
    };

    let target_rows = || known_rows.iter().filter(|known| is_target(known.1));
    let is_copied = |row: &TruthRow| known_rows.iter().filter(|other| same_page(other.1, row)).count() > 1;
    let mut parts: BTreeSet<BTreeSet<u64>> = BTreeSet::new();
    for (doc, row) in target_rows() {
        let in_copy = |doc: &u64| rows_of(*doc).is_some_and(|other| copy(other) == copy(row));
        let mut part = BTreeSet::from([*doc]);
        loop {
            let directed_links = links.iter().flat_map(|link| [(link.src, link.dst), (link.dst, link.src)]);
            let new_pages: Vec<u64> =
                directed_links.filter(|way| part.contains(&way.0)).map(|way| way.1).filter(in_copy).collect();
            let n_before = part.len();
            part.extend(new_pages);
            if part.len() == n_before {
                break;
            }
        }
        part.retain(|&doc| rows_of(doc).is_some_and(is_copied));
        if part.len() >= 10 {
            parts.insert(part);
        }
    }
    let copy_of_part = |part: &BTreeSet<u64>| copy(rows_of(*part.first().unwrap()).unwrap());
    let whole_part = |part: &&BTreeSet<u64>| {
        compared_collections.iter().any(|(_, docs)| 10 * docs.intersection(part).count() >= 8 * part.len())
    };
    let in_parts = |(copy, _): &&(Copy, &BTreeSet<u64>)| parts.iter().any(|part| copy_of_part(part) == *copy);

    let mut variants: BTreeMap<String, VariantCounts> = BTreeMap::new();
    let primary = |target: &str| {
        let rows_of_target =
            || known_rows.iter().map(|known| known.1).filter(|row| is_target(row) && row.target == target);
        // The variant of a copy is that of its first page.
        let is_first = |of: &Copy| rows_of_target().find(|row| copy(row) == *of).unwrap().variant == "primary";
        rows_of_target().map(copy).find(is_first).or_else(|| rows_of_target().map(copy).next()).unwrap()
    };
    for (doc, row) in known_rows.iter().filter(|known| is_target(known.1)) {
        let primary = primary(&row.target);
        if copy(row) == primary {
            continue;
        }
        if let Some(primary_row) = known_rows.iter().find(|other| same_page(other.1, row) && copy(other.1) == primary) {
            let recall = &mut variants.entry(row.variant.clone()).or_default().recall;
            recall.whole += 1;
            recall.part += u64::from(are_together(*doc, primary_row.0));
        }
    }
    for copy_key in &all_copies {
        let first = known_rows.iter().find(|known| is_target(known.1) && copy(known.1) == *copy_key).unwrap().1;
        let copies = &mut variants.entry(first.variant.clone()).or_default().copies;
        copies.whole += 1;
        copies.part += u64::from(copies_found.contains(copy_key));
    }

    let is_real = |row: &TruthRow| ["real", "primary", "version"].contains(&row.variant.as_str());
    let recall = |is_counted: &dyn Fn(&TruthRow, &TruthRow) -> bool| {
        let mut recall = Ratio::default();
        for (number, (a, row_a)) in known_rows.iter().enumerate() {
            for (b, row_b) in
                known_rows[number + 1..].iter().filter(|(_, row)| same_page(row_a, row) && is_counted(row_a, row))
            {
                recall.whole += 1;
                recall.part += u64::from(are_together(*a, *b) && same_page(row_a, row_b));
            }
        }
        recall
    };
    let targets = || known_rows.iter().map(|known| known.1).filter(|row| is_target(row));
    let mut recalls = vec![("pairs of real versions".to_owned(), recall(&|a, b| is_real(a) && is_real(b)))];
    if targets().any(|row| row.variant == "exact") {
        let with_exact = recall(&|a, b| a.variant == "exact" || b.variant == "exact");
        recalls.push(("pairs with exact pages".to_owned(), with_exact));
    }
    let mut copies_by_link = Vec::new();
    if targets().next().is_some() {
        let is_linked_row = |row: &TruthRow| row.linked == Some(true);
        recalls.push(("pairs on linked hosts".to_owned(), recall(&|a, b| is_linked_row(a) && is_linked_row(b))));
        let unlinked_recall = recall(&|a, b| !is_linked_row(a) || !is_linked_row(b));
        recalls.push(("pairs with pages of unlinked hosts".to_owned(), unlinked_recall));
        for (hosts, host) in [("linked", "h1"), ("unlinked", "h0")] {
            let is_on_host = |of: &&Copy| of.2 == host;
            let part = copies_found.iter().copied().filter(is_on_host).count() as u64;
            copies_by_link.push((hosts, Ratio { part, whole: all_copies.iter().filter(is_on_host).count() as u64 }));
        }
    }

    EvaluationReport {
        recall_of: recalls,
        copies_by_link,
        pages: pages.len() as u64,
        truth: truth.len() as u64,
        known: known_rows.len() as u64,
        missing: (truth.len() - known_rows.len()) as u64,
        repeated: 0,
        pairs,
        clusters: counts,
        collections: CollectionCounts {
            collections: compared_collections.len() as u64,
            corresponding: matching_copies.len() as u64,
            targets_found: copies_found.iter().map(|copy| &copy.0).collect::<BTreeSet<_>>().len() as u64,
            targets: all_copies.iter().map(|copy| &copy.0).collect::<BTreeSet<_>>().len() as u64,
            pages_covered: known_rows.iter().filter(|known| is_target(known.1) && is_covered(known.0)).count() as u64,
            pages: known_rows.iter().filter(|known| is_target(known.1)).count() as u64,
            copies_whole: all_copies.iter().filter(is_whole).count() as u64,
            copies_found: copies_found.len() as u64,
            copies: all_copies.len() as u64,
            pages_with_copy: target_rows().filter(|known| is_copied(known.1)).count() as u64,
            pages_with_copy_covered: target_rows().filter(|known| is_copied(known.1) && is_covered(known.0)).count()
                as u64,
            parts: parts.len() as u64,
            parts_whole: parts.iter().filter(whole_part).count() as u64,
            parts_of_copies_found: parts.iter().filter(|part| copies_found.contains(&copy_of_part(part))).count()
                as u64,
            corresponding_in_parts: matching_copies.iter().filter(in_parts).count() as u64,
            mixed: clusters.iter().filter(mixed).count() as u64,
            clusters: clusters.len() as u64,
        },
        variants,
    }
}

prop_compose! {
    /// A truth of up to 80 pages in few copies, and a run that puts most copies into one
    /// collection, with noise.
    fn crawl()(
        rows in prop::collection::vec((0..2u8, 0..2u8, 0..40usize, 0..20u8, 0..5u8), 1..80),
        in_run in prop::collection::vec(prop::bool::weighted(0.95), 80),
        clusters in prop::collection::vec(prop::option::weighted(0.9, 0..8u64), 80),
        homes in prop::collection::vec((0..2u64, 0..3u64), 8),
        bodies in prop::collection::vec(0..20u64, 80),
        origins in prop::collection::vec(prop::sample::select(vec!["", "", "p", "q", "r"]), 80),
        perhaps in prop::collection::vec(prop::sample::select(vec!["", "", "", "", "x", "y", "x y", "z y"]), 80),
        noise in prop::collection::vec(prop::option::weighted(0.06, (0..3u64, 0..3u64)), 80),
        unknown in 0..3u64,
        links in prop::collection::vec((0..86u64, 0..86u64), 0..1000),
    ) -> (Vec<TruthPageRow>, Vec<ClusterRow>, Vec<TruthMemberRow>, Vec<LinkRow>, Vec<TruthRow>) {
        let (mut pages, mut cluster_rows, mut members, mut truth) = (vec![], vec![], vec![], vec![]);
        for (at, (target, version, variant, page, host)) in rows.into_iter().enumerate() {
            let word = ["single", "hub"].get(variant).unwrap_or(&["primary", "version", "exact", "real"][variant % 4]);
            let host = u8::from(host == 0);
            let mut row = truth_row(
                &format!("http://h{host}/{at}"), &format!("t{target}"), &format!("{version}"), &page.to_string(), word,
            );
            row.linked = Some(host == 1);
            (row.origin, row.perhaps) = (origins[at].into(), perhaps[at].into());
            let doc_id = at as u64 * 7 % 83;
            if in_run[at] {
                pages.push(TruthPageRow { doc_id, url: row.url.clone(), body: bodies[at] });
                cluster_rows.extend(clusters[at].map(|cluster| ClusterRow { cluster, doc_id }));
                let home = homes[usize::from(target * 4 + version * 2 + host)];
                let (similar_cluster, collection) = noise[at].unwrap_or(home);
                members.push(TruthMemberRow { similar_cluster, collection, doc_id });
            }
            truth.push(row);
        }
        for doc_id in 200..200 + unknown {
            pages.push(TruthPageRow { doc_id, url: format!("http://u/{doc_id}"), body: 1 });
            cluster_rows.push(ClusterRow { cluster: doc_id % 8, doc_id });
            members.push(TruthMemberRow { similar_cluster: 0, collection: doc_id % 3, doc_id });
        }
        let links = links.into_iter().map(|(src, dst)| LinkRow { src, dst }).collect();
        (pages, cluster_rows, members, links, truth)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn counting_by_groups_equals_the_definitions_over_all_pairs((pages, clusters, members, links, truth) in crawl()) {
        prop_assert_eq!(evaluate(&pages, &clusters, &members, &links, &truth), reference(&pages, &clusters, &members, &links, &truth));
    }

    #[test]
    fn the_order_of_the_runs_rows_does_not_matter((mut pages, mut clusters, mut members, mut links, truth) in crawl()) {
        let report = evaluate(&pages, &clusters, &members, &links, &truth);
        pages.reverse();
        clusters.reverse();
        members.reverse();
        links.reverse();
        members.extend(members.clone());
        prop_assert_eq!(evaluate(&pages, &clusters, &members, &links, &truth), report);
    }
}
