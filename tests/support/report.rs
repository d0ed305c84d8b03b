use serde_json::Value;

use super::program::succeed;

/// Returns the report of a result, as JSON.
pub(crate) fn report(run: &str, options: &[&str]) -> Value {
    let text = succeed(&[&["report", run, "--json", "--output", "-"], options].concat());
    serde_json::from_str(&text).unwrap()
}

/// Returns a figure of a part of a report by its name.
pub(crate) fn tile(part: &Value, what: &str) -> String {
    let tile = part["tiles"].as_array().unwrap().iter().find(|tile| tile["what"] == what);
    tile.unwrap_or_else(|| panic!("{what}: {part}"))["figure"].as_str().unwrap().into()
}
