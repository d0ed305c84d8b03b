//! Counts of damaged records of an input, and the limit on them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::record::Reason;
use webtwin_base::error::{Error, Result, size};

/// Numbers of records, pages and damaged records of an input.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// Number of records that were read.
    pub records: u64,
    /// Number of records that are pages.
    pub pages: u64,
    /// Number of damaged records, by reason.
    pub bad: BTreeMap<Reason, u64>,
    /// Number of bytes of the input that damaged records occupy. Records that are intact and only
    /// exceed a limit are not included.
    pub bad_bytes: u64,
    /// Offset, reason and detail of the first damaged record.
    pub first_bad: Option<(u64, Reason, String)>,
}

impl Damage {
    /// Adds a page.
    pub fn add_page(&mut self) {
        self.records += 1;
        self.pages += 1;
    }

    /// Adds a damaged record (offset, reason and detail) that occupies `bytes` of the input.
    pub fn add_bad(&mut self, bad_record: (u64, Reason, String), bytes: u64) {
        self.records += 1;
        *self.bad.entry(bad_record.1).or_default() += 1;
        self.bad_bytes += bytes;
        self.first_bad = self.first_bad.take().into_iter().chain([bad_record]).min();
    }

    /// Adds the counts of another worker for the same input.
    pub fn add(&mut self, other: Damage) {
        self.records += other.records;
        self.pages += other.pages;
        self.bad_bytes += other.bad_bytes;
        other.bad.into_iter().for_each(|(reason, n)| *self.bad.entry(reason).or_default() += n);
        self.first_bad = self.first_bad.take().into_iter().chain(other.first_bad).min();
    }

    /// Checks that the fraction of damaged records, and the fraction of bytes that they occupy, is
    /// at most `max_bad`. `bytes` is the size of the input, or 0 if it is unknown.
    ///
    /// Unless `max_bad` is 0, a single damaged record among intact ones is allowed, because
    /// otherwise a small file could have none. The exception ends where that record occupies more
    /// than half of the file, or where a truncated file has no page at all.
    ///
    /// # Errors
    /// Returns [`Error::TooManyBad`] if a fraction exceeds the limit.
    pub fn check_against(&self, max_bad: f64, input: &str, bytes: u64) -> Result<()> {
        let bad = self.bad.values().sum::<u64>();
        let is_torn = self.bad.contains_key(&Reason::Truncated) && self.pages == 0;
        let is_one_among_sound = bad == 1 && self.records > 1 && max_bad > 0.0 && !is_torn;
        let allowed_of_bytes = if is_one_among_sound { max_bad.max(0.5) } else { max_bad };
        let are_too_many = bad as f64 > max_bad * self.records as f64 && !is_one_among_sound;
        let is_too_much = bytes > 0 && self.bad_bytes as f64 > allowed_of_bytes * bytes as f64;
        if !are_too_many && !is_too_much {
            return Ok(());
        }
        let mut counts: Vec<_> = self.bad.iter().map(|(reason, n)| (*n, reason.as_str())).collect();
        counts.sort_unstable_by(|x, y| y.cmp(x));
        let mut reasons: Vec<String> = counts.iter().take(3).map(|(n, word)| format!("{word} {n}")).collect();
        if self.bad_bytes > 0 && bytes > 0 {
            reasons.push(format!("{} of {} lost", size(self.bad_bytes), size(bytes)));
        }
        let example = self.first_bad.as_ref().map_or(String::new(), |(offset, reason, detail)| {
            let colon = if detail.is_empty() { "" } else { ": " };
            format!("{} at offset {offset}{colon}{detail}", reason.as_str())
        });
        Err(Error::TooManyBad {
            input: input.to_string(),
            bad,
            read: self.records,
            allowed: max_bad.to_string(),
            reasons: reasons.join(", "),
            example,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_damaged_record_is_allowed_unless_most_of_the_file_is_lost() {
        let damage_of = |pages: u64, reason: Reason, bytes: u64| {
            let mut damage = Damage { records: 3, pages, ..Damage::default() };
            damage.add_bad((7, reason, String::new()), bytes);
            damage
        };
        let ends = |damage: &Damage, max_bad: f64| damage.check_against(max_bad, "a.warc", 1000).is_err();
        assert!(!ends(&damage_of(1, Reason::BadJson, 400), 0.01) && !ends(&damage_of(1, Reason::Truncated, 400), 0.01));
        assert!(ends(&damage_of(1, Reason::BadJson, 600), 0.01) && ends(&damage_of(1, Reason::BadJson, 400), 0.0));
        // A truncated file without a page.
        assert!(ends(&damage_of(0, Reason::Truncated, 400), 0.01) && !ends(&damage_of(0, Reason::BadJson, 400), 0.01));
        assert!(!ends(&damage_of(0, Reason::Truncated, 400), 0.5));

        let mut damage = damage_of(1, Reason::BadJson, 400);
        damage.add(damage_of(2, Reason::BadDate, 100));
        let error = damage.check_against(0.1, "a.warc", 1000).unwrap_err().to_string();
        assert!(error.contains("bad_json 1, bad_date 1, 500 bytes of 1000 bytes lost"), "{error}");
    }
}
