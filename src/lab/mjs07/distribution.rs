//! Figure 2: distribution of the simhashes of real pages.

use std::path::Path;

use super::super::{FigureRow, Options, draw, figure};
use webtwin_base::error::{Error, Result};
use webtwin_core::hamming::recipe::SimhashRecipe;
use webtwin_job::Job;
use webtwin_pages::html::Extractor;
use webtwin_pages::url::CanonicalUrl;
use webtwin_results::fingerprints::Sources;
use webtwin_synth::{Params, Synth};

/// Number of partitions in Figure 2(b).
const BUCKETS: usize = 128;

/// Reproduces Figure 2(a): positions of the leading 1-bit of the XOR of successive fingerprints.
pub(super) fn figure_2a(options: &Options) -> Result<Vec<FigureRow>> {
    let simhash_values = simhashes(options)?;
    let mut counts = vec![0u64; 64];
    let mut n_equal = 0u64;
    for pair in simhash_values.windows(2) {
        match (pair[0] ^ pair[1]).checked_ilog2() {
            Some(bit) => counts[bit as usize] += 1,
            None => n_equal += 1,
        }
    }
    let distinct: u64 = counts.iter().sum();
    let shares: Vec<f64> = counts.iter().map(|&n| n as f64 / distinct.max(1) as f64).collect();
    write_figure(
        options,
        "mjs07-figure2a",
        "Leading 1-bit of the XOR of successive simhashes",
        "bit position",
        &shares,
    )?;
    let peak = (0..64).max_by_key(|&bit| counts[bit]).unwrap_or(0);
    let random = 64.0 - (distinct.max(1) as f64).log2();
    // For random fingerprints, the density halves at each position left of the peak. The sum is
    // compared with the fraction that random fingerprints would have there.
    let left = |from: usize| shares[..peak.saturating_sub(from)].iter().sum::<f64>();
    Ok(vec![
        figure("simhashes", simhash_values.len() as f64, "pages"),
        figure(
            "pairs of successive simhashes that are equal",
            n_equal as f64 / simhash_values.len().max(1) as f64,
            "share",
        ),
        figure("the commonest position", peak as f64, "bit"),
        figure("where it would be for random fingerprints", random, "bit"),
        figure("density more than 8 positions left of it", left(8), "share"),
        figure("the same for random fingerprints", 2f64.powi(-9), "share"),
    ])
}

/// Reproduces Figure 2(b): numbers of fingerprints in equal intervals of the value range.
pub(super) fn figure_2b(options: &Options) -> Result<Vec<FigureRow>> {
    let simhash_values = simhashes(options)?;
    let mut counts = vec![0u64; BUCKETS];
    simhash_values.iter().for_each(|simhash| counts[(simhash >> 57) as usize] += 1);
    let shares: Vec<f64> = counts.iter().map(|&n| n as f64 / simhash_values.len().max(1) as f64).collect();
    write_figure(options, "mjs07-figure2b", "Simhashes in 128 buckets", "bucket", &shares)?;
    let mean = 1.0 / BUCKETS as f64;
    let mut ascending = shares.clone();
    ascending.sort_unstable_by(f64::total_cmp);
    Ok(vec![
        figure("simhashes", simhash_values.len() as f64, "pages"),
        figure("largest bucket", ascending[BUCKETS - 1] / mean, "times the mean"),
        figure("median bucket", ascending[BUCKETS / 2] / mean, "times the mean"),
        figure("smallest bucket", ascending[0] / mean, "times the mean"),
        figure(
            "spikes: buckets above twice the mean",
            ascending.iter().filter(|share| **share > 2.0 * mean).count() as f64,
            "buckets",
        ),
    ])
}

/// Returns the simhashes of the pages of a run, or of a synthetic crawl, ascending.
fn simhashes(options: &Options) -> Result<Vec<u64>> {
    let mut values = Vec::new();
    match &options.input {
        Some(run) => {
            for item in Sources::find(std::slice::from_ref(run))?.items {
                values.extend(item.read_all(64)?.into_iter().map(|row| row.fingerprint));
            }
        }
        None => {
            let job = Job::default();
            let synth = Synth::new(&Params { pages: options.scale, seed: 1, ..Params::default() })?;
            let (mut extractor, mut recipe) = (Extractor::new(&job.input.limits), SimhashRecipe::new(&job.simhash));
            for page in 0..synth.len() {
                let page = synth.page(page);
                let url = CanonicalUrl::parse(&page.url).map_err(|why| Error::Invariant(why.to_string()))?;
                values.extend(recipe.simhash(extractor.html(&page.html, None, &url).text));
            }
        }
    }
    values.sort_unstable();
    Ok(values)
}

/// Writes a figure and its data if `--output` is given.
fn write_figure(options: &Options, name: &str, title: &str, x_title: &str, shares: &[f64]) -> Result<()> {
    let Some(folder) = &options.output else { return Ok(()) };
    let failed = |path: &Path, cause: std::io::Error| Error::storage(path.display().to_string(), cause);
    std::fs::create_dir_all(folder).map_err(|cause| failed(folder, cause))?;
    let tsv: String = shares.iter().enumerate().map(|(at, share)| format!("{at}\t{share:.6}\n")).collect();
    for (ending, text) in
        [("svg", draw::bars(title, x_title, "share", shares)), ("tsv", format!("{x_title}\tshare\n{tsv}"))]
    {
        let path = folder.join(format!("{name}.{ending}"));
        std::fs::write(&path, text).map_err(|cause| failed(&path, cause))?;
    }
    Ok(())
}
