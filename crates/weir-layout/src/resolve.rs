//! Resolution of a layout file against the catalog: hosts, volumes, stripes and files.

use crate::blob::Blob;
use crate::clients::{Access, Clients, ClientsKeys};
use crate::database_file::File;
use crate::error::{Fault, Kind, LayoutError, Source, Wrong};
use crate::file::{
    BlobKeys, CacheKeys, Columns, FileKeys, HostKeys, LayoutFile, ManagedInstance, StripeKeys,
    VolumeKeys,
};
use crate::files;
use crate::instance;
use crate::layout::{Export, Host, Layout, TO_REMOTE, check_free, check_name};
use crate::luns;
use crate::pool;
use crate::volume::{
    self, Volume, catalog_latency, gate_limits, gate_of, own_latency, with_reserve,
};
use std::collections::HashSet;
use weir_catalog::{BurstKind, Catalog, Edition, HostLimits, HostSize};
use weir_core::{
    CacheSpec, DeviceId, DeviceSpec, Engine, GateLimits, HostSpec, Latency, Limit, Place, VolumeId,
};
use weir_units::{Bytes, Span, nearest};

impl Layout {
    /// Parses and resolves a layout. `file` is its name in messages.
    ///
    /// # Errors
    ///
    /// [`LayoutError`], with file, line and column.
    pub fn parse(file: &str, text: &str, catalog: &Catalog) -> Result<Self, LayoutError> {
        if text.len() as u64 > Self::MAX_SIZE.get() {
            return Err(Self::too_large(file));
        }
        let source = Source { name: file, text, catalog };
        let keys: LayoutFile = toml::from_str(text).map_err(|e| source.syntax(&e))?;
        check_counts(&keys).map_err(|fault| source.at(fault))?;
        let edition = match &keys.edition {
            None => None,
            Some(name) => {
                let unknown = |error| source.at(Kind::from(error).at("edition"));
                Some(catalog.edition(name).map_err(unknown)?)
            }
        };
        let mut builder = Builder::new(&keys, edition, source)?;
        let within = |table: &str, index: usize, fault: Fault| {
            source.at(fault.within(&format!("{table}.{index}")))
        };
        for (index, keys) in keys.volume.iter().enumerate() {
            builder.volume(keys).map_err(|fault| within("volume", index, fault))?;
        }
        for (index, keys) in keys.stripe.iter().enumerate() {
            builder.stripe(keys).map_err(|fault| within("stripe", index, fault))?;
        }
        for (index, keys) in keys.file.iter().enumerate() {
            builder.file(index, keys).map_err(|fault| within("file", index, fault))?;
        }
        builder.blob = keys.blob.clone();
        let clients = keys.clients.as_ref().map(|own| Clients::resolve("the layout", own));
        builder.access.default = clients.transpose().map_err(|fault| source.at(fault))?;
        let region = keys.region.as_deref().map(|name| region(name, edition));
        let region = region.transpose().map_err(|kind| source.at(kind.at("region")))?;
        Ok(Self { region, ..builder.finish()? })
    }

    /// Returns the settings of page blobs: those of the layout, or the defaults.
    ///
    /// # Errors
    ///
    /// [`Kind`] if there are several hosts, so that the default host is unknown.
    pub fn blob_or_default(&self, edition: Option<&Edition>) -> Result<Blob, Kind> {
        match &self.blob {
            Some(blob) => Ok(blob.clone()),
            None => Blob::resolve(&BlobKeys::default(), &self.hosts, edition)
                .map_err(|fault| fault.kind),
        }
    }
}

/// Why a column of a stripe has no clients.
const NO_EXPORT: &str = "a column of a stripe is not an export; give clients to the stripe";

struct Builder<'a> {
    edition: Option<&'a Edition>,
    source: Source<'a>,
    hosts: Vec<Host>,
    /// Machine size of each host, for the number of its disks.
    sizes: Vec<Option<&'a HostSize>>,
    /// Indices of each host's files in the layout file.
    file_indices: Vec<Vec<usize>>,
    blob: Option<BlobKeys>,
    access: Access,
    /// Names of volumes and stripes.
    names: HashSet<String>,
    file_names: HashSet<String>,
}

