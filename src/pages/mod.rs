//! Crawl input: records of many formats become pages with text and links.

pub mod record;
