//! Crawl input: records of many formats become pages with text and links.

pub mod record;

// Web archives: WARC and WET, compressed or not, read by ranges past any damage.
pub mod warc;
