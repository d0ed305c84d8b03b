//! Reads and writes numbers in the forms people use: 1e9, 8G, 512MB, 10GiB.

/// Powers of a unit's prefix: 1000 for K, M, G, T; 1024 for Ki, Mi, Gi, Ti.
const PREFIXES: [&str; 4] = ["k", "m", "g", "t"];

/// Reads a whole number with an optional exponent, fraction, prefix and B.
pub(super) fn quantity(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no number such as 1000000, 1e6, 8G or 512MB");
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
    let number = digits.parse::<f64>().ok().filter(|_| plain && (power > 0 || base == 1000.0)).ok_or_else(wrong)?;
    let number = number * base.powi(power);
    if number.fract() == 0.0 && (0.0..1.8e19).contains(&number) { Ok(number as u64) } else { Err(wrong()) }
}

/// Bytes for people, to three digits.
pub(super) fn bytes(bytes: u64) -> String {
    let mut number = bytes as f64;
    let mut unit = "B";
    for larger in ["kB", "MB", "GB", "TB"] {
        if number >= 999.5 {
            (number, unit) = (number / 1000.0, larger);
        }
    }
    format!("{} {unit}", digits(number))
}

/// Nanoseconds for people, to three digits.
pub(super) fn nanoseconds(ns: f64) -> String {
    match ns {
        ns if ns < 999.5 => format!("{} ns", digits(ns)),
        ns if ns < 999.5e3 => format!("{} us", digits(ns / 1e3)),
        ns if ns < 999.5e6 => format!("{} ms", digits(ns / 1e6)),
        ns if ns < 120e9 => format!("{} s", digits(ns / 1e9)),
        ns if ns < 7200e9 => format!("{} min", digits(ns / 60e9)),
        ns => format!("{} h", digits(ns / 3600e9)),
    }
}

/// A number to three digits.
pub(super) fn digits(number: f64) -> String {
    let decimals = match number {
        number if number >= 99.95 || number == 0.0 => 0,
        number if number >= 9.995 => 1,
        number if number >= 0.01 => 2,
        _ => return "<0.01".into(),
    };
    format!("{number:.decimals$}")
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
        for wrong in ["", "x", "1.5", "-1", "inf", "nan", "1e30", "G", "8GG", "8i", "1 000", "0x10"] {
            assert!(quantity(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_are_told_to_three_digits() {
        let told = [0, 999, 24_000, 3_670_000_000, 999_600_000].map(bytes);
        assert_eq!(told, ["0 B", "999 B", "24.0 kB", "3.67 GB", "1.00 GB"]);
        let told = [8.25, 1510.0, 8.3e10, 3e12, 2.7e13].map(nanoseconds);
        assert_eq!(told, ["8.25 ns", "1.51 us", "83.0 s", "50.0 min", "7.50 h"]);
        assert_eq!([0.0, 0.001, 122_070.3].map(digits), ["0", "<0.01", "122070"]);
    }
}
