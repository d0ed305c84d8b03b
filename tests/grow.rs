use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;
use webtwin::clusters::growth;
use webtwin::clusters::link_summary::{LinkSummary, cluster_links, link_summary};
use webtwin::clusters::merge::may_merge;
use webtwin::clusters::union_find::{UnionFind, sizes};
use webtwin::dataflow::grow::{self, GrowSummary};
use webtwin::dataflow::reading::foreign_rows::RowCounts;
use webtwin::engine::{ClusterLayout, run};
use webtwin::ids::{ClusterId, HostId, Page, doc_id};
use webtwin::job::{ClusterSettings, MergeCondition, resolve};
use webtwin::results::FinishedRun;
use webtwin::storage::location::Location;

use crate::support::manual::{crawl, url, write};
use crate::support::program::{assert_same_on_any_workers, fail, rows, succeed};

/// Writes TRIVIAL and LINK of a web graph as in the figures of CSG00. Pages are letters, and pages
/// with the same letter are similar. A link "pq" of a site leads from its page p to its page q.
/// `across` are links between sites, by the numbers of pages.
fn figure(folder: &Path, sites: &[(&str, &str)], across: &[(usize, usize)]) -> [String; 2] {
    let (mut trivial, mut link, mut names) = ("rid,pid\n".to_string(), "src,dst\n".to_string(), Vec::new());
    for (pages, links) in sites {
        let first = names.len();
        names.extend(pages.chars().zip(first..).map(|(letter, number)| format!("{letter}{number}")));
        for ends in links.split_whitespace() {
            let page = |letter| &names[first + pages.find(letter).unwrap()];
            let [src, dst] = [0, 1].map(|at| page(ends.chars().nth(at).unwrap()));
            link += &format!("{src},{dst}\n");
        }
    }
    names.iter().for_each(|name| trivial += &format!("{},{name}\n", &name[..1]));
    across.iter().for_each(|&(src, dst)| link += &format!("{},{}\n", names[src], names[dst]));
    [write(folder, "trivial.csv", &trivial), write(folder, "link.csv", &link)]
}

/// Returns the names of nodes by their ids.
fn names(output: &str) -> BTreeMap<String, String> {
    let text = |row: &Value, column: &str| row[column].as_str().unwrap().to_string();
    rows(output, "names").iter().map(|row| (text(row, "doc_id"), text(row, "name"))).collect()
}

/// Returns the collections of each similar cluster as the letters of their pages.
fn collections(output: &str) -> BTreeSet<Vec<String>> {
    let names = names(output);
    let mut letters_of: BTreeMap<[String; 2], BTreeSet<String>> = BTreeMap::new();
    for row in rows(output, "members") {
        let text = |column: &str| row[column].as_str().unwrap().to_string();
        let letter = names[&text("doc_id")][..1].to_string();
        letters_of.entry([text("similar_cluster"), text("collection")]).or_default().insert(letter);
    }
    let mut clusters: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for ([cluster, _], letters) in letters_of {
        clusters.entry(cluster).or_default().push(letters.into_iter().collect());
    }
    clusters
        .into_values()
        .map(|mut collections| {
            collections.sort();
            collections
        })
        .collect()
}

