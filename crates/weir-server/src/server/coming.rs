//! Creation and deletion of volumes while the server runs, and the handle for front ends.

use super::commands::Tiers;
use super::paged::{Paged, Pages};
use super::shared::{HostState, Shared, Used, gone, refuse};
use crate::audit::Audit;
use crate::control::Request;
use crate::disk::Disk;
use crate::error::ServerError;
use crate::host_loop::Behind;
use crate::listener::Served;
use crate::mailbox::{Adding, Message, Removed, Removing};
use crate::starting;
use crate::volume::VolumeData;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use weir_core::{CacheMode, GateLimits, Latency, Medium, VolumeId};
use weir_layout::hot_plug::{Coming, NewVolume};
use weir_layout::instance::Measure;
use weir_layout::{Export, Host};
use weir_report::status::Status;
use weir_store::{MemoryStore, PagedStore};
use weir_units::Bytes;

/// A running server for front ends in the process. It does not keep the server running.
#[derive(Debug, Clone)]
pub struct Handle(Arc<Shared>);

/// The answer to requests for a volume that is being removed.
const REMOVING: &str = "it is being removed";

/// The place of a volume's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeps {
    Bytes,
    Nothing,
}

/// A volume that is served.
#[derive(Debug, Clone)]
pub struct Opened {
    /// Its device.
    pub disk: Disk,
    /// Its pages, if it is a page blob.
    pub pages: Option<Paged>,
}

/// A volume or a stripe of the layout.
#[derive(Debug, Clone)]
pub struct Exported {
    /// Its name.
    pub name: String,
    /// The name of its host.
    pub host: String,
    /// Returns true for a file of a managed instance.
    pub is_file: bool,
    /// Its database, if it is a database's file.
    pub database: Option<String>,
    /// Its size.
    pub size: Bytes,
    /// Returns true if no request to it ever waits: it has no limit, no medium, no cache.
    pub is_free: bool,
    /// Its device.
    pub disk: Disk,
}

fn database_of(host: &Host, export: &Export) -> Option<String> {
    host.files.iter().find(|file| file.name == export.name)?.database.clone()
}

fn is_instant(medium: &Medium) -> bool {
    medium.read == Latency::zero() && medium.write == Latency::zero()
}

/// Returns true if no request to a volume ever waits.
fn is_free(host: &Host, id: VolumeId) -> bool {
    let spec = &host.spec.volumes[id.0];
    let (open, cached) = (GateLimits::default(), spec.cache != CacheMode::None);
    let gates = [spec.limits.gate, host.spec.uncached, host.spec.cached];
    let limited = gates.iter().chain(&host.spec.uncached_writes).any(|gate| *gate != open);
    !limited && !cached && is_instant(&spec.medium) && !spec.log
}

impl Handle {
    pub(super) const fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// Makes a volume on the host of that name, or on the only one, and serves it.
    ///
    /// # Errors
    ///
    /// [`ServerError`] with what to do.
    pub fn make(&self, host: Option<&str>, new: &NewVolume) -> Result<Opened, ServerError> {
        self.0.make(host, new, Keeps::Bytes)?;
        self.open(&new.name).ok_or_else(gone)
    }

    /// Makes a volume whose bytes are elsewhere: it has limits and counters, is no export,
    /// and is not there after a restart.
    ///
    /// # Errors
    ///
    /// [`ServerError`] with what to do.
    pub fn make_hollow(&self, host: Option<&str>, new: &NewVolume) -> Result<Opened, ServerError> {
        self.0.make(host, new, Keeps::Nothing)?;
        self.open(&new.name).ok_or_else(gone)
    }

    /// Returns the receiver of refused requests.
    #[must_use]
    pub fn audit(&self) -> &Audit {
        &self.0.audit
    }

