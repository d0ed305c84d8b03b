//! The `recrawl` job: finds the live inputs, and those whose records the state has.

use std::collections::BTreeSet;
use std::sync::Arc;

use clap::Args;

use super::earlier_crawls::{EarlierInputs, names_of_inputs};
use super::{diff, quantity};
use webtwin_base::console::notify;
use webtwin_base::error::{Error, Result};
use webtwin_compare::many_crawls::refuse_what_will_differ;
use webtwin_dataflow::reading::least_pages::LeastPages;
use webtwin_dataflow::recrawl::{StateDefaults, StateUpdate};
use webtwin_job::{AvoidancePolicy, InputSettings, Job, JobDigest, JobKind, Recrawl};
use webtwin_pages::helper::ghostscript_version;
use webtwin_pages::sniff::is_html;
use webtwin_pages::work_items::WorkList;
use webtwin_results::FinishedRun;
use webtwin_storage::expand::expand;
use webtwin_storage::location::{Location, seen_from_anywhere, working_folder};
use webtwin_storage::manifest;
use webtwin_storage::output::{self, random_id};
use webtwin_storage::state::{Generation, JobState, ReadAhead, StateRecords};

/// Arguments of a scheduled job; each is a setting.
#[derive(Debug, Args)]
#[command(next_help_heading = "Recrawl")]
pub(super) struct RecrawlArgs {
    /// Folder of the state of a scheduled crawl: inputs that have not changed are not read again,
    /// and the run adds the next generation. The result equals that of a run from scratch. Without
    /// --input, the inputs are the live inputs of the last run, with the changes below
    #[arg(long, value_name = "URL")]
    state: Option<String>,
    /// Input to add to the live inputs; may be given again
    #[arg(long, value_name = "URL")]
    add: Vec<String>,
    /// Live input to remove, or a file, glob or folder of live inputs; may be given again
    #[arg(long, value_name = "URL")]
    retract: Vec<String>,
    /// Live input to read again although its name, length and version are unchanged; may be given
    /// again
    #[arg(long, value_name = "URL")]
    replace: Vec<String>,
    /// Prefer the pages that the newest generation of the state kept, unless keep.prefer decides
    /// otherwise
    #[arg(long)]
    sticky: bool,
    /// Folder for a comparison of the result with the one before it (`webtwin diff --help`)
    #[arg(long, value_name = "URL")]
    diff: Option<String>,
    /// Result to compare with [default: that of the newest generation of the state]
    #[arg(long, value_name = "URL", requires = "diff")]
    against: Option<String>,
    /// Compare by pages and sites only, if the other result was made with other settings
    #[arg(long, requires = "diff")]
    across_settings: bool,
    /// Read the texts of changed pages again, and compare them by the chunks that they share
    #[arg(long, requires = "diff")]
    texts: bool,
    /// Number of pages that may be fetched to probe mirrors on the avoid list
    #[arg(long, value_name = "PAGES", requires = "diff", default_value_t = Recrawl::default().budget)]
    budget: u64,
    /// Fraction of a mirror's pages that must have changed for probes to notice it, at a confidence
    /// of 95 %
    #[arg(long, value_name = "FRACTION", requires = "diff", value_parser = quantity::part, default_value_t = Recrawl::default().probe_share)]
    probe_share: f64,
}

impl RecrawlArgs {
    /// Applies the arguments to a job's settings.
    pub(super) fn overlay(self, job: &mut Job) -> Result<()> {
        if let Some(state) = self.state {
            if !matches!(job.kind, JobKind::Replicas | JobKind::Recrawl) {
                return Err(Error::Usage(
                    "--state: only the job `replicas` can continue from a state; leave the option \
                     out"
                    .into(),
                ));
            }
            (job.kind, job.recrawl.state) = (JobKind::Recrawl, state);
        }
        (job.recrawl.sticky, job.recrawl.budget) = (self.sticky, self.budget);
        job.recrawl.probe_share = self.probe_share;
        (job.recrawl.texts, job.recrawl.across_settings) = (self.texts, self.across_settings);
        for (value, setting) in [(self.diff, &mut job.recrawl.diff), (self.against, &mut job.recrawl.against)] {
            if let Some(value) = value {
                *setting = value;
            }
        }
        for (value, setting) in [
            (self.add, &mut job.recrawl.add),
            (self.retract, &mut job.recrawl.retract),
            (self.replace, &mut job.recrawl.replace),
        ] {
            if !value.is_empty() {
                *setting = value;
            }
        }
        Ok(())
    }
}

