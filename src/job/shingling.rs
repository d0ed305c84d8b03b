//! Definition of the shingles of a text. In settings: `words:5`, `tokens:5`, `chars:20`.

use std::fmt;
use std::str::FromStr;

/// Unit of a shingle, with the number of units.
///
/// # Examples
/// ```
/// use webtwin_job::Shingling;
///
/// assert_eq!("words:5".parse(), Ok(Shingling::Words(5)));
/// assert_eq!(Shingling::Chars(20).to_string(), "chars:20");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shingling {
    /// Words as in `text::words`: normalised and case-folded, without punctuation.
    Words(u32),
    /// Text between white space: normalised, with case preserved.
    Tokens(u32),
    /// Characters, normalised and case-folded. Each run of white space counts as one space.
    Chars(u32),
}

/// Maximum number of units of a shingle.
const MAX_UNITS: u32 = 1000;

impl FromStr for Shingling {
    type Err = String;

    fn from_str(text: &str) -> Result<Shingling, String> {
        let malformed = || {
            format!(
                "{text:?} is not a shingle, expected one such as words:5, tokens:5 or chars:20, of 1 to {MAX_UNITS} \
                 units"
            )
        };
        let (unit, count) = text.split_once(':').ok_or_else(malformed)?;
        let count = count.parse().ok().filter(|count| (1..=MAX_UNITS).contains(count)).ok_or_else(malformed)?;
        match unit {
            "words" => Ok(Shingling::Words(count)),
            "tokens" => Ok(Shingling::Tokens(count)),
            "chars" => Ok(Shingling::Chars(count)),
            _ => Err(malformed()),
        }
    }
}

impl fmt::Display for Shingling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shingling::Words(count) => write!(f, "words:{count}"),
            Shingling::Tokens(count) => write!(f, "tokens:{count}"),
            Shingling::Chars(count) => write!(f, "chars:{count}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shingles_are_parsed_as_written() {
        for text in ["words:5", "tokens:1", "chars:1000"] {
            assert_eq!(text.parse::<Shingling>().unwrap().to_string(), text);
        }
        for malformed in ["", "words", "words:0", "words:1001", "words:x", "lines:2"] {
            assert!(malformed.parse::<Shingling>().is_err(), "{malformed}");
        }
    }
}
