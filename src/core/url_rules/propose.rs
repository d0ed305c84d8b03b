//! Proposals of edits that may turn the URL of a copy into that of another page of its cluster.
//!
//! A proposal is a hint, which [`super::evidence`] evaluates. So each part in which two URLs differ
//! proposes its own edits, although no single edit may make the URLs equal.

use super::address::{UrlParts, name};
use super::edit::{SHORTEST_ID, Slash, UrlEdit, is_id, is_name};

/// Maximum number of parameters in which URLs may differ. If more differ, the difference is no
/// evidence about any of them.
const MAX_PARAMETERS: usize = 8;
/// Maximum number of segments of a path that an edit replaces, and of segments that it inserts.
const MAX_SEGMENTS: usize = 2;

/// Proposes edits for the parts in which two URLs differ, from the first to the second. Edits that
/// drop a parameter are proposed for parameters of either URL.
///
/// # Examples
/// ```
/// use webtwin_core::url_rules::address::UrlParts;
/// use webtwin_core::url_rules::edit::{UrlEdit, Slash};
/// use webtwin_core::url_rules::propose::propose;
///
/// let from = UrlParts::parse("http://www.a.example/x/").unwrap();
/// let to = UrlParts::parse("http://a.example/x").unwrap();
/// let origin = UrlEdit::Origin("http://www.a.example".into(), "http://a.example".into());
/// assert!(propose(&from, &to).contains(&origin));
/// assert!(propose(&from, &to).contains(&UrlEdit::Slash(Slash::Drop)));
/// ```
pub fn propose(from: &UrlParts<'_>, to: &UrlParts<'_>) -> Vec<UrlEdit> {
    let mut edits = Vec::new();
    if from.origin != to.origin {
        edits.push(UrlEdit::Origin(from.origin.to_string(), to.origin.to_string()));
    }
    if from.path != to.path {
        of_paths(from.path, to.path, &mut edits);
        edits.extend(template(&from.target(), &to.target()));
    }
    if from.query != to.query {
        of_queries(from, to, &mut edits);
    }
    edits
}

fn of_paths(from: &str, to: &str, edits: &mut Vec<UrlEdit>) {
    if from.eq_ignore_ascii_case(to) {
        edits.push(UrlEdit::Case(None));
        return;
    }
    match (from.strip_prefix(to), to.strip_prefix(from)) {
        (Some("/"), _) => return edits.push(UrlEdit::Slash(Slash::Drop)),
        (_, Some("/")) => return edits.push(UrlEdit::Slash(Slash::Add)),
        _ => {}
    }
    for piece in from.split(['/', ';']).chain(to.split(['/', ';'])).filter(|piece| piece.contains('=')) {
        edits.push(UrlEdit::PathParameter(name(piece).to_string()));
    }
    if from.contains("//") {
        edits.push(UrlEdit::Part("//".into(), "/".into()));
    }
    let [a, b] = [from, to].map(|path| path[1..].split('/').collect::<Vec<_>>());
    let common_start = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let shorter = a.len().min(b.len());
    let same_end = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count().min(shorter - common_start);
    let [middle, other] = [&a, &b].map(|segments| &segments[common_start..segments.len() - same_end]);
    if (1..=MAX_SEGMENTS).contains(&middle.len()) && other.len() <= MAX_SEGMENTS {
        let [from, to] = [middle, other].map(|segments| segments.iter().map(|segment| format!("/{segment}")).collect());
        edits.push(match same_end {
            0 => UrlEdit::End(from, to),
            _ => UrlEdit::Part(from + "/", to + "/"),
        });
    }
    if same_end > 0 && middle.len() == 1 && other.len() <= 1 {
        edits.extend(id_between(middle[0]).map(|(before, after)| UrlEdit::Segment(before, after)));
    }
    // The part after a script, or after any path that is a page itself.
    if same_end == 0
        && common_start > 0
        && a.len() > common_start
        && (b.len() == common_start || a[common_start - 1].contains('.'))
    {
        edits.push(UrlEdit::Tail(format!("/{}", a[..common_start].join("/"))));
    }
}

