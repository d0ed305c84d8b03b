//! Tests of the statements of the five papers through public functions. Each paper has a file,
//! which follows the order of the paper.
//!
//! Every definition, example, figure and table that can be checked exactly, or as a property, is a
//! test that cites its place in the paper. Expected values come from the paper and are not computed
//! by the code under test. Where the implementation deviates from a paper, the test says so and
//! names the document of the deviation. Measurements on a paper's own crawl are not tests;
//! `webtwin-lab reproduce --list` lists them.

mod csg00;
mod ddgmp03;
mod mjs07;
mod pbz06;
mod sgm98;
