//! Connections in an event loop: what they have to send goes in batches, and one
//! poller tells which of them can go on.

use crate::client::Connection;
use crate::error::RunnerError;
use weir_units::Span;
use weir_wall::{Events, Interest, Poller};

/// Requests are sent when this many bytes are queued, or when there are no more: a
/// server that gets the first writes of a batch early works on them while the rest
/// is made.
const SEND_AT: usize = 64 << 10;

/// The number of a connection.
pub(crate) type WireId = usize;

struct Wire {
    connection: Connection,
    /// It stands in `Wires::touched`.
    touched: bool,
    /// The socket is full; the poller tells when it is not.
    blocked: bool,
}

/// Connections, counted as they were added.
pub(crate) struct Wires {
    poller: Poller,
    wires: Vec<Wire>,
    /// Those with something to send.
    touched: Vec<WireId>,
}

impl Wires {
    pub(crate) fn new() -> Result<Self, RunnerError> {
        let poller = Poller::new();
        let poller = poller.map_err(RunnerError::system("preparing to wait for replies"))?;
        Ok(Self { poller, wires: Vec::new(), touched: Vec::new() })
    }

    /// Takes a connection on, which does not wait any more.
    pub(crate) fn add(&mut self, connection: Connection) -> Result<WireId, RunnerError> {
        connection.set_nonblocking(true)?;
        let id = self.wires.len();
        let watched = self.poller.add(&connection, id as u64, Interest::READ);
        watched.map_err(RunnerError::system("watching a connection"))?;
        self.wires.push(Wire { connection, touched: false, blocked: false });
        Ok(id)
    }

    #[inline]
    pub(crate) fn connection(&mut self, id: WireId) -> &mut Connection {
        &mut self.wires[id].connection
    }

    /// The connection has something to send. Tells whether that should go at once.
    #[inline]
    pub(crate) fn touch(&mut self, id: WireId) -> bool {
        let wire = &mut self.wires[id];
        if !wire.touched {
            wire.touched = true;
            self.touched.push(id);
        }
        !wire.blocked && wire.connection.unsent() >= SEND_AT
    }

    /// Sends what the socket takes.
    pub(crate) fn send(&mut self, id: WireId) -> Result<(), RunnerError> {
        let wire = &mut self.wires[id];
        let blocked = !wire.connection.flush_out()?;
        if blocked != wire.blocked {
            wire.blocked = blocked;
            let wanted = Interest { read: true, write: blocked };
            let watched = self.poller.modify(&wire.connection, id as u64, wanted);
            watched.map_err(RunnerError::system("watching a connection"))?;
        }
        Ok(())
    }

    pub(crate) fn send_touched(&mut self) -> Result<(), RunnerError> {
        while let Some(id) = self.touched.pop() {
            let wire = &mut self.wires[id];
            wire.touched = false;
            if !wire.blocked && wire.connection.wants_write() {
                self.send(id)?;
            }
        }
        Ok(())
    }

    /// Waits until a connection can go on, or for `timeout`.
    pub(crate) fn wait(
        &self,
        events: &mut Events,
        timeout: Option<Span>,
    ) -> Result<(), RunnerError> {
        let waited = self.poller.wait(events, timeout);
        waited.map_err(RunnerError::system("waiting for replies"))
    }

    /// Says goodbye. By now everything is answered, so whether the server still
    /// hears it changes nothing.
    pub(crate) fn close(&mut self) {
        for wire in self.wires.drain(..) {
            let _ = wire.connection.close();
        }
    }
}
