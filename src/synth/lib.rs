//! Synthetic crawls with planted replicas, and the truth about them.
//!
//! `synth://?pages=N&seed=S` denotes a crawl that is generated on demand: manuals with contents,
//! chapters and sections, their older versions and mirrors, near-copies on unrelated sites,
//! unrelated pages, pages that are all alike, and one hub per host. The same parameters yield the
//! same bytes on every machine. Page `i` is a pure function of the parameters and `i`, so workers
//! generate ranges of the crawl independently.
//!
//! | variant | description | location |
//! |---|---|---|
//! | `primary` | the newest version of a manual | `http://www.MANUAL.example/` |
//! | `version` | an older version: sentences differ, some pages are missing, others have been dropped since | a mirror host, or `/old/VERSION/` |
//! | `exact` | the bytes of the primary copy | a mirror host, in a folder such as `/pub/MANUAL/` |
//! | `dressed` | the primary copy with a bar (image, links) above and a footer (counter, date) below | a mirror host |
//! | `renamed` | the primary copy with `.htm` for `.html` in names and links | a mirror host |
//! | `partial` | 30 to 80 % of the pages, grown along links; other links lead to the primary site | a mirror host |
//! | `near` | one of three pages with one text, two of which have an additional sentence, on three unrelated sites | sites of single pages |
//! | `single` | unrelated pages; also empty pages and not-found pages, which are all alike | sites of single pages |
//! | `hub` | the home page of a host: its manuals, and links to other hosts with a heavy-tailed degree | every host |
//!
//! A mirror host carries several manuals, but at most one copy of each. One mirror host in ten is
//! linked from no other host.
//!
//! # Source
//! \[CSG00\] section 4 for the composition (25 targets of 50 to 1000 pages in 5 to 10 copies, older
//! or slightly changed, with three tenths of unrelated pages) and figure 10 for partial mirrors;
//! \[MJS07\] section 4.2 for the pages that are all alike.

use std::io::Write;
use std::ops::Range;

use outline::View;
use plan::{CopyKind, HostRole, Plan, PlannedPage};
use random::key;
use text::WordModel;
use webtwin_base::error::{Error, Result};

pub mod random;

mod html;
mod outline;
mod plan;
mod text;
mod warc;

/// Parameters of a synthetic crawl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Total number of pages, 100 to 2³² − 1.
    pub pages: u64,
    /// Seed of the crawl. Different seeds yield different crawls.
    pub seed: u64,
    /// Number of manuals; by default as many as fill seven tenths of the pages.
    pub manuals: Option<u32>,
    /// Number of copies of each manual, including the primary one, 2 to 100. The default is 7, or
    /// less in a crawl of under 200 pages.
    pub copies: Option<u32>,
}

impl Default for Params {
    fn default() -> Self {
        Params { pages: 10_000, seed: 1, manuals: None, copies: None }
    }
}

/// A page with the truth about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SynthPage {
    /// URL of the page.
    pub url: String,
    /// Fetch time in seconds since 1970.
    pub fetch_time: i64,
    /// HTML of the page, in UTF-8.
    pub html: Vec<u8>,
    /// Manual or text to which the page belongs, or the host for any other page.
    pub target: String,
    /// Version of the target.
    pub version: String,
    /// Name of the page within the target. Pages with equal target and page are copies of each
    /// other.
    pub page: String,
    /// Way in which the copy was made; see the table of this module.
    pub variant: &'static str,
}

/// A synthetic crawl that is planned. Its pages are generated on demand.
#[derive(Debug)]
pub struct Synth {
    plan: Plan,
    language: WordModel,
}

