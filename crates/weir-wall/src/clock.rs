//! The only place of the drivers that reads the wall clock.

use weir_units::Instant;

/// Nanoseconds since it was started, on the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock(std::time::Instant);

impl Clock {
    /// A clock that shows zero now.
    #[expect(clippy::disallowed_methods, reason = "this is the drivers' clock")]
    #[must_use]
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// What it shows.
    #[inline]
    #[must_use]
    pub fn now(self) -> Instant {
        Instant::from_nanos(u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Nanoseconds since 1970-01-01 UTC, by the machine's calendar clock, which may jump: for
/// dates that people and protocols read, and for nothing that is measured.
#[expect(clippy::disallowed_methods, reason = "this is the drivers' calendar")]
#[must_use]
pub fn calendar() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}
