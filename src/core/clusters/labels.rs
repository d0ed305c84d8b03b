//! Labels and sizes of disjoint sets of which most have a single member.
//!
//! Most pages of a crawl have no copy. So a label is stored only for a member that was joined with
//! others, and any other member takes two bits.

use std::collections::BTreeMap;
use std::iter::repeat_n;
use std::sync::Arc;

use webtwin_base::ids::{Number, Page};

use crate::overlap::prune::{PageSet, Ranks};

/// Label of each of a number of members: the smallest member of its set.
///
/// # Memory
/// 2 bits for each member, and 4 bytes for each member that was joined with others.
///
/// # Examples
/// ```
/// use webtwin_base::ids::ClusterId;
/// use webtwin_core::clusters::labels::{SetLabels, SetSizes};
///
/// let labels = SetLabels::from_list(&[0, 1, 0, 0].map(ClusterId));
/// assert_eq!((labels.label(1), labels.label(3)), (ClusterId(1), ClusterId(0)));
/// let sizes = SetSizes::count(&labels);
/// assert_eq!((sizes.size(ClusterId(0)), sizes.size(ClusterId(1)), sizes.size(ClusterId(3))), (3, 1, 0));
/// ```
#[derive(Debug, Clone)]
pub struct SetLabels<Label> {
    members: usize,
    /// Members that were joined with others.
    joined: Arc<Ranks>,
    /// Labels of these members, ascending by member.
    labels: Vec<Label>,
}

impl<Label: Number> SetLabels<Label> {
    /// Creates the labels of members `0..members`, of which those in `joined` were joined with
    /// others. `roots` has for each of these, ascending, the rank of the smallest member of its
    /// set. Every other member is alone.
    pub fn from_ranks(members: usize, joined: Arc<Ranks>, roots: Vec<u32>) -> SetLabels<Label> {
        let mut labels = roots;
        // A root is never larger than its members, so ranks of roots are replaced by then.
        for (rank, member) in joined.pages().enumerate() {
            let root = labels[rank] as usize;
            labels[rank] = if root == rank { member.0 } else { labels[root] };
        }
        SetLabels { members, joined, labels: bytemuck::cast_vec(labels) }
    }

    /// Creates the labels from a list with the label of each member.
    pub fn from_list(list: &[Label]) -> SetLabels<Label> {
        let mut joined = PageSet::new(list.len(), |member| list[member.index()].number() != member.0);
        let has_other_label = |(member, label): &(Page, &Label)| label.number() != member.0;
        let others = Page::first(list.len()).zip(list).filter(has_other_label);
        others.for_each(|(_, label)| joined.insert(Page(label.number())));
        let joined = Ranks::new(joined);
        let root = |member: Page| joined.rank(Page(list[member.index()].number()));
        let roots = joined.pages().map(|member| root(member).expect("a label is in the set") as u32).collect();
        SetLabels::from_ranks(list.len(), Arc::new(joined), roots)
    }

    /// Returns the number of members.
    pub fn members(&self) -> usize {
        self.members
    }

    /// Returns the label of a member.
    #[inline]
    pub fn label(&self, member: impl Number) -> Label {
        match self.joined.rank(Page(member.number())) {
            Some(rank) => self.labels[rank],
            None => Label::from_index(member.index()),
        }
    }

    /// Returns the members that were joined with others, ascending, each with its label.
    pub fn joined(&self) -> impl Iterator<Item = (Page, Label)> + '_ {
        self.joined.pages().zip(self.labels.iter().copied())
    }

    /// True if a member was joined with others.
    #[inline]
    pub fn is_joined(&self, member: impl Number) -> bool {
        self.joined.contains(Page(member.number()))
    }

    /// Returns the label of each member as a list.
    pub fn to_list(&self) -> Vec<Label> {
        let mut list: Vec<Label> = (0..self.members).map(Label::from_index).collect();
        self.joined().for_each(|(member, label)| list[member.index()] = label);
        list
    }
}

