//! Answers to a crawler's question about a URL.

use std::fmt::Write;

use serde::Serialize;

use super::index::LookupIndex;
use super::rows::NONE;
use super::unknown::UnknownUrl;
use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, doc_id, splitmix64};
use webtwin_core::url_rules::rules::Rule;
use webtwin_pages::url::CanonicalUrl;

/// Action that a crawler should take for a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum UrlAction {
    /// The page is kept, so it must be fetched.
    Fetch,
    /// The URL may be skipped: another page is kept for it, it is on the list in force, all crawled
    /// pages of its folder may be skipped, or a URL rule rewrites it to the URL of a page.
    Skip,
    /// The URL was not crawled, and there is no reason to skip it.
    Unknown,
    /// It is not an http(s) URL.
    Reject,
}

impl UrlAction {
    /// All variants, in the order of their declaration.
    pub const ALL: [UrlAction; 4] = [UrlAction::Fetch, UrlAction::Skip, UrlAction::Unknown, UrlAction::Reject];

    /// Returns the value in answers.
    pub fn as_str(self) -> &'static str {
        ["fetch", "skip", "unknown", "reject"][self as usize]
    }
}

/// Formats an id for JSON as 16 hexadecimal digits, because JavaScript rounds numbers above 2^53.
pub fn hexadecimal(id: u64) -> String {
    format!("{id:016x}")
}

/// Parses an id of 16 hexadecimal digits.
pub fn id_of(text: &str) -> Option<u64> {
    let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    digits.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

/// Fraction of the skipped pages that is fetched nevertheless, other pages each day. \[CSG00\]
/// section 5.1 asks that replicas be revisited now and then.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recheck {
    below: u64,
    day: u64,
}

impl Recheck {
    /// Selects the fraction `share`, from 0 to 1, of the pages for a day since 1970. The selection
    /// is the same for all clients.
    pub fn new(share: f64, day: u64) -> Recheck {
        Recheck { below: (share.clamp(0.0, 1.0) * u64::MAX as f64) as u64, day }
    }

    fn is_due(&self, page: DocId) -> bool {
        self.below > 0 && splitmix64(page ^ splitmix64(self.day)) <= self.below
    }
}

/// Result of a look-up, as numbers of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookupHit {
    /// Action for the URL.
    pub action: UrlAction,
    /// Rank of the page, if it was crawled.
    pub page: Option<u32>,
    /// Rank of the page that is kept for it.
    pub keep: Option<u32>,
    /// Number of the prefix that covers it, if it was not crawled.
    pub prefix: Option<usize>,
    /// Number of the last URL rule that rewrites it, if it was not crawled.
    pub rule: Option<usize>,
    /// Value that explains why it is on the list in force, if it was not crawled.
    pub standing: Option<u8>,
    /// True if it is fetched only to check that it still is a copy.
    pub recheck: bool,
}

impl LookupHit {
    const NOTHING: LookupHit = LookupHit {
        action: UrlAction::Unknown,
        page: None,
        keep: None,
        prefix: None,
        rule: None,
        standing: None,
        recheck: false,
    };
}

/// Looks up URLs in an index. Each thread has its own, because of the scratch buffer.
#[derive(Debug)]
pub struct LookupSession<'i> {
    /// Index that is looked up in.
    pub index: &'i LookupIndex,
    recheck: Option<Recheck>,
    scratch: Vec<u8>,
}

