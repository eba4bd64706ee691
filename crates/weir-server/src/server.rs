//! Starting, stopping, and the parts together.
//!
//! | module | holds |
//! |---|---|
//! | `options` | the options of a server |
//! | `shared` | the state that front ends and control conversations share |
//! | `late` | volumes whose backends come after the start |
//! | `coming` | the handle of front ends; volumes that are made and deleted |
//! | `commands` | resizes, tiers, cache modes, crashes, warm-ups |
//! | `freeze`, `views` | freezes, and the frozen exports |
//! | `paged` | page blobs as volumes |
//! | `status` | a reading of all counters |
//! | `summing` | checksums that are unknown at the start |

mod coming;
mod commands;
pub(crate) mod freeze;
pub(crate) mod late;
pub(crate) mod options;
pub(crate) mod paged;
mod recording;
pub(crate) mod shared;
mod status;
mod summing;
mod views;

pub use coming::{Exported, Handle, Opened};
pub use commands::Tiers;
pub use options::Options;
pub use paged::Paged;

use crate::audit::Audit;
use crate::control::{ControlSocket, Request};
use crate::door::Door;
use crate::error::ServerError;
use crate::host_loop::{Behind, HostLoop};
use crate::listener::{Address, Directory, Listener};
use crate::mailbox::Message;
use crate::notice::Notice;
use crate::reactor::Reactor;
use crate::starting::Starting;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;
use shared::{Shared, gone};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use weir_catalog::Edition;
use weir_layout::Layout;
use weir_proto::uri::Server as UriServer;
use weir_report::status::{Refused, Status};
use weir_store::DataDir;
use weir_units::Bytes;
use weir_wall::{Clock, Waiting};

/// A running server. Dropping it stops it and ignores errors.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    listeners: Vec<(Arc<Listener>, JoinHandle<()>)>,
    control: Option<(Arc<ControlSocket>, JoinHandle<()>)>,
    reactors: Vec<JoinHandle<Result<HostLoop, ServerError>>>,
    /// Tries backends again that were away at the start.
    late: Option<JoinHandle<()>>,
    /// Computes checksums that were unknown at the start.
    summing: Option<JoinHandle<()>>,
    /// The volumes and stripes that were left out at the start.
    refused: Vec<Refused>,
}

impl Server {
    /// Serves `layout`; returns when clients can connect.
    ///
    /// # Errors
    ///
    /// [`ServerError`]. A volume whose data is damaged is no error: it is left
    /// out, see [`refused`](Self::refused).
    pub fn start(
        layout: Layout,
        edition: Option<&Edition>,
        options: &Options,
    ) -> Result<Self, ServerError> {
        check_cores(options.waiting, layout.hosts.len())?;
        raise_file_limit();
        let listen = if options.no_exports {
            Vec::new()
        } else if options.listen.is_empty() {
            vec![Address::default()]
        } else {
            options.listen.clone()
        };
        let listeners = Listener::bind_all(&listen, options.tls.as_ref())?;
        let holder = listeners.iter().map(|l| l.address.to_string()).collect::<Vec<_>>().join(" ");
        // Before the data directory, which a failed start must not leave behind.
        let control = options.control.as_deref().map(ControlSocket::bind).transpose()?;
        let data = match &options.data {
            Some(path) => {
                let serve = || format!("weir serve at {holder}");
                Some(DataDir::open(path, &options.holder.clone().unwrap_or_else(serve))?)
            }
            None => None,
        };
        let clock = Clock::start();
        let mut starting = Starting::new(edition, data.as_ref(), clock, options, &layout);
        starting.look_for_made(&layout)?;
        starting.check_write_logs(&layout)?;
        let hosts = layout.hosts.into_iter().map(|host| starting.host(host));
        let (hosts, reactors): (Vec<_>, Vec<_>) =
            hosts.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let Starting { directory, mut refused, late, .. } = starting;
        if directory.names().is_empty() && !options.may_be_empty {
            return Err(ServerError::NothingToServe { refused });
        }
        late::promise(&mut refused, &late);
        let addresses =
            listeners.iter().filter_map(|l| Some((reached_at(&l.address)?, l.has_tls())));
        let addresses = addresses.collect();
        let (hosts, directory) = (Mutex::new(hosts), Arc::new(directory));
        let edition = edition.cloned();
        let served = Arc::clone(&directory);
        let shared = Shared {
            clock,
            edition,
            hosts,
            coming: Mutex::default(),
            refused: Mutex::new(refused.clone()),
            directory: served,
            audit: Audit::new(options.notices.clone()),
            addresses,
            data,
            is_mounted: options.no_exports,
            freezes: Mutex::default(),
            changes: AtomicU64::new(0),
            used: OnceLock::new(),
        };
        let shared = Arc::new(shared);
        let stop = Arc::new(AtomicBool::new(false));
        let (listening, running) = (Vec::new(), Vec::new());
        let mut server = Self {
            shared,
            stop,
            listeners: listening,
            control: None,
            reactors: running,
            late: None,
            summing: None,
            refused,
        };
        server.run(reactors)?;
        let door = Door::new(options.bounds, clock, options.notices.clone());
        server.listen(listeners, directory, Arc::new(door))?;
        if let Some(socket) = control {
            server.open_control(socket)?;
        }
        server.summing = summing::start(&server.shared, &options.notices, &server.stop)?;
        server.late = late::start(&server.shared, late, &options.notices, &server.stop)?;
        Ok(server)
    }

