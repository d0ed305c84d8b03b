//! Heads of rewritten records, from which the original heads can be restored.
//!
//! A rewritten head consists of the version line, the added lines, and all lines of the original
//! head that are still valid, in this order. The added lines end with one `Webtwin-Line: N TEXT`
//! for each line that is no longer valid: it was line N of the original head, whose version line is
//! line 0, and its text was TEXT. So the original is restored in three steps, without interpreting
//! the added lines:
//!
//! 1. Remove the lines after the version line up to the last `Webtwin-Line`.
//! 2. Insert each TEXT as line N, in the order of N.
//! 3. End with an empty line.

/// Prefix of the names of fields that this program adds.
pub const FIELD_PREFIX: &[u8] = b"webtwin-";

/// Name of the field with a line of the original head.
const LINE: &str = "Webtwin-Line";

/// Head in the form that can be rewritten: all lines end with CR LF, no line is folded, and every
/// line except the first has a colon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewritableHead<'h> {
    version: &'h [u8],
    /// Lines after the version, without their line ends. None is empty.
    lines: Vec<&'h [u8]>,
}

impl<'h> RewritableHead<'h> {
    /// Parses a head from its version to its blank line. Returns `None` if it has another form.
    pub fn parse(head: &'h [u8]) -> Option<RewritableHead<'h>> {
        let body = head.strip_suffix(b"\r\n\r\n")?;
        let mut lines = Vec::new();
        let mut rest = body;
        loop {
            let end = rest.iter().position(|&byte| byte == b'\r' || byte == b'\n');
            let (line, remainder) = rest.split_at(end.unwrap_or(rest.len()));
            lines.push(line);
            match remainder {
                [] => break,
                [b'\r', b'\n', remainder @ ..] => rest = remainder,
                _ => return None,
            }
        }
        let version = lines.remove(0);
        let is_plain = |line: &&[u8]| !line.starts_with(b" ") && !line.starts_with(b"\t") && colon(line).is_some();
        (version.starts_with(b"WARC/1.") && lines.iter().all(is_plain)).then_some(RewritableHead { version, lines })
    }

    /// True if the version is 1.0.
    pub fn is_1_0(&self) -> bool {
        self.version.trim_ascii_end() == b"WARC/1.0"
    }

    /// Returns the values of a field, in their order.
    pub fn values(&self, name: &str) -> impl Iterator<Item = &'h [u8]> {
        self.lines.iter().filter(move |line| has_name(line, name)).map(|line| value(line))
    }

