//! The way to a host's thread, for other threads.

use crate::connection::{Established, Stream};
use crate::errand::NewErrand;
use crate::error::ServerError;
use crate::host_loop::HostLoop;
use crate::volume::VolumeData;
use crate::worker::Finished;
use rustix::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use weir_core::{DeviceId, VolumeId, VolumeSpec};
use weir_units::Instant;

/// A function that runs on a reactor's thread for another.
type Call = Box<dyn FnOnce(&mut HostLoop, Instant) + Send>;

/// A message to a reactor.
pub(crate) enum Message {
    /// A client has chosen one of this host's exports.
    Client(Stream, Established),
    /// A request without a socket.
    Ask(Box<NewErrand>),
    /// Something to do on the reactor's thread.
    Call(Call),
    /// A worker is done.
    Finished(Finished),
    /// A volume comes.
    Add(Box<Adding>),
    /// A volume goes: its clients are cut off.
    Remove(Removing),
    /// The host crashes: every client is cut off.
    Crash(Sender<weir_units::Bytes>),
    /// Complete what is under way, then end.
    Stop,
}

/// A volume that comes.
pub(crate) struct Adding {
    pub(crate) name: String,
    pub(crate) spec: VolumeSpec,
    pub(crate) data: VolumeData,
    pub(crate) told: Sender<Result<(VolumeId, DeviceId), ServerError>>,
}

/// A volume that goes, as soon as nothing of it is under way.
#[derive(Debug)]
pub(crate) struct Removing {
    pub(crate) volume: VolumeId,
    pub(crate) device: DeviceId,
    pub(crate) told: Sender<()>,
}

/// The way to a reactor, for other threads.
#[derive(Debug, Clone)]
pub(crate) struct Mailbox {
    pub(crate) sender: Sender<Message>,
    pub(crate) wake: Arc<OwnedFd>,
}

impl Mailbox {
    /// Leaves a message. A reactor that has ended takes none, which is as well.
    pub(crate) fn send(&self, message: Message) {
        if self.leave(message) {
            self.wake();
        }
    }

    /// Leaves a message that is read at the next [`wake`](Self::wake), or before.
    pub(crate) fn leave(&self, message: Message) -> bool {
        self.sender.send(message).is_ok()
    }

    /// Has the reactor read its messages.
    pub(crate) fn wake(&self) {
        let _ = rustix::io::write(self.wake.as_fd(), &1_u64.to_ne_bytes());
    }

    /// Does `call` on the reactor's thread and waits for what it returns; `None`
    /// if the reactor has ended.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut HostLoop, Instant) -> T + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = channel();
        self.send(Message::Call(Box::new(move |host, now| {
            let _ = sender.send(call(host, now));
        })));
        receiver.recv().ok()
    }
}
