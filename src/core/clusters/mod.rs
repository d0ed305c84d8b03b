//! Similar pairs and links become trivial clusters, then similar clusters of collections.
//!
//! The files keep the order of \[CSG00\] section 3: [`union_find`] (trivial clusters, Def. 4), [`link_summary`] (Figure 8),
//! [`merge`] (the merge condition), [`growth`] (Algorithm 3.1 and the pages of each collection), [`collection`]
//! (Definitions 2-8 and the check of Definition 5), [`identical`] (Definitions 3 and 7). [`tolerant`] is the second phase that the paper leaves open, with
//! [`pieces`], `ground`, `separate` and [`nearby`]; [`second_look`] finds what only its collections tell to be copies, and
//! [`places`] the same for pages without links. [`weakest_links`] finds what holds a giant trivial cluster together, and
//! [`apart`] divides one that holds pages which must not come together.
//!
//! # Deviations
//! - The paper claims that the merge condition gives each page of Ri its own page of Rj. It need not: with
//!   p1->{q1,q2,q3}, p2->q1, p3->q1 all four counts are 3. So assigning pages to collections is a separate step, in
//!   [`growth`].
//! - Where collections may differ, other clusters may join a trivial cluster of one page (Figure 10), but it joins
//!   nothing itself: what only one site has, with all that hangs on it, is not a replicated collection.
//! - A page has one collection. In Figure 10(b) "pages d, e, f and g appear in both collections"; here in the one of their site.
//! - "It can be shown that our algorithm yields similar clusters": not where a page has parents in one collection and
//!   none in another. Every cluster is checked against Definition 5; what fails is taken out and counted.
//! - A trivial cluster that nothing joins is a similar cluster of collections of one page in the paper (Figure 3c). Here it is
//!   one with `clusters.min_size = 1` only, under the paper's own merge conditions.

pub mod apart;
pub mod collection;
mod ground;
pub mod growth;
pub mod identical;
pub mod link_summary;
pub mod matching;
pub mod merge;
pub mod nearby;
pub mod pieces;
pub mod places;
pub mod second_look;
mod separate;
pub mod tolerant;
pub mod union_find;
pub mod weakest_links;
