//! The threads of a backup: encoders, and writers of stripes that are no exports.
//!
//! A buffer goes to a thread with its job and comes back with the outcome. The event loop is woken
//! by a descriptor that it waits for beside its sockets.

use super::queue::Queue;
use crate::error::BackupError;
use crate::format::{EncodedFrame, FrameAddress, FrameEncoder};
use crate::target::StripeSink;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// A buffer that comes back.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) buffer: u32,
    pub(super) frame: Vec<u8>,
    pub(super) outcome: Outcome,
}

/// The result of a job.
#[derive(Debug)]
pub(super) enum Outcome {
    Encoded(Result<EncodedFrame, BackupError>),
    Written(Result<(), BackupError>),
}

#[derive(Debug)]
struct EncodeJob {
    buffer: u32,
    frame: Vec<u8>,
    address: FrameAddress,
    /// Bytes that were read, or zeros.
    length: u64,
    is_zeros: bool,
}

#[derive(Debug)]
struct WriteJob {
    buffer: u32,
    frame: Vec<u8>,
    length: usize,
    offset: u64,
}

/// Wakes the event loop.
#[derive(Debug, Clone)]
pub(super) struct Waker(Arc<OwnedFd>);

impl Waker {
    fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)))
    }

    pub(super) fn wake(&self) {
        // It fails only if wake-ups are pending already.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }

    pub(super) fn clear(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0_u8; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Where threads put what is done.
#[derive(Debug, Clone)]
struct Outbox {
    sender: Sender<Done>,
    waker: Waker,
}

impl Outbox {
    /// Returns whether somebody still wants it.
    fn put(&self, done: Done) -> bool {
        let is_wanted = self.sender.send(done).is_ok();
        self.waker.wake();
        is_wanted
    }
}

/// All threads of a backup. Dropping it ends them.
#[derive(Debug)]
pub(super) struct Workers {
    encode: Arc<Queue<EncodeJob>>,
    /// One queue for each stripe that is written by threads.
    writes: Vec<Option<Arc<Queue<WriteJob>>>>,
    threads: Vec<JoinHandle<()>>,
    outbox: Outbox,
    inbox: Mutex<Receiver<Done>>,
}

impl Workers {
    pub(super) fn new() -> Result<Self, BackupError> {
        let failed =
            |source| BackupError::System { action: "preparing to wait for threads", source };
        let waker = Waker::new().map_err(failed)?;
        let (sender, inbox) = channel();
        Ok(Self {
            encode: Arc::new(Queue::new()),
            writes: Vec::new(),
            threads: Vec::new(),
            outbox: Outbox { sender, waker },
            inbox: Mutex::new(inbox),
        })
    }

    pub(super) const fn waker(&self) -> &Waker {
        &self.outbox.waker
    }

    pub(super) fn add_encoder(&mut self, mut encoder: FrameEncoder) -> Result<(), BackupError> {
        let (queue, outbox) = (Arc::clone(&self.encode), self.outbox.clone());
        self.spawn("backup-encoder", move || {
            while let Some(job) = queue.pop() {
                let EncodeJob { buffer, mut frame, address, length, is_zeros } = job;
                let encoded = if is_zeros {
                    frame.clear();
                    encoder.encode_zeros(address, length, &mut frame)
                } else {
                    let length = usize::try_from(length).unwrap_or(usize::MAX);
                    encoder.encode_frame(address, &mut frame, length)
                };
                let outcome = Outcome::Encoded(encoded);
                if !outbox.put(Done { buffer, frame, outcome }) {
                    return;
                }
            }
        })
    }

    /// Adds the next stripe, written by `depth` threads if it has a sink.
    pub(super) fn add_stripe(
        &mut self,
        sink: Option<&Arc<dyn StripeSink>>,
        depth: u32,
    ) -> Result<(), BackupError> {
        let Some(sink) = sink else {
            self.writes.push(None);
            return Ok(());
        };
        let queue = Arc::new(Queue::<WriteJob>::new());
        for _ in 0..depth {
            let (queue, outbox, sink) = (Arc::clone(&queue), self.outbox.clone(), Arc::clone(sink));
            self.spawn("backup-writer", move || {
                while let Some(WriteJob { buffer, frame, length, offset }) = queue.pop() {
                    let outcome = Outcome::Written(sink.write_at(offset, &frame[..length]));
                    if !outbox.put(Done { buffer, frame, outcome }) {
                        return;
                    }
                }
            })?;
        }
        self.writes.push(Some(queue));
        Ok(())
    }

    fn spawn(
        &mut self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), BackupError> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
        let failed = |source| BackupError::System { action: "starting a thread", source };
        self.threads.push(thread.map_err(failed)?);
        Ok(())
    }

    pub(super) fn encode(
        &self,
        buffer: u32,
        frame: Vec<u8>,
        address: FrameAddress,
        (length, is_zeros): (u64, bool),
    ) {
        self.encode.push(EncodeJob { buffer, frame, address, length, is_zeros });
    }

    /// Hands a frame to the threads of a stripe. Returns the frame if the stripe has none.
    pub(super) fn write(
        &self,
        stripe: usize,
        (buffer, frame): (u32, Vec<u8>),
        length: usize,
        offset: u64,
    ) -> Result<(), Vec<u8>> {
        match &self.writes[stripe] {
            Some(queue) => {
                queue.push(WriteJob { buffer, frame, length, offset });
                Ok(())
            }
            None => Err(frame),
        }
    }

    pub(super) fn poll_done(&self) -> Option<Done> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner).try_recv().ok()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.encode.close();
        self.writes.iter().flatten().for_each(|queue| queue.close());
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}
