//! Many strings in one allocation.
//!
//! Tables have hundreds of millions of strings, most of which are read, compared once and dropped.
//! Allocating and freeing each of them separately would cost more than decoding it.

use std::ops::Index;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// Size in bytes from which appended texts get exactly the memory that they need.
const EXACT_GROWTH_BYTES: usize = 1 << 20;

/// Append-only list of strings, numbered from 0.
///
/// # Memory
/// The bytes of the strings, and 8 bytes for each string.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct StringTable {
    text: String,
    /// End of each string in `text`.
    ends: Vec<usize>,
}

impl StringTable {
    /// Creates an empty list.
    pub const fn new() -> StringTable {
        StringTable { text: String::new(), ends: Vec::new() }
    }

    /// Reserves memory for `texts` more strings with `bytes` bytes in total.
    pub(super) fn reserve(&mut self, texts: usize, bytes: usize) {
        self.text.reserve(bytes);
        self.ends.reserve(texts);
    }

    /// Appends a string.
    #[inline]
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    /// Appends all strings of another list.
    pub fn append(&mut self, texts: &StringTable) {
        let previous_bytes = self.text.len();
        if texts.text.len() > EXACT_GROWTH_BYTES {
            // The default growth would double the memory.
            self.text.reserve_exact(texts.text.len());
        }
        self.text.push_str(&texts.text);
        self.ends.extend(texts.ends.iter().map(|end| previous_bytes + end));
    }

    /// Removes and returns the strings from `number` on.
    pub(super) fn split_off(&mut self, number: usize) -> StringTable {
        let start = self.start(number);
        let ends = self.ends.split_off(number).into_iter().map(|end| end - start).collect();
        StringTable { text: self.text.split_off(start), ends }
    }

    /// Returns the number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there are no strings.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the total size of the strings in bytes.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Returns the string with the given number, if there is one.
    pub fn get(&self, number: usize) -> Option<&str> {
        (number < self.len()).then(|| &self[number])
    }

    /// Returns the strings in order.
    pub fn iter(&self) -> Iter<'_> {
        Iter { texts: self, next: 0 }
    }

    /// Returns the bytes of a range of strings, concatenated.
    ///
    /// # Panics
    /// Panics if there are fewer strings.
    pub(super) fn joined_bytes(&self, numbers: std::ops::Range<usize>) -> &[u8] {
        &self.text.as_bytes()[self.start(numbers.start)..self.start(numbers.end)]
    }

    fn start(&self, number: usize) -> usize {
        if number == 0 { 0 } else { self.ends[number - 1] }
    }
}

impl Index<usize> for StringTable {
    type Output = str;

    #[inline]
    fn index(&self, number: usize) -> &str {
        &self.text[self.start(number)..self.ends[number]]
    }
}

/// Iterator over the strings of a [`StringTable`].
#[derive(Clone)]
pub struct Iter<'t> {
    texts: &'t StringTable,
    next: usize,
}

impl<'t> Iterator for Iter<'t> {
    type Item = &'t str;

    #[inline]
    fn next(&mut self) -> Option<&'t str> {
        let text = self.texts.get(self.next)?;
        self.next += 1;
        Some(text)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.texts.len() - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl<'t> IntoIterator for &'t StringTable {
    type Item = &'t str;
    type IntoIter = Iter<'t>;

    fn into_iter(self) -> Iter<'t> {
        self.iter()
    }
}

impl<S: AsRef<str>> Extend<S> for StringTable {
    fn extend<I: IntoIterator<Item = S>>(&mut self, texts: I) {
        let texts = texts.into_iter();
        self.ends.reserve(texts.size_hint().0);
        texts.for_each(|text| self.push(text.as_ref()));
    }
}

impl<S: AsRef<str>> FromIterator<S> for StringTable {
    fn from_iter<I: IntoIterator<Item = S>>(texts: I) -> StringTable {
        let mut table = StringTable::new();
        table.extend(texts);
        table
    }
}

impl std::fmt::Debug for StringTable {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_list().entries(self).finish()
    }
}

/// Serialises the strings as a list.
impl Serialize for StringTable {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self)
    }
}

impl<'de> Deserialize<'de> for StringTable {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<StringTable, D::Error> {
        struct List;

        impl<'de> Visitor<'de> for List {
            type Value = StringTable;

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("a list of strings")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<StringTable, A::Error> {
                let mut texts = StringTable::new();
                // The seed appends to `texts`, so no string is allocated on its own.
                while list.next_element_seed(Next(&mut texts))?.is_some() {}
                Ok(texts)
            }
        }

        /// Seed that appends a string directly to the list, without an allocation of its own.
        struct Next<'t>(&'t mut StringTable);

        impl<'de> DeserializeSeed<'de> for Next<'_> {
            type Value = ();

            fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
                from.deserialize_str(self)
            }
        }

        impl Visitor<'_> for Next<'_> {
            type Value = ();

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("a string")
            }

            fn visit_str<E>(self, text: &str) -> Result<(), E> {
                self.0.push(text);
                Ok(())
            }
        }

        from.deserialize_seq(List)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn string_table_equals_a_vector_of_strings(
            texts in prop::collection::vec(".{0,5}", 0..20), more in prop::collection::vec(".{0,5}", 0..20)
        ) {
            let mut table: StringTable = texts.iter().collect();
            prop_assert_eq!(serde_json::to_string(&table).unwrap(), serde_json::to_string(&texts).unwrap());
            table.append(&more.iter().collect());
            let plain = [texts, more].concat();
            prop_assert_eq!(table.len(), plain.len());
            prop_assert!(table.iter().eq(plain.iter().map(String::as_str)));
            prop_assert!((0..plain.len()).all(|at| table[at] == plain[at] && table.get(at) == Some(&plain[at])));
            prop_assert_eq!(table.get(plain.len()), None);
            prop_assert_eq!(table.bytes(), plain.concat().len());
            let half = plain.len() / 2;
            prop_assert!(table.joined_bytes(half..plain.len()) == plain[half..].concat().as_bytes());
            let mut first = table.clone();
            let second = first.split_off(half);
            prop_assert!(first.iter().eq(&plain[..half]) && second.iter().eq(&plain[half..]));
            let decoded: StringTable = serde_json::from_str(&serde_json::to_string(&plain).unwrap()).unwrap();
            prop_assert_eq!(decoded, table);
        }
    }
}
