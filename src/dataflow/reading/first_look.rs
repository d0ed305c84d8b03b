//! A look at the first records of some inputs, before a run does any work: what is wrong with all of them is said at once.
//!
//! A part can only tell for certain what no record of it is: an input of which every record looked at is damaged ends the run,
//! one of which more than the allowed share is only warned of, for the rest of it may be sound.

use webtwin_base::error::{Error, Result};
use webtwin_job::Input;
use webtwin_pages::damage::Damage;
use webtwin_pages::record::{Found, Reason};
use webtwin_pages::url::CanonicalUrl;
use webtwin_pages::work_items::Work;

/// Inputs looked at, evenly spread.
const INPUTS: usize = 8;

/// Records looked at of each.
const RECORDS: u64 = 1000;

/// Bytes of pages after which an input has been looked at enough.
const BYTES: usize = 4 << 20;

/// Records that must be damaged, one and all, for an input to be refused of which there are more.
const ENOUGH: u64 = 100;

/// Looks at the first records of some inputs; returns warnings.
///
/// # Errors
/// [`Error::TooManyBad`] for an input that is damaged as far as it was looked at; those of reading.
///
/// # Cost
/// At most 1000 records and 4 MiB of pages, or a record, of each of eight inputs.
pub fn first_look(work: &Work, input: &Input) -> Result<Vec<String>> {
    let of_input = work.items.chunk_by(|x, y| x.input == y.input).collect::<Vec<_>>();
    let mut warnings = Vec::new();
    for items in of_input.iter().step_by(of_input.len().div_ceil(INPUTS).max(1)) {
        let (item, name) = (&items[0], &work.inputs[items[0].input as usize]);
        if name.starts_with("synth://") {
            continue;
        }
        let (mut damage, mut bytes, mut has_enough) = (Damage::default(), 0, false);
        let read = work.read(item, input, &mut |found| {
            note(&mut damage, &mut bytes, found);
            has_enough = damage.records >= RECORDS || bytes >= BYTES;
            // Any error ends the reading.
            if has_enough { Err(Error::Invariant("enough was read".into())) } else { Ok(()) }
        });
        if !has_enough {
            read?;
        }
        let is_whole = !has_enough && items.len() == 1;
        let (records, bad) = (damage.records, damage.bad.values().sum::<u64>());
        let looked_at = match is_whole {
            true => name.clone(),
            false => format!("{name}, of which the first {records} records were looked at"),
        };
        match damage.hold_against(input.max_bad, &looked_at, 0) {
            Err(error) if bad == records && (is_whole || records >= ENOUGH) => return Err(error),
            Err(error) if !is_whole => {
                warnings.push(format!("warning: {error}; the run ends so if the rest is like this"))
            }
            _ => (),
        }
    }
    Ok(warnings)
}

fn note(damage: &mut Damage, bytes: &mut usize, found: Found) {
    let (offset, reason, detail) = match found {
        Found::Refused(refused) => (refused.offset, refused.reason, refused.detail),
        Found::Page(page) => {
            *bytes += page.body.len();
            match CanonicalUrl::parse(&page.url) {
                Ok(_) => return damage.add_page(),
                Err(why) => (page.offset, Reason::BadUrl, format!("{why}: {}", page.url)),
            }
        }
    };
    match reason.is_bad() {
        true => damage.add_bad((offset, reason, detail), 0),
        false => damage.records += 1,
    }
}
