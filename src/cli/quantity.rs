//! Parsing and formatting of numbers: 1e9, 8G, 512MB, 10GiB.

pub(super) use webtwin_job::quantity;

/// Parses a rate in bytes a second: 10Gbit, 100Mbit, 500MB or bytes.
pub(super) fn rate(text: &str) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    match lower.strip_suffix("bit") {
        Some(bits) => quantity(bits).map(|bits| bits / 8),
        None => quantity(&lower),
    }
}

/// Parses a fraction above 0 and below 1.
pub(super) fn part(text: &str) -> Result<f64, String> {
    let part = text.parse().ok().filter(|part| (f64::MIN_POSITIVE..1.0).contains(part));
    part.ok_or_else(|| "must be a fraction above 0 and below 1, such as 0.1".into())
}

/// Formats nanoseconds to three digits.
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

/// Formats a number to three digits.
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
    fn numbers_are_printed_with_three_digits() {
        let message = [8.25, 1510.0, 8.3e10, 3e12, 2.7e13].map(nanoseconds);
        assert_eq!(message, ["8.25 ns", "1.51 us", "83.0 s", "50.0 min", "7.50 h"]);
        assert!(part("0.1") == Ok(0.1) && ["0", "1", "x", "NaN"].iter().all(|wrong| part(wrong).is_err()));
        assert_eq!([0.0, 0.001, 122_070.3].map(digits), ["0", "<0.01", "122070"]);
    }
}
