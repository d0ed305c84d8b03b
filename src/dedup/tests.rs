use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use proptest::prelude::*;

use super::budget::{Budget, ThreadShares};
use super::settings::{DedupSettings, KeepRule, NearSettings};
use super::verdicts::{RemovalReason, Verdicts};
use super::{Dedup, STAGES};
use super::{exact, inputs, near, order, read};
use webtwin_base::progress::Progress;
use webtwin_core::minhash::bands::BandLayout;
use webtwin_core::minhash::resemblance::Threshold;
use webtwin_core::minhash::shingles::{Shingles, Shingling};
use webtwin_core::minhash::star_cover::by_definition;
use webtwin_job::RecordLimits;

/// Record of a generated corpus.
#[derive(Debug, Clone)]
struct Made {
    words: Vec<u8>,
    number: i64,
    file: usize,
}

impl Made {
    fn text(&self) -> String {
        self.words.iter().map(|word| format!("w{word}")).collect::<Vec<_>>().join(" ")
    }
}

/// Returns texts of few words, many of which are copies or near-copies of others.
fn corpus() -> impl Strategy<Value = Vec<Made>> {
    let text = prop::collection::vec(0u8..4, 0..12);
    let texts = prop::collection::vec(text, 1..8);
    let record = (any::<prop::sample::Index>(), prop::option::of((0usize..12, 0u8..4)), 0i64..5, 0usize..4);
    (texts, prop::collection::vec(record, 0..40)).prop_map(|(texts, records)| {
        let record_of = |(text, edit, number, file): (prop::sample::Index, Option<(usize, u8)>, i64, usize)| {
            let mut words = text.get(&texts).clone();
            if let Some((word_index, word)) = edit
                && let Some(old) = words.get_mut(word_index)
            {
                *old = word;
            }
            Made { words, number, file }
        };
        records.into_iter().map(record_of).collect()
    })
}

fn settings(folder: &Path, keep: KeepRule, n_against: usize) -> DedupSettings {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_string();
    let files = (0..4).map(|file| path(&format!("{file}.jsonl")));
    DedupSettings {
        inputs: files.clone().skip(n_against).collect(),
        against: files.take(n_against).collect(),
        output: path("out"),
        text_fields: vec!["text".into()],
        id_field: Some("id".into()),
        near: Some(NearSettings {
            shingling: Shingling::Words(2),
            threshold: 0.5,
            // A pair at the threshold is missed with a probability of 2^-64.
            bands: BandLayout { bands: 64, rows: 1 },
        }),
        keep,
        prefer: Vec::new(),
        count_by: Vec::new(),
        annotate: None,
        max_bad: 0.0,
        limits: RecordLimits::default(),
        resume: false,
        records: None,
        workers: 2,
        memory_bytes: 1 << 30,
        spill: std::env::temp_dir(),
    }
}

/// Id, id of the record kept in its place, reason and similarity in millionths of each removed
/// record.
type Removals = Vec<(String, String, RemovalReason, u64)>;

fn actual_removals(settings: &DedupSettings, workers: usize, spills: bool) -> Removals {
    let settings = DedupSettings { workers, ..settings.clone() };
    let inputs = inputs::find(&settings, &|_| ()).unwrap();
    let mut budget = Budget::new(&settings, &inputs).unwrap();
    if spills {
        budget.thread_shares = ThreadShares { sets: 0, bands: 0, exact: 0, ids: 0 };
        (budget.candidates, budget.buckets, budget.bounds.thread_bytes) = (0, 4, 480);
    }
    let mut corpus = read::read(&settings, &inputs, &budget, None, &Progress::new(1)).unwrap();
    let order = order::Order::determine(&settings, &corpus).unwrap();
    let copies = exact::copies(&mut corpus, &order, &budget.bounds, workers).unwrap();
    let dropped_texts = near::left_out(&settings, &mut corpus, &order, &copies, &budget).unwrap().dropped_texts;
    let verdicts = Verdicts::new(&corpus, order, copies, dropped_texts);
    let removal_of = |record| {
        let removal = verdicts.removal(record)?;
        let similarity = (removal.similarity * 1e6).round() as u64;
        Some((corpus.id(record).unwrap(), corpus.id(removal.kept_record).unwrap(), removal.why, similarity))
    };
    (0..corpus.count()).filter_map(removal_of).collect()
}

