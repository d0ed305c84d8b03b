//! The truth about a crawl: its file, and its join with the pages of a run.

use std::collections::{HashMap, HashSet};

use super::TruthPageRow;
use super::columns::read_columns;
use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, FPrint};

/// Truth about one page: a row of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TruthRow {
    /// URL of the page.
    pub url: String,
    /// Target to which the page belongs.
    pub target: String,
    /// Version of the target.
    pub version: String,
    /// Name of the page within the target.
    pub page: String,
    /// Way in which the copy was made. Pages of `single` and `hub` are not target pages.
    pub variant: String,
    /// True if another host links to the host of the page; `None` if the truth does not have this
    /// information.
    pub linked: Option<bool>,
    /// Identifier of the bytes of which the page was made; empty if the truth does not have it.
    pub origin: String,
    /// Words separated by blanks. Pages with a common word may be copies of each other.
    pub perhaps: String,
}

impl TruthRow {
    /// True for a page of a target, false for an unrelated page.
    pub fn is_of_target(&self) -> bool {
        !matches!(self.variant.as_str(), "single" | "hub")
    }
}

/// Reads a truth table: tab-separated lines under a header line.
///
/// The columns `url`, `target`, `version`, `page`, `variant` and optionally `linked` (0 or 1),
/// `origin` and `perhaps` may be at any position among others. Version, page, origin and perhaps
/// may be empty. `file` is the name in errors.
///
/// # Errors
/// Returns [`webtwin_base::error::Error::Input`] with line and column if a column is missing or
/// named twice, or if a line lacks it.
pub fn read_truth(file: &str, text: &str) -> Result<Vec<TruthRow>> {
    let row = |[url, target, version, page, variant]: [&str; 5],
               [is_linked, origin, possible_names]: [Option<&str>; 3]| TruthRow {
        url: url.into(),
        target: target.into(),
        version: version.into(),
        page: page.into(),
        variant: variant.into(),
        linked: is_linked.map(|linked| linked != "0"),
        origin: origin.unwrap_or_default().into(),
        perhaps: possible_names.unwrap_or_default().into(),
    };
    let names = ["url", "target", "version", "page", "variant"];
    let rows =
        read_columns(file, text, names, &["version", "page", "origin", "perhaps"], ["linked", "origin", "perhaps"])?;
    Ok(rows.into_iter().map(|(_, x, y)| row(x, y)).collect())
}

/// Pages that are in both run and truth. Names are numbered in the order of their first occurrence
/// in the truth.
#[derive(Debug)]
pub(super) struct CommonPages<'a> {
    pub(super) pages: Vec<KnownPage<'a>>,
    /// Index in `pages` by doc id.
    pub(super) place: HashMap<DocId, usize>,
    pub(super) copies: Vec<TargetCopy<'a>>,
    pub(super) missing: u64,
    pub(super) n_repeated: u64,
}

/// A page that is in both run and truth.
#[derive(Debug)]
pub(super) struct KnownPage<'a> {
    pub(super) doc_id: DocId,
    pub(super) body: FPrint,
    pub(super) origin: &'a str,
    pub(super) possible_names: &'a str,
    pub(super) is_linked: Option<bool>,
    pub(super) variant: &'a str,
    /// Target page; `None` for a page without a target.
    pub(super) target_page: Option<TargetPage>,
}

/// Identity of a target page.
#[derive(Debug, Clone, Copy)]
pub(super) struct TargetPage {
    /// Number of the pair (target, page), which is equal for copies of each other.
    pub(super) name: u32,
    /// Index in [`CommonPages::copies`].
    pub(super) copy: u32,
}

/// A copy of a target: one (target, version, host).
#[derive(Debug)]
pub(super) struct TargetCopy<'a> {
    pub(super) target: u32,
    /// Variant of the first page of the copy.
    pub(super) variant: &'a str,
    pub(super) pages: u64,
    /// True if other hosts link to the host of the copy, by the row of its first page.
    pub(super) is_linked: Option<bool>,
    /// True for the copy with which others of the target are compared.
    pub(super) is_primary: bool,
}

impl TargetCopy<'_> {
    /// True if the copy is a collection rather than a single text.
    pub(super) fn is_collection(&self) -> bool {
        self.variant != "near"
    }
}

