//! Where a page says that its reader should be instead: `<meta http-equiv=refresh>` and `<link rel=canonical>`.

use super::entities;
use super::tokenizer::Tag;

/// Longest delay, in seconds, after which a page that refreshes to another is taken for a redirect rather than for a page
/// that people read.
const LONGEST_DELAY: u32 = 10;

/// The reference in a `meta` element that refreshes to another URL soon.
///
/// # Source
/// WHATWG HTML, "shared declarative refresh steps".
pub(super) fn refresh(tag: &Tag<'_>) -> Option<String> {
    if !tag.attribute("http-equiv")?.trim().eq_ignore_ascii_case("refresh") {
        return None;
    }
    let mut content = String::new();
    entities::decode_attribute(tag.value?, &mut content);
    let rest = content.trim_start_matches(is_space);
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    // `.5` is no time at all.
    let delay = if digits == 0 && rest.starts_with('.') { 0 } else { rest[..digits].parse().ok()? };
    let behind = rest[digits..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let rest = behind.trim_start_matches(is_space);
    let rest = rest.strip_prefix([';', ',']).unwrap_or(rest).trim_start_matches(is_space);
    if delay > LONGEST_DELAY || (rest.len() == behind.len() && !rest.is_empty()) {
        return None;
    }
    let named = rest
        .get(..3)
        .filter(|word| word.eq_ignore_ascii_case("url"))
        .and_then(|_| Some(rest[3..].trim_start_matches(is_space).strip_prefix('=')?.trim_start_matches(is_space)));
    let url = named.unwrap_or(rest);
    let quoted =
        url.strip_prefix(['"', '\'']).map(|inner| inner.split(url.as_bytes()[0] as char).next().unwrap_or(inner));
    let url = quoted.unwrap_or(url).trim_end_matches(is_space);
    (!url.is_empty()).then(|| url.to_owned())
}

/// The reference in a `link` element that names the URL which the page should have.
pub(super) fn canonical(tag: &Tag<'_>) -> Option<String> {
    let is_canonical = |word: &str| word.eq_ignore_ascii_case("canonical");
    if !tag.attribute("rel")?.split(is_space).any(is_canonical) {
        return None;
    }
    let mut reference = String::new();
    entities::decode_attribute(tag.value?, &mut reference);
    (!reference.trim().is_empty()).then_some(reference)
}

/// ASCII white space of HTML.
fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0c')
}
