//! Digest of a job. Jobs with equal digests give equal results.

use sha2::{Digest as _, Sha256};

use super::settings::{Job, Measure};

/// Version of the reading of pages and of the format of their records. It must change if the same
/// bytes give another record.
pub const READING: &str = "reading-7";

/// Version of the search for similar pages, and of the format in which pairs are kept for the next
/// run. It must change if equal settings give other pairs.
pub const PAIRING: &str = "pairing-2";

/// SHA-256 of the settings that change the result, and of this program's recipes.
///
/// # Examples
/// ```
/// use webtwin_job::{JobDigest, resolve};
///
/// let digest = |set: &str| resolve("", "", &[set.into()]).map(|job| JobDigest::from_job(&job).hex());
/// // Memory does not change the answer of a job, but a threshold does.
/// assert_eq!(digest("effort.memory_bytes=1GiB")?, digest("effort.memory_bytes=2GiB")?);
/// assert_ne!(digest("overlap.min_shared=1")?, digest("overlap.min_shared=2")?);
/// # Ok::<(), webtwin_base::error::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobDigest(pub [u8; 32]);

impl JobDigest {
    /// Returns the digest of a job. It covers all settings except those of effort, the location of
    /// the output, and `recrawl`. For decisions and given pairs it covers the contents of the files
    /// and not their locations.
    pub fn from_job(job: &Job) -> JobDigest {
        let mut tree = serde_json::to_value(job).expect("a job is plain values");
        let top = tree.as_object_mut().expect("a job is a table");
        top.remove("effort");
        // The settings of `recrawl` only determine what is read again and how two results are
        // compared, so they change no result.
        top.remove("recrawl");
        top["keep"].as_object_mut().expect("keep is a table").remove("pins");
        let pairs = top["pairs"].as_object_mut().expect("pairs is a table");
        ["apart", "from"].iter().for_each(|files| drop(pairs.remove(*files)));
        // The window size only decides if a stream can be decoded, and not its content.
        top["input"]["limits"].as_object_mut().expect("limits are a table").remove("window_bytes");
        top["output"].as_object_mut().expect("output is a table").remove("url");
        let mut hash = Sha256::new();
        hash.update(tree.to_string());
        hash.update(job.chunks.recipe());
        hash.update(job.simhash.recipe());
        if job.similar.by == Measure::Minhash {
            hash.update(job.minhash.recipe());
        }
        hash.update(job.input.pdf_recipe().unwrap_or_default());
        JobDigest(hash.finalize().into())
    }

    /// Returns the digest of reading. It covers everything besides the bytes of the input that the
    /// record of a page depends on, so that another job may restore the record.
    pub fn of_reading(job: &Job) -> JobDigest {
        let mut input = job.input.clone();
        // The set of inputs and the allowed number of bad records change no record.
        (input.urls, input.originals, input.max_bad, input.limits.window_bytes) = (Vec::new(), Vec::new(), 0.0, 0);
        let text_settings = (&job.links, &job.chunks, &job.simhash);
        let measure_settings = (job.kind, job.similar.by, &job.signatures, &job.minhash);
        let mut hash = Sha256::new();
        hash.update(READING);
        hash.update(
            serde_json::to_string(&(input, text_settings, measure_settings)).expect("settings are plain values"),
        );
        hash.update(job.chunks.recipe());
        hash.update(job.simhash.recipe());
        hash.update(job.minhash.recipe());
        hash.update(job.input.pdf_recipe().unwrap_or_default());
        JobDigest(hash.finalize().into())
    }

    /// Returns the digest in lower-case hexadecimal, 64 characters.
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effort_and_location_settings_do_not_change_the_digest_and_result_settings_do() {
        let job = Job::default();
        let mut other = job.clone();
        other.effort.shard_bytes *= 2;
        other.output.url = "elsewhere".into();
        other.input.limits.window_bytes *= 2;
        other.recrawl.least_pages = 0.2;
        assert_eq!(JobDigest::from_job(&job), JobDigest::from_job(&other));
        other.recrawl.state = "state".into();
        (other.keep.pins, other.pairs.apart) = ("pins.tsv".into(), "apart.tsv".into());
        other.pairs.from = vec!["pairs.csv".into()];
        assert_eq!(JobDigest::from_job(&job), JobDigest::from_job(&other));
        other.overlap.min_shared += 1;
        assert_ne!(JobDigest::from_job(&job), JobDigest::from_job(&other));
        let mut pinned_job = job.clone();
        pinned_job.keep.pins_sha256 = "1".into();
        let mut parted = job.clone();
        parted.pairs.apart_sha256 = "1".into();
        let mut sampled_job = job.clone();
        sampled_job.pairs.from_sha256 = "1".into();
        assert!(
            [&pinned_job, &parted, &sampled_job]
                .iter()
                .all(|other| JobDigest::from_job(&job) != JobDigest::from_job(other))
        );
    }

    #[test]
    fn checkpoints_serve_jobs_with_equal_reading_settings() {
        let job = Job::default();
        let mut other = job.clone();
        other.input.urls.push("another.warc.gz".into());
        other.input.limits.window_bytes *= 2;
        other.overlap.min_shared += 1;
        other.clusters.min_size += 1;
        assert_eq!(JobDigest::of_reading(&job), JobDigest::of_reading(&other));
        for change in [
            |job: &mut Job| job.input.limits.record_bytes += 1,
            |job: &mut Job| job.links.redirects ^= true,
            |job: &mut Job| job.chunks.bits = 32,
            |job: &mut Job| job.simhash.bits = 0,
            |job: &mut Job| job.similar.by = Measure::Minhash,
        ] {
            let mut other = job.clone();
            change(&mut other);
            assert_ne!(JobDigest::of_reading(&job), JobDigest::of_reading(&other));
        }
    }
}
