//! The way to the thread of a volume.

use crate::book::{Action, Id};
use crate::condition::Gauge;
use crate::dial::Terms;
use crate::error::BackendError;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_client::Connection;
use weir_proto::{Errno, Extent, Uri};
use weir_units::Span;

/// The result of a request.
#[derive(Debug)]
pub(crate) enum Given {
    /// Success without a value.
    Done,
    /// A write is durable.
    Durable,
    Data(Vec<u8>),
    Extents(Vec<Extent>),
}

/// The reason why a request has no result.
#[derive(Debug)]
pub(crate) enum NotGiven {
    /// The server's error.
    Answered(Errno),
    /// The server has not answered in time.
    Late,
    /// The volume failed for good.
    Failed(String),
}

type Told = Box<dyn FnOnce(Result<Given, NotGiven>) + Send>;

/// The caller of a request. It is told exactly once, also if the thread of the volume panics.
pub(crate) struct Owner(Option<Told>);

impl Owner {
    /// Calls `told` on the thread of the volume. It must not wait.
    pub(crate) fn new(told: impl FnOnce(Result<Given, NotGiven>) + Send + 'static) -> Self {
        Self(Some(Box::new(told)))
    }

    pub(crate) fn tell(mut self, result: Result<Given, NotGiven>) {
        if let Some(told) = self.0.take() {
            told(result);
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(told) = self.0.take() {
            told(Err(NotGiven::Failed("the thread of the volume has ended".to_owned())));
        }
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Owner").field(&self.0.is_some()).finish()
    }
}

/// Messages from other threads to the volume's thread.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    pub(crate) requests: Vec<(Id, u64, Action, Owner)>,
    pub(crate) dialled: Option<Result<(Vec<Connection>, Terms), BackendError>>,
}

#[derive(Debug, Default)]
struct Inbox {
    last: Id,
    mail: Mail,
    /// The thread was woken since it took its mail.
    is_woken: bool,
    /// The thread has ended.
    is_over: bool,
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

    /// Leaves a request, to be taken at the next [`Line::kick`] or before.
    pub(crate) fn submit(&self, offset: u64, action: Action, owner: Owner) {
        let mut inbox = self.inbox();
        if inbox.is_over {
            drop(inbox);
            // It is told that the thread has ended.
            drop(owner);
            return;
        }
        inbox.last += 2;
        let id = inbox.last;
        inbox.mail.requests.push((id, offset, action, owner));
    }

    /// Has the thread take the requests.
    pub(crate) fn kick(&self) {
        let mut inbox = self.inbox();
        let is_needed = !inbox.mail.requests.is_empty() && !inbox.is_woken;
        inbox.is_woken |= is_needed;
        drop(inbox);
        if is_needed {
            self.wake();
        }
    }

    /// Marks the thread as ended, and drops the requests that are left.
    pub(crate) fn end(&self) {
        let left = {
            let mut inbox = self.inbox();
            inbox.is_over = true;
            std::mem::take(&mut inbox.mail)
        };
        drop(left);
    }

    /// Leaves the result of connecting again.
    pub(crate) fn dialled(&self, result: Result<(Vec<Connection>, Terms), BackendError>) {
        self.inbox().mail.dialled = Some(result);
        self.wake();
    }

    /// Takes what was left. The next thing that is left wakes the thread.
    pub(crate) fn take(&self) -> Mail {
        let _ = rustix::io::read(self.wake.as_fd(), &mut [0; 8]);
        let mut inbox = self.inbox();
        inbox.is_woken = false;
        std::mem::take(&mut inbox.mail)
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
