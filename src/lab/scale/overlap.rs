//! All-pairs overlap on synthetic tables: time, memory, workers, growth.

use super::super::made::tables::{Chunking, TableParams};
use super::super::measure::{forget_peak_memory, median, processor_seconds};
use super::super::table_overlap::{Measured, MeasurementLimits, overlap_of_table};
use super::super::{FigureRow, Options, figure, row_against_published};
use super::{PAGES, of_the_machine, scaled};
use webtwin_base::error::{Error, Result};

/// Number of rounds of a comparison of times. Each round runs all variants.
const ROUNDS: usize = 3;

/// Number of bytes that a process needs for any number of pages: data in flight, and open blocks.
const FIXED_BYTES: u64 = 256 << 20;

/// Returns the memory budget of a scaled run, in bytes: the constant part, and a part of the rest
/// of `full_bytes` in proportion to the pages.
fn memory_for(pages: u64, full_bytes: u64) -> u64 {
    FIXED_BYTES + (u128::from(full_bytes - FIXED_BYTES) * u128::from(pages) / u128::from(PAGES)) as u64
}

fn measure(options: &Options, pages: u64, chunking: Chunking, workers: usize, memory_bytes: u64) -> Result<Measured> {
    let pages = u32::try_from(pages).map_err(|_| Error::Usage(format!("--scale {pages}: at most {}", u32::MAX)))?;
    let limits = MeasurementLimits { workers, memory_bytes, spill: options.work.clone() };
    forget_peak_memory();
    overlap_of_table(TableParams { pages, seed: 1, chunking, bits: 32 }, &limits)
}

/// Measures the job with two-line chunks.
pub(super) fn two_line(options: &Options) -> Result<Vec<FigureRow>> {
    one_job(options, Chunking::TwoLines, 150.0, 9.6)
}

/// Measures the job with four-line chunks.
pub(super) fn four_line(options: &Options) -> Result<Vec<FigureRow>> {
    one_job(options, Chunking::FourLines, 80.0, 4.1)
}

fn one_job(options: &Options, chunking: Chunking, reach: f64, hours: f64) -> Result<Vec<FigureRow>> {
    let memory_limit = memory_for(options.scale, 8 << 30);
    let cpu_before = processor_seconds();
    let measurement = measure(options, options.scale, chunking, options.workers, memory_limit)?;
    let paper_value = scaled(options.scale, hours * 3600.0);
    let mut rows = vec![
        row_against_published(
            "sort and all-pairs overlap, with the making of rows",
            measurement.seconds,
            paper_value,
            "s",
        )
        .at_most(scaled(options.scale, reach)),
        figure("workers", options.workers as f64, "threads"),
    ];
    rows.extend(measurement.stages.iter().map(|(stage, seconds)| figure(&format!("  {stage}"), *seconds, "s")));
    rows.extend([
        row_against_published(
            "rows",
            measurement.rows as f64 / 1e6,
            scaled(options.scale, published_rows(chunking)),
            "million",
        ),
        figure("chunks", measurement.chunks as f64 / 1e6, "million"),
        figure("exact copies taken out", measurement.exact_copies as f64 / 1e6, "million pages"),
        figure("pairs that the rest make", measurement.emitted as f64 / 1e6, "million"),
        figure("pairs left after pruning", measurement.left_pairs as f64 / 1e6, "million"),
        figure("similar pairs", measurement.similar as f64, "pairs"),
        peak(&measurement, memory_limit),
        figure("spilled", measurement.spilled_bytes as f64 / 1e6, "MB"),
    ]);
    rows.extend(of_the_machine(cpu_before, options.workers));
    Ok(rows)
}

/// Returns the number of rows in Table 1 in millions, at 8 bytes each.
fn published_rows(chunking: Chunking) -> f64 {
    match chunking {
        Chunking::TwoLines => 575.0,
        Chunking::FourLines => 300.0,
    }
}

