//! Plan of the crawl before any page is made: hosts, manuals, copies, and the meaning of each page
//! number.
//!
//! Pages are numbered in this order: copies (those of a manual together), single pages (those of a
//! host together), near-copies, not-found pages, empty pages, hubs. A plan takes time and memory
//! only for its manuals and copies. The rest follows from formulas.

use super::Params;
use super::outline::ManualOutline;
use super::random::{Stream, key};
use webtwin_base::error::{Error, Result};

/// Number of pages in a group of near-copies of one text.
pub(super) const NEAR_GROUP: u64 = 3;
const SMALLEST_MANUAL: u64 = 20;
const LARGEST_MANUAL: u64 = 200;
/// Minimum number of pages of a crawl: one manual in three copies, three hosts of single pages, and
/// one of everything else.
const MIN_PAGES: u64 = 100;

/// Relation of a copy to its manual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyKind {
    Primary,
    Version,
    Exact,
    Dressed,
    Renamed,
    Partial,
}

impl CopyKind {
    /// Kinds of the copies after the primary one, in turn. Manuals begin at different kinds.
    const COPY_KINDS: [CopyKind; 6] = [
        CopyKind::Version,
        CopyKind::Exact,
        CopyKind::Dressed,
        CopyKind::Version,
        CopyKind::Renamed,
        CopyKind::Partial,
    ];

    /// Returns the value in the truth table.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            CopyKind::Primary => "primary",
            CopyKind::Version => "version",
            CopyKind::Exact => "exact",
            CopyKind::Dressed => "dressed",
            CopyKind::Renamed => "renamed",
            CopyKind::Partial => "partial",
        }
    }
}

/// A host by its role. All numbers count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum HostRole {
    /// The site of the manual with this number.
    Primary(u32),
    /// The mirror host with this number.
    Mirror(u32),
    /// The site of unrelated pages with this number.
    Single(u32),
}

/// One copy of a manual.
#[derive(Debug, Clone, Copy)]
pub(super) struct ManualCopy {
    pub(super) manual: u32,
    pub(super) kind: CopyKind,
    pub(super) host: HostRole,
    /// Number of versions between this version and the newest.
    pub(super) age: u32,
    /// Number of the first page of the copy.
    first: u64,
    /// Number of pages that the copy holds.
    pub(super) n_held: u32,
}

/// Meaning of a page number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlannedPage {
    /// Page `at` of those that a copy holds.
    Copy {
        copy: u32,
        number: u32,
    },
    /// A single page, numbered on its host.
    Single {
        host: u32,
        number: u64,
    },
    /// One of the [`NEAR_GROUP`] pages of a text.
    Near {
        group: u64,
        number: u64,
    },
    NotFound(u64),
    Empty(u64),
    Hub(HostRole),
}

/// Plan of a crawl.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    /// Number of pages of the newest version of each manual.
    manuals: Vec<u32>,
    pub(super) copies_a_manual: u32,
    pub(super) copies: Vec<ManualCopy>,
    /// Copies on mirror hosts, as pairs of host and copy in order of hosts.
    carried_copies: Vec<(u32, u32)>,
    pub(super) mirrors: u32,
    pub(super) single_hosts: u32,
    n_singles: u64,
    near_groups: u64,
    not_found: u64,
    empty: u64,
}

