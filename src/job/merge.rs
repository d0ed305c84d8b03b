//! Merge of the defaults, the job file and `--set` values into one job, in this order. Unknown keys
//! are rejected.

use toml::{Table, Value};

use super::quantity::quantity;
use super::settings::{FORMER_SETTINGS, Job, JobKind, Measure, MergeCondition, OverlapSettings, RecordLimits, Unit};
use webtwin_base::error::{Error, Result};

/// Settings that are set when the job is created and that have no defaults.
const SETTINGS_WITHOUT_DEFAULT: [(&str, &str); 3] =
    [("pairs", "from_sha256"), ("pairs", "apart_sha256"), ("keep", "pins_sha256")];

/// Suffix of settings in bytes, whose values may have a unit.
const BYTES: &str = "_bytes";

/// Minimum address space of a helper process in bytes. The process maps the program, and the stack
/// for reading documents.
const MIN_PRINTED_BYTES: u64 = 256 << 20;

/// Resolves a job from the text of a job file (which may be empty) and `KEY=VALUE` settings that
/// override it, in order.
///
/// Messages call the job file `file`.
///
/// # Errors
/// Returns [`Error::Usage`] for an unknown key (with the nearest known key), and
/// [`Error::Setting`] for a value of the wrong type or out of range.
///
/// # Examples
/// ```
/// use webtwin_job::resolve;
///
/// let job = resolve("job.toml", "[overlap]\nmin_shared = 10", &["overlap.views=0.9".into()])?;
/// assert_eq!((job.overlap.min_shared, job.overlap.views), (10, 0.9));
///
/// // An unknown setting is refused.
/// assert!(resolve("job.toml", "[overlap]\nmin_share = 10", &[]).is_err());
/// # Ok::<(), webtwin_base::error::Error>(())
/// ```
pub fn resolve(file: &str, text: &str, sets: &[String]) -> Result<Job> {
    let mut tree = Table::try_from(Job::default()).expect("the defaults are plain values");
    for (section, key) in SETTINGS_WITHOUT_DEFAULT {
        tree[section].as_table_mut().expect("it is a section").insert(key.into(), Value::String(String::new()));
    }
    let mut settings: Table = text.parse().map_err(|cause| no_toml(file, text, &cause))?;
    let mut sets = sets.iter().map(|set| parse_set(set)).collect::<Result<Vec<Table>>>()?;
    let typed = sets.clone();
    // A preset must be applied before all other settings, so it is extracted from both sources
    // first.
    let preset_name = sets.iter_mut().filter_map(|set| set.remove("preset")).last();
    if let Some(name) = preset_name.or(settings.remove("preset")) {
        overlay(&mut tree, preset(&name, file)?, "", file)?;
    }
    overlay(&mut tree, settings, "", file)?;
    for set in sets {
        overlay(&mut tree, set, "", "--set")?;
    }
    let mut job: Job = tree.clone().try_into().map_err(|cause| wrong_value(file, &typed, &tree, &cause))?;
    if job.kind == JobKind::Signatures {
        if !matches!(job.similar.by, Measure::Overlap | Measure::Signatures) {
            return Err(Error::Setting {
                file: file.into(),
                setting: "similar.by".into(),
                got: format!("{:?}", job.similar.by).to_lowercase(),
                must_be: "signatures, or left out, with kind = \"signatures\"".into(),
            });
        }
        job.similar.by = Measure::Signatures;
    }
    if job.kind == JobKind::Batch {
        job.similar.by = by_simhash(&job, file)?;
    }
    validate(&job, file)?;
    job.settle();
    Ok(job)
}

/// Returns the measure of a batch, or an error if the job asks for another one.
fn by_simhash(job: &Job, file: &str) -> Result<Measure> {
    let refuse = |setting: &str, got: String, must_be: &str| {
        Err(Error::Setting { file: file.into(), setting: setting.into(), got, must_be: must_be.into() })
    };
    if !matches!(job.similar.by, Measure::Overlap | Measure::Hamming) {
        let got = format!("{:?}", job.similar.by).to_lowercase();
        return refuse("similar.by", got, "hamming, or left out, with kind = \"batch\"");
    }
    if job.simhash.features.idf {
        let must_be =
            "without idf with kind = \"batch\", because idf weighs features by one crawl and F has pages of several";
        return refuse("simhash.recipe", job.simhash.features.to_string(), must_be);
    }
    Ok(Measure::Hamming)
}