fn peak(measurement: &Measured, allowed_bytes: u64) -> FigureRow {
    figure("peak memory", measurement.peak_memory_bytes as f64 / 1e6, "MB").at_most(allowed_bytes as f64 / 1e6)
}

/// Compares the job within a small and within a large memory budget.
pub(super) fn memory(options: &Options) -> Result<Vec<FigureRow>> {
    // The smaller budget comes first, because an allocator is slow to return the memory of the
    // larger one.
    let (small, large) = (memory_for(options.scale, 1 << 30), memory_for(options.scale, 8 << 30));
    let cpu_before = processor_seconds();
    let measure_within = |allowed| measure(options, options.scale, Chunking::TwoLines, options.workers, allowed);
    let (little, large_run) = (measure_within(small)?, measure_within(large)?);
    same_pairs(&little, &large_run)?;
    let mut rows = vec![
        figure(&format!("within {} MiB", small >> 20), little.seconds, "s"),
        figure(&format!("within {} MiB", large >> 20), large_run.seconds, "s"),
        figure("the former against the latter", little.seconds / large_run.seconds, "times").at_most(3.0),
        figure("similar pairs, of one checksum", little.similar as f64, "pairs"),
        FigureRow { what: format!("peak memory within {} MiB", small >> 20), ..peak(&little, small) },
        FigureRow { what: format!("peak memory within {} MiB", large >> 20), ..peak(&large_run, large) },
        figure(&format!("spilled within {} MiB", small >> 20), little.spilled_bytes as f64 / 1e6, "MB"),
        figure(&format!("spilled within {} MiB", large >> 20), large_run.spilled_bytes as f64 / 1e6, "MB"),
    ];
    rows.extend(of_the_machine(cpu_before, options.workers));
    Ok(rows)
}

/// Compares two workers with one, and a table with one of a sixteenth of the pages.
pub(super) fn growth(options: &Options) -> Result<Vec<FigureRow>> {
    let cpu_before = processor_seconds();
    let measure_pages =
        |pages: u64, workers| measure(options, pages, Chunking::TwoLines, workers, memory_for(pages, 8 << 30));
    let mut times = [const { Vec::new() }; 3];
    let mut last = None;
    for _ in 0..ROUNDS {
        let sixteenth = measure_pages((options.scale / 16).max(1000), 2)?;
        let (double, single_run) = (measure_pages(options.scale, 2)?, measure_pages(options.scale, 1)?);
        same_pairs(&double, &single_run)?;
        times.iter_mut().zip([&sixteenth, &double, &single_run]).for_each(|(times, found)| times.push(found.seconds));
        last = Some((sixteenth, double));
    }
    let [for_few, for_many, single_time] = times.map(median);
    let (sixteenth, double_run) = last.expect("there are rounds");
    let (few_pages, many_pages) = (sixteenth.pages as f64, double_run.pages as f64);
    let mut rows = vec![
        figure("rounds in turn, of whose seconds these are the medians", ROUNDS as f64, "rounds"),
        figure(&format!("two workers, {few_pages} pages"), for_few, "s"),
        figure(&format!("two workers, {many_pages} pages"), for_many, "s"),
        figure(&format!("one worker, {many_pages} pages"), single_time, "s"),
        figure("two workers against one", single_time / for_many, "times").at_least(1.7),
        figure(&format!("cost as pages grow {:.0}-fold", many_pages / few_pages), for_many / for_few, "times")
            .at_most(20.0),
        figure("rows as they do", double_run.rows as f64 / sixteenth.rows as f64, "times"),
        figure("similar pairs as they do", double_run.similar as f64 / sixteenth.similar as f64, "times"),
    ];
    rows.extend(of_the_machine(cpu_before, options.workers));
    Ok(rows)
}

fn same_pairs(left: &Measured, right: &Measured) -> Result<()> {
    if (left.similar, left.checksum) == (right.similar, right.checksum) {
        return Ok(());
    }
    Err(Error::Invariant(format!(
        "the two jobs found different pairs, {} and {} in number",
        left.similar, right.similar
    )))
}
