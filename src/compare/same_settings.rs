//! Check that two results differ in the crawled pages and not in their settings.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use webtwin_base::error::{Error, Result};
use webtwin_job::{FORMER_SETTINGS, Job};
use webtwin_results::FinishedRun;

/// Settings that may differ, as prefixes of their names: locations of the crawl and of results, the
/// previous result, decisions of people and findings added later, settings of other kinds of jobs,
/// and the entry points of a crawl.
const VARIABLE_SETTINGS: [&str; 15] = [
    "effort.",
    "output.",
    "input.urls",
    "input.originals",
    "input.max_bad",
    "input.limits.window_bytes",
    "keep.seeds",
    "keep.sticky",
    "keep.pins",
    "pairs.apart",
    "pairs.from",
    "study.",
    "batch.",
    "fingerprints.",
    "recrawl.",
];

/// Properties that two results have in common, which determine the tables that can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comparable {
    /// True if the settings of the answer and the recipes are equal; then all tables can be
    /// compared.
    pub settings: bool,
    /// True if simhashes are computed in the same way.
    pub simhashes: bool,
}

/// Compares the settings and recipes of two results.
///
/// A setting that one of the results lacks, because another build wrote it, has the default of this
/// build.
///
/// # Errors
/// Returns [`Error::Usage`] naming a setting or recipe that differs, unless `across_settings`; and
/// also if a result has no pages.
pub fn comparable(old: &FinishedRun, new: &FinishedRun, across_settings: bool) -> Result<Comparable> {
    for run in [old, new] {
        if run.manifest.table("pages").next().is_none() {
            let no_pages_message = format!("{}: has no table of pages; name a result of `webtwin run`", run.folder);
            return Err(Error::Usage(no_pages_message));
        }
    }
    let difference = difference(&old.manifest.job, &new.manifest.job)
        .or_else(|| other_recipe(&old.manifest.recipes, &new.manifest.recipes));
    match difference {
        Some(_) if across_settings => {
            let recipe_of = |run: &FinishedRun| run.manifest.recipes.get("simhash").cloned();
            Ok(Comparable { settings: false, simhashes: recipe_of(old).is_some() && recipe_of(old) == recipe_of(new) })
        }
        Some(difference) => Err(difference_error(old, &new.folder.to_string(), difference)),
        None => Ok(Comparable { settings: true, simhashes: true }),
    }
}

/// Builds the error for two results that differ in one setting, with both values.
fn difference_error(old: &FinishedRun, new: &str, (name, [a, b]): (String, [String; 2])) -> Error {
    Error::Usage(format!(
        "{} has {name} = {a}, and {new} has {b}, which would cause differences that are not changes of the crawl; run \
         one of them again, or compare only pages and sites with --across-settings",
        old.folder
    ))
}

/// Checks that the settings of a job are comparable with those of an existing result.
///
/// # Errors
/// Returns any error of [`comparable`].
pub fn will_be_comparable(old: &FinishedRun, job: &Job) -> Result<()> {
    let new = serde_json::to_value(job).expect("a job is plain values");
    match difference(&old.manifest.job, &new).filter(|_| !job.recrawl.across_settings) {
        Some(difference) => Err(difference_error(old, "this job", difference)),
        None => Ok(()),
    }
}

/// Returns the first setting of the answer that differs, with both values.
fn difference(old: &Value, new: &Value) -> Option<(String, [String; 2])> {
    let mut defaults = leaves(&serde_json::to_value(Job::default()).expect("a job is plain values"));
    let value = |json: &str| serde_json::from_str(json).expect("the table has JSON");
    defaults.extend(FORMER_SETTINGS.iter().map(|&(name, json)| (name.to_string(), value(json))));
    let (old, new) = (leaves(old), leaves(new));
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    names.into_iter().filter(|name| !VARIABLE_SETTINGS.iter().any(|may| name.starts_with(may))).find_map(|name| {
        let value = |of: &BTreeMap<String, Value>| of.get(name).or(defaults.get(name)).cloned();
        let (a, b) = (value(&old), value(&new));
        let word = |value: Option<Value>| value.map_or("nothing".into(), |value| value.to_string());
        (a != b).then(|| (name.clone(), [word(a), word(b)]))
    })
}

/// Flattens a JSON tree into values by dotted name. A list is a value.
fn leaves(tree: &Value) -> BTreeMap<String, Value> {
    fn collect_leaves(tree: &Value, name: &str, values: &mut BTreeMap<String, Value>) {
        match tree {
            Value::Object(map) => {
                let dot = if name.is_empty() { "" } else { "." };
                map.iter().for_each(|(key, value)| collect_leaves(value, &format!("{name}{dot}{key}"), values));
            }
            value => _ = values.insert(name.into(), value.clone()),
        }
    }
    let mut values = BTreeMap::new();
    collect_leaves(tree, "", &mut values);
    values
}

/// Returns the first recipe that both results have in different versions.
fn other_recipe(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> Option<(String, [String; 2])> {
    let common_recipes = old.iter().filter_map(|(name, a)| Some((name, [a.clone(), new.get(name)?.clone()])));
    common_recipes.into_iter().find(|(_, [a, b])| a != b).map(|(name, both)| (format!("the recipe {name}"), both))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(change: impl FnOnce(&mut Job)) -> Value {
        let mut job = Job::default();
        change(&mut job);
        serde_json::to_value(job).unwrap()
    }

    #[test]
    fn differing_result_settings_are_named_and_inputs_are_not() {
        let base_job = job(|_| ());
        let moved_job = job(|job| {
            job.input.urls = vec!["b".into()];
            job.input.originals = vec!["a".into()];
            job.output.url = "out".into();
            job.output.partitions = 64;
            job.effort.shard_bytes *= 2;
            job.recrawl.least_pages = 0.2;
        });
        assert_eq!(difference(&base_job, &moved_job), None);
        let changed_job = job(|job| job.overlap.min_shared = 9);
        assert_eq!(difference(&base_job, &changed_job), Some(("overlap.min_shared".into(), ["1".into(), "9".into()])));
        let preferring = job(|job| job.keep.prefer = vec!["*a*".into()]);
        assert_eq!(difference(&preferring, &base_job).unwrap().0, "keep.prefer");
    }

    #[test]
    fn settings_of_newer_builds_are_default_and_unknown_ones_are_named() {
        let base_job = job(|_| ());
        let mut earlier = base_job.clone();
        earlier["similar"].as_object_mut().unwrap().remove("guard");
        earlier["overlap"]["doubt"] = 2.into();
        assert_eq!(difference(&earlier, &base_job), None);
        assert_eq!(
            difference(&earlier, &job(|job| job.similar.guard = webtwin_job::Guard::None)).unwrap().0,
            "similar.guard"
        );
        let mut later_settings = base_job.clone();
        later_settings["overlap"]["of_tomorrow"] = 1.into();
        assert_eq!(difference(&base_job, &later_settings).unwrap().1, ["nothing".to_string(), "1".into()]);
    }

    #[test]
    fn recipes_of_one_name_must_be_equal() {
        let recipes = |simhash: &str| BTreeMap::from([("simhash".to_string(), simhash.to_string())]);
        assert_eq!(other_recipe(&recipes("v1"), &recipes("v1")), None);
        assert_eq!(other_recipe(&recipes("v1"), &BTreeMap::new()), None);
        assert_eq!(other_recipe(&recipes("v1"), &recipes("v2")).unwrap().0, "the recipe simhash");
    }
}