    /// Returns the volume of that name.
    #[must_use]
    pub fn open(&self, name: &str) -> Option<Opened> {
        let hosts = self.0.hosts();
        let (at, id) = self.0.find(&hosts, name).ok()?;
        let state = &hosts[at];
        if state.changing.get(&id.0) == Some(&REMOVING) {
            return None;
        }
        // A new volume is alone in its export, which may have another name.
        let is_named = |export: &Export| export.name == name || state.made.contains(&id.0);
        let own = |export: &&Export| export.volumes == [id] && is_named(export);
        let device = state.layout.exports.iter().find(own)?.device;
        let disk = Disk { device, host: state.mailbox.clone() };
        Some(Opened { disk, pages: state.paged.get(&id.0).cloned() })
    }

    /// Returns the names of the hosts that are managed instances.
    #[must_use]
    pub fn instances(&self) -> Vec<String> {
        let hosts = self.0.hosts();
        let instances = hosts.iter().filter(|state| state.layout.instance.is_some());
        instances.map(|state| state.layout.name.clone()).collect()
    }

    /// For a managed instance, returns the bytes that its files may have together, and those that
    /// they have.
    #[must_use]
    pub fn storage(&self, host: &str) -> Option<(Bytes, Bytes)> {
        let hosts = self.0.hosts();
        let layout = &hosts.iter().find(|state| state.layout.name == host)?.layout;
        let instance = layout.instance.as_ref()?;
        let volumes = layout.volumes.iter().filter(|volume| !volume.is_gone());
        let used = volumes.map(|volume| volume.spec.size.get()).sum();
        Some((instance.storage, Bytes::new(used)))
    }