impl Plan {
    /// Plans a crawl of exactly `params.pages` pages, seven tenths of them in copies.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] if the pages do not suffice for the parameters.
    pub(super) fn new(params: &Params) -> Result<Plan> {
        let Params { pages, seed, .. } = *params;
        if !(MIN_PAGES..=u64::from(u32::MAX)).contains(&pages) {
            return Err(Error::Usage(format!("synth: pages is {pages}, but must be {MIN_PAGES} to {}", u32::MAX)));
        }
        let in_copies = pages * 7 / 10;
        let copies = params.copies.map_or((in_copies / SMALLEST_MANUAL).min(7), u64::from);
        if !(2..=100).contains(&copies) {
            return Err(Error::Usage(format!("synth: copies is {copies}, but must be 2 to 100")));
        }
        let usual_size = (pages / 60).clamp(SMALLEST_MANUAL, 80);
        let manuals = params.manuals.map_or((in_copies / (usual_size * copies)).max(1), u64::from);
        let fewest = (manuals * copies * SMALLEST_MANUAL * 10).div_ceil(7).max(MIN_PAGES);
        if manuals == 0 || pages < fewest {
            return Err(Error::Usage(format!(
                "synth: {manuals} manuals in {copies} copies of {SMALLEST_MANUAL} pages or more need \
                 pages={fewest} or more, not {pages}, and manuals must be at least 1"
            )));
        }
        let mut plan = Plan {
            seed,
            manuals: sizes(seed, manuals, in_copies / copies),
            copies_a_manual: copies as u32,
            copies: Vec::with_capacity((manuals * copies) as usize),
            carried_copies: Vec::new(),
            mirrors: (manuals * (copies - 1) / 3).max(copies) as u32,
            single_hosts: (pages / 50).max(NEAR_GROUP) as u32,
            n_singles: 0,
            near_groups: (pages / 100).max(1),
            // The number of pages that are all alike is proportional to the square root of the
            // crawl, so that the number of their pairs grows like that of the true pairs.
            not_found: 2 + pages.isqrt() / 4,
            empty: 1 + pages.isqrt() / 8,
        };
        for manual in 0..manuals as u32 {
            plan.copy_out(manual);
        }
        plan.carried_copies.sort_unstable();
        plan.n_singles = pages.checked_sub(plan.len()).ok_or_else(|| {
            Error::Usage(format!(
                "synth: pages={pages} is too few for {manuals} manuals in {copies} copies; give a larger number"
            ))
        })?;
        Ok(plan)
    }

    /// Adds the copies of one manual.
    fn copy_out(&mut self, manual: u32) {
        let outline = self.outline(manual);
        let mut stream = Stream::new(key(outline.key, &[7]));
        let mut versions = 0;
        let mut hosts = Vec::new();
        for n in 0..self.copies_a_manual {
            let kind = match n.checked_sub(1) {
                None => CopyKind::Primary,
                Some(turn) => CopyKind::COPY_KINDS[(turn + manual) as usize % CopyKind::COPY_KINDS.len()],
            };
            versions += u32::from(kind == CopyKind::Version);
            let age = if kind == CopyKind::Version { versions } else { 0 };
            let host = if n == 0 || kind == CopyKind::Version && stream.chance(20) {
                HostRole::Primary(manual)
            } else {
                let mut mirror = stream.skewed(u64::from(self.mirrors)) as u32;
                while hosts.contains(&mirror) {
                    mirror = (mirror + 1) % self.mirrors;
                }
                hosts.push(mirror);
                self.carried_copies.push((mirror, self.copies.len() as u32));
                HostRole::Mirror(mirror)
            };
            let n_pages = outline.pages(age);
            let n_held =
                if kind == CopyKind::Partial { n_pages * (30 + stream.below(51) as u32) / 100 } else { n_pages };
            self.copies.push(ManualCopy { manual, kind, host, age, first: self.pages_in_copies(), n_held });
        }
    }

    /// Returns the structure of a manual.
    pub(super) fn outline(&self, manual: u32) -> ManualOutline {
        ManualOutline { key: key(self.seed, &[8, u64::from(manual)]), newest: self.manuals[manual as usize] }
    }

    /// Returns the number of manuals.
    pub(super) fn manuals(&self) -> u32 {
        self.manuals.len() as u32
    }

    /// Returns the number of pages in copies.
    fn pages_in_copies(&self) -> u64 {
        self.copies.last().map_or(0, |last| last.first + u64::from(last.n_held))
    }

    /// Returns the number of hosts of all roles.
    pub(super) fn hosts(&self) -> u64 {
        u64::from(self.manuals()) + u64::from(self.mirrors) + u64::from(self.single_hosts)
    }