#[test]
fn figures_of_the_paper_grow_as_described_in_its_text() {
    type Figure = (
        &'static [(&'static str, &'static str)],
        &'static [(usize, usize)],
        &'static str,
        &'static [&'static [&'static str]],
    );
    let figures: [Figure; 9] = [
        // Figure 2.
        (&[("pqr", "pq pr"), ("pqr", "pq pr"), ("pqr", "pq pr")], &[], "exact", &[&["pqr", "pqr", "pqr"]]),
        // Figure 3.
        (&[("pqr", "pq pr"), ("pqrS", "pq pr pS")], &[], "exact", &[&["pqr", "pqr"]]),
        (&[("pQrs", "pQ Qr rs"), ("pTrs", "pT Tr rs")], &[], "exact", &[&["rs", "rs"]]),
        (&[("pqr", "pr qr"), ("pqr", "qr")], &[], "exact", &[&["qr", "qr"]]),
        // Figures 4 and 5.
        (
            &[("pqrst", "pq qr rs st"), ("pqrst", "pq qr rs st"), ("pqr", "pq qr")],
            &[],
            "exact",
            &[&["pqr", "pqr", "pqr"], &["st", "st"]],
        ),
        // Figure 6.
        (
            &[("abcdt", "ab bc bd at dc"), ("abcdtg", "ab bc bd at"), ("abcdsg", "ab bc bd"), ("s", "")],
            &[],
            "exact",
            &[&["abcd", "abcd", "abcd"]],
        ),
        // Section 3.1: four equal counts do not imply that each page links to a distinct page.
        (&[("p", ""), ("p", ""), ("p", ""), ("qqq", "")], &[(0, 3), (0, 4), (0, 5), (1, 3), (2, 3)], "exact", &[]),
        // Figure 10.
        (
            &[("abcDEFG", "ab ac bD bE cF cG"), ("abc", "ab ac")],
            &[(8, 3), (8, 4), (9, 5), (9, 6)],
            "exact",
            &[&["abc", "abc"]],
        ),
        (
            &[("abcDEFG", "ab ac bD bE cF cG"), ("abc", "ab ac")],
            &[(8, 3), (8, 4), (9, 5), (9, 6)],
            "extended",
            &[&["DEFGabc", "abc"]],
        ),
    ];
    for (number, (sites, across, merge, want)) in figures.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let [trivial, links] = figure(folder.path(), sites, across);
        let merge = format!("clusters.merge={merge}");
        let output = folder.path().join("out").to_str().unwrap().to_string();
        succeed(&["grow", "--trivial", &trivial, "--links", &links, "--set", &merge, "--output", &output]);
        let want: BTreeSet<Vec<String>> =
            want.iter().map(|cluster| cluster.iter().map(|letters| letters.to_string()).collect()).collect();
        assert_eq!(collections(&output), want, "{number}: {sites:?} {merge}");
    }
}

#[test]
fn joins_of_figure_8_yield_link_summary_on_any_workers() {
    let folder = tempfile::tempdir().unwrap();
    let sites = [("abcdt", "ab bc bd at dc"), ("abcdtg", "ab bc bd at"), ("abcdsg", "ab bc bd"), ("s", "")];
    let [trivial, links] = figure(folder.path(), &sites, &[]);
    let grow = ["grow", "--trivial", &trivial, "--links", &links];
    let (output, message) = assert_same_on_any_workers(folder.path(), "figure", &grow);
    let names = names(&output);
    let clusters: BTreeMap<String, String> = rows(&output, "clusters")
        .iter()
        .map(|row| (row["cluster"].as_str().unwrap().into(), names[row["doc_id"].as_str().unwrap()][..1].into()))
        .collect();
    let row = |row: &Value| {
        let cluster = |column: &str| clusters[row[column].as_str().unwrap()].as_str();
        let counts = ["a", "b", "s", "d"].map(|column| row[column].to_string()).join(" ");
        format!("{}{} {counts}", cluster("src_cluster"), cluster("dst_cluster"))
    };
    let links_found: BTreeSet<String> = rows(&output, "link_summary").iter().map(row).collect();
    assert_eq!(
        links_found,
        ["ab 3 3 3 3", "at 3 2 2 2", "bc 3 3 3 3", "bd 3 3 3 3", "dc 3 3 1 1"].map(String::from).into()
    );
    assert!(message.contains("3 of 5 linked pairs of clusters"), "{message}");
    assert!(message.contains("3 collections with 12 nodes in 1 similar clusters"), "{message}");
    let views = std::fs::read_to_string(format!("{output}/views.sql")).unwrap();
    for table in ["clusters", "collections", "link_summary", "members", "names"] {
        assert!(views.contains(&format!("VIEW {table} AS")), "{views}");
    }
    // This bound leaves no memory for rows, so they are spilled to disk.
    let bounded = ["--set", "effort.memory_bytes=1000000", "--set", "output.partitions=1"];
    let one_partition = ["--set", "output.partitions=1"];
    let (bounded, _) = assert_same_on_any_workers(folder.path(), "bounded", &[&grow[..], &bounded].concat());
    let (plain, _) = assert_same_on_any_workers(folder.path(), "plain", &[&grow[..], &one_partition].concat());
    assert_eq!(rows(&bounded, "members"), rows(&plain, "members"));
}