    /// Returns the number of changes to volumes. A caller that keeps the answer of
    /// [`Self::exports`] asks again when it is another number.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.0.changes.load(Ordering::Acquire)
    }

    /// Sets a function that returns the used bytes of an export whose bytes are elsewhere.
    pub fn tell_used(&self, used: impl Fn(&str) -> Option<u64> + Send + Sync + 'static) {
        // One front end has the bytes of all exports.
        drop(self.0.used.set(Used(Box::new(used))));
    }

    /// For a managed instance, returns how many files it may have, and how many it has.
    #[must_use]
    pub fn files(&self, host: &str) -> Option<(u64, u64)> {
        let hosts = self.0.hosts();
        let layout = &hosts.iter().find(|state| state.layout.name == host)?.layout;
        let bounds = &layout.instance.as_ref()?.bounds;
        let most = bounds.iter().find(|bound| bound.measure == Measure::FileCount)?.most;
        let own = layout.volumes.iter().filter(|volume| !volume.is_gone()).count();
        Some((most, own as u64))
    }

    /// Returns the exports that the layout has from the start, in its order, host by host.
    #[must_use]
    pub fn exports(&self) -> Vec<Exported> {
        let hosts = self.0.hosts();
        let of = |state: &HostState| {
            let exports = state.layout.exports.iter().map(|export| {
                let limits = |id: &VolumeId| is_free(&state.layout, *id);
                Exported {
                    name: export.name.clone(),
                    host: state.layout.name.clone(),
                    database: database_of(&state.layout, export),
                    is_file: state.layout.instance.is_some(),
                    size: match export.volumes[..] {
                        [VolumeId(only)] => state.layout.volumes[only].spec.size,
                        _ => export.size,
                    },
                    is_free: export.volumes.iter().all(limits),
                    disk: Disk { device: export.device, host: state.mailbox.clone() },
                }
            });
            exports.collect::<Vec<_>>()
        };
        hosts.iter().flat_map(of).collect()
    }

    /// Deletes a volume that was made, with its bytes.
    ///
    /// # Errors
    ///
    /// [`ServerError`] if there is no such volume, or it is the layout's.
    pub fn delete(&self, name: &str) -> Result<(), ServerError> {
        self.0.remove(name, false)
    }

    /// Resizes a volume, and moves its limits. What is behind a nearer end is forgotten.
    ///
    /// # Errors
    ///
    /// [`ServerError`] with what to do.
    pub fn resize(&self, name: &str, size: Bytes) -> Result<Tiers, ServerError> {
        self.0.resize(name, size, Behind::Forget)
    }

    /// Gives a volume the limits of a tier, its size unchanged.
    ///
    /// # Errors
    ///
    /// [`ServerError`] with what to do.
    pub fn retier(&self, name: &str, tier: &str) -> Result<Tiers, ServerError> {
        self.0.retier(name, tier)
    }

    /// Returns a reading of all counters.
    #[must_use]
    pub fn status(&self) -> Status {
        self.0.status()
    }

    /// Executes a command of the control socket.
    ///
    /// # Errors
    ///
    /// [`ServerError`] with what to do.
    pub fn command(&self, request: Request) -> Result<Value, ServerError> {
        self.0.answer(request)
    }

    /// Returns whether a volume or an export has this name, served or not.
    #[must_use]
    pub fn is_taken(&self, name: &str) -> bool {
        self.0.is_taken(&self.0.hosts(), name)
    }

    /// Returns the size of a volume.
    #[must_use]
    pub fn size(&self, name: &str) -> Option<Bytes> {
        let hosts = self.0.hosts();
        let (at, id) = self.0.find(&hosts, name).ok()?;
        Some(hosts[at].layout.volumes[id.0].spec.size)
    }

    /// Returns the tier of a volume, if it has one.
    #[must_use]
    pub fn tier(&self, name: &str) -> Option<String> {
        let hosts = self.0.hosts();
        let (at, id) = self.0.find(&hosts, name).ok()?;
        hosts[at].layout.volumes[id.0].tier.clone()
    }

    /// Returns the volumes that are page blobs.
    #[must_use]
    pub fn blobs(&self) -> Vec<String> {
        let hosts = self.0.hosts();
        let of = |state: &HostState| {
            let names = state.paged.keys().map(|id| state.layout.volumes[*id].name.clone());
            names.collect::<Vec<_>>()
        };
        hosts.iter().flat_map(of).collect()
    }

    /// Returns the data directory, if there is one.
    #[must_use]
    pub fn data_dir(&self) -> Option<&std::path::Path> {
        self.0.data.as_ref().map(weir_store::DataDir::path)
    }

    /// Returns a volume of the template's kind, with that name and size, for the host.
    ///
    /// # Errors
    ///
    /// [`ServerError`] if there is no such host.
    pub fn sized(
        &self,
        host: Option<&str>,
        template: &NewVolume,
        name: &str,
        size: Bytes,
    ) -> Result<NewVolume, ServerError> {
        let hosts = self.0.hosts();
        let at = self.0.host_of(&hosts, host)?;
        let named = NewVolume { name: name.to_owned(), ..template.clone() };
        Ok(named.sized(&hosts[at].layout, size))
    }

    /// Exports a page blob as `name` from now on, or no longer. Clients that have it open keep
    /// it. Nothing is done for a volume that is none.
    pub fn export_as(&self, volume: &str, name: Option<&str>) {
        let mut hosts = self.0.hosts();
        let Ok((at, id)) = self.0.find(&hosts, volume) else { return };
        let state = &mut hosts[at];
        let Some(paged) = state.paged.get(&id.0) else { return };
        self.0.directory.rename(paged.seat(), name);
        let exports = state.layout.exports.iter_mut();
        for export in exports.filter(|export| export.volumes == [id]) {
            // A client cannot ask for an export without a name.
            name.unwrap_or_default().clone_into(&mut export.name);
        }
    }

    /// Resolves a volume of that name and size on the host.
    ///
    /// # Errors
    ///
    /// [`ServerError::Layout`] where it could not be.
    pub fn would_be(&self, host: Option<&str>, new: &NewVolume) -> Result<Coming, ServerError> {
        let hosts = self.0.hosts();
        let at = self.0.host_of(&hosts, host)?;
        hosts[at].layout.coming(new, self.0.edition.as_ref()).map_err(ServerError::Layout)
    }
}

