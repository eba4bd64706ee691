//! The drivers' clock; no other module reads the wall clock.

use rustix::time::{ClockId, clock_gettime};
use weir_units::time::NANOS_PER_SEC;
use weir_units::{Instant, Span};

/// A monotonic clock in nanoseconds since its start.
#[derive(Debug, Clone, Copy)]
pub struct Clock(std::time::Instant);

impl Clock {
    /// Starts a clock at zero.
    #[expect(clippy::disallowed_methods, reason = "this is the drivers' clock")]
    #[must_use]
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// Returns the time since the start.
    #[inline]
    #[must_use]
    pub fn now(self) -> Instant {
        Instant::from_nanos(u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Returns nanoseconds since 1970-01-01 UTC from the system's calendar clock. It may jump, so it
/// serves for dates and not for measurements.
#[expect(clippy::disallowed_methods, reason = "this is the drivers' calendar")]
#[must_use]
pub fn calendar() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// Returns the processor time that the calling thread has used.
#[must_use]
pub fn thread_time() -> Span {
    used(ClockId::ThreadCPUTime)
}

/// Returns the processor time that all threads of this process have used.
#[must_use]
pub fn process_time() -> Span {
    used(ClockId::ProcessCPUTime)
}

fn used(clock: ClockId) -> Span {
    let used = clock_gettime(clock);
    let unsigned = |n: i64| u64::try_from(n).unwrap_or(0);
    let seconds = Span::from_nanos(unsigned(used.tv_sec).saturating_mul(NANOS_PER_SEC));
    seconds + Span::from_nanos(unsigned(used.tv_nsec))
}
