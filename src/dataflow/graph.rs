//! Graph of a job: its operators, and the keys by which rows travel from one operator to the next
//! (`webtwin check --dataflow`).

use std::fmt::Write;

use super::clusters::context_pairs::is_asked_for;
use super::clusters::context_pass::CONTEXT;
use super::clusters::grown::{GROWTH, SECOND_GROWTH};
use super::pairs::similar::{GIVEN, HAMMING, MINHASH, OVERLAP, SIGNATURES, VIEWS};
use super::sinks::kept::KEEPING;
use webtwin_job::{Guard, Job, JobKind, Measure, MergeCondition};

/// Operator of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    /// Name of the operator; the name of the step if the operator is a step.
    pub name: &'static str,
    /// Source file of the operator, relative to `src/dataflow/`.
    pub file: &'static str,
    /// Rows that the operator receives.
    pub inputs: Vec<OperatorInput>,
}

/// Rows that are sent to an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperatorInput {
    /// Operator that sends the rows, or a source that is not an operator, such as files.
    pub from: &'static str,
    /// Name of the rows.
    pub rows: &'static str,
    /// Receivers of the rows.
    pub route: Route,
}

/// Receivers of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// Worker that already has the rows.
    Local,
    /// Worker that owns this key.
    By(&'static str),
    /// Every process.
    All,
}

use Route::{All, By, Local};

/// Operators of a job, in the order in which they run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorGraph {
    /// Operators, in the order in which they run.
    pub operators: Vec<Operator>,
}

/// Input in the short form that this file uses: sender, name of the rows, and route.
type Edge = (&'static str, &'static str, Route);

impl OperatorGraph {
    /// Returns the graph of a job.
    pub fn from_job(job: &Job) -> OperatorGraph {
        let mut graph = OperatorGraph { operators: Vec::new() };
        match job.kind {
            JobKind::Replicas | JobKind::Signatures | JobKind::Recrawl => {
                graph.pages(job);
                graph.measures(job);
                graph.collections(job);
            }
            JobKind::Batch => graph.batch(job),
            JobKind::Hamming => graph.hamming(job),
            JobKind::Fingerprints => graph.fingerprints(job),
            JobKind::Study => graph.study(job),
            JobKind::Grow => graph.grow(),
        }
        graph
    }

    fn add(&mut self, name: &'static str, file: &'static str, inputs: &[Edge]) {
        let inputs = inputs.iter().map(|&(from, rows, route)| OperatorInput { from, rows, route }).collect();
        self.operators.push(Operator { name, file, inputs });
    }

    /// Adds the operators from files to the newest capture of every URL and the centres of equal
    /// texts.
    fn pages(&mut self, job: &Job) {
        self.add("read", "reading/ingest.rs", &[("crawl", "work items, in turn", Local)]);
        self.add("pages", "reading/captures.rs", &[("read", "captures", By("doc id"))]);
        if job.simhash.features.idf && job.simhash.bits > 0 {
            let pages = ("pages", "numbers of pages", By("slot"));
            self.add("simhashes", "reading/idf.rs", &[("read", "features", By("feature, then page")), pages]);
        }
    }

    fn exact_copies_and_links(&mut self) {
        self.add("exact copies", "pairs/exact.rs", &[("pages", "FPrint-DocID-Exact", By("fingerprint"))]);
        let directory = ("pages", "doc id and host of every page", All);
        self.add("LINK", "clusters/links.rs", &[("read", "(src, dst)", By("src")), directory]);
    }

    /// Adds the operators that find pairs by the similarity measures of the job (\[CSG00\]
    /// Definition 4).
    fn measures(&mut self, job: &Job) {
        self.exact_copies_and_links();
        let mut pairs = vec![("exact copies", "pairs (centre, copy)", Local)];
        let mut measure = |graph: &mut OperatorGraph, name, file, inputs: &[Edge]| {
            graph.add(name, file, inputs);
            pairs.push((name, "pairs", By("smaller page")));
        };
        let similar_by = job.similar.by;
        if job.with_views() {
            let titles = ("pages", "titles and chunks", By("URL and title"));
            measure(self, VIEWS.name, "pairs/views.rs", &[titles]);
        }
        if matches!(similar_by, Measure::Overlap | Measure::Both) {
            let chunks = ("read", "FPrint-DocID", By("fingerprint, then pair"));
            measure(self, OVERLAP.name, "pairs/overlap_join.rs", &[chunks, ("exact copies", "excluded pages", All)]);
        }
        if matches!(similar_by, Measure::Hamming | Measure::Both) {
            let simhashes = (if job.simhash.features.idf { "simhashes" } else { "pages" }, "simhashes of centres", All);
            measure(self, HAMMING.name, "hamming/self_join.rs", &[simhashes]);
        }
        if similar_by == Measure::Signatures {
            let values = ("LINK", "values of children", By("child"));
            measure(self, SIGNATURES.name, "pairs/signatures.rs", &[("pages", "signatures", By("slab")), values]);
        }
        if similar_by == Measure::Minhash {
            let keys = ("read", "sets of shingles", By("key of a band, then pair"));
            measure(self, MINHASH.name, "pairs/minhash_pairs.rs", &[keys]);
        }
        self.add_given_pairs(job, &mut pairs);
        self.similar_pairs(job, &pairs);
    }