impl Shared {
    /// Creates a volume and returns its description.
    pub(super) fn create(&self, host: Option<&str>, new: &NewVolume) -> Result<Value, ServerError> {
        if self.is_mounted {
            let reason = "the volumes of a mount are those of its layout; unmount, and add the \
                          volume to the layout";
            return Err(refuse(&new.name, reason.to_owned()));
        }
        if new.blob {
            let reason = "page blobs are created with a client of the blob service";
            return Err(refuse(&new.name, reason.to_owned()));
        }
        let coming = self.make(host, new, Keeps::Bytes)?;
        let (name, size) = (&new.name, coming.volume.spec.size);
        let uris = self.uris().remove(name).unwrap_or_default();
        Ok(json!({ "volume": name, "size": size, "tier": coming.volume.tier, "uris": uris }))
    }

    /// Makes a volume and serves it.
    fn make(
        &self,
        host: Option<&str>,
        new: &NewVolume,
        keeps: Keeps,
    ) -> Result<Coming, ServerError> {
        let _alone = self.one_at_a_time();
        let name = &new.name;
        let (at, coming, host, mailbox) = {
            let hosts = self.hosts();
            let at = self.host_of(&hosts, host)?;
            if self.is_taken(&hosts, name) {
                return Err(refuse(name, "this name is taken; choose another".to_owned()));
            }
            let layout = &hosts[at].layout;
            let coming = layout.coming(new, self.edition.as_ref());
            let coming = coming.map_err(ServerError::Layout)?;
            layout.check_room(&coming).map_err(ServerError::Layout)?;
            (at, coming, layout.name.clone(), hosts[at].mailbox.clone())
        };
        let size = coming.volume.spec.size;
        let mut paged = None;
        let (data, stored) = match self.data.as_ref().filter(|_| keeps == Keeps::Bytes) {
            None if new.checksums => {
                let reason = "the server has volumes in memory, which have no checksums; leave them out, or \
                              start it with --data";
                return Err(refuse(name, reason.to_owned()));
            }
            None if new.blob => {
                let pages = Arc::new(PagedStore::in_memory(size));
                paged = Some(Paged::new(Pages::InMemory(Arc::clone(&pages))));
                (VolumeData::new(pages, false), None)
            }
            None => {
                let store = Arc::new(MemoryStore::new(size));
                (VolumeData::new(store, false), None)
            }
            Some(data) => {
                let volume = starting::make(data, &host, new, &coming)?;
                starting::tell_of_damage(&volume, self.audit.notices());
                paged = Paged::from_volume(&volume);
                (VolumeData::kept(volume.clone()), Some(volume))
            }
        };
        let (told, heard) = channel();
        let (own, spec) = (name.clone(), coming.volume.spec.clone());
        mailbox.send(Message::Add(Box::new(Adding { name: own, spec, data, told })));
        let added = heard.recv().map_err(|_| gone()).and_then(|added| added);
        if added.is_err()
            && let Some(data) = self.data.as_ref().filter(|_| keeps == Keeps::Bytes)
        {
            data.remove(name)?;
        }
        let (id, device) = added?;
        {
            let state = &mut self.hosts()[at];
            state.layout.take_in(&coming, id, device);
            state.made.insert(id.0);
            state.paged.extend(paged.clone().map(|paged| (id.0, paged)));
            match state.stored.get_mut(id.0) {
                Some(place) => *place = stored,
                None => state.stored.push(stored),
            }
        }
        if keeps == Keeps::Nothing {
            return Ok(coming);
        }
        let description = coming.volume.tier.clone().unwrap_or_else(|| "own limits".to_owned());
        let seat = paged.map(|paged| Arc::clone(paged.seat()));
        let (name, host, view) = (name.clone(), mailbox, None);
        let clients = self.directory.clients_of(&name);
        self.directory.add(Served { name, description, device, host, seat, view, clients });
        Ok(coming)
    }

