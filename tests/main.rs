//! All integration tests in one binary, since dataflow code takes long to link.

// Addresses of hosts as evidence that several hosts are one server.
mod addresses;

// The overlap in bounded memory equals the sort-based table with any number of workers and
// processes, any memory and any counting method.
mod all_pairs;

// Messages about features that a build lacks.
mod missing_features;

// The checks of the fuzz targets hold for the initial corpus.
mod fuzz_targets;

// Archives that store each payload once, and their restoration.
mod archive;

// A crawler that obeys the avoid list reaches every page that the list keeps.
mod avoid;

// Damaged and hostile WARC files: the records that survive, and the reports about the others.
mod bad_warc;

// Several records with the same URL, second or id: which of them counts, in any order and files.
mod captures;

// Crawls in zip archives and other containers yield the same pages as plain files.
mod containers;

// The program as users call it: commands, exit codes, and the same bytes with any number of workers
// and processes.
mod cli;

// Editions of pages in other languages, as the pages declare them, and the pairs refused because of
// them.
mod editions;

// Explanations of finished runs, for which the pages are read again from every form of input.
mod compare;

// Output streams without a reader, and streams that cannot be written.
mod console;

// Folders as crawlers leave them: files next to the pages do not stop a run.
mod crawl_folders;

// Copies of the pages of a new crawl in earlier crawls.
mod batch;

// Every step of the dataflow equals its plain function, on 1, 2 and 3 workers.
mod dataflow;

// Decisions of users: pinned copies, pages that are never joined, and files with both.
mod decisions;

// Deduplication of a corpus of texts: the bytes that stay, and the reports about removed records.
mod dedup;

// Explanations and reports of a deduplicated corpus.
mod explained_corpus;

// A killed deduplication continues from the files that it has read.
mod resumed_corpus;

// Comparison of two crawls: the outcome of pages, sites and the avoid list.
mod diff;

// The documents and job files of this repository are correct.
mod documents;

// Fingerprint files, the batch join and the self-join equal brute force, with the same bytes on any
// workers.
mod hamming;

// The Hamming distance problem on its own: plans, indexes, online queries.
mod hamming_cli;

// Mirrors over several crawls: their outcomes, their lag, and the pages to visit again.
mod history;

// The list in force while a crawler obeys it: exports of a comparison, and an index with the list.
mod list_in_force;

// The choice among several copies, by rules that users set.
mod keep;

// Similar pairs and labels from other sources: the results, and the errors for invalid tables.
mod external_pairs;

// Growth of any graph with known similar nodes to similar clusters.
mod grow;

// Rules of the language guide.
mod language;

// Runs that are started by Slurm, Kubernetes or a shell on each host.
mod launch;

// Permitted dependencies between the modules.
mod layering;

// A crawler that obeys the list over several weeks never loses the last copy of a page.
mod obeying_crawler;

// Several runs into one output, and runs killed while they write: one complete result, and the
// right cause.
mod outputs;

// The index of a run answers according to the tables of the run.
mod lookup;

// Messages and help texts equal the reviewed file.
mod messages;

// `LinkSummary` after some trivial clusters have changed.
mod link_summary;

// Similar pairs of unchanged pages, reused from the previous crawl.
mod overlap_merge;

// Statements of the five papers, in the order of the papers.
mod papers;

// Simhashes, signatures and shingles, recomputed from docs/recipes.md alone.
mod recipes;

// Scheduled jobs: results with the same bytes as runs from scratch.
mod recrawl;

// Predictions of `webtwin plan`, compared with the reports of runs.
mod plan;

// PostScript documents are pages like others, within limits.
mod postscript;

// PDF documents are pages like others, within limits.
#[cfg(feature = "pdf")]
mod printed;

// Other programs read the tables of a result without loss.
mod readers;

// Processes that meet and fail together, and the primitives of the engine.
mod rendezvous;

// Pairs by shingles equal the definition, and those of dedup on the same texts.
mod minhash;

// A report has the contents of the tables, whatever text the pages contain.
mod report;

// Killed or failed runs that are resumed yield the same bytes, and invalid checkpoints are not
// used.
mod resume;

// Runs that are restarted automatically: after which failures, how often, and the effect of signals
// and kills.
mod retries;

// Chunks, features and links that do not fit in memory: the same result from disk, bounds, and full
// disks.
mod local_pages;

// Exchange of few and many rows between steps, with any number of workers and processes.
mod shuffle;

// Links to redirects count as links to their targets.
mod redirects;

// Revisit records stand for the pages that they refer to.
mod revisits;

// Storage on a real S3 server on loopback.
#[cfg(feature = "aws")]
mod s3;

// Runs and commands that receive a signal: their messages, their files, and their resumption.
mod signals;

// Segmented records are joined.
mod segments;

// Scheduled runs after a failure of the crawl, of the previous comparison or of the command.
mod schedule;

// The study of duplicates equals a comparison of every pair, with the same bytes on any workers.
mod study;

// The text of each skipped page stays on another page.
mod substitutes;

// URL rules, from a crawl to look-ups.
mod url_rules;

// Search with rolled-up results equals a plain scan.
#[cfg(feature = "search")]
mod search;

// The live index: its answers, and that no acknowledged page is lost.
#[cfg(feature = "serve")]
mod live;

// The server of an index: its answers, its refusals, and its robustness.
#[cfg(feature = "serve")]
mod serve;

// Helpers of several modules.
mod support;

// Pages under many URLs of one host, and pages that report a missing page.
mod views;

// The files of the list of bad inputs, through the functions of a run.
mod storage;