/// Presets: named settings that override the defaults and are overridden by the rest of the job
/// file. They are simhash tuned for one crawl, signatures tuned likewise, the study of \[PBZ06\],
/// and the papers' own definitions of similar pages: 32-bit fingerprints and F >= T without any
/// filter (\[SGM98\] section 3, \[CSG00\] section 5.1).
const PRESETS: [(&str, &str); 8] = [
    ("crawl", ""),
    ("simhash", "[similar]\nby = \"hamming\"\n[hamming]\nk = 8\n[simhash]\nrecipe = \"weighted\""),
    (
        "signatures",
        "[similar]\nby = \"signatures\"\n[signatures]\nrecipe = \"weighted\"\nrp_tolerance = 0.065\nhm_tolerance = 0.2",
    ),
    ("four-line", "[chunks]\ncount = 4\nwrap = 0\nbits = 32\nmin_text = 0\n[overlap]\nmin_shared = 15"),
    ("two-line", "[chunks]\ncount = 2\nwrap = 0\nbits = 32\nmin_text = 0\n[overlap]\nmin_shared = 25"),
    ("document", "[chunks]\nunit = \"document\"\nwrap = 0\nbits = 32\nmin_text = 0\n[overlap]\nmin_shared = 1"),
    ("grow", "kind = \"grow\"\n[clusters]\nmerge = \"exact\"\nsingle_site = false"),
    ("study", "kind = \"study\"\n[chunks]\nunit = \"shingle-paragraphs\"\nwrap = 0\nmin_text = 0"),
];

fn preset(name: &Value, file: &str) -> Result<Table> {
    let named_preset = PRESETS.iter().find(|(known, _)| name.as_str() == Some(known));
    let Some(&(_, text)) = named_preset else {
        return Err(Error::Setting {
            file: file.into(),
            setting: "preset".into(),
            got: name.to_string(),
            must_be: format!("one of {}", PRESETS.map(|(name, _)| name).join(", ")),
        });
    };
    let mut table: Table = text.parse().expect("presets are TOML");
    if let Some(overlap) = table.get_mut("overlap").and_then(Value::as_table_mut) {
        let mut paper = Table::try_from(OverlapSettings::of_papers(1)).expect("settings are plain values");
        paper.extend(std::mem::take(overlap));
        *overlap = paper;
        table.insert("similar".into(), Table::from_iter([("guard".into(), Value::String("none".into()))]).into());
    }
    Ok(table)
}

/// Parses `a.b=VALUE` into a table. A VALUE that is not valid TOML is used as a string.
fn parse_set(set: &str) -> Result<Table> {
    let (key, value) = set
        .split_once('=')
        .ok_or_else(|| Error::Usage(format!("--set {set}: write KEY=VALUE, for example overlap.min_shared=15")))?;
    let value = value.trim();
    let parsed = format!("v = {value}").parse::<Table>().ok().and_then(|mut table| table.remove("v"));
    let mut value = parsed.unwrap_or_else(|| Value::String(value.into()));
    let mut table = Table::new();
    for part in key.trim().rsplit('.') {
        table = Table::new();
        table.insert(part.into(), value);
        value = Value::Table(table.clone());
    }
    Ok(table)
}

/// Returns the error for a text that is not TOML, with its position.
fn no_toml(file: &str, text: &str, cause: &toml::de::Error) -> Error {
    let preceding = &text[..cause.span().map_or(0, |span| span.start.min(text.len()))];
    let (line, column) =
        (preceding.matches('\n').count() + 1, preceding.chars().rev().take_while(|c| *c != '\n').count() + 1);
    Error::Usage(format!(
        "{file}: line {line}, column {column}: not valid TOML: {}",
        cause.message().replace('\n', " ")
    ))
}

