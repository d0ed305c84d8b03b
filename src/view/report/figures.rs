//! Formatting of figures, for reports and the command line. Memory and disk limits are powers of
//! two and are formatted by [`webtwin_base::error::size`]; a formatting library would need as many
//! lines of configuration.

/// Formats a count with commas: 105,623.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a count with its noun in singular or plural.
pub fn counted(number: u64, singular: &str, plural: &str) -> String {
    format!("{} {}", count(number), if number == 1 { singular } else { plural })
}

/// Formats a fraction in per cent. A non-zero fraction is never rounded to 0 %, nor an incomplete
/// one to 100 %.
pub fn share(part: u64, total: u64) -> String {
    if part == 0 || total == 0 {
        return "0 %".into();
    }
    match (u128::from(part) * 1000 / u128::from(total) + 5) / 10 {
        0 => "<1 %".into(),
        100.. if part < total => ">99 %".into(),
        percent => format!("{percent} %"),
    }
}

/// Formats a size in bytes to three digits.
pub fn bytes(bytes: u64) -> String {
    let (mut number, mut unit) = (bytes as f64, "B");
    for larger in ["kB", "MB", "GB", "TB", "PB"] {
        if number >= 999.5 {
            (number, unit) = (number / 1000.0, larger);
        }
    }
    let decimals = match number {
        _ if unit == "B" => 0,
        number if number >= 99.95 => 0,
        number if number >= 9.995 => 1,
        _ => 2,
    };
    format!("{number:.decimals$} {unit}")
}

/// Returns `part / whole`, from 0 to 1.
pub fn part(part: u64, total: u64) -> f64 {
    if total == 0 { 0.0 } else { part as f64 / total as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_rounded_but_never_to_zero() {
        assert_eq!([0, 7, 1000, 105_623, 1_000_000].map(count), ["0", "7", "1,000", "105,623", "1,000,000"]);
        assert_eq!(share(1, 1000), "<1 %");
        assert_eq!(share(999, 1000), ">99 %");
        assert_eq!(
            [share(0, 0), share(5, 5), share(545, 1000), share(u64::MAX, u64::MAX)],
            ["0 %", "100 %", "55 %", "100 %"]
        );
        assert_eq!([0, 999, 1000, 12_345, 24_000].map(bytes), ["0 B", "999 B", "1.00 kB", "12.3 kB", "24.0 kB"]);
        assert_eq!([3_441_170_732, 3_670_000_000, 999_600_000].map(bytes), ["3.44 GB", "3.67 GB", "1.00 GB"]);
        assert_eq!(counted(1, "page", "pages"), "1 page");
    }
}
