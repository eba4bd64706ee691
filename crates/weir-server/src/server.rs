//! Starting, stopping, and the parts together.

mod coming;
mod freeze;

pub use coming::{Exported, Handle, Opened, Paged};
pub(crate) use freeze::Holding;

use crate::control::{ControlSocket, Request};
use crate::error::ServerError;
use crate::host_loop::{Behind, HostLoop};
use crate::listener::{Address, Directory, Listener};
use crate::notice::{Listening, Notice};
use crate::observer::Observer;
use crate::reactor::{Mailbox, Message, Reactor};
use crate::starting::{self, CACHE, Starting};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use weir_catalog::Edition;
use weir_core::{CacheMode, Cap, DeviceId, VolumeId, Waits};
use weir_layout::error::Kind as LayoutKind;
use weir_layout::{Export, Host, Layout, Volume};
use weir_proto::uri::{Server as UriServer, Uri};
use weir_report::status::{ExportStatus, HostStatus, Refused, Status, VolumeStatus};
use weir_store::{DataDir, Volume as StoredVolume};
use weir_units::Bytes;
use weir_wall::{Clock, Waiting};

/// Options of a server.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The data directory; without one, volumes are in memory.
    pub data: Option<PathBuf>,
    /// The addresses to listen on; [`Address::default`] if empty.
    pub listen: Vec<Address>,
    /// The control socket; none if not given.
    pub control: Option<PathBuf>,
    /// The receiver of notices.
    pub notices: Listening,
    /// The receiver of each request's waits.
    pub observer: Observer,
    /// The holder of the data directory in messages of other processes; `weir serve at ADDRESS`
    /// if not given.
    pub holder: Option<String>,
    /// True if it may start without volumes, because they come later.
    pub may_be_empty: bool,
    /// True if no exports are served; `listen` is ignored then.
    pub no_exports: bool,
    /// How the hosts' threads wait for deadlines.
    pub waiting: Waiting,
}

/// The tiers of a volume that was resized, if it has any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tiers {
    /// The one that it had.
    pub before: Option<String>,
    /// The one that it has.
    pub after: Option<String>,
}

/// A running server. Dropping it stops it, without saying what went wrong.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    listeners: Vec<(Arc<Listener>, JoinHandle<()>)>,
    control: Option<(Arc<ControlSocket>, JoinHandle<()>)>,
    reactors: Vec<JoinHandle<Result<HostLoop, ServerError>>>,
}

/// The state that control conversations share.
#[derive(Debug)]
pub(crate) struct Shared {
    clock: Clock,
    edition: Option<Edition>,
    hosts: Mutex<Vec<HostState>>,
    /// Held by who makes, deletes or freezes volumes, for as long as that takes: one at a time.
    coming: Mutex<()>,
    refused: Vec<Refused>,
    directory: Arc<Directory>,
    /// The addresses of the exports.
    addresses: Vec<UriServer>,
    /// The data directory stays locked while this lives.
    data: Option<DataDir>,
    /// The volumes are used by a mount alone.
    is_mounted: bool,
    freezes: Mutex<freeze::Freezes>,
    /// The number of changes to volumes.
    changes: AtomicU64,
    /// The used bytes of an export whose bytes are elsewhere.
    used: OnceLock<Used>,
}

/// Says how many bytes are used of the export of a name.
struct Used(Box<UsedOf>);

type UsedOf = dyn Fn(&str) -> Option<u64> + Send + Sync;

impl fmt::Debug for Used {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Used").finish()
    }
}

/// A host as the control socket knows it.
#[derive(Debug)]
pub(crate) struct HostState {
    /// With what was changed since the start.
    pub(crate) layout: Host,
    pub(crate) mailbox: Mailbox,
    /// The volumes of the data directory; none for those in memory or refused.
    pub(crate) stored: Vec<Option<Arc<StoredVolume>>>,
    /// Volumes that were made while it was served.
    pub(crate) made: BTreeSet<usize>,
    /// Those of them that are page blobs.
    pub(crate) paged: BTreeMap<usize, Paged>,
    /// Volumes of which somebody changes something now, and what.
    pub(crate) changing: BTreeMap<usize, &'static str>,
}

