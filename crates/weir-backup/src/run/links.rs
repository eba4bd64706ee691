//! The sockets of a backup: several connections to each export.
//!
//! A socket holds a fifth of a long transfer. With several connections the server and the backup
//! wake each other less often for the same bytes.

use super::slots::Slots;
use super::workers::Waker;
use crate::error::BackupError;
use crate::export::Export;
use weir_client::{Bulk, ClientError};
use weir_proto::TransmissionFlags;
use weir_units::Span;
use weir_wall::{Events, Interest, Poller};

/// Connections to an export that takes several.
const CONNECTIONS: usize = 4;
/// The key of the waker among the sockets.
const WAKER: u64 = u64::MAX;

#[derive(Debug)]
struct Link {
    bulk: Bulk,
    /// The export, as messages name it.
    name: String,
    is_blocked: bool,
}

/// The connections to one export.
#[derive(Debug, Clone, Default)]
pub(super) struct Bundle(Vec<usize>);

/// All sockets.
#[derive(Debug)]
pub(super) struct Links {
    poller: Poller,
    links: Vec<Link>,
    touched: Vec<usize>,
    events: Events,
}

fn system(action: &'static str) -> impl FnOnce(std::io::Error) -> BackupError {
    move |source| BackupError::System { action, source }
}

impl Links {
    pub(super) fn new(waker: &Waker) -> Result<Self, BackupError> {
        let poller = Poller::new().map_err(system("preparing to wait for replies"))?;
        let added = poller.add(waker, WAKER, Interest::READ);
        added.map_err(system("watching a descriptor"))?;
        let (links, touched) = (Vec::new(), Vec::new());
        Ok(Self { poller, links, touched, events: Events::new() })
    }

    /// Connects to an export whose requests are up to `longest` bytes long.
    pub(super) fn connect(
        &mut self,
        export: &Export,
        longest: usize,
    ) -> Result<Bundle, BackupError> {
        let failed = BackupError::export(export.name());
        let mut bundle = Bundle::default();
        loop {
            let connection = export.open()?;
            let maximum = connection.session().block.max_payload();
            if longest > maximum as usize {
                return Err(failed(ClientError::TooLong { length: longest, maximum }));
            }
            let takes_more = connection.offers(TransmissionFlags::CAN_MULTI_CONN);
            let bulk = Bulk::new(connection).map_err(&failed)?;
            let id = self.links.len();
            let added = self.poller.add(&bulk, id as u64, Interest::READ);
            added.map_err(system("watching a connection"))?;
            let name = export.name().to_owned();
            self.links.push(Link { bulk, name, is_blocked: false });
            bundle.0.push(id);
            if !takes_more || bundle.0.len() == CONNECTIONS {
                return Ok(bundle);
            }
        }
    }

    /// Queues a request on the connection of a bundle with the fewest in flight.
    pub(super) fn queue(
        &mut self,
        bundle: &Bundle,
        request: impl FnOnce(&mut Bulk) -> Result<u64, ClientError>,
    ) -> Result<(), BackupError> {
        let least = bundle.0.iter().min_by_key(|id| self.links[**id].bulk.in_flight());
        let Some(id) = least.copied() else {
            unreachable!("a bundle has a connection");
        };
        let link = &mut self.links[id];
        request(&mut link.bulk).map_err(BackupError::export(&link.name))?;
        if !self.touched.contains(&id) {
            self.touched.push(id);
        }
        Ok(())
    }

    /// Sends what was queued.
    pub(super) fn send(&mut self, slots: &Slots) -> Result<(), BackupError> {
        while let Some(id) = self.touched.pop() {
            if !self.links[id].is_blocked {
                self.flush(id, slots)?;
            }
        }
        Ok(())
    }

    fn flush(&mut self, id: usize, slots: &Slots) -> Result<(), BackupError> {
        let link = &mut self.links[id];
        let sent = link.bulk.flush_out(slots).map_err(BackupError::export(&link.name))?;
        if link.is_blocked == sent {
            link.is_blocked = !sent;
            let interest = Interest { read: true, write: !sent };
            let watched = self.poller.modify(&link.bulk, id as u64, interest);
            watched.map_err(system("watching a connection"))?;
        }
        Ok(())
    }

    /// Waits for sockets or threads, and takes in what the sockets bring.
    pub(super) fn wait(
        &mut self,
        slots: &mut Slots,
        waker: &Waker,
        timeout: Option<Span>,
    ) -> Result<(), BackupError> {
        let mut events = std::mem::take(&mut self.events);
        let waited = self.poller.wait(&mut events, timeout);
        waited.map_err(system("waiting for replies"))?;
        for event in events.iter() {
            if event.key == WAKER {
                waker.clear();
                continue;
            }
            let id = usize::try_from(event.key).unwrap_or(usize::MAX);
            if event.writable {
                self.flush(id, slots)?;
            }
            if event.readable || event.ended {
                let link = &mut self.links[id];
                link.bulk.receive(slots).map_err(BackupError::export(&link.name))?;
            }
        }
        self.events = events;
        Ok(())
    }
}
