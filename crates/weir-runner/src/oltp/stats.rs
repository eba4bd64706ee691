//! Service times of a database's I/Os from the server's engine, and the rest of their latency,
//! which is that of the machine.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_core::{Completion, ServiceTime};
use weir_oltp::FileTally;
use weir_report::number::float;
use weir_units::Span;

/// Minimum share of a file's time that gives a note about the machine.
const MACHINE: f64 = 0.1;
/// Marks the cookies whose waits are recorded, and the labels of their connections.
const MARK: u64 = 1 << 63;
const LABEL: u16 = 1 << 15;

/// Service times of completed requests, by their cookies on the wire. Replies do not contain them,
/// but the server is in the same process: it [records](Self::writer) them here, and the receiver of
/// the reply takes them.
#[derive(Debug, Default)]
pub struct ServiceTimes {
    noted: Mutex<HashMap<u64, ServiceTime>>,
    labels: AtomicU16,
}

impl ServiceTimes {
    /// Returns a callback with which a server records each admitted request.
    pub fn writer(self: &Arc<Self>) -> impl Fn(u64, &Completion) + Send + Sync + 'static {
        let book = Arc::clone(self);
        move |cookie, completion| {
            book.note(cookie, completion.service());
        }
    }

    fn note(&self, cookie: u64, service: ServiceTime) {
        if cookie & MARK != 0 {
            self.noted().insert(cookie, service);
        }
    }

    pub(super) fn take(&self, cookie: u64) -> Option<ServiceTime> {
        self.noted().remove(&cookie)
    }

    /// Drops the records of closed connections.
    pub(super) fn forget(&self, labels: &[u16]) {
        let is_theirs = |cookie: &u64| labels.iter().any(|l| u64::from(*l) == cookie >> 48);
        self.noted().retain(|cookie, _| !is_theirs(cookie));
    }

    /// Returns a label that no other connection of this process has.
    pub(super) fn label(&self) -> u16 {
        LABEL | self.labels.fetch_add(1, Ordering::Relaxed)
    }

    fn noted(&self) -> MutexGuard<'_, HashMap<u64, ServiceTime>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the time of a file that neither a cap nor the medium accounts for.
pub(super) fn machine(tally: &FileTally) -> Span {
    tally.stall().saturating_sub(tally.service.waits.total() + tally.service.medium)
}

/// Returns a note if the machine's own share of a file's time is large.
pub(super) fn machine_note(file: &str, tally: &FileTally) -> Option<String> {
    let stall = float(tally.stall().nanos());
    let share = if stall > 0.0 { float(machine(tally).nanos()) / stall } else { 0.0 };
    (share > MACHINE).then(|| {
        format!(
            "{:.0} % of the time of {file:?} was this machine's, not the layout's: the figures \
             are too low",
            share * 100.0
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::{Cap, Waits};
    use weir_oltp::FileOp;

    fn service(queued_ms: u64, medium_ms: u64) -> ServiceTime {
        let mut waits = Waits::default();
        waits.charge(Cap::LogRate, Span::from_millis(queued_ms));
        ServiceTime { waits, medium: Span::from_millis(medium_ms) }
    }

    #[test]
    fn time_beyond_the_engine_is_that_of_the_machine() {
        let check = |time: ServiceTime, machine_ms: u64, note: Option<&str>| {
            let mut tally = FileTally::default();
            tally.record(FileOp::Write, 8192, Span::from_millis(40), &time);
            assert_eq!(machine(&tally), Span::from_millis(machine_ms), "{time:?}");
            assert_eq!(machine_note("log", &tally).as_deref(), note, "{time:?}");
        };
        let note = "25 % of the time of \"log\" was this machine's, not the layout's: the figures \
                    are too low";
        check(service(20, 10), 10, Some(note));
        check(service(26, 10), 4, None);
        check(service(30, 10), 0, None);
    }

    #[test]
    fn service_times_are_taken_once_and_by_their_connection() {
        let book = ServiceTimes::default();
        let [first, second] = [book.label(), book.label()].map(|label| u64::from(label) << 48 | 7);
        book.note(first, service(1, 2));
        // The cookie of a connection without a label.
        book.note(7, service(5, 5));
        assert_eq!(book.take(second), None);
        assert_eq!(book.take(first), Some(service(1, 2)));
        assert_eq!(book.take(first), None);
        book.note(second, service(3, 3));
        book.forget(&[u16::try_from(second >> 48).unwrap()]);
        assert!(book.noted().is_empty());
    }
}
