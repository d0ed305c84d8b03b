//! What a scheduled job goes on from, and how two crawls are compared.

use serde::{Deserialize, Serialize};

/// What a scheduled job goes on from (`kind = "recrawl"`), and how the results of two crawls are compared (`webtwin diff`).
///
/// Skipped fields are options of the command line only: what they say holds for a single run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recrawl {
    /// Folder of the state: path or store URL.
    #[serde(skip)]
    pub state: String,
    /// Inputs that join those that are live in the state.
    #[serde(skip)]
    pub add: Vec<String>,
    /// Live inputs, or files of theirs, that leave.
    #[serde(skip)]
    pub retract: Vec<String>,
    /// Live inputs, or files of theirs, that are read again though name, length and version are as they were.
    #[serde(skip)]
    pub replace: Vec<String>,
    /// True if copies stay that the result of the state's newest generation kept, as if it were `keep.sticky`.
    #[serde(skip)]
    pub sticky: bool,
    /// Folder for the comparison with the result before; empty for none.
    #[serde(skip)]
    pub diff: String,
    /// The result to compare with; empty for that of the state's newest generation.
    #[serde(skip)]
    pub against: String,
    /// True if the texts of changed pages are read again, which then decide instead of simhashes.
    #[serde(skip)]
    pub texts: bool,
    /// True if results of different settings are compared all the same, by their pages only.
    #[serde(skip)]
    pub across_settings: bool,
    /// Pages that may be fetched to probe collections on the avoid list.
    #[serde(skip, default = "Recrawl::default_budget")]
    pub budget: u64,
    /// Fraction of the pages that the run before had, 0 to 1, without which a crawl is refused.
    pub least_pages: f64,
    /// How far the new crawl obeyed the avoid list of the old one.
    pub avoided: Avoided,
    /// Fraction of a collection's pages that must have changed to be noticed by probes, above 0 and below 1.
    #[serde(skip, default = "Recrawl::default_probe_share")]
    pub probe_share: f64,
}

/// How far a crawl obeyed the avoid list of the crawl before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Avoided {
    /// Not at all: pages on the list that are gone are absent.
    No,
    /// Pages on the list were not fetched.
    Yes,
    /// The same, but the pages that the comparison before asked for were fetched, so that those it has nothing of are gone.
    Probed,
}

impl Avoided {
    /// Value in settings.
    pub fn name(self) -> &'static str {
        ["no", "yes", "probed"][self as usize]
    }
}

impl Recrawl {
    /// True if the new crawl obeyed the old result's avoid list.
    pub fn obeys(&self) -> bool {
        self.avoided != Avoided::No
    }

    fn default_probe_share() -> f64 {
        0.1
    }

    fn default_budget() -> u64 {
        1000
    }
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
            texts: false,
            across_settings: false,
            budget: Recrawl::default_budget(),
            least_pages: 0.5,
            avoided: Avoided::No,
            probe_share: Recrawl::default_probe_share(),
        }
    }
}
