//! Connections to a server, and the checks of what it offers.

use crate::error::BackendError;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_client::{ClientError, Connection, Stop};
use weir_proto::client::Session;
use weir_proto::wire::COMMON_PAYLOAD;
use weir_proto::{TransmissionFlags, Uri};
use weir_units::{Bytes, Instant, Span};
use weir_wall::Clock;

/// The longest time for the connections and their handshakes.
const PATIENCE: Span = Span::from_secs(10);

/// The longest request, although a server may allow longer ones: several must fit into the memory for unflushed writes.
const LONGEST: u32 = COMMON_PAYLOAD;

/// The properties of an export on which requests rely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) size: Bytes,
    /// The unit of offsets and lengths.
    pub(crate) block: u32,
    /// The longest read or write.
    pub(crate) longest: u32,
    pub(crate) zeroes: bool,
    pub(crate) fua: bool,
    pub(crate) extents: bool,
    several: bool,
}

impl Terms {
    fn offered_in(session: &Session) -> Result<Self, BackendError> {
        let offers = |flag| session.flags.contains(flag);
        if offers(TransmissionFlags::READ_ONLY) {
            return Err(BackendError::ReadOnly);
        }
        if !offers(TransmissionFlags::SEND_FLUSH) {
            return Err(BackendError::NoFlush);
        }
        let block = session.block.minimum();
        Ok(Self {
            size: session.size,
            block,
            longest: session.block.max_payload().min(LONGEST) / block * block,
            zeroes: offers(TransmissionFlags::SEND_WRITE_ZEROES),
            fua: offers(TransmissionFlags::SEND_FUA),
            extents: session.meta_context.is_some(),
            several: offers(TransmissionFlags::CAN_MULTI_CONN),
        })
    }

    /// Checks that an export still has all that it had, except FUA: a flush does the same.
    pub(crate) fn check(&self, now: &Self) -> Result<(), BackendError> {
        if now.size != self.size {
            return Err(BackendError::OtherSize { before: self.size, now: now.size });
        }
        for (what, lost) in [
            ("its block size", now.block > self.block),
            ("its largest request", now.longest < self.longest),
            ("WRITE_ZEROES", self.zeroes && !now.zeroes),
            ("base:allocation", self.extents && !now.extents),
        ] {
            if lost {
                return Err(BackendError::Lacks(what));
            }
        }
        Ok(())
    }
}

/// Opens up to `most` connections, more than one only if the server allows it, within [`PATIENCE`] for
/// all of them. `closing` ends the waits. `check` may use the first one, within that time, too.
pub(crate) fn dial(
    uri: &Uri,
    most: u32,
    absence: Span,
    closing: &Arc<AtomicBool>,
    check: impl FnOnce(&mut Connection, &Terms) -> Result<(), BackendError>,
) -> Result<(Vec<Connection>, Terms), BackendError> {
    let clock = Clock::start();
    let (first, terms) = open(uri, absence, closing, clock, check)?;
    let mut all = vec![first];
    while terms.several && all.len() < most as usize {
        let is_alike = |_: &mut Connection, own: &Terms| terms.check(own);
        let (another, _) = open(uri, absence, closing, clock, is_alike)?;
        all.push(another);
    }
    Ok((all, terms))
}

fn open(
    uri: &Uri,
    absence: Span,
    closing: &Arc<AtomicBool>,
    clock: Clock,
    check: impl FnOnce(&mut Connection, &Terms) -> Result<(), BackendError>,
) -> Result<(Connection, Terms), BackendError> {
    let is_open = Arc::new(AtomicBool::new(false));
    let (closing, opened) = (Arc::clone(closing), Arc::clone(&is_open));
    // The connection keeps asking; once it is open, only the end of the volume stops it.
    let stop = Stop::new(move || {
        let is_late = !opened.load(Ordering::Acquire) && clock.now() > Instant::ZERO + PATIENCE;
        closing.load(Ordering::Acquire) || is_late
    });
    let opened = Connection::open_until(uri, true, &stop).map_err(BackendError::from);
    let checked = opened.and_then(|mut connection| {
        let terms = Terms::offered_in(connection.session())?;
        check(&mut connection, &terms)?;
        Ok((connection, terms))
    });
    let (connection, terms) = checked.map_err(|error| match error {
        BackendError::Client(ClientError::Stopped) => BackendError::Client(ClientError::System {
            context: "connecting",
            source: io::Error::new(io::ErrorKind::TimedOut, format!("no answer for {PATIENCE}")),
        }),
        other => other,
    })?;
    is_open.store(true, Ordering::Release);
    connection.notice_absence(Duration::from_nanos(absence.nanos()))?;
    Ok((connection, terms))
}
