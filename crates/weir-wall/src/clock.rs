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