impl<'a> Builder<'a> {
    fn new(
        keys: &LayoutFile,
        edition: Option<&'a Edition>,
        source: Source<'a>,
    ) -> Result<Self, LayoutError> {
        let unlimited = HostKeys { unlimited: true, ..HostKeys::default() };
        let given = keys.host.as_ref().map(|h| h.0.clone()).unwrap_or_default();
        let given = if given.is_empty() { vec![unlimited] } else { given };
        let (hosts, sizes, file_indices) = (Vec::new(), Vec::new(), Vec::new());
        let (names, file_names) = (HashSet::new(), HashSet::new());
        let (blob, access) = (None, Access::default());
        let mut builder =
            Self { edition, source, hosts, sizes, file_indices, blob, access, names, file_names };
        let single = given.len() == 1;
        for (index, keys) in given.iter().enumerate() {
            let within = |fault: Fault| source.at(fault.within(&format!("host.{index}")));
            builder.host(keys, single).map_err(within)?;
        }
        let seed = keys.seed.unwrap_or(1);
        for (host, n) in builder.hosts.iter_mut().zip(0..) {
            host.spec.seed = seed.wrapping_add(n);
        }
        Ok(builder)
    }

    fn host(&mut self, keys: &HostKeys, single: bool) -> Result<(), Fault> {
        let name = match &keys.name {
            Some(name) => name.clone(),
            None if single => "host".to_owned(),
            None => {
                return Err(Fault::from(Kind::Contradiction {
                    what: "host".into(),
                    reason: "if there are several hosts, each needs a name".into(),
                }));
            }
        };
        check_name(&name)?;
        if self.hosts.iter().any(|host| host.name == name) {
            return Err(Kind::Duplicate { name }.at("name"));
        }
        let wrong = |(key, reason): Wrong| {
            Kind::Contradiction { what: format!("host {name:?}"), reason }.at(key)
        };
        if let Some(kind) = keys.managed_instance {
            return self.managed_instance(name, kind, keys);
        }
        if let Some(key) = instance::stray_key(keys) {
            let reason = format!("{key} is for a managed instance; add managed_instance = \"..\"");
            return Err(wrong((key, reason)));
        }
        let size = self.size(&name, keys)?;
        let limits = keys.limits.clone().unwrap_or_default();
        let side = |name: &str, own: Option<&_>, of_size: Option<&HostLimits>| match own {
            Some(own) => gate_limits(own).map_err(wrong).map_err(|f| f.within(name)),
            None => Ok(of_size.map(|own| host_gate(own, self.edition)).unwrap_or_default()),
        };
        let of_size = size.and_then(|s| s.uncached.as_ref());
        let uncached = side("limits.uncached", limits.uncached.as_ref(), of_size)?;
        let of_size = size.and_then(|s| s.cached.as_ref());
        let cached = side("limits.cached", limits.cached.as_ref(), of_size)?;
        if let Some(share) = keys.credits
            && !uncached.has_credits()
            && !cached.has_credits()
        {
            let reason = format!("credits = {share} is for a machine that bursts; leave it out");
            return Err(wrong(("credits", reason)));
        }
        let mut notes = size.map(|size| unpublished(size, &uncached, &cached)).unwrap_or_default();
        let has_cache = self.edition.is_some_and(|edition| edition.host_cache().is_some());
        if !has_cache && size.is_some_and(|size| size.temp.is_none()) {
            // No I/O can pass that side.
            notes.retain(|note| !note.ends_with(OF_CACHE));
        }
        let cache = self.cache(keys.cache.as_ref(), size);
        let cache = cache.map_err(|reason| wrong(("cache.latency", reason)))?;
        let credits = keys.credits.unwrap_or_default();
        let spec = HostSpec { uncached, cached, credits, cache, ..HostSpec::default() };
        let traits = self.edition.zip(size).map(|(edition, size)| edition.traits(size));
        let series = size.map(|size| size.series.clone());
        let host = Host::new(name, size.map(|s| s.name.clone()), spec);
        let licence_owned = keys.licence_owned;
        let filesystem = keys.filesystem;
        let host = Host { notes, series, traits, licence_owned, filesystem, ..host };
        self.add_host(host, size);
        Ok(())
    }

    fn add_host(&mut self, host: Host, size: Option<&'a HostSize>) {
        self.hosts.push(host);
        self.sizes.push(size);
        self.file_indices.push(Vec::new());
    }

