//! What a scheduled job goes on from, and how two crawls are compared.

use serde::{Deserialize, Serialize};

/// What a scheduled job goes on from (`kind = "recrawl"`), and how the results of two crawls are compared (`webtwin diff`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recrawl {
    /// Folder of the state: path or store URL.
    pub state: String,
    /// Inputs that join those that are live in the state.
    pub add: Vec<String>,
    /// Live inputs, or files of theirs, that leave.
    pub retract: Vec<String>,
    /// Live inputs, or files of theirs, that are read again though name, length and version are as they were.
    pub replace: Vec<String>,
    /// Whether copies stay that the result of the state's newest generation kept, as if it were `keep.sticky`.
    pub sticky: bool,
    /// Folder for the comparison with the result before; empty for none.
    pub diff: String,
    /// The result to compare with; empty for that of the state's newest generation.
    pub against: String,
    /// Generations that the state keeps, the newest among them.
    pub keep_generations: u32,
    /// Share of pages, of their chunks, or of the pairs these make, beyond which similar pairs are found from scratch, 0 to 1.
    pub max_change: f64,
    /// Share of the pages that the run before had, 0 to 1, without which a crawl is refused.
    pub least_pages: f64,
    /// Bits of the simhash in which a page whose text has changed may differ to be `near`.
    pub near_bits: u32,
    /// Bits beyond which it is `rewritten`.
    pub rewritten_bits: u32,
    /// Whether the texts of changed pages are read again, which then decide instead of simhashes.
    pub texts: bool,
    /// Resemblance of the texts from which on a page is `near`, 0 to 1.
    pub near: f64,
    /// Resemblance below which it is `rewritten`, 0 to 1.
    pub rewritten: f64,
    /// Share of the pages that a site lost which another must have gained under the same paths to be the same site, moved.
    pub site_moved: f64,
    /// Whether gone pages that were on the old crawl's avoid list are taken for skipped on purpose.
    pub avoided: bool,
    /// Whether the crawler also fetched the pages that the comparison before asked for, so that those it has nothing of are gone.
    pub probed: bool,
    /// Whether pages that stayed the same have rows, too.
    pub all_pages: bool,
    /// Whether results of different settings are compared all the same, by their pages only.
    pub across_settings: bool,
    /// Crawls in a row that must have nothing of a collection for it to have died; until then it is missing.
    pub patience: u32,
    /// Crawls whose pages a history keeps, the newest included: those that a mirror can be told to lag behind.
    pub versions: u32,
    /// Share of a collection's pages that must have another text for the collection to have changed, 0 to 1.
    pub changed_share: f64,
    /// Mean resemblance to the pages that are kept below which a mirror has drifted, 0 to 1.
    pub drift: f64,
    /// Confidence in the answer of the pages probed of a collection, above 0 and below 1.
    pub confidence: f64,
    /// Share of a collection's pages that must have changed to be noticed with that confidence, above 0 and below 1.
    pub probe_share: f64,
    /// Intervals between crawls that the pooled hazard counts for against a mirror's own.
    pub prior_intervals: f64,
    /// Pages that may be fetched to probe collections on the avoid list.
    pub budget: u64,
}

impl Default for Recrawl {
    fn default() -> Self {
        Recrawl {
            state: String::new(),
            add: Vec::new(),
            retract: Vec::new(),
            replace: Vec::new(),
            sticky: false,
            diff: String::new(),
            against: String::new(),
            keep_generations: 2,
            max_change: 0.25,
            least_pages: 0.5,
            near_bits: 6,
            rewritten_bits: 18,
            texts: false,
            near: 0.9,
            rewritten: 0.35,
            site_moved: 0.5,
            avoided: false,
            probed: false,
            all_pages: false,
            across_settings: false,
            patience: 2,
            versions: 4,
            changed_share: 0.1,
            drift: 0.5,
            confidence: 0.95,
            probe_share: 0.1,
            prior_intervals: 4.0,
            budget: 1000,
        }
    }
}
