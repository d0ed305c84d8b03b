//! The `recrawl` job: which inputs are live, and what the state has of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use clap::Args;

use super::earlier_crawls::{Earlier, named};
use super::{diff, quantity};
use webtwin_base::console::tell;
use webtwin_base::error::{Error, Result};
use webtwin_compare::many_crawls::refuse_what_will_differ;
use webtwin_dataflow::reading::least_pages::LeastPages;
use webtwin_dataflow::recrawl::{Implied, Next};
use webtwin_job::{Avoided, Digest, Input, Job, JobKind, Recrawl};
use webtwin_pages::helper::ghostscript_version;
use webtwin_pages::sniff::is_html;
use webtwin_pages::work_items::Work;
use webtwin_results::Run;
use webtwin_storage::expand::expand;
use webtwin_storage::location::{Location, seen_from_anywhere, working_folder};
use webtwin_storage::manifest;
use webtwin_storage::output::{self, random_id};
use webtwin_storage::state::{Generation, State, StateRecords};

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
    /// Lays the arguments over a job's settings.
    pub(super) fn lay_over(self, job: &mut Job) -> Result<()> {
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
        for (given, setting) in [(self.diff, &mut job.recrawl.diff), (self.against, &mut job.recrawl.against)] {
            if let Some(given) = given {
                *setting = given;
            }
        }
        for (given, setting) in [
            (self.add, &mut job.recrawl.add),
            (self.retract, &mut job.recrawl.retract),
            (self.replace, &mut job.recrawl.replace),
        ] {
            if !given.is_empty() {
                *setting = given;
            }
        }
        Ok(())
    }
}

/// The result that a scheduled one is compared with, and the comparison before, if it has a history.
#[derive(Debug, Clone, Default)]
pub(super) struct Last {
    pub(super) result: Option<String>,
    pub(super) history: Option<String>,
    /// Whether the crawler obeyed a list that nobody knows, for that comparison is missing.
    pub(super) list_is_lost: bool,
    /// Why the run should not begin: that comparison can still be made.
    missing: Option<Error>,
}

impl Last {
    /// Refuses a run whose comparison needs one that can be made first.
    ///
    /// # Errors
    /// [`Error::Input`] with the command that makes it.
    pub(super) fn refuse_without_the_comparison_before(&mut self) -> Result<()> {
        self.missing.take().map_or(Ok(()), Err)
    }
}

/// A scheduled job on its way.
pub(super) struct Scheduled {
    state: State,
    before: Option<Generation>,
    /// Names of files that are read again.
    replaced: BTreeSet<String>,
    implied: Implied,
    earlier: Earlier,
}