    fn managed_instance(
        &mut self,
        name: String,
        kind: ManagedInstance,
        keys: &HostKeys,
    ) -> Result<(), Fault> {
        let edition = self.edition.ok_or_else(|| {
            Kind::no_edition(format!("host {name:?}"), "a managed instance").at("managed_instance")
        })?;
        let resolved = instance::resolve(kind, keys, edition, self.source.catalog);
        let (instance, size, spec) = resolved.map_err(|(key, reason)| {
            Kind::Contradiction { what: format!("host {name:?}"), reason }.at(key)
        })?;
        let host = Host::new(name, Some(size.to_owned()), spec);
        let licence_owned = keys.licence_owned;
        self.add_host(Host { instance: Some(instance), licence_owned, ..host }, None);
        Ok(())
    }

    /// Returns the machine size of a host, if it has one.
    fn size(&self, name: &str, keys: &HostKeys) -> Result<Option<&'a HostSize>, Fault> {
        let wrong = |key, reason: &str| {
            let (what, reason) = (format!("host {name:?}"), reason.to_owned());
            Err(Kind::Contradiction { what, reason }.at(key))
        };
        let size = match (&keys.size, self.edition) {
            (None, _) => None,
            (Some(size), Some(edition)) => {
                let missing = |error| Kind::NoSuchMachine(Box::new(error)).at("size");
                let found = edition.host(size).map_err(missing)?;
                if found.storage.is_some() {
                    let (tier, vcores) = (&found.series, found.vcpus.unwrap_or_default());
                    return wrong(
                        "size",
                        &format!(
                            "{size} is a managed instance; write managed_instance = {tier:?} and \
                             vcores = {vcores}"
                        ),
                    );
                }
                Some(found)
            }
            (Some(_), None) => {
                return Err(Kind::no_edition(format!("host {name:?}"), "a size").at("size"));
            }
        };
        if keys.unlimited && (size.is_some() || keys.limits.is_some()) {
            return wrong("unlimited", "unlimited excludes size and limits; keep one of them");
        }
        if !keys.unlimited && size.is_none() && keys.limits.is_none() {
            return wrong("", "give one of size, limits or unlimited");
        }
        if keys.licence_owned && size.is_none() {
            let reason =
                "licence_owned is for a managed instance or a size of the edition; leave it out";
            return wrong("licence_owned", reason);
        }
        Ok(size)
    }

    fn cache(
        &self,
        keys: Option<&CacheKeys>,
        size: Option<&HostSize>,
    ) -> Result<Option<CacheSpec>, String> {
        let own = keys.cloned().unwrap_or_default();
        let Some(capacity) = own.size.or(size.and_then(|s| s.cache)) else { return Ok(None) };
        let of_edition = self.edition.and_then(Edition::cache_latency);
        let latency = match (&own.latency, of_edition) {
            (Some(latency), _) => own_latency(latency)?,
            (None, Some(l)) => catalog_latency(&l.read, l.transfer)?,
            (None, None) => Latency::zero(),
        };
        // Own keys describe another cache.
        let through = of_edition.filter(|_| own.latency.is_none()).and_then(|l| l.write_through);
        let through = through.map(|through| catalog_latency(&through, None)).transpose()?;
        Ok(Some(CacheSpec {
            capacity,
            latency,
            write_through: through,
            dirty_limit: own.dirty_limit.unwrap_or(Bytes::mib(64)),
            writeback_after: own.writeback_after.unwrap_or(Span::from_secs(1)),
        }))
    }

    /// The index of the host that `name` names, or of the only one.
    fn host_of(&self, what: &str, name: Option<&str>) -> Result<usize, Fault> {
        let Some(name) = name else {
            return match self.hosts.len() {
                1 => Ok(0),
                _ => Err(Fault::from(Kind::Contradiction {
                    what: what.to_owned(),
                    reason: "there are several hosts; name one with host = \"..\"".into(),
                })),
            };
        };
        self.hosts.iter().position(|host| host.name == name).ok_or_else(|| {
            let near =
                nearest(name, self.hosts.iter().map(|host| host.name.as_str())).map(str::to_owned);
            Kind::Missing { what: what.to_owned(), name: name.to_owned(), near }.at("host")
        })
    }

    fn volume(&mut self, keys: &VolumeKeys) -> Result<(), Fault> {
        let Some(name) = &keys.name else {
            return Err(Fault::from(Kind::Contradiction {
                what: "volume".into(),
                reason: "it needs a name = \"..\"".into(),
            }));
        };
        let what = format!("volume {name:?}");
        let host = self.host_of(&what, keys.host.as_deref())?;
        self.check_takes_volumes(host, &what)?;
        let id = self.add_volume(host, name, keys)?;
        self.export(host, name, DeviceSpec::Volume(id.0), vec![id], None);
        self.restrict(&what, name, keys.clients.as_ref())
    }

    /// Restricts the clients of an export.
    fn restrict(
        &mut self,
        what: &str,
        name: &str,
        keys: Option<&ClientsKeys>,
    ) -> Result<(), Fault> {
        if let Some(keys) = keys {
            let clients = Clients::resolve(what, keys)?;
            self.access.exports.insert(name.to_owned(), clients);
        }
        Ok(())
    }

    fn check_takes_volumes(&self, host: usize, what: &str) -> Result<(), Fault> {
        if self.hosts[host].instance.is_none() {
            return Ok(());
        }
        let reason =
            "its host is a managed instance, which has files and no volumes; write [[file]]";
        Err(Kind::Contradiction { what: what.to_owned(), reason: reason.to_owned() }.into())
    }

    /// Adds a database file: a volume on a managed instance, otherwise a range of its volume or
    /// stripe.
    fn file(&mut self, index: usize, keys: &FileKeys) -> Result<(), Fault> {
        let what = format!("file {:?}", keys.name);
        let wrong = |key, reason: &str| {
            let (what, reason) = (what.clone(), reason.to_owned());
            Err(Kind::Contradiction { what, reason }.at(key))
        };
        check_name(&keys.name)?;
        files::check_keys(keys).or_else(|(key, reason)| wrong(key, &reason))?;
        let host = self.host_of(&what, keys.host.as_deref())?;
        if !self.file_names.insert(keys.name.clone()) {
            return Err(Kind::Duplicate { name: keys.name.clone() }.at("name"));
        }
        let (device, base) = match (&self.hosts[host].instance, &keys.on) {
            (Some(_), Some(_)) => {
                return wrong("on", "on a managed instance each file is a volume; leave on out");
            }
            (Some(instance), None) => {
                let volume = instance.volume_of(keys, self.edition);
                let id = self.add_volume(host, &keys.name, &volume)?;
                let device = DeviceSpec::Volume(id.0);
                (self.export(host, &keys.name, device, vec![id], None), Bytes::ZERO)
            }
            (None, None) => {
                return wrong("", "name the volume or stripe that holds it, with on = \"..\"");
            }
            (None, Some(on)) => {
                files::check_size(keys.size).or_else(|reason| wrong("size", reason))?;
                files::place(&self.hosts[host], &what, on)?
            }
        };
        self.file_indices[host].push(index);
        self.hosts[host].files.push(File::new(keys, device, base));
        Ok(())
    }

    fn add_volume(
        &mut self,
        host: usize,
        name: &str,
        keys: &VolumeKeys,
    ) -> Result<VolumeId, Fault> {
        check_name(name)?;
        self.take_name(name)?;
        let count = self.hosts.iter().map(|host| host.volumes.len()).sum::<usize>() + 1;
        check_count("volumes", count, Layout::MAX_VOLUMES)?;
        let keys = volume::with_local_disk(name, keys, self.sizes[host])?;
        let volume = volume::resolve(name, &keys, self.edition)?;
        self.check_backend(&volume)?;
        let host = &mut self.hosts[host];
        host.check_cache(&volume).map_err(|kind| kind.at("cache"))?;
        check_free(host, &volume).map_err(|(key, reason)| {
            Kind::Contradiction { what: format!("volume {name:?}"), reason }.at(key)
        })?;
        host.spec.volumes.push(volume.spec.clone());
        host.notes.extend(assumed_size(&volume));
        host.volumes.push(volume);
        Ok(VolumeId(host.volumes.len() - 1))
    }

    /// Checks that no other volume has the same backend.
    fn check_backend(&self, volume: &Volume) -> Result<(), Fault> {
        let Some(backend) = &volume.backend else { return Ok(()) };
        let is_same =
            |other: &&Volume| other.backend.as_ref().is_some_and(|own| own.is_same_place(backend));
        match self.hosts.iter().flat_map(|host| &host.volumes).find(is_same) {
            None => Ok(()),
            Some(other) => {
                let reason = format!(
                    "{backend} is already the backend of {:?}, and each would overwrite the other; \
                     give each volume a backend of its own",
                    other.name
                );
                let what = format!("volume {:?}", volume.name);
                Err(Kind::Contradiction { what, reason }.at("backend"))
            }
        }
    }

    /// Takes the name of a volume or stripe.
    fn take_name(&mut self, name: &str) -> Result<(), Fault> {
        if self.names.insert(name.to_owned()) {
            Ok(())
        } else {
            Err(Kind::Duplicate { name: name.to_owned() }.at("name"))
        }
    }

    fn export(
        &mut self,
        host: usize,
        name: &str,
        device: DeviceSpec,
        volumes: Vec<VolumeId>,
        unit: Option<Bytes>,
    ) -> DeviceId {
        let host = &mut self.hosts[host];
        host.spec.devices.push(device);
        let device = DeviceId(host.spec.devices.len() - 1);
        let name = name.to_owned();
        host.exports.push(Export { name, device, volumes, unit, size: Bytes::ZERO });
        device
    }

    fn stripe(&mut self, keys: &StripeKeys) -> Result<(), Fault> {
        let what = format!("stripe {:?}", keys.name);
        let contradiction = |reason: String| Kind::Contradiction { what: what.clone(), reason };
        check_name(&keys.name)?;
        self.take_name(&keys.name)?;
        if keys.unit == Bytes::ZERO || !keys.unit.get().is_multiple_of(512) {
            let reason = "unit must be a positive multiple of 512 bytes".to_owned();
            return Err(contradiction(reason).at("unit"));
        }
        let host = self.host_of(&what, keys.host.as_deref())?;
        self.check_takes_volumes(host, &what)?;
        let columns = match &keys.volumes {
            Columns::Alike(alike) => {
                let named = alike.each.name.as_ref().map(|_| "volumes.name");
                if let Some(key) = named.or(alike.each.host.as_ref().map(|_| "volumes.host")) {
                    let reason = "the names and the host of its volumes follow from the stripe; leave name \
                         and host out";
                    return Err(contradiction(reason.to_owned()).at(key));
                }
                if alike.each.clients.is_some() {
                    return Err(contradiction(NO_EXPORT.to_owned()).at("volumes.clients"));
                }
                if alike.each.backend.is_some() {
                    let reason = "all its volumes would have the same backend; write a [[volume]] with a \
                         backend for each column, and list their names";
                    return Err(contradiction(reason.to_owned()).at("volumes.backend"));
                }
                let columns = check_columns(alike.count as usize);
                columns.map_err(|reason| contradiction(reason).at("volumes.count"))?;
                let all = luns::columns(alike);
                let all = all.map_err(|(key, reason)| contradiction(reason).at(key))?;
                all.iter()
                    .enumerate()
                    .map(|(n, own)| self.add_volume(host, &format!("{}-{n}", keys.name), own))
                    .collect::<Result<Vec<_>, _>>()
                    .map_err(|fault| fault.within("volumes"))?
            }
            Columns::Named(names) => {
                let columns = check_columns(names.len());
                columns.map_err(|reason| contradiction(reason).at("volumes"))?;
                self.named_columns(&what, host, names)?
            }
        };
        let indices = columns.iter().map(|v| v.0).collect();
        let device = DeviceSpec::Stripe { unit: keys.unit, columns: indices };
        self.export(host, &keys.name, device, columns, Some(keys.unit));
        self.restrict(&what, &keys.name, keys.clients.as_ref())
    }

    /// Takes volumes by name. They are no longer exported, because a write to one would damage the
    /// stripe.
    fn named_columns(
        &mut self,
        what: &str,
        host: usize,
        names: &[String],
    ) -> Result<Vec<VolumeId>, Fault> {
        let host = &mut self.hosts[host];
        let mut columns = Vec::new();
        if let Some(at) = names.iter().position(|name| self.access.exports.contains_key(name)) {
            let reason = format!("{:?} has clients: {NO_EXPORT}", names[at]);
            let what = what.to_owned();
            return Err(Kind::Contradiction { what, reason }.at(format!("volumes.{at}")));
        }
        for (index, name) in names.iter().enumerate() {
            let known = || host.exports.iter().filter(|e| e.unit.is_none());
            let Some(at) = host.exports.iter().position(|e| e.name == *name && e.unit.is_none())
            else {
                let taken = host.volumes.iter().any(|v| v.name == *name);
                let what = what.to_owned();
                let kind = if taken {
                    let reason = format!("volume {name:?} is a column already");
                    Kind::Contradiction { what, reason }
                } else {
                    let near = nearest(name, known().map(|e| e.name.as_str())).map(str::to_owned);
                    Kind::Missing { what, name: name.clone(), near }
                };
                return Err(kind.at(format!("volumes.{index}")));
            };
            columns.extend(host.exports.remove(at).volumes);
        }
        Ok(columns)
    }

    fn finish(mut self) -> Result<Layout, LayoutError> {
        let source = self.source;
        for (index, (host, size)) in self.hosts.iter_mut().zip(&self.sizes).enumerate() {
            let at = |kind: Kind, key: &str| source.at(kind.at(format!("host.{index}.{key}")));
            if let Some(size) = size {
                check_disk_count(host, size).map_err(|kind| at(kind, "size"))?;
                check_takes(host, size).map_err(|kind| at(kind, "size"))?;
                take_v2_limits(host, size, self.edition);
            }
            pool::take(host, *size, self.edition).map_err(|kind| at(kind, "size"))?;
            let engine =
                Engine::new(host.spec.clone()).map_err(|error| at(Kind::Spec(error), "limits"))?;
            for export in &mut host.exports {
                export.size = engine.device_size(export.device).unwrap_or(Bytes::ZERO);
            }
            files::check(host).map_err(|(at, kind)| {
                source.at(kind.at(format!("file.{}.size", self.file_indices[index][at])))
            })?;
            files::make_room(host);
            let idle = files::idle_growth(host);
            host.notes.extend(idle);
        }
        let blob = |keys| Blob::resolve(keys, &self.hosts, self.edition);
        let blob = self.blob.as_ref().map(blob).transpose();
        let blob = blob.map_err(|fault| source.at(fault.within("blob")))?;
        if blob.is_none()
            && self.hosts.iter().all(|host| host.exports.is_empty() && host.instance.is_none())
        {
            let reason = "there is no [[volume]], no [[stripe]], no [[file]] and no [blob]";
            let reason = reason.to_owned();
            let kind = Kind::Contradiction { what: "the layout".into(), reason };
            return Err(source.at(kind.into()));
        }
        let edition = self.edition.map(|e| e.name().to_owned());
        let provider = self.edition.and_then(|e| e.provider()).map(str::to_owned);
        let access = self.access;
        Ok(Layout { edition, region: None, provider, hosts: self.hosts, blob, access })
    }
}