/// Returns the rows of a table as text, restricted to some columns.
fn table(output: &str, name: &str, columns: &[&str]) -> BTreeSet<String> {
    rows(output, name).iter().map(|row| columns.iter().map(|column| format!("{} ", row[*column])).collect()).collect()
}

#[test]
fn the_clusters_and_links_of_a_run_grow_to_its_collections() {
    let folder = tempfile::tempdir().unwrap();
    let input = crawl(folder.path());
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let exact = ["--set", "clusters.merge=exact", "--set", "clusters.single_site=false"];
    let out = at("run");
    succeed(&[&["run", "--input", &input, "--output", &out][..], &exact].concat());
    assert_eq!(rows(&out, "collections").len(), 3);
    // Labels by URL, also in other spellings, and links by doc id refer to the same nodes.
    let labels: String = (0..6)
        .flat_map(|page| ["a", "b", "c"].map(|site| (page, url(site, page))))
        .map(|(page, url)| format!("{{\"label\": {page}, \"url\": \"{}#top\"}}\n", url.replace("http://", "HTTP://")))
        .collect();
    let labels = write(folder.path(), "labels.jsonl", &labels);
    let (files, folder_of) = (format!("{out}/links/*.parquet"), format!("{out}/clusters"));
    for (number, (trivial, links)) in [(&out, &out), (&folder_of, &files), (&labels, &out)].into_iter().enumerate() {
        let grown = at(&format!("grown-{number}"));
        let message = succeed(&["grow", "--trivial", trivial, "--links", links, "--output", &grown]);
        assert_eq!(message, "");
        for (name, columns) in [
            ("clusters", &["cluster", "doc_id"][..]),
            ("link_summary", &["src_cluster", "dst_cluster", "a", "b", "s", "d"]),
            ("collections", &["similar_cluster", "collection", "cardinality", "size"]),
            ("members", &["similar_cluster", "collection", "cluster", "doc_id"]),
        ] {
            assert_eq!(table(&grown, name, columns), table(&out, name, columns), "{name} by {trivial} and {links}");
        }
        assert_eq!(names(&grown).len(), if number == 2 { 18 } else { 0 });
    }
    assert_eq!(names(&at("grown-2"))[&doc_id(&url("b", 4)).to_string()], url("b", 4));
}

fn summary(output: &str) -> GrowSummary {
    serde_json::from_slice(&std::fs::read(Path::new(output).join("summary.json")).unwrap()).unwrap()
}

#[test]
fn every_row_of_both_tables_is_accounted_for() {
    let folder = tempfile::tempdir().unwrap();
    let labels = "label\tnode\nx\ta\nx\tb\nx\ta\ny\tb\n\tz\ny\n7\t1\n7\t01\n";
    let more = "{\"cluster\": 7, \"doc_id\": 2}\n{\"cluster\": \"x\"}\n[]\n";
    let links = "src,dst,weight\na,1,0.5\na,1,0.7\n\n\"b\",2,\na,a,1\nzz,zz,1\na,zz,1\nzz,1,1\n,1\n\"a,1\n01,2\n";
    let [labels, more, links] = [("labels.tsv", labels), ("more.jsonl", more), ("links.csv", links)]
        .map(|(name, text)| write(folder.path(), name, text));
    let grow = ["grow", "--trivial", &labels, "--trivial", &more, "--links", &links];
    let (output, message) = assert_same_on_any_workers(folder.path(), "rows", &grow);
    let row_counts = |[read, used, unknown, malformed, malformed_bytes, self_pairs, duplicates]: [u64; 7]| RowCounts {
        read,
        used,
        unknown,
        malformed,
        malformed_bytes,
        self_pairs,
        duplicates,
    };
    let totals = summary(&output);
    // `x` and `y` are connected by b, and 01 is the same node as 1.
    assert_eq!((totals.nodes, totals.trivial_clusters), (4, 2));
    assert_eq!(totals.trivial, row_counts([11, 5, 0, 4, "\tz\ny\n{\"cluster\": \"x\"}\n[]\n".len() as u64, 0, 2]));
    assert_eq!(totals.links, row_counts([10, 3, 2, 2, ",1\n\"a,1\n".len() as u64, 2, 1]));
    assert!(message.contains("of 11 rows of labels, 5 are used, 4 are malformed (25 bytes)"), "{message}");
    assert!(message.contains("of 10 links, 3 are used, 2 have an end without a label, 2 are malformed"), "{message}");
}

