//! From similar pairs and links to trivial clusters, and to similar clusters of collections.
//!
//! The modules follow the order of \[CSG00\] section 3: [`union_find`] (trivial clusters, Def. 4),
//! [`link_summary`] (Figure 8), [`merge`] (the merge condition), [`growth`] (Algorithm 3.1 and the
//! pages of each collection), [`collection`] (Definitions 2-8 and the check of Definition 5),
//! [`identical`] (Definitions 3 and 7). [`tolerant`], with [`pieces`], `ground`, `separate` and
//! [`nearby`], is the second phase that the paper leaves open. [`context_pass`] is the context
//! pass: it finds copies that only their collections identify. [`places`] does this for pages
//! without links. [`weakest_links`] finds the pairs that hold a giant trivial cluster together, and
//! [`apart`] divides a trivial cluster that has pages which must not be together.
//!
//! # Deviations
//! - The paper claims that the merge condition gives each page of Ri its own page of Rj. This is
//!   not always true: with p1->{q1,q2,q3}, p2->q1, p3->q1 all four counts are 3. So assigning pages
//!   to collections is a separate step, in [`growth`].
//! - Where collections may differ, other clusters may join a trivial cluster of one page (Figure
//!   10), but it joins nothing itself. Pages that only one site has, with everything linked to
//!   them, are not a replicated collection.
//! - A page is in one collection. In Figure 10(b) "pages d, e, f and g appear in both collections";
//!   here they are in the collection of their site.
//! - "It can be shown that our algorithm yields similar clusters" does not hold if a page has
//!   parents in one collection and none in another. Every cluster is checked against Definition 5;
//!   pages that fail are taken out and counted.
//! - A trivial cluster that nothing joins is a similar cluster of collections of one page in the
//!   paper (Figure 3c). Here this holds only with `clusters.min_size = 1`, under the merge
//!   conditions of the paper.

pub mod apart;
pub mod collection;
pub mod context_pass;
mod ground;
pub mod growth;
pub mod identical;
pub mod labels;
pub mod link_summary;
pub mod matching;
pub mod merge;
pub mod nearby;
pub mod pieces;
pub mod places;
mod separate;
pub mod tolerant;
pub mod union_find;
pub mod weakest_links;
