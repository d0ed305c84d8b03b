//! Checks the first records of some inputs before a run starts its work, so that a defect of all
//! records is reported immediately.
//!
//! Part of an input only shows which records are damaged in that part. If every checked record of
//! an input is damaged, the run ends. If more than the allowed fraction is damaged, the check only
//! warns, because the rest of the input may be sound.

use webtwin_base::error::{Error, Result};
use webtwin_job::InputSettings;
use webtwin_pages::damage::Damage;
use webtwin_pages::record::ReadResult;
use webtwin_pages::url::{CanonicalUrl, refusal_reason};
use webtwin_pages::work_items::WorkList;

/// Maximum number of inputs that are checked, evenly spread.
const INPUTS: usize = 8;

/// Maximum number of records of an input that are checked.
const RECORDS: u64 = 1000;

/// Bytes of pages after which the check of an input ends.
const BYTES: usize = 4 << 20;

/// Minimum number of checked records, all damaged, for which an input with more records is refused.
const MIN_RECORDS: u64 = 100;

/// Checks the first records of some inputs. Returns warnings.
///
/// # Errors
/// Returns [`Error::TooManyBad`] for an input whose checked records are all damaged, and any error
/// of reading.
///
/// # Cost
/// Reads at most 1000 records and 4 MiB of pages, but at least one record, of each of eight inputs.
pub fn first_inspection(work: &WorkList, input: &InputSettings) -> Result<Vec<String>> {
    let items_by_input = work.items.chunk_by(|x, y| x.input == y.input).collect::<Vec<_>>();
    let mut warnings = Vec::new();
    for items in items_by_input.iter().step_by(items_by_input.len().div_ceil(INPUTS).max(1)) {
        let (item, name) = (&items[0], &work.inputs[items[0].input as usize]);
        if name.starts_with("synth://") {
            continue;
        }
        let (mut damage, mut bytes, mut has_enough) = (Damage::default(), 0, false);
        let outcome = work.read(item, input, &mut |found| {
            note(&mut damage, &mut bytes, found);
            has_enough = damage.records >= RECORDS || bytes >= BYTES;
            // An error is the only way to end the reading early; it is discarded below.
            if has_enough { Err(Error::Invariant("enough was read".into())) } else { Ok(()) }
        });
        if !has_enough {
            outcome?;
        }
        let is_whole = !has_enough && items.len() == 1;
        let (records, bad) = (damage.records, damage.bad.values().sum::<u64>());
        let outcome = match is_whole {
            true => name.clone(),
            false => format!("{name}, of which the first {records} records were inspected"),
        };
        match damage.check_against(input.max_bad, &outcome, 0) {
            Err(error) if bad == records && (is_whole || records >= MIN_RECORDS) => return Err(error),
            Err(error) if !is_whole => warnings
                .push(format!("warning: {error}; the run fails with this error if the other records are similar")),
            _ => (),
        }
    }
    Ok(warnings)
}

fn note(damage: &mut Damage, bytes: &mut usize, record: ReadResult) {
    let (offset, reason, detail) = match record {
        ReadResult::Refused(refused) => (refused.offset, refused.reason, refused.detail),
        ReadResult::Page(page) => {
            *bytes += page.body.len();
            match CanonicalUrl::parse(&page.url) {
                Ok(_) => return damage.add_page(),
                Err(why) => (page.offset, refusal_reason(why), format!("{why}: {}", page.url)),
            }
        }
    };
    match reason.is_bad() {
        true => damage.add_bad((offset, reason, detail), 0),
        false => damage.records += 1,
    }
}
