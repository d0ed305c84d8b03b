//! Fetch times in the forms that crawls write, as seconds since 1970.

/// Reads a date: `2019-04-20`, `2019-04-20T10:00:00Z` (also with a space, a fraction, an offset), `20190420100000`,
/// `20190420`.
///
/// Without an offset it is UTC. A leap second counts as the second after it.
pub fn parse(text: &str) -> Option<i64> {
    let text = text.trim();
    let bytes = text.as_bytes();
    if bytes.iter().all(u8::is_ascii_digit) {
        return match bytes.len() {
            8 => civil(digits(&bytes[..4])?, digits(&bytes[4..6])?, digits(&bytes[6..8])?, [0, 0, 0]),
            14 => civil(
                digits(&bytes[..4])?,
                digits(&bytes[4..6])?,
                digits(&bytes[6..8])?,
                [digits(&bytes[8..10])?, digits(&bytes[10..12])?, digits(&bytes[12..])?],
            ),
            _ => None,
        };
    }
    if bytes.len() < 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let (year, month, day) = (digits(&bytes[..4])?, digits(&bytes[5..7])?, digits(&bytes[8..10])?);
    let Some((&separator, clock)) = bytes[10..].split_first() else {
        return civil(year, month, day, [0, 0, 0]);
    };
    if !matches!(separator, b'T' | b't' | b' ') || clock.len() < 5 || clock[2] != b':' {
        return None;
    }
    let (hour, minute) = (digits(&clock[..2])?, digits(&clock[3..5])?);
    let (mut second, mut rest) = (0, &clock[5..]);
    if let [b':', seconds @ ..] = rest {
        second = digits(seconds.get(..2)?)?;
        rest = &seconds[2..];
        if let [b'.' | b',', fraction @ ..] = rest {
            let length = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
            rest = &fraction[length..];
        }
    }
    Some(civil(year, month, day, [hour, minute, second])? - offset(rest)?)
}

/// Reads a number of seconds, milliseconds, microseconds or nanoseconds, distinguished by size: seconds reach the year
/// 5138 before they look like milliseconds.
pub fn of_number(number: i64) -> i64 {
    match number.unsigned_abs() {
        0..100_000_000_000 => number,
        100_000_000_000..100_000_000_000_000 => number.div_euclid(1_000),
        100_000_000_000_000..100_000_000_000_000_000 => number.div_euclid(1_000_000),
        _ => number.div_euclid(1_000_000_000),
    }
}

/// Writes a time as `YYYY-MM-DDThh:mm:ssZ`.
pub fn format(time: i64) -> String {
    let (days, second) = (time.div_euclid(86_400), time.rem_euclid(86_400));
    // Howard Hinnant's civil_from_days, with eras of 400 years that begin on the first of March.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + 400 * era + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

fn digits(bytes: &[u8]) -> Option<i64> {
    bytes.iter().try_fold(0, |number, byte| byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0')))
}

/// Seconds east of UTC.
fn offset(text: &[u8]) -> Option<i64> {
    let (sign, hours, minutes) = match text {
        b"" | b"Z" | b"z" | b" UTC" => return Some(0),
        [sign, hours @ ..] if hours.len() == 2 => (*sign, digits(hours)?, 0),
        [sign, rest @ ..] if rest.len() == 4 => (*sign, digits(&rest[..2])?, digits(&rest[2..])?),
        [sign, rest @ ..] if rest.len() == 5 && rest[2] == b':' => (*sign, digits(&rest[..2])?, digits(&rest[3..])?),
        _ => return None,
    };
    let seconds = hours * 3600 + minutes * 60;
    match sign {
        b'+' => Some(seconds),
        b'-' => Some(-seconds),
        _ => None,
    }
}

fn civil(year: i64, month: i64, day: i64, [hour, minute, second]: [i64; 3]) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // The inverse of the calculation in `format`.
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some((era * 146_097 + day_of_era - 719_468) * 86_400 + hour * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_crawls_are_read() {
        for (text, time) in [
            ("1970-01-01", Some(0)),
            ("2019-04-20T10:00:00Z", Some(1_555_754_400)),
            ("2019-04-20 10:00:00", Some(1_555_754_400)),
            ("2019-04-20T10:00Z", Some(1_555_754_400)),
            ("2019-04-20T10:00:00.123456Z", Some(1_555_754_400)),
            ("2019-04-20T12:00:00+02:00", Some(1_555_754_400)),
            ("2019-04-20T05:30:00-0430", Some(1_555_754_400)),
            ("2019-04-20 10:00:00 UTC", Some(1_555_754_400)),
            ("20190420100000", Some(1_555_754_400)),
            ("20190420", Some(1_555_718_400)),
            ("2000-02-29", Some(951_782_400)),
            ("1900-02-29", None),
            ("2019-13-01", None),
            ("2019-04-31", None),
            ("2019-04-20T24:00:00Z", None),
            ("2019-04-20Tnoon", None),
            ("2019-04-20T10:00:00?", None),
            ("yesterday", None),
            ("", None),
            ("2019", None),
            ("ä019-04-20", None),
        ] {
            assert_eq!(parse(text), time, "{text}");
        }
    }

    #[test]
    fn every_day_of_a_thousand_years_is_written_and_read_alike() {
        let mut expected = (1600, 1, 1);
        for day in -135_140..230_000i64 {
            let time = day * 86_400 + 3_661;
            assert_eq!(format(time), format!("{:04}-{:02}-{:02}T01:01:01Z", expected.0, expected.1, expected.2));
            assert_eq!(parse(&format(time)), Some(time));
            expected.2 += 1;
            if civil(expected.0, expected.1, expected.2, [0, 0, 0]).is_none() {
                expected = if expected.1 == 12 { (expected.0 + 1, 1, 1) } else { (expected.0, expected.1 + 1, 1) };
            }
        }
    }

    #[test]
    fn units_of_numbers_are_told_by_their_size() {
        for number in [1_555_754_400, 1_555_754_400_123, 1_555_754_400_123_456, 1_555_754_400_123_456_789] {
            assert_eq!(of_number(number), 1_555_754_400);
        }
        assert_eq!(of_number(i64::MIN), i64::MIN.div_euclid(1_000_000_000));
    }
}