/// Result with which a scheduled one is compared, and the previous comparison if it has a history.
#[derive(Debug, Clone, Default)]
pub(super) struct PreviousResult {
    pub(super) result: Option<String>,
    pub(super) history: Option<String>,
    /// True if the crawler obeyed a list that is unknown, because the previous comparison is
    /// missing.
    pub(super) list_is_lost: bool,
    /// Error with which the run should not start: the previous comparison is missing and can still
    /// be made.
    missing: Option<Error>,
}

impl PreviousResult {
    /// Refuses a run whose comparison needs an earlier one that can be made first.
    ///
    /// # Errors
    /// Returns [`Error::Input`] with the command that makes the earlier comparison.
    pub(super) fn refuse_without_the_comparison_before(&mut self) -> Result<()> {
        self.missing.take().map_or(Ok(()), Err)
    }
}

/// Scheduled job that is being prepared.
pub(super) struct ScheduledJob {
    state: JobState,
    previous: Option<Generation>,
    /// Names of files that are read again.
    replaced_files: BTreeSet<String>,
    implied: StateDefaults,
    earlier: EarlierInputs,
}

impl ScheduledJob {
    /// Finds the live inputs of a `recrawl` job. Returns it as the `replicas` job over these
    /// inputs.
    ///
    /// # Errors
    /// Returns [`Error::Usage`] without a state, for changes in addition to a complete list of
    /// inputs, and for inputs to remove or read again that are not live. Also returns any error of
    /// the state and of the search for inputs.
    pub(super) fn find(job: Job, process: usize) -> Result<(Job, ScheduledJob)> {
        let notify = |line: std::fmt::Arguments<'_>| {
            if process == 0 {
                notify(line)
            }
        };
        let settings = &job.recrawl;
        if settings.state.is_empty() {
            return Err(Error::Usage(
                "a recrawl needs the folder of a state; add --state, for example --state state/".into(),
            ));
        }
        let state = JobState::at(Location::parse(&settings.state)?.into_folder());
        if !job.output.url.is_empty() {
            diff::refuse_within("--output", &job.output.url, &settings.state)?;
        }
        let previous = state.newest()?;
        // Only the original of the newest generation is damaged; its copy is complete.
        if let Some(fault) = previous.as_ref().map_or(Ok(None), |before| state.fault(before.number))? {
            notify(format_args!("warning: {fault}; the run continues from its copy, which is intact"));
        }
        let changes = [("add", &settings.add), ("retract", &settings.retract)];
        let mut inputs = job.input.urls.clone();
        if inputs.is_empty() {
            inputs = previous.as_ref().map_or(Vec::new(), |before| names_of_inputs(before, &before.inputs));
            for pattern_or_file in &settings.retract {
                for (pattern, files) in retract(&mut inputs, pattern_or_file, &job.input)? {
                    notify(format_args!(
                        "--retract {pattern_or_file}: {pattern} is replaced by the names of its {files} other \
                         files; add new files there with --add"
                    ));
                }
            }
            // Adding a live input again probably means to read it again, which is another option.
            if let Some(repeated_url) = settings.add.iter().find(|url| inputs.contains(url)) {
                return Err(Error::Usage(format!(
                    "--add {repeated_url}: this input is live already; to read it again, use --replace"
                )));
            }
            inputs.extend(settings.add.iter().cloned());
            if inputs.is_empty() {
                let how = if previous.is_none() {
                    "the state is new; give --input or --add"
                } else {
                    "all live inputs were removed; give --add"
                };
                return Err(Error::Usage(format!("no input: {how}")));
            }
        } else if let Some((name, _)) = changes.iter().find(|(_, urls)| !urls.is_empty()) {
            return Err(Error::Usage(format!(
                "--{name}: cannot be combined with --input, which names all live inputs; give one \
                 of both"
            )));
        }
        let mut replaced_inputs = BTreeSet::new();
        for entry in expand(&settings.replace, is_html)? {
            replaced_inputs.extend(entry.locations.iter().map(|location| location.name().to_string()));
        }
        let mut job = Job { kind: JobKind::Replicas, ..job };
        let mut implied = StateDefaults::default();
        let mut earlier = EarlierInputs::default();
        // Revisit records refer to records of earlier crawls, which are searched in the state's
        // inputs unless the job names others.
        if job.input.originals.is_empty()
            && let Some(previous) = &previous
        {
            earlier = EarlierInputs::collect(previous, &inputs, !job.input.urls.is_empty(), notify)?;
            job.input.originals = std::mem::take(&mut earlier.requested);
            implied.originals = true;
        }
        job.input.urls = inputs;
        implied.sticky = job.recrawl.sticky && job.keep.sticky.is_empty();
        if implied.sticky
            && let Some(previous) = &previous
        {
            job.keep.sticky = previous.result.clone();
        }
        Ok((job, ScheduledJob { state, previous, replaced_files: replaced_inputs, implied, earlier }))
    }

    /// Returns the result with which the new one is to be compared.
    ///
    /// # Errors
    /// Returns the errors that would make the comparison fail and are known before the run, and
    /// [`Error::Storage`] if the state cannot be written.
    pub(super) fn last(&self, job: &Job, process: usize) -> Result<PreviousResult> {
        output::refuse_unwritable(self.state.folder(), "--state")?;
        if job.recrawl.diff.is_empty() {
            return Ok(PreviousResult::default());
        }
        let previous = self.previous.as_ref();
        let result = match job.recrawl.against.as_str() {
            "" => previous.map(|before| before.result.clone()),
            // The first process compares, and may be the only one that can read that result.
            folder if process > 0 => Some(folder.to_string()),
            folder => Some(FinishedRun::open(folder).map(|_| folder.to_string())?),
        };
        let history = previous.map_or(Ok(None), history_of)?;
        let mut last = PreviousResult { result, history: history.map(str::to_string), ..PreviousResult::default() };
        if let Some(result) = &last.result {
            refuse_what_will_differ(job, result, history)?;
            let is_first = previous.is_none_or(|before| before.number == 1) || job.recrawl.across_settings;
            // The first process compares, and may be the only one that can read the previous
            // comparison.
            if let (None, Some(previous), false, 0) = (history, previous, is_first, process) {
                last.list_is_lost = job.recrawl.obeys();
                last.missing = missing(&self.state, previous, &job.recrawl)?.filter(|_| job.recrawl.obeys());
                notify(format_args!(
                    "the history begins with {result}, because there is no comparison of it with \
                     the previous result"
                ));
            }
        }
        Ok(last)
    }

    /// Returns the records of the work items of `job`, and the next generation.
    ///
    /// # Errors
    /// Returns [`Error::NothingToDo`] if nothing has changed, and [`Error::Usage`] for an input to
    /// be read again that is not live.
    pub(super) fn next(self, job: &Job, work: &WorkList, process: usize) -> Result<StateUpdate> {
        let ScheduledJob { state, previous, replaced_files: replaced_inputs, implied, earlier } = self;
        if let Some(missing_input) = replaced_inputs.iter().find(|name| !work.inputs.contains(*name)) {
            return Err(Error::Usage(format!(
                "--replace {missing_input}: is not a live input; name one of {}",
                format_names(&work.inputs)
            )));
        }
        let reading = JobDigest::of_reading(job).hex();
        let serving = previous.as_ref().filter(|before| serves(&before.reading, &before.ghostscript, &reading));
        let read_ahead = ahead_serving(&state, &reading)?;
        let mut records = StateRecords::new(&state, serving, read_ahead, &work.keys());
        records.forget(|item| replaced_inputs.contains(&work.inputs[work.items[item].input as usize]));
        let (n_found, n_ahead, stale) = (records.found(), records.found_ahead(), records.stale());
        if let Some(previous) = &previous {
            // If the previous result was deleted, there is work even though no input has changed.
            let unchanged = n_found - n_ahead == work.items.len() && stale == 0 && previous.job == implied.digest(job);
            if unchanged && Location::parse(&previous.result)?.into_folder().join(manifest::NAME)?.exists()? {
                let (number, folder, result) = (previous.number, state.folder(), &previous.result);
                let missing = comparison_to_make(&state, previous, &job.recrawl)?
                    .map_or(String::new(), |(command, _)| {
                        format!("; its comparison is missing; make it with: {command}")
                    });
                return Err(Error::NothingToDo(format!(
                    "no input has changed since generation {number} of {folder}, whose result is {result}{missing}"
                )));
            }
        }
        let number = previous.as_ref().map_or(1, |before| before.number + 1);
        if process == 0 {
            let items = work.items.len();
            let source = match (&previous, serving) {
                (None, _) => "a new state".to_string(),
                (Some(serving), None) => {
                    format!("generation {}, which was read with other settings and cannot be used", serving.number)
                }
                (Some(_), Some(serving)) => {
                    format!("generation {}, of which {stale} were removed or have changed", serving.number)
                }
            };
            let ahead_text = if n_ahead > 0 { format!("; {n_ahead} of them were read ahead") } else { String::new() };
            notify(format_args!("state: {n_found} of {items} work items have checkpoints, in {source}{ahead_text}"));
        }
        let minimum = minimum_pages(previous.as_ref(), job);
        let folder = working_folder();
        let generation = Generation {
            number,
            id: random_id()?,
            reading,
            result: seen_from_anywhere(&job.output.url, &folder),
            diff: (!job.recrawl.diff.is_empty()).then(|| seen_from_anywhere(&job.recrawl.diff, &folder)),
            inputs: job.input.urls.clone(),
            crawl_before: earlier.crawl_before,
            working_folder: folder,
            ..Generation::default()
        };
        Ok(StateUpdate {
            state,
            records: Arc::new(records),
            generation,
            implied,
            files_before: earlier.files_there,
            min_pages: minimum,
        })
    }
}

