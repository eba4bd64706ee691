//! The start of hosts: finds the stored bytes of each volume, and leaves out volumes that cannot be
//! served.
//!
//! The layout declares volumes; the data directory has their earlier state. Changes over the control
//! socket (a size, a cache mode) hold as long as the layout declares the same as before. If the
//! layout was edited, it decides, unless that would lose or misread data.

use crate::backing::Backing;
use crate::connection::Stalling;
use crate::error::ServerError;
use crate::host_loop::HostLoop;
use crate::listener::{Directory, Served};
use crate::memory::Memory;
use crate::notice::{Listening, Notice};
use crate::reactor::{Reactor, Setup};
use crate::server::late::{Late, is_worth_retrying};
use crate::server::options::Options;
use crate::server::paged::Paged;
use crate::server::shared::HostState;
use crate::volume::VolumeData;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::sync::Arc;
use weir_catalog::Edition;
use weir_core::{DeviceId, VolumeId};
use weir_layout::hot_plug::{Coming, NewVolume};
use weir_layout::{Backend, Export, Host, Layout, Volume};
use weir_report::status::Refused;
use weir_store::{
    AttributeWithSize, DataDir, ExtentKind, ListedVolume, MemoryStore, Meta,
    NewVolume as NewStored, Store, StoreError, Volume as StoredVolume,
};
use weir_units::Bytes;
use weir_wall::Clock;

/// The attribute under which a volume's cache mode survives, once it was changed.
pub(crate) const CACHE: &str = "cache";
/// The cache mode that the layout declared last.
const DECLARED_CACHE: &str = "declared-cache";
/// The position of the volume in its stripe, if it is a column of one.
const COLUMN: &str = "column";

/// The attribute with the description of a volume that was created on a running server.
pub const MADE: &str = "made";
/// The host of such a volume.
const HOST: &str = "host";

/// Makes the volume of a data directory that `new` comes to, on the host called `host`.
pub(crate) fn make(
    data: &DataDir,
    host: &str,
    new: &NewVolume,
    coming: &Coming,
) -> Result<Arc<StoredVolume>, ServerError> {
    let made = serde_json::to_string(new).unwrap_or_default();
    let mode = coming.volume.spec.cache.name().to_owned();
    let attributes = [(MADE, made), (HOST, host.to_owned()), (DECLARED_CACHE, mode)];
    let attributes = attributes.map(|(name, value)| (name.to_owned(), value)).into();
    // The rest of a volume that no layout named any more belongs to another.
    if data.list()?.iter().any(|listed| listed.name == new.name) {
        let path = data.folder_of(&new.name);
        return Err(ServerError::Volume {
            volume: new.name.clone(),
            reason: format!(
                "{} already has data of a volume of this name; remove it first",
                path.display()
            ),
        });
    }
    let is_new = data.folder_of(&new.name).symlink_metadata().is_err();
    let checksums = new.checksums.then_some(true);
    let stored = NewStored { size: coming.volume.spec.size, attributes, checksums };
    let made = match new.blob {
        true => data.paged_volume(&new.name, stored),
        false => data.volume(&new.name, stored),
    };
    made.map_err(|error| {
        // It may be there except for its last step, and would be served after the next start.
        if is_new && let Err(more) = data.remove(&new.name) {
            return ServerError::Failed(format!(
                "{error}; what it left could not be removed: {more}"
            ));
        }
        error.into()
    })
}

/// Gives a notice of each damaged block that a request meets.
pub(crate) fn tell_of_damage(volume: &StoredVolume, notices: &Listening) {
    let (name, notices) = (volume.name().to_owned(), notices.clone());
    volume.on_damage(move |error| {
        notices.tell(Notice::DamagedBlock { volume: name.clone(), reason: error.to_string() });
    });
}