    fn parts(&self) -> [u64; 6] {
        let n_near = self.near_groups * NEAR_GROUP;
        [self.pages_in_copies(), self.n_singles, n_near, self.not_found, self.empty, self.hosts()]
    }

    /// Returns the number of pages in the crawl.
    pub(super) fn len(&self) -> u64 {
        self.parts().iter().sum()
    }

    /// Returns the place of page `number` in the crawl.
    ///
    /// # Panics
    /// Panics if there is no such page.
    pub(super) fn place(&self, number: u64) -> PlannedPage {
        assert!(number < self.len(), "a crawl of {} pages has no page {number}", self.len());
        let mut remaining = number;
        let mut part = 0;
        for pages in self.parts() {
            if remaining < pages {
                break;
            }
            remaining -= pages;
            part += 1;
        }
        match part {
            0 => {
                let copy = self.copies.partition_point(|copy| copy.first <= remaining) - 1;
                PlannedPage::Copy { copy: copy as u32, number: (remaining - self.copies[copy].first) as u32 }
            }
            1 => {
                let host = self.single_host_of(remaining);
                PlannedPage::Single { host, number: remaining - self.singles_before(host) }
            }
            2 => PlannedPage::Near { group: remaining / NEAR_GROUP, number: remaining % NEAR_GROUP },
            3 => PlannedPage::NotFound(remaining),
            4 => PlannedPage::Empty(remaining),
            _ => PlannedPage::Hub(self.host(remaining)),
        }
    }

    /// Returns the host with this number: first come the primary hosts, then mirrors, then hosts of
    /// single pages.
    pub(super) fn host(&self, number: u64) -> HostRole {
        let (manuals, mirrors) = (u64::from(self.manuals()), u64::from(self.mirrors));
        match number {
            n if n < manuals => HostRole::Primary(n as u32),
            n if n < manuals + mirrors => HostRole::Mirror((n - manuals) as u32),
            n => HostRole::Single((n - manuals - mirrors) as u32),
        }
    }

    /// Returns the number of single pages on the hosts before this one. The cubes yield sites of
    /// very different sizes, at most three times the mean.
    fn singles_before(&self, host: u32) -> u64 {
        let cube = |n: u32| u128::from(n).pow(3);
        (u128::from(self.n_singles) * cube(host) / cube(self.single_hosts)) as u64
    }