/// Returns the edition's spelling of a region.
fn region(name: &str, edition: Option<&Edition>) -> Result<String, Kind> {
    let Some(edition) = edition else {
        return Err(Kind::no_edition("the layout".to_owned(), "a region"));
    };
    Ok(edition.region_named(name)?.unwrap_or(name).to_owned())
}

/// Checks the numbers of tables, before anything is done for each of them.
fn check_counts(keys: &LayoutFile) -> Result<(), Fault> {
    let hosts = keys.host.as_ref().map_or(0, |hosts| hosts.0.len());
    let counts = [
        ("host", "hosts", hosts, Layout::MAX_HOSTS),
        ("volume", "volumes", keys.volume.len(), Layout::MAX_VOLUMES),
        ("stripe", "stripes", keys.stripe.len(), Layout::MAX_VOLUMES),
        ("file", "files", keys.file.len(), Layout::MAX_VOLUMES),
    ];
    counts.into_iter().try_for_each(|(key, what, count, most)| {
        check_count(what, count, most).map_err(|fault| fault.within(&format!("{key}.{most}")))
    })
}

fn check_count(what: &'static str, count: usize, most: usize) -> Result<(), Fault> {
    if count > most { Err(Kind::TooMany { what, count, most }.into()) } else { Ok(()) }
}

