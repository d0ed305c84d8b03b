//! Fetch times in the notations that crawls use, as seconds since 1970.

use chrono::{DateTime, NaiveDate, NaiveDateTime, Timelike};

/// Parses a date in the notations of crawls and corpora.
///
/// One is ISO 8601, from the year alone down to a fraction of a second (which is dropped), with `T`
/// or a space before the clock, followed by `Z`, an offset or nothing. The other is digits alone,
/// as in ARC, CDX and file names: `20190420`, `20190420100000`.
///
/// A date without an offset is UTC. A leap second counts as the second after it.
///
/// # Examples
/// ```
/// use webtwin_pages::fetch_time::parse;
///
/// assert_eq!(parse("1970-01-02T00:00:00Z"), Some(86_400));
/// assert_eq!(parse("19700102000000"), Some(86_400));
/// assert_eq!(parse("yesterday"), None);
/// ```
pub fn parse(text: &str) -> Option<i64> {
    let text = text.trim();
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let time = match text.len() {
        4 if digits => date(&format!("{text}-01-01"))?,
        8 if digits => NaiveDate::parse_from_str(text, "%Y%m%d").ok()?.and_hms_opt(0, 0, 0)?,
        14 if digits => NaiveDateTime::parse_from_str(text, "%Y%m%d%H%M%S").ok()?,
        7 => date(&format!("{text}-01"))?,
        10 => date(text)?,
        _ => return date_and_clock(text),
    };
    Some(seconds(&time.and_utc()))
}

fn date(text: &str) -> Option<NaiveDateTime> {
    is_written_out(text).then(|| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0))?
}

fn date_and_clock(text: &str) -> Option<i64> {
    let (day, clock) = text.split_at_checked(10)?;
    let clock = clock.strip_prefix(['T', 't', ' '])?.replace(',', ".");
    let clock = clock.strip_suffix(" UTC").or(clock.strip_suffix(['Z', 'z'])).unwrap_or(&clock);
    let has_offset = clock.contains(['+', '-']);
    let text = format!("{day}T{clock}{}", if has_offset { "" } else { "+00:00" });
    let formats = ["%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M%#z"];
    let time = formats.iter().find_map(|format| DateTime::parse_from_str(&text, format).ok())?;
    is_written_out(day).then(|| seconds(&time))
}

/// True if a date has four digits for its year and two for month and day. chrono accepts fewer.
fn is_written_out(date: &str) -> bool {
    let is_date_byte = |(at, byte): (usize, u8)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() };
    date.len() == 10 && date.bytes().enumerate().all(is_date_byte)
}

/// Returns the seconds since 1970. chrono represents a leap second as the second before it with
/// 1000 additional milliseconds.
fn seconds<Z: chrono::TimeZone>(time: &DateTime<Z>) -> i64 {
    time.timestamp() + i64::from(time.nanosecond() >= 1_000_000_000)
}

/// Converts a number of seconds, milliseconds, microseconds or nanoseconds to seconds. The unit is
/// inferred from the magnitude: seconds stay below that of milliseconds until the year 5138.
pub fn of_number(number: i64) -> i64 {
    match number.unsigned_abs() {
        0..100_000_000_000 => number,
        100_000_000_000..100_000_000_000_000 => number.div_euclid(1_000),
        100_000_000_000_000..100_000_000_000_000_000 => number.div_euclid(1_000_000),
        _ => number.div_euclid(1_000_000_000),
    }
}

/// Formats a time as `YYYY-MM-DDThh:mm:ssZ`. A time outside the range of chrono (262,000 years
/// either way) is formatted as the nearest end of that range.
pub fn format(time: i64) -> String {
    let furthest = if time < 0 { DateTime::<chrono::Utc>::MIN_UTC } else { DateTime::<chrono::Utc>::MAX_UTC };
    DateTime::from_timestamp(time, 0).unwrap_or(furthest).format("%Y-%m-%dT%H:%M:%SZ").to_string()
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
            ("2019-04-20T10:00:00.5+0130", Some(1_555_749_000)),
            ("2019-04-20t10:00:00,25z", Some(1_555_754_400)),
            ("2016-12-31T23:59:60Z", Some(1_483_228_800)),
            ("1969-12-31T23:59:59Z", Some(-1)),
            ("2099-01-01T00:00:00Z", Some(4_070_908_800)),
            ("2026-01", Some(1_767_225_600)),
            ("2026", Some(1_767_225_600)),
            ("2026-02-29T00:00:00Z", None),
            ("2026-01-00", None),
            ("2026-1-1", None),
            ("26-01-01", None),
            ("2026-01-01T00:00:00.Z", None),
            ("2026-01-01-01", None),
            ("2026-01-01Tx", None),
            ("2026-01-01T00:00:00+é1", None),
            ("20261301000000", None),
            ("+026-01-01", None),
            ("Thu, 01 Jan 2026 00:00:00 GMT", None),
            ("yesterday", None),
            ("", None),
            ("ä019-04-20", None),
        ] {
            assert_eq!(parse(text), time, "{text}");
        }
    }

    #[test]
    fn every_day_of_a_thousand_years_round_trips() {
        let mut expected = (1600, 1, 1);
        for day in -135_140..230_000i64 {
            let time = day * 86_400 + 3_661;
            assert_eq!(format(time), format!("{:04}-{:02}-{:02}T01:01:01Z", expected.0, expected.1, expected.2));
            assert_eq!(parse(&format(time)), Some(time));
            expected.2 += 1;
            if NaiveDate::from_ymd_opt(expected.0, expected.1, expected.2).is_none() {
                expected = if expected.1 == 12 { (expected.0 + 1, 1, 1) } else { (expected.0, expected.1 + 1, 1) };
            }
        }
    }

    #[test]
    fn units_of_times_follow_from_their_magnitude() {
        for number in [1_555_754_400, 1_555_754_400_123, 1_555_754_400_123_456, 1_555_754_400_123_456_789] {
            assert_eq!(of_number(number), 1_555_754_400);
        }
        assert_eq!(of_number(i64::MIN), i64::MIN.div_euclid(1_000_000_000));
    }
}
