//! The way to a host's thread, for other threads.

use crate::connection::{Established, Stream};
use crate::errand::NewErrand;
use crate::error::ServerError;
use crate::host_loop::HostLoop;
use crate::volume::VolumeData;
use crate::worker::Finished;
use rustix::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use weir_core::{DeviceId, VolumeId, VolumeSpec};
use weir_report::status::ClientStatus;
use weir_units::Instant;

/// A function that runs on a reactor's thread for another.
type Call = Box<dyn FnOnce(&mut HostLoop, Instant) + Send>;

/// A message to a reactor.
pub(crate) enum Message {
    /// A client has chosen one of this host's exports.
    Client(Stream, Established),
    /// A request without a socket.
    Ask(Box<NewErrand>),
    /// A call on the reactor's thread.
    Call(Call),
    /// Asks for the clients, each with the device that it uses.
    Clients(Sender<Vec<(DeviceId, ClientStatus)>>),
    /// A worker has finished a job.
    Finished(Finished),
    /// A volume is added.
    Add(Box<Adding>),
    /// A volume is removed: its clients are disconnected.
    Remove(Removing),
    /// The host crashes: all clients are disconnected.
    Crash(Sender<weir_units::Bytes>),
    /// Completes the requests in flight, then ends.
    Stop,
}

/// A volume to be added.
pub(crate) struct Adding {
    pub(crate) name: String,
    pub(crate) spec: VolumeSpec,
    pub(crate) data: VolumeData,
    pub(crate) told: Sender<Result<(VolumeId, DeviceId), ServerError>>,
}

/// A volume to be removed as soon as none of its requests is in flight.
#[derive(Debug)]
pub(crate) struct Removing {
    pub(crate) volume: VolumeId,
    pub(crate) device: DeviceId,
    /// True to keep a volume with clients or data.
    pub(crate) if_unused: bool,
    pub(crate) told: Sender<Removed>,
}

/// The answer to [`Removing`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removed {
    /// The volume has gone.
    Gone,
    /// It is in use, and stays.
    InUse,
}

/// The way to a reactor, for other threads.
#[derive(Debug, Clone)]
pub(crate) struct Mailbox {
    pub(crate) sender: Sender<Message>,
    pub(crate) wake: Arc<OwnedFd>,
    /// The reactor was woken since it last took its messages.
    woken: Arc<AtomicBool>,
}

impl Mailbox {
    pub(crate) fn new(sender: Sender<Message>, wake: OwnedFd) -> Self {
        Self { sender, wake: Arc::new(wake), woken: Arc::default() }
    }

    /// Sends a message and wakes the reactor. A reactor that has ended drops it.
    pub(crate) fn send(&self, message: Message) {
        if self.leave(message) {
            self.wake();
        }
    }

    /// Sends a message that is read at the next [`wake`](Self::wake), or before.
    pub(crate) fn leave(&self, message: Message) -> bool {
        self.sender.send(message).is_ok()
    }

    /// Wakes the reactor to read its messages.
    pub(crate) fn wake(&self) {
        // A reactor that was woken before finds this message, too.
        if !self.woken.swap(true, Ordering::AcqRel) {
            let _ = rustix::io::write(self.wake.as_fd(), &1_u64.to_ne_bytes());
        }
    }

    /// Clears the wake-up. The reactor takes its messages after that.
    pub(crate) fn acknowledge(&self) {
        let _ = rustix::io::read(self.wake.as_fd(), &mut [0_u8; 8]);
        self.woken.swap(false, Ordering::AcqRel);
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

    /// Returns the clients, each with the device that it uses; none if the reactor has ended.
    pub(crate) fn clients(&self) -> Vec<(DeviceId, ClientStatus)> {
        let (sender, receiver) = channel();
        self.send(Message::Clients(sender));
        receiver.recv().unwrap_or_default()
    }
}
