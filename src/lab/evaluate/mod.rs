//! `webtwin-lab evaluate RUN --truth FILE`.

mod bands;
mod held_out;
mod sample;
mod tags;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use webtwin_base::console::print;
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::{DocId, doc_id};
use webtwin_evaluate::tags::{PairTag, TaggedPair, read_tags};
use webtwin_evaluate::{FigureRow, TruthComparison, evaluate, table};
use webtwin_results::pages::PageTable;
use webtwin_results::{FinishedRun, compared};

use bands::{PairsByBand, resemblance, shingles};
use held_out::{held_out, read_targets, tuning};
use sample::{Draw, SampledPair, Stratum, draw, sheet, tags_file};
use tags::by_tags;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder of a run
    run: String,
    /// Truth: a TSV with the columns url, target, version, page, variant and optionally linked
    #[arg(long, value_name = "FILE")]
    truth: PathBuf,
    /// Also print recall by resemblance of the true pairs; reads the pages of the targets again
    #[arg(long)]
    bands: bool,
    /// File of held-out targets, one per line: also print figures for them, and for the others
    #[arg(long, value_name = "FILE")]
    held_out: Option<PathBuf>,
    /// Pairs tagged true, false or unknown by a person: also print precision and recall by them
    #[arg(long, value_name = "FILE")]
    tags: Option<PathBuf>,
    /// Number of pairs to draw for a person to judge, spread over found, falsely found and missed
    /// ones
    #[arg(long, value_name = "N", requires = "output")]
    sample: Option<usize>,
    /// Spread the sample over the Hamming distances of the run's pairs instead
    #[arg(long, requires = "sample")]
    by_distance: bool,
    /// File for the sheet of the sample (HTML); the tags file to fill in is written next to it,
    /// with the extension .tsv
    #[arg(long, value_name = "FILE.html", requires = "sample")]
    output: Option<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: Args) -> Result<()> {
    let (truth_file, text) = read(&args.truth)?;
    let run = FinishedRun::open(&args.run)?;
    let truth = compared::truth(&truth_file, &text)?;
    let pages = PageTable::from_run(&run)?;
    let result_rows = compared::rows(&run, &pages, truth)?;
    let comparison = TruthComparison::new(&result_rows.pages, &result_rows.clusters, &result_rows.truth);
    let report = comparison.report(&result_rows.members, &result_rows.links);
    let mut rows = report.rows();
    if args.bands {
        rows.extend(recall_by_resemblance(&run, &pages, &comparison)?.rows());
    }
    if let Some(path) = &args.tags {
        let (file, text) = read(path)?;
        let id = |url: &String| Ok(doc_id(compared::canonical(&file, url)?.as_str()));
        let tagged = |row: &TaggedPair| Ok((id(&row.urls[0])?, id(&row.urls[1])?, row.tag));
        let mut tagged_rows = read_tags(&file, &text)?;
        // A page to keep is a decision about one page, not a judgement about a pair.
        tagged_rows.retain(|row| row.tag != PairTag::Keep);
        let tagged = tagged_rows.iter().map(tagged).collect::<Result<Vec<_>>>()?;
        rows.extend(by_tags(&comparison, &tagged, &report.pairs));
    }
    if let Some(path) = &args.held_out {
        let (file, text) = read(path)?;
        let targets = read_targets(&text);
        let known_targets: HashSet<&str> = result_rows.truth.iter().map(|row| row.target.as_str()).collect();
        if let Some(unknown_target) = targets.iter().find(|target| !known_targets.contains(*target)) {
            return Err(Error::input(
                file,
                format!("{unknown_target} is not a target of {truth_file}; name targets of that file"),
            ));
        }
        for (side_name, side) in
            [("tuning", tuning(&result_rows, &targets)), ("held out", held_out(&result_rows, &targets))]
        {
            let report = evaluate(&side.pages, &side.clusters, &side.members, &side.links, &side.truth);
            rows.extend(
                report.rows().into_iter().map(|row| FigureRow { what: format!("{side_name}: {}", row.what), ..row }),
            );
        }
    }
    if let (Some(pairs), Some(path)) = (args.sample, &args.output) {
        let draw = if args.by_distance { draw_by_distance(&run, pairs)? } else { draw(&comparison, pairs.div_ceil(3)) };
        write_sample(&run, &pages, draw, path)?;
    }
    if args.json {
        let object = serde_json::json!({
            "name": "evaluate", "digest": run.manifest.digest, "scale": report.pages, "machine": webtwin_base::build_info::machine(),
            "build": webtwin_base::build_info::version(), "rows": rows,
        });
        print(|out| writeln!(out, "{object}"))
    } else {
        print(|out| write!(out, "{}", table(&rows)))
    }
}

