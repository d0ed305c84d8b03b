//! Groups of texts that may be views of one page: texts with the same title, path, notice or
//! canonical URL.

use bytemuck::{Pod, Zeroable};
use xxhash_rust::xxh3::xxh3_64;

use crate::reading::capture_rows::CaptureRow;
use crate::reading::captures::path;
use webtwin_base::ids::{DocId, FPrint, HostId, Page, splitmix64};
use webtwin_core::overlap::views::MIN_PLACEHOLDERS;

/// Page with its text and a key that may group it with other pages, in 40 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct TextRow {
    /// Hash of the value by which the page is grouped.
    pub key: u64,
    /// Fingerprint of the text.
    pub exact: FPrint,
    /// Number of the page.
    pub page: Page,
    /// Host of the page.
    pub host: HostId,
    /// Worker that holds the chunks of the page.
    pub worker: u32,
    /// Slot in the local pages of that worker.
    pub slot: u32,
    /// Number of chunks.
    pub chunks: u32,
    kind: u16,
    /// 1 if the URL has a query, otherwise 0.
    has_query: u16,
}

/// Kinds of the key of a [`TextRow`]: title and host, host of a page without a title, notice and
/// host, path and domain, the URL that the page declares canonical, and the page's own URL, which
/// other pages may declare canonical.
const TITLE: u16 = 0;
const NO_TITLE: u16 = 1;
const NOTICE: u16 = 2;
const PATH: u16 = 3;
const CANONICAL: u16 = 4;
const URL: u16 = 5;

/// Returns the rows of a page on a host. `domain` is a hash of its registered domain if that has
/// several sites. `are_declared` is true if any page of the crawl declares another URL canonical.
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
        kind: TITLE,
        has_query: u16::from(row.url().contains('?')),
    };
    let row_by = move |text_kind: u16, hash: u64, place: u64| {
        let kind = if text_kind == URL { CANONICAL } else { text_kind };
        TextRow { key: splitmix64(hash ^ splitmix64(place << 3 | u64::from(kind))), kind: text_kind, ..common }
    };
    let (title, rare_fields, host) = (row.title(), row.rare_fields(), host.into());
    let declared = |what: u16, url: DocId| (are_declared && url != 0).then(|| row_by(what, url, 0));
    let rows = [
        Some(row_by(if title.is_empty() { NO_TITLE } else { TITLE }, xxh3_64(title.as_bytes()), host)),
        (rare_fields.notice != 0).then(|| row_by(NOTICE, rare_fields.notice, host)),
        domain.map(|domain| row_by(PATH, xxh3_64(path(row.url()).as_bytes()), domain)),
        declared(CANONICAL, rare_fields.canonical),
        declared(URL, row.doc_id),
    ];
    rows.into_iter().flatten().filter(|row| row.chunks > 0)
}

/// Group of different texts with a common value, each text represented by its first page.
pub(super) enum ViewGroup<'t> {
    /// Texts of one host with the same title, or without a title. The second value is true if they
    /// are compared.
    Title(&'t [TextRow], bool),
    /// Texts of one host with the same notice, enough of them to be placeholders.
    Notice(&'t [TextRow]),
    /// Texts of one domain with the same path and query.
    Path(&'t [TextRow]),
    /// A page, and other texts that declare its URL canonical.
    Canonical(TextRow, &'t [TextRow]),
    /// A page whose URL is declared canonical by a page with the same text.
    CanonicalCopy(Page),
}

/// Returns the first row of each text. Rows must be in the order of texts and pages.
fn texts_of(rows: &[TextRow]) -> Vec<TextRow> {
    rows.chunk_by(|x, y| x.exact == y.exact).map(|pages| pages[0]).collect()
}

/// Calls `visit` with every group.
///
/// Pages without a query are files, such as those of a manual. Several of them may have the same
/// title and nearly the same text. So texts with the same title on a host are compared only if one
/// of their pages has a query.
pub(super) fn each_group(rows: &mut [TextRow], mut visit: impl FnMut(ViewGroup<'_>)) {
    rows.sort_unstable_by_key(|row| (row.key, row.exact, row.page));
    for rows in rows.chunk_by(|x, y| x.key == y.key) {
        let texts = texts_of(rows);
        let are_several = texts.len() > 1;
        match rows[0].kind {
            CANONICAL | URL => canonical(rows, texts, &mut visit),
            NOTICE if texts.len() >= MIN_PLACEHOLDERS => visit(ViewGroup::Notice(&texts)),
            NOTICE => {}
            PATH if are_several => visit(ViewGroup::Path(&texts)),
            PATH => {}
            kind => {
                let are_views = kind == TITLE && are_several && rows.iter().any(|row| row.has_query == 1);
                visit(ViewGroup::Title(&texts, are_views));
            }
        }
    }
}

/// Emits the page with a URL, and the texts of the pages that declare this URL canonical.
fn canonical(rows: &[TextRow], mut texts: Vec<TextRow>, visit: &mut impl FnMut(ViewGroup<'_>)) {
    let Some(original) = rows.iter().find(|row| row.kind == URL).copied() else { return };
    if rows.iter().any(|row| row.kind == CANONICAL && row.exact == original.exact) {
        visit(ViewGroup::CanonicalCopy(original.page));
    }
    texts.retain(|text| text.exact != original.exact);
    if !texts.is_empty() {
        visit(ViewGroup::Canonical(original, &texts));
    }
}
