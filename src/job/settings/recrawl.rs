//! Settings of scheduled jobs and of the comparison of two crawls.

use serde::{Deserialize, Serialize};

/// State of a scheduled job (`kind = "recrawl"`), and comparison of the results of two crawls
/// (`webtwin diff`).
///
/// Skipped fields are options of the command line only, because their values apply to a single run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Recrawl {
    /// Folder of the state: path or store URL.
    #[serde(skip)]
    pub state: String,
    /// Inputs to add to the live inputs of the state.
    #[serde(skip)]
    pub add: Vec<String>,
    /// Live inputs, or files of them, to remove.
    #[serde(skip)]
    pub retract: Vec<String>,
    /// Live inputs, or files of them, to read again although name, length and version are
    /// unchanged.
    #[serde(skip)]
    pub replace: Vec<String>,
    /// True if copies are kept that the result of the state's newest generation kept, like with
    /// `keep.sticky`.
    #[serde(skip)]
    pub sticky: bool,
    /// Folder for the comparison with the previous result. Empty for none.
    #[serde(skip)]
    pub diff: String,
    /// Result to compare with. Empty for that of the state's newest generation.
    #[serde(skip)]
    pub against: String,
    /// True if the texts of changed pages are read again and decide instead of simhashes.
    #[serde(skip)]
    pub texts: bool,
    /// True if results of different settings are compared nevertheless, by their pages only.
    #[serde(skip)]
    pub across_settings: bool,
    /// Number of pages that may be fetched to probe collections on the avoid list.
    #[serde(skip, default = "Recrawl::default_budget")]
    pub budget: u64,
    /// Minimum number of pages, as a fraction (0 to 1) of those of the previous run. A crawl with
    /// fewer is rejected.
    pub least_pages: f64,
    /// Degree to which the new crawl obeyed the avoid list of the old one.
    pub avoided: AvoidancePolicy,
    /// Fraction of a collection's pages that must have changed for probes to notice, above 0 and
    /// below 1.
    #[serde(skip, default = "Recrawl::default_probe_share")]
    pub probe_share: f64,
}

/// Degree to which a crawl obeyed the avoid list of the previous crawl.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AvoidancePolicy {
    /// The list was not obeyed: pages on the list that are missing are gone.
    No,
    /// The pages on the list were not fetched.
    Yes,
    /// The pages on the list were not fetched, except those that the previous comparison requested.
    /// So requested pages that are missing are gone.
    Probed,
}

impl AvoidancePolicy {
    /// Returns the value in settings.
    pub fn name(self) -> &'static str {
        ["no", "yes", "probed"][self as usize]
    }
}

impl Recrawl {
    /// True if the new crawl obeyed the old result's avoid list.
    pub fn obeys(&self) -> bool {
        self.avoided != AvoidancePolicy::No
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
            avoided: AvoidancePolicy::No,
            probe_share: Recrawl::default_probe_share(),
        }
    }
}