/// Returns the error for an invalid value, with the name of the setting. The setting is found by
/// trying each given value alone on top of the defaults.
fn wrong_value(file: &str, sets: &[Table], tree: &Table, cause: &toml::de::Error) -> Error {
    let defaults = Table::try_from(Job::default()).expect("the defaults are plain values");
    let wrong_setting = leaves(tree, "").into_iter().find_map(|(name, value)| {
        let mut candidate = defaults.clone();
        *at(&mut candidate, &name)? = value.clone();
        let cause = candidate.try_into::<Job>().err()?.message().to_string();
        Some((name, value.to_string(), cause))
    });
    let (setting, got, cause) =
        wrong_setting.unwrap_or_else(|| ("a setting".into(), "invalid".into(), cause.message().into()));
    let typed = sets.iter().any(|set| at(&mut set.clone(), &setting).is_some());
    // The message of serde is "unknown variant `x`, expected one of ..."
    let expected = cause.split_once(", expected ").map_or(cause.as_str(), |(_, expected)| expected);
    let must_be = range_of(expected).unwrap_or_else(|| expected.into());
    Error::Setting { file: if typed { "--set" } else { file }.into(), setting, got, must_be }
}

/// Returns the range of an integer type, by the name that serde writes.
fn range_of(type_name: &str) -> Option<String> {
    let largest = match type_name {
        "u8" => u64::from(u8::MAX),
        "u16" => u64::from(u16::MAX),
        "u32" => u64::from(u32::MAX),
        // Integers of TOML are signed.
        "u64" | "usize" => i64::MAX as u64,
        _ => return None,
    };
    Some(format!("a whole number from 0 to {largest}"))
}

/// Returns the values that a setting accepts whose default is `default_value`, for a message about
/// a value of another type.
fn accepted(default_value: &Value, value: &Value) -> String {
    let is_whole = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match default_value {
        // TOML has no larger integers, so that such a value is a string.
        Value::Integer(_) if value.as_str().is_some_and(|text| is_whole(text) && text.parse::<i64>().is_err()) => {
            format!("a whole number of at most {}", i64::MAX)
        }
        Value::Integer(_) => "a whole number".into(),
        Value::Float(_) => "a number".into(),
        Value::Boolean(_) => "true or false".into(),
        Value::String(_) | Value::Datetime(_) => "a string".into(),
        Value::Array(_) => "a list of strings, in brackets".into(),
        Value::Table(_) => "a section with settings of its own".into(),
    }
}

/// Returns the values in a tree with their dotted names.
fn leaves<'t>(tree: &'t Table, prefix: &str) -> Vec<(String, &'t Value)> {
    let subtree_leaves = |(key, value): (&String, &'t Value)| match value {
        Value::Table(table) => leaves(table, &format!("{prefix}{key}.")),
        value => vec![(format!("{prefix}{key}"), value)],
    };
    tree.iter().flat_map(subtree_leaves).collect()
}

/// Returns the value with a dotted name in a tree.
fn at<'t>(tree: &'t mut Table, name: &str) -> Option<&'t mut Value> {
    match name.split_once('.') {
        None => tree.get_mut(name),
        Some((key, rest)) => at(tree.get_mut(key)?.as_table_mut()?, rest),
    }
}

