//! Accepting clients, and the handshake up to the chosen export.
//!
//! Each handshake has a thread of its own and a time limit, so that a silent client does not delay
//! others; [`crate::door`] limits their number.

use crate::connection::{Established, Stream};
use crate::door::{Door, Entry};
use crate::error::ServerError;
use crate::local_socket::LocalSocket;
use crate::mailbox::{Mailbox, Message};
use crate::seat::Seat;
use crate::tls::{Encryption, Tls};
use crate::volume::View;
use rustix::net::sockopt::set_socket_keepalive;
use rustix::net::{Shutdown, shutdown};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpListener, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;
use weir_core::DeviceId;
use weir_proto::server::{Exports, Handshake, Session, Step};
use weir_proto::{BlockSizes, Export, TransmissionFlags};
use weir_store::Store;
use weir_units::Bytes;
use weir_wall::{Clock, calendar};

/// Before a listener tries again that could not accept: out of descriptors, say,
/// and nothing tells when there are some again.
const PAUSE: Duration = Duration::from_millis(20);

/// An address for NBD clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// Host and port.
    Tcp(String),
}

impl Address {
    /// Returns whether other machines may reach the address. A name that cannot be resolved counts as
    /// one that they do.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        match self {
            Self::Unix(_) => false,
            Self::Tcp(text) => match text.to_socket_addrs() {
                Ok(mut all) => all.any(|own| !own.ip().is_loopback()),
                Err(_) => true,
            },
        }
    }
}

impl Default for Address {
    /// Returns the port of NBD, on loopback.
    fn default() -> Self {
        Self::Tcp("127.0.0.1:10809".to_owned())
    }
}

impl FromStr for Address {
    type Err = ServerError;

    fn from_str(text: &str) -> Result<Self, ServerError> {
        let bad = |reason: &str| ServerError::BadAddress {
            text: text.to_owned(),
            reason: reason.to_owned(),
        };
        match text.split_once(':') {
            Some(("unix", "")) => Err(bad("the path is empty")),
            Some(("unix", path)) if path.len() > 107 => {
                Err(bad("a Unix socket's path has at most 107 bytes"))
            }
            Some(("unix", path)) => Ok(Self::Unix(PathBuf::from(path))),
            Some(("tcp", address)) => match address.rsplit_once(':') {
                Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
                    Ok(Self::Tcp(address.to_owned()))
                }
                _ => Err(bad("it needs a host and a port")),
            },
            _ => Err(bad("it must start with unix: or tcp:")),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

/// An export with the way to its host.
#[derive(Debug, Clone)]
pub(crate) struct Served {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) device: DeviceId,
    pub(crate) host: Mailbox,
    /// For a page blob: decides which clients may write.
    pub(crate) seat: Option<Arc<Seat>>,
    /// The device as it was at a freeze, if that is what is served.
    pub(crate) view: Option<Arc<View>>,
}

/// Everything that can be asked for, in the layout's order, and what came later behind it;
/// the first is the default.
#[derive(Debug, Default)]
pub(crate) struct Directory(RwLock<Vec<Served>>);

impl Directory {
    pub(crate) fn add(&self, served: Served) {
        self.write().push(served);
    }

    pub(crate) fn remove(&self, name: &str) {
        self.write().retain(|served| served.name != name);
    }

