//! Where and how duplicates occur: the study of \[PBZ06\] over the shingle paragraphs and the links of a crawl.
//!
//! | question | file | in the paper |
//! |---|---|---|
//! | what is a document, and its shingle paragraphs? | [`paragraphs`] | Definition 1, section 4 |
//! | whose paragraphs are all found in another document? | [`mod@matches`] | section 3 |
//! | which documents are one cluster, and when is that known? | [`clusters`] | Definitions 2 to 4, section 3, Figure 5 |
//! | the same, step by step and slowly | [`steps`] | section 3, Figure 1 |
//! | which pages does a crawl reach that follows links? | [`bow_tie`] | section 4.1 |
//! | how many duplicates will there be? | [`estimate`] | section 4.2 |
//! | the tables | [`report`] | Tables 2 to 6, Figures 2 to 5 |
//!
//! # The rule for duplicates
//! A document d of C is a duplicate of a document e of S_i when both have the same number of shingle paragraphs and every
//! one of d is found in e (section 3). That is no equivalence: with repeated paragraphs, `e d e d` is found in `a b e d`, but not the
//! other way round; and it is looked for in one direction only, for S_i leaves C after step i: e must be in an earlier
//! subcollection than d, or in the same one. So the clusters, which are what the pairs found join, depend on the order of the
//! documents and on m. Here documents are in the order of their doc ids.
//!
//! Such false matches aside, the rule is that both documents have the same paragraphs equally often (the *multiset rule*),
//! which is an equivalence and depends on nothing else. Both are computed, and the documents that only the paper's rule
//! joins are counted.

pub mod bow_tie;
pub mod clusters;
pub mod estimate;
pub mod matches;
pub mod paragraphs;
pub mod report;
pub mod steps;
