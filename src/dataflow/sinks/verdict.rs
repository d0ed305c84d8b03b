//! Verdict on a page that has copies: it is kept, visited, or may be skipped.

use bytemuck::Pod;
use serde::{Deserialize, Serialize};

use super::resemblance::Resemblance;
use webtwin_base::ids::{ClusterId, Page};
use webtwin_core::applications::keep::{CopyRole, Criterion, PageCopy, RoleNumber};
use webtwin_core::text::language::Language;
use webtwin_core::text::titles::TitleWords;

/// Verdict on a page of a trivial cluster of two or more pages. Ordered by cluster, then page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, bytemuck::Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct PageVerdict {
    /// Trivial cluster of the page.
    pub cluster: ClusterId,
    /// Page that the verdict is about.
    pub page: Page,
    /// Page of the cluster that is kept.
    pub keep: Page,
    /// Resemblance of the page and the kept page.
    pub resemblance: Resemblance,
    /// Number of pages of the cluster that are preferred to this page.
    pub(super) rank: u32,
    pub(super) role: RoleNumber,
    /// Bit 0: the earlier result kept the page. Bit 1: the page is pinned. Bits 4 to 7: the
    /// criterion by which the page is worse than the page of the previous rank.
    marks: u8,
    language: u8,
    /// Words of the title.
    pub(super) title: TitleWords,
}

const KEPT_BEFORE: u8 = 1;
const PINNED_FLAG: u8 = 2;

impl PageVerdict {
    /// Creates the verdict on a copy for which `keep` is kept: its role, the number of pages of the
    /// cluster that are preferred to it, and the criterion by which it is worse than the last of
    /// these.
    pub(super) fn new(
        copy: &PageCopy,
        keep: &PageCopy,
        role: CopyRole,
        rank: u32,
        criterion: Criterion,
    ) -> PageVerdict {
        PageVerdict {
            cluster: copy.cluster,
            page: copy.page,
            keep: keep.page,
            title: copy.title,
            role: role.into(),
            resemblance: if copy.exact == keep.exact { Resemblance::EQUAL_TEXTS } else { Resemblance::default() },
            rank,
            marks: (copy.kept_before * KEPT_BEFORE) | (copy.pinned * PINNED_FLAG) | (criterion.number() << 4),
            language: copy.language,
        }
    }

    /// Returns the role of the page.
    pub fn role(&self) -> CopyRole {
        self.role.into()
    }

    /// True if the earlier result kept the page.
    pub fn was_kept(&self) -> bool {
        self.marks & KEPT_BEFORE != 0
    }

    /// True if the page is pinned.
    pub fn is_pinned(&self) -> bool {
        self.marks & PINNED_FLAG != 0
    }

    /// Returns the criterion by which the page is worse than the page of the previous rank.
    pub(super) fn criterion(&self) -> Criterion {
        Criterion::from_number(self.marks >> 4)
    }

    /// Returns the language of the text.
    pub(super) fn language(&self) -> Language {
        Language::from_number(self.language)
    }

    /// True if a crawler may skip the page.
    pub(super) fn skips(&self) -> bool {
        matches!(self.role(), CopyRole::Skip(..))
    }
}