fn check_columns(count: usize) -> Result<(), String> {
    match count {
        0 => Err("it has no volumes; a stripe needs two or more".to_owned()),
        1 => Err("it has 1 volume; a stripe needs two or more".to_owned()),
        2..=1024 => Ok(()),
        _ => Err(format!("it has {count} volumes; the maximum is 1,024")),
    }
}

/// The side of a machine that its cache and its local SSD pass, in words.
const OF_CACHE: &str = "of cache and local SSD";

/// Returns notes about limits of a size that are not published.
fn unpublished(size: &HostSize, uncached: &GateLimits, cached: &GateLimits) -> Vec<String> {
    [(uncached, TO_REMOTE), (cached, OF_CACHE)]
        .into_iter()
        .filter(|(gate, _)| **gate == GateLimits::default())
        .map(|(_, what)| format!("{} has no published limit {what}", size.name))
        .collect()
}

fn host_gate(limits: &HostLimits, edition: Option<&Edition>) -> GateLimits {
    let mut gate = gate_of(limits.limits());
    if let Some(burst) = limits.burst
        && let BurstKind::Credit { duration } = burst.kind
    {
        let with = |limit: Limit, peak| limit.with_burst(peak, duration);
        gate.iops = gate.iops.map(|limit| with(limit, burst.iops.per_sec()));
        gate.bytes = gate.bytes.map(|limit| with(limit, burst.throughput.per_sec()));
    }
    with_reserve(gate, edition)
}

