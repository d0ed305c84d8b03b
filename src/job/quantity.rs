//! Numbers with units, as used in settings and on the command line.

/// Unit prefixes in ascending order. The base is 1000 for K, M, G, T and 1024 for Ki, Mi, Gi, Ti.
const PREFIXES: [&str; 4] = ["k", "m", "g", "t"];

/// Parses a whole number with an optional exponent, fraction, unit prefix and B: 1e9, 8G, 512MB,
/// 10GiB.
///
/// # Errors
/// Returns a message with examples if the text is not such a number.
///
/// # Examples
/// ```
/// use webtwin_job::quantity;
///
/// assert_eq!(quantity("512MB"), Ok(512_000_000));
/// assert_eq!(quantity("10GiB"), Ok(10 << 30));
/// assert!(quantity("-1").is_err());
/// ```
pub fn quantity(text: &str) -> Result<u64, String> {
    let malformed = || format!("{text:?} is not a number; write one such as 1000000, 1e6, 8G or 512MB");
    let lower = text.trim().to_ascii_lowercase();
    let lower = lower.strip_suffix('b').unwrap_or(&lower);
    if let Ok(number) = lower.parse() {
        return Ok(number);
    }
    let (lower, base) = lower.strip_suffix('i').map_or((lower, 1000f64), |rest| (rest, 1024f64));
    let prefix = (1..).zip(PREFIXES).find_map(|(power, prefix)| Some((power, lower.strip_suffix(prefix)?)));
    let (power, digits) = prefix.unwrap_or((0, lower));
    // `parse` accepts "inf" and "nan" as numbers.
    let plain = digits.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    let number = digits.parse::<f64>().ok().filter(|_| plain && (power > 0 || base == 1000.0)).ok_or_else(malformed)?;
    let number = number * base.powi(power);
    if number.fract() == 0.0 && (0.0..1.8e19).contains(&number) { Ok(number as u64) } else { Err(malformed()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_in_all_forms() {
        let forms = [
            ("0", 0),
            ("1000000", 1_000_000),
            ("18446744073709551615", u64::MAX),
            ("1e9", 1_000_000_000),
            ("1.5e3", 1500),
            ("8G", 8_000_000_000),
            ("512MB", 512_000_000),
            ("512mb", 512_000_000),
            ("0.5k", 500),
            ("10GiB", 10 << 30),
            ("2Ki", 2048),
            ("64 ", 64),
            ("7B", 7),
        ];
        for (text, number) in forms {
            assert_eq!(quantity(text), Ok(number), "{text}");
        }
        for malformed in ["", "x", "1.5", "-1", "inf", "nan", "1e30", "G", "8GG", "8i", "1 000", "0x10"] {
            assert!(quantity(malformed).is_err(), "{malformed}");
        }
    }
}
