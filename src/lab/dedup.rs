//! Benchmark of `webtwin dedup` on synthetic texts: its speed, compared with decoding and
//! compressing the same files, and its results.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::Path;

use super::measure::{core_seconds, forget_peak_memory, processor_seconds, seconds};
use super::{Experiment, ExperimentRun, FigureRow, Options, figure};
use webtwin_base::error::{Error, Result};
use webtwin_base::ids::splitmix64;
use webtwin_core::minhash::bands::BandLayout;
use webtwin_dedup::settings::{DedupSettings, NearSettings};
use webtwin_dedup::{Dedup, DedupSummary};
use webtwin_job::Shingling;

/// Number of words of a text.
const WORDS: u64 = 250;

/// Size of the vocabulary.
const VOCABULARY: u64 = 50_000;

/// Number of texts with one exact copy and one copy with a changed word among them.
const PERIOD: u64 = 20;

/// Compression level of the zstd files, which is the default of zstd.
const LEVEL: i32 = 3;

/// Number of files, which have equal numbers of texts.
const FILES: u64 = 2;

/// Returns the entry for the benchmark of `webtwin dedup`.
pub fn entries() -> Vec<Experiment> {
    vec![Experiment {
        name: "bench-dedup",
        about: "dedup of made-up texts in .jsonl.zst, within 2 GiB, compared with a copy of the files",
        unit: "texts",
        scale: 200_000,
        full: 5_600_000,
        run: ExperimentRun::Alone(run),
    }]
}

fn run(options: &Options) -> Result<Vec<FigureRow>> {
    let folder = options.work.join("in");
    let failed = |cause: io::Error| Error::storage(folder.display().to_string(), cause);
    let (text_bytes, n_planted) = write_texts(&folder, options.scale).map_err(failed)?;
    let (copying, n_copied) = core_seconds(|| (0..FILES).try_for_each(|file| copy(&file_of(&folder, file))));
    n_copied.map_err(failed)?;

    let is_reset = forget_peak_memory();
    let cpu_before = processor_seconds();
    let (all_seconds, summary) = seconds(|| dedup(options, &folder, options.workers, true));
    let cpu_seconds = processor_seconds() - cpu_before;
    let peak = is_reset.then(webtwin_base::build_info::peak_memory_bytes);
    let records = summary?.records;
    let (one_seconds, summary) = seconds(|| dedup(options, &folder, 1, true));
    summary?;
    let (exact_only, summary) = seconds(|| dedup(options, &folder, options.workers, false));
    summary?;

    let removed_share = |why: &str| records.removed_by.get(why).copied().unwrap_or(0) as f64 / n_planted as f64;
    let megabytes = text_bytes as f64 / 1e6;
    let mut rows = vec![
        figure("text", megabytes, "MB"),
        figure("dedup, end to end", megabytes / all_seconds, "MB/s").at_least(50.0 * options.workers.min(2) as f64),
        figure("the same with one worker", megabytes / one_seconds, "MB/s"),
        figure("  the former against the latter", one_seconds / all_seconds, "times"),
        figure("the same without near-duplicates", megabytes / exact_only, "MB/s"),
        figure("files decoded and compressed, one core", megabytes / copying, "MB/s"),
        figure("  dedup against that, by processor time", cpu_seconds / copying, "times").at_most(3.0),
        figure("exact copies removed, of those planted", removed_share("exact"), "share").at_least(1.0),
        figure("near-copies removed, of those planted", removed_share("near"), "share").at_least(0.9999),
        figure("records removed beside them", records.removed as f64 - 2.0 * n_planted as f64, "records").at_most(0.0),
    ];
    rows.extend(peak.map(|bytes| figure("peak memory", bytes as f64 / 1e6, "MB").at_most(2147.0)));
    Ok(rows)
}

fn dedup(options: &Options, folder: &Path, workers: usize, has_near: bool) -> Result<DedupSummary> {
    let output = options.work.join("out");
    let near_settings = has_near.then(|| NearSettings {
        shingling: Shingling::Words(5),
        threshold: 0.8,
        bands: BandLayout::choose(128, 0.8),
    });
    let settings = DedupSettings {
        inputs: vec![folder.display().to_string()],
        output: output.display().to_string(),
        text_fields: vec!["text".into()],
        id_field: Some("id".into()),
        near: near_settings,
        max_bad: 0.0,
        workers,
        spill: options.work.clone(),
        ..DedupSettings::default()
    };
    let summary = Dedup::find(&settings, &|_| ())?.run()?;
    std::fs::remove_dir_all(&output).map_err(|cause| Error::storage(&settings.output, cause))?;
    Ok(summary)
}

fn file_of(folder: &Path, file: u64) -> std::path::PathBuf {
    folder.join(format!("{file}.jsonl.zst"))
}

/// Writes the texts. Returns their total length in bytes, and the number of copies of each kind.
fn write_texts(folder: &Path, texts: u64) -> io::Result<(u64, u64)> {
    let word = |number: u64| -> String {
        let bits = splitmix64(number);
        (0..3 + bits % 7).map(|at| char::from(b'a' + (splitmix64(bits ^ at) % 26) as u8)).collect()
    };
    let words: Vec<String> = (0..VOCABULARY).map(word).collect();
    let (mut bytes, mut n_planted) = (0, 0);
    std::fs::create_dir_all(folder)?;
    for file in 0..FILES {
        let file_writer = BufWriter::new(File::create(file_of(folder, file))?);
        let mut writer = zstd::stream::write::Encoder::new(file_writer, LEVEL)?.auto_finish();
        for number in texts * file / FILES..texts * (file + 1) / FILES {
            // The first text of each period has two copies within the period.
            let original = number - number % PERIOD;
            let is_of_kind = |kind: u64| number % PERIOD == kind && original >= texts * file / FILES;
            let (is_copy, is_changed) = (is_of_kind(7), is_of_kind(13));
            let source = if is_copy || is_changed { original } else { number };
            n_planted += u64::from(is_copy);
            let word = |position: u64| match is_changed && position == number % WORDS {
                true => "changed",
                false => &words[(splitmix64(source * WORDS + position) % VOCABULARY) as usize],
            };
            let text = (0..WORDS).map(word).collect::<Vec<_>>().join(" ");
            bytes += text.len() as u64;
            writeln!(writer, "{{\"id\":{number},\"text\":\"{text}\"}}")?;
        }
    }
    Ok((bytes, n_planted))
}

/// Decodes a file, compresses it again, and discards the result.
fn copy(file: &Path) -> io::Result<()> {
    let mut input = zstd::stream::read::Decoder::new(BufReader::new(File::open(file)?))?;
    let mut encoder = zstd::stream::write::Encoder::new(io::sink(), LEVEL)?;
    io::copy(&mut input, &mut encoder)?;
    encoder.finish().map(drop)
}