    /// Refuses changes to a page blob or to a file of a mount, which have owners of their own.
    pub(super) fn refuse_elsewhere(&self, name: &str, what: &str) -> Result<(), ServerError> {
        let hosts = self.hosts();
        let (at, id) = self.find(&hosts, name)?;
        if self.is_mounted && hosts[at].layout.instance.is_some() {
            let reason = "it is a file of a mount: it is resized and deleted together with the \
                          file";
            return Err(refuse(name, reason.to_owned()));
        }
        if self.is_mounted && what == "delete" {
            return Err(refuse(name, "it is mounted; unmount it first".to_owned()));
        }
        if hosts[at].paged.contains_key(&id.0) {
            let reason = format!("it is a page blob; {what} it with a client of the blob service");
            return Err(refuse(name, reason));
        }
        Ok(())
    }

    /// Removes a volume on request of the control socket.
    pub(super) fn delete(&self, name: &str, if_unused: bool) -> Result<Value, ServerError> {
        self.refuse_elsewhere(name, "delete")?;
        self.remove(name, if_unused)?;
        Ok(json!({ "volume": name }))
    }

    /// Removes a volume with its bytes, and cuts off its clients. With `if_unused`, a volume with clients, views or data
    /// is refused.
    fn remove(&self, name: &str, if_unused: bool) -> Result<(), ServerError> {
        let _alone = self.one_at_a_time();
        // New clients do not find it from here on.
        let served = self.directory.get(name);
        let (at, id, device, mailbox) = {
            let mut hosts = self.hosts();
            let (at, id) = self.find(&hosts, name)?;
            let state = &mut hosts[at];
            if let Some(what) = state.changing.get(&id.0) {
                return Err(refuse(name, format!("{what} right now; ask again when that is done")));
            }
            if !state.made.contains(&id.0) {
                let reason = "it is in the layout; remove it there, and then remove its folder";
                return Err(refuse(name, reason.to_owned()));
            }
            let alone = |export: &&Export| export.volumes == [id];
            let export = state.layout.exports.iter().find(alone);
            let Some(export) = export else { unreachable!("{name} was made alone") };
            let device = export.device;
            match state.paged.get(&id.0) {
                Some(paged) => self.directory.rename(paged.seat(), None),
                None => self.directory.remove(name),
            }
            state.changing.insert(id.0, REMOVING);
            (at, id, device, state.mailbox.clone())
        };
        let is_viewed = if_unused && self.has_views((at, device));
        if !if_unused {
            self.lose_views((at, device), "its volume was deleted");
        }
        let ask = || {
            let (told, heard) = channel();
            mailbox.send(Message::Remove(Removing { volume: id, device, if_unused, told }));
            heard.recv().map_err(|_| gone())
        };
        let answer = if is_viewed { Ok(Removed::InUse) } else { ask() };
        let kept = {
            let state = &mut self.hosts()[at];
            state.changing.remove(&id.0);
            if answer? == Removed::InUse {
                served.into_iter().for_each(|served| self.directory.add(served));
                let reason = "clients are connected to it, a backup reads it, or it holds data";
                return Err(refuse(name, reason.to_owned()));
            }
            let kept = state.stored[id.0].take().is_some();
            state.layout.let_go(id);
            state.made.remove(&id.0);
            state.paged.remove(&id.0);
            kept
        };
        if let Some(data) = self.data.as_ref().filter(|_| kept) {
            data.remove(name).map_err(|error| {
                let folder = data.folder_of(name);
                match folder.exists() {
                    true => ServerError::Failed(format!(
                        "volume {name:?} is no longer served, but its folder {} could not be removed ({error}); \
                         remove it, or the next server has the volume again",
                        folder.display()
                    )),
                    false => error.into(),
                }
            })?;
        }
        Ok(())
    }
}