fn check_disk_count(host: &Host, size: &HostSize) -> Result<(), Kind> {
    let count = host.spec.volumes.iter().filter(|v| v.place == Place::Remote).count();
    match size.max_data_disks {
        Some(max) if count > max as usize => {
            Err(Kind::TooManyDisks { host: host.name.clone(), size: size.name.clone(), count, max })
        }
        _ => Ok(()),
    }
}

/// Returns a note about a size that is known only when the volume is served.
fn assumed_size(volume: &Volume) -> Option<String> {
    volume.has_assumed_size().then(|| {
        format!(
            "volume {:?} has the size of its backend, which only a server knows; other commands assume {}",
            volume.name, volume.spec.size
        )
    })
}

/// Checks that the machine takes the families of its disks.
fn check_takes(host: &Host, size: &HostSize) -> Result<(), Kind> {
    let is_other = |volume: &&Volume| {
        let family = volume.family.as_ref().filter(|_| volume.spec.place == Place::Remote);
        family.is_some_and(|family| !size.takes.contains(family))
    };
    match host.volumes.iter().find(is_other) {
        Some(volume) if !size.takes.is_empty() => {
            let family = volume.family.as_deref().unwrap_or_default();
            let reason = format!("{} does not take {family}; it takes", size.name);
            let reason = format!("{reason} {}", size.takes.join(", "));
            Err(Kind::Contradiction { what: format!("volume {:?}", volume.name), reason })
        }
        _ => Ok(()),
    }
}