/// Computes the expected result by definition: compares each record, in order, with all records
/// kept before it.
fn expected_removals(records: &[Made], keep: &KeepRule, n_against: usize) -> Removals {
    let mut order: Vec<usize> = (0..records.len()).collect();
    order.sort_by_key(|&index| {
        let record = &records[index];
        let preference = match keep {
            KeepRule::Longest => -(record.text().len() as i64),
            KeepRule::Max(_) => -record.number,
            KeepRule::Min(_) => record.number,
            KeepRule::SmallestId => (100 - index) as i64,
            _ => 0,
        };
        let is_new = record.file >= n_against;
        // The input is in the order of the files. The number of a generated record is its position
        // in that order.
        (is_new, if is_new { preference } else { 0 }, record.file, index)
    });
    let set = |at: usize| Shingles::new(Shingling::Words(2)).hashes(&records[order[at]].text()).to_vec();
    let sets: Vec<Vec<u32>> = (0..order.len()).map(set).collect();
    let text = |at: u32| records[order[at as usize]].text();
    let old = order.iter().filter(|&&at| records[at].file < n_against).count() as u32;
    let is_similar = |x: u32, y: u32| Threshold::new(0.5).reached(&sets[x as usize], &sets[y as usize]);
    let mut removals: Vec<(usize, Removals)> = Vec::new();
    // Exact copies come first: only the first record with each text is compared with others.
    let mut first: BTreeMap<String, u32> = BTreeMap::new();
    let mut first_texts: Vec<u32> = Vec::new();
    for record in 0..order.len() as u32 {
        if text(record).is_empty() || *first.entry(text(record)).or_insert(record) == record {
            first_texts.push(record);
        }
    }
    let old_firsts = first_texts.iter().filter(|&&at| at < old).count() as u32;
    let expected_cover = by_definition(first_texts.len() as u32, old_firsts, |x, y| {
        is_similar(first_texts[x as usize], first_texts[y as usize])
    });
    let expected_dropped: BTreeMap<u32, (u32, f64)> = expected_cover
        .iter()
        .map(|left| (first_texts[left.text as usize], (first_texts[left.centre as usize], left.resemblance)))
        .collect();
    for record in old..order.len() as u32 {
        let representative = if text(record).is_empty() { record } else { first[&text(record)] };
        let (kept_record, similarity) = match expected_dropped.get(&representative) {
            Some(&(kept_record, similarity)) => (kept_record, similarity),
            None if representative == record => continue,
            None => (representative, 1.0),
        };
        let why = match expected_dropped.contains_key(&representative) {
            _ if kept_record < old => RemovalReason::Against,
            true => RemovalReason::Near,
            false => RemovalReason::Exact,
        };
        let id = |at: u32| id(order[at as usize]);
        let number = order[record as usize];
        removals.push((number, vec![(id(record), id(kept_record), why, (similarity * 1e6).round() as u64)]));
    }
    removals.sort_by_key(|(number, _)| (records[*number].file, *number));
    removals.into_iter().flat_map(|(_, removal)| removal).collect()
}

/// Ids decrease in the order of generation, so the last record has the smallest one.
fn id(number: usize) -> String {
    (100 - number).to_string()
}

fn write(folder: &Path, records: &[Made]) {
    for file in 0..4 {
        let file_records = records.iter().enumerate().filter(|(_, record)| record.file == file);
        let lines: String = file_records
            .map(|(number, record)| {
                format!("{{\"id\":{},\"text\":\"{}\",\"n\":{}}}\n", id(number), record.text(), record.number)
            })
            .collect();
        std::fs::write(folder.join(format!("{file}.jsonl")), lines).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn removed_records_equal_the_definition(
        records in corpus(), against in 0usize..3, workers in 1usize..4, spills: bool,
        keep in prop::sample::select(vec!["first", "longest", "smallest-id", "max:n", "min:n"]),
    ) {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &records);
        let keep: KeepRule = keep.parse().unwrap();
        let settings = settings(folder.path(), keep.clone(), against);
        prop_assert_eq!(actual_removals(&settings, workers, spills), expected_removals(&records, &keep, against));
    }
}

#[test]
fn progress_ends_at_the_end_of_the_input() {
    let folder = tempfile::tempdir().unwrap();
    let record_of = |file| Made { words: vec![file as u8, 1, 2], number: 0, file };
    write(folder.path(), &[0, 0, 1, 2, 3, 3].map(record_of));
    let settings = settings(folder.path(), KeepRule::First, 1);
    let dedup = Dedup::find(&settings, &|_| ()).unwrap();
    let (progress, total) = (Arc::clone(&dedup.progress), dedup.progress.all);
    assert_eq!((progress.stage(), progress.done.load(Ordering::Relaxed)), (STAGES[0], 0));
    let summary = dedup.run().unwrap();
    assert_eq!((progress.stage(), progress.done.load(Ordering::Relaxed)), (STAGES[3], total));
    assert_eq!(progress.records.load(Ordering::Relaxed), summary.records.read + summary.against);
}
