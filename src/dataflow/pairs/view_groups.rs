//! Groups of texts that may be views of one page: texts with one title, path, notice or canonical URL.

use bytemuck::{Pod, Zeroable};
use xxhash_rust::xxh3::xxh3_64;

use crate::reading::capture_rows::CaptureRow;
use crate::reading::captures::path;
use webtwin_base::ids::{DocId, FPrint, HostId, Page, splitmix64};
use webtwin_core::overlap::views::LEAST_PLACEHOLDERS;

/// A page with what may group it with others, and its text: 40 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct TextRow {
    /// Hash of what it is grouped by.
    pub key: u64,
    /// Fingerprint of the text.
    pub exact: FPrint,
    /// The page.
    pub page: Page,
    /// Its host.
    pub host: HostId,
    /// Worker that holds its chunks.
    pub worker: u32,
    /// Slot on the shelf of that worker.
    pub slot: u32,
    /// Number of chunks.
    pub chunks: u32,
    by: u16,
    /// 1 if the URL has a query.
    has_query: u16,
}

/// What a [`TextRow`] is grouped by: title and host, a host alone, a notice and its host, a path and its domain, the URL that the
/// page calls canonical, or its own URL, which others may call canonical.
const TITLE: u16 = 0;
const NO_TITLE: u16 = 1;
const NOTICE: u16 = 2;
const PATH: u16 = 3;
const CANONICAL: u16 = 4;
const URL: u16 = 5;

/// The rows of a page on a host. `domain` is a hash of its registered domain if that has more hosts, and `are_declared` tells whether
/// any page of the crawl calls another URL canonical.
pub(super) fn rows_of(
    row: &CaptureRow<'_>,
    host: HostId,
    domain: Option<u64>,
    are_declared: bool,
) -> impl Iterator<Item = TextRow> + use<> {
    let common = TextRow {
        key: 0,
        exact: row.exact,
        page: row.page,
        host,
        worker: row.worker,
        slot: row.slot,
        chunks: row.chunks,
        by: TITLE,
        has_query: u16::from(row.url().contains('?')),
    };
    let by = move |by: u16, hash: u64, place: u64| {
        let kind = if by == URL { CANONICAL } else { by };
        TextRow { key: splitmix64(hash ^ splitmix64(place << 3 | u64::from(kind))), by, ..common }
    };
    let (title, rest, host) = (row.title(), row.rest(), host.into());
    let declared = |what: u16, url: DocId| (are_declared && url != 0).then(|| by(what, url, 0));
    let rows = [
        Some(by(if title.is_empty() { NO_TITLE } else { TITLE }, xxh3_64(title.as_bytes()), host)),
        (rest.notice != 0).then(|| by(NOTICE, rest.notice, host)),
        domain.map(|domain| by(PATH, xxh3_64(path(row.url()).as_bytes()), domain)),
        declared(CANONICAL, rest.canonical),
        declared(URL, row.doc_id),
    ];
    rows.into_iter().flatten().filter(|row| row.chunks > 0)
}

/// Texts that have something in common, each with the first page that has it.
pub(super) enum Group<'t> {
    /// Texts of one host, with one title or without; to be compared or not.
    Title(&'t [TextRow], bool),
    /// Texts of one host with one notice, enough to be placeholders.
    Notice(&'t [TextRow]),
    /// Texts of one domain with one path and query.
    Path(&'t [TextRow]),
    /// A page and other texts that call its URL canonical.
    Canonical(TextRow, &'t [TextRow]),
    /// A page whose text others have that call its URL canonical.
    CanonicalCopy(Page),
}

/// The texts of some rows in the order of texts and pages: the first row of each.
fn texts_of(rows: &[TextRow]) -> Vec<TextRow> {
    rows.chunk_by(|x, y| x.exact == y.exact).map(|pages| pages[0]).collect()
}

/// Calls `each` with every group.
///
/// Pages without a query are files, as those of a manual are, of which several may have one title and nearly one text; so of texts
/// with one title on a host some page must have a query, or they are not compared.
pub(super) fn each_group(rows: &mut [TextRow], mut each: impl FnMut(Group<'_>)) {
    rows.sort_unstable_by_key(|row| (row.key, row.exact, row.page));
    for rows in rows.chunk_by(|x, y| x.key == y.key) {
        let texts = texts_of(rows);
        let are_several = texts.len() > 1;
        match rows[0].by {
            CANONICAL | URL => canonical(rows, texts, &mut each),
            NOTICE if texts.len() >= LEAST_PLACEHOLDERS => each(Group::Notice(&texts)),
            NOTICE => {}
            PATH if are_several => each(Group::Path(&texts)),
            PATH => {}
            by => {
                let are_views = by == TITLE && are_several && rows.iter().any(|row| row.has_query == 1);
                each(Group::Title(&texts, are_views));
            }
        }
    }
}

/// The page of a URL and the texts of those that call it canonical.
fn canonical(rows: &[TextRow], mut texts: Vec<TextRow>, each: &mut impl FnMut(Group<'_>)) {
    let Some(original) = rows.iter().find(|row| row.by == URL).copied() else { return };
    if rows.iter().any(|row| row.by == CANONICAL && row.exact == original.exact) {
        each(Group::CanonicalCopy(original.page));
    }
    texts.retain(|text| text.exact != original.exact);
    if !texts.is_empty() {
        each(Group::Canonical(original, &texts));
    }
}