/// True if the value of a parameter is an id that people do not write by hand.
fn has_long_id(piece: &str) -> bool {
    let value = piece.split_once('=').map_or("", |(_, value)| value);
    value.len() >= 2 * SHORTEST_ID && is_id(value) && value.bytes().any(|byte| byte.is_ascii_digit())
}

/// Returns the texts before and after the first id of a segment.
fn id_between(segment: &str) -> Option<(String, String)> {
    let is_other = |character: char| !character.is_ascii_alphanumeric();
    let id = segment.split(is_other).find(|part| is_id(part) && part.bytes().any(|byte| byte.is_ascii_digit()))?;
    let (prefix, suffix) = segment.split_once(id)?;
    // An id with a name before it may be short; an id without a name must be long.
    (id.len() >= 2 * SHORTEST_ID || !prefix.is_empty()).then(|| (prefix.to_string(), suffix.to_string()))
}

/// Returns the template edit of two targets that have exactly one name or number in common, in
/// different contexts.
fn template(from: &str, to: &str) -> Option<UrlEdit> {
    let words = |text: &str| -> Vec<String> {
        let parts = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').filter(|part| is_name(part));
        parts.map(str::to_string).collect()
    };
    let is_single = |text: &str, word: &str| text.match_indices(word).count() == 1;
    let other = words(to);
    let mut shared: Vec<String> = words(from).into_iter().filter(|word| other.contains(word)).collect();
    shared.retain(|word| is_single(from, word) && is_single(to, word) && word.bytes().any(|b| b.is_ascii_digit()));
    let [word] = &shared[..] else { return None };
    let [pattern, replacement] = [from, to].map(|text| text.replacen(word.as_str(), "*", 1));
    let is_plain = |text: &str| text.matches('*').count() == 1;
    (pattern != replacement && is_plain(&pattern) && is_plain(&replacement))
        .then_some(UrlEdit::Template(pattern, replacement))
}