fn overlay(tree: &mut Table, settings: Table, prefix: &str, file: &str) -> Result<()> {
    for (key, value) in settings {
        let name = format!("{prefix}{key}");
        let Some(default_value) = tree.get_mut(&key) else {
            let nearest = tree.keys().min_by_key(|known| strsim::damerau_levenshtein(known, &key));
            let what = match FORMER_SETTINGS.iter().find(|former| former.0 == name) {
                Some(_) => "a former setting; see CHANGELOG.md for its replacement".into(),
                None => format!("not a setting; the nearest is {prefix}{}", nearest.map_or("", |known| known)),
            };
            return Err(Error::Usage(format!("{file}: {name} is {what}")));
        };
        *default_value = match (&mut *default_value, value) {
            (Value::Table(inner), Value::Table(value)) => {
                overlay(inner, value, &format!("{name}."), file)?;
                continue;
            }
            (Value::Float(_), Value::Integer(whole)) => Value::Float(whole as f64),
            (Value::Integer(_), Value::String(size)) if key.ends_with(BYTES) => {
                let bytes = quantity(&size).ok().and_then(|bytes| i64::try_from(bytes).ok());
                Value::Integer(bytes.ok_or_else(|| Error::Setting {
                    file: file.into(),
                    setting: name,
                    got: format!("{size:?}"),
                    must_be: "bytes, such as 1000000, \"512MB\" or \"8GiB\"".into(),
                })?)
            }
            // A single name is accepted as a list with one element.
            (Value::Array(_), Value::String(one)) => Value::Array(vec![Value::String(one)]),
            (known, value) if known.type_str() == value.type_str() => value,
            (default_value, value) => {
                return Err(Error::Setting {
                    file: file.into(),
                    setting: name,
                    got: format!("{value} ({})", value.type_str()),
                    must_be: accepted(default_value, &value),
                });
            }
        };
    }
    Ok(())
}

