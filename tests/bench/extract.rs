//! Throughput of the conversion of pages to text, links and fingerprints on one core.
//!
//! *Measured*: reading a WARC file from the page cache, gunzipping, conversion of HTML to text and
//! links, chunking and hashing; also each layer, by leaving out the later ones. *Input*: a WARC.gz
//! file of real pages, for example from scripts/real-crawl. *Not measured*: disks and exchanges.
//! *How to run*: `cargo bench --bench extract -- CRAWL.warc.gz`

use std::time::Instant;

use webtwin::chunks::ChunkRecipe;
use webtwin::job::Job;
use webtwin::pages::html::Extractor;
use webtwin::pages::record::ReadResult;
use webtwin::pages::url::CanonicalUrl;
use webtwin::pages::warc::read_range;
use webtwin::read_at::RandomAccess;
use webtwin::storage::location::Location;
use webtwin::storage::open::open;

fn main() {
    let Some(path) = std::env::args().skip(1).find(|argument| !argument.starts_with("--")) else {
        println!("no input: cargo bench --bench extract -- CRAWL.warc.gz");
        return;
    };
    let file = open(&Location::parse(&path).expect("a path")).expect("a readable file");
    let job = Job::default();
    let (mut extractor, mut recipe) = (Extractor::new(&job.input.limits), ChunkRecipe::new(&job.chunks));
    for (name, layers) in [("read", 0), ("read + text and links", 1), ("read + text and links + fingerprints", 2)] {
        let mut runs: Vec<(f64, u64, u64)> = (0..3)
            .map(|_| {
                let (mut bytes, mut fprints, mut kept_items) = (0u64, Vec::new(), 0u64);
                let start = Instant::now();
                read_range(&*file, 0..file.len(), &job.input, &mut |found| {
                    if let ReadResult::Page(page) = found {
                        bytes += page.body.len() as u64;
                        if layers > 0
                            && let Ok(url) = CanonicalUrl::parse(&page.url)
                        {
                            let extracted = extractor.html(&page.body, page.charset.as_deref(), &url);
                            kept_items += extracted.links.len() as u64;
                            if layers > 1 {
                                recipe.fingerprint(extracted.text, &mut fprints);
                                kept_items += fprints.len() as u64;
                            }
                        }
                    }
                    Ok(())
                })
                .expect("a readable file");
                (start.elapsed().as_secs_f64(), bytes, kept_items)
            })
            .collect();
        runs.sort_by(|x, y| x.0.total_cmp(&y.0));
        let (seconds, bytes, kept_items) = runs[1];
        println!(
            "{name:<40} {:>7.0} MB of pages a second  ({:.0} MB, {kept_items} kept)",
            bytes as f64 / 1e6 / seconds,
            bytes as f64 / 1e6
        );
    }
}
