//! Extraction of some fields of a JSON object, at any depth.
//!
//! The name `a.b` means field `b` of the object in field `a`, and also a field that is called
//! `a.b`. Values of other fields are skipped. If a name occurs twice in an object, its last value
//! counts.

use std::borrow::Cow;
use std::fmt;

use super::record::{Reason, Refusal};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Number of purposes that fields may have.
pub const PURPOSES: usize = 12;

/// Fields to extract.
#[derive(Debug)]
pub struct FieldQuery {
    paths: Vec<Path>,
    is_strict: bool,
}

#[derive(Debug)]
struct Path {
    /// Purpose of the field: a number below [`PURPOSES`], chosen by the caller.
    purpose: usize,
    /// Steps of the path: for each depth, the name at that depth, and the rest of the path from
    /// there.
    steps: Vec<(String, String)>,
}

/// Value of a field. Lists and objects are reduced to a description.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar<'t> {
    /// A string.
    Text(Cow<'t, str>),
    /// A whole number.
    Whole(i128),
    /// Another number.
    Real(f64),
    /// True or false.
    Bool(bool),
    /// A list or an object, with a description.
    Other(&'static str),
}

impl<'t> Scalar<'t> {
    /// Describes the kind of value.
    pub fn what(&self) -> &'static str {
        match self {
            Scalar::Text(_) => "a string",
            Scalar::Whole(_) | Scalar::Real(_) => "a number",
            Scalar::Bool(_) => "true or false",
            Scalar::Other(description) => description,
        }
    }

    /// Returns the value if it is a string. `names` are the possible names of the field, for
    /// messages.
    ///
    /// # Errors
    /// Returns [`Reason::BadField`] with the kind of the value if it is not a string.
    pub fn string(self, names: &[String]) -> Result<Cow<'t, str>, Refusal> {
        match self {
            Scalar::Text(text) => Ok(text),
            other => Err((Reason::BadField, format!("{} is {}, but must be a string", names.join("|"), other.what()))),
        }
    }

    /// Returns the value as text, or `None` for a list or an object.
    pub fn into_text(self) -> Option<String> {
        match self {
            Scalar::Text(text) => Some(text.into_owned()),
            Scalar::Whole(number) => Some(number.to_string()),
            Scalar::Real(number) => Some(number.to_string()),
            Scalar::Bool(value) => Some(value.to_string()),
            Scalar::Other(_) => None,
        }
    }
}

/// Extracted values: for each purpose, the value of the first of its fields that exists and is not
/// null.
#[derive(Debug, Default)]
pub struct FieldValues<'t>([Option<(usize, Scalar<'t>)>; PURPOSES]);

impl<'t> FieldValues<'t> {
    /// Removes and returns the value for a purpose.
    pub fn take(&mut self, purpose: usize) -> Option<Scalar<'t>> {
        self.0[purpose].take().map(|(_, value)| value)
    }

    fn offer(&mut self, query: &FieldQuery, path: usize, value: Option<Scalar<'t>>) {
        let slot = &mut self.0[query.paths[path].purpose];
        match value {
            Some(value) if slot.as_ref().is_none_or(|(rank, _)| path <= *rank) => *slot = Some((path, value)),
            None if slot.as_ref().is_some_and(|(rank, _)| path == *rank) => *slot = None,
            _ => {}
        }
    }
}

/// Maximum number of wanted fields, because each takes one bit of a `u32`.
const MAX_FIELDS: usize = 32;

impl FieldQuery {
    /// Makes an extractor of fields, each with its purpose, a number below [`PURPOSES`]. Among the
    /// fields of one purpose, an earlier one has precedence. Only the first 32 fields are
    /// extracted.
    pub fn new<'n>(fields: impl IntoIterator<Item = (usize, &'n str)>) -> FieldQuery {
        let path = |(purpose, name): (usize, &str)| {
            let names: Vec<&str> = name.split('.').collect();
            let step = |at: usize| (names[at].to_string(), names[at..].join("."));
            Path { purpose, steps: (0..names.len()).map(step).collect() }
        };
        FieldQuery { paths: fields.into_iter().map(path).take(MAX_FIELDS).collect(), is_strict: false }
    }

    /// Makes `find` also check the values of other fields: the depth of lists and objects, and the
    /// range of numbers.
    pub fn strict(self) -> FieldQuery {
        FieldQuery { is_strict: true, ..self }
    }

    /// Finds the fields of an object.
    ///
    /// # Errors
    /// Returns the reason if the text is not a JSON object.
    pub fn find<'t>(&self, text: &'t str) -> Result<FieldValues<'t>, String> {
        if !text.starts_with('{') {
            return Err("the line is not a JSON object".into());
        }
        let mut values = FieldValues::default();
        let mut parser = serde_json::Deserializer::from_str(text);
        let all_paths = (1u64 << self.paths.len()) - 1;
        let seed = Seed { query: self, depth: 0, ends: 0, lead: all_paths as u32, values: &mut values };
        seed.deserialize(&mut parser).and_then(|()| parser.end()).map_err(|error| error.to_string())?;
        Ok(values)
    }
}