/// Returns the description of a created volume with the tier and the rates that `to` states.
fn description_for(volume: &StoredVolume, to: &Volume) -> Result<String, ServerError> {
    let unreadable = |reason: String| ServerError::Volume {
        volume: volume.name().to_owned(),
        reason: format!("its description in meta.json cannot be changed: {reason}"),
    };
    let meta = volume.meta();
    let made = meta.attributes.get(MADE).ok_or_else(|| unreadable("there is none".to_owned()))?;
    let made: NewVolume =
        serde_json::from_str(made).map_err(|error| unreadable(error.to_string()))?;
    let tier = to.named_tier().map(str::to_owned);
    // The limits of an instance's file follow from its size.
    let is_file = made.role.is_some();
    let (iops, throughput) = if is_file { (made.iops, made.throughput) } else { to.rates() };
    let made = NewVolume { tier, iops, throughput, ..made };
    serde_json::to_string(&made).map_err(|error| unreadable(error.to_string()))
}

/// Stores the tier and the rates of a created volume, as far as they are stated.
pub(crate) fn remember_limits(volume: &StoredVolume, to: &Volume) -> Result<(), ServerError> {
    Ok(volume.set_attribute(MADE, Some(&description_for(volume, to)?))?)
}

/// Has the resize of a created volume store its limits in the same step.
pub(crate) fn remember_limits_with_size(
    volume: &StoredVolume,
    to: &Volume,
) -> Result<AttributeWithSize, ServerError> {
    Ok(volume.attribute_with_size(to.spec.size, MADE, &description_for(volume, to)?))
}

/// The bytes of a volume, found or created.
struct Opened {
    data: VolumeData,
    /// The volume of the data directory.
    stored: Option<Arc<StoredVolume>>,
    backing: Option<Backing>,
}

/// The inputs and results of bringing up hosts.
pub(crate) struct Starting<'a> {
    edition: Option<&'a Edition>,
    data: Option<&'a DataDir>,
    clock: Clock,
    options: &'a Options,
    pub(crate) directory: Directory,
    pub(crate) refused: Vec<Refused>,
    /// Volumes whose backends could not be opened.
    pub(crate) late: Vec<Late>,
    /// A volume that was made on a running server, with its host, until it is added.
    made: Vec<(String, NewVolume)>,
    /// The number of hosts.
    hosts: usize,
}

impl<'a> Starting<'a> {
    pub(crate) fn new(
        edition: Option<&'a Edition>,
        data: Option<&'a DataDir>,
        clock: Clock,
        options: &'a Options,
        layout: &Layout,
    ) -> Self {
        Self {
            edition,
            data,
            clock,
            options,
            directory: Directory::new(layout.access.clone()),
            refused: Vec::new(),
            late: Vec::new(),
            made: Vec::new(),
            hosts: layout.hosts.len(),
        }
    }

    /// Finds volumes that were created on a running server. Those that the layout names now belong to
    /// the layout, and those on hosts that it lacks are not served.
    pub(crate) fn look_for_made(&mut self, layout: &Layout) -> Result<(), ServerError> {
        let Some(data) = self.data else { return Ok(()) };
        let volumes = || layout.hosts.iter().flat_map(|host| &host.volumes);
        let exports = || layout.hosts.iter().flat_map(|host| &host.exports);
        for ListedVolume { name, meta } in data.list()? {
            let Ok(meta) = meta else { continue };
            let (Some(made), Some(host)) = (meta.attributes.get(MADE), meta.attributes.get(HOST))
            else {
                continue;
            };
            if volumes().any(|volume| volume.name == name) {
                let volume = data.volume(&name, as_stored(&meta))?;
                volume.set_attribute(MADE, None)?;
                volume.set_attribute(HOST, None)?;
                continue;
            }
            let refused = if exports().any(|export| export.name == name) {
                Some("a stripe of the layout has its name; give the stripe another".to_owned())
            } else if !layout.hosts.iter().any(|own| own.name == *host) {
                Some(format!("it was created on host {host:?}, which the layout does not have"))
            } else {
                None
            };
            match (serde_json::from_str::<NewVolume>(made), refused) {
                (Ok(new), None) => {
                    let new = NewVolume { name, size: Some(meta.size), ..new };
                    self.made.push((host.clone(), new));
                }
                (Err(error), None) => {
                    self.refused.push(Refused::new(name, &error.to_string(), false));
                }
                (_, Some(reason)) => self.refused.push(Refused::new(name, &reason, true)),
            }
        }
        Ok(())
    }

