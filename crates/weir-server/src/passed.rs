//! Sockets that systemd, or another program that starts servers, listens on and passes to this process.
//!
//! They stay open in the program that passed them, so that clients can wait there for the next server.
//! Shutting one down would end it there as well; an event wakes the thread that accepts instead.

use crate::connection::Stream;
use crate::error::ServerError;
use crate::listener::Address;
use listenfd::ListenFd;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::net::sockopt::socket_acceptconn;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;

/// A socket that was passed.
#[derive(Debug)]
pub(crate) struct Passed {
    socket: Socket,
    /// Readable when no more clients are to be accepted.
    closed: OwnedFd,
}

#[derive(Debug)]
enum Socket {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Passed {
    /// Takes all sockets that were passed to this process, with their addresses.
    ///
    /// # Errors
    ///
    /// [`ServerError::Passed`] if there is none, or one on which no NBD client can connect.
    pub(crate) fn take_all() -> Result<Vec<(Self, Address)>, ServerError> {
        let mut passed = ListenFd::from_env();
        if passed.len() == 0 {
            let reason = "no socket was passed (LISTEN_FDS and LISTEN_PID); start the server by a socket unit, or \
                          give --nbd unix:PATH or tcp:HOST:PORT";
            return Err(ServerError::Passed { reason: reason.to_owned() });
        }
        (0..passed.len()).map(|index| Self::take(&mut passed, index)).collect()
    }

    fn take(passed: &mut ListenFd, index: usize) -> Result<(Self, Address), ServerError> {
        let unusable = |reason: String| ServerError::Passed {
            reason: format!("socket {} {reason}; use ListenStream= and Accept=no", index + 1),
        };
        let failed = |source: io::Error| unusable(format!("cannot be used: {source}"));
        let taken = match passed.take_unix_listener(index) {
            Ok(taken) => taken.map(Socket::Unix),
            Err(_) => passed.take_tcp_listener(index).map_err(failed)?.map(Socket::Tcp),
        };
        let Some(socket) = taken else { return Err(unusable("is not there".to_owned())) };
        if !socket_acceptconn(&socket).map_err(|errno| failed(errno.into()))? {
            return Err(unusable("is not listened on".to_owned()));
        }
        let address = match &socket {
            Socket::Unix(socket) => {
                let address = socket.local_addr().map_err(failed)?;
                address
                    .as_pathname()
                    .map_or(Address::Systemd, |path| Address::Unix(path.to_owned()))
            }
            Socket::Tcp(socket) => Address::Tcp(socket.local_addr().map_err(failed)?.to_string()),
        };
        let closed = eventfd(0, EventfdFlags::CLOEXEC)
            .map_err(|errno| ServerError::system("making an event")(errno.into()))?;
        Ok((Self { socket, closed }, address))
    }

    /// Waits for a client.
    ///
    /// # Errors
    ///
    /// An error of the system, or [`io::ErrorKind::Interrupted`] after [`close`](Self::close).
    pub(crate) fn accept(&self) -> io::Result<Stream> {
        let mut ready =
            [PollFd::new(&self.closed, PollFlags::IN), PollFd::new(&self.socket, PollFlags::IN)];
        poll(&mut ready, None)?;
        if !ready[0].revents().is_empty() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match &self.socket {
            Socket::Unix(socket) => socket.accept().map(|(stream, _)| Stream::Unix(stream)),
            Socket::Tcp(socket) => socket.accept().map(|(stream, _)| Stream::Tcp(stream)),
        }
    }

    /// Wakes a waiting [`accept`](Self::accept), and each later one.
    pub(crate) fn close(&self) {
        // A counter of 64 bits takes this write.
        let _ = rustix::io::write(&self.closed, &1_u64.to_ne_bytes());
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(socket) => socket.as_fd(),
            Self::Tcp(socket) => socket.as_fd(),
        }
    }
}