#[test]
fn invalid_graph_is_rejected_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").to_str().unwrap().to_string();
    let [trivial, links] = figure(folder.path(), &[("pq", "pq"), ("pq", "pq")], &[]);
    let refused = |trivial: &str, links: &str, more: &[&str], code| {
        let grow = ["grow", "--trivial", trivial, "--links", links, "--output", &out, "--workers", "2"];
        fail(&[&grow[..], more].concat(), code)
    };
    let error = refused(&links, &links, &[], 3);
    assert!(error.contains("link.csv") && error.contains("no column label") && error.contains("src, dst"), "{error}");
    let error = refused(&trivial, &trivial, &[], 3);
    assert!(error.contains("trivial.csv") && error.contains("no column src") && error.contains("rid, pid"), "{error}");
    let none = folder.path().join("none.csv").to_str().unwrap().to_string();
    assert!(refused(&none, &links, &[], 3).contains("none.csv"));
    assert!(refused(&trivial, &none, &[], 3).contains("none.csv"));
    let cut = write(folder.path(), "cut.parquet", "PAR1 and no more");
    assert!(refused(&trivial, &cut, &[], 3).contains("bad_parquet"));
    let same_id = write(folder.path(), "same.csv", &format!("label,node\nx,one\nx,{}\n", doc_id("one")));
    let error = refused(&same_id, &links, &[], 3);
    assert!(error.contains("one") && error.contains("rename one of them"), "{error}");
    for setting in ["clusters.merge=tolerant", "clusters.single_site=true"] {
        assert!(refused(&trivial, &links, &["--set", setting], 2).contains("a graph has no hosts"));
    }
    let run = ["run", "--set", "preset=grow", "--output", &out];
    assert!(fail(&run, 2).contains("no labels are given; add --trivial or pairs.from"));
    let from = format!("pairs.from={trivial}");
    assert!(fail(&[&run[..], &["--set", &from]].concat(), 2).contains("no links are given; add --links or input.urls"));
    assert!(fail(&["plan", "--set", "preset=grow"], 2).contains("plan: kind = \"grow\""));
    assert!(!Path::new(&out).exists());

    // The same job can be given by settings. A result of a run alone reports its own origin.
    succeed(&[&run[..], &["--set", &from, "--input", &links]].concat());
    assert_eq!(collections(&out), BTreeSet::from([vec!["pq".to_string(); 2]]));
    let graph = succeed(&["check", "--set", "preset=grow", "--set", &from, "--dataflow"]);
    assert!(graph.contains("grow/nodes.rs") && graph.contains("by component of the TCG"), "{graph}");
    let error = refused(&out, &links, &[], 4);
    assert!(error.contains("out"), "{error}");
    assert!(fail(&["explain", &out, "http://a.example/", "http://b.example/"], 2).contains("no table of pages"));
    assert!(fail(&["report", &out], 2).contains("grow"));
}

/// A graph of nodes 0 to 15, some named by numbers and others by text, with labels and links.
#[derive(Debug, Clone)]
struct Graph {
    labels: Vec<(u32, usize)>,
    links: Vec<(usize, usize)>,
}

fn graph() -> impl Strategy<Value = Graph> {
    let any =
        (prop::collection::vec((0u32..7, 0usize..14), 0..30), prop::collection::vec((0usize..16, 0usize..16), 0..60));
    // Copies of one small graph, each with a few more or fewer links.
    let copies = (
        prop::collection::btree_set((0usize..4, 0usize..4), 2..8),
        prop::collection::vec((0usize..16, 0usize..16), 0..3),
        prop::collection::btree_set(0usize..24, 0..3),
    );
    let copies = copies.prop_map(|(edges, more, lost)| {
        let of_copy = |copy: usize| edges.iter().map(move |(src, dst)| (4 * copy + src, 4 * copy + dst));
        let links =
            (0..4).flat_map(of_copy).enumerate().filter(|(number, _)| !lost.contains(number)).map(|(_, link)| link);
        Graph { labels: (0..16).map(|node| (node as u32 % 4, node)).collect(), links: links.chain(more).collect() }
    });
    prop_oneof![any.prop_map(|(labels, links)| Graph { labels, links }), copies]
}