/// Applies the higher limits that some sizes have for disks with provisioned limits. They need all
/// remote disks to be such. For a mixture nothing is published, so the lower limits apply.
fn take_v2_limits(host: &mut Host, size: &HostSize, edition: Option<&Edition>) {
    let provisioned = |v: &Volume| {
        let family = v.family.as_deref();
        family.is_some_and(|f| edition.is_some_and(|e| e.provisioned(f).is_ok()))
    };
    let remote: Vec<&Volume> =
        host.volumes.iter().filter(|v| v.spec.place == Place::Remote).collect();
    let count = remote.iter().filter(|v| provisioned(v)).count();
    if count == 0 || size.uncached == size.v2_or_uncached().cloned() {
        return;
    }
    if count == remote.len() {
        let limits = size.v2_or_uncached().map(|own| host_gate(own, edition));
        host.spec.uncached = limits.unwrap_or_default();
        host.notes.retain(|note| !note.ends_with(TO_REMOTE));
        let higher = if size.uncached.is_some() { "higher limits" } else { "limits" };
        host.notes.push(format!("{} has {higher} for these disks, which apply", size.name));
    } else {
        host.notes.push(format!(
            "{} has higher limits for some of these disks; none are published for a mixture, so \
             the lower ones apply",
            size.name
        ));
    }
}
