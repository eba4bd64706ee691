//! The way to the thread of a volume.

use crate::book::{Action, Id};
use crate::condition::Gauge;
use crate::dial::Terms;
use crate::error::BackendError;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_client::Connection;
use weir_proto::{Errno, Extent, Uri};
use weir_units::Span;

/// The result of a request.
#[derive(Debug)]
pub(crate) enum Given {
    /// Success without a value.
    Done,
    Data(Vec<u8>),
    Extents(Vec<Extent>),
}

/// The reason why a request has no result.
#[derive(Debug)]
pub(crate) enum NotGiven {
    /// The server's error.
    Answered(Errno),
    /// The volume failed for good.
    Failed(String),
}

/// A caller that waits for the answers to several requests, and the place of this one.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) place: usize,
    pub(crate) told: Sender<(usize, Result<Given, NotGiven>)>,
}

impl Owner {
    /// A caller that has given up does not hear it.
    pub(crate) fn tell(self, result: Result<Given, NotGiven>) {
        let _ = self.told.send((self.place, result));
    }
}

/// Messages from other threads to the volume's thread.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    pub(crate) requests: Vec<(Id, u64, Action, Owner)>,
    pub(crate) abandoned: Vec<Id>,
    pub(crate) dialled: Option<Result<(Vec<Connection>, Terms), BackendError>>,
}

#[derive(Debug, Default)]
struct Inbox {
    last: Id,
    mail: Mail,
}

/// The way to the thread of a volume.
#[derive(Debug)]
pub(crate) struct Line {
    inbox: Mutex<Inbox>,
    wake: OwnedFd,
    closing: Arc<AtomicBool>,
    pub(crate) gauge: Gauge,
}

impl Line {
    pub(crate) fn new(gauge: Gauge) -> Result<Self, BackendError> {
        let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        let context = "preparing to wait for replies";
        let wake = wake.map_err(|errno| BackendError::System { context, source: errno.into() })?;
        Ok(Self { inbox: Mutex::default(), wake, closing: Arc::default(), gauge })
    }

    pub(crate) fn closing(&self) -> &Arc<AtomicBool> {
        &self.closing
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        let _ = rustix::io::write(self.wake.as_fd(), &1_u64.to_ne_bytes());
    }

    /// Leaves a request; returns its id.
    pub(crate) fn submit(&self, offset: u64, action: Action, owner: Owner) -> Id {
        let (id, is_first) = {
            let mut inbox = self.inbox();
            inbox.last += 2;
            let id = inbox.last;
            inbox.mail.requests.push((id, offset, action, owner));
            (id, inbox.mail.requests.len() == 1)
        };
        if is_first {
            self.wake();
        }
        id
    }

    /// Gives up on requests.
    pub(crate) fn abandon(&self, ids: impl IntoIterator<Item = Id>) {
        self.inbox().mail.abandoned.extend(ids);
        self.wake();
    }

    /// Leaves the result of connecting again.
    pub(crate) fn dialled(&self, result: Result<(Vec<Connection>, Terms), BackendError>) {
        self.inbox().mail.dialled = Some(result);
        self.wake();
    }

    /// Takes what was left. The next thing that is left wakes the thread.
    pub(crate) fn take(&self) -> Mail {
        let _ = rustix::io::read(self.wake.as_fd(), &mut [0; 8]);
        std::mem::take(&mut self.inbox().mail)
    }

    /// Returns the descriptor that is readable when something was left.
    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.wake
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Ends the thread. Callers that still wait get an error.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.wake();
    }
}

/// How to reach the server.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) uri: Uri,
    pub(crate) connections: u32,
    pub(crate) timeout: Span,
}