/// Returns true if records that were read with the settings `version` and this version of
/// Ghostscript can be restored by a job that reads with the settings `reading`.
pub(super) fn serves(version: &str, ghostscript: &Option<String>, reading: &str) -> bool {
    version == reading && ghostscript.as_ref().is_none_or(|version| version == ghostscript_version())
}

/// Returns the records that were read ahead with the settings `reading`.
///
/// # Errors
/// Returns [`Error::Storage`](webtwin_base::error::Error::Storage) when the state cannot be read.
pub(super) fn ahead_serving(state: &JobState, reading: &str) -> Result<Vec<ReadAhead>> {
    let mut read_ahead = state.ahead()?;
    read_ahead.retain(|list| serves(&list.reading, &list.ghostscript, reading));
    Ok(read_ahead)
}

/// Returns the number of pages with which the crawl of a job is compared: the pages of the previous
/// generation or, if the crawler obeys the avoid list, those that were not on it. Returns `None` if
/// inputs are removed, because their pages disappear on purpose.
fn minimum_pages(previous: Option<&Generation>, job: &Job) -> Option<LeastPages> {
    let Recrawl { least_pages: share, avoided: policy, retract, .. } = &job.recrawl;
    let Generation { number, pages: Some(pages), .. } = previous.filter(|_| retract.is_empty())? else { return None };
    let (n_before, basis) = match policy {
        AvoidancePolicy::No => (pages.kept, format!("pages of generation {number}")),
        AvoidancePolicy::Yes | AvoidancePolicy::Probed => (
            pages.kept.saturating_sub(pages.skip),
            format!("pages of generation {number} that are not on its avoid list"),
        ),
    };
    Some(LeastPages { before: n_before, what: basis, share: *share, inputs: format_names(&job.input.urls) })
}