impl Graph {
    /// Returns the name and the id of a node.
    fn node(node: usize) -> (String, u64) {
        match node % 3 {
            0 => (node.to_string(), node as u64),
            1 => (format!("node {node}"), doc_id(&format!("node {node}"))),
            _ => (format!("http://a.example/{node}#x"), doc_id(&format!("http://a.example/{node}"))),
        }
    }

    /// Writes both tables, each in two forms, and returns their names.
    fn write(&self, folder: &Path) -> [Vec<String>; 2] {
        let half = |from: usize, rows: &[String]| rows.iter().skip(from).step_by(2).cloned().collect::<String>();
        let csv: Vec<String> =
            self.labels.iter().map(|&(label, node)| format!("{label},{}\n", Graph::node(node).0)).collect();
        let json = |&(src, dst): &(usize, usize)| {
            format!("{}\n", serde_json::json!({"src": Graph::node(src).0, "dst": Graph::node(dst).0}))
        };
        let json: Vec<String> = self.links.iter().map(json).collect();
        let labels =
            [0, 1].map(|from| write(folder, &format!("{from}.csv"), &format!("label,node\n{}", half(from, &csv))));
        let links = [0, 1]
            .map(|from| half(from, &json))
            .map(|text| if text.is_empty() { "{\"src\": 0, \"dst\": 0}\n".into() } else { text });
        let links = [0, 1].map(|from| write(folder, &format!("{from}.jsonl"), &links[from]));
        [labels.into(), links.into()]
    }

    /// Returns the ids of the labelled nodes, their trivial clusters, and the links between them.
    fn plain(&self) -> (Vec<u64>, Vec<ClusterId>, Vec<(Page, Page)>) {
        let ids: BTreeSet<u64> = self.labels.iter().map(|&(_, node)| Graph::node(node).1).collect();
        let ids: Vec<u64> = ids.into_iter().collect();
        let page = |node: usize| ids.binary_search(&Graph::node(node).1).ok().map(|page| page as u32);
        let mut sets = UnionFind::new(ids.len());
        for &(label, node) in &self.labels {
            let first = self.labels.iter().find(|other| other.0 == label).unwrap().1;
            sets.union(page(first).unwrap(), page(node).unwrap());
        }
        let links = self.links.iter().filter(|(src, dst)| src != dst);
        let links: BTreeSet<(Page, Page)> =
            links.filter_map(|&(src, dst)| Some((Page(page(src)?), Page(page(dst)?)))).collect();
        let labels = sets.labels().into_iter().map(ClusterId).collect();
        (ids, labels, links.into_iter().collect())
    }
}