impl<'a> CommonPages<'a> {
    /// Joins the pages of a run with the truth by URL.
    pub(super) fn new(pages: &[TruthPageRow], truth: &'a [TruthRow]) -> CommonPages<'a> {
        let pages_by_url: HashMap<&str, &TruthPageRow> = pages.iter().map(|page| (page.url.as_str(), page)).collect();
        let mut common_pages =
            CommonPages { pages: vec![], place: HashMap::new(), copies: vec![], missing: 0, n_repeated: 0 };
        let (mut seen_urls, mut targets, mut names, mut copies) =
            (HashSet::new(), HashMap::new(), HashMap::new(), HashMap::new());
        for row in truth {
            if !seen_urls.insert(row.url.as_str()) {
                common_pages.n_repeated += 1;
                continue;
            }
            let Some(&&TruthPageRow { doc_id, body, .. }) = pages_by_url.get(row.url.as_str()) else {
                common_pages.missing += 1;
                continue;
            };
            let variant = row.variant.as_str();
            let target_page = row.is_of_target().then(|| {
                let target = number(&mut targets, row.target.as_str());
                let name = number(&mut names, (target, row.page.as_str()));
                let copy = number(&mut copies, (target, row.version.as_str(), host(&row.url)));
                if copy as usize == common_pages.copies.len() {
                    common_pages.copies.push(TargetCopy {
                        target,
                        variant,
                        pages: 0,
                        is_linked: row.linked,
                        is_primary: false,
                    });
                }
                common_pages.copies[copy as usize].pages += 1;
                TargetPage { name, copy }
            });
            common_pages.place.insert(doc_id, common_pages.pages.len());
            let (origin, possible_names) = (row.origin.as_str(), row.perhaps.as_str());
            common_pages.pages.push(KnownPage {
                doc_id,
                body,
                origin,
                possible_names,
                is_linked: row.linked,
                variant,
                target_page,
            });
        }
        common_pages.choose_primaries(targets.len());
        common_pages
    }

    fn choose_primaries(&mut self, targets: usize) {
        let mut primaries: Vec<Option<usize>> = vec![None; targets];
        for (copy_number, copy) in self.copies.iter().enumerate() {
            let primary = &mut primaries[copy.target as usize];
            if primary.is_none_or(|best| copy.variant == "primary" && self.copies[best].variant != "primary") {
                *primary = Some(copy_number);
            }
        }
        for copy_number in primaries.into_iter().flatten() {
            self.copies[copy_number].is_primary = true;
        }
    }

    /// Returns the target page of a page of the run, if any.
    pub(super) fn target_page(&self, doc_id: DocId) -> Option<TargetPage> {
        self.pages[*self.place.get(&doc_id)?].target_page
    }
}

fn number<K: std::hash::Hash + Eq>(numbers: &mut HashMap<K, u32>, key: K) -> u32 {
    let next = numbers.len() as u32;
    *numbers.entry(key).or_insert(next)
}

/// Returns the authority of a URL: host and port.
fn host(url: &str) -> &str {
    url.split('/').nth(2).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_name_among_others() {
        let rows =
            read_truth("t.tsv", "linked\tpage\turl\tvariant\tversion\ttarget\n1\t\thttp://a/\thub\t\tx\textra\r\n\n")
                .unwrap();
        let [url, target, variant] = ["http://a/", "x", "hub"].map(str::to_owned);
        let is_linked = Some(true);
        assert_eq!(rows, [TruthRow { url, target, variant, linked: is_linked, ..Default::default() }]);
        let [row] =
            &read_truth("t.tsv", "url\ttarget\tversion\tpage\tvariant\torigin\tperhaps\nu\tt\t\t\treal\t\tx y\n")
                .unwrap()[..]
        else {
            panic!("one line, one row")
        };
        assert_eq!((row.origin.as_str(), row.perhaps.as_str(), row.linked), ("", "x y", None));
    }

    #[test]
    fn errors_name_file_line_and_column() {
        let names = "url\ttarget\tversion\tpage\tvariant\n";
        for (text, expected) in [
            (String::new(), "input t.tsv: the file is empty"),
            (
                "url\ttarget\tversion\tpage\n".into(),
                "line 1 has no column variant; its columns are url, target, version, page",
            ),
            ("url\turl\ttarget\tversion\tpage\tvariant\n".into(), "line 1 has the column url twice"),
            (
                format!("{names}http://a/\tx\t1\tp\n"),
                "line 2, column variant: missing, because the line has only 4 of 5 fields",
            ),
            (format!("{names}\nhttp://a/\t\t1\tp\thub\n"), "line 3, column target: empty"),
        ] {
            let message = read_truth("t.tsv", &text).unwrap_err().to_string();
            assert!(message.contains(expected) && message.contains("t.tsv"), "{message}");
        }
    }

    #[test]
    fn the_primary_copy_is_the_one_called_so_else_the_first() {
        let row = |url: &str, target: &str, variant: &str| TruthRow {
            url: url.into(),
            target: target.into(),
            version: "1".into(),
            page: "p".into(),
            variant: variant.into(),
            ..Default::default()
        };
        let truth = [
            row("http://a/", "x", "exact"),
            row("http://b/", "x", "primary"),
            row("http://c/", "y", "real"),
            row("http://d/", "y", "real"),
        ];
        let pages: Vec<TruthPageRow> =
            (0..).zip(&truth).map(|(doc_id, row)| TruthPageRow { doc_id, url: row.url.clone(), body: 0 }).collect();
        let common_pages = CommonPages::new(&pages, &truth);
        assert_eq!(
            common_pages.copies.iter().map(|copy| copy.is_primary).collect::<Vec<_>>(),
            [false, true, true, false]
        );
    }
}