impl<'i> LookupSession<'i> {
    /// Creates an asker for an index. With `recheck`, a fraction of the skipped pages is fetched.
    pub fn new(index: &'i LookupIndex, recheck: Option<Recheck>) -> LookupSession<'i> {
        LookupSession { index, recheck, scratch: Vec::new() }
    }

    /// Looks up a URL as a crawler finds it.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Input`] if a damaged part of the index is read. All
    /// functions below return this error too.
    pub fn url(&mut self, url: &str) -> Result<LookupHit> {
        match CanonicalUrl::parse(url) {
            Err(_) => Ok(LookupHit { action: UrlAction::Reject, ..LookupHit::NOTHING }),
            Ok(url) => self.canonical(&url),
        }
    }

    /// Looks up a canonical URL.
    ///
    /// # Errors
    /// Returns any error of [`LookupSession::url`].
    pub fn canonical(&mut self, url: &CanonicalUrl) -> Result<LookupHit> {
        let hit = self.id(doc_id(url.as_str()))?;
        if hit.page.is_some() || hit.standing.is_some() {
            return Ok(hit);
        }
        // A rule names the page that is kept, a prefix does not. So rules come first.
        let rewritten_hit = self.rewritten_hit(url.as_str())?;
        if rewritten_hit.keep.is_some() {
            return Ok(rewritten_hit);
        }
        Ok(match self.index.prefix_of(url.as_str(), &mut self.scratch)? {
            None => rewritten_hit,
            Some(prefix) if self.recheck.is_some_and(|recheck| recheck.is_due(doc_id(url.as_str()))) => {
                LookupHit { action: UrlAction::Fetch, prefix: Some(prefix), recheck: true, ..rewritten_hit }
            }
            Some(prefix) => LookupHit { action: UrlAction::Skip, prefix: Some(prefix), ..rewritten_hit },
        })
    }

    /// Applies the URL rules to a URL that was not crawled. The URL is skipped if the rules rewrite
    /// it to the URL of a crawled page, or of a page on the list in force whose kept page was
    /// crawled.
    fn rewritten_hit(&self, url: &str) -> Result<LookupHit> {
        let Some((rewritten_url, applied_rules)) = self.index.rules().rewrite(url) else {
            return Ok(LookupHit::NOTHING);
        };
        let (hit, rule) = (self.id(doc_id(&rewritten_url))?, applied_rules.last().copied());
        let is_copy = hit.action == UrlAction::Skip || hit.recheck;
        let keep = if is_copy { hit.keep } else { hit.page };
        if keep.is_none() {
            return Ok(LookupHit { rule, ..LookupHit::NOTHING });
        }
        let recheck = self.recheck.is_some_and(|recheck| recheck.is_due(doc_id(url)));
        let action = if recheck { UrlAction::Fetch } else { UrlAction::Skip };
        Ok(LookupHit { action, keep, rule, recheck, ..LookupHit::NOTHING })
    }

    /// Looks up a doc id.
    ///
    /// # Errors
    /// Returns any error of [`LookupSession::url`].
    pub fn id(&self, id: DocId) -> Result<LookupHit> {
        let Some(rank) = self.index.rank(id)? else { return self.hit_on_list(id) };
        let row = self.index.page(rank)?;
        let recheck = row.is_skipped() && self.recheck.is_some_and(|recheck| recheck.is_due(id));
        let action = if row.is_skipped() && !recheck { UrlAction::Skip } else { UrlAction::Fetch };
        let keep = (row.keep != NONE).then_some(row.keep);
        Ok(LookupHit { action, page: Some(rank), keep, recheck, ..LookupHit::NOTHING })
    }

    /// Looks up a doc id that was not crawled on the list in force.
    fn hit_on_list(&self, id: DocId) -> Result<LookupHit> {
        let Some(row) = self.index.standing(id)? else { return Ok(LookupHit::NOTHING) };
        let recheck = self.recheck.is_some_and(|recheck| recheck.is_due(id));
        let action = if recheck { UrlAction::Fetch } else { UrlAction::Skip };
        let keep = match (row.keep != NONE).then(|| self.index.page(row.keep)).transpose()? {
            // Since the list was made, another page is kept for the page that it names.
            Some(kept_page) if kept_page.keep != NONE => Some(kept_page.keep),
            kept_page => kept_page.map(|_| row.keep),
        };
        Ok(LookupHit { action, keep, standing: Some(row.why), recheck, ..LookupHit::NOTHING })
    }

    /// Appends the answer for a URL to `output` as one line: the action and, for a page to be
    /// skipped, a tab and the URL of the kept page.
    ///
    /// # Errors
    /// Returns any error of [`LookupSession::url`].
    pub fn line(&self, hit: &LookupHit, output: &mut String) -> Result<()> {
        output.push_str(hit.action.as_str());
        if let (UrlAction::Skip, Some(keep)) = (hit.action, hit.keep) {
            output.push('\t');
            self.index.append_url(keep, output)?;
        }
        output.push('\n');
        Ok(())
    }

    /// Returns everything that the index has about a URL.
    ///
    /// # Errors
    /// Returns any error of [`LookupSession::url`].
    pub fn answer(&mut self, url: &str) -> Result<LookupAnswer> {
        match CanonicalUrl::parse(url) {
            Err(_) => Ok(LookupAnswer {
                url: Some(url.into()),
                why: Some("not_a_url".into()),
                ..LookupAnswer::of(UrlAction::Reject)
            }),
            Ok(canonical) => {
                let hit = self.canonical(&canonical)?;
                let id = hexadecimal(doc_id(canonical.as_str()));
                let rules = self.index.rules();
                let rewritten_url = hit.rule.and_then(|_| rules.rewrite(canonical.as_str())).map(|row| row.0);
                let unknown_url = self.unknown_url(&hit, doc_id(canonical.as_str()), Some(canonical.host()))?;
                let (url, canonical) = (Some(url.to_string()), Some(canonical.as_str().to_string()));
                Ok(LookupAnswer {
                    url,
                    canonical,
                    id: Some(id),
                    rewritten: rewritten_url,
                    unknown: unknown_url,
                    ..self.answer_hit(&hit)?
                })
            }
        }
    }

    /// Returns everything that the index has about a doc id.
    ///
    /// # Errors
    /// Returns any error of [`LookupSession::url`].
    pub fn answer_id(&self, id: DocId) -> Result<LookupAnswer> {
        let hit = self.id(id)?;
        let canonical = hit.page.map(|page| self.index.url(page)).transpose()?;
        let unknown_url = self.unknown_url(&hit, id, None)?;
        Ok(LookupAnswer { id: Some(hexadecimal(id)), canonical, unknown: unknown_url, ..self.answer_hit(&hit)? })
    }

    fn unknown_url(&self, hit: &LookupHit, id: DocId, host: Option<&str>) -> Result<Option<UnknownUrl>> {
        let is_unknown = hit.action == UrlAction::Unknown;
        is_unknown.then(|| UnknownUrl::explain(self.index, id, host)).transpose()
    }

    fn answer_hit(&self, hit: &LookupHit) -> Result<LookupAnswer> {
        let index = self.index;
        let mut answer = LookupAnswer { known: hit.page.is_some(), ..LookupAnswer::of(hit.action) };
        if let Some(prefix) = hit.prefix {
            (answer.prefix, answer.why) = (Some(index.prefix(prefix)?), Some("prefix".into()));
        }
        if let Some(rule) = hit.rule {
            answer.rule = Some(RuleAnswer::of(&index.rules().all()[rule]));
            answer.why = hit.keep.map(|_| "rule".into()).or(answer.why);
        }
        if let Some(why) = hit.standing {
            answer.why = Some(index.word(why).into());
        }
        if let Some(page) = hit.page {
            let row = index.page(page)?;
            answer.title = Some(index.title(page)?);
            if row.is_skipped() {
                answer.why = Some(index.word(row.why).into());
            }
            answer.role = (row.cluster != NONE).then(|| index.word(row.role).into());
            answer.cluster =
                (row.cluster != NONE).then(|| index.cluster_id(row.cluster).map(hexadecimal)).transpose()?;
            if row.collection != NONE {
                let collection = index.collection(row.collection)?;
                answer.collection = Some(CollectionAnswer {
                    id: hexadecimal(collection.id),
                    root: index.url(collection.root)?,
                    size: collection.size,
                    cardinality: collection.cardinality,
                });
            }
        }
        if hit.recheck {
            answer.why = Some("recheck".into());
        }
        answer.keep = hit.keep.map(|keep| PageAnswer::read(index, keep)).transpose()?;
        Ok(answer)
    }
}

/// Page by id and URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageAnswer {
    /// Doc id of the page, in hexadecimal.
    pub id: String,
    /// Canonical URL of the page.
    pub url: String,
}

