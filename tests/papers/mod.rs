//! What the five papers say, and that it holds: a file a paper, in the paper's order, through
//! public functions.
//!
//! Every definition, example, figure and table that can be held exactly, or as a property, is a
//! test with its place beside it. What is expected is written from the paper, not computed again.
//! Where we leave a paper, the test says so, and where that is documented. What a paper measured on
//! its own crawl is no test: `webtwin-lab reproduce --list` has those.

mod csg00;
mod ddgmp03;
mod mjs07;
mod pbz06;
mod sgm98;
