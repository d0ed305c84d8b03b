//! The table of settings in `docs/settings.md`: the meaning of each setting, next to the defaults
//! of the code.

use toml::{Table, Value};

use super::Job;

/// Effect of a setting on a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The setting may change the result.
    Answer,
    /// The setting changes only how or where the work is done.
    Effort,
}

use Effect::{Answer, Effort};

/// Name, effect and meaning of every setting that a job file may have, in the order of the
/// documentation. The meaning is Markdown whose links are relative to `docs/`.
pub const DESCRIPTIONS: &[(&str, Effect, &str)] = &[
    (
        "kind",
        Answer,
        r#"Result to compute: `replicas`; `fingerprints` (a fingerprint file F); `hamming` (F joined with a batch Q, or with itself); `batch` (a new crawl joined with F, and its matches in earlier crawls); `signatures` (as `replicas` with `similar.by = "signatures"`); `study` (where and how duplicates occur; use `preset = "study"`); `grow` (similar clusters in any graph, from tables of labels and links; use `preset = "grow"`); `recrawl` (as `replicas`, for the live inputs of a state; inputs that have not changed are not read again)"#,
    ),
    (
        "input.urls",
        Answer,
        r#"Paths, URLs, globs, folders, `@LIST` files, `synth://` URLs; with `kind = "grow"` tables of links. `--input` replaces them. Compared as typed: another spelling of a path makes another job"#,
    ),
    (
        "input.originals",
        Answer,
        "Inputs of earlier crawls, as `input.urls`: revisit records find their originals there, and no other record of them is a page. Same as `--originals`",
    ),
    ("input.base", Answer, "http(s) URL under which the files of a folder of HTML appear"),
    (
        "input.max_bad",
        Answer,
        "Maximum fraction of damaged records in one input, or of the bytes lost with them, 0 to 1; beyond it the run ends with exit code 5. A single damaged record among good ones is always allowed, unless it is most of the file",
    ),
    (
        "input.fields.url",
        Answer,
        "Field with the URL in JSONL and Parquet. A dot leads into an object or group, and the first present of several names counts, here and below",
    ),
    ("input.fields.html", Answer, "Field with the HTML"),
    ("input.fields.text", Answer, "Field with the text, if there is no HTML; such pages have no links"),
    (
        "input.fields.time",
        Answer,
        "Field with the fetch time: a date, or a number of seconds, milli-, micro- or nanoseconds",
    ),
    (
        "input.digests",
        Answer,
        r#"`"check"`: a page whose `WARC-Block-Digest` and `WARC-Payload-Digest` do not match is kept, and counted as repaired (`digest_mismatch`)"#,
    ),
    (
        "input.printed",
        Answer,
        "Documents for print that are pages: `text` (PDF and PostScript, which needs Ghostscript (`gs`), else they are `no_converter`), `pdf`, or `skip` (`not_text`)",
    ),
    (
        "input.limits.record_bytes",
        Answer,
        "Maximum size of a record in bytes, before and after decoding; larger ones are rejected",
    ),
    (
        "input.limits.window_bytes",
        Effort,
        "Maximum window of a zstd frame or xz stream, 1048576 to 2147483648 bytes, which each worker may allocate; larger ones end the run with exit code 3",
    ),
    ("input.limits.links", Answer, "Maximum number of links kept per page; the first ones stay"),
    (
        "input.limits.printed_seconds",
        Answer,
        "Maximum processor time for a PDF or PostScript document, in seconds, at least 1",
    ),
    (
        "input.limits.printed_bytes",
        Answer,
        "Maximum address space of the process that reads it, in bytes, at least 268435456",
    ),
    (
        "links.through",
        Answer,
        "Redirections that are followed when a link to a URL is counted for another page: `redirects` (301, 302, 303, 307, 308), `refresh` (`<meta http-equiv=refresh>` to another URL within 10 seconds, which also counts as a link to that URL), `canonical` (`<link rel=canonical>`)",
    ),
    ("output.url", Effort, "Folder for the result, path or URL; `--output` replaces it"),
    (
        "output.partitions",
        Answer,
        "Virtual partitions, a power of two up to 4096: the maximum number of files of a table",
    ),
    ("output.fprint_docid", Answer, "True to write the table `fprint_docid`: one row per distinct chunk of each page"),
    (
        "output.export_bytes",
        Answer,
        "Approximate size in bytes, at least 4096, of the parts into which larger lists in `exports/` are divided ([parts](crawlers.md#large-lists))",
    ),
    (
        "chunks.unit",
        Answer,
        "Unit of a chunk: `document`, `lines`, `sentences`, `paragraphs`, `words`, `shingle-paragraphs` (three sentences, PBZ06)",
    ),
    ("chunks.count", Answer, "Units per chunk; 1 for `document` and `shingle-paragraphs`"),
    (
        "chunks.sliding",
        Answer,
        "True if a chunk starts at every unit instead of every `count` units; not for `document` and `shingle-paragraphs`",
    ),
    (
        "chunks.wrap",
        Answer,
        "Columns at which lines are wrapped before they are counted, at least 16; 0 does not wrap. Text in scripts without spaces is wrapped as well ([lines](recipes.md#lines)). Only for `lines`",
    ),
    ("chunks.bits", Answer, "Width of a fingerprint: 64, or the papers' 32"),
    (
        "chunks.min_text",
        Answer,
        "Minimum length of a page's text in bytes: a page with less is a copy only of pages with the same HTML, byte for byte",
    ),
    ("overlap.min_shared", Answer, "T: minimum number of chunks that two similar pages share, at least 1"),
    (
        "overlap.min_resemblance",
        Answer,
        "Minimum fraction of the larger page's chunks that must be shared, 0 to 1; 0 turns this off",
    ),
    (
        "overlap.min_resemblance_alone",
        Answer,
        r#"The same minimum for pages on two hosts with links that are not in mirrors of each other, applied once collections are known; only with `clusters.merge = "tolerant"` and `similar.guard = "neighbours"`; 0 turns this off"#,
    ),
    (
        "overlap.views",
        Answer,
        "Minimum resemblance of two texts of one host with the same title that are views of one page: of all their chunks, and of those that are not boilerplate of the host (or three quarters of it if few texts there have the title); 0 turns this off",
    ),
    (
        "overlap.template_pages",
        Answer,
        "Maximum number of pages of one host with a chunk: a chunk on more is boilerplate and is ignored; 0 turns the filter off",
    ),
    (
        "overlap.max_documents",
        Answer,
        "Maximum number of pages with a chunk: a chunk on more is ignored; 0 turns the limit off",
    ),
    (
        "similar.by",
        Answer,
        "Source of similar pairs: `overlap` (shared chunks), `hamming` (simhashes), `both` of them, `signatures` (RP and HM, DDGMP03), `minhash` (sets of shingles), or `given` (only those of `pairs.from`)",
    ),
    (
        "similar.guard",
        Answer,
        "Rule that decides which similar pairs may join clusters: `neighbours`, `mutual-best`, `centre` or `none` ([guards](#guards))",
    ),
    (
        "hamming.k",
        Answer,
        r#"Maximum number of bits in which the simhashes of similar pages differ, less than 64; for `kind = "hamming"` less than the width of F"#,
    ),
    (
        "fingerprints.from",
        Answer,
        r#"For `kind = "fingerprints"`: ready-made fingerprints (a run's folder, `.u64`, text) instead of the pages of `input.urls`"#,
    ),
    ("batch.fingerprints", Answer, r#"For `kind = "hamming"` and `"batch"`: F, the folder of a fingerprint file"#),
    (
        "batch.queries",
        Answer,
        "Q: a fingerprint file, a run's folder, `.u64` or text. Without it F is joined with itself; a file without rows has no pairs",
    ),
    (
        "batch.results",
        Answer,
        r#"For `kind = "batch"`: folders of the results that have read the pages of F, the newest last. URLs and links of pages near the new crawl are read from their tables"#,
    ),
    ("batch.groups", Answer, "True to write documents by group instead of pair by pair"),
    (
        "batch.max_pairs",
        Answer,
        "Maximum number of pairs. If there are more, the run counts them all, reports their number and ends without making any. The pairs are also bounded by `effort.memory_bytes` and `effort.disk_bytes`",
    ),
    ("simhash.bits", Answer, "f: width of a simhash, 1 to 64; 0 turns simhashes off"),
    (
        "simhash.recipe",
        Answer,
        "Features of a simhash: `plain` (phrases of three terms, by frequency), `weighted` (phrases of two, by 1 + log2 of the frequency, and by their rarity in the crawl), or parts, which may follow such a name: `phrases:N` (1 to 16 terms), `weights:count`, `log` or `once`, `idf`, `stop-words:LANG` and `stemming:LANG` (ISO 639-1), `least:N` (minimum number of features of a page with a simhash; 8). `weighted` is `phrases:2 weights:log idf`",
    ),
    (
        "signatures.recipe",
        Answer,
        "Recipe of signatures: `plain` (5 components, terms by frequency, the sum of the children, γ = 0.001, links 3 deep), `weighted` (`components:16 weights:log unit-length children:mean damping:1 depth:5`), or parts, which may follow a name: `components:K` (1 to 64), `seed:N`, `weights:`, `stop-words:` and `stemming:` as in `simhash.recipe`, `unit-length`, `children:sum` or `mean`, `damping:γ` (0 to 1), `depth:N` (0 to 8), `least:N` (minimum number of terms of a page with signatures; 8)",
    ),
    ("signatures.rp_tolerance", Answer, "D: RP signatures collide if no component differs by this, 0 to 1"),
    ("signatures.hm_tolerance", Answer, "C: the same for HM signatures; 1 leaves the decision to RP"),
    (
        "minhash.shingle",
        Answer,
        "Shingles of a page: `words:N` (without case and punctuation), `tokens:N` (text between spaces, with both) or `chars:N` (without case), 1 to 1000 units ([folded text](recipes.md#folded-text))",
    ),
    (
        "minhash.threshold",
        Answer,
        "Minimum resemblance of similar pages, 0.01 to 1: the fraction of the shingles of either that both have",
    ),
    (
        "pairs.from",
        Answer,
        r#"Tables of similar pairs from elsewhere, or of pages with labels, added to the pairs of `similar.by`: a result, files, globs or folders; Parquet, CSV, TSV or JSON lines ([format](#pairs-from-elsewhere)). With `kind = "grow"` [tables of labels](#growth-in-any-graph). Their SHA-256 is `pairs.from_sha256` in the resolved job and in the digest"#,
    ),
    (
        "pairs.apart",
        Answer,
        "File of pairs of pages that are not copies of each other: two URLs per line, separated by a tab, and after another tab the reason; or a table (Parquet, CSV or TSV with a header line, or JSON lines) with the columns `url_a` and `url_b`, and `note` for the reason, of which with a column `tag` the rows tagged `false` count. The pages of a pair are never in one set of similar pages ([decisions](tables.md#decisions-that-count-in-the-next-run)). Empty: none. Its SHA-256 is `pairs.apart_sha256` in the resolved job and in the digest; if a job file gives that, other content is an error",
    ),
    (
        "clusters.merge",
        Answer,
        "Condition under which clusters are joined: `exact` (as many pages on both sides, CSG00 section 3.1), `extended` (a mirror may lack pages, section 4) or `tolerant` (mirrors may be other versions, after sections 2.2 and 6; see [below](#mirrors-that-are-other-versions))",
    ),
    ("clusters.single_site", Answer, "True if a collection is on one host; `true` for `tolerant`"),
    (
        "clusters.min_size",
        Answer,
        "Minimum number of pages of a reported collection, at least 1 (for `tolerant` always at least 3). With 1, under `exact` and `extended`, a trivial cluster without joins is a similar cluster as well",
    ),
    (
        "clusters.min_hosts",
        Answer,
        "`tolerant` only: minimum number of hosts of a similar cluster; with 1, copies within one host count as mirrors as well",
    ),
    (
        "clusters.attach",
        Answer,
        "`tolerant` only: pages that growth does not reach and that still belong to a collection: `none`, `break-points` (between its pages), `nearby` (linked mostly with its pages, or with a copy in the same place of another collection)",
    ),
    (
        "keep.prefer",
        Answer,
        "Globs over URLs (`*` matches slashes, too): of several copies a page that matches the first stays, then one that matches the second, and so on, before all others",
    ),
    (
        "keep.sticky",
        Answer,
        "Folder of an earlier result, as typed: a page that it kept for others stays before all copies without a match in `keep.prefer`, and its collection before others. Empty: none",
    ),
    (
        "keep.pins",
        Answer,
        "File of copies that stay before all others: a URL per line, and after a tab the reason; or a table with a column `url`, and `note` for the reason; or a table as for `pairs.apart`, of which the rows tagged `keep` count. Of two in one set the first by the usual order stays. Empty: none. `keep.pins_sha256` is as `pairs.apart_sha256`",
    ),
    (
        "keep.seeds",
        Answer,
        "URLs at which a crawler starts: never on the avoid list, and entry points for the paths that it leaves open",
    ),
    (
        "keep.min_resemblance",
        Answer,
        "Minimum fraction of a skipped page's distinct chunks that the page which stays for it contains, 0 to 1; a page below it stays, and so does a page in another language. 0 turns both off",
    ),
    (
        "keep.by",
        Answer,
        "Rule that selects the copy that stays: `links` (most links from other hosts), `newest`, `oldest`, `longest` (text), `shortest-url` or `smallest-id`",
    ),
    ("study.steps", Answer, "m: number of subcollections, and of steps of the algorithm (PBZ06 section 3), at least 1"),
    (
        "study.seed",
        Answer,
        "URL of the page from which a crawl is simulated; empty: a page of the largest strongly connected component",
    ),
    (
        "study.reference",
        Answer,
        "Folder of an earlier study, as typed, whose growth is used to estimate all duplicates from the first 20 and 50 % of the steps (PBZ06 section 4.2)",
    ),
    (
        "recrawl.least_pages",
        Effort,
        "Minimum number of pages of a crawl as a fraction of the previous one, 0 to 1; a smaller crawl is refused (exit code 5, [failed crawls](recrawl.md#a-crawl-in-which-most-of-the-web-failed)). 0 accepts every crawl",
    ),
    (
        "recrawl.avoided",
        Answer,
        "Compliance of the new crawl with the old result's avoid list: `no`; `yes`: gone pages that are on it are `avoided`, not `absent`; `probed`: it also fetched the pages that the previous comparison requested (`exports/revisit.txt`), and those without a record are gone; with `yes` only if the crawl has a record of half of them",
    ),
    ("effort.shard_bytes", Effort, "Bytes of input of a work item, at least 65536; equal in all processes of a run"),
    (
        "effort.memory_bytes",
        Effort,
        r#"Memory budget of a process, by estimate: a number of bytes, or with a unit, as all settings of bytes (`"8GB"`, `"512MiB"`). Data that does not fit is spilled to `effort.spill`; a run that needs more ends with exit code 9. 0 sets no limit"#,
    ),
    ("effort.spill", Effort, "Folder on a local disk for spilled data; empty: the system's temporary folder"),
    (
        "effort.disk_bytes",
        Effort,
        "Maximum bytes of spill files of a process in `effort.spill` at one time. If the limit is low, rows and pairs are made in passes; a run that still does not fit ends with exit code 9. 0 allows all free space",
    ),
];

/// Returns every setting of `table` by dotted name, with its value as TOML.
fn leaves(prefix: &str, table: &Table, leaf_values: &mut Vec<(String, String)>) {
    for (key, value) in table {
        match value {
            Value::Table(inner) => leaves(&format!("{prefix}{key}."), inner, leaf_values),
            value => leaf_values.push((format!("{prefix}{key}"), value.to_string())),
        }
    }
}

/// Returns the table of all settings as Markdown: name, default, effect, meaning.
///
/// # Panics
///
/// Panics if a setting has no description, or a description no setting.
pub fn settings_table() -> String {
    let mut defaults = Vec::new();
    leaves("", &Table::try_from(Job::default()).expect("a job is a TOML table"), &mut defaults);
    let undescribed: Vec<&str> = defaults
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| !DESCRIPTIONS.iter().any(|described| described.0 == *name))
        .collect();
    assert!(undescribed.is_empty(), "settings lack a description in src/job/settings/described.rs: {undescribed:?}");
    let row = |(name, effect, meaning): &(&str, Effect, &str)| {
        let default = defaults.iter().find(|(known, _)| known == name);
        let (_, default) = default.unwrap_or_else(|| panic!("{name} is described but is not a setting"));
        let effect = if *effect == Answer { "answer" } else { "effort" };
        format!("| `{name}` | `{default}` | {effect} | {meaning} |\n")
    };
    let head = "| setting | default | effect | meaning |\n|---|---|---|---|\n";
    head.to_string() + &DESCRIPTIONS.iter().map(row).collect::<String>()
}