impl Scheduled {
    /// Finds the live inputs of a `recrawl` job; returns it as the `replicas` job over these.
    ///
    /// # Errors
    /// [`Error::Usage`] without a state, for changes beside a whole list of inputs, and for what is to leave or to be read
    /// again but is not live; those of the state, and of looking for inputs.
    pub(super) fn find(job: Job, process: usize) -> Result<(Job, Scheduled)> {
        let tell = |line: std::fmt::Arguments<'_>| {
            if process == 0 {
                tell(line)
            }
        };
        let settings = &job.recrawl;
        if settings.state.is_empty() {
            return Err(Error::Usage(
                "a recrawl needs the folder of a state; add --state, for example --state state/".into(),
            ));
        }
        let state = State::at(Location::parse(&settings.state)?.into_folder());
        if !job.output.url.is_empty() {
            diff::refuse_within("--output", &job.output.url, &settings.state)?;
        }
        let before = state.newest()?;
        if let Some(fault) = before.as_ref().map_or(Ok(None), |before| state.fault(before.number))? {
            tell(format_args!("warning: {fault}; the run continues from its copy, which is intact"));
        }
        let changes = [("add", &settings.add), ("retract", &settings.retract)];
        let mut inputs = job.input.urls.clone();
        if inputs.is_empty() {
            inputs = before.as_ref().map_or(Vec::new(), |before| named(before, &before.inputs));
            for gone in &settings.retract {
                for (pattern, files) in retract(&mut inputs, gone, &job.input)? {
                    tell(format_args!(
                        "--retract {gone}: {pattern} is replaced by the names of its {files} other \
                         files; add new files there with --add"
                    ));
                }
            }
            if let Some(again) = settings.add.iter().find(|url| inputs.contains(url)) {
                return Err(Error::Usage(format!(
                    "--add {again}: this input is live already; to read it again, use --replace"
                )));
            }
            inputs.extend(settings.add.iter().cloned());
            if inputs.is_empty() {
                let how = if before.is_none() {
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
        let mut replaced = BTreeSet::new();
        for entry in expand(&settings.replace, is_html)? {
            replaced.extend(entry.locations.iter().map(|location| location.name().to_string()));
        }
        let mut job = Job { kind: JobKind::Replicas, ..job };
        let mut implied = Implied::default();
        let mut earlier = Earlier::default();
        if job.input.originals.is_empty()
            && let Some(before) = &before
        {
            earlier = Earlier::of(before, &inputs, !job.input.urls.is_empty(), tell)?;
            job.input.originals = std::mem::take(&mut earlier.asked);
            implied.originals = true;
        }
        job.input.urls = inputs;
        implied.sticky = job.recrawl.sticky && job.keep.sticky.is_empty();
        if implied.sticky
            && let Some(before) = &before
        {
            job.keep.sticky = before.result.clone();
        }
        Ok((job, Scheduled { state, before, replaced, implied, earlier }))
    }

    /// What the result is to be compared with.
    ///
    /// # Errors
    /// Of what would make the comparison fail, what is known before the run; [`Error::Storage`] for a state that cannot be written.
    pub(super) fn last(&self, job: &Job, process: usize) -> Result<Last> {
        output::refuse_unwritable(self.state.folder(), "--state")?;
        if job.recrawl.diff.is_empty() {
            return Ok(Last::default());
        }
        let before = self.before.as_ref();
        let result = match job.recrawl.against.as_str() {
            "" => before.map(|before| before.result.clone()),
            // The first process compares, and may be the only one that has it.
            against if process > 0 => Some(against.to_string()),
            against => Some(Run::open(against).map(|_| against.to_string())?),
        };
        let history = before.map_or(Ok(None), history_of)?;
        let mut last = Last { result, history: history.map(str::to_string), ..Last::default() };
        if let Some(result) = &last.result {
            refuse_what_will_differ(job, result, history)?;
            let is_first = before.is_none_or(|before| before.number == 1) || job.recrawl.across_settings;
            // The first process compares, and may be the only one that has the comparison before.
            if let (None, Some(before), false, 0) = (history, before, is_first, process) {
                last.list_is_lost = job.recrawl.obeys();
                last.missing = missing(&self.state, before, &job.recrawl)?.filter(|_| job.recrawl.obeys());
                tell(format_args!(
                    "the history begins with {result}, because there is no comparison of it with \
                     the previous result"
                ));
            }
        }
        Ok(last)
    }

    /// The records of the work items of `job`, and the generation that follows.
    ///
    /// # Errors
    /// [`Error::NothingToDo`] when nothing has changed; [`Error::Usage`] for an input to be read again that is not live.
    pub(super) fn next(self, job: &Job, work: &Work, process: usize) -> Result<Next> {
        let Scheduled { state, before, replaced, implied, earlier } = self;
        if let Some(other) = replaced.iter().find(|name| !work.inputs.contains(*name)) {
            return Err(Error::Usage(format!(
                "--replace {other}: is not a live input; name one of {}",
                some(&work.inputs)
            )));
        }
        let reading = Digest::of_reading(job).hex();
        let serves = |generation: &&Generation| {
            let same_ghostscript = |version: &String| version == ghostscript_version();
            generation.reading == reading && generation.ghostscript.as_ref().is_none_or(same_ghostscript)
        };
        let serving = before.as_ref().filter(serves);
        let mut records = StateRecords::new(&state, serving, &work.keys());
        records.forget(|item| replaced.contains(&work.inputs[work.items[item].input as usize]));
        let (found, stale) = (records.found(), records.stale());
        if let Some(before) = &before {
            let unchanged = found == work.items.len() && stale == 0 && before.job == implied.digest(job);
            if unchanged && Location::parse(&before.result)?.into_folder().join(manifest::NAME)?.exists()? {
                let (number, folder, result) = (before.number, state.folder(), &before.result);
                let missing = comparison_to_make(&state, before, &job.recrawl)?
                    .map_or(String::new(), |(command, _)| {
                        format!("; its comparison is missing; make it with: {command}")
                    });
                return Err(Error::NothingToDo(format!(
                    "no input has changed since generation {number} of {folder}, whose result is {result}{missing}"
                )));
            }
        }
        let number = before.as_ref().map_or(1, |before| before.number + 1);
        if process == 0 {
            let items = work.items.len();
            let from = match (&before, serving) {
                (None, _) => "a new state".to_string(),
                (Some(before), None) => {
                    format!("generation {}, which was read with other settings and cannot be used", before.number)
                }
                (Some(_), Some(before)) => {
                    format!("generation {}, of which {stale} were removed or have changed", before.number)
                }
            };
            tell(format_args!("state: {found} of {items} work items have checkpoints, in {from}"));
        }
        let least = least(before.as_ref(), job);
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
        Ok(Next { state, records: Arc::new(records), generation, implied, files_before: earlier.files_there, least })
    }
}

/// What the crawl of a job is held against: the pages of the generation before or, with a crawler that obeys the avoid list, those that
/// were not on it. Inputs that leave are asked for by name, and so are the pages that leave with them.
fn least(before: Option<&Generation>, job: &Job) -> Option<LeastPages> {
    let Recrawl { least_pages: share, avoided, retract, .. } = &job.recrawl;
    let Generation { number, pages: Some(pages), .. } = before.filter(|_| retract.is_empty())? else { return None };
    let (before, what) = match avoided {
        Avoided::No => (pages.kept, format!("pages of generation {number}")),
        Avoided::Yes | Avoided::Probed => (
            pages.kept.saturating_sub(pages.skip),
            format!("pages of generation {number} that are not on its avoid list"),
        ),
    };
    Some(LeastPages { before, what, share: *share, inputs: some(&job.input.urls) })
}

/// The comparison of a generation's result with the one before, if it is there and has a history.
fn history_of(generation: &Generation) -> Result<Option<&str>> {
    generation.diff.as_deref().map_or(Ok(None), diff::with_history)
}

/// The command for the comparison of a generation whose run ended between its result and that, with the generation before.
fn comparison_to_make(state: &State, of: &Generation, recrawl: &Recrawl) -> Result<Option<(String, Generation)>> {
    let Some(diff) = &of.diff else { return Ok(None) };
    let is_there = Location::parse(diff)?.into_folder().join(manifest::NAME)?.exists()?;
    // The first result has none before it; what was pruned is not known any more.
    let Some(last) = of.number.checked_sub(1).and_then(|number| state.generation(number).ok()).filter(|_| !is_there)
    else {
        return Ok(None);
    };
    let history = history_of(&last)?.map(|of| format!(" --history {of}")).unwrap_or_default();
    let (old, new, sets) = (&last.result, &of.result, sets_of_a_comparison(recrawl));
    Ok(Some((format!("webtwin diff {old} {new}{history} --output {diff}{sets}"), last)))
}

/// Why a run should not begin whose comparison needs that of the generation `before`: it is not there and can still be made, and what
/// it needs of crawls before is known.
fn missing(state: &State, before: &Generation, recrawl: &Recrawl) -> Result<Option<Error>> {
    let Some((command, last)) = comparison_to_make(state, before, recrawl)? else { return Ok(None) };
    let is_known = last.number == 1 || history_of(&last)?.is_some();
    let are_there = [&last.result, &before.result].into_iter().all(|result| Run::open(result).is_ok());
    let why = format!(
        "the comparison of generation {} with the previous one is missing, which records the list \
         that the crawler obeys; make it first: {command}",
        before.number
    );
    Ok((is_known && are_there).then(|| Error::input(before.diff.as_deref().unwrap_or_default(), why)))
}

/// The settings of a comparison that are not the default ones, as arguments of `webtwin diff`.
pub(super) fn sets_of_a_comparison(recrawl: &Recrawl) -> String {
    let default = Recrawl::default();
    let avoided = format!(" --set recrawl.avoided={}", recrawl.avoided.name());
    let probe_share = format!(" --probe-share {}", recrawl.probe_share);
    let budget = format!(" --budget {}", recrawl.budget);
    [
        (recrawl.avoided != default.avoided, avoided.as_str()),
        (recrawl.probe_share != default.probe_share, &probe_share),
        (recrawl.texts, " --texts"),
        (recrawl.across_settings, " --across-settings"),
        (recrawl.budget != default.budget, &budget),
    ]
    .into_iter()
    .filter_map(|(differs, argument)| differs.then_some(argument))
    .collect()
}

/// Takes an input from the live ones: one of them, or files of some, whose others then stand for themselves. Returns globs and folders
/// of which that became, with the number of these files. What lies beside them and is not read is none of them.
fn retract(inputs: &mut Vec<String>, gone: &str, job: &Input) -> Result<Vec<(String, usize)>> {
    let before = inputs.len();
    inputs.retain(|input| input != gone);
    if inputs.len() < before {
        return Ok(Vec::new());
    }
    let refused = || Error::Usage(format!("--retract {gone}: is not a live input; name one of {}", some(inputs)));
    let files: BTreeSet<Location> = match expand(&[gone.to_string()], is_html) {
        Ok(found) => found.into_iter().flat_map(|entry| entry.locations).collect(),
        // It may be gone from the disk, too.
        Err(_) => BTreeSet::from([Location::parse(gone).map_err(|_| refused())?]),
    };
    let mut left = Vec::with_capacity(inputs.len());
    let (mut found, mut parted) = (false, Vec::new());
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
            found = true;
            let of_input = Input { urls: vec![input.clone()], originals: Vec::new(), ..job.clone() };
            let work = Work::plan(&of_input, 1 << 40)?;
            let read: BTreeSet<&str> = (0..work.inputs.len() as u32).map(|input| work.file_of(input)).collect();
            let names = staying.into_iter().map(Location::name).filter(|name| read.contains(name));
            let before = left.len();
            left.extend(names.map(str::to_string));
            parted.extend((left.len() > before).then(|| (input.clone(), left.len() - before)));
        }
    }
    if !found {
        return Err(refused());
    }
    *inputs = left;
    Ok(parted)
}

/// The first few of these names, for people.
fn some(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<&str> = names.iter().take(SHOWN).map(String::as_str).collect();
    let more = names.len().saturating_sub(SHOWN);
    let and = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{and}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_to_be_made_is_named_with_its_settings() {
        assert_eq!(sets_of_a_comparison(&Recrawl::default()), "");
        let set = Recrawl {
            avoided: Avoided::Yes,
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