    /// Adds the operator that reads pairs found by another program.
    fn add_given_pairs(&mut self, job: &Job, pairs: &mut Vec<Edge>) {
        if !job.pairs.from.is_empty() {
            let rows = ("given tables", "pairs and labels, in parts", Local);
            self.add(GIVEN.name, "pairs/given_tables.rs", &[rows, ("pages", "doc id of every page", All)]);
            pairs.push((GIVEN.name, "pairs", By("label, then smaller page")));
        }
    }

    fn similar_pairs(&mut self, job: &Job, pairs: &[Edge]) {
        let mut inputs = pairs.to_vec();
        if job.overlap.guard == Guard::Neighbours {
            inputs.push(("LINK", "links of paired pages", By("component of pairs")));
        }
        self.add("similar pairs", "pairs/similar.rs", &inputs);
    }

    /// Adds the operators for TRIVIAL, LinkSummary, TCG and similar clusters (\[CSG00\] section 3),
    /// and for the pages that a crawler may skip (section 5.1).
    fn collections(&mut self, job: &Job) {
        self.add("TRIVIAL", "shuffle/components.rs", &[("similar pairs", "spanning forests, two by two", All)]);
        let labels = ("TRIVIAL", "cluster of every page", All);
        self.add(
            "LinkSummary",
            "clusters/link_summary.rs",
            &[("LINK", "⟨src, dst⟩ with clusters", By("(Ri, Rj)")), labels],
        );
        let (growth, key) = match job.clusters.merge {
            MergeCondition::Tolerant => ("clusters/tolerant.rs", "host, trivial cluster, similar cluster"),
            MergeCondition::Exact | MergeCondition::Extended => ("clusters/growth.rs", "component of the TCG"),
        };
        self.add(GROWTH.name, growth, &[("LinkSummary", "links that may merge", By(key))]);
        // Later operators read the last growth, which is the second one if there is a context pass.
        let mut growth_name = GROWTH.name;
        if is_asked_for(job) {
            let members = (GROWTH.name, "pages and links of mirrors", By("similar cluster"));
            self.add(
                CONTEXT.name,
                "clusters/context_pairs.rs",
                &[members, ("read", "chunks of proposed pairs", By("pair"))],
            );
            let changed_pairs = (CONTEXT.name, "pairs added and removed", By("smaller page"));
            self.add("TRIVIAL again", "shuffle/components.rs", &[changed_pairs, ("similar pairs", "pairs", Local)]);
            let links = ("LINK", "⟨src, dst⟩ of changed clusters", By("(Ri, Rj)"));
            self.add(SECOND_GROWTH.name, growth, &[("TRIVIAL again", "cluster of every page", All), links]);
            growth_name = SECOND_GROWTH.name;
        }
        // The context pass changes pairs, so later operators read the clusters that are computed
        // after it.
        let trivial = if is_asked_for(job) { "TRIVIAL again" } else { "TRIVIAL" };
        self.add(
            "servers",
            "clusters/servers.rs",
            &[(trivial, "pages of clusters", By("cluster, then pair of hosts"))],
        );
        let copies = (trivial, "pages with copies", By("cluster"));
        self.add(
            KEEPING.name,
            "sinks/kept.rs",
            &[(growth_name, "collections", By("cluster")), copies, ("LINK", "crawl paths", By("host"))],
        );
        self.add("avoid list", "sinks/avoid_table.rs", &[(KEEPING.name, "pages to skip", By("kept page, then host"))]);
        self.add("URL rules", "sinks/url_rules.rs", &[(trivial, "URLs with clusters", By("domain"))]);
        let mut tables = vec![("pages", "pages", By("partition")), ("LINK", "links", By("partition"))];
        if self.operators.iter().any(|operator| operator.name == "simhashes") {
            tables.push(("simhashes", "simhashes of pages", By("partition")));
        }
        let last_tables = ["similar pairs", "LinkSummary", KEEPING.name, "servers", "avoid list", "URL rules"];
        tables.extend(last_tables.map(|name| (name, "rows", By("partition"))));
        self.add("tables", "sinks/tables.rs", &tables);
        self.add("commit", "sinks/write.rs", &[("tables", "names and checksums of files", By("the first worker"))]);
    }