    /// Adds the volumes that were created on the host, with limits by their present sizes.
    fn add_made(&mut self, host: &mut Host) -> BTreeSet<usize> {
        let mut added = BTreeSet::new();
        let own: Vec<_> = self.made.extract_if(.., |(on, _)| *on == host.name).collect();
        for (_, new) in own {
            // A crash may have come between a resize and the tier that went with it.
            let untiered = NewVolume { tier: None, ..new.clone() };
            let coming = host.coming(&new, self.edition);
            match coming.or_else(|kind| host.coming(&untiered, self.edition).map_err(|_| kind)) {
                Ok(coming) => {
                    let (id, device) = (host.volumes.len(), host.spec.devices.len());
                    host.take_in(&coming, VolumeId(id), DeviceId(device));
                    added.insert(id);
                }
                Err(kind) => {
                    let reason = kind.to_string();
                    self.refused.push(Refused::new(new.name, &reason, true));
                }
            }
        }
        added
    }

    pub(crate) fn host(&mut self, mut host: Host) -> Result<(HostState, Reactor), ServerError> {
        let made = self.add_made(&mut host);
        let declared: Vec<Bytes> = host.volumes.iter().map(|volume| volume.spec.size).collect();
        self.adopt_sizes_of_files(&mut host)?;
        let (mut stores, mut stored) = (Vec::new(), Vec::new());
        let (mut backings, mut broken) = (BTreeMap::new(), Vec::new());
        for (id, declared) in declared.into_iter().enumerate() {
            match self.volume(&mut host, VolumeId(id), declared) {
                // A log of a volume that comes later would begin in the middle.
                Err(error) if self.options.write_logs.contains_key(&host.volumes[id].name) => {
                    return Err(error);
                }
                Ok(Opened { data, stored: volume, backing }) => {
                    let data = self.logged(&host.volumes[id].name, data)?;
                    stores.push(data);
                    stored.push(volume);
                    backings.extend(backing.map(|backing| (id, backing)));
                }
                Err(error) => {
                    let name = host.volumes[id].name.clone();
                    let input =
                        matches!(error, ServerError::Layout(_) | ServerError::Volume { .. });
                    let backend = host.volumes[id].backend.clone();
                    let is_alone = host.exports.iter().any(|own| own.volumes == [VolumeId(id)]);
                    // A device may be refused because it is in use. Weir must not take it as soon as
                    // its user lets it go.
                    let is_server = matches!(backend, Some(Backend::Nbd { .. }));
                    let is_away = is_worth_retrying(&error) && is_alone && is_server;
                    self.late.extend(backend.filter(|_| is_away).map(|backend| Late {
                        host: host.name.clone(),
                        id: VolumeId(id),
                        name: name.clone(),
                        backend,
                    }));
                    self.refused.push(Refused::new(name, &error.to_string(), input));
                    broken.push(VolumeId(id));
                    // Nothing is exported that touches it; it only keeps its place.
                    let store = Arc::new(MemoryStore::new(Bytes::ZERO));
                    stores.push(VolumeData::new(store, false));
                    stored.push(None);
                }
            }
        }
        let mut host_loop = HostLoop::new(host.spec.clone(), stores)?;
        host_loop.set_observer(self.options.observer.clone());
        let names = host.volumes.iter().map(|volume| volume.name.clone()).collect();
        let reactor = Reactor::new(&host.name, names, host_loop, self.clock, self.setup())?;
        let mailbox = reactor.mailbox();
        let pages = (0..).zip(&stored).filter_map(|(id, stored): (usize, &Option<_>)| {
            Some((id, Paged::from_volume(stored.as_ref()?)?))
        });
        let paged: BTreeMap<usize, Paged> = pages.collect();
        for export in &host.exports {
            if let Some(id) = export.volumes.iter().find(|id| broken.contains(id)) {
                if export.unit.is_some() {
                    let column = &host.volumes[id.0].name;
                    let input = self.refused.iter().any(|r| r.name == *column && r.input);
                    let reason = format!("its volume {column:?} is not served");
                    self.refused.push(Refused::new(export.name.clone(), &reason, input));
                }
                continue;
            }
            self.directory.add(Served {
                name: export.name.clone(),
                description: describe(&host, export),
                device: export.device,
                host: mailbox.clone(),
                seat: export
                    .volumes
                    .first()
                    .and_then(|id| paged.get(&id.0))
                    .map(|p| p.seat().clone()),
                view: None,
                clients: self.directory.clients_of(&export.name),
            });
        }
        let changing = BTreeMap::new();
        let state = HostState { layout: host, mailbox, stored, backings, made, paged, changing };
        Ok((state, reactor))
    }

