//! The verdict on a page that has copies: it stays, is visited, or may be skipped.

use bytemuck::Pod;
use serde::{Deserialize, Serialize};

use super::resemblance::Resemblance;
use webtwin_base::ids::{ClusterId, Page};
use webtwin_core::applications::keep::{Criterion, PageCopy, Role, RoleNumber};
use webtwin_core::text::language::Language;
use webtwin_core::text::titles::TitleWords;

/// Verdict on a page of a trivial cluster of two pages or more. Rows order by cluster, then page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, bytemuck::Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct Verdict {
    /// Its trivial cluster.
    pub cluster: ClusterId,
    /// The page.
    pub page: Page,
    /// The page that stays.
    pub keep: Page,
    /// What it has in common with the page that stays.
    pub resemblance: Resemblance,
    /// Pages of the cluster that stay rather than this one.
    pub(super) rank: u32,
    pub(super) role: RoleNumber,
    /// Bit 0: the earlier result kept it. Bit 1: it is pinned. Bits 4 to 7: the criterion by which it is worse than the page
    /// of the rank before.
    marks: u8,
    language: u8,
    /// Words of its title.
    pub(super) title: TitleWords,
}

const KEPT_BEFORE: u8 = 1;
const PINNED: u8 = 2;

impl Verdict {
    /// The verdict on a copy for which `keep` stays: its role, how many pages of the cluster stay rather than it, and the criterion by
    /// which it is worse than the last of these.
    pub(super) fn of(copy: &PageCopy, keep: &PageCopy, role: Role, rank: u32, criterion: Criterion) -> Verdict {
        Verdict {
            cluster: copy.cluster,
            page: copy.page,
            keep: keep.page,
            title: copy.title,
            role: role.into(),
            resemblance: if copy.exact == keep.exact { Resemblance::WHOLE } else { Resemblance::default() },
            rank,
            marks: (copy.kept_before * KEPT_BEFORE) | (copy.pinned * PINNED) | (criterion.number() << 4),
            language: copy.language,
        }
    }

    /// What becomes of it.
    pub fn role(&self) -> Role {
        self.role.into()
    }

    /// Whether the earlier result kept it.
    pub fn was_kept(&self) -> bool {
        self.marks & KEPT_BEFORE != 0
    }

    /// Whether it is pinned.
    pub fn is_pinned(&self) -> bool {
        self.marks & PINNED != 0
    }

    /// Returns the criterion by which it is worse than the page of the rank before.
    pub(super) fn criterion(&self) -> Criterion {
        Criterion::from_number(self.marks >> 4)
    }

    /// Returns the language of its text.
    pub(super) fn language(&self) -> Language {
        Language::from_number(self.language)
    }

    /// Whether a crawler may skip the page.
    pub(super) fn skips(&self) -> bool {
        matches!(self.role(), Role::Skip(..))
    }
}
