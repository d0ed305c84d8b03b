//! What a crawler is told of a URL.

use std::fmt::Write;

use serde::Serialize;

use super::index::Index;
use super::rows::NONE;
use super::unknown::Unknown;
use webtwin_base::error::Result;
use webtwin_base::ids::{DocId, doc_id, splitmix64};
use webtwin_core::url_rules::rules::Rule;
use webtwin_pages::url::CanonicalUrl;

/// What to do with a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The page stays.
    Fetch,
    /// Another page stays for it, or it stands on the list in force, or all crawled pages of its
    /// folder may be skipped, or a URL rule makes it the URL of a page.
    Skip,
    /// It was not crawled: nothing is known against fetching it.
    Unknown,
    /// It is no http(s) URL.
    Reject,
}

impl Action {
    /// All, in the order of their declaration.
    pub const ALL: [Action; 4] = [Action::Fetch, Action::Skip, Action::Unknown, Action::Reject];

    /// The word in answers.
    pub fn as_str(self) -> &'static str {
        ["fetch", "skip", "unknown", "reject"][self as usize]
    }
}

/// An id in JSON: 16 hexadecimal digits, because JavaScript rounds numbers above 2^53.
pub fn hexadecimal(id: u64) -> String {
    format!("{id:016x}")
}

/// The id that 16 hexadecimal digits stand for.
pub fn id_of(text: &str) -> Option<u64> {
    let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    digits.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

/// A share of the pages to skip that is fetched all the same, another one each day: \[CSG00\] section 5.1 asks that
/// replicas be
/// visited again now and then.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recheck {
    below: u64,
    day: u64,
}

impl Recheck {
    /// A share from 0 to 1 of the pages, on a day since 1970; the same pages whoever asks.
    pub fn new(share: f64, day: u64) -> Recheck {
        Recheck { below: (share.clamp(0.0, 1.0) * u64::MAX as f64) as u64, day }
    }

    fn is_due(&self, page: DocId) -> bool {
        self.below > 0 && splitmix64(page ^ splitmix64(self.day)) <= self.below
    }
}

/// What is found of a URL or doc id, before anything is put in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// What to do.
    pub action: Action,
    /// Rank of the page, if it was crawled.
    pub page: Option<u32>,
    /// Rank of the page that stays for it.
    pub keep: Option<u32>,
    /// Number of the prefix that covers it, if it was not crawled.
    pub prefix: Option<usize>,
    /// Number of the last URL rule that rewrites it, if it was not crawled.
    pub rule: Option<usize>,
    /// Word that says why it stands on the list in force, if it was not crawled.
    pub standing: Option<u8>,
    /// Whether it is fetched only to see whether it still is a copy.
    pub recheck: bool,
}

impl Found {
    const NOTHING: Found = Found {
        action: Action::Unknown,
        page: None,
        keep: None,
        prefix: None,
        rule: None,
        standing: None,
        recheck: false,
    };
}

/// Asks an index; one for each thread.
#[derive(Debug)]
pub struct Asker<'i> {
    /// The index.
    pub index: &'i Index,
    recheck: Option<Recheck>,
    room: Vec<u8>,
}