    /// Adds the timely operators that match Q against F (\[MJS07\] section 3.3).
    fn probe(&mut self, q: Edge) {
        self.add("tables of Q", "hamming/batch.rs", &[q]);
        let pieces = ("F", "pieces, in turn", Local);
        self.add("probe F", "hamming/batch.rs", &[pieces, ("tables of Q", "tables, once a process", All)]);
        self.add("merge", "hamming/merge.rs", &[("probe F", "near pairs", By("pair"))]);
    }

    fn batch(&mut self, job: &Job) {
        self.pages(job);
        self.probe(("pages", "simhashes of the new crawl", All));
        let near = ("merge", "documents of F near a page of Q", All);
        let tables = ("earlier results", "pages and links of near documents, by file", By("doc id"));
        self.add("pages of F", "batch/earlier.rs", &[near, tables]);
        self.exact_copies_and_links();
        let f_input = ("pages of F", "pages and links", Local);
        self.operators.iter_mut().filter(|operator| operator.name == "LINK").for_each(|link| {
            link.inputs.push(OperatorInput { from: f_input.0, rows: f_input.1, route: f_input.2 });
        });
        let mut pairs = vec![("exact copies", "pairs (centre, copy)", Local), ("merge", "pairs", By("smaller page"))];
        self.add_given_pairs(job, &mut pairs);
        self.similar_pairs(job, &pairs);
        self.collections(job);
    }

    fn hamming(&mut self, job: &Job) {
        if job.batch.queries.is_empty() {
            self.add("join F with itself", "hamming/self_join.rs", &[("F", "blocks of tables, in turn", Local)]);
            self.add("documents", "hamming/documents.rs", &[("join F with itself", "near runs", By("chunk of F"))]);
            self.add("merge", "hamming/merge.rs", &[("documents", "near pairs", By("pair"))]);
        } else {
            self.add("read Q", "hamming/batch.rs", &[("queries", "items, in turn", Local)]);
            self.probe(("read Q", "fingerprints", All));
        }
        let mut last = "merge";
        if job.batch.groups {
            self.operators.pop();
            let near = self.operators.last().map_or("F", |operator| operator.name);
            self.add("groups", "hamming/groups.rs", &[(near, "near fingerprints", By("component"))]);
            last = "groups";
        }
        self.add("write parts", "hamming/merge.rs", &[(last, "rows", By("range of ids"))]);
    }

    fn fingerprints(&mut self, job: &Job) {
        let mut rows = ("ready-made fingerprints", "rows", By("chunk of F"));
        if job.fingerprints.from.is_empty() {
            self.pages(job);
            rows = (if job.simhash.features.idf { "simhashes" } else { "pages" }, "simhashes", By("chunk of F"));
        }
        self.add("sort and encode chunks", "hamming/chunks.rs", &[rows]);
    }

    fn study(&mut self, job: &Job) {
        self.pages(job);
        self.exact_copies_and_links();
        let marks = ("read", "marks of shingle paragraphs", By("fingerprint, then pair"));
        self.add("near-duplicates", "study/near.rs", &[marks, ("exact copies", "excluded pages", All)]);
        let clusters = ("near-duplicates", "pairs", By("smaller page"));
        self.add("connected part", "study/web.rs", &[("LINK", "links, step by step", By("dst"))]);
        self.add("growth of duplicates", "study/find.rs", &[clusters, ("connected part", "order of pages", All)]);
        self.add("tables", "study/mod.rs", &[("growth of duplicates", "documents", By("partition"))]);
    }

    /// Adds the operators of growth in any graph whose similar nodes are known (\[CSG00\] section
    /// 6).
    fn grow(&mut self) {
        self.add("nodes", "grow/nodes.rs", &[("given tables", "⟨node, label⟩", By("id of the node"))]);
        self.add("TRIVIAL", "shuffle/components.rs", &[("nodes", "nodes with one label", By("label"))]);
        let links = ("given tables", "⟨src, dst⟩", By("src"));
        self.add("LINK", "grow/nodes.rs", &[links, ("nodes", "ids of nodes", All)]);
        let labels = ("TRIVIAL", "cluster of every node", All);
        let links = ("LINK", "⟨src, dst⟩ with clusters", By("(Ri, Rj)"));
        self.add("LinkSummary", "clusters/link_summary.rs", &[links, labels]);
        let edges = ("LinkSummary", "edges of the TCG", By("component of the TCG"));
        let links = ("LINK", "links and nodes", By("component of the TCG"));
        self.add(GROWTH.name, "clusters/growth.rs", &[edges, links]);
        let collections = (GROWTH.name, "collections", By("partition"));
        let rows = [collections, ("LinkSummary", "rows", By("partition")), ("TRIVIAL", "clusters", By("partition"))];
        self.add("tables", "grow/tables.rs", &rows);
    }

