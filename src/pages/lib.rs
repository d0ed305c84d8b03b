//! Crawl input. Records of many formats become pages with text and links.

// Work: the input files, the pieces in which they are read, and random access to records.
pub mod again;
pub mod detect;
mod inspected;
mod origin;
pub mod side_files;
pub mod sniff;
pub mod work_items;
mod zip_entries;
mod zstd_head;

// Records, by format.
pub mod damage;
pub mod decoded;
pub mod fetch_time;
pub mod foreign_table;
pub mod html_dir;
pub mod json_fields;
pub mod jsonl;
pub mod parquet_columns;
pub mod parquet_rows;
pub mod record;
pub mod warc;

// Pages: canonical URLs, registered domains, text and links, and documents that a helper process
// reads.
pub mod charset;
pub mod helper;
pub mod html;
pub mod public_suffix;
pub mod surt;
pub mod url;
