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
    /// Asks; `told` hears the answer on the host's thread, which serves nobody meanwhile.
    pub fn ask(&self, ask: Ask, terms: Terms, told: impl FnOnce(Answer) + Send + 'static) {
        self.leave(ask, terms, None, told);
        self.go();
    }

    /// Asks when [`go`](Self::go) is called next, or before: who asks several times at once
    /// wakes the host's thread once.
    pub fn ask_later(&self, ask: Ask, terms: Terms, told: impl FnOnce(Answer) + Send + 'static) {
        self.leave(ask, terms, None, told);
    }

    /// Has the host's thread take what was asked.
    pub fn go(&self) {
        self.host.wake();
    }

    /// Reads from a store in the device's place, for example a snapshot of it. The device's
    /// limits hold it as a read of so many bytes, or of all that the device has.
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
        // Dropped by a host that has ended, it tells whoever waits.
        self.host.leave(Message::Ask(Box::new(errand)));
    }
}