    fn setup(&self) -> Setup {
        let bounds = &self.options.bounds;
        let memory = usize::try_from(bounds.memory.get()).unwrap_or(usize::MAX);
        Setup {
            notices: self.options.notices.clone(),
            waiting: self.options.waiting,
            memory: Memory::new(memory, self.hosts),
            stall: Stalling { at_ease: bounds.stall, when_short: bounds.stall_when_short },
        }
    }

    /// Refuses write logs of volumes that are not there.
    pub(crate) fn check_write_logs(&self, layout: &Layout) -> Result<(), ServerError> {
        let volumes = || layout.hosts.iter().flat_map(|host| &host.volumes);
        // The pages of a blob also change by other ways than its volume.
        let made =
            || self.made.iter().filter(|(_, new)| !new.blob).map(|(_, new)| new.name.as_str());
        let names = || volumes().map(|own| own.name.as_str()).chain(made());
        for name in self.options.write_logs.keys() {
            if names().any(|own| own == name) {
                continue;
            }
            let stripe = |host: &Host| {
                let export = host.exports.iter().find(|own| own.name == *name)?;
                let columns = export.volumes.iter().map(|id| &*host.volumes[id.0].name);
                Some(ServerError::is_stripe(name, &columns.collect::<Vec<_>>()))
            };
            return Err(match layout.hosts.iter().find_map(stripe) {
                Some(error) => error,
                None => ServerError::not_there("volume", name, names()),
            });
        }
        Ok(())
    }

    /// Begins the write log of a volume, if it has one.
    fn logged(&self, name: &str, data: VolumeData) -> Result<VolumeData, ServerError> {
        let Some(file) = self.options.write_logs.get(name) else { return Ok(data) };
        data.logged(name, file).map_err(|error| {
            let is_there = matches!(&error, StoreError::Io { source, .. }
                if source.kind() == ErrorKind::AlreadyExists);
            let cause = std::error::Error::source(&error);
            let cause = cause.map_or_else(String::new, |own| format!(": {own}"));
            let reason = match is_there {
                true => format!(
                    "its write log {} is there already; a log begins with the server: give a new file",
                    file.display()
                ),
                false => format!("{error}{cause}; give another path for its write log"),
            };
            ServerError::Volume { volume: name.to_owned(), reason }
        })
    }