impl<'i> Asker<'i> {
    /// Asks this index.
    pub fn new(index: &'i Index, recheck: Option<Recheck>) -> Asker<'i> {
        Asker { index, recheck, room: Vec::new() }
    }

    /// Looks up a URL as it stands in a crawl.
    ///
    /// # Errors
    /// [`webtwin_base::error::Error::Input`] when the index is damaged where this looks; so with all below.
    pub fn url(&mut self, url: &str) -> Result<Found> {
        match CanonicalUrl::parse(url) {
            Err(_) => Ok(Found { action: Action::Reject, ..Found::NOTHING }),
            Ok(url) => self.canonical(&url),
        }
    }

    /// Looks up a canonical URL.
    ///
    /// # Errors
    /// As [`Asker::url`].
    pub fn canonical(&mut self, url: &CanonicalUrl) -> Result<Found> {
        let found = self.id(doc_id(url.as_str()))?;
        if found.page.is_some() || found.standing.is_some() {
            return Ok(found);
        }
        // A rule names the page that stays, a prefix does not.
        let by_rule = self.rewritten(url.as_str())?;
        if by_rule.keep.is_some() {
            return Ok(by_rule);
        }
        Ok(match self.index.prefix_of(url.as_str(), &mut self.room)? {
            None => by_rule,
            Some(prefix) if self.recheck.is_some_and(|recheck| recheck.is_due(doc_id(url.as_str()))) => {
                Found { action: Action::Fetch, prefix: Some(prefix), recheck: true, ..by_rule }
            }
            Some(prefix) => Found { action: Action::Skip, prefix: Some(prefix), ..by_rule },
        })
    }

    /// What URL rules say of a URL that was not crawled. It is skipped if they make it the URL of a
    /// page that was, or that stands on the list in force for one.
    fn rewritten(&self, url: &str) -> Result<Found> {
        let Some((rewritten, used)) = self.index.rules().rewrite(url) else { return Ok(Found::NOTHING) };
        let (found, rule) = (self.id(doc_id(&rewritten))?, used.last().copied());
        let is_copy = found.action == Action::Skip || found.recheck;
        let keep = if is_copy { found.keep } else { found.page };
        if keep.is_none() {
            return Ok(Found { rule, ..Found::NOTHING });
        }
        let recheck = self.recheck.is_some_and(|recheck| recheck.is_due(doc_id(url)));
        let action = if recheck { Action::Fetch } else { Action::Skip };
        Ok(Found { action, keep, rule, recheck, ..Found::NOTHING })
    }

    /// Looks up a doc id.
    ///
    /// # Errors
    /// As [`Asker::url`].
    pub fn id(&self, id: DocId) -> Result<Found> {
        let Some(rank) = self.index.rank(id)? else { return self.standing(id) };
        let row = self.index.page(rank)?;
        let recheck = row.is_skipped() && self.recheck.is_some_and(|recheck| recheck.is_due(id));
        let action = if row.is_skipped() && !recheck { Action::Skip } else { Action::Fetch };
        let keep = (row.keep != NONE).then_some(row.keep);
        Ok(Found { action, page: Some(rank), keep, recheck, ..Found::NOTHING })
    }

    /// Looks up a doc id that was not crawled on the list in force.
    fn standing(&self, id: DocId) -> Result<Found> {
        let Some(row) = self.index.standing(id)? else { return Ok(Found::NOTHING) };
        let recheck = self.recheck.is_some_and(|recheck| recheck.is_due(id));
        let action = if recheck { Action::Fetch } else { Action::Skip };
        let keep = match (row.keep != NONE).then(|| self.index.page(row.keep)).transpose()? {
            // Another page stays for that one by now.
            Some(kept) if kept.keep != NONE => Some(kept.keep),
            kept => kept.map(|_| row.keep),
        };
        Ok(Found { action, keep, standing: Some(row.why), recheck, ..Found::NOTHING })
    }

    /// Appends a line on a URL to `into`: what to do and, after a tab, the URL of the page that stays for one to be
    /// skipped.
    ///
    /// # Errors
    /// As [`Asker::url`].
    pub fn line(&self, found: &Found, into: &mut String) -> Result<()> {
        into.push_str(found.action.as_str());
        if let (Action::Skip, Some(keep)) = (found.action, found.keep) {
            into.push('\t');
            self.index.append_url(keep, into)?;
        }
        into.push('\n');
        Ok(())
    }

    /// All that is known of a URL.
    ///
    /// # Errors
    /// As [`Asker::url`].
    pub fn answer(&mut self, url: &str) -> Result<Answer> {
        match CanonicalUrl::parse(url) {
            Err(_) => Ok(Answer { url: Some(url.into()), why: Some("not_a_url".into()), ..Answer::of(Action::Reject) }),
            Ok(canonical) => {
                let found = self.canonical(&canonical)?;
                let id = hexadecimal(doc_id(canonical.as_str()));
                let rules = self.index.rules();
                let rewritten = found.rule.and_then(|_| rules.rewrite(canonical.as_str())).map(|row| row.0);
                let unknown = self.unknown(&found, doc_id(canonical.as_str()), Some(canonical.host()))?;
                let (url, canonical) = (Some(url.to_string()), Some(canonical.as_str().to_string()));
                Ok(Answer { url, canonical, id: Some(id), rewritten, unknown, ..self.answered(&found)? })
            }
        }
    }

    /// All that is known of a doc id.
    ///
    /// # Errors
    /// As [`Asker::url`].
    pub fn answer_id(&self, id: DocId) -> Result<Answer> {
        let found = self.id(id)?;
        let canonical = found.page.map(|page| self.index.url(page)).transpose()?;
        let unknown = self.unknown(&found, id, None)?;
        Ok(Answer { id: Some(hexadecimal(id)), canonical, unknown, ..self.answered(&found)? })
    }

    fn unknown(&self, found: &Found, id: DocId, host: Option<&str>) -> Result<Option<Unknown>> {
        let is_unknown = found.action == Action::Unknown;
        is_unknown.then(|| Unknown::of(self.index, id, host)).transpose()
    }

    fn answered(&self, found: &Found) -> Result<Answer> {
        let index = self.index;
        let mut answer = Answer { known: found.page.is_some(), ..Answer::of(found.action) };
        if let Some(prefix) = found.prefix {
            (answer.prefix, answer.why) = (Some(index.prefix(prefix)?), Some("prefix".into()));
        }
        if let Some(rule) = found.rule {
            answer.rule = Some(OfRule::of(&index.rules().all()[rule]));
            answer.why = found.keep.map(|_| "rule".into()).or(answer.why);
        }
        if let Some(why) = found.standing {
            answer.why = Some(index.word(why).into());
        }
        if let Some(page) = found.page {
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
                answer.collection = Some(OfCollection {
                    id: hexadecimal(collection.id),
                    root: index.url(collection.root)?,
                    size: collection.size,
                    cardinality: collection.cardinality,
                });
            }
        }
        if found.recheck {
            answer.why = Some("recheck".into());
        }
        answer.keep = found.keep.map(|keep| OfPage::of(index, keep)).transpose()?;
        Ok(answer)
    }
}

