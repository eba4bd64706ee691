//! A time of an observation as users write it: `first`, `90s`, `14:05`, `2026-11-22
//! 14:05:00+01:00`.

use crate::moment::{Clock, time_of};
use jiff::Timestamp;
use jiff::tz::Offset;
use weir_units::{Instant, Span};

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

/// A time that a user asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// The first sample.
    First,
    /// The last sample.
    Last,
    /// A distance from the beginning.
    After(Span),
    /// A moment in nanoseconds since 1970.
    Moment(i64),
    /// Nanoseconds from midnight, by a clock with this offset from UTC in seconds.
    OfDay(i64, i64),
}

/// Hours of each day, for example those of the night.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hours {
    /// Nanoseconds from midnight UTC.
    from: i64,
    to: i64,
}

impl Hours {
    /// Parses hours as in `22:00-06:00`, in UTC, or with an offset at the end: `22:00-06:00+01:00`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once('-')?;
        let (from, (to, offset)) = (time_of(from)?, time_of(to)?);
        let ahead = offset.unwrap_or(0) * SECOND;
        let of_day = |nanos: i64| (nanos - ahead).rem_euclid(DAY);
        let own = Self { from: of_day(from.0), to: of_day(to) };
        (from.1.is_none() && own.from != own.to).then_some(own)
    }

    /// Returns whether a moment, in nanoseconds since 1970, is within these hours. The first moment
    /// is not, and the last one is, as rates are those of the time before.
    #[must_use]
    pub fn contains(self, unix_ns: i64) -> bool {
        let after = (unix_ns.rem_euclid(DAY) - self.from).rem_euclid(DAY);
        after > 0 && after <= (self.to - self.from).rem_euclid(DAY)
    }
}

/// The time span of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The moment that times count from, in nanoseconds since 1970, if known.
    pub start_unix_ns: Option<i64>,
    /// Time of the first sample.
    pub first: Instant,
    /// Time of the last sample.
    pub last: Instant,
}

/// The reason why a time does not exist in an observation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WhenError {
    /// The text is no time.
    #[error(
        "{text:?} is not a time; use first, last, a time from the start like 90s, a time of day \
         like 14:05, or a date and time like \"2026-11-22 14:05:00\""
    )]
    NoTime {
        /// The text.
        text: String,
    },
    /// The observation has no dates.
    #[error("the observation has no dates; use first, last, or a time from the start like 90s")]
    NoDates,
    /// It is before or after all samples.
    #[error("no sample at that time: the samples are from {first} to {last}")]
    Outside {
        /// First sample.
        first: String,
        /// Last sample.
        last: String,
    },
    /// A time of day that occurs on several days.
    #[error(
        "this time occurs on several days, since the samples are from {first} to {last}; add the \
         date"
    )]
    Ambiguous {
        /// First occurrence.
        first: String,
        /// Last occurrence.
        last: String,
    },
}

impl When {
    /// Parses a time. One without a zone is a time of `clock`.
    ///
    /// # Errors
    ///
    /// [`WhenError::NoTime`]
    pub fn parse(text: &str, clock: Clock) -> Result<Self, WhenError> {
        let text = text.trim();
        match text {
            "first" => return Ok(Self::First),
            "last" => return Ok(Self::Last),
            _ => {}
        }
        if let Ok(span) = text.parse() {
            return Ok(Self::After(span));
        }
        if let Some((nanos, offset)) = time_of(text) {
            return Ok(Self::OfDay(nanos, offset.unwrap_or(clock.offset)));
        }
        let midnight = || clock.date(text)?.checked_sub(clock.offset.checked_mul(SECOND)?);
        let moment = clock.moment(text).or_else(midnight);
        moment.map(Self::Moment).ok_or_else(|| WhenError::NoTime { text: text.to_owned() })
    }

    /// Returns the instant in an observation. Error messages use the clock with this `offset`.
    ///
    /// # Errors
    ///
    /// [`WhenError`] if there is no such time, or more than one.
    pub fn resolve(self, extent: &Extent, offset: i64) -> Result<Instant, WhenError> {
        let (first, last) =
            (extent.written(extent.first, offset), extent.written(extent.last, offset));
        let at = match self {
            Self::First => extent.first,
            Self::Last => extent.last,
            Self::After(span) => Instant::ZERO + span,
            Self::Moment(moment) => {
                let start = extent.start_unix_ns.ok_or(WhenError::NoDates)?;
                let Ok(nanos) = u64::try_from(moment.saturating_sub(start)) else {
                    return Err(WhenError::Outside { first, last });
                };
                Instant::from_nanos(nanos)
            }
            Self::OfDay(nanos, ahead) => {
                let start = extent.start_unix_ns.ok_or(WhenError::NoDates)?;
                let of_day = nanos - ahead * SECOND;
                let wall = |at: Instant| start.saturating_add_unsigned(at.nanos());
                let earliest = wall(extent.first);
                let until = earliest.saturating_add((of_day - earliest).rem_euclid(DAY));
                if until.saturating_add(DAY) <= wall(extent.last) {
                    return Err(WhenError::Ambiguous { first, last });
                }
                Instant::from_nanos(u64::try_from(until.saturating_sub(start)).unwrap_or(0))
            }
        };
        if (extent.first..=extent.last).contains(&at) {
            Ok(at)
        } else {
            Err(WhenError::Outside { first, last })
        }
    }
}