fn validate(job: &Job, file: &str) -> Result<()> {
    let refuse = |setting: &str, got: String, must_be: &str| {
        Err(Error::Setting { file: file.into(), setting: setting.into(), got, must_be: must_be.into() })
    };
    // Each of these units is a chunk by itself.
    let whole = matches!(job.chunks.unit, Unit::Document | Unit::ShingleParagraphs);
    if job.chunks.count == 0 || (whole && job.chunks.count != 1) {
        return refuse("chunks.count", job.chunks.count.to_string(), "at least 1, and 1 for this unit");
    }
    if whole && job.chunks.sliding {
        return refuse("chunks.sliding", "true".into(), "false for this unit");
    }
    if job.chunks.wrap != 0 && job.chunks.wrap < 16 {
        return refuse("chunks.wrap", job.chunks.wrap.to_string(), "0, or at least 16 columns");
    }
    if job.chunks.bits != 32 && job.chunks.bits != 64 {
        return refuse("chunks.bits", job.chunks.bits.to_string(), "32 or 64");
    }
    let RecordLimits { printed_seconds, printed_bytes, .. } = job.input.limits;
    if printed_seconds == 0 {
        return refuse("input.limits.printed_seconds", "0".into(), "at least 1 second");
    }
    if printed_bytes < MIN_PRINTED_BYTES {
        let must_be = format!("at least {MIN_PRINTED_BYTES} bytes, which the reader itself needs");
        return refuse("input.limits.printed_bytes", printed_bytes.to_string(), &must_be);
    }
    // With k = 64 all pages would be near, because a simhash has at most 64 bits.
    if job.hamming.k >= 64 {
        return refuse("hamming.k", job.hamming.k.to_string(), "less than 64 bits");
    }
    if job.simhash.bits > 64 {
        return refuse("simhash.bits", job.simhash.bits.to_string(), "1 to 64, or 0 for no simhash");
    }
    if job.simhash.bits == 0 && matches!(job.similar.by, Measure::Hamming | Measure::Both) {
        return refuse("simhash.bits", "0".into(), "1 to 64 if similar.by is hamming or both");
    }
    let signatures = &job.signatures;
    for (name, part) in
        [("signatures.rp_tolerance", signatures.rp_tolerance), ("signatures.hm_tolerance", signatures.hm_tolerance)]
    {
        if !(0.0..=1.0).contains(&part) {
            return refuse(name, part.to_string(), "between 0 and 1");
        }
    }
    // Without given pairs, this measure would find no pairs at all.
    if job.similar.by == Measure::Given && job.pairs.from.is_empty() {
        return refuse("pairs.from", "none".into(), "tables of pairs or labels if similar.by is given");
    }
    if !(0.01..=1.0).contains(&job.minhash.threshold) {
        return refuse("minhash.threshold", job.minhash.threshold.to_string(), "between 0.01 and 1");
    }
    if job.overlap.min_shared == 0 {
        return refuse("overlap.min_shared", "0".into(), "at least 1");
    }
    if !(0.0..=1.0).contains(&job.overlap.min_resemblance) {
        return refuse("overlap.min_resemblance", job.overlap.min_resemblance.to_string(), "between 0 and 1");
    }
    if !(0.0..=1.0).contains(&job.overlap.min_resemblance_alone) {
        let got = job.overlap.min_resemblance_alone.to_string();
        return refuse("overlap.min_resemblance_alone", got, "between 0 and 1");
    }
    if job.overlap.views != 0.0 && !(0.01..=1.0).contains(&job.overlap.views) {
        return refuse("overlap.views", job.overlap.views.to_string(), "0, or between 0.01 and 1");
    }
    // Checked here, so that an invalid glob fails before the crawl is read.
    for glob in &job.keep.prefer {
        if let Err(error) = glob::Pattern::new(glob) {
            return refuse("keep.prefer", glob.clone(), &format!("globs over URLs ({error})"));
        }
    }
    for seed in &job.keep.seeds {
        if !["http://", "https://"].iter().any(|scheme| seed.starts_with(scheme)) {
            return refuse("keep.seeds", seed.clone(), "URLs that begin with http:// or https://");
        }
    }
    if !(0.0..=1.0).contains(&job.keep.min_resemblance) {
        return refuse("keep.min_resemblance", job.keep.min_resemblance.to_string(), "between 0 and 1");
    }
    if !(1 << 20..=1 << 31).contains(&job.input.limits.window_bytes) {
        let got = job.input.limits.window_bytes.to_string();
        return refuse("input.limits.window_bytes", got, "1048576 to 2147483648 bytes");
    }
    if !(0.0..=1.0).contains(&job.input.max_bad) {
        return refuse("input.max_bad", job.input.max_bad.to_string(), "between 0 and 1");
    }
    if job.kind == JobKind::Study && (job.chunks.unit != Unit::ShingleParagraphs || job.chunks.bits != 64) {
        return refuse(
            "chunks.unit, chunks.bits",
            format!("{}, {}", serde_json::json!(job.chunks.unit), job.chunks.bits),
            "\"shingle-paragraphs\" and 64 with kind = \"study\" (see preset = \"study\")",
        );
    }
    if job.kind == JobKind::Grow && (job.clusters.merge == MergeCondition::Tolerant || job.clusters.single_site) {
        return refuse(
            "clusters.merge, clusters.single_site",
            format!("{}, {}", serde_json::json!(job.clusters.merge), job.clusters.single_site),
            "\"exact\" or \"extended\", and false, with kind = \"grow\" (see preset = \"grow\"), because a graph \
             has no hosts",
        );
    }
    if job.study.steps == 0 || job.study.steps > 1 << 20 {
        return refuse("study.steps", job.study.steps.to_string(), "1 to 1048576");
    }
    if !(0.0..=1.0).contains(&job.recrawl.least_pages) {
        return refuse("recrawl.least_pages", job.recrawl.least_pages.to_string(), "between 0 and 1");
    }
    if job.output.export_bytes < 4096 {
        return refuse("output.export_bytes", job.output.export_bytes.to_string(), "at least 4096");
    }
    if !job.output.partitions.is_power_of_two() || job.output.partitions > 4096 {
        return refuse("output.partitions", job.output.partitions.to_string(), "a power of two up to 4096");
    }
    if job.clusters.merge == MergeCondition::Tolerant && !job.clusters.single_site {
        return refuse("clusters.single_site", "false".into(), "true if clusters.merge is tolerant");
    }
    if job.clusters.min_size == 0 {
        return refuse("clusters.min_size", "0".into(), "at least 1");
    }
    if job.effort.shard_bytes < 64 << 10 {
        return refuse("effort.shard_bytes", job.effort.shard_bytes.to_string(), "at least 65536 bytes");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Guard, Weights};

    #[test]
    fn file_overrides_default_and_set_overrides_file() {
        let text = "[overlap]\nmin_shared = 15\n[clusters]\nmerge = \"exact\"";
        let job = resolve("j.toml", text, &["overlap.min_shared=25".into(), "output.url=out".into()]).unwrap();
        assert_eq!(job.overlap.min_shared, 25);
        assert_eq!(job.clusters.merge, MergeCondition::Exact);
        assert_eq!(job.output.url, "out");
    }

    #[test]
    fn settings_of_the_papers_are_one_line_and_can_be_overridden() {
        let job = resolve("j.toml", "preset = \"four-line\"\n[overlap]\nmin_shared = 20", &[]).unwrap();
        assert_eq!((job.chunks.count, job.chunks.bits, job.overlap.min_shared), (4, 32, 20));
        assert_eq!((job.overlap.min_resemblance, job.overlap.template_pages, job.overlap.guard), (0.0, 0, Guard::None));
        let job = resolve("j.toml", "", &["preset=four-line".into(), "preset=two-line".into()]).unwrap();
        assert_eq!((job.chunks.count, job.overlap.min_shared), (2, 25));
        assert!(resolve("j.toml", "preset = \"six-line\"", &[]).unwrap_err().to_string().contains("four-line"));
    }

    #[test]
    fn best_settings_of_simhash_and_signatures_are_one_line() {
        let job = resolve("j.toml", "preset = \"simhash\"\n[hamming]\nk = 3", &[]).unwrap();
        assert_eq!((job.similar.by, job.hamming.k, job.simhash.features.idf), (Measure::Hamming, 3, true));
        assert_eq!((job.simhash.features.phrase, job.simhash.features.weights), (2, Weights::Log));
        assert_eq!(job.overlap, Job::default().overlap);
        let job = resolve("j.toml", "preset = \"signatures\"", &[]).unwrap();
        assert_eq!(
            (job.similar.by, job.signatures.vectors.dims, job.signatures.vectors.unit_length),
            (Measure::Signatures, 16, true)
        );
        assert_eq!(job.simhash, Job::default().simhash);
        assert_eq!(resolve("j.toml", "kind = \"signatures\"", &[]).unwrap().similar.by, Measure::Signatures);
    }

    #[test]
    fn bytes_may_have_a_unit_and_an_invalid_set_is_named_as_typed() {
        let job = resolve("j.toml", "[effort]\nmemory_bytes = \"2GiB\"", &["effort.disk_bytes=1.5GB".into()]).unwrap();
        assert_eq!((job.effort.memory_bytes, job.effort.disk_bytes), (2 << 30, 1_500_000_000));
        let error = resolve("j.toml", "[effort]\nmemory_bytes = 7", &["similar.guard=nono".into()]).unwrap_err();
        assert!(error.to_string().starts_with("--set: similar.guard is \"nono\", but must be one of"), "{error}");
    }

    #[test]
    fn one_guard_applies_to_all_measures() {
        let guards = |job: &Job| [job.overlap.guard, job.minhash.guard, job.hamming.guard, job.signatures.guard];
        let nearest = [Guard::Neighbours, Guard::Neighbours, Guard::MutualBest, Guard::MutualBest];
        assert_eq!(guards(&resolve("j.toml", "", &[]).unwrap()), nearest);
        assert_eq!(guards(&resolve("j.toml", "", &["similar.guard=none".into()]).unwrap()), [Guard::None; 4]);
        assert_eq!(guards(&resolve("j.toml", "preset = \"two-line\"", &[]).unwrap()), [Guard::None; 4]);
    }

    #[test]
    fn former_setting_is_rejected_in_jobs_and_with_another_value_in_finished_runs() {
        let error = resolve("j.toml", "[overlap]\ndoubt = 3", &[]).unwrap_err().to_string();
        assert!(error.contains("overlap.doubt is a former setting"), "{error}");
        let mut settings = serde_json::to_value(Job::default()).unwrap();
        settings["overlap"]["doubt"] = 2.into();
        settings["recrawl"]["avoided"] = false.into();
        assert_eq!(Job::of_run(&settings).unwrap(), Job::default());
        settings["overlap"]["doubt"] = 3.into();
        assert!(Job::of_run(&settings).unwrap_err().contains("overlap.doubt was 3"));
        settings["overlap"].as_object_mut().unwrap().remove("doubt");
        settings["signatures"]["recipe"] = "weighted".into();
        assert_eq!(Job::of_run(&settings).unwrap().signatures.vectors.dims, 16);
    }

    #[test]
    fn every_former_setting_has_a_value_and_is_no_longer_a_setting() {
        let defaults = serde_json::to_value(Job::default()).unwrap();
        for (name, value) in FORMER_SETTINGS {
            assert!(serde_json::from_str::<serde_json::Value>(value).is_ok(), "{name}");
            assert_eq!(defaults.pointer(&format!("/{}", name.replace('.', "/"))), None, "{name}");
        }
    }

    #[test]
    fn an_unknown_key_names_the_nearest_known_one() {
        let error = resolve("j.toml", "[overlap]\nmin_share = 3", &[]).unwrap_err().to_string();
        assert!(error.contains("overlap.min_share ") && error.contains("nearest is overlap.min_shared"), "{error}");
    }

    #[test]
    fn wrong_types_and_ranges_are_refused() {
        for (text, word) in [
            ("[overlap]\nmin_shared = \"x\"", "is \"x\" (string), but must be a whole number"),
            ("[overlap]\nmin_shared = 5_000_000_000", "must be a whole number from 0 to 4294967295"),
            ("[overlap]\nmin_shared = -1", "is -1, but must be a whole number from 0 to 4294967295"),
            ("[input.limits]\nrecord_bytes = -1", "must be a whole number from 0 to 9223372036854775807"),
            ("[overlap]\nmin_shared = \"99999999999999999999\"", "of at most 9223372036854775807"),
            ("[overlap]\nviews = \"x\"", "but must be a number"),
            ("[chunks]\nsliding = 3", "is 3 (integer), but must be true or false"),
            ("[keep]\nprefer = 3", "a list of strings"),
            ("[keep]\npins = 3", "but must be a string"),
            ("keep = 3", "a section"),
            ("[overlap]\nmin_resemblance = 1.5", "between 0 and 1"),
            ("[overlap]\nmin_resemblance_alone = -0.1", "between 0 and 1"),
            ("[overlap]\nviews = 80", "0, or between 0.01 and 1"),
            ("[chunks]\nunit = \"verses\"", "verses"),
            ("[chunks]\nwrap = 5", "16"),
            ("[output]\npartitions = 12", "power of two"),
            ("[similar]\nby = \"hamming\"\n[simhash]\nbits = 0", "hamming or both"),
            ("[clusters]\nmerge = \"tolerant\"\nsingle_site = false", "tolerant"),
            ("[signatures]\nrp_tolerance = 2", "between 0 and 1"),
            ("[minhash]\nshingle = \"lines:2\"", "words:5"),
            ("[minhash]\nthreshold = 0", "between 0.01 and 1"),
            ("[simhash]\nrecipe = \"stemming:english\"", "but must be plain, weighted, or parts such as phrases:2"),
            ("[signatures]\nrecipe = \"components:0\"", "but must be plain, weighted, or parts such as components:16"),
            ("[keep]\nprefer = [\"http://a.example/***\"]", "globs over URLs"),
            ("[keep]\nby = \"best\"", "best"),
            ("[keep]\nseeds = [\"a.example\"]", "begin with http"),
            ("[keep]\nmin_resemblance = 2", "between 0 and 1"),
            ("[recrawl]\nleast_pages = 2", "between 0 and 1"),
            ("kind = [", "line 1, column 9: not valid TOML"),
            ("[overlap]\nmin_shared = 3\nguard = 'x", "line 3, column"),
            ("[similar]\nguard = \"nono\"", "j.toml: similar.guard is \"nono\", but must be one of `none`"),
            (
                "[effort]\nmemory_bytes = \"1 gigabyte\"",
                "effort.memory_bytes is \"1 gigabyte\", but must be bytes, such as",
            ),
            ("[effort]\nmemory_bytes = \"9EB\"", "bytes, such as"),
        ] {
            let error = resolve("j.toml", text, &[]).unwrap_err();
            assert!(error.to_string().contains(word), "{text}: {error}");
            assert_eq!(error.exit_code(), 2);
        }
    }
}
