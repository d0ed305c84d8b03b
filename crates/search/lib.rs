//! Search by words, rolled up. Without the feature `search` there are words and the rolling up alone, which need no library.

#[cfg(feature = "search")]
use webtwin_base::error;

#[path = "../../src/search/mod.rs"]
pub mod search;