/// Returns the comparison of a generation's result with the previous one, if it exists and has a
/// history.
fn history_of(generation: &Generation) -> Result<Option<&str>> {
    generation.diff.as_deref().map_or(Ok(None), diff::with_history)
}

/// Returns the command for a missing comparison of a generation, whose run ended between the result
/// and the comparison; and the previous generation.
fn comparison_to_make(
    state: &JobState,
    previous: &Generation,
    recrawl: &Recrawl,
) -> Result<Option<(String, Generation)>> {
    let Some(diff) = &previous.diff else { return Ok(None) };
    let is_there = Location::parse(diff)?.into_folder().join(manifest::NAME)?.exists()?;
    // The first result has no previous one. Generations that were removed are no longer known.
    let Some(last) =
        previous.number.checked_sub(1).and_then(|number| state.generation(number).ok()).filter(|_| !is_there)
    else {
        return Ok(None);
    };
    let history = history_of(&last)?.map(|of| format!(" --history {of}")).unwrap_or_default();
    let (old, new, sets) = (&last.result, &previous.result, sets_of_a_comparison(recrawl));
    Ok(Some((format!("webtwin diff {old} {new}{history} --output {diff}{sets}"), last)))
}

/// Returns the error with which a run should not start because its comparison needs that of the
/// generation `previous`, which is missing. The comparison must still be possible, and the state
/// that it needs of earlier crawls must exist.
fn missing(state: &JobState, previous: &Generation, recrawl: &Recrawl) -> Result<Option<Error>> {
    let Some((command, last)) = comparison_to_make(state, previous, recrawl)? else { return Ok(None) };
    let is_known = last.number == 1 || history_of(&last)?.is_some();
    let are_there = [&last.result, &previous.result].into_iter().all(|result| FinishedRun::open(result).is_ok());
    let why = format!(
        "the comparison of generation {} with the previous one is missing, which records the list \
         that the crawler obeys; make it first: {command}",
        previous.number
    );
    Ok((is_known && are_there).then(|| Error::input(previous.diff.as_deref().unwrap_or_default(), why)))
}