impl Extent {
    /// Formats a time of the observation: as a date if it has dates, else as seconds from the
    /// beginning.
    #[must_use]
    pub fn written(&self, at: Instant, offset: i64) -> String {
        match self.start_unix_ns {
            Some(start) => written(start.saturating_add_unsigned(at.nanos()), offset),
            None => (at - Instant::ZERO).to_string(),
        }
    }
}

/// Formats the zone of a clock with this offset in seconds: `Z`, or `+01:00`.
#[must_use]
pub fn zone(offset: i64) -> String {
    if offset == 0 {
        return "Z".to_owned();
    }
    let (sign, seconds) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs());
    format!("{sign}{:02}:{:02}", seconds / 3600, seconds / 60 % 60)
}

/// Formats a moment by a clock with this offset in seconds.
#[must_use]
pub fn written(unix_ns: i64, offset: i64) -> String {
    let moment = Timestamp::from_nanosecond(unix_ns.into());
    let zone_of = i32::try_from(offset).ok().and_then(|ahead| Offset::from_seconds(ahead).ok());
    let zone_of = zone_of.unwrap_or(Offset::UTC);
    let Ok(moment) = moment else { return format!("{unix_ns} ns since 1970") };
    let local = zone_of.to_datetime(moment);
    let (date, time) = (local.date(), local.time());
    let fraction = match time.subsec_nanosecond() / 1_000_000 {
        0 => String::new(),
        ms => format!(".{ms:03}"),
    };
    let (hour, minute, second) = (time.hour(), time.minute(), time.second());
    format!("{date} {hour:02}:{minute:02}:{second:02}{fraction}{}", zone(zone_of.seconds().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_end_on_the_next_day_and_have_an_offset() {
        let hour = |n: i64| n * 3_600 * SECOND;
        let night = Hours::parse("22:00-06:00").expect("hours");
        let check = |own: Hours, at: i64, expect: bool| {
            assert_eq!(own.contains(hour(at)), expect, "{own:?} {at}");
        };
        for (at, expect) in
            [(22, false), (23, true), (24, true), (30, true), (31, false), (47, true)]
        {
            check(night, at, expect);
        }
        // A damaged file may have any time: here 00:12 and 23:47.
        assert!(night.contains(i64::MIN) && night.contains(i64::MAX));
        let ahead = Hours::parse("22:00-06:00+02:00").expect("hours");
        for (at, expect) in [(20, false), (21, true), (28, true), (29, false)] {
            check(ahead, at, expect);
        }
        for wrong in ["", "22:00", "22:00-22:00", "25:00-06:00", "22:00-6 o'clock", "night"] {
            assert_eq!(Hours::parse(wrong), None, "{wrong}");
        }
    }

    /// Returns the extent of samples from 10 s to two hours after 2026-11-22 23:00 UTC.
    fn extent() -> Extent {
        let first = Instant::ZERO + Span::from_secs(10);
        let last = Instant::ZERO + Span::from_secs(7200);
        Extent { start_unix_ns: Some(1_795_388_400 * SECOND), first, last }
    }

    #[track_caller]
    fn check(text: &str, extent: &Extent, expect: Result<u64, &str>) {
        let clock = Clock { offset: 3600, ..Clock::default() };
        let at = When::parse(text, clock).and_then(|when| when.resolve(extent, 3600));
        let at = at.map(|at| at.nanos() / 1_000_000_000).map_err(|error| error.to_string());
        assert_eq!(at, expect.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn times_of_options() {
        let own = extent();
        check("first", &own, Ok(10));
        check("last", &own, Ok(7200));
        check("90s", &own, Ok(90));
        check("1h", &own, Ok(3600));
        // By a clock ahead of UTC it begins at midnight.
        check("00:30", &own, Ok(1800));
        check("23:30Z", &own, Ok(1800));
        check("2026-11-23 00:30:00", &own, Ok(1800));
        check("2026-11-22T23:30:00Z", &own, Ok(1800));
        check("2026-11-22T18:30:00-05:00", &own, Ok(1800));
    }

    #[test]
    fn invalid_times_of_options() {
        let own = extent();
        let outside = "no sample at that time: the samples are from 2026-11-23 00:00:10+01:00 to \
                       2026-11-23 02:00:00+01:00";
        for text in ["3h", "5s", "02:30", "2026-11-22 10:00:00", "2026-11-23"] {
            check(text, &own, Err(outside));
        }
        let no_time = "\"soon\" is not a time; use first, last, a time from the start like 90s, a \
                       time of day like 14:05, or a date and time like \"2026-11-22 14:05:00\"";
        check("soon", &own, Err(no_time));
        let undated = Extent { start_unix_ns: None, ..own };
        check(
            "14:05",
            &undated,
            Err("the observation has no dates; use first, last, or a time from the start like 90s"),
        );
        check("3h", &undated, Err("no sample at that time: the samples are from 10 s to 2 h"));
        let long = Extent { last: Instant::ZERO + Span::from_secs(200_000), ..own };
        check(
            "00:30",
            &long,
            Err("this time occurs on several days, since the samples are from 2026-11-23 \
                 00:00:10+01:00 to 2026-11-25 07:33:20+01:00; add the date"),
        );
        check("2026-11-24 00:30", &long, Ok(1800 + 86_400));
    }
}
