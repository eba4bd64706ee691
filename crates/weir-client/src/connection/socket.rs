//! A connected stream socket of either kind, and who is at its other end.

use crate::error::ClientError;
use crate::stop::Stop;
use crate::tls::{Encryption, TlsConfig};
use rustix::net::sockopt;
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use weir_proto::ProtoError;
use weir_proto::uri::Server;

/// The longest wait until a [`Stop`] is asked again.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// A connected socket.
#[derive(Debug)]
pub struct Socket {
    stream: Stream,
    /// Locked by one thread at a time: a connection has one owner.
    tls: Option<Mutex<Encryption>>,
    /// Named in messages.
    place: String,
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Connects, blocking.
    ///
    /// # Errors
    /// [`ClientError::Connect`].
    pub fn connect(server: &Server) -> Result<Self, ClientError> {
        let (place, stream) = match server {
            Server::Tcp { host, port } => {
                (format!("{host}, port {port}"), connect_tcp(host, *port).map(Stream::Tcp))
            }
            Server::Unix { socket } => {
                (socket.clone(), UnixStream::connect(socket).map(Stream::Unix))
            }
        };
        match stream {
            Ok(stream) => Ok(Self { stream, tls: None, place }),
            Err(source) => Err(ClientError::Connect { place, source }),
        }
    }

    /// Connects, blocking until `stop` says so.
    pub(super) fn connect_until(server: &Server, stop: &Stop) -> Result<Self, ClientError> {
        let (done, connected) = sync_channel(1);
        let server = server.clone();
        // A call to connect cannot be ended. An abandoned thread ends with the system's own
        // timeout.
        let work = move || drop(done.send(Self::connect(&server)));
        let thread = thread::Builder::new().name("nbd-connect".to_owned()).spawn(work);
        thread.map_err(ClientError::system("starting a thread"))?;
        loop {
            if stop.is_set() {
                return Err(ClientError::Stopped);
            }
            match connected.recv_timeout(TICK) {
                Ok(socket) => return socket,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let source = io::Error::other("its thread ended early");
                    return Err(ClientError::System { context: "connecting", source });
                }
            }
        }
    }

    /// Tells the other side that nothing follows.
    pub(super) fn end_writing(&self) -> io::Result<()> {
        match &self.stream {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write),
        }
    }

    pub(super) fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match &self.stream {
            Stream::Tcp(stream) => stream.set_read_timeout(timeout),
            Stream::Unix(stream) => stream.set_read_timeout(timeout),
        }
    }

    pub(super) fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match &self.stream {
            Stream::Tcp(stream) => stream.set_write_timeout(timeout),
            Stream::Unix(stream) => stream.set_write_timeout(timeout),
        }
    }

    pub(super) fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        match &self.stream {
            Stream::Tcp(stream) => stream.set_nonblocking(nonblocking),
            Stream::Unix(stream) => stream.set_nonblocking(nonblocking),
        }
    }

    /// Has the system probe an idle connection, and end it if nothing comes back for `silence`.
    pub(super) fn notice_absence(&self, silence: Duration) -> io::Result<()> {
        let Stream::Tcp(stream) = &self.stream else { return Ok(()) };
        let probe = (silence / 4).max(Duration::from_secs(1));
        let millis = u32::try_from(silence.as_millis()).unwrap_or(u32::MAX);
        sockopt::set_socket_keepalive(stream, true)?;
        sockopt::set_tcp_keepidle(stream, probe)?;
        sockopt::set_tcp_keepintvl(stream, probe)?;
        sockopt::set_tcp_keepcnt(stream, 3)?;
        Ok(sockopt::set_tcp_user_timeout(stream, millis)?)
    }

    /// Encrypts the connection from here on. `again` is called after each read timeout, and its error
    /// ends the handshake.
    pub(super) fn encrypt(
        &mut self,
        tls_config: &TlsConfig,
        mut again: impl FnMut() -> Result<(), ClientError>,
    ) -> Result<(), ClientError> {
        let mut stopped = None;
        let agreed = Encryption::handshake(tls_config, &self.stream, || {
            again().map_err(|error| {
                stopped = Some(error);
                io::ErrorKind::TimedOut.into()
            })
        });
        match (agreed, stopped) {
            (Ok(encryption), _) => {
                self.tls = Some(Mutex::new(encryption));
                Ok(())
            }
            (Err(_), Some(stopped)) => Err(stopped),
            (Err(error), None) => {
                let (place, reason) = (self.place.clone(), error.to_string());
                Err(ClientError::Tls { place, reason })
            }
        }
    }

    fn tls(&self) -> Option<MutexGuard<'_, Encryption>> {
        let tls = self.tls.as_ref()?;
        Some(tls.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        match self.tls() {
            None => (&self.stream).read(bytes),
            Some(mut tls) => tls.read(&self.stream, bytes),
        }
    }

    /// Reads what the other end sent, encrypted or not.
    pub(super) fn read_raw(&self, bytes: &mut [u8]) -> io::Result<usize> {
        (&self.stream).read(bytes)
    }

    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self.tls() {
            None => (&self.stream).write(bytes),
            Some(mut tls) => tls.write(&self.stream, bytes),
        }
    }

    pub(super) fn write_vectored(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self.tls() {
            None => (&self.stream).write_vectored(parts),
            Some(mut tls) => {
                let first = parts.iter().find(|part| !part.is_empty());
                first.map_or(Ok(0), |part| tls.write(&self.stream, part))
            }
        }
    }

    /// Sends what was written and is still here.
    pub(super) fn send(&self) -> io::Result<()> {
        self.tls().map_or(Ok(()), |mut tls| tls.send(&self.stream))
    }

    /// Returns whether bytes that were written are still here.
    pub(super) fn has_unsent(&self) -> bool {
        self.tls().is_some_and(|tls| tls.has_unsent())
    }

    /// Returns whether bytes can be read for which the descriptor is not readable.
    pub(super) fn has_decrypted(&self) -> bool {
        self.tls().is_some_and(|mut tls| tls.has_decrypted())
    }

    /// Writes all of it, waiting for the socket.
    pub(super) fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = self.write(bytes)?;
            bytes = &bytes[written..];
        }
        self.send()
    }

    pub(super) fn failed(&self, source: io::Error) -> ClientError {
        ClientError::Socket { place: self.place.clone(), source }
    }

    pub(super) fn closed(&self, in_flight: usize) -> ClientError {
        ClientError::Closed { place: self.place.clone(), in_flight }
    }

    pub(super) fn misfit(&self) -> ClientError {
        ClientError::Answer { place: self.place.clone() }
    }

    pub(super) fn confused(&self, source: ProtoError) -> ClientError {
        ClientError::Protocol { place: self.place.clone(), source }
    }
}

fn connect_tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port))?;
    // Requests are batched here; Nagle would only delay the last of a batch.
    stream.set_nodelay(true)?;
    Ok(stream)
}

impl Read for &Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => (&mut &*stream).read(bytes),
            Stream::Unix(stream) => (&mut &*stream).read(bytes),
        }
    }
}

impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => (&mut &*stream).write(bytes),
            Stream::Unix(stream) => (&mut &*stream).write(bytes),
        }
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => (&mut &*stream).write_vectored(parts),
            Stream::Unix(stream) => (&mut &*stream).write_vectored(parts),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One end of a pair, say.
impl From<UnixStream> for Socket {
    fn from(stream: UnixStream) -> Self {
        Self { stream: Stream::Unix(stream), tls: None, place: "the server".to_owned() }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }
}