/// A value in the parsed object. The bits of `ends` are the paths that end at this value, those of
/// `leads` the paths that continue in it.
struct Seed<'w, 'f, 't> {
    query: &'w FieldQuery,
    depth: usize,
    ends: u32,
    lead: u32,
    values: &'f mut FieldValues<'t>,
}

impl<'t> Seed<'_, '_, 't> {
    fn offer(self, value: Option<Scalar<'t>>) {
        let mut ends = self.ends;
        while ends != 0 {
            self.values.offer(self.query, ends.trailing_zeros() as usize, value.clone());
            ends &= ends - 1;
        }
    }
}

impl<'t> DeserializeSeed<'t> for Seed<'_, '_, 't> {
    type Value = ();

    fn deserialize<D: Deserializer<'t>>(self, parser: D) -> Result<(), D::Error> {
        parser.deserialize_any(self)
    }
}

impl<'t> Visitor<'t> for Seed<'_, '_, 't> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.offer(None);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.offer(Some(Scalar::Bool(value)));
        Ok(())
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.offer(Some(Scalar::Whole(number.into())));
        Ok(())
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.offer(Some(Scalar::Whole(number.into())));
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        self.offer(Some(Scalar::Real(number)));
        Ok(())
    }

    fn visit_borrowed_str<E>(self, text: &'t str) -> Result<(), E> {
        self.offer(Some(Scalar::Text(Cow::Borrowed(text))));
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.offer(Some(Scalar::Text(Cow::Owned(text.to_string()))));
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut list: A) -> Result<(), A::Error> {
        let Seed { query, depth, ends, values, .. } = self;
        if query.is_strict {
            // No path leads through a list, so its values are only checked.
            while list.next_element_seed(Seed { query, depth, ends: 0, lead: 0, values })?.is_some() {}
        } else {
            while list.next_element::<IgnoredAny>()?.is_some() {}
        }
        Seed { query, depth, ends, lead: 0, values }.offer(Some(Scalar::Other("a list")));
        Ok(())
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<(), A::Error> {
        let Seed { query, depth, ends, lead, values: records } = self;
        while let Some(key) = map.next_key_seed(Key)? {
            let (mut paths_below, mut leads_through) = (0, 0);
            for (position, path) in query.paths.iter().enumerate().filter(|(at, _)| lead >> at & 1 == 1) {
                match path.steps.get(depth) {
                    Some((_, rest)) if *rest == key => paths_below |= 1 << position,
                    Some((name, _)) if *name == key => leads_through |= 1 << position,
                    _ => {}
                }
            }
            if paths_below | leads_through == 0 && !query.is_strict {
                map.next_value::<IgnoredAny>()?;
            } else {
                map.next_value_seed(Seed {
                    query,
                    depth: depth + 1,
                    ends: paths_below,
                    lead: leads_through,
                    values: records,
                })?;
            }
        }
        Seed { query, depth, ends, lead, values: records }.offer(Some(Scalar::Other("an object")));
        Ok(())
    }
}

/// Returns the text of a line without a byte order mark and surrounding white space, or `None` if
/// nothing else is in it.
///
/// # Errors
/// Returns [`Reason::NotUtf8`] with the position of the first invalid byte.
pub fn text_of_line(line: &[u8]) -> Option<Result<&str, Refusal>> {
    let trimmed = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    let refuse = |at: usize| (Reason::NotUtf8, format!("byte {at} of the line is not UTF-8"));
    (!trimmed.is_empty()).then(|| std::str::from_utf8(trimmed).map_err(|error| refuse(error.valid_up_to())))
}

/// The name of a field.
struct Key;

impl<'t> DeserializeSeed<'t> for Key {
    type Value = Cow<'t, str>;

    fn deserialize<D: Deserializer<'t>>(self, parser: D) -> Result<Cow<'t, str>, D::Error> {
        parser.deserialize_str(self)
    }
}

