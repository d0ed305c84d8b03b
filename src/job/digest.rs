//! The digest of a job: equal digests promise equal answers.

use sha2::{Digest as _, Sha256};

use super::settings::{Job, Measure};

/// SHA-256 over the settings that change the answer, and over this program's recipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of a job: covers every setting except those of effort, the place of the output, and `recrawl`, which no job
    /// reads.
    pub fn of(job: &Job) -> Digest {
        let mut tree = serde_json::to_value(job).expect("a job is plain values");
        let top = tree.as_object_mut().expect("a job is a table");
        top.remove("effort");
        top.remove("recrawl");
        top["output"].as_object_mut().expect("output is a table").remove("url");
        let mut hash = Sha256::new();
        hash.update(tree.to_string());
        hash.update(job.chunks.recipe());
        hash.update(job.simhash.recipe());
        if job.similar.by == Measure::Minhash {
            hash.update(job.minhash.recipe());
        }
        hash.update(job.input.pdf_recipe().unwrap_or_default());
        Digest(hash.finalize().into())
    }

    /// The digest in lower-case hexadecimal, 64 characters.
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effort_place_and_comparisons_leave_the_digest_alone_and_answers_change_it() {
        let job = Job::default();
        let mut other = job.clone();
        other.effort.shard_bytes *= 2;
        other.output.url = "elsewhere".into();
        other.recrawl.near_bits += 1;
        assert_eq!(Digest::of(&job), Digest::of(&other));
        other.overlap.min_shared += 1;
        assert_ne!(Digest::of(&job), Digest::of(&other));
    }
}