/// A page by id and URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfPage {
    /// Its doc id, in hexadecimal.
    pub id: String,
    /// Its canonical URL.
    pub url: String,
}

impl OfPage {
    /// The page of a rank.
    ///
    /// # Errors
    /// As [`Index::page`].
    pub fn of(index: &Index, rank: u32) -> Result<OfPage> {
        Ok(OfPage { id: hexadecimal(index.page(rank)?.doc_id), url: index.url(rank)? })
    }
}

/// A collection that has mirrors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfCollection {
    /// Its id, in hexadecimal.
    pub id: String,
    /// URL of its root.
    pub root: String,
    /// Its pages.
    pub size: u32,
    /// It and its mirrors.
    pub cardinality: u32,
}

/// A URL rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfRule {
    /// For which URLs.
    pub scope: String,
    /// Kind of its edit.
    pub kind: &'static str,
    /// What the edit changes.
    pub pattern: String,
    /// What it puts in its place.
    pub replacement: String,
}

impl OfRule {
    fn of(rule: &Rule) -> OfRule {
        let (pattern, replacement) = rule.edit.texts();
        OfRule { scope: rule.scope.to_string(), kind: rule.edit.kind(), pattern, replacement }
    }
}

/// All that is known of a URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// As it was asked for; absent for an id.
    pub url: Option<String>,
    /// Canonical, as the job makes it; absent for what is no URL, and for an id that was not crawled.
    pub canonical: Option<String>,
    /// Doc id, in hexadecimal.
    pub id: Option<String>,
    /// Its title, which may be empty; absent for what was not crawled.
    pub title: Option<String>,
    /// Whether it was crawled.
    pub known: bool,
    /// What to do.
    pub action: Action,
    /// Why: a word of `avoid.why`, `prefix`, `rule`, `recheck` or `not_a_url`.
    pub why: Option<String>,
    /// Its role in its cluster: a word of `clusters.role`.
    pub role: Option<String>,
    /// The page that stays for it.
    pub keep: Option<OfPage>,
    /// Id of its trivial cluster.
    pub cluster: Option<String>,
    /// Its collection.
    pub collection: Option<OfCollection>,
    /// The prefix of the avoid list that covers it.
    pub prefix: Option<String>,
    /// The URL that URL rules make of one that was not crawled.
    pub rewritten: Option<String>,
    /// The last of these rules.
    pub rule: Option<OfRule>,
    /// Why nothing is known of it, if the action is `unknown`.
    pub unknown: Option<Unknown>,
}

impl Answer {
    fn of(action: Action) -> Answer {
        let (url, canonical, id, why, role, keep, cluster, collection, prefix) = Default::default();
        let (title, rewritten, rule, unknown) = Default::default();
        Answer {
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
            rewritten,
            rule,
            unknown,
        }
    }
}

/// Answers lines of URLs, or of doc ids, one line each and in their order.
///
/// # Errors
/// As [`Asker::url`].
///
/// # Cost
/// A microsecond or two a line.
pub fn answer_lines(asker: &mut Asker<'_>, lines: &str, form: Form, into: &mut String) -> Result<u64> {
    let mut count = 0;
    for line in lines.lines() {
        count += 1;
        let id = if form.ids { Some(id_of(line.trim())) } else { None };
        match (id, form.json) {
            (None, false) => {
                let found = asker.url(line)?;
                asker.line(&found, into)?;
            }
            (None, true) => put(&asker.answer(line)?, into),
            (Some(None), false) => into.push_str("reject\n"),
            (Some(None), true) => {
                put(
                    &Answer { id: Some(line.into()), why: Some("not_an_id".into()), ..Answer::of(Action::Reject) },
                    into,
                );
            }
            (Some(Some(id)), false) => {
                let found = asker.id(id)?;
                asker.line(&found, into)?;
            }
            (Some(Some(id)), true) => put(&asker.answer_id(id)?, into),
        }
    }
    Ok(count)
}

/// What lines are, and what is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Form {
    /// Lines are doc ids.
    pub ids: bool,
    /// Answers are objects of JSON.
    pub json: bool,
}

fn put(answer: &Answer, into: &mut String) {
    let text = serde_json::to_string(answer).expect("an answer is plain values");
    writeln!(into, "{text}").expect("writing to a string");
}
