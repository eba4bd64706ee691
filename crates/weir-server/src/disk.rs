//! A device as the other front ends of the server use it: requests to the host's thread without a
//! socket.

use crate::errand::{NewErrand, Telling};
use crate::host_loop::Elsewhere;
use crate::mailbox::{Mailbox, Message};
use std::sync::Arc;
use weir_core::DeviceId;
use weir_store::Store;

pub use crate::errand::{Answer, Ask, NotDone, Passing, Terms};

/// A device of a running server.
#[derive(Debug, Clone)]
pub struct Disk {
    pub(crate) device: DeviceId,
    pub(crate) host: Mailbox,
}

impl Disk {
    /// Sends a request. `told` gets the answer on the host's thread, and blocks it meanwhile.
    pub fn ask(&self, ask: Ask, terms: Terms, told: impl FnOnce(Answer) + Send + 'static) {
        self.leave(ask, terms, None, told);
        self.go();
    }

    /// Sends a request that the host's thread takes at the next [`go`](Self::go), or before. Several
    /// requests thus need one wake-up.
    pub fn ask_later(&self, ask: Ask, terms: Terms, told: impl FnOnce(Answer) + Send + 'static) {
        self.leave(ask, terms, None, told);
    }

    /// Wakes the host's thread to take the requests that were sent.
    pub fn go(&self) {
        self.host.wake();
    }

    /// Reads from another store, for example a snapshot of the device. The device's limits apply as
    /// to a read of the same length, at most of its size.
    pub fn read_from(
        &self,
        store: Arc<dyn Store>,
        (offset, len): (u64, u32),
        terms: Terms,
        told: impl FnOnce(Answer) + Send + 'static,
    ) {
        let from = Elsewhere::Store { store, offset, len };
        self.leave(Ask::Read { offset: 0, len }, terms, Some(from), told);
        self.go();
    }

    fn leave(
        &self,
        ask: Ask,
        terms: Terms,
        from: Option<Elsewhere>,
        told: impl FnOnce(Answer) + Send + 'static,
    ) {
        let told = Telling::new(told);
        let errand = NewErrand { device: self.device, ask, terms, from, told };
        // A host that has ended drops it, which answers the caller.
        self.host.leave(Message::Ask(Box::new(errand)));
    }
}