/// Returns the settings of a comparison that differ from the defaults, as arguments of
/// `webtwin diff`.
pub(super) fn sets_of_a_comparison(recrawl: &Recrawl) -> String {
    let default = Recrawl::default();
    let avoided_setting = format!(" --set recrawl.avoided={}", recrawl.avoided.name());
    let probe_share = format!(" --probe-share {}", recrawl.probe_share);
    let budget = format!(" --budget {}", recrawl.budget);
    [
        (recrawl.avoided != default.avoided, avoided_setting.as_str()),
        (recrawl.probe_share != default.probe_share, &probe_share),
        (recrawl.texts, " --texts"),
        (recrawl.across_settings, " --across-settings"),
        (recrawl.budget != default.budget, &budget),
    ]
    .into_iter()
    .filter_map(|(differs, argument)| differs.then_some(argument))
    .collect()
}

/// Removes an input from the live ones: a complete input, or files of inputs, whose remaining files
/// then become inputs of their own. Returns the globs and folders that were split in this way, with
/// the number of their remaining files. Files next to them that a run does not read are left out.
fn retract(inputs: &mut Vec<String>, pattern_or_file: &str, job: &InputSettings) -> Result<Vec<(String, usize)>> {
    let n_before = inputs.len();
    inputs.retain(|input| input != pattern_or_file);
    if inputs.len() < n_before {
        return Ok(Vec::new());
    }
    let refused = || {
        Error::Usage(format!("--retract {pattern_or_file}: is not a live input; name one of {}", format_names(inputs)))
    };
    let files: BTreeSet<Location> = match expand(&[pattern_or_file.to_string()], is_html) {
        Ok(locations) => locations.into_iter().flat_map(|entry| entry.locations).collect(),
        // The file may have been deleted from the disk too.
        Err(_) => BTreeSet::from([Location::parse(pattern_or_file).map_err(|_| refused())?]),
    };
    let mut left = Vec::with_capacity(inputs.len());
    let (mut has_match, mut split_inputs) = (false, Vec::new());
    for input in &*inputs {
        let stands_for = match input.starts_with("synth://") {
            true => Vec::new(),
            false => expand(std::slice::from_ref(input), is_html)?.remove(0).locations,
        };
        let (leaving, staying): (Vec<&Location>, Vec<&Location>) =
            stands_for.iter().partition(|location| files.contains(location));
        if leaving.is_empty() {
            left.push(input.clone());
        } else {
            has_match = true;
            let input_settings = InputSettings { urls: vec![input.clone()], originals: Vec::new(), ..job.clone() };
            let work = WorkList::plan(&input_settings, 1 << 40)?;
            let read: BTreeSet<&str> = (0..work.inputs.len() as u32).map(|input| work.file_of(input)).collect();
            let names = staying.into_iter().map(Location::name).filter(|name| read.contains(name));
            let n_before = left.len();
            left.extend(names.map(str::to_string));
            split_inputs.extend((left.len() > n_before).then(|| (input.clone(), left.len() - n_before)));
        }
    }
    if !has_match {
        return Err(refused());
    }
    *inputs = left;
    Ok(split_inputs)
}

/// Formats the first few names.
fn format_names(names: &[String]) -> String {
    const MAX_SHOWN: usize = 5;
    let examples: Vec<&str> = names.iter().take(MAX_SHOWN).map(String::as_str).collect();
    let n_omitted = names.len().saturating_sub(MAX_SHOWN);
    let suffix = if n_omitted > 0 { format!(" and {n_omitted} more") } else { String::new() };
    format!("{}{suffix}", examples.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_the_missing_comparison_with_its_settings() {
        assert_eq!(sets_of_a_comparison(&Recrawl::default()), "");
        let set = Recrawl {
            avoided: AvoidancePolicy::Yes,
            probe_share: 0.2,
            least_pages: 0.1,
            state: "s".into(),
            ..Recrawl::default()
        };
        assert_eq!(sets_of_a_comparison(&set), " --set recrawl.avoided=yes --probe-share 0.2");
        let options = Recrawl { texts: true, across_settings: true, budget: 5, ..Recrawl::default() };
        assert_eq!(sets_of_a_comparison(&options), " --texts --across-settings --budget 5");
    }
}