    /// Returns the value of a field, if it occurs exactly once.
    pub fn only(&self, name: &str) -> Option<&'h [u8]> {
        let mut values = self.values(name);
        let first = values.next()?;
        values.next().is_none().then_some(first)
    }

    /// True if the head has a field that this program adds.
    pub fn has_ours(&self) -> bool {
        self.lines.iter().any(|line| {
            line.len() >= FIELD_PREFIX.len() && line[..FIELD_PREFIX.len()].eq_ignore_ascii_case(FIELD_PREFIX)
        })
    }

    /// Returns the head with the lines `new_lines` in place of those of the fields in
    /// `dropped_names`, at least one of which must be present.
    pub fn rewritten(&self, dropped_names: &[&str], new_lines: &[(&str, String)]) -> Vec<u8> {
        let is_gone = |line: &[u8]| dropped_names.iter().any(|name| has_name(line, name));
        let mut head = [self.version, b"\r\n"].concat();
        for (name, value) in new_lines {
            head.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        for (number, line) in (1..).zip(&self.lines).filter(|(_, line)| is_gone(line)) {
            head.extend_from_slice(format!("{LINE}: {number} ").as_bytes());
            head.extend_from_slice(line);
            head.extend_from_slice(b"\r\n");
        }
        for line in self.lines.iter().filter(|line| !is_gone(line)) {
            head.extend_from_slice(line);
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        head
    }

    /// Returns the original of a rewritten head, or `None` if this is not a rewritten head.
    pub fn original(&self) -> Option<Vec<u8>> {
        let last = self.lines.iter().rposition(|line| has_name(line, LINE))?;
        let mut lines = self.lines[last + 1..].to_vec();
        for line in self.lines[..=last].iter().filter(|line| has_name(line, LINE)) {
            let value = line.get(LINE.len() + ": ".len()..)?;
            let space = value.iter().position(|&byte| byte == b' ')?;
            let number: usize = std::str::from_utf8(&value[..space]).ok()?.parse().ok()?;
            let line_number = number.checked_sub(1).filter(|&at| at <= lines.len())?;
            lines.insert(line_number, &value[space + 1..]);
        }
        lines.insert(0, self.version);
        let mut head = lines.join(&b"\r\n"[..]);
        head.extend_from_slice(b"\r\n\r\n");
        Some(head)
    }
}

fn colon(line: &[u8]) -> Option<usize> {
    line.iter().position(|&byte| byte == b':')
}

fn has_name(line: &[u8], name: &str) -> bool {
    colon(line).is_some_and(|colon| line[..colon].trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
}

fn value(line: &[u8]) -> &[u8] {
    line[colon(line).map_or(0, |colon| colon + 1)..].trim_ascii()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEAD: &[u8] = b"WARC/1.0\r\nWARC-Type: response\r\nA: b\r\nContent-length :  7 \r\nC:\xff d\r\n\r\n";

    #[test]
    fn rewritten_header_has_new_lines_first_and_keeps_the_replaced_ones() {
        let head = RewritableHead::parse(HEAD).unwrap();
        assert_eq!((head.is_1_0(), head.only("content-length"), head.only("x")), (true, Some(&b"7"[..]), None));
        let new_head = head.rewritten(&["WARC-Type", "Content-Length"], &[("WARC-Type", "revisit".into())]);
        let expected = b"WARC/1.0\r\nWARC-Type: revisit\r\nWebtwin-Line: 1 WARC-Type: response\r\n\
            Webtwin-Line: 3 Content-length :  7 \r\nA: b\r\nC:\xff d\r\n\r\n";
        assert_eq!(new_head, expected);
        assert_eq!(RewritableHead::parse(&new_head).unwrap().original().unwrap(), HEAD);
        assert_eq!(head.original(), None);
    }

    #[test]
    fn headers_of_another_form_are_not_parsed() {
        for head_text in [
            &b"WARC/1.0\nA: b\n\n"[..],
            b"WARC/1.0\r\nA: b\r\n c\r\n\r\n",
            b"WARC/1.0\r\nno colon\r\n\r\n",
            b"WARC/1.0\r\nA: b\rc\r\n\r\n",
            b"WARC/0.18\r\nA: b\r\n\r\n",
            b"WARC/1.0\r\nA: b\r\n",
            b"",
        ] {
            assert_eq!(RewritableHead::parse(head_text), None);
        }
        assert!(RewritableHead::parse(b"WARC/1.1\r\nwebTWIN-x: 1\r\n\r\n").unwrap().has_ours());
        assert!(!RewritableHead::parse(HEAD).unwrap().has_ours());
    }

    #[test]
    fn invalid_header_lines_have_no_original() {
        for invalid in
            ["Webtwin-Line: 0 A: b", "Webtwin-Line: 9 A: b", "Webtwin-Line: x A: b", "Webtwin-Line: 1", "Webtwin-Line:"]
        {
            let head = format!("WARC/1.0\r\n{invalid}\r\n\r\n");
            assert_eq!(RewritableHead::parse(head.as_bytes()).unwrap().original(), None, "{invalid}");
        }
    }

    proptest! {
        #[test]
        fn every_header_is_restored(
            lines in prop::collection::vec(("[A-Da-d]{1,2} ?", "[ -~é]{0,9}"), 1..9),
            gone in prop::collection::vec("[a-d]{1,2}", 1..4),
            added in prop::collection::vec("[a-z ]{0,9}", 0..3),
        ) {
            let text: String = lines.iter().map(|(name, value)| format!("{name}:{value}\r\n")).collect();
            let text = format!("WARC/1.1\r\n{text}\r\n");
            let head = RewritableHead::parse(text.as_bytes()).unwrap();
            let gone: Vec<&str> = gone.iter().map(String::as_str).collect();
            let added: Vec<(&str, String)> = added.into_iter().map(|value| ("a", value)).collect();
            let rewritten = head.rewritten(&gone, &added);
            let original = RewritableHead::parse(&rewritten).unwrap().original();
            match gone.iter().any(|name| head.values(name).next().is_some()) {
                true => prop_assert_eq!(original.unwrap(), text.as_bytes()),
                false => prop_assert_eq!(original, None),
            }
        }
    }
}