/// Numbers of members of sets, by label.
///
/// # Memory
/// One byte for each member that was joined with others: few sets are large.
#[derive(Debug)]
pub struct SetSizes {
    members: usize,
    joined: Arc<Ranks>,
    /// Sizes by rank of the label, of which the largest possible one stands for a larger size.
    small_sizes: Vec<u8>,
    /// Sizes of the large sets, by rank of the label.
    large_sizes: BTreeMap<usize, u32>,
}

impl SetSizes {
    /// Counts the members of each set.
    pub fn count(labels: &SetLabels<impl Number>) -> SetSizes {
        let joined = Arc::clone(&labels.joined);
        let (mut small_sizes, mut large_sizes) = (vec![0; labels.labels.len()], BTreeMap::new());
        for label in &labels.labels {
            let rank = joined.rank(Page(label.number())).expect("a label is a member of its set");
            let size = &mut small_sizes[rank];
            match *size {
                u8::MAX => *large_sizes.entry(rank).or_insert(u32::from(u8::MAX)) += 1,
                _ => *size += 1,
            }
        }
        // A set of 255 members has no further ones.
        (0..small_sizes.len()).filter(|&rank| small_sizes[rank] == u8::MAX).for_each(|rank| {
            large_sizes.entry(rank).or_insert(u32::from(u8::MAX));
        });
        SetSizes { members: labels.members, joined, small_sizes, large_sizes }
    }

    /// Returns the number of members of a set, and 0 for a member that labels no set.
    #[inline]
    pub fn size(&self, label: impl Number) -> u32 {
        self.joined.rank(Page(label.number())).map_or(1, |rank| self.size_at(rank))
    }

    #[inline]
    fn size_at(&self, rank: usize) -> u32 {
        match self.small_sizes[rank] {
            u8::MAX => self.large_sizes[&rank],
            size => u32::from(size),
        }
    }

    /// Returns the sizes of all sets, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let joined_sizes = (0..self.small_sizes.len()).map(|rank| self.size_at(rank)).filter(|&size| size > 0);
        joined_sizes.chain(repeat_n(1, self.members - self.small_sizes.len()))
    }

    /// Returns the labels of the sets with at least the given number of members, which is more than
    /// one, ascending.
    pub fn with_at_least<Label: Number>(&self, members: u32) -> impl Iterator<Item = Label> + '_ {
        let sizes = self.joined.pages().zip(0..).filter(move |&(_, rank)| self.size_at(rank) >= members);
        sizes.map(|(label, _)| Label::from_index(label.index()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::clusters::union_find::sizes;

    proptest! {
        #[test]
        fn labels_and_sizes_are_those_of_lists(names in prop::collection::vec(0u32..90, 0..1600), few: bool) {
            // Names each member by the smallest member of its set.
            let names: Vec<u32> = names.iter().map(|&name| if few { name % 4 } else { name }).collect();
            let smallest = |name: u32| names.iter().position(|&other| other == name).unwrap() as u32;
            let list: Vec<u32> = names.iter().map(|&name| smallest(name)).collect();
            let labels = SetLabels::from_list(&list);
            prop_assert_eq!(labels.members(), list.len());
            prop_assert!((0..list.len() as u32).all(|member| labels.label(member) == list[member as usize]));
            prop_assert_eq!(labels.to_list(), list.clone());
            let expected = sizes(&list);
            let found = SetSizes::count(&labels);
            prop_assert!((0..list.len() as u32).all(|name| found.size(name) == expected[name as usize]));
            let is_joined = |member: u32| expected[list[member as usize] as usize] > 1;
            prop_assert!((0..list.len() as u32).all(|member| labels.is_joined(member) == is_joined(member)));
            let mut set_sizes: Vec<u32> = found.iter().collect();
            set_sizes.sort_unstable();
            let mut expected_sizes: Vec<u32> = expected.iter().copied().filter(|&size| size > 0).collect();
            expected_sizes.sort_unstable();
            prop_assert_eq!(set_sizes, expected_sizes);
            let large_names = (0..list.len() as u32).filter(|&name| expected[name as usize] >= 255);
            prop_assert!(found.with_at_least::<u32>(255).eq(large_names));
        }
    }
}
