//! Times in the notations of other programs.
//!
//! A time without a zone is UTC unless an offset is given; the reader notes it. `05/06/2020` is
//! ambiguous: the month comes first unless it cannot, or unless the order is given.

/// Nanoseconds in a second.
const SECOND: i64 = 1_000_000_000;

/// The order of day and month in a date that ends with the year.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// `07/27/2010`
    #[default]
    Month,
    /// `27/07/2010`
    Day,
}

/// The interpretation of an input's times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Clock {
    /// Order in dates.
    pub order: Order,
    /// Offset from UTC of times without a zone, in seconds.
    pub offset: i64,
}

impl Clock {
    /// Parses a date with a time, or seconds or milliseconds since 1970. Returns nanoseconds since
    /// 1970.
    #[must_use]
    pub fn moment(self, text: &str) -> Option<i64> {
        if let Some(moment) = self.usual(text.as_bytes()) {
            return Some(moment);
        }
        let text = text.trim().trim_matches('"').trim();
        if let Some(moment) = since_1970(text) {
            return Some(moment);
        }
        if let Some(moment) = self.as_ctime(text) {
            return Some(moment);
        }
        let (date, rest) = match text.find(['T', ' ', '\u{a0}']) {
            Some(at) => (&text[..at], text[at..].trim_start_matches(['T', ' ', '\u{a0}'])),
            None => return None,
        };
        let (time, offset) = time_of(rest)?;
        let offset = offset.unwrap_or(self.offset);
        self.date(date)?.checked_add(time)?.checked_sub(offset.checked_mul(SECOND)?)
    }

    /// Parses the most common form: `2015-01-03 16:40:43.766337`, also with a `T` or ` UTC`.
    fn usual(self, text: &[u8]) -> Option<i64> {
        let (main, mut rest) = text.split_at_checked(19)?;
        let number = |from: usize, to: usize| digits(main.get(from..to)?);
        let has = |at: usize, byte: u8| main.get(at) == Some(&byte);
        let is_split = has(4, b'-') && has(7, b'-') && has(13, b':') && has(16, b':');
        if !is_split || !(has(10, b' ') || has(10, b'T')) {
            return None;
        }
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let mut nanos = 0;
        if let Some(fraction) = rest.strip_prefix(b".") {
            let end = fraction.iter().position(|byte| !byte.is_ascii_digit());
            let (own, behind) = fraction.split_at(end.unwrap_or(fraction.len()));
            let missing = u32::try_from(9_usize.checked_sub(own.len())?).ok()?;
            nanos = digits(own)? * 10_i64.pow(missing);
            rest = behind;
        }
        let offset = match rest {
            b"" => self.offset,
            b"Z" | b" UTC" => 0,
            _ => return None,
        };
        let days = days(year, month, day)?;
        let seconds = (days * 24 + hour) * 3600 + minute * 60 + second;
        seconds.checked_sub(offset)?.checked_mul(SECOND)?.checked_add(nanos)
    }

    /// Parses a date. Returns the nanoseconds from 1970 to its beginning, in the date's own zone.
    #[must_use]
    pub fn date(self, text: &str) -> Option<i64> {
        let text = text.trim();
        let separator = text.chars().find(|c| !c.is_ascii_digit())?;
        let mut parts = text.split([separator, '月', '日']);
        let mut part = || -> Option<(i16, usize)> {
            let part = parts.next()?;
            Some((part.parse().ok()?, part.len()))
        };
        let (first, second, third) = (part()?, part()?, part()?);
        let (year, month, day) = if first.1 == 4 {
            (first, second.0, third.0)
        } else if separator == '.' || self.order == Order::Day || first.0 > 12 {
            (third, second.0, first.0)
        } else {
            (third, first.0, second.0)
        };
        let year = if year.1 == 2 { 2000 + year.0 } else { year.0 };
        days(year.into(), month.into(), day.into())?.checked_mul(86_400 * SECOND)
    }

    /// Parses a time in the format of `ctime`.
    fn as_ctime(self, text: &str) -> Option<i64> {
        const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
        let words: Vec<_> = text.split_whitespace().collect();
        let (month, day, time, zone, year) = match words[..] {
            [_, month, day, time, year] => (month, day, time, None, year),
            [_, month, day, time, zone, year] => (month, day, time, Some(zone), year),
            _ => return None,
        };
        let month = MONTHS.find(month).filter(|at| month.len() == 3 && at % 3 == 0)? / 3 + 1;
        let date = self.date(&format!("{year}-{month}-{day}"))?;
        let offset = zone.and_then(offset_of).unwrap_or(self.offset);
        Some(date + time_of(time)?.0 - offset * SECOND)
    }
}

/// Parses a time of day. Returns the nanoseconds since midnight, and its offset from UTC in
/// seconds if it has one.
#[must_use]
pub fn time_of(text: &str) -> Option<(i64, Option<i64>)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, ':' | '.' | ',')));
    let (time, mut rest) = text.split_at(end.unwrap_or(text.len()));
    let mut parts = time.split(':');
    let hour: i8 = parts.next()?.parse().ok()?;
    let minute: i8 = parts.next()?.parse().ok()?;
    let second = parts.next().unwrap_or("0");
    if parts.next().is_some() {
        return None;
    }
    let (second, fraction) = second.split_once(['.', ',']).unwrap_or((second, ""));
    let second: i8 = second.parse().ok()?;
    // Digits beyond nanoseconds are dropped.
    let own = &fraction.as_bytes()[..fraction.len().min(9)];
    let missing = u32::try_from(9 - own.len()).ok()?;
    let nanos = if own.is_empty() { 0 } else { digits(own)? * 10_i64.pow(missing) };
    rest = rest.trim_start_matches(['\u{a0}', '\u{202f}', ' ']);
    let half = |word: &str| rest.get(..2).is_some_and(|r| r.eq_ignore_ascii_case(word));
    let hour = match (half("PM"), half("AM")) {
        (true, _) if hour < 12 => hour + 12,
        (_, true) if hour == 12 => 0,
        _ => hour,
    };
    if half("PM") || half("AM") {
        rest = rest[2..].trim();
    }
    let offset = if rest.is_empty() { None } else { Some(offset_of(rest)?) };
    let is_time = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second);
    let seconds = (i64::from(hour) * 60 + i64::from(minute)) * 60 + i64::from(second);
    is_time.then_some((seconds * SECOND + nanos, offset))
}