    /// Opens a volume at its `declared` size, or at the size set since.
    fn volume(
        &self,
        host: &mut Host,
        id: VolumeId,
        declared: Bytes,
    ) -> Result<Opened, ServerError> {
        if let Some(backend) = host.volumes[id.0].backend.clone() {
            return self.on_backend(host, id, &backend);
        }
        let Some(data) = self.data else {
            let store = Arc::new(MemoryStore::new(declared));
            let data = VolumeData::new(store, false);
            return Ok(Opened { data, stored: None, backing: None });
        };
        let mode = host.volumes[id.0].spec.cache.name();
        let column = column_of(host, id);
        let mut attributes = BTreeMap::from([(DECLARED_CACHE.to_owned(), mode.to_owned())]);
        attributes.extend(column.clone().map(|column| (COLUMN.to_owned(), column)));
        let checksums = Some(host.volumes[id.0].has_checksums());
        let stored = NewStored { size: declared, attributes, checksums };
        let volume = data.volume(&host.volumes[id.0].name, stored)?;
        tell_of_damage(&volume, &self.options.notices);
        adopt_column(&volume, column.as_deref())?;
        self.adopt_size(&volume, host, id, declared)?;
        self.adopt_cache(&volume, host, id, mode)?;
        let data = VolumeData::kept(volume.clone());
        Ok(Opened { data, stored: Some(volume), backing: None })
    }

    /// Opens the backend of a volume, which has nothing in the data directory.
    fn on_backend(
        &self,
        host: &mut Host,
        id: VolumeId,
        backend: &Backend,
    ) -> Result<Opened, ServerError> {
        let name = host.volumes[id.0].name.clone();
        let refused = |reason: String| ServerError::Volume { volume: name.clone(), reason };
        if self.options.no_exports {
            return Err(refused(format!(
                "a mount keeps files in its own folder and not on the backend {backend}; use weir \
                 serve, or remove the backend from the layout"
            )));
        }
        self.refuse_stored(&name, backend)?;
        let (notices, given_up) = (&self.options.notices, Arc::default());
        let backing = Backing::open(&name, backend, notices, &given_up, |size| {
            let over = host.over_backend(id, size, self.edition).map_err(ServerError::Layout)?;
            let used = over.spec.size;
            replace(host, id, over);
            Ok(used)
        })?;
        let data = VolumeData::on_backend(backing.store());
        Ok(Opened { data, stored: None, backing: Some(backing) })
    }

    /// Refuses a backend for a volume that has data in the data directory.
    fn refuse_stored(&self, name: &str, backend: &Backend) -> Result<(), ServerError> {
        let Some(data) = self.data else { return Ok(()) };
        let listed = data.list()?.into_iter().find(|listed| listed.name == name);
        let Some(ListedVolume { meta, .. }) = listed else { return Ok(()) };
        let volume = data.volume(name, as_stored(&meta?))?;
        if has_data(&volume, Bytes::ZERO)? {
            return Err(refuse(
                &volume,
                format!(
                    "the layout now puts it on the backend {backend}, but it has data in {}; remove \
                     backend from the layout and copy the data, or give the volume another name",
                    data.folder_of(name).display()
                ),
            ));
        }
        Ok(())
    }

    /// Gives the files of an instance the sizes that were set since the layout declared theirs. The files share the
    /// instance's storage, so they are checked together: a file may have grown by what another one lost.
    fn adopt_sizes_of_files(&self, host: &mut Host) -> Result<(), ServerError> {
        let (Some(data), true) = (self.data, host.instance.is_some()) else { return Ok(()) };
        let (mut adopted, mut is_whole) = (host.clone(), true);
        for ListedVolume { name, meta } in data.list()? {
            let of_this_host = adopted.volumes.iter().position(|volume| volume.name == name);
            let Some(id) = of_this_host.map(VolumeId) else { continue };
            let Ok(meta) = meta else {
                // Nothing says how much of the storage a damaged file has.
                is_whole = false;
                continue;
            };
            let declared = adopted.volumes[id.0].spec.size;
            if meta.declared_size == declared
                && meta.size != declared
                && let Ok(resized) = adopted.at_size(id, meta.size, self.edition)
            {
                replace(&mut adopted, id, resized);
            }
        }
        // Otherwise the layout has less storage now, and each file that does not fit is refused when it is opened.
        if !is_whole || adopted.has_room_for_files() {
            *host = adopted;
        }
        Ok(())
    }

