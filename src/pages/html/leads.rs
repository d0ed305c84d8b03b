//! Declarations of a page that another URL takes its place: `<meta http-equiv=refresh>` and `<link
//! rel=canonical>`.

use super::entities;
use super::tokenizer::StartTag;

/// Maximum delay of a refresh, in seconds, that counts as a redirect. With a longer delay, readers
/// see the page itself.
const MAX_DELAY: u32 = 10;

/// Returns the reference in a `meta` element that refreshes to another URL within the maximum
/// delay.
pub(super) fn refresh(tag: &StartTag<'_>) -> Option<String> {
    if !tag.attribute("http-equiv")?.trim().eq_ignore_ascii_case("refresh") {
        return None;
    }
    let mut content = String::new();
    entities::decode_attribute(tag.value?, &mut content);
    let rest = content.trim_start_matches(is_space);
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    // By the standard, a delay such as `.5` is 0.
    let delay = if digits == 0 && rest.starts_with('.') { 0 } else { rest[..digits].parse().ok()? };
    let after_number = rest[digits..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let rest = after_number.trim_start_matches(is_space);
    let rest = rest.strip_prefix([';', ',']).unwrap_or(rest).trim_start_matches(is_space);
    if delay > MAX_DELAY || (rest.len() == after_number.len() && !rest.is_empty()) {
        return None;
    }
    let is_url_key = rest
        .get(..3)
        .filter(|word| word.eq_ignore_ascii_case("url"))
        .and_then(|_| Some(rest[3..].trim_start_matches(is_space).strip_prefix('=')?.trim_start_matches(is_space)));
    let url = is_url_key.unwrap_or(rest);
    let quoted =
        url.strip_prefix(['"', '\'']).map(|inner| inner.split(url.as_bytes()[0] as char).next().unwrap_or(inner));
    let url = quoted.unwrap_or(url).trim_end_matches(is_space);
    (!url.is_empty()).then(|| url.to_owned())
}

/// Returns the reference in a `link` element that declares the canonical URL of the page.
pub(super) fn canonical(tag: &StartTag<'_>) -> Option<String> {
    let is_canonical = |word: &str| word.eq_ignore_ascii_case("canonical");
    if !tag.attribute("rel")?.split(is_space).any(is_canonical) {
        return None;
    }
    let mut reference = String::new();
    entities::decode_attribute(tag.value?, &mut reference);
    (!reference.trim().is_empty()).then_some(reference)
}

/// True for ASCII white space of HTML.
fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0c')
}
