//! The time formats of the protocol: HTTP dates, and ISO 8601 with seven decimals.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

const NANOS_PER_SEC: u64 = 1_000_000_000;
/// Resolution of the protocol's times, in nanoseconds.
const TICK: u64 = 100;

/// A time in nanoseconds since 1970-01-01 UTC.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Moment(pub u64);

impl Moment {
    /// The last second that HTTP dates can express, in the year 9999.
    const LAST: u64 = 253_402_300_799;

    /// After all other times.
    pub const FAR: Self = Self(u64::MAX);

    /// Returns the first time from `now` on that the protocol distinguishes from `self`.
    #[must_use]
    pub fn next(self, now: Self) -> Self {
        let now = now.0 / TICK * TICK;
        Self(now.max((self.0 / TICK + 1) * TICK))
    }

    /// Adds seconds.
    #[must_use]
    pub fn plus_secs(self, secs: u64) -> Self {
        Self(self.0.saturating_add(secs.saturating_mul(NANOS_PER_SEC)))
    }

    /// Returns whole seconds since 1970.
    #[must_use]
    pub const fn secs(self) -> u64 {
        self.0 / NANOS_PER_SEC
    }

    fn stamp(self) -> Timestamp {
        Timestamp::from_nanosecond(i128::from(self.0)).unwrap_or(Timestamp::MAX)
    }

    /// Formats an HTTP date such as `Sun, 22 Nov 2026 00:05:09 GMT`.
    #[must_use]
    pub fn http(self) -> String {
        let since = Duration::from_secs(self.secs().min(Self::LAST));
        httpdate::fmt_http_date(UNIX_EPOCH + since)
    }

    /// Formats a snapshot time such as `2026-11-22T00:05:09.1234567Z`.
    #[must_use]
    pub fn iso(self) -> String {
        let second = self.stamp().strftime("%Y-%m-%dT%H:%M:%S").to_string();
        format!("{second}.{:07}Z", self.0 % NANOS_PER_SEC / TICK)
    }

    /// Parses an HTTP date.
    #[must_use]
    pub(crate) fn parse_http(text: &str) -> Option<Self> {
        let since = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
        u64::try_from(since.as_nanos()).ok().map(Self)
    }

    /// Parses the ISO 8601 forms that signatures use: a date, optionally with minutes, seconds and
    /// up to seven decimals, in UTC.
    #[must_use]
    pub(crate) fn parse_iso(text: &str) -> Option<Self> {
        let whole = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.to_owned() };
        Self::from_stamp(whole.parse().ok()?)
    }

    fn from_stamp(stamp: Timestamp) -> Option<Self> {
        u64::try_from(stamp.as_nanosecond()).ok().map(Self)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.iso())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_795_305_909;

    #[test]
    fn times_are_formatted() {
        let moment = Moment(SECOND * NANOS_PER_SEC + 123_456_789);
        assert_eq!(moment.http(), "Sun, 22 Nov 2026 00:05:09 GMT");
        assert_eq!(moment.iso(), "2026-11-22T00:05:09.1234567Z");
        assert_eq!(Moment(1_000).next(Moment(0)), Moment(1_100));
        assert_eq!(Moment(1_000).next(Moment(2_345)), Moment(2_300));
        assert_eq!(Moment(5).plus_secs(3), Moment(3 * NANOS_PER_SEC + 5));
        assert_eq!(Moment::FAR.plus_secs(1), Moment::FAR);
    }

    #[track_caller]
    fn iso(text: &str, expect: Option<u64>) {
        assert_eq!(Moment::parse_iso(text), expect.map(Moment), "{text}");
    }

    #[test]
    fn all_iso_forms_are_parsed() {
        iso("2026-11-22", Some((SECOND - 309) * NANOS_PER_SEC));
        iso("2026-11-22T00:05Z", Some((SECOND - 9) * NANOS_PER_SEC));
        iso("2026-11-22T00:05:09Z", Some(SECOND * NANOS_PER_SEC));
        iso("2026-11-22T00:05:09.1234567Z", Some(SECOND * NANOS_PER_SEC + 123_456_700));
        iso("2026-11-22T00:05:09", None);
        iso("2026-13-22", None);
        iso("1969-11-22", None);
        iso("", None);
        let http = Moment::parse_http("Sun, 22 Nov 2026 00:05:09 GMT");
        assert_eq!(http, Some(Moment(SECOND * NANOS_PER_SEC)));
        assert_eq!(Moment::parse_http("yesterday"), None);
    }
}