    /// Serves a page blob, known by its seat, as another name, or no longer.
    pub(crate) fn rename(&self, seat: &Arc<Seat>, name: Option<&str>) {
        let is_it =
            |served: &Served| served.seat.as_ref().is_some_and(|own| Arc::ptr_eq(own, seat));
        let mut all = self.write();
        match name {
            None => all.retain(|served| !is_it(served)),
            Some(name) => {
                all.iter_mut()
                    .filter(|served| is_it(served))
                    .for_each(|served| name.clone_into(&mut served.name));
            }
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.read().iter().map(|served| served.name.clone()).collect()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.read().iter().any(|served| served.name == name)
    }

    fn get(&self, name: &str) -> Option<Served> {
        self.read().iter().find(|served| name.is_empty() || served.name == name).cloned()
    }

    fn read(&self) -> RwLockReadGuard<'_, Vec<Served>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Vec<Served>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn describe(served: &Served) -> Option<Export> {
        if let Some(view) = &served.view {
            return Some(Export {
                name: served.name.clone(),
                description: served.description.clone(),
                size: view.size(),
                flags: TransmissionFlags::HAS_FLAGS
                    | TransmissionFlags::READ_ONLY
                    | TransmissionFlags::CAN_MULTI_CONN,
                block: BlockSizes::DEFAULT,
            });
        }
        let device = served.device;
        let size = served.host.ask(move |host, _| host.size(device))?;
        let flags = [
            TransmissionFlags::SEND_FLUSH,
            TransmissionFlags::SEND_FUA,
            TransmissionFlags::SEND_TRIM,
            TransmissionFlags::SEND_WRITE_ZEROES,
            TransmissionFlags::CAN_MULTI_CONN,
            TransmissionFlags::SEND_CACHE,
        ];
        let leased = served.seat.as_ref().is_some_and(|seat| seat.is_leased(calendar()));
        let read_only = leased.then_some(TransmissionFlags::READ_ONLY);
        Some(Export {
            name: served.name.clone(),
            description: served.description.clone(),
            size,
            flags: flags
                .into_iter()
                .chain(read_only)
                .fold(TransmissionFlags::HAS_FLAGS, |all, flag| all | flag),
            block: BlockSizes::DEFAULT,
        })
    }
}

impl Exports for Directory {
    fn find(&self, name: &str) -> Option<Export> {
        self.get(name).as_ref().and_then(Self::describe)
    }

    fn list(&self) -> Vec<Export> {
        // A listing does not show sizes, so no host needs to be asked.
        let unknown = |served: &Served| Export {
            name: served.name.clone(),
            description: served.description.clone(),
            size: Bytes::ZERO,
            flags: TransmissionFlags::HAS_FLAGS,
            block: BlockSizes::DEFAULT,
        };
        self.read().iter().map(unknown).collect()
    }
}

/// A socket that is listened on.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: Socket,
    /// Clients over TCP have to use it.
    tls: Option<Tls>,
    /// The address with the port that was really taken.
    pub(crate) address: Address,
}

#[derive(Debug)]
enum Socket {
    Unix(LocalSocket),
    Tcp(TcpListener),
}

impl Listener {
    pub(crate) fn bind(address: &Address, tls: Option<&Tls>) -> Result<Self, ServerError> {
        let failed =
            |source: io::Error| ServerError::Listen { address: address.to_string(), source };
        let (socket, address) = match address {
            Address::Unix(path) => {
                let socket = LocalSocket::bind(path, &address.to_string())?;
                let path = socket.path.clone();
                (Socket::Unix(socket), Address::Unix(path))
            }
            Address::Tcp(text) => {
                let socket = TcpListener::bind(text).map_err(failed)?;
                let local = socket.local_addr().map_err(failed)?;
                (Socket::Tcp(socket), Address::Tcp(local.to_string()))
            }
        };
        let tls = tls.filter(|_| matches!(socket, Socket::Tcp(_))).cloned();
        Ok(Self { socket, tls, address })
    }

    /// Returns whether clients need TLS.
    pub(crate) const fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    fn accept(&self) -> io::Result<Stream> {
        match &self.socket {
            Socket::Unix(local) => local.listener.accept().map(|(stream, _)| Stream::Unix(stream)),
            Socket::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                // A client whose machine is gone says nothing at all.
                set_socket_keepalive(&stream, true)?;
                Ok(Stream::Tcp(stream))
            }
        }
    }

    /// Accepts until [`close`](Self::close).
    pub(crate) fn run(&self, directory: &Arc<Directory>, door: &Arc<Door>, stop: &AtomicBool) {
        loop {
            let accepted = self.accept();
            if stop.load(Ordering::Acquire) {
                return;
            }
            let Ok(stream) = accepted else {
                pause();
                continue;
            };
            let Some(entry) = door.enter(stream) else { continue };
            let (directory, tls) = (Arc::clone(directory), self.tls.clone());
            // Without a thread the client sees its connection close.
            let _ = std::thread::Builder::new()
                .name("weir-handshake".to_owned())
                .stack_size(512 << 10)
                .spawn(move || {
                    // A client that fails its handshake is its own problem.
                    let _ = shake_hands(entry, &directory, tls.as_ref());
                });
        }
    }

    /// Takes no more clients: a blocked [`run`](Self::run) looks at its `stop`.
    pub(crate) fn close(&self) {
        // It fails only where nothing is listened to any more.
        let _ = match &self.socket {
            Socket::Unix(local) => shutdown(&local.listener, Shutdown::Both),
            Socket::Tcp(listener) => shutdown(listener, Shutdown::Both),
        };
    }
}

