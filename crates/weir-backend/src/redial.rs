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

/// Connects again, as often as it takes. What cannot change by waiting is handed on.
///
/// Before, the server has to be done with the `old` connections, or a write that it still executes could
/// overwrite a newer one. It may take as long as an answer. The first attempt comes after `first`. The `samples` are
/// read before the server is used.
pub(crate) fn redial(
    line: &Line,
    place: &Place,
    (old, samples): (Vec<Connection>, Vec<Sample>),
    first: Span,
) {
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
        let dialled = dial(&place.uri, place.connections, absence, line.closing());
        match dialled.and_then(|dialled| with_samples(dialled, &samples)) {
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

/// Checks that a server has what it confirmed as durable before. It may fail to read it.
fn with_samples(
    (mut connections, terms): (Vec<Connection>, Terms),
    samples: &[Sample],
) -> Result<(Vec<Connection>, Terms), BackendError> {
    let Some(connection) = connections.first_mut() else { return Ok((connections, terms)) };
    let mut found = Vec::new();
    for sample in samples {
        // A block can be longer than a sample, which starts one.
        let long = sample.len().next_multiple_of(u64::from(terms.block));
        found.resize(usize::try_from(long).unwrap_or(usize::MAX), 0);
        match connection.read(sample.offset, &mut found) {
            Ok(()) if sample.is_in(&found) => {}
            Ok(()) => {
                let (offset, bytes) = (sample.offset, sample.len());
                return Err(BackendError::Forgot { offset, bytes });
            }
            Err(ClientError::Failed(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok((connections, terms))
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
