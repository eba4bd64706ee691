//! Connecting again after a loss.

use crate::condition::State;
use crate::dial::{Terms, dial};
use crate::error::BackendError;
use crate::line::{Line, Place};
use crate::witness::Sample;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use weir_client::{ClientError, Connection, Stop};
use weir_units::Span;

/// The first wait before another attempt, and the longest.
pub(crate) const FIRST_WAIT: Span = Span::from_millis(50);
pub(crate) const LONGEST_WAIT: Span = Span::from_secs(2);

/// The facts about a server that hold after a loss of the connection.
pub(crate) struct Known {
    pub(crate) terms: Terms,
    /// Bytes that it has confirmed as durable.
    pub(crate) samples: Vec<Sample>,
}

impl Known {
    /// Checks that the server offers what it did, and has the samples. A read that fails proves nothing.
    fn check(&self, connection: &mut Connection, terms: &Terms) -> Result<(), BackendError> {
        self.terms.check(terms)?;
        let mut found = Vec::new();
        for sample in &self.samples {
            // Whole blocks are read.
            let block = u64::from(terms.block);
            let before = sample.offset % block;
            let long = (before + sample.len()).next_multiple_of(block);
            let [before, long] = [before, long].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
            found.resize(long, 0);
            match connection.read(sample.offset - before as u64, &mut found) {
                Ok(()) if sample.matches(&found[before..]) => {}
                Ok(()) => {
                    let (offset, bytes) = (sample.offset, sample.len());
                    return Err(BackendError::Forgot { offset, bytes });
                }
                Err(ClientError::Failed(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Connects again, as often as it takes. What cannot change by waiting is handed on.
///
/// Before, the server has to be done with the `old` connections, or a write that it still executes could
/// overwrite a newer one. It may take as long as an answer. The first attempt comes after `first`.
pub(crate) fn redial(line: &Line, place: &Place, old: Vec<Connection>, known: &Known, first: Span) {
    let closing = Arc::clone(line.closing());
    let stop = Stop::new(move || closing.load(Ordering::Acquire));
    let patience = Duration::from_nanos(place.timeout.nanos());
    // All at once, so that their waits do not add up. A server that is not done by then may still
    // execute requests of the old connections (docs/SCALE.md, "Not guaranteed").
    thread::scope(|scope| {
        for connection in old {
            let stop = &stop;
            let hang_up = move || connection.hang_up(patience, stop);
            // Without a thread, it is closed at once.
            let _ = thread::Builder::new().spawn_scoped(scope, hang_up);
        }
    });
    let mut wait = FIRST_WAIT;
    pause(line, first);
    while !line.is_closing() {
        let absence = place.timeout;
        let check = |connection: &mut Connection, terms: &Terms| known.check(connection, terms);
        match dial(&place.uri, place.connections, absence, line.closing(), check) {
            Err(BackendError::Client(error)) => {
                line.gauge.set(State::Lost { reason: error.to_string() });
            }
            result => {
                line.dialled(result);
                return;
            }
        }
        pause(line, wait);
        wait = (wait + wait).min(LONGEST_WAIT);
    }
}

/// Waits between two attempts. The end of the volume ends it.
fn pause(line: &Line, wait: Span) {
    const STEP: Span = Span::from_millis(50);
    let mut left = wait;
    while left > Span::ZERO && !line.is_closing() {
        let step = left.min(STEP);
        thread::park_timeout(Duration::from_nanos(step.nanos()));
        left = left.saturating_sub(step);
    }
}