fn read(path: &Path) -> Result<(String, String)> {
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|cause| Error::input(&file, cause))?;
    Ok((file, text))
}

/// Counts the true pairs by resemblance, one target at a time, so that only the shingles of the
/// pages of one target are in memory.
fn recall_by_resemblance(
    run: &FinishedRun,
    pages: &PageTable,
    comparison: &TruthComparison<'_>,
) -> Result<PairsByBand> {
    let (input, doc_ids) = (run.job()?.input, pages.doc_ids()?);
    let mut bands = PairsByBand::default();
    for groups in comparison.groups_by_target() {
        let rows: Vec<usize> = groups.iter().flatten().filter_map(|page| doc_ids.binary_search(page).ok()).collect();
        let mut shingles_of: HashMap<DocId, Vec<u64>> = HashMap::new();
        pages.read(&rows, &input, &mut |row, _, text| {
            shingles_of.insert(doc_ids[row], shingles(text));
            Ok(())
        })?;
        for group in &groups {
            for (number, x) in group.iter().enumerate() {
                for y in &group[number + 1..] {
                    let is_together = comparison.are_together(*x, *y) == Some(true);
                    bands.add(resemblance(&shingles_of[x], &shingles_of[y]), is_together);
                }
            }
        }
    }
    Ok(bands)
}

/// Draws pairs of the measure `hamming`, the same number at each distance.
fn draw_by_distance(run: &FinishedRun, pairs: usize) -> Result<Draw> {
    let table = run.table("pairs")?;
    let (a, b, measures, values) = (table.u64("a")?, table.u64("b")?, table.text("measure")?, table.u32("value")?);
    let rows = || (0..measures.len()).filter(|&row| &measures[row] == "hamming");
    let distances: HashSet<u32> = rows().map(|row| values[row]).collect();
    if distances.is_empty() {
        let reason = "has no pairs of the measure hamming to draw from; run again with similar.by=hamming";
        return Err(Error::input(run.folder.name(), reason));
    }
    let mut draw = Draw::new(pairs.div_ceil(distances.len()));
    rows().for_each(|row| draw.add(Stratum::Distance(values[row]), a[row], b[row]));
    Ok(draw)
}

/// Reads the pages of the sample, and writes sheet and tags file.
fn write_sample(run: &FinishedRun, pages: &PageTable, draw: Draw, path: &Path) -> Result<()> {
    let tags = path.with_extension("tsv");
    if tags == path {
        return Err(Error::Usage(format!(
            "{}: the sheet needs the extension .html, because the tags are written next to it as .tsv",
            path.display()
        )));
    }
    if let Some(existing_path) = [tags.as_path(), path].into_iter().find(|path| path.exists()) {
        let path_shown = existing_path.display();
        return Err(Error::Usage(format!(
            "{path_shown} exists already and may contain a person's work; choose another --output"
        )));
    }
    let (pairs_drawn, doc_ids, urls) = (draw.pairs(), pages.doc_ids()?, pages.urls()?);
    let row = |page: &DocId| doc_ids.binary_search(page).expect("pages of pairs are pages of the run");
    let rows: Vec<usize> = pairs_drawn.iter().flat_map(|(_, a, b)| [row(a), row(b)]).collect();
    let mut texts: HashMap<usize, String> = HashMap::new();
    pages.read(&rows, &run.job()?.input, &mut |row, _, text| {
        texts.insert(row, text.to_owned());
        Ok(())
    })?;
    let sampled_pair = |(stratum, a, b): &(Stratum, DocId, DocId)| {
        let rows = [row(a), row(b)];
        SampledPair {
            stratum: *stratum,
            urls: rows.map(|row| urls[row].to_string()),
            texts: rows.map(|row| texts[&row].clone()),
        }
    };
    let sampled: Vec<SampledPair> = pairs_drawn.iter().map(sampled_pair).collect();
    for (path, text) in [(path, sheet(&sampled)), (&tags, tags_file(&sampled))] {
        std::fs::write(path, text).map_err(|cause| Error::storage(path.display().to_string(), cause))?;
    }
    Ok(())
}
