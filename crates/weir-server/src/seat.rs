//! Write access to a page blob: its lease holder, or clients of its export, or anybody.
//!
//! A volume that is a page blob is an export too. A client of the export that has written
//! sits here until it goes, as if it had leased the blob; a blob that is leased over REST is
//! not written to through its export.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// See the module.
#[derive(Debug, Default)]
pub struct Seat(Mutex<Writers>);

#[derive(Debug, Default)]
struct Writers {
    /// Clients of the export that have written.
    clients: usize,
    /// Writes over REST that are under way.
    visitors: usize,
    /// A client sat since this was last asked.
    wrote: bool,
    /// Until when it is leased over REST, in nanoseconds since 1970.
    leased_until: u64,
}

/// A client of the export that has written sits; it rises when this is dropped.
#[derive(Debug)]
pub(crate) struct Sitting(Arc<Seat>);

/// A write over REST: no client of the export begins to write before it is done.
#[derive(Debug)]
pub struct Visit(Arc<Seat>);

impl Seat {
    fn writers(&self) -> MutexGuard<'_, Writers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the end of its lease, in nanoseconds since 1970; zero is none. Returns `false` if
    /// clients of the export sit here: it is not leased then.
    pub fn lease(&self, until: u64) -> bool {
        let mut writers = self.writers();
        let free = until == 0 || writers.clients == 0;
        if free {
            writers.leased_until = until;
        }
        free
    }

    /// Returns whether clients of the export sit here.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.writers().clients > 0
    }

    /// Returns whether clients of the export may have written since the last call.
    #[must_use]
    pub fn has_written(&self) -> bool {
        let mut writers = self.writers();
        let wrote = writers.wrote;
        writers.wrote = writers.clients > 0;
        wrote
    }

    /// Returns whether it is leased at `now`, in nanoseconds since 1970.
    #[must_use]
    pub fn is_leased(&self, now: u64) -> bool {
        self.writers().leased_until > now
    }

    /// Registers a write over REST until the result is dropped. Returns `None` if clients of the
    /// export sit here.
    #[must_use]
    pub fn visit(self: &Arc<Self>) -> Option<Visit> {
        let mut writers = self.writers();
        if writers.clients > 0 {
            return None;
        }
        writers.visitors += 1;
        drop(writers);
        Some(Visit(Arc::clone(self)))
    }

    /// Registers a writer, unless the blob is leased at `now` or is written to over REST.
    pub(crate) fn sit(self: &Arc<Self>, now: u64) -> Option<Sitting> {
        let mut writers = self.writers();
        if writers.leased_until > now || writers.visitors > 0 {
            return None;
        }
        writers.clients += 1;
        writers.wrote = true;
        drop(writers);
        Some(Sitting(Arc::clone(self)))
    }
}

impl Drop for Sitting {
    fn drop(&mut self) {
        self.0.writers().clients -= 1;
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.0.writers().visitors -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_over_rest_keeps_clients_of_the_export_out_and_the_reverse() {
        let seat = Arc::new(Seat::default());
        let (first, second) = (seat.visit(), seat.visit());
        assert!(first.is_some() && second.is_some() && seat.sit(0).is_none());
        drop(first);
        assert!(seat.sit(0).is_none() && !seat.is_taken() && !seat.has_written());
        drop(second);
        let sitting = seat.sit(0).expect("nothing is written over REST");
        assert!(seat.visit().is_none());
        drop(sitting);
        assert!(seat.visit().is_some());
    }

    #[test]
    fn one_writes_at_a_time() {
        let seat = Arc::new(Seat::default());
        assert!(seat.lease(100));
        assert!(seat.is_leased(99) && seat.sit(99).is_none());
        let first = seat.sit(100).expect("the lease is over");
        let second = seat.sit(100).expect("clients of the export share it");
        assert!(!seat.lease(u64::MAX) && !seat.is_leased(100));
        drop(first);
        assert!(seat.is_taken() && seat.has_written() && seat.has_written());
        drop(second);
        assert!(!seat.is_taken() && seat.has_written() && !seat.has_written());
        assert!(seat.lease(u64::MAX));
        assert!(seat.lease(0) && !seat.is_leased(0));
    }
}
