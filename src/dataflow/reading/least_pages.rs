//! Minimum number of pages of a scheduled crawl. A crawl in which most fetches failed must not
//! become the base of the next one.

use serde::{Deserialize, Serialize};

use webtwin_base::error::{Error, Result};

/// Minimum that a crawl is compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeastPages {
    /// Number of pages that the previous run had, and that this run could have again.
    pub before: u64,
    /// Description of these pages, for messages.
    pub what: String,
    /// Fraction of these pages that the crawl must have.
    pub share: f64,
    /// Names of the inputs, for messages.
    pub inputs: String,
}

impl LeastPages {
    /// Fails if `pages` is below the minimum.
    ///
    /// # Errors
    /// Returns [`Error::TooFewPages`].
    pub fn check_against(&self, pages: u64) -> Result<()> {
        let LeastPages { before: previous_pages, what: description, share, inputs } = self;
        if pages as f64 >= *share * *previous_pages as f64 {
            return Ok(());
        }
        let (inputs, baseline) = (inputs.clone(), format!("{previous_pages} {description}"));
        Err(Error::TooFewPages { inputs, pages, before: baseline, share: share.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_share_suffices_and_less_is_rejected_with_figures_and_remedy() {
        let floor_of = |share, previous_pages| LeastPages {
            before: previous_pages,
            what: "pages of generation 3".into(),
            share,
            inputs: "week-4.warc.gz".into(),
        };
        for (share, previous_pages, pages) in [(0.5, 9, 5), (0.5, 10, 5), (1.0, 7, 7), (0.0, 9, 0), (0.5, 0, 0)] {
            assert!(floor_of(share, previous_pages).check_against(pages).is_ok(), "{share} {previous_pages} {pages}");
        }
        let error = floor_of(0.5, 9).check_against(4).unwrap_err();
        let line = "input week-4.warc.gz: 4 pages, less than the fraction 0.5 (recrawl.least_pages) of the 9 pages \
                    of generation 3: the crawl is incomplete, or most of it failed; no result was written, and the state is \
                    unchanged; to accept the crawl, --set recrawl.least_pages=0";
        assert_eq!((error.to_string().as_str(), error.exit_code()), (line, 5));
    }
}
