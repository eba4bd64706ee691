//! A client's socket, which must not stall for ever, and its end.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, timeout};

/// Timeout for the next bytes of a response that the client takes, while memory is short.
const STALL: Duration = Duration::from_secs(60);
/// The same in these periods while there is memory: a stopped program should find its connection open
/// when it goes on.
const PERIODS: u32 = 10;
/// The longest time in which a client that still sends is listened to after the last response.
const LINGER: Duration = Duration::from_secs(10);
/// Bytes that are read in this time.
const LINGER_BYTES: usize = 64 << 20;

/// A socket that fails when its client takes none of a response for too long.
pub(crate) struct Watched<S> {
    stream: S,
    stall: Duration,
    is_short: IsShort,
    /// Set while a write waits, with the periods that have passed.
    timer: Option<(Pin<Box<Sleep>>, u32)>,
}

/// Returns whether memory is short.
pub(crate) type IsShort = Box<dyn Fn() -> bool>;

impl<S: fmt::Debug> fmt::Debug for Watched<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("stream", &self.stream).finish_non_exhaustive()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Watched<S> {
    pub(crate) const fn new(stream: S, is_short: IsShort) -> Self {
        Self { stream, stall: STALL, is_short, timer: None }
    }

    /// Closes the socket. If a request `was_cut`, its rest is read first: a socket with unread bytes
    /// resets the connection, and the client would lose the response.
    pub(crate) async fn end(mut self, was_cut: bool) {
        let closed = poll_fn(|context| Pin::new(&mut self.stream).poll_shutdown(context));
        let Ok(Ok(())) = timeout(LINGER, closed).await else { return };
        if was_cut {
            let _ = timeout(LINGER, self.pass_over()).await;
        }
    }

    /// Reads and discards.
    async fn pass_over(&mut self) {
        let mut buffer = vec![0; 64 << 10];
        let mut left = LINGER_BYTES;
        while left > 0 {
            let mut room = ReadBuf::new(&mut buffer);
            let read =
                poll_fn(|context| Pin::new(&mut self.stream).poll_read(context, &mut room)).await;
            match (read, room.filled().len()) {
                (Ok(()), 1..) => left = left.saturating_sub(room.filled().len()),
                _ => return,
            }
        }
    }

    /// Fails if a write has waited for too long.
    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.timer = None;
            return written;
        }
        let stall = self.stall;
        let (timer, periods) = self.timer.get_or_insert_with(|| (Box::pin(sleep(stall)), 0));
        loop {
            ready!(timer.as_mut().poll(context));
            *periods += 1;
            if *periods >= PERIODS || (self.is_short)() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            timer.as_mut().reset(Instant::now() + stall);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.watch(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;
    use tokio::net::UnixStream;

    #[test]
    fn a_client_that_takes_nothing_ends_its_connection() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            for short_after in [0, 3, u32::MAX] {
                let asked = Rc::new(Cell::new(0));
                let count = Rc::clone(&asked);
                let is_short = move || count.replace(count.get() + 1) >= short_after;
                let (own, _client) = UnixStream::pair().unwrap();
                let own = Watched::new(own, Box::new(is_short));
                let mut own = Watched { stall: Duration::from_millis(20), ..own };
                let bytes = [0; 65_536];
                let error = loop {
                    let write = poll_fn(|context| Pin::new(&mut own).poll_write(context, &bytes));
                    if let Err(error) = write.await {
                        break error;
                    }
                };
                assert_eq!(error.kind(), io::ErrorKind::TimedOut);
                // The last of all periods is over whether or not memory is short.
                assert_eq!(asked.get(), short_after.saturating_add(1).min(PERIODS - 1));
            }
        });
    }
}
