//! A connection whose progress is watched, so that one without any can be closed.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// The reads and writes of a connection that moved bytes: their number, and the time of the last.
#[derive(Debug, Clone)]
pub(crate) struct Progress(Rc<Cell<(u64, Instant)>>);

impl Progress {
    fn new() -> Self {
        Self(Rc::new(Cell::new((0, Instant::now()))))
    }

    fn count(&self) {
        self.0.set((self.0.get().0.wrapping_add(1), Instant::now()));
    }

    /// Returns for how long no bytes have moved.
    pub(crate) fn idle(&self) -> Duration {
        self.0.get().1.elapsed()
    }

    /// Waits until no bytes have moved for `patience`, to within twice that time.
    pub(crate) async fn stall(&self, patience: Duration) {
        loop {
            let before = self.0.get().0;
            tokio::time::sleep(patience).await;
            if self.0.get().0 == before {
                return;
            }
        }
    }
}

/// A stream that counts its progress.
#[derive(Debug)]
pub(crate) struct Watched {
    stream: TcpStream,
    progress: Progress,
}

impl Watched {
    pub(crate) fn new(stream: TcpStream) -> (Self, Progress) {
        let progress = Progress::new();
        (Self { stream, progress: progress.clone() }, progress)
    }
}

impl Watched {
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr()
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, into);
        if read.is_ready() {
            self.progress.count();
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if written.is_ready() {
            self.progress.count();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
