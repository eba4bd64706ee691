//! Connections in an event loop: what they have to send goes in batches, and one
//! poller tells which of them can go on.

use crate::connection::Connection;
use crate::error::ClientError;
use weir_units::Span;
use weir_wall::{Events, Interest, Poller};

/// Requests are sent when this many bytes are queued, or when there are no more: a
/// server that gets the first writes of a batch early works on them while the rest
/// is made.
const SEND_AT: usize = 64 << 10;

/// The number of a connection in [`Wires`].
pub type WireId = usize;

#[derive(Debug)]
struct Wire {
    connection: Connection,
    /// It stands in `Wires::touched`.
    touched: bool,
    /// The socket is full; the poller tells when it is not.
    blocked: bool,
}

/// Connections in an event loop, counted as they were added.
#[derive(Debug)]
pub struct Wires {
    poller: Poller,
    wires: Vec<Wire>,
    /// Connections with something to send.
    touched: Vec<WireId>,
}

impl Wires {
    /// Starts without connections.
    ///
    /// # Errors
    /// If the system has no poller to give.
    pub fn new() -> Result<Self, ClientError> {
        let poller = Poller::new();
        let poller = poller.map_err(ClientError::system("preparing to wait for replies"))?;
        Ok(Self { poller, wires: Vec::new(), touched: Vec::new() })
    }

    /// Takes on a connection and makes it non-blocking. Returns its number.
    ///
    /// # Errors
    /// If its socket cannot be watched.
    pub fn add(&mut self, connection: Connection) -> Result<WireId, ClientError> {
        connection.set_nonblocking(true)?;
        let id = self.wires.len();
        let watched = self.poller.add(&connection, id as u64, Interest::READ);
        watched.map_err(ClientError::system("watching a connection"))?;
        self.wires.push(Wire { connection, touched: false, blocked: false });
        Ok(id)
    }

    /// Returns a connection.
    #[inline]
    pub fn connection(&mut self, id: WireId) -> &mut Connection {
        &mut self.wires[id].connection
    }

    /// Notes that a connection has something to send. Returns whether to [send](Self::send) at once.
    #[inline]
    pub fn touch(&mut self, id: WireId) -> bool {
        let wire = &mut self.wires[id];
        if !wire.touched {
            wire.touched = true;
            self.touched.push(id);
        }
        !wire.blocked && wire.connection.unsent() >= SEND_AT
    }

    /// Sends what the socket of a connection takes.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn send(&mut self, id: WireId) -> Result<(), ClientError> {
        let wire = &mut self.wires[id];
        let blocked = !wire.connection.flush_out()?;
        if blocked != wire.blocked {
            wire.blocked = blocked;
            let wanted = Interest { read: true, write: blocked };
            let watched = self.poller.modify(&wire.connection, id as u64, wanted);
            watched.map_err(ClientError::system("watching a connection"))?;
        }
        Ok(())
    }

    /// Sends on all connections that were [touched](Self::touch).
    ///
    /// # Errors
    /// If a socket fails.
    pub fn send_touched(&mut self) -> Result<(), ClientError> {
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
    ///
    /// # Errors
    /// If the system cannot wait.
    pub fn wait(&self, events: &mut Events, timeout: Option<Span>) -> Result<(), ClientError> {
        let waited = self.poller.wait(events, timeout);
        waited.map_err(ClientError::system("waiting for replies"))
    }

    /// Says goodbye on all connections. Call it when everything is answered: whether the server
    /// still hears it changes nothing then.
    pub fn close(&mut self) {
        for wire in self.wires.drain(..) {
            let _ = wire.connection.close();
        }
    }
}