impl PageAnswer {
    /// Returns id and URL of the page with a rank.
    ///
    /// # Errors
    /// Returns any error of [`LookupIndex::page`].
    pub fn read(index: &LookupIndex, rank: u32) -> Result<PageAnswer> {
        Ok(PageAnswer { id: hexadecimal(index.page(rank)?.doc_id), url: index.url(rank)? })
    }
}

/// Collection that has mirrors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CollectionAnswer {
    /// Id of the collection, in hexadecimal.
    pub id: String,
    /// URL of the root.
    pub root: String,
    /// Number of pages.
    pub size: u32,
    /// Number of collections in the similar cluster, including this one.
    pub cardinality: u32,
}

/// URL rule in an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleAnswer {
    /// Scope: the URLs that the rule applies to.
    pub scope: String,
    /// Kind of the edit.
    pub kind: &'static str,
    /// Pattern that the edit changes.
    pub pattern: String,
    /// Replacement for the pattern.
    pub replacement: String,
}

impl RuleAnswer {
    fn of(rule: &Rule) -> RuleAnswer {
        let (pattern, replacement) = rule.edit.texts();
        RuleAnswer { scope: rule.scope.to_string(), kind: rule.edit.kind(), pattern, replacement }
    }
}

/// Everything that an index has about a URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LookupAnswer {
    /// URL of the request; absent for a doc id.
    pub url: Option<String>,
    /// Canonical URL, normalized as the job does; absent if the URL is invalid, and for a doc id
    /// that was not crawled.
    pub canonical: Option<String>,
    /// Doc id, in hexadecimal.
    pub id: Option<String>,
    /// Title, which may be empty; absent if the URL was not crawled.
    pub title: Option<String>,
    /// True if the URL was crawled.
    pub known: bool,
    /// Action for the URL.
    pub action: UrlAction,
    /// Reason: a value of `avoid.why`, `prefix`, `rule`, `recheck` or `not_a_url`.
    pub why: Option<String>,
    /// Role in its trivial cluster: a value of `clusters.role`.
    pub role: Option<String>,
    /// Page that is kept for it.
    pub keep: Option<PageAnswer>,
    /// Id of its trivial cluster.
    pub cluster: Option<String>,
    /// Its collection.
    pub collection: Option<CollectionAnswer>,
    /// Prefix of the avoid list that covers it.
    pub prefix: Option<String>,
    /// URL to which URL rules rewrite it, if it was not crawled.
    pub rewritten: Option<String>,
    /// Last rule that rewrites it.
    pub rule: Option<RuleAnswer>,
    /// Explanation, if the action is `unknown`.
    pub unknown: Option<UnknownUrl>,
}

