//! Tests of the statements of the five papers: one file per paper, in the paper's order, through
//! public functions.
//!
//! Every definition, example, figure and table that can be held exactly, or as a property, is a
//! test that cites its place in the paper. What is expected is written from the paper, not computed
//! again. Where we leave a paper, the test says so, and where that is documented. What a paper
//! measured on its own crawl is no test: `webtwin-lab reproduce --list` has those.

mod csg00;
mod ddgmp03;
mod mjs07;
mod pbz06;
mod sgm98;
