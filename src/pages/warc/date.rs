//! Dates as crawls write them.

/// Seconds since 1970 of a `WARC-Date`: `20260101000000` (ARC and CDX style) or ISO 8601, from a year alone down to a
/// fraction of a second (dropped), followed by `Z`, an offset or nothing.
pub(super) fn unix_seconds(date: &str) -> Option<i64> {
    let date = date.trim();
    if date.len() == 14 && date.bytes().all(|byte| byte.is_ascii_digit()) {
        let part = |from, to| date[from..to].parse().ok();
        return seconds(part(0, 4)?, part(4, 6)?, part(6, 8)?, part(8, 10)?, part(10, 12)?, part(12, 14)?);
    }
    let (day, clock) = match date.split_once(['T', 't', ' ']) {
        Some((day, clock)) => (day, Some(clock)),
        None => (date, None),
    };
    let mut day = day.split('-');
    let year = day.next().filter(|year| year.len() == 4)?;
    let (month, of_month) = (day.next().unwrap_or("01"), day.next().unwrap_or("01"));
    if day.next().is_some() {
        return None;
    }
    let (clock, offset) = match clock {
        Some(clock) => split_offset(clock)?,
        None => ("00:00", 0),
    };
    let mut clock = clock.split(':');
    let (hour, minute, second) = (clock.next()?, clock.next()?, clock.next().unwrap_or("00"));
    let (second, fraction) = second.split_once(['.', ',']).unwrap_or((second, "0"));
    if clock.next().is_some() || fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let at = seconds(number(year)?, two(month)?, two(of_month)?, two(hour)?, two(minute)?, two(second)?)?;
    Some(at - offset)
}

/// Splits the zone off a time of day; its offset is in seconds east.
fn split_offset(clock: &str) -> Option<(&str, i64)> {
    if let Some(clock) = clock.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let Some(sign) = clock.find(['+', '-']) else { return Some((clock, 0)) };
    let (clock, zone) = clock.split_at(sign);
    let (hours, minutes) = zone[1..].split_once(':').or_else(|| zone[1..].split_at_checked(2))?;
    let offset = two(hours)? * 3600 + two(minutes)? * 60;
    Some((clock, if zone.starts_with('-') { -offset } else { offset }))
}

fn two(digits: &str) -> Option<i64> {
    if digits.len() == 2 { number(digits) } else { None }
}

fn number(digits: &str) -> Option<i64> {
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

fn seconds(year: i64, month: i64, day: i64, hour: i64, minute: i64, second: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let february = if leap { 29 } else { 28 };
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let length = *lengths.get(usize::try_from(month - 1).ok()?)?;
    // A leap second has second 60.
    if !(1..=length).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let before = year - 1;
    let leap_days = before / 4 - before / 100 + before / 400;
    let in_year: i64 = lengths[..month as usize - 1].iter().sum::<i64>() + day - 1;
    let days = before * 365 + leap_days + in_year - 719_162;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_either_style_are_seconds_since_1970() {
        // Expected values: `date -u -d ... +%s`.
        for (date, expected) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T23:59:59Z", 951_868_799),
            ("2026-01-01T00:00:00Z", 1_767_225_600),
            ("20260101000000", 1_767_225_600),
            ("2026-01-01T00:00:00.123456Z", 1_767_225_600),
            ("2026-01-01T00:00Z", 1_767_225_600),
            ("2026-01-01", 1_767_225_600),
            ("2026-01", 1_767_225_600),
            ("2026", 1_767_225_600),
            ("2026-01-01T01:00:00+01:00", 1_767_225_600),
            ("2025-12-31T22:30:00-0130", 1_767_225_600),
            ("1969-12-31T23:59:59Z", -1),
            ("2099-01-01T00:00:00Z", 4_070_908_800),
        ] {
            assert_eq!(unix_seconds(date), Some(expected), "{date}");
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for date in [
            "",
            "yesterday",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-01-00",
            "2026-1-1",
            "26-01-01",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00.Z",
            "20260101",
            "2026-01-01-01",
            "2026-01-01Tx",
            "2026-01-01T00:00:00+é1",
            "20261301000000",
            "+026-01-01",
            "Thu, 01 Jan 2026 00:00:00 GMT",
        ] {
            assert_eq!(unix_seconds(date), None, "{date}");
        }
    }
}
