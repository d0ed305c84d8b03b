//! Inputs of earlier crawls that a scheduled job searches for the originals of its revisit records,
//! if none are named.

use std::collections::BTreeSet;

use webtwin_base::error::{Error, Result};
use webtwin_pages::sniff::is_html;
use webtwin_storage::expand::expand;
use webtwin_storage::location::{seen_from_anywhere, working_folder};
use webtwin_storage::state::Generation;

/// Inputs of earlier crawls.
#[derive(Debug, Default)]
pub(super) struct EarlierInputs {
    /// Inputs to search, ascending.
    pub(super) requested: Vec<String>,
    /// Value for [`Generation::crawl_before`], including inputs that pages need and that are
    /// missing, because they may come back.
    pub(super) crawl_before: Vec<String>,
    /// Existing files of the previous crawl.
    pub(super) files_there: BTreeSet<String>,
}

impl EarlierInputs {
    /// Collects the earlier inputs of a job that continues from a generation. `inputs` are the
    /// job's live inputs. A job that names its inputs (`are_named`), none of which was live, reads
    /// a completely new crawl; its previous crawl is that of the generation.
    ///
    /// # Errors
    /// Returns any error of the search for inputs.
    pub(super) fn collect(
        previous: &Generation,
        inputs: &[String],
        are_named: bool,
        notify: impl Fn(std::fmt::Arguments<'_>),
    ) -> Result<EarlierInputs> {
        let folder = working_folder();
        let live: BTreeSet<String> = inputs.iter().map(|input| seen_from_anywhere(input, &folder)).collect();
        let is_live = |input: &String| live.contains(&seen_from_anywhere(input, &folder));
        let [mut changed, mut left, mut crawl_before] = [&previous.originals, &previous.inputs, &previous.crawl_before]
            .map(|inputs| names_of_inputs(previous, inputs));
        // A completely new crawl: all inputs of the generation belong to the previous crawl.
        if are_named && !left.iter().any(is_live) {
            crawl_before = [&changed[..], &left].concat();
        }
        crawl_before.retain(|input| !is_live(input));
        for inputs in [&mut changed, &mut left] {
            inputs.retain(|input| !is_live(input) && !crawl_before.contains(input));
        }

        let mut earlier = EarlierInputs::default();
        for input in &crawl_before {
            if let Some(files) = files_of(input, &notify)? {
                earlier.files_there.extend(files);
                earlier.requested.push(input.clone());
            }
        }
        earlier.crawl_before = crawl_before;
        for input in changed {
            // If the live inputs are not named again, everything that the pages need must exist.
            match !are_named || files_of(&input, &notify)?.is_some() {
                true => earlier.requested.push(input),
                false => earlier.crawl_before.push(input),
            }
        }
        for input in if are_named { left } else { Vec::new() } {
            if files_of(&input, &notify)?.is_some() {
                earlier.requested.push(input);
            }
        }
        earlier.requested.sort_unstable();
        earlier.requested.dedup();
        Ok(earlier)
    }
}

/// Returns the names of a generation's inputs relative to the current working folder.
pub(super) fn names_of_inputs(generation: &Generation, inputs: &[String]) -> Vec<String> {
    let is_here = working_folder() == generation.working_folder;
    let name = |url: &String| match (is_here, url.strip_prefix('@')) {
        (true, _) => url.clone(),
        (false, None) => seen_from_anywhere(url, &generation.working_folder),
        (false, Some(list)) => format!("@{}", seen_from_anywhere(list, &generation.working_folder)),
    };
    inputs.iter().map(name).collect()
}

/// Returns the files of an earlier crawl's input. Returns `None` with a message if there are none,
/// because this crawl may have no revisits of it.
fn files_of(original: &str, notify: impl Fn(std::fmt::Arguments<'_>)) -> Result<Option<Vec<String>>> {
    if original.starts_with("synth://") {
        return Ok(Some(vec![original.to_string()]));
    }
    match expand(&[original.to_string()], is_html) {
        Ok(inputs) => {
            let locations = inputs.iter().flat_map(|entry| &entry.locations);
            Ok(Some(locations.map(|location| location.name().to_string()).collect()))
        }
        Err(Error::Input { input, reason }) => {
            notify(format_args!(
                "state: {input}, of the previous crawl: {reason}; revisit records that refer to it \
                 are rejected"
            ));
            Ok(None)
        }
        Err(cause) => Err(cause),
    }
}
