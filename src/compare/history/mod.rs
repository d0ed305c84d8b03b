//! One crawl after another: which collections live on, which mirrors lag behind, and what to visit again.
//!
//! A crawl is here what its tables say of its collections ([`Crawl`]). Of two crawls, [`matching`] tells which collections
//! have pages, texts or places in common; [`lifelines`] makes of that, over all crawls, what became of each collection, and
//! [`lives`] is its plain twin. [`fates`] puts that in words, [`lag`] says how far a mirror is behind, [`rates`] how often
//! pages change, and [`revisit`] which pages of the avoid list are worth a visit. [`saved`] is the file in which a comparison
//! leaves to the next one what it has to know of the crawls before.
//!
//! Collections are named by their smallest page, which may come and go; so a collection is the same as one of an earlier crawl
//! by what it holds, never by its name.

mod carried_over;
pub mod chronicle;
pub mod compare;
pub mod crawls;
pub mod fates;
mod kept;
pub mod lag;
pub mod lifelines;
pub mod lives;
pub mod matching;
mod parts;
pub mod rates;
pub mod read;
pub mod revisit;
pub mod saved;
pub mod tables;
pub mod visits;
pub mod worthwhile;

use serde::{Deserialize, Serialize};

use webtwin_base::ids::DocId;

/// A collection of one crawl.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Collection {
    /// Its smallest page.
    pub id: DocId,
    /// It and its mirrors: the smallest page of them all.
    pub similar_cluster: DocId,
    /// Whether it is the one that is kept.
    pub keep: bool,
    /// Where it stands.
    pub host: String,
    /// What the URLs of its pages begin with.
    pub prefix: String,
    /// Its page most linked from other hosts.
    pub root_url: String,
    /// Its pages.
    pub size: u32,
    /// Whether it led its similar cluster ([`lag`]).
    pub leads: bool,
    /// How far it was behind the one that led; `None` if no crawl kept had any of its texts.
    pub lag: Option<lag::Lag>,
    /// Its pages that the crawl has; fewer than all if others were skipped because they are on the avoid list.
    pub looked_at: u32,
    /// Newest fetch time of its pages.
    pub fetched: i64,
    /// Crawls since any page of it was fetched, of a mirror one of those on the avoid list: more than 0 if these were skipped, and if the
    /// crawl has the captures of an earlier one.
    pub unseen: u32,
    /// Of its pages, those on the avoid list.
    pub skipped: u32,
    /// What its pages and those kept for them have in common, in millionths: the mean over all its pages, of which one that is
    /// not on the avoid list counts as 0. `None` for the collection that is kept.
    pub resemblance: Option<u32>,
    /// How its host and that of the collection kept are related.
    pub kind: revisit::Kind,
    /// Intervals between crawls over which its line was seen, and those at whose end it was a mirror no more.
    pub seen: (u32, u32),
    /// For each interval whether its pages changed, as visits to one thing, by the crawl at its end: they change together.
    pub visits: Vec<(u32, rates::Visits)>,
}

/// A page of a collection. Rows order by collection, then page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Member {
    /// Its collection, by its place in [`Crawl::collections`].
    pub collection: u32,
    /// The page.
    pub doc_id: DocId,
    /// Hash of its text.
    pub text: u64,
    /// Hash of its URL behind the collection's prefix: equal for a page and its copy in a mirror with the same names.
    pub place: u64,
}

/// What a crawl says of its collections.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Crawl {
    /// When it was made, in seconds since 1970: the newest fetch time of its pages, but for a few of them.
    pub time: i64,
    /// Collections that a history has forgotten, as it has no more use for them: all, or none.
    pub forgotten: u32,
    /// Its collections, ascending by id.
    pub collections: Vec<Collection>,
    /// Their pages, ascending; a page is in one collection at most.
    pub members: Vec<Member>,
}

impl Crawl {
    /// The same crawl with the pages of some of its collections only.
    fn only(&self, wanted: impl Fn(u32) -> bool) -> Crawl {
        let members = self.members.iter().copied().filter(|member| wanted(member.collection)).collect();
        Crawl { time: self.time, forgotten: self.forgotten, collections: self.collections.clone(), members }
    }

    /// Puts collections and members into their order, after some were added in another one.
    fn sort(&mut self) {
        let mut order: Vec<u32> = (0..self.collections.len() as u32).collect();
        order.sort_by_key(|&at| self.collections[at as usize].id);
        let mut place = vec![0; order.len()];
        (0..).zip(&order).for_each(|(new, &old)| place[old as usize] = new);
        self.collections.sort_by_key(|collection| collection.id);
        self.members.iter_mut().for_each(|member| member.collection = place[member.collection as usize]);
        self.members.sort_unstable();
    }

    /// The pages of one collection.
    ///
    /// # Cost
    /// Two binary searches.
    pub fn members_of(&self, collection: u32) -> &[Member] {
        let start = self.members.partition_point(|member| member.collection < collection);
        let end = self.members.partition_point(|member| member.collection <= collection);
        &self.members[start..end]
    }
}
