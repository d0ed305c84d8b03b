//! All integration tests in one binary, for dataflow code is slow to link many times.

// Addresses of hosts, as evidence that hosts are one server.
mod addresses;

// Overlap in bounded memory equals the sort-based table: any workers, processes, memory and way of
// counting.
mod all_pairs;

// Messages of a build without a cargo feature about what it lacks.
mod absent;

// WARC files whose payloads are kept once, and what they were made of.
mod archive;
mod avoid;

// Damaged and hostile WARC files: the records that survive, and the reports of the others.
mod bad_warc;

// Several records of one URL, second or id: which of them counts, wherever they lie.
mod captures;

// Crawls in zip archives: the same pages as in files of their own.
mod containers;

// The program as people call it: commands, exit codes, and the same bytes at any number of workers
// and processes.
mod cli;

// Editions of pages in other languages, as the pages name them, and the pairs refused for that.
mod editions;

// Finished runs explained, and read again from every form of input.
mod compare;

// Streams without a reader, and those that cannot be written.
mod console;

// Crawls as crawlers leave them: the files that they write in addition to the pages stop no run.
mod crawl_folders;

// A new crawl, and the copies of its pages in earlier ones.
mod batch;

// Every wired step equals its plain function, at 1, 2 and 3 workers.
mod dataflow;

// Decisions of people: copies that stay, pages that are never joined, and one file with both.
mod decisions;

// A corpus of texts without its duplicates: the bytes that stay, and the reports of those that are
// removed.
mod dedup;

// A deduplicated corpus looked at: why two records are duplicates, and its report.
mod explained_corpus;

// A killed deduplication goes on from the files that it has read.
mod resumed_corpus;

// Two crawls compared: the outcome of pages, sites and the avoid list.
mod diff;

// The statements of shipped documents and job files are true.
mod documents;

// Fingerprint files, the batch join and the self-join: the results of brute force, the same bytes
// on any workers.
mod hamming;

// The Hamming distance problem by itself: plans, indexes, online queries.
mod hamming_cli;

// What becomes of mirrors from crawl to crawl, how far they are behind, and what to visit again.
mod history;

// The list in force once a crawler obeys it: exports of a comparison, and an index that answers by
// them.
mod in_force;

// Which of several copies stays, by rules of one's own.
mod keep;

// Similar pairs and labels from elsewhere: the results made of them, and the errors for bad ones.
mod given;

// Any graph of which similar nodes are known, grown to similar clusters.
mod grow;

// Runs that others start: Slurm, Kubernetes, a shell on each host.
mod language;
mod launch;

// Permitted dependencies between the modules.
mod layering;

// Several runs into one output, and runs killed amid writing it: one whole result, and the right
// cause.
mod obeyed;
mod outputs;

// The index of a run: what it answers, against its tables.
mod lookup;

// Messages and help texts, as one reviewed file has them.
mod messages;

// What lies between trivial clusters, where some of these have changed.
mod link_summary;

// Similar pairs taken over from the crawl before, where pages are as they were.
mod overlap_merge;

// Statements of the five papers, in the papers' order.
mod papers;

// Simhashes, signatures and shingles recomputed from docs/recipes.md alone.
mod recipes;
mod recrawl;

// What `webtwin plan` predicts, against what runs report.
mod plan;

// PDF and PostScript documents are pages like others, within bounds.
mod postscript;
#[cfg(feature = "pdf")]
mod printed;

// Other programs read the tables of a result and lose nothing.
mod readers;

// Who may take part in a run, what the primitives of the engine move, and how runs end.
mod rendezvous;

// Pairs by shingles equal those of the definition, and those of dedup on the same texts.
mod minhash;

// A report has the contents of the tables, whatever text the pages have.
mod report;

// Runs that were killed or failed, resumed: the same bytes, and records that must not be used are
// not.
mod resume;

// Runs that are begun again by themselves: which failures, how often, and what a signal or a kill
// does then.
mod retries;

// Chunks, features and links that do not fit in memory: the same result from disk, bounds held, and
// disks that fail.
mod local_pages;

// What moves rows between steps: few and many, at any number of workers and processes.
mod shuffle;

// Redirects carry links through.
mod redirects;

// Revisit records mean the pages they refer to.
mod revisits;

// Objects in a real S3 server on loopback.
#[cfg(feature = "aws")]
mod s3;

// Runs and commands that are asked to end: their messages, the files that they leave, and their
// resumption.
mod signals;

// Records in segments mean the records they are segments of.
mod segments;

// Scheduled runs where something went wrong: with the crawl, the comparison before, or the command.
mod schedule;

// The study of duplicates: every pair looked at, the same bytes on any workers, and the paper's
// tables made of it.
mod study;
mod substitutes;

// URL rules, from a crawl to look-ups.
mod url_rules;

// Search by words, rolled up, against a plain scan.
#[cfg(feature = "search")]
mod search;

// The index that grows: what it answers, and that nothing acknowledged is lost.
#[cfg(feature = "serve")]
mod live;

// The server over an index: what it answers, whom it refuses, and that it goes on.
#[cfg(feature = "serve")]
mod serve;

// What several of these use.
mod support;

// One page under many URLs of one host, and pages that report a missing page.
mod views;

// Files of the bad-input list through the doors of a run.
mod storage;