    fn single_host_of(&self, single_host: u64) -> u32 {
        let (mut low, mut high) = (0, self.single_hosts);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.singles_before(middle) <= single_host {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Returns the number of single pages on a host.
    pub(super) fn singles_on(&self, host: u32) -> u64 {
        self.singles_before(host + 1) - self.singles_before(host)
    }

    /// Returns the copies of a manual. The first is the primary one.
    pub(super) fn copies_of(&self, manual: u32) -> &[ManualCopy] {
        let start = (manual * self.copies_a_manual) as usize;
        &self.copies[start..start + self.copies_a_manual as usize]
    }

    /// Returns the copies that a mirror host carries.
    pub(super) fn carried_by(&self, mirror: u32) -> impl Iterator<Item = &ManualCopy> {
        let start = self.carried_copies.partition_point(|&(host, _)| host < mirror);
        let carried_copies = self.carried_copies[start..].iter().take_while(move |&&(host, _)| host == mirror);
        carried_copies.map(|&(_, copy)| &self.copies[copy as usize])
    }

    /// True if pages of other hosts link to this host. One mirror host in ten is an island.
    pub(super) fn is_linked(&self, host: HostRole) -> bool {
        !matches!(host, HostRole::Mirror(mirror) if mirror % 10 == 9)
    }
}

/// Distributes `total` pages over manuals whose sizes differ by a factor of up to 2.5, within the
/// bounds of a manual.
fn sizes(seed: u64, manuals: u64, total: u64) -> Vec<u32> {
    let weights: Vec<u64> = (0..manuals).map(|manual| 100 + Stream::new(key(seed, &[9, manual])).skewed(151)).collect();
    let sum: u64 = weights.iter().sum();
    let size = |weight: u64| (u128::from(total) * u128::from(weight) / u128::from(sum)) as u64;
    weights.into_iter().map(|weight| size(weight).clamp(SMALLEST_MANUAL, LARGEST_MANUAL) as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(pages: u64, seed: u64, manuals: Option<u32>, copies: Option<u32>) -> Result<Plan> {
        Plan::new(&Params { pages, seed, manuals, copies })
    }

    #[test]
    fn crawl_has_exactly_the_requested_number_of_pages() {
        for pages in (100..400).chain([1_000, 4_799, 10_000, 250_000, 3_000_000]) {
            for seed in 0..3 {
                assert_eq!(plan(pages, seed, None, None).unwrap().len(), pages, "seed {seed}");
            }
        }
    }

    #[test]
    fn minimum_pages_for_manuals_and_copies_suffice() {
        for (manuals, copies) in [(1, 2), (1, 3), (3, 2), (10, 7), (200, 2), (5, 100), (1, 100)] {
            let pages = (u64::from(manuals * copies) * 200).div_ceil(7).max(100);
            for seed in 0..20 {
                let plan = plan(pages, seed, Some(manuals), Some(copies)).unwrap();
                assert_eq!((plan.len(), plan.manuals()), (pages, manuals));
                assert_eq!(plan.copies.len() as u32, manuals * copies);
            }
            assert!(pages == 100 || plan(pages - 1, 1, Some(manuals), Some(copies)).is_err());
        }
    }

    #[test]
    fn no_mirror_host_carries_two_copies_of_a_manual() {
        for seed in 0..5 {
            let plan = plan(20_000, seed, None, Some(9)).unwrap();
            let mut carried_manuals: Vec<_> =
                plan.carried_copies.iter().map(|&(host, copy)| (host, plan.copies[copy as usize].manual)).collect();
            let n_carried = carried_manuals.len();
            carried_manuals.dedup();
            assert_eq!(carried_manuals.len(), n_carried);
            assert!(plan.carried_copies.len() > plan.mirrors as usize, "some host carries several manuals");
        }
    }

    #[test]
    fn places_enumerate_all_parts_without_a_gap() {
        let plan = plan(3_000, 4, None, None).unwrap();
        let places: Vec<PlannedPage> = (0..plan.len()).map(|number| plan.place(number)).collect();
        assert_eq!(places[0], PlannedPage::Copy { copy: 0, number: 0 });
        for (n, copy) in plan.copies.iter().enumerate() {
            let count = places
                .iter()
                .filter(|place| matches!(place, PlannedPage::Copy { copy, .. } if *copy == n as u32))
                .count();
            assert_eq!(count, copy.n_held as usize);
        }
        for host_number in 0..plan.single_hosts {
            let count = places
                .iter()
                .filter(|place| matches!(place, PlannedPage::Single { host, .. } if *host == host_number))
                .count();
            assert_eq!(count as u64, plan.singles_on(host_number));
        }
        assert!(places.contains(&PlannedPage::Hub(HostRole::Mirror(0))) && places.contains(&PlannedPage::NotFound(0)));
    }

    #[test]
    fn every_kind_of_copy_occurs_with_enough_manuals() {
        let plan = plan(10_000, 1, None, None).unwrap();
        for kind in CopyKind::COPY_KINDS.into_iter().chain([CopyKind::Primary]) {
            assert!(plan.copies.iter().any(|copy| copy.kind == kind), "{kind:?}");
        }
        let n_old_at_home = plan
            .copies
            .iter()
            .filter(|copy| copy.kind == CopyKind::Version && matches!(copy.host, HostRole::Primary(_)));
        assert!(n_old_at_home.count() > 0);
    }

    #[test]
    fn too_few_pages_are_refused_with_the_number_that_suffices() {
        let message = plan(1_000, 1, Some(20), Some(7)).unwrap_err().to_string();
        assert!(message.contains("need pages=4000 or more, not 1000"), "{message}");
        assert!(plan(99, 1, None, None).is_err());
        assert!(plan(1_000, 1, Some(0), None).is_err());
        assert!(plan(1_000, 1, None, Some(1)).is_err());
    }
}
