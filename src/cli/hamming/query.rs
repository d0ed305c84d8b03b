//! `webtwin hamming query`: finds the existing fingerprints near the given ones.

use std::io::{BufRead, Write};

use webtwin_base::console::ended;
use webtwin_base::error::{Error, Result};
use webtwin_core::hamming::design::width_mask;
use webtwin_core::hamming::online::{self, OnlineIndex};
use webtwin_results::online_index::open_index;
use webtwin_storage::location::Location;
use webtwin_storage::mapped::{FileBytes, Residence};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder of a fingerprint file (F) with an online index
    #[arg(long, value_name = "URL")]
    fingerprints: String,
    /// Number of bits in which fingerprints may differ (k) [default: the maximum of the index]
    #[arg(long, value_name = "BITS")]
    k: Option<u32>,
    /// Maximum number of near fingerprints to print for a query, nearest first; 0 prints all
    #[arg(long, value_name = "N", default_value_t = 0)]
    limit: usize,
    /// Print one JSON object a query instead of one line of tab-separated values for each near
    /// fingerprint
    #[arg(long)]
    json: bool,
    /// Load the index into memory and verify all of it, instead of mapping its files and verifying
    /// the blocks that are read: faster for many queries
    #[arg(long)]
    load: bool,
    /// Fingerprints: decimal, hexadecimal with 0x, or 16 hexadecimal digits; - reads them from
    /// stdin, one a line
    #[arg(value_name = "FINGERPRINT", required = true)]
    queries: Vec<String>,
}

pub(super) fn run(args: Args) -> Result<()> {
    // Arguments are checked before anything is opened.
    for word in args.queries.iter().filter(|word| *word != "-") {
        fingerprint(word)?;
    }
    let folder = Location::parse(&args.fingerprints)?;
    if !folder.join(online::NAME)?.exists()? {
        let command = format!("webtwin hamming index --fingerprints {}", args.fingerprints);
        return Err(Error::input(folder.name(), format!("the folder has no online index; make one with `{command}`")));
    }
    let index = open_index(&folder, if args.load { Residence::Loaded } else { Residence::Mapped })?;
    let max_distance = index.manifest().design.k;
    let k = args.k.unwrap_or(max_distance);
    if k > max_distance {
        let command = format!("webtwin hamming index --fingerprints {} --replace --k {k}", args.fingerprints);
        return Err(Error::Usage(format!(
            "the index finds distances up to {max_distance}, not {k}; make another with `{command}`"
        )));
    }
    let mut answers =
        Answers { index, k, limit: if args.limit == 0 { usize::MAX } else { args.limit }, json: args.json };
    let mut writer = std::io::BufWriter::new(std::io::stdout().lock());
    if !args.json {
        ended(writeln!(writer, "query\tfingerprint\tdistance\tdoc_ids"))?;
    }
    for word in &args.queries {
        if word != "-" {
            answers.notify(&mut writer, word)?;
            continue;
        }
        for line in std::io::stdin().lock().lines() {
            let line = line.map_err(|cause| Error::storage("stdin", cause))?;
            if !line.trim().is_empty() {
                answers.notify(&mut writer, line.trim())?;
                // A client that queries line by line waits for each answer.
                ended(writer.flush())?;
            }
        }
    }
    ended(writer.flush())
}

struct Answers {
    index: OnlineIndex<FileBytes>,
    k: u32,
    limit: usize,
    json: bool,
}

impl Answers {
    /// Writes the fingerprints near the query, by distance, then by fingerprint.
    fn notify(&mut self, output: &mut impl Write, word: &str) -> Result<()> {
        let (query, f) = (fingerprint(word)?, self.index.manifest().design.f);
        if query & !width_mask(f) != 0 {
            return Err(Error::Usage(format!("{word} has more than the {f} bits of the fingerprints in the index")));
        }
        let mut matches = self.index.near(query, self.k)?;
        matches.sort_by_key(|near| (near.distance, near.fingerprint));
        let n_matches = matches.len();
        matches.truncate(self.limit);
        if self.json {
            let match_json = |stored_match: &online::StoredMatch| {
                let doc_ids: Vec<String> =
                    self.index.doc_ids(stored_match.fingerprint)?.map(|id| id.to_string()).collect();
                Ok(serde_json::json!({
                    "fingerprint": hexadecimal(stored_match.fingerprint), "distance": stored_match.distance, "doc_ids": doc_ids,
                }))
            };
            let matches_json = matches.iter().map(match_json).collect::<Result<Vec<_>>>()?;
            let object = serde_json::json!({ "query": hexadecimal(query), "found": n_matches, "near": matches_json });
            return ended(writeln!(output, "{object}"));
        }
        for stored_match in matches {
            let doc_ids: Vec<String> = self.index.doc_ids(stored_match.fingerprint)?.map(|id| id.to_string()).collect();
            let (query, fingerprint) = (hexadecimal(query), hexadecimal(stored_match.fingerprint));
            ended(writeln!(output, "{query}\t{fingerprint}\t{}\t{}", stored_match.distance, doc_ids.join(",")))?;
        }
        Ok(())
    }
}

fn hexadecimal(fingerprint: u64) -> String {
    format!("{fingerprint:016x}")
}

fn fingerprint(word: &str) -> Result<u64> {
    let digits = word.len() == 16 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parsed = match word.strip_prefix("0x") {
        _ if digits => u64::from_str_radix(word, 16).ok(),
        // `parse` accepts a sign, but a sign is not a digit.
        Some(rest) if !rest.starts_with('+') => u64::from_str_radix(rest, 16).ok(),
        None if !word.starts_with('+') => word.parse().ok(),
        _ => None,
    };
    let shown_word: String = word.chars().take(80).collect();
    parsed.ok_or_else(|| {
        Error::Usage(format!(
            "{shown_word:?} is not a fingerprint; write it in decimal, in hexadecimal with 0x, or as 16 \
             hexadecimal digits"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_decimal_or_hexadecimal() {
        let read = |word: &str| fingerprint(word).ok();
        assert_eq!(read("31"), Some(31));
        assert_eq!(read("0x1F"), Some(31));
        assert_eq!(read("000000000000001f"), Some(31));
        assert_eq!(read("1000000000000000"), Some(1 << 60));
        assert_eq!(read("18446744073709551615"), Some(u64::MAX));
        for invalid in ["", "x", "1f", "0x", "0xg", "+1", "-1", "0x+1", "18446744073709551616", "0x10000000000000000"] {
            assert_eq!(fingerprint(invalid).unwrap_err().exit_code(), 2, "{invalid}");
        }
    }
}