/// Returns the rows of a table of ids and numbers in the order of the table.
fn numbers<const N: usize>(run: &FinishedRun, name: &str, columns: [&str; N]) -> Vec<[u64; N]> {
    let table = run.table(name).unwrap();
    let value = |column: &str, row: usize| match table.u64(column) {
        Ok(values) => values[row],
        Err(_) => u64::from(table.u32(column).unwrap()[row]),
    };
    (0..table.rows()).map(|row| columns.map(|column| value(column, row))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn growth_of_a_graph_equals_the_plain_functions(
        graph in graph(), workers in 1usize..4, min_size in 1u32..3,
        // With a bound of one byte, all rows are spilled to disk.
        memory_bytes in 0u64..2,
        merge in prop::sample::select(vec![MergeCondition::Exact, MergeCondition::Extended]),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut job = resolve("", "preset = \"grow\"", &[]).unwrap();
        job.clusters = ClusterSettings { merge, min_size, ..job.clusters };
        job.effort.memory_bytes = memory_bytes;
        [job.pairs.from, job.input.urls] = graph.write(folder.path());
        let (settings, out) = (job.clusters, folder.path().join("out").to_str().unwrap().to_string());
        let location = Location::parse(&out).unwrap();
        let grown = run(&ClusterLayout::local(workers), 0, [0; 32], move |net| grow::run(net, &job, &location));
        let summaries = grown.unwrap();
        let (totals, result) = (&summaries[0], FinishedRun::open(&out).unwrap());

        let (ids, labels, links) = graph.plain();
        let (sizes, hosts) = (sizes(&labels), (0..ids.len() as u32).map(HostId).collect::<Vec<_>>());
        let id = |page: Page| ids[page.0 as usize];
        let mut clusters: Vec<[u64; 2]> = Page::first(ids.len())
            .filter(|&page| sizes[labels[page]] > 1)
            .map(|page| [id(labels[page].smallest()), id(page)])
            .collect();
        clusters.sort_unstable();
        prop_assert_eq!(numbers(&result, "clusters", ["cluster", "doc_id"]), clusters);

        let mut between = cluster_links(&labels, &hosts, &links, false);
        let summary = link_summary(&mut between, |cluster| sizes[cluster]);
        let row = |row: &LinkSummary| {
            let [a, b, s, d] = [row.a, row.b, row.s, row.d].map(u64::from);
            [id(row.src_cluster.smallest()), id(row.dst_cluster.smallest()), a, b, s, d]
        };
        let columns = ["src_cluster", "dst_cluster", "a", "b", "s", "d"];
        prop_assert_eq!(numbers(&result, "link_summary", columns), summary.iter().map(row).collect::<Vec<_>>());
        prop_assert_eq!(totals.merging, summary.iter().filter(|row| may_merge(row, merge)).count() as u64);

        let similar = growth::similar_clusters(&labels, &hosts, &links, &settings);
        let (mut collections, mut members) = (Vec::new(), Vec::new());
        for cluster in &similar {
            for collection in &cluster.collections {
                let (name, cluster_id) = (id(collection.first_page()), id(cluster.id().smallest()));
                let counts = [cluster.collections.len() as u64, collection.members.len() as u64];
                collections.push([cluster_id, name, counts[0], counts[1], id(collection.root)]);
                let row = |&(cluster, page): &(ClusterId, Page)| [cluster_id, name, id(cluster.smallest()), id(page)];
                members.extend(collection.members.iter().map(row));
            }
        }
        collections.sort_unstable();
        members.sort_unstable();
        let columns = ["similar_cluster", "collection", "cardinality", "size", "root"];
        prop_assert_eq!(&numbers(&result, "collections", columns), &collections);
        let columns = ["similar_cluster", "collection", "cluster", "doc_id"];
        prop_assert_eq!(&numbers(&result, "members", columns), &members);

        let names = result.table("names").unwrap();
        let texts = names.text("name").unwrap().iter().map(String::from);
        let names: Vec<(u64, String)> = names.u64("doc_id").unwrap().iter().copied().zip(texts).collect();
        let named: BTreeSet<(u64, String)> = (graph.labels.iter().map(|row| Graph::node(row.1)))
            .filter(|(name, id)| *name != id.to_string())
            .map(|(name, id)| (id, name.trim_end_matches("#x").to_string()))
            .collect();
        prop_assert_eq!(names, named.into_iter().collect::<Vec<_>>());

        let counted = [totals.similar_clusters, totals.collections, totals.members, totals.taken_out];
        let taken_out = similar.iter().map(|cluster| u64::from(cluster.taken_out)).sum();
        let want = [similar.len(), collections.len(), members.len()].map(|count| count as u64);
        prop_assert_eq!(counted, [want[0], want[1], want[2], taken_out]);
        prop_assert_eq!((totals.nodes, totals.links.used), (ids.len() as u64, links.len() as u64));
        let labelled: BTreeSet<&(u32, usize)> = graph.labels.iter().collect();
        prop_assert_eq!((totals.trivial.read, totals.trivial.used), (graph.labels.len() as u64, labelled.len() as u64));
        let RowCounts { read, used, unknown, malformed, self_pairs, duplicates, .. } = totals.links;
        prop_assert_eq!(read, used + unknown + malformed + self_pairs + duplicates);
    }
}