#[expect(clippy::disallowed_methods, reason = "there is nothing to wait on, see PAUSE")]
pub(crate) fn pause() {
    std::thread::sleep(PAUSE);
}

/// Negotiates with a client and hands it to its host.
fn shake_hands(entry: Entry, directory: &Directory, tls: Option<&Tls>) -> io::Result<()> {
    let Some((session, tls, rest)) = negotiate(&entry, directory, tls)? else { return Ok(()) };
    let Some((stream, place)) = entry.establish() else { return Ok(()) };
    set_timeouts(&stream, None)?;
    match &stream {
        Stream::Unix(stream) => stream.set_nonblocking(true)?,
        Stream::Tcp(stream) => stream.set_nonblocking(true)?,
    }
    if let Some(served) = directory.get(&session.export.name) {
        let Served { device, seat, view, host, .. } = served;
        let hello = Established { session, device, tls, rest, seat, view, place: Some(place) };
        host.send(Message::Client(stream, hello));
    }
    Ok(())
}

/// The result of a handshake: the session, its encryption, and the bytes that followed it.
type Agreed = (Session, Option<Encryption>, Vec<u8>);

/// Negotiates with a client. Returns nothing if the client ends it.
fn negotiate(
    entry: &Entry,
    directory: &Directory,
    tls: Option<&Tls>,
) -> io::Result<Option<Agreed>> {
    let stream = &entry.guest.stream;
    // The limit is for all of it: a client that sends a byte now and then has no
    // more time than one that sends none.
    let (clock, most) = (Clock::start(), Duration::from_nanos(entry.longest().nanos()));
    let limit = || {
        let left = most.saturating_sub(Duration::from_nanos(clock.now().nanos()));
        match left.is_zero() {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => set_timeouts(stream, Some(left)),
        }
    };
    limit()?;
    let mut talk = Talk { stream, encryption: None };
    let (mut input, mut out) = (Vec::new(), Vec::new());
    let mut handshake = Handshake::start(&mut out);
    if tls.is_some() {
        handshake = handshake.with_tls();
    }
    talk.write_all(&out)?;
    loop {
        out.clear();
        let progress = handshake
            .handle(directory, &input, &mut out)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        input.drain(..progress.consumed);
        talk.write_all(&out)?;
        match progress.step {
            Step::Again => {}
            Step::Aborted => return Ok(None),
            Step::Established(session) => return Ok(Some((session, talk.encryption, input))),
            Step::StartTls => {
                // It was not encrypted, so a man in the middle may have injected it.
                let has_plain = !input.is_empty();
                let Some(tls) = tls.filter(|_| !has_plain) else {
                    return Err(io::ErrorKind::InvalidData.into());
                };
                talk.encryption = Some(Encryption::agree(tls, stream, limit)?);
            }
            Step::NeedMore { at_least } => {
                let mut chunk = [0; 4096];
                while input.len() < at_least {
                    limit()?;
                    match talk.read(&mut chunk)? {
                        0 => return Ok(None),
                        n => input.extend_from_slice(&chunk[..n]),
                    }
                    entry.guest.has_spoken.store(true, Ordering::Release);
                }
            }
        }
    }
}

/// A client during its handshake, in plain or encrypted. Calls block.
struct Talk<'a> {
    stream: &'a Stream,
    encryption: Option<Encryption>,
}

impl Read for Talk<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match &mut self.encryption {
            None => self.stream.read(buf),
            Some(encryption) => encryption.read(self.stream, buf),
        }
    }
}

impl Write for Talk<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match &mut self.encryption {
            None => self.stream.write(buf),
            Some(encryption) => encryption.write(self.stream, buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn set_timeouts(stream: &Stream, timeout: Option<Duration>) -> io::Result<()> {
    match stream {
        Stream::Unix(stream) => {
            stream.set_read_timeout(timeout)?;
            stream.set_write_timeout(timeout)
        }
        Stream::Tcp(stream) => {
            stream.set_read_timeout(timeout)?;
            stream.set_write_timeout(timeout)
        }
    }
}
