//! Crawl input: records of many formats become pages with text and links.

pub mod charset;
pub mod html;
pub mod record;
pub mod url;