    /// Returns the graph as text, with a line for each operator and for each of its inputs.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for Operator { name, file, inputs } in &self.operators {
            let _ = writeln!(text, "{name}  ({file})");
            for OperatorInput { from, rows, route } in inputs {
                let _ = writeln!(text, "    <- {from}: {rows}{}", route.suffix());
            }
        }
        text
    }

    /// Returns the graph in the language of Graphviz.
    pub fn dot(&self) -> String {
        let mut dot = "digraph webtwin {\n  node [shape=box];\n".to_string();
        for Operator { name, file, inputs } in &self.operators {
            let _ = writeln!(dot, "  {name:?} [tooltip={file:?}];");
            for OperatorInput { from, rows, route } in inputs {
                if !self.operators.iter().any(|other| other.name == *from) {
                    let _ = writeln!(dot, "  {from:?} [shape=cylinder];");
                }
                let _ = writeln!(dot, "  {from:?} -> {name:?} [label={:?}];", format!("{rows}{}", route.suffix()));
            }
        }
        dot + "}\n"
    }
}

impl Route {
    fn suffix(self) -> String {
        match self {
            Local => String::new(),
            By(key) => format!(", by {key}"),
            All => ", to every process".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Sources that are not operators.
    const SOURCES: [&str; 6] = ["crawl", "given tables", "F", "queries", "earlier results", "ready-made fingerprints"];

    fn jobs() -> Vec<Job> {
        let kinds = [
            JobKind::Replicas,
            JobKind::Batch,
            JobKind::Hamming,
            JobKind::Fingerprints,
            JobKind::Signatures,
            JobKind::Study,
            JobKind::Recrawl,
            JobKind::Grow,
        ];
        let mut jobs: Vec<Job> = kinds.map(|kind| Job { kind, ..Job::default() }).into();
        for measure in [Measure::Hamming, Measure::Both, Measure::Signatures, Measure::Minhash] {
            let mut job = Job::default();
            job.similar.by = measure;
            job.simhash.features.idf = true;
            jobs.push(job);
        }
        for kind in [JobKind::Replicas, JobKind::Batch] {
            let mut job = Job { kind, ..Job::default() };
            job.similar.by = Measure::Given;
            job.pairs.from = vec!["pairs.csv".into()];
            jobs.push(job);
        }
        let mut batch_job = Job { kind: JobKind::Hamming, ..Job::default() };
        batch_job.batch.queries = vec!["q".into()];
        jobs.push(batch_job.clone());
        batch_job.batch.groups = true;
        jobs.push(batch_job);
        let mut exact = Job::default();
        exact.clusters.merge = MergeCondition::Exact;
        jobs.push(exact);
        jobs
    }

    #[test]
    fn operators_use_earlier_outputs_and_every_row_reaches_the_result() {
        for job in jobs() {
            let OperatorGraph { operators } = OperatorGraph::from_job(&job);
            for (place, operator) in operators.iter().enumerate() {
                assert!(operators[..place].iter().all(|other| other.name != operator.name), "{}", operator.name);
                for input in &operator.inputs {
                    let is_known = operators[..place].iter().any(|other| other.name == input.from);
                    assert!(
                        is_known || SOURCES.contains(&input.from),
                        "{:?}: {} takes {}",
                        job.kind,
                        operator.name,
                        input.from
                    );
                }
                let is_taken =
                    operators[place..].iter().any(|other| other.inputs.iter().any(|i| i.from == operator.name));
                assert!(is_taken || place + 1 == operators.len(), "{:?}: nobody takes {}", job.kind, operator.name);
            }
        }
    }

    #[test]
    fn source_files_of_operators_exist() {
        for operator in jobs().iter().flat_map(|job| OperatorGraph::from_job(job).operators) {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(operator.file);
            assert!(path.exists(), "{}: {}", operator.name, operator.file);
        }
    }

    #[test]
    fn graphs_are_text_and_graphviz() {
        let job = Job { kind: JobKind::Batch, ..Job::default() };
        let graph = OperatorGraph::from_job(&job);
        assert!(graph.text().contains("merge  (hamming/merge.rs)\n    <- probe F: near pairs, by pair\n"));
        let dot = graph.dot();
        assert!(dot.starts_with("digraph webtwin {\n") && dot.ends_with("}\n"));
        assert!(dot.contains("\"probe F\" -> \"merge\" [label=\"near pairs, by pair\"];"));
        assert!(dot.contains("\"F\" [shape=cylinder];"));
    }
}
