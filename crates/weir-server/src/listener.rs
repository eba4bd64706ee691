//! Accepting clients, and the exports that there are.
//!
//! Each handshake has a thread of its own and a time limit, so that a silent client does not delay
//! others; [`crate::door`] limits their number.

use crate::audit::Audit;
use crate::connection::Stream;
use crate::door::Door;
use crate::error::ServerError;
use crate::handshake::shake_hands;
use crate::local_socket::LocalSocket;
use crate::mailbox::Mailbox;
use crate::passed::Passed;
use crate::seat::Seat;
use crate::tls::Tls;
use crate::volume::View;
use rustix::net::sockopt::set_socket_keepalive;
use rustix::net::{Shutdown, shutdown};
use std::fmt;
use std::io;
use std::net::{TcpListener, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;
use weir_core::DeviceId;
use weir_layout::clients::{Access, Clients};
use weir_proto::{BlockSizes, Export, TransmissionFlags};
use weir_store::Store;
use weir_units::Bytes;
use weir_wall::calendar;

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
    /// All sockets that systemd passes to the server.
    Systemd,
}

impl Address {
    /// Returns whether other machines may reach the address. A name that cannot be resolved counts as
    /// one that they do.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        match self {
            // The server finds out where a passed socket listens.
            Self::Unix(_) | Self::Systemd => false,
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
            None if text == "systemd" => Ok(Self::Systemd),
            Some(("unix", "")) => Err(bad("the path is empty")),
            Some(("unix", path)) if path.len() > 107 => {
                Err(bad("a Unix socket's path has at most 107 bytes"))
            }
            Some(("unix", path)) => Ok(Self::Unix(PathBuf::from(path))),
            Some(("tcp", address)) => match address.rsplit_once(':') {
                Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
                    Ok(Self::Tcp(address.to_owned()))
                }
                _ => Err(bad("it needs a host and a port of at most 65535")),
            },
            _ => Err(bad("it is not systemd, and does not start with unix: or tcp:")),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
            Self::Systemd => f.write_str("systemd"),
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
    /// The clients over TCP that may reach it; all if there is no list.
    pub(crate) clients: Option<Arc<Clients>>,
}

/// Everything that can be asked for, in the layout's order, and what came later behind it;
/// the first is the default.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    all: RwLock<Vec<Served>>,
    access: Access,
}

impl Directory {
    pub(crate) fn new(access: Access) -> Self {
        Self { all: RwLock::default(), access }
    }

    /// Returns the clients of an export.
    pub(crate) fn clients_of(&self, name: &str) -> Option<Arc<Clients>> {
        self.access.of_export(name).cloned()
    }

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

    pub(crate) fn get(&self, name: &str) -> Option<Served> {
        self.read().iter().find(|served| served.name == name).cloned()
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Vec<Served>> {
        self.all.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Vec<Served>> {
        self.all.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an export as it is listed: no host is asked for its size.
    pub(crate) fn listed(served: &Served) -> Export {
        Export {
            name: served.name.clone(),
            description: served.description.clone(),
            size: Bytes::ZERO,
            flags: TransmissionFlags::HAS_FLAGS,
            block: BlockSizes::LARGEST,
        }
    }

    /// Returns an export with its size; `None` if its host has ended.
    pub(crate) fn describe(served: &Served) -> Option<Export> {
        if let Some(view) = &served.view {
            return Some(Export {
                name: served.name.clone(),
                description: served.description.clone(),
                size: view.size(),
                flags: TransmissionFlags::HAS_FLAGS
                    | TransmissionFlags::READ_ONLY
                    | TransmissionFlags::CAN_MULTI_CONN,
                block: BlockSizes::LARGEST,
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
            block: BlockSizes::LARGEST,
        })
    }
}

/// A socket that is listened on.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: Socket,
    /// Required of clients over TCP and on sockets that were passed.
    tls: Option<Tls>,
    /// The address with the port that was really taken.
    pub(crate) address: Address,
}

#[derive(Debug)]
enum Socket {
    Unix(LocalSocket),
    Tcp(TcpListener),
    Passed(Passed),
}

impl Listener {
    /// Listens at all `addresses`, with TLS over TCP and on sockets that were passed.
    pub(crate) fn bind_all(
        addresses: &[Address],
        tls: Option<&Tls>,
    ) -> Result<Vec<Self>, ServerError> {
        let mut all = Vec::with_capacity(addresses.len());
        for address in addresses {
            match address {
                Address::Unix(path) => {
                    let socket = LocalSocket::bind(path, &address.to_string())?;
                    let address = Address::Unix(socket.path.clone());
                    all.push(Self { socket: Socket::Unix(socket), tls: None, address });
                }
                Address::Tcp(text) => {
                    let failed =
                        |source| ServerError::Listen { address: address.to_string(), source };
                    let socket = TcpListener::bind(text).map_err(failed)?;
                    let address = Address::Tcp(socket.local_addr().map_err(failed)?.to_string());
                    all.push(Self { socket: Socket::Tcp(socket), tls: tls.cloned(), address });
                }
                Address::Systemd => {
                    let passed = Passed::take_all()?.into_iter();
                    all.extend(passed.map(|(socket, address)| Self {
                        socket: Socket::Passed(socket),
                        tls: tls.cloned(),
                        address,
                    }));
                }
            }
        }
        Ok(all)
    }

    /// Returns whether clients need TLS.
    pub(crate) const fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    fn accept(&self) -> io::Result<Stream> {
        let stream = match &self.socket {
            Socket::Unix(local) => Stream::Unix(local.listener.accept()?.0),
            Socket::Tcp(listener) => Stream::Tcp(listener.accept()?.0),
            Socket::Passed(passed) => passed.accept()?,
        };
        if let Stream::Tcp(stream) = &stream {
            stream.set_nodelay(true)?;
            // A client whose machine is gone says nothing at all.
            set_socket_keepalive(stream, true)?;
        }
        Ok(stream)
    }

    /// Accepts until [`close`](Self::close).
    pub(crate) fn run(
        &self,
        directory: &Arc<Directory>,
        door: &Arc<Door>,
        audit: &Audit,
        stop: &AtomicBool,
    ) {
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
            let (directory, audit, tls) = (Arc::clone(directory), audit.clone(), self.tls.clone());
            // Without a thread the client sees its connection close.
            let _ = std::thread::Builder::new()
                .name("weir-handshake".to_owned())
                .stack_size(512 << 10)
                .spawn(move || shake_hands(entry, &directory, &audit, tls.as_ref()));
        }
    }

    /// Takes no more clients: a blocked [`run`](Self::run) looks at its `stop`.
    pub(crate) fn close(&self) {
        match &self.socket {
            // These fail only where nothing is listened to any more.
            Socket::Unix(local) => drop(shutdown(&local.listener, Shutdown::Both)),
            Socket::Tcp(listener) => drop(shutdown(listener, Shutdown::Both)),
            Socket::Passed(passed) => passed.close(),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "there is nothing to wait on, see PAUSE")]
pub(crate) fn pause() {
    std::thread::sleep(PAUSE);
}