impl<'t> Visitor<'t> for Key {
    type Value = Cow<'t, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_borrowed_str<E>(self, name: &'t str) -> Result<Cow<'t, str>, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Cow<'t, str>, E> {
        Ok(Cow::Owned(name.to_string()))
    }
}

/// Replaces numbers that JSON does not have (`NaN`, `Infinity`, `-Infinity`) by `null` in a line of
/// JSON. Python and other languages write them. Returns `None` if the line has none of them.
pub fn without_nan(text: &str) -> Option<String> {
    const NUMBERS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];
    if !NUMBERS.iter().any(|number| text.contains(number)) {
        return None;
    }
    let mut output = String::with_capacity(text.len());
    let (mut rest, mut is_string) = (text, false);
    while let Some(position) = rest.find(['"', '\\', 'N', 'I', '-']) {
        let (prefix, remainder) = rest.split_at(position);
        output.push_str(prefix);
        let number = NUMBERS.iter().find(|number| !is_string && remainder.starts_with(**number));
        let length = match number {
            Some(number) => {
                output.push_str("null");
                number.len()
            }
            None => {
                // An escaped quote does not end the string.
                let escaped_length =
                    remainder.strip_prefix('\\').and_then(|behind| behind.chars().next()).map_or(0, char::len_utf8);
                is_string ^= remainder.starts_with('"');
                output.push_str(&remainder[..1 + escaped_length]);
                1 + escaped_length
            }
        };
        rest = &remainder[length..];
    }
    output.push_str(rest);
    Some(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: usize = 0;
    const ID: usize = 1;
    const KEY: usize = 2;

    fn example_query() -> FieldQuery {
        FieldQuery::new([(TEXT, "text"), (TEXT, "a.b"), (ID, "a.id"), (KEY, "n")])
    }

    #[test]
    fn fields_are_found_at_any_depth_and_in_the_order_of_their_names() {
        let text = |text: &str| Some(Scalar::Text(Cow::Owned(text.into())));
        for (line, want, id) in [
            (r#"{"text":"x","a":{"b":"y","id":7}}"#, text("x"), Some(Scalar::Whole(7))),
            (r#"{"a":{"b":"y"},"text":"x"}"#, text("x"), None),
            (r#"{"a":{"b":"y"},"text":null}"#, text("y"), None),
            (r#"{"a.b":"flat","a.id":"i"}"#, text("flat"), text("i")),
            (r#"{"text":"x","text":"last"}"#, text("last"), None),
            (r#"{"text":"x\ny","a":[{"b":"no"}]}"#, text("x\ny"), None),
            (r#"{"\u0074ext":"x"}"#, text("x"), None),
            (r#"{"text":["x"],"z":{"text":"no"}}"#, Some(Scalar::Other("a list")), None),
            (r#"{"text":{"b":"no"}}"#, Some(Scalar::Other("an object")), None),
            ("{}", None, None),
        ] {
            let query = example_query();
            let mut values = query.find(line).unwrap();
            assert_eq!((values.take(TEXT), values.take(ID)), (want, id), "{line}");
        }
    }

    #[test]
    fn numbers_retain_their_value() {
        let query = example_query();
        let key = |line: &'static str| query.find(line).unwrap().take(KEY);
        assert_eq!(key(r#"{"n":18446744073709551615}"#), Some(Scalar::Whole(u64::MAX.into())));
        assert_eq!(key(r#"{"n":-1.5e3}"#), Some(Scalar::Real(-1500.0)));
        assert_eq!(key(r#"{"n":true}"#), Some(Scalar::Bool(true)));
    }

    #[test]
    fn values_that_are_not_objects_are_reported_without_their_content() {
        for line in ["[1]", "\"secret\"", "{\"secret\":", "{} secret", "{\"a\":\"\u{1}secret\"}", ""] {
            let message = example_query().find(line).unwrap_err();
            assert!(!message.is_empty() && !message.contains("secret"), "{message}");
        }
    }

    #[test]
    fn only_strict_parsing_validates_other_fields() {
        let deep = format!("{{\"z\":{}{},\"text\":\"x\"}}", "[".repeat(1000), "]".repeat(1000));
        for line in [deep.as_str(), "{\"z\":[1e999],\"text\":\"x\"}"] {
            assert!(example_query().find(line).is_ok() && example_query().strict().find(line).is_err(), "{line:.20}");
        }
        let legal = "{\"z\":[{\"text\":\"no\"}],\"text\":\"x\",\"y\":{\"text\":1}}";
        assert_eq!(example_query().strict().find(legal).unwrap().take(TEXT), Some(Scalar::Text(Cow::Borrowed("x"))));
    }
}