/// A change of a volume, which nobody else changes until this is dropped. The hosts
/// are not locked meanwhile: a medium may be slow, and others want to know how it is.
#[derive(Debug)]
struct Change<'a> {
    shared: &'a Shared,
    host: usize,
    id: VolumeId,
    /// The new state of the volume.
    to: Volume,
    mailbox: Mailbox,
    stored: Option<Arc<StoredVolume>>,
}

impl Change<'_> {
    /// Publishes the new limits of the volume.
    fn keep(self) {
        let mut hosts = self.shared.hosts();
        let host = &mut hosts[self.host].layout;
        host.spec.volumes[self.id.0] = self.to.spec.clone();
        host.volumes[self.id.0] = self.to.clone();
        self.shared.changes.fetch_add(1, Ordering::Release);
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.shared.hosts()[self.host].changing.remove(&self.id.0);
    }
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
        let listeners = listen.iter().map(Listener::bind).collect::<Result<Vec<_>, _>>()?;
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
        let mut starting = Starting::new(edition, data.as_ref(), clock, options);
        starting.look_for_made(&layout)?;
        let hosts = layout.hosts.into_iter().map(|host| starting.host(host));
        let (hosts, reactors): (Vec<_>, Vec<_>) =
            hosts.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let Starting { directory, refused, .. } = starting;
        if directory.names().is_empty() && !options.may_be_empty {
            return Err(ServerError::NothingToServe { refused });
        }
        let addresses = listeners.iter().filter_map(|l| reached_at(&l.address)).collect();
        let (hosts, directory) = (Mutex::new(hosts), Arc::new(directory));
        let edition = edition.cloned();
        let served = Arc::clone(&directory);
        let shared = Shared {
            clock,
            edition,
            hosts,
            coming: Mutex::default(),
            refused,
            directory: served,
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
        let mut server =
            Self { shared, stop, listeners: listening, control: None, reactors: running };
        server.run(reactors)?;
        server.listen(listeners, directory)?;
        if let Some(socket) = control {
            server.open_control(socket)?;
        }
        Ok(server)
    }

    fn run(&mut self, reactors: Vec<Reactor>) -> Result<(), ServerError> {
        for reactor in reactors {
            let (host, notices) = (reactor.name().to_owned(), reactor.notices().clone());
            let thread = std::thread::Builder::new()
                .name(format!("weir-{host}"))
                .spawn(move || {
                    // The host goes down with a panic, so nobody sees it half changed.
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
    ) -> Result<(), ServerError> {
        for listener in listeners {
            let listener = Arc::new(listener);
            let (own, directory, stop) =
                (Arc::clone(&listener), Arc::clone(&directory), Arc::clone(&self.stop));
            let thread = std::thread::Builder::new()
                .name("weir-listen".to_owned())
                .spawn(move || own.run(&directory, &stop))
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

    /// Volumes and stripes that are left out, and why.
    #[must_use]
    pub fn refused(&self) -> &[Refused] {
        &self.shared.refused
    }

    /// Does what the control socket would.
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

    /// Takes no more requests, completes what is under way without limits, makes
    /// everything durable, ends.
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
            // Without that the next full backup is needed sooner, and nothing is wrong.
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
    }
}

impl Shared {
    fn hosts(&self) -> MutexGuard<'_, Vec<HostState>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn uris(&self) -> BTreeMap<String, Vec<String>> {
        let uri = |server: &UriServer, name: &str| {
            Uri { server: server.clone(), export: name.to_owned() }.to_string()
        };
        let uris = |name: &str| self.addresses.iter().map(|server| uri(server, name)).collect();
        self.directory.names().into_iter().map(|name| (name.clone(), uris(&name))).collect()
    }

    pub(crate) fn answer(&self, request: Request) -> Result<Value, ServerError> {
        match request {
            Request::Status => Ok(serde_json::to_value(self.status()).unwrap_or(Value::Null)),
            Request::Resize { volume, size } => self
                .refuse_elsewhere(&volume, "resize")
                .and_then(|()| self.resize(&volume, size, Behind::Keep))
                .map(|tiers| json!({ "volume": volume, "size": size, "tier": tiers.after })),
            Request::Create { host, volume } => self.create(host.as_deref(), &volume),
            Request::Delete { volume } => self.delete(&volume),
            Request::SetCache { volume, mode } => self.set_cache(&volume, &mode),
            Request::Crash { host } => self.crash(&host),
            Request::Warm { export, offset, len } => self.warm(&export, offset, len),
            Request::Freeze { .. }
            | Request::Changed { .. }
            | Request::ReadDone { .. }
            | Request::Release { .. } => Err(ServerError::Refused(
                "a freeze lasts as long as the control connection that made it; ask over one"
                    .to_owned(),
            )),
        }
    }

    /// Returns the position of its host, and of the volume there.
    fn find(&self, hosts: &[HostState], name: &str) -> Result<(usize, VolumeId), ServerError> {
        if let Some(refused) = self.refused.iter().find(|refused| refused.name == name) {
            return Err(refuse(name, format!("it is not served: {}", refused.reason)));
        }
        let is_it = |volume: &Volume| !volume.is_gone() && volume.name == name;
        let position = |host: &HostState| host.layout.volumes.iter().position(is_it);
        let found = hosts.iter().enumerate().find_map(|(at, host)| Some((at, position(host)?)));
        match found {
            Some((at, id)) => Ok((at, VolumeId(id))),
            None => {
                let mut stripes = hosts
                    .iter()
                    .flat_map(|host| host.layout.exports.iter().map(move |export| (host, export)));
                if let Some((host, stripe)) = stripes.find(|(_, export)| export.name == name) {
                    let columns = stripe.volumes.iter().map(|id| &*host.layout.volumes[id.0].name);
                    return Err(ServerError::is_stripe(name, &columns.collect::<Vec<_>>()));
                }
                let known = hosts.iter().flat_map(|host| &host.layout.volumes);
                let known = known.filter(|volume| !volume.is_gone());
                Err(ServerError::not_there("volume", name, known.map(|v| v.name.as_str())))
            }
        }
    }

    /// Begins to change a volume to what `to` makes of it.
    fn change(
        &self,
        name: &str,
        what: &'static str,
        to: impl FnOnce(&Host, VolumeId) -> Result<Volume, LayoutKind>,
    ) -> Result<Change<'_>, ServerError> {
        let mut hosts = self.hosts();
        let (at, id) = self.find(&hosts, name)?;
        let host = &mut hosts[at];
        if let Some(what) = host.changing.get(&id.0) {
            return Err(refuse(name, format!("{what} right now; ask again when that is done")));
        }
        let to = to(&host.layout, id).map_err(ServerError::Layout)?;
        host.changing.insert(id.0, what);
        let (mailbox, stored) = (host.mailbox.clone(), host.stored[id.0].clone());
        Ok(Change { shared: self, host: at, id, to, mailbox, stored })
    }

    fn resize(&self, name: &str, size: Bytes, behind: Behind) -> Result<Tiers, ServerError> {
        let edition = self.edition.as_ref();
        let mut before = None;
        let change = self.change(name, "it is being resized", |host, id| {
            before.clone_from(&host.volumes[id.0].tier);
            host.resized(id, size, edition)
        })?;
        let (id, spec, own) = (change.id, change.to.spec.clone(), name.to_owned());
        let (sender, receiver) = channel();
        change.mailbox.send(Message::Call(Box::new(move |host, now| {
            host.resize(now, id, &own, &spec, behind, move |result| drop(sender.send(result)));
        })));
        receiver.recv().map_err(|_| gone())??;
        let after = change.to.tier.clone();
        self.remember(&change)?;
        change.keep();
        Ok(Tiers { before, after })
    }

    /// Gives a volume the limits of a tier, its size unchanged.
    fn retier(&self, name: &str, tier: &str) -> Result<Tiers, ServerError> {
        let edition = self.edition.as_ref();
        let mut before = None;
        let change = self.change(name, "its tier is being changed", |host, id| {
            before.clone_from(&host.volumes[id.0].tier);
            host.retiered(id, tier, edition)
        })?;
        let (id, limits) = (change.id, change.to.spec.limits);
        ask(&change.mailbox, move |host, now| host.set_limits(now, id, limits))?;
        let after = change.to.tier.clone();
        self.remember(&change)?;
        change.keep();
        Ok(Tiers { before, after })
    }

    /// Keeps the tier that a volume which was made is to have.
    fn remember(&self, change: &Change<'_>) -> Result<(), ServerError> {
        let made = self.hosts()[change.host].made.contains(&change.id.0);
        match &change.stored {
            Some(volume) if made => starting::remember_tier(volume, change.to.named_tier()),
            _ => Ok(()),
        }
    }

    /// Returns the host of that name, or the only one.
    fn host_of(&self, hosts: &[HostState], name: Option<&str>) -> Result<usize, ServerError> {
        let names = || hosts.iter().map(|host| host.layout.name.as_str());
        match name {
            None if hosts.len() == 1 => Ok(0),
            None => Err(ServerError::Refused(format!(
                "there are several hosts; say which: {}",
                names().collect::<Vec<_>>().join(", ")
            ))),
            Some(name) => names()
                .position(|own| own == name)
                .ok_or_else(|| ServerError::not_there("host", name, names())),
        }
    }

    fn set_cache(&self, name: &str, mode: &str) -> Result<Value, ServerError> {
        let key = mode.parse().map_err(|reason: String| refuse(name, reason))?;
        let edition = self.edition.as_ref();
        let change = self.change(name, "its cache mode is being changed", |host, id| {
            host.recached(id, key, edition)
        })?;
        if let Some(volume) = &change.stored {
            volume.set_attribute(CACHE, Some(mode))?;
        }
        let (id, cache) = (change.id, change.to.spec.cache);
        ask(&change.mailbox, move |host, now| host.set_cache(now, id, cache))?;
        change.keep();
        Ok(json!({ "volume": name, "cache": mode }))
    }

    fn crash(&self, name: &str) -> Result<Value, ServerError> {
        let mailbox = {
            let hosts = self.hosts();
            let names = || hosts.iter().map(|host| host.layout.name.as_str());
            let found = hosts.iter().find(|host| host.layout.name == name);
            let host = found.ok_or_else(|| ServerError::not_there("host", name, names()))?;
            host.mailbox.clone()
        };
        let (sender, receiver) = channel();
        mailbox.send(Message::Crash(sender));
        let lost = receiver.recv().map_err(|_| gone())?;
        Ok(json!({ "host": name, "lost_bytes": lost.get() }))
    }

    fn warm(&self, name: &str, offset: u64, len: u64) -> Result<Value, ServerError> {
        let (mailbox, device) = self.cached_export(name)?;
        let export = name.to_owned();
        let warmed = ask(&mailbox, move |host, _| {
            let size = host.size(device);
            if offset.checked_add(len).is_none_or(|end| end > size.get()) {
                return Err(ServerError::BeyondEnd { export, size });
            }
            Ok(host.warm(device, offset, len))
        })??;
        Ok(json!({ "export": name, "warmed_bytes": warmed.get() }))
    }

    /// Returns an export with a volume that caches.
    fn cached_export(&self, name: &str) -> Result<(Mailbox, DeviceId), ServerError> {
        let hosts = self.hosts();
        let exports = || hosts.iter().flat_map(|h| h.layout.exports.iter().map(move |e| (h, e)));
        let (host, export) =
            exports().find(|(_, export)| export.name == name).ok_or_else(|| {
                let names = exports().map(|(_, export)| export.name.as_str());
                ServerError::not_there("export", name, names.filter(|name| !name.is_empty()))
            })?;
        let caches = |id: &VolumeId| host.layout.volumes[id.0].spec.cache != CacheMode::None;
        if !export.volumes.iter().any(caches) {
            return Err(ServerError::Uncached { export: name.to_owned() });
        }
        Ok((host.mailbox.clone(), export.device))
    }

    pub(crate) fn status(&self) -> Status {
        let hosts: Vec<(Host, Mailbox)> = {
            let hosts = self.hosts();
            hosts.iter().map(|host| (host.layout.clone(), host.mailbox.clone())).collect()
        };
        let hosts = hosts.into_iter();
        Status {
            uptime_ns: self.clock.now().nanos(),
            pid: std::process::id(),
            edition: self.edition.as_ref().map(|e| e.name().to_owned()),
            hosts: hosts.filter_map(|(host, mailbox)| self.host_status(host, &mailbox)).collect(),
            refused: self.refused.clone(),
        }
    }

    fn host_status(&self, layout: Host, mailbox: &Mailbox) -> Option<HostStatus> {
        let uris = self.uris();
        let told = self.used.get().map_or_else(Vec::new, |Used(of)| {
            let used = |export: &Export| Some((export.volumes.clone(), of(&export.name)?));
            layout.exports.iter().filter_map(used).collect()
        });
        mailbox.ask(move |running, _| HostStatus {
            name: layout.name.clone(),
            size: layout.size.clone(),
            cache_resident_bytes: running.engine().cache_resident().get(),
            exports: layout
                .exports
                .iter()
                .filter(|export| uris.contains_key(&export.name))
                .map(|export| export_status(running, export, &uris))
                .collect(),
            volumes: (0..layout.volumes.len())
                .filter(|id| !layout.volumes[*id].is_gone())
                .map(|id| volume_status(running, &layout, VolumeId(id), &told))
                .collect(),
        })
    }
}

fn export_status(
    running: &HostLoop,
    export: &Export,
    uris: &BTreeMap<String, Vec<String>>,
) -> ExportStatus {
    let served = running.served(export.device).copied().unwrap_or_default();
    ExportStatus {
        name: export.name.clone(),
        uris: uris.get(&export.name).cloned().unwrap_or_default(),
        size_bytes: running.size(export.device).get(),
        requests: served.requests,
        errors: served.errors,
        rejected: served.turned_away,
        service_ns: served.governed.nanos(),
        overhead_ns: served.overhead.nanos(),
    }
}

/// Waits by the names of their caps.
fn named(waits: &Waits) -> BTreeMap<String, u64> {
    waits.iter().map(|(cap, span)| (cap.name().to_owned(), span.nanos())).collect()
}

fn volume_status(
    running: &HostLoop,
    layout: &Host,
    id: VolumeId,
    told: &[(Vec<VolumeId>, u64)],
) -> VolumeStatus {
    // A stripe's columns are filled evenly.
    let told = told.iter().find(|(volumes, _)| volumes.contains(&id));
    let used = told.map(|(volumes, used)| used / volumes.len() as u64);
    let volume = &layout.volumes[id.0];
    let totals = running.engine().totals(id).copied().unwrap_or_default();
    let gate = volume.spec.limits.gate;
    VolumeStatus {
        name: volume.name.clone(),
        tier: volume.tier.clone(),
        size_bytes: volume.spec.size.get(),
        allocated_bytes: used.unwrap_or_else(|| running.allocated(id).unwrap_or(Bytes::ZERO).get()),
        pending_writeback_bytes: running.owed(id).get(),
        cache: volume.spec.cache.name().to_owned(),
        limit_iops: gate.iops.map(|limit| limit.rate.get()),
        limit_bytes_per_s: gate.bytes.map(|limit| limit.rate.get()),
        burst_iops: gate.iops.and_then(|limit| limit.burst).map(|(peak, _)| peak.get()),
        burst_bytes_per_s: gate.bytes.and_then(|limit| limit.burst).map(|(peak, _)| peak.get()),
        credits_operations: running.engine().credits(id, Cap::DiskIops),
        credits_bytes: running.engine().credits(id, Cap::DiskBytes),
        reads: totals.reads,
        writes: totals.writes,
        discards: totals.discards,
        read_bytes: totals.read_bytes,
        write_bytes: totals.write_bytes,
        hits: totals.hits,
        counted: totals.counted,
        burst_transactions: totals.burst_transactions,
        medium_ns: totals.medium.nanos(),
        busy_ns: totals.busy.nanos(),
        waits_ns: named(&totals.waits),
        writebacks: totals.writebacks,
        written_back_bytes: totals.written_back,
        writeback_medium_ns: totals.writeback_medium.nanos(),
        writeback_waits_ns: named(&totals.writeback_waits),
    }
}

fn refuse(name: &str, reason: String) -> ServerError {
    ServerError::Volume { volume: name.to_owned(), reason }
}

fn gone() -> ServerError {
    ServerError::System {
        context: "asking a host's thread",
        source: std::io::Error::other("it has ended"),
    }
}

fn ask<T: Send + 'static>(
    mailbox: &Mailbox,
    call: impl FnOnce(&mut HostLoop, weir_units::Instant) -> T + Send + 'static,
) -> Result<T, ServerError> {
    mailbox.ask(call).ok_or_else(gone)
}

#[cfg(test)]
mod tests;