fn of_queries(from: &UrlParts<'_>, to: &UrlParts<'_>, edits: &mut Vec<UrlEdit>) {
    let [mut a, mut b] = [from, to].map(|address| address.pieces().collect::<Vec<_>>());
    let [sorted_a, sorted_b] = [&mut a, &mut b].map(|pieces| {
        pieces.sort_unstable();
        pieces.dedup();
        &pieces[..]
    });
    if sorted_a == sorted_b {
        edits.push(UrlEdit::Order);
        return;
    }
    let only_in = |own_pieces: &[&str], other: &[&str]| -> Vec<String> {
        let left = own_pieces.iter().filter(|piece| other.binary_search(piece).is_err() && !name(piece).is_empty());
        left.map(|piece| piece.to_string()).collect()
    };
    let (own_pieces, other) = (only_in(sorted_a, sorted_b), only_in(sorted_b, sorted_a));
    if own_pieces.len() > MAX_PARAMETERS || other.len() > MAX_PARAMETERS {
        return;
    }
    for piece in &own_pieces {
        edits.push(UrlEdit::Parameters(vec![name(piece).to_string()]));
        match other.iter().find(|other| name(other) == name(piece)) {
            // An edit with the id of one session matches no other session.
            _ if has_long_id(piece) => {}
            None => edits.push(UrlEdit::Default(piece.clone())),
            Some(value) if value.eq_ignore_ascii_case(piece) => {
                edits.push(UrlEdit::Case(Some(name(piece).to_string())))
            }
            Some(value) => edits.push(UrlEdit::Value(piece.clone(), value.clone())),
        }
    }
    for piece in other.iter().filter(|piece| own_pieces.iter().all(|own| name(own) != name(piece))) {
        edits.push(UrlEdit::Parameters(vec![name(piece).to_string()]));
        edits.extend((!has_long_id(piece)).then(|| UrlEdit::Default(piece.clone())));
    }
    for pieces in [&own_pieces, &other] {
        let mut names: Vec<String> = pieces.iter().map(|piece| name(piece).to_string()).collect();
        names.sort_unstable();
        names.dedup();
        if names.len() > 1 {
            edits.push(UrlEdit::Parameters(names));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn proposed(from: &str, to: &str) -> Vec<String> {
        let [from, to] =
            [from, to].map(|url| if url.starts_with('/') { format!("http://a.b{url}") } else { url.into() });
        let edits = propose(&UrlParts::parse(&from).unwrap(), &UrlParts::parse(&to).unwrap());
        let text = |edit: &UrlEdit| format!("{} {} {}", edit.kind(), edit.texts().0, edit.texts().1).trim().to_string();
        edits.iter().map(text).collect()
    }

    #[test]
    fn each_part_that_differs_has_its_edits() {
        for (from, to, expected) in [
            ("http://www.a.b/", "http://a.b/", vec!["host http://www.a.b http://a.b"]),
            ("/A/b", "/a/b", vec!["case /"]),
            ("/a/", "/a", vec!["slash /"]),
            ("/a", "/a/", vec!["slash  /"]),
            ("/a/index.html", "/a/", vec!["path-end /index.html /"]),
            ("/print/x.html", "/x.html", vec!["path /print/ /"]),
            ("/x/print", "/x", vec!["path-end /print", "path-tail /x/* /x"]),
            ("/a//b", "/a/b", vec!["path // /", "path // /"]),
            ("/(S(12345678))/b", "/b", vec!["path /(S(12345678))/ /", "path-id /(S(*))"]),
            (
                "/d.php/x?i=1",
                "/d.php?i=1",
                vec!["path-end /x", "path-tail /d.php/* /d.php", "template /d.php/x?i=* /d.php?i=*"],
            ),
            ("/x;s=1/y", "/x/y", vec!["path-parameter s", "path /x;s=1/ /x/"]),
            (
                "/story?id=17",
                "/story_17",
                vec![
                    "path-end /story /story_17",
                    "template /story?id=* /story_*",
                    "parameter id",
                    "default-value id=17",
                ],
            ),
            ("/?b=1&a=1", "/?a=1&b=1", vec!["order"]),
            ("/?i=A", "/?i=a", vec!["parameter i", "case i"]),
            ("/?h=x", "/?h=y", vec!["parameter h", "value h=x h=y"]),
            ("/?h=0123456789abcdef", "/?h=x", vec!["parameter h"]),
            (
                "/?i=1",
                "/?i=1&s=2&t=3",
                vec!["parameter s", "default-value s=2", "parameter t", "default-value t=3", "parameter s&t"],
            ),
        ] {
            assert_eq!(proposed(from, to), expected, "{from} {to}");
        }
    }

    proptest! {
        #[test]
        fn urls_that_differ_in_one_part_become_equal_by_a_proposed_edit(
            url in "/[a-c]{1,3}/[a-c]{1,3}", query in "([bc]=[12])(&[de]=[12]){0,2}", extra in "x=[0-9a-f]{4}", kind in 0..6
        ) {
            let (from, to) = match kind {
                0 => (format!("{url}?{query}&{extra}"), format!("{url}?{query}")),
                1 => (format!("{url}?{extra}"), url.clone()),
                2 => (format!("{url}/"), url.clone()),
                3 => (format!("/print{url}"), url.clone()),
                4 => (format!("{url}/index.html?{query}"), format!("{url}/?{query}")),
                _ => (format!("{}?{query}", url.to_uppercase()), format!("{url}?{query}")),
            };
            let [from, to] = [from, to].map(|url| format!("http://a.b{url}"));
            let edits = propose(&UrlParts::parse(&from).unwrap(), &UrlParts::parse(&to).unwrap());
            let edited_url = |edit: &UrlEdit| edit.apply(&UrlParts::parse(&from).unwrap());
            prop_assert!(edits.iter().any(|edit| edited_url(edit).as_deref() == Some(&to)), "{:?}", edits);
        }
    }
}
