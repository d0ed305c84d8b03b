//! Study of duplicates by \[PBZ06\], over the shingle paragraphs and the links of a crawl.
//!
//! | topic | module | in the paper |
//! |---|---|---|
//! | documents and their shingle paragraphs | [`paragraphs`] | Definition 1, section 4 |
//! | documents whose paragraphs are all found in another document | [`mod@matches`] | section 3 |
//! | clusters of documents, and their growth by step | [`clusters`] | Definitions 2 to 4, section 3, Figure 5 |
//! | reference implementation of the steps, slow | [`steps`] | section 3, Figure 1 |
//! | pages that a crawl reaches by links | [`bow_tie`] | section 4.1 |
//! | expected number of duplicates | [`estimate`] | section 4.2 |
//! | tables | [`report`] | Tables 2 to 6, Figures 2 to 5 |
//!
//! # The rule for duplicates
//! A document d of C is a duplicate of a document e of S_i if both have the same number of shingle
//! paragraphs and every one of d is found in e (section 3). This relation is not an equivalence.
//! With repeated paragraphs, `e d e d` is found in `a b e d`, but not the other way round. And the
//! search has one direction only, because S_i leaves C after step i: e must be in an earlier
//! subcollection than d, or in the same one. So the clusters, which are the documents joined by the
//! pairs found, depend on the order of the documents and on m. Here documents are in the order of
//! their doc ids.
//!
//! Except for such false matches, the rule requires that both documents have the same paragraphs
//! equally often (the *multiset rule*), which is an equivalence and depends on nothing else. Both
//! rules are computed, and the documents that only the paper's rule joins are counted.

pub mod bow_tie;
pub mod clusters;
pub mod estimate;
pub mod matches;
pub mod paragraphs;
pub mod report;
pub mod steps;
