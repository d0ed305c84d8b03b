//! Many strings in one piece of memory.
//!
//! Tables have hundreds of millions of strings, and most of them are read, looked at and forgotten. As strings of their own they
//! cost more to allocate and to free than to decode.

use std::ops::Index;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// Bytes from which on room is made for no more than is added.
const LARGE: usize = 1 << 20;

/// Strings, numbered from 0, that are added at the end only.
///
/// # Memory
/// Their bytes, and 8 for each of them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Texts {
    all: String,
    /// Where each ends in `all`.
    ends: Vec<usize>,
}

impl Texts {
    /// No strings.
    pub const fn new() -> Texts {
        Texts { all: String::new(), ends: Vec::new() }
    }

    /// Makes room for `texts` more, of `bytes` together.
    pub(super) fn reserve(&mut self, texts: usize, bytes: usize) {
        self.all.reserve(bytes);
        self.ends.reserve(texts);
    }

    /// Adds a string.
    #[inline]
    pub fn push(&mut self, text: &str) {
        self.all.push_str(text);
        self.ends.push(self.all.len());
    }

    /// Adds those of others, in their order.
    pub fn append(&mut self, others: &Texts) {
        let before = self.all.len();
        if others.all.len() > LARGE {
            // Not twice as much.
            self.all.reserve_exact(others.all.len());
        }
        self.all.push_str(&others.all);
        self.ends.extend(others.ends.iter().map(|end| before + end));
    }

    /// Takes the strings from a number on out.
    pub(super) fn split_off(&mut self, number: usize) -> Texts {
        let start = self.start(number);
        let ends = self.ends.split_off(number).into_iter().map(|end| end - start).collect();
        Texts { all: self.all.split_off(start), ends }
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Their bytes together.
    pub fn bytes(&self) -> usize {
        self.all.len()
    }

    /// The string of a number, if there are as many.
    pub fn get(&self, number: usize) -> Option<&str> {
        (number < self.len()).then(|| &self[number])
    }

    /// The strings in their order.
    pub fn iter(&self) -> Iter<'_> {
        Iter { texts: self, next: 0 }
    }

    /// The bytes of the strings of some numbers, one behind the other.
    ///
    /// # Panics
    /// When there are not as many strings.
    pub(super) fn together(&self, numbers: std::ops::Range<usize>) -> &[u8] {
        &self.all.as_bytes()[self.start(numbers.start)..self.start(numbers.end)]
    }

    fn start(&self, number: usize) -> usize {
        if number == 0 { 0 } else { self.ends[number - 1] }
    }
}

impl Index<usize> for Texts {
    type Output = str;

    #[inline]
    fn index(&self, number: usize) -> &str {
        &self.all[self.start(number)..self.ends[number]]
    }
}

/// The strings of a [`Texts`] in their order.
#[derive(Clone)]
pub struct Iter<'t> {
    texts: &'t Texts,
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

impl<'t> IntoIterator for &'t Texts {
    type Item = &'t str;
    type IntoIter = Iter<'t>;

    fn into_iter(self) -> Iter<'t> {
        self.iter()
    }
}

impl<S: AsRef<str>> Extend<S> for Texts {
    fn extend<I: IntoIterator<Item = S>>(&mut self, texts: I) {
        let texts = texts.into_iter();
        self.ends.reserve(texts.size_hint().0);
        texts.for_each(|text| self.push(text.as_ref()));
    }
}

impl<S: AsRef<str>> FromIterator<S> for Texts {
    fn from_iter<I: IntoIterator<Item = S>>(texts: I) -> Texts {
        let mut all = Texts::new();
        all.extend(texts);
        all
    }
}

impl std::fmt::Debug for Texts {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_list().entries(self).finish()
    }
}

/// As a list of strings.
impl Serialize for Texts {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self)
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Texts, D::Error> {
        struct List;

        impl<'de> Visitor<'de> for List {
            type Value = Texts;

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("a list of strings")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Texts, A::Error> {
                let mut texts = Texts::new();
                while list.next_element_seed(Next(&mut texts))?.is_some() {}
                Ok(texts)
            }
        }

        /// A string, where it lies, to those before it.
        struct Next<'t>(&'t mut Texts);

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
        fn they_are_what_a_vector_of_strings_is(
            texts in prop::collection::vec(".{0,5}", 0..20), more in prop::collection::vec(".{0,5}", 0..20)
        ) {
            let mut all: Texts = texts.iter().collect();
            prop_assert_eq!(serde_json::to_string(&all).unwrap(), serde_json::to_string(&texts).unwrap());
            all.append(&more.iter().collect());
            let plain = [texts, more].concat();
            prop_assert_eq!(all.len(), plain.len());
            prop_assert!(all.iter().eq(plain.iter().map(String::as_str)));
            prop_assert!((0..plain.len()).all(|at| all[at] == plain[at] && all.get(at) == Some(&plain[at])));
            prop_assert_eq!(all.get(plain.len()), None);
            prop_assert_eq!(all.bytes(), plain.concat().len());
            let half = plain.len() / 2;
            prop_assert!(all.together(half..plain.len()) == plain[half..].concat().as_bytes());
            let mut first = all.clone();
            let rest = first.split_off(half);
            prop_assert!(first.iter().eq(&plain[..half]) && rest.iter().eq(&plain[half..]));
            let again: Texts = serde_json::from_str(&serde_json::to_string(&plain).unwrap()).unwrap();
            prop_assert_eq!(again, all);
        }
    }
}