    fn adopt_size(
        &self,
        volume: &StoredVolume,
        host: &mut Host,
        id: VolumeId,
        declared: Bytes,
    ) -> Result<(), ServerError> {
        let (meta, kept) = (volume.meta(), volume.size());
        if meta.declared_size == declared {
            if kept != host.volumes[id.0].spec.size {
                let resized = host.resized(id, kept, self.edition).map_err(ServerError::Layout)?;
                replace(host, id, resized);
            }
            return Ok(());
        }
        if declared < kept && has_data(volume, declared)? {
            return Err(refuse(
                volume,
                format!(
                    "the layout now says {}, but there is data beyond that in its {}; declare {}, \
                     or trim or move the data before shrinking",
                    declared.exact(),
                    kept.exact(),
                    kept.exact(),
                ),
            ));
        }
        volume.set_size(declared)?;
        volume.set_declared_size(declared)?;
        Ok(())
    }

    fn adopt_cache(
        &self,
        volume: &StoredVolume,
        host: &mut Host,
        id: VolumeId,
        declared: &str,
    ) -> Result<(), ServerError> {
        let meta = volume.meta();
        if meta.attributes.get(DECLARED_CACHE).map(String::as_str) != Some(declared) {
            volume.set_attribute(CACHE, None)?;
            volume.set_attribute(DECLARED_CACHE, Some(declared))?;
        } else if let Some(mode) = meta.attributes.get(CACHE).and_then(|m| m.parse().ok()) {
            let changed = host.recached(id, mode, self.edition).map_err(ServerError::Layout)?;
            replace(host, id, changed);
        }
        Ok(())
    }
}

/// Describes a volume that is there, and stays as it is.
fn as_stored(meta: &Meta) -> NewStored {
    NewStored { size: meta.size, attributes: BTreeMap::new(), checksums: None }
}

fn replace(host: &mut Host, id: VolumeId, volume: weir_layout::Volume) {
    host.spec.volumes[id.0] = volume.spec.clone();
    host.volumes[id.0] = volume;
}

/// Describes the position of a column's bytes: a stripe with another unit, or with other
/// columns, would read them in another order.
fn column_of(host: &Host, id: VolumeId) -> Option<String> {
    host.exports.iter().find_map(|export| {
        let column = export.volumes.iter().position(|volume| *volume == id)?;
        Some(format!("column {} of {}, unit {}", column + 1, export.volumes.len(), export.unit?))
    })
}

/// Changes the position of a volume in its stripe, unless its data would be garbled.
fn adopt_column(volume: &StoredVolume, column: Option<&str>) -> Result<(), ServerError> {
    let kept = volume.meta().attributes.get(COLUMN).cloned();
    if kept.as_deref() == column {
        return Ok(());
    }
    if has_data(volume, Bytes::ZERO)? {
        let name = |column: Option<&str>| column.unwrap_or("a separate volume").to_owned();
        let (now, was) = (name(column), name(kept.as_deref()));
        return Err(refuse(
            volume,
            format!(
                "the layout now makes it {now}, but its data was written as {was}; restore the \
                 layout, or copy the data to another volume first"
            ),
        ));
    }
    Ok(volume.set_attribute(COLUMN, column)?)
}

/// Returns whether there is data from `from` on.
fn has_data(volume: &StoredVolume, from: Bytes) -> Result<bool, ServerError> {
    let len = volume.size().get().saturating_sub(from.get());
    let extents = volume.extents(from.get(), len, 2)?;
    Ok(extents.iter().any(|extent| extent.kind == ExtentKind::Data))
}

fn refuse(volume: &StoredVolume, reason: String) -> ServerError {
    ServerError::Volume { volume: volume.name().to_owned(), reason }
}

/// Describes an export for its clients.
pub(crate) fn describe(host: &Host, export: &Export) -> String {
    let tier = |id: VolumeId| host.volumes[id.0].tier.as_deref().unwrap_or("own limits");
    let first = export.volumes.first().map_or("", |id| tier(*id));
    match export.unit {
        Some(unit) => format!("{} x {first}, stripe unit {unit}", export.volumes.len()),
        None => first.to_owned(),
    }
}