impl Synth {
    /// Plans the crawl for a URL `synth://?pages=N&seed=S&manuals=M&copies=C`. Every key is
    /// optional.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] for another scheme, an unknown or repeated key, or a value that is
    /// not a number, and any error of [`Synth::new`].
    pub fn parse(url: &str) -> Result<Synth> {
        const KEYS: [&str; 4] = ["pages", "seed", "manuals", "copies"];
        let usage_error = |what: String| Error::Usage(format!("input {url}: {what}"));
        let rest = url
            .strip_prefix("synth://")
            .ok_or_else(|| usage_error("not a synthetic crawl; write synth://?pages=N&seed=S".into()))?;
        let query = match rest.split_once('?') {
            Some(("" | "/", query)) => query,
            None if matches!(rest, "" | "/") => "",
            _ => {
                return Err(usage_error(
                    "text between synth:// and ? is not allowed; write synth://?pages=N&seed=S".into(),
                ));
            }
        };
        let mut params = Params::default();
        let mut keys_given = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if keys_given.contains(&name) {
                return Err(usage_error(format!("{name} is given twice; give it once")));
            }
            keys_given.push(name);
            let bad = || usage_error(format!("{name} is {value:?}, but must be a whole number"));
            match name {
                "pages" => params.pages = value.parse().map_err(|_| bad())?,
                "seed" => params.seed = value.parse().map_err(|_| bad())?,
                "manuals" => params.manuals = Some(value.parse().map_err(|_| bad())?),
                "copies" => params.copies = Some(value.parse().map_err(|_| bad())?),
                _ => {
                    let nearest = KEYS
                        .into_iter()
                        .min_by_key(|known| strsim::damerau_levenshtein(known, name))
                        .expect("there are keys");
                    return Err(usage_error(format!("unknown key {name:?}; did you mean {nearest:?}?")));
                }
            }
        }
        Synth::new(&params)
    }

    /// Plans a crawl.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] if a parameter is out of range, or if the pages do not suffice for
    /// the manuals and copies.
    ///
    /// # Cost
    /// Time and memory proportional to the number of copies; 3 ms for a million pages.
    pub fn new(params: &Params) -> Result<Synth> {
        Ok(Synth { plan: Plan::new(params)?, language: WordModel::new() })
    }

    /// Returns the number of pages, which is exactly the number requested.
    #[allow(clippy::len_without_is_empty)] // A crawl has at least 100 pages.
    pub fn len(&self) -> u64 {
        self.plan.len()
    }

    /// Makes one page.
    ///
    /// # Panics
    /// Panics if `number` is not below [`Synth::len`].
    pub fn page(&self, number: u64) -> SynthPage {
        self.make_page(number, &mut None)
    }

    /// Makes the pages of a range. This is cheaper than making them one by one, because a manual is
    /// opened once for all its adjacent pages.
    ///
    /// # Panics
    /// Panics if the range exceeds [`Synth::len`].
    pub fn pages(&self, range: Range<u64>) -> impl Iterator<Item = SynthPage> + '_ {
        let mut open_copy = None;
        range.map(move |number| self.make_page(number, &mut open_copy))
    }

    /// Writes the truth: `url target version page variant`, separated by tabs, below a header line.
    ///
    /// # Errors
    /// Returns any error of `output`.
    pub fn truth_tsv(&self, output: &mut dyn Write) -> std::io::Result<()> {
        output.write_all(b"url\ttarget\tversion\tpage\tvariant\n")?;
        let mut open_copy = None;
        for number in 0..self.len() {
            let SynthPage { url, target, version, page, variant, .. } = self.describe(number, &mut open_copy);
            writeln!(output, "{url}\t{target}\t{version}\t{page}\t{variant}")?;
        }
        Ok(())
    }

    fn make_page(&self, number: u64, open_copy: &mut Option<Opened>) -> SynthPage {
        let mut page = self.describe(number, open_copy);
        page.html = self.html(number, open_copy).into_bytes();
        page
    }

    /// Makes a page without its HTML.
    fn describe(&self, number: u64, open_copy: &mut Option<Opened>) -> SynthPage {
        let place = self.plan.place(number);
        let seed = self.plan.seed;
        let page_without_target = |host: HostRole, path: String| {
            let host = self.host_name(host);
            (format!("http://{host}/{path}"), format!("site:{host}"), "-".to_owned(), format!("/{path}"))
        };
        let (url, target, version, page) = match place {
            PlannedPage::Copy { copy, number } => {
                let Opened { view, .. } = self.open(copy, open_copy);
                let page = view.held()[number as usize];
                let copy = &self.plan.copies[copy as usize];
                (
                    self.base(copy) + &self.file(view.outline, page, copy.kind),
                    self.manual_name(copy.manual),
                    self.version(copy.manual, copy.age),
                    self.file(view.outline, page, CopyKind::Primary),
                )
            }
            PlannedPage::Near { group, number } => {
                (self.near_url(group, number), format!("near-{group}"), number.to_string(), "text".to_owned())
            }
            PlannedPage::Single { host, number } => {
                page_without_target(HostRole::Single(host), self.single_path(host, number))
            }
            PlannedPage::NotFound(n) => {
                page_without_target(self.any_single_host(key(seed, &[20, n])), format!("gone-{n}.html"))
            }
            PlannedPage::Empty(n) => {
                page_without_target(self.any_single_host(key(seed, &[21, n])), format!("blank-{n}.html"))
            }
            PlannedPage::Hub(host) => page_without_target(host, String::new()),
        };
        let variant = match place {
            PlannedPage::Copy { copy, .. } => self.plan.copies[copy as usize].kind.as_str(),
            PlannedPage::Near { .. } => "near",
            PlannedPage::Hub(_) => "hub",
            _ => "single",
        };
        SynthPage { url, fetch_time: 1_700_000_000 + number as i64, html: Vec::new(), target, version, page, variant }
    }

    /// Opens a copy, unless it is already open.
    fn open<'a>(&self, number: u32, open_copy: &'a mut Option<Opened>) -> &'a Opened {
        if open_copy.as_ref().is_none_or(|opened| opened.copy != number) {
            let copy = &self.plan.copies[number as usize];
            let outline = self.plan.outline(copy.manual);
            let view = View::open(outline, copy.age, copy.n_held, key(outline.key, &[10, u64::from(number)]));
            *open_copy = Some(Opened { copy: number, view });
        }
        open_copy.as_ref().expect("opened just now, if not before")
    }
}

/// The copy whose pages are being made.
#[derive(Debug)]
struct Opened {
    copy: u32,
    view: View,
}

#[cfg(test)]
mod tests;