impl LookupAnswer {
    fn of(action: UrlAction) -> LookupAnswer {
        let (url, canonical, id, why, role, keep, cluster, collection, prefix) = Default::default();
        let (title, rewritten_url, rule, problem) = Default::default();
        LookupAnswer {
            url,
            canonical,
            id,
            title,
            known: false,
            action,
            why,
            role,
            keep,
            cluster,
            collection,
            prefix,
            rewritten: rewritten_url,
            rule,
            unknown: problem,
        }
    }
}

/// Answers lines of URLs or doc ids, one line each, in their order. Returns the number of lines.
///
/// # Errors
/// Returns any error of [`LookupSession::url`].
///
/// # Cost
/// One or two microseconds a line.
pub fn answer_lines(asker: &mut LookupSession<'_>, lines: &str, form: LineForm, output: &mut String) -> Result<u64> {
    let mut count = 0;
    for line in lines.lines() {
        count += 1;
        let id = if form.ids { Some(id_of(line.trim())) } else { None };
        match (id, form.json) {
            (None, false) => {
                let hit = asker.url(line)?;
                asker.line(&hit, output)?;
            }
            (None, true) => put_line(&asker.answer(line)?, output),
            (Some(None), false) => output.push_str("reject\n"),
            (Some(None), true) => {
                put_line(
                    &LookupAnswer {
                        id: Some(line.into()),
                        why: Some("not_an_id".into()),
                        ..LookupAnswer::of(UrlAction::Reject)
                    },
                    output,
                );
            }
            (Some(Some(id)), false) => {
                let hit = asker.id(id)?;
                asker.line(&hit, output)?;
            }
            (Some(Some(id)), true) => put_line(&asker.answer_id(id)?, output),
        }
    }
    Ok(count)
}

/// Format of the lines and the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LineForm {
    /// True if lines are doc ids instead of URLs.
    pub ids: bool,
    /// True if answers are JSON objects instead of plain lines.
    pub json: bool,
}

fn put_line(answer: &LookupAnswer, output: &mut String) {
    let text = serde_json::to_string(answer).expect("an answer is plain values");
    writeln!(output, "{text}").expect("writing to a string");
}