    fn run(&mut self, reactors: Vec<Reactor>) -> Result<(), ServerError> {
        for reactor in reactors {
            let (host, notices) = (reactor.name().to_owned(), reactor.notices().clone());
            let thread = std::thread::Builder::new()
                .name(format!("weir-{host}"))
                .spawn(move || {
                    // A panic ends the host, so its inconsistent state is never used.
                    let ended = catch_unwind(AssertUnwindSafe(|| reactor.run()));
                    ended.unwrap_or_else(|_| Err(gone())).inspect_err(|error| {
                        notices.tell(Notice::HostEnded { host, reason: error.to_string() });
                    })
                })
                .map_err(ServerError::system("starting a host's thread"))?;
            self.reactors.push(thread);
        }
        Ok(())
    }

    fn listen(
        &mut self,
        listeners: Vec<Listener>,
        directory: Arc<Directory>,
        door: Arc<Door>,
    ) -> Result<(), ServerError> {
        for listener in listeners {
            let listener = Arc::new(listener);
            let (own, directory, door, audit, stop) = (
                Arc::clone(&listener),
                Arc::clone(&directory),
                Arc::clone(&door),
                self.shared.audit.clone(),
                Arc::clone(&self.stop),
            );
            let thread = std::thread::Builder::new()
                .name("weir-listen".to_owned())
                .spawn(move || own.run(&directory, &door, &audit, &stop))
                .map_err(ServerError::system("starting a listener's thread"))?;
            self.listeners.push((listener, thread));
        }
        Ok(())
    }

    fn open_control(&mut self, socket: ControlSocket) -> Result<(), ServerError> {
        let socket = Arc::new(socket);
        let (own, shared, stop) =
            (Arc::clone(&socket), Arc::clone(&self.shared), Arc::clone(&self.stop));
        let thread = std::thread::Builder::new()
            .name("weir-control".to_owned())
            .spawn(move || own.run(&shared, &stop))
            .map_err(ServerError::system("starting the control thread"))?;
        self.control = Some((socket, thread));
        Ok(())
    }

    /// Returns the URIs of every export, by its name.
    #[must_use]
    pub fn uris(&self) -> BTreeMap<String, Vec<String>> {
        self.shared.uris()
    }

    /// Returns the addresses that are listened at, with the ports that were really taken.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.listeners.iter().map(|(listener, _)| &listener.address)
    }

    /// Volumes and stripes that were left out at the start, and why. [`status`](Self::status) has those
    /// that are still left out.
    #[must_use]
    pub fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// Executes a command of the control socket.
    ///
    /// # Errors
    ///
    /// [`ServerError`] with what to do.
    pub fn command(&self, request: Request) -> Result<Value, ServerError> {
        self.shared.answer(request)
    }

    /// Resizes a volume under load and moves its limits to those of its new size.
    ///
    /// # Errors
    ///
    /// [`ServerError`] if there is no such volume, it may not have that size, or there is
    /// data behind the new end.
    pub fn resize(&self, volume: &str, size: Bytes) -> Result<Tiers, ServerError> {
        self.shared.resize(volume, size, Behind::Keep)
    }

    /// Returns a handle for other front ends.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle::new(Arc::clone(&self.shared))
    }

    /// Returns a reading of all counters.
    #[must_use]
    pub fn status(&self) -> Status {
        self.shared.status()
    }

    /// Accepts no more requests, completes those in flight without limits, makes everything durable,
    /// and ends.
    ///
    /// # Errors
    ///
    /// [`ServerError`] if something could not be made durable.
    pub fn stop(mut self) -> Result<(), ServerError> {
        self.shut_down()
    }

    fn shut_down(&mut self) -> Result<(), ServerError> {
        self.stop.store(true, Ordering::Release);
        for (listener, thread) in self.listeners.drain(..) {
            listener.close();
            drop(thread.join());
        }
        if let Some((socket, thread)) = self.control.take() {
            socket.close();
            drop(thread.join());
            socket.end_conversations();
        }
        for thread in [self.late.take(), self.summing.take()].into_iter().flatten() {
            drop(thread.join());
        }
        self.shared.end_freezes();
        self.shared.hosts().iter().for_each(|host| host.mailbox.send(Message::Stop));
        let mut result = Ok(());
        for thread in self.reactors.drain(..) {
            let ended = thread.join().unwrap_or_else(|_| Err(gone()));
            let synced = ended.and_then(|mut host| {
                host.sync_all().map_err(|source| match host.owed_in_all() {
                    Bytes::ZERO => source.into(),
                    lost => ServerError::Lost { lost, source },
                })
            });
            if result.is_ok() {
                result = synced;
            }
        }
        for volume in self.shared.hosts().iter().flat_map(|host| host.stored.iter().flatten()) {
            // On failure, the next backup has to be a full one.
            let _ = volume.record_changes();
        }
        result
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.shut_down();
    }
}

/// Refuses to poll without a core for each host and one for everything else, since threads that
/// share a core would then be later than threads that sleep.
fn check_cores(waiting: Waiting, hosts: usize) -> Result<(), ServerError> {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    if waiting == Waiting::Poll { cores_for(hosts, cores) } else { Ok(()) }
}

fn cores_for(hosts: usize, cores: usize) -> Result<(), ServerError> {
    if hosts < cores { Ok(()) } else { Err(ServerError::TooFewCores { hosts, cores }) }
}

/// Raises the limit of descriptors: the usual 1,024 are too few for many volumes.
fn raise_file_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // If it is not allowed, the old limit stays.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

fn reached_at(address: &Address) -> Option<UriServer> {
    match address {
        Address::Unix(path) => {
            Some(UriServer::Unix { socket: path.to_string_lossy().into_owned() })
        }
        Address::Tcp(text) => {
            let (host, port) = text.rsplit_once(':')?;
            let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
            Some(UriServer::Tcp { host, port: port.parse().ok()? })
        }
        Address::Systemd => None,
    }
}

#[cfg(test)]
mod tests;