/// Parses a number of at most 18 digits and nothing else.
fn digits(text: &[u8]) -> Option<i64> {
    if text.is_empty() || text.len() > 18 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
}

/// Returns the days from 1970 to a date, if the date exists.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => return None,
    };
    if !(1..=longest).contains(&day) || !(0..=9999).contains(&year) {
        return None;
    }
    // Years begin in March, so that the leap day is their last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    Some(year * 365 + leap + of_year - 719_468)
}

/// Parses `Z`, `UTC`, `+01:00`, `-0700` or `+01` to an offset in seconds.
#[must_use]
pub fn offset_of(text: &str) -> Option<i64> {
    if ["Z", "UTC", "GMT"].iter().any(|zone| text.eq_ignore_ascii_case(zone)) {
        return Some(0);
    }
    let sign = match text.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let digits: String = text[1..].chars().filter(char::is_ascii_digit).collect();
    let (hours, minutes) = match digits.len() {
        1 | 2 => (&digits[..], "0"),
        4 => digits.split_at(2),
        _ => return None,
    };
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    Some(sign * (hours * 3600 + minutes * 60))
}

/// Parses seconds since 1970 with decimals, or milliseconds, microseconds, nanoseconds without.
fn since_1970(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let number: i64 = whole.parse().ok()?;
    match whole.len() {
        9 | 10 => {
            let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
            number.checked_mul(SECOND)?.checked_add(digits.parse().ok()?)
        }
        13 => number.checked_mul(1_000_000),
        16 => number.checked_mul(1000),
        19 => Some(number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let nanos = Clock::default().moment(text);
        let told = nanos.and_then(|nanos| jiff::Timestamp::from_nanosecond(nanos.into()).ok());
        assert_eq!(told.map(|at| at.to_string()).as_deref(), Some(expect), "{text}");
    }

    #[test]
    fn times_in_common_notations() {
        check("2015-01-03 16:40:43.766337", "2015-01-03T16:40:43.766337Z");
        check("2024-03-14T17:53:14-0700", "2024-03-15T00:53:14Z");
        check("2021-05-15 18:21:06.6133333", "2021-05-15T18:21:06.6133333Z");
        check("2019-04-18 13:20:19 UTC", "2019-04-18T13:20:19Z");
        check("02/25/2015 05:48:52 PM", "2015-02-25T17:48:52Z");
        check("1/7/2020 12:00:39 AM", "2020-01-07T00:00:39Z");
        check("1/7/2020 12:00:39\u{202f}PM", "2020-01-07T12:00:39Z");
        check("03/14/19 00:42:24", "2019-03-14T00:42:24Z");
        check("27/07/10 00:42", "2010-07-27T00:42:00Z");
        check("25.07.2013 10:11:12,5", "2013-07-25T10:11:12.5Z");
        check("2021年04月16日 19:03:38", "2021-04-16T19:03:38Z");
        check("2021/04/16 19:03:38 UTC", "2021-04-16T19:03:38Z");
        check("Thu Jun 30 22:43:39 UTC 2022", "2022-06-30T22:43:39Z");
        check("Thu Jun 3 22:43:39 2022", "2022-06-03T22:43:39Z");
        check("1598650497", "2020-08-28T21:34:57Z");
        check("1598650497.25", "2020-08-28T21:34:57.25Z");
        check("1598650497250", "2020-08-28T21:34:57.25Z");
    }

    #[test]
    fn days_match_the_calendar() {
        use jiff::civil::Date;
        let start = Date::constant(1970, 1, 1);
        for year in [0_i16, 1, 1582, 1600, 1899, 1900, 1969, 1970, 2000, 2023, 2024, 2100, 9999] {
            for month in 0..=13_i8 {
                for day in 0..=32_i8 {
                    let date = Date::new(year, month, day).ok();
                    let expect =
                        date.map(|date| i64::from(date.since(start).expect("near").get_days()));
                    let own = days(year.into(), month.into(), day.into());
                    assert_eq!(own, expect, "{year}-{month}-{day}");
                }
            }
        }
    }

    #[test]
    fn invalid_times() {
        for text in [
            "",
            "sda",
            "12",
            "2020-13-01 00:00:00",
            "25:00:00",
            "2020-01-01",
            "1.5.x",
            "9020-01-01 00:00:00",
            "2020-02-30 00:00:00",
            "2020-01-01 00:00:60",
        ] {
            assert_eq!(Clock::default().moment(text), None, "{text}");
        }
        let german = Clock { order: Order::Day, offset: 3600 };
        let english = Clock::default();
        let (a, b) = (german.moment("05/06/2020 01:00:00"), english.moment("06/05/2020 00:00:00"));
        assert_eq!((a, a.is_some()), (b, true));
    }
}
