//! A page as captured in two finished results, with its texts read again from their inputs.

use std::collections::HashSet;

use super::FinishedRun;
use super::compared::canonical;
use super::explained::{CONTEXT, unknown};
use super::pages::PageTable;
use webtwin_base::error::Result;
use webtwin_base::ids::doc_id;
use webtwin_core::chunks::ChunkRecipe;
use webtwin_core::explain::captures::{Captures, ExplainedCapture};
use webtwin_core::explain::diff::pieces;

/// A page of two results.
pub struct CapturePair {
    url: String,
    captures: [ExplainedCapture; 2],
    bodies: [u64; 2],
    exact: [u64; 2],
    simhashes: [Option<u64>; 2],
    shared_chunks: u32,
    texts: [String; 2],
}

impl CapturePair {
    /// Reads the rows of both results for a URL, and both texts. The chunking of the new result is
    /// applied to both texts.
    ///
    /// # Errors
    /// Returns [`webtwin_base::error::Error::Input`] for a URL that is not a page of both, and any
    /// error of [`PageTable::read`].
    ///
    /// # Cost
    /// Holds the tables `pages` of both results in memory, one after the other.
    pub fn read(old: &FinishedRun, new: &FinishedRun, url: &str) -> Result<CapturePair> {
        let url = canonical("from the command line", url)?.as_str().to_string();
        let chunks = new.job()?.chunks;
        let recipes = [old, new].map(|run| run.manifest.recipes.get("simhash"));
        let mut captures = Vec::with_capacity(2);
        let (mut bodies, mut exact, mut simhashes) = ([0; 2], [0; 2], [None; 2]);
        let mut texts = [String::new(), String::new()];
        let mut fprints: [Vec<u64>; 2] = Default::default();
        for (side, run) in [old, new].into_iter().enumerate() {
            let pages = PageTable::from_run(run)?;
            let row = pages.row(doc_id(&url))?.ok_or_else(|| unknown(run, &url))?;
            pages.read(&[row], &run.job()?.input, &mut |_, _, text| {
                text.clone_into(&mut texts[side]);
                ChunkRecipe::new(&chunks).fingerprint(text, &mut fprints[side]);
                Ok(())
            })?;
            let page = pages.0.pick(&[row]);
            (bodies[side], exact[side]) = (page.u64("body")?[0], page.u64("exact")?[0]);
            simhashes[side] = page.u64_where("simhash", "has_simhash")?[0].filter(|_| recipes[0] == recipes[1]);
            let time = page.columns.iter().find(|column| column.0 == "fetch_time").map(|column| column.1.json(0));
            captures.push(ExplainedCapture {
                fetched: time.and_then(|time| time.as_str().map(String::from)).unwrap_or_default(),
                text_bytes: page.u64("text_bytes")?[0],
                chunks: fprints[side].len() as u32,
                source: page.text("source")?[0].to_string(),
                offset: page.u64("offset")?[0],
            });
        }
        let old_fprints: HashSet<u64> = fprints[0].iter().copied().collect();
        let shared_chunks = fprints[1].iter().filter(|fprint| old_fprints.contains(fprint)).count() as u32;
        let captures = captures.try_into().expect("two results have been read");
        Ok(CapturePair { url, captures, bodies, exact, simhashes, shared_chunks, texts })
    }

    /// Compares the two captures.
    pub fn captures(&self) -> Captures<'_> {
        let bits = self.simhashes[0].zip(self.simhashes[1]).map(|(old, new)| (old ^ new).count_ones());
        let same_bytes = self.bodies[0] == self.bodies[1];
        Captures {
            url: self.url.clone(),
            captures: self.captures.clone(),
            same_bytes,
            same_text: same_bytes || self.exact[0] != 0 && self.exact[0] == self.exact[1],
            bits,
            shared_chunks: self.shared_chunks,
            diff: pieces(&self.texts[0], &self.texts[1], CONTEXT),
        }
    }
}
