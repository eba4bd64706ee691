//! Observations of a run: the entities of a layout, and the counters of engines and databases.
//!
//! These functions are called between slices of a run. Slices do not change a run
//! ([`Simulation::run_until`](crate::Simulation::run_until)), so an observer interrupts it when a
//! sample is due, and a run without an observer has no cost. [`shape`] and [`declare_database`]
//! need no simulation: the driver in wall time declares the same from the same layout.

use weir_core::{
    CacheMode, Cap, Engine, GateLimits, Limit, Place as Location, VolumeId, VolumeSpec, Waits,
};
use weir_layout::files::Place;
use weir_layout::{Export, Host, Layout, Volume};
use weir_observe::attribute;
use weir_observe::header::{Attribute, Attributes};
use weir_observe::run::{
    CapTimes, DatabaseCounters, DatabaseShape, FileCounters, FileShape, HostCounters, HostShape,
    LimitsNow, Sample, Shape, StripeShape, VolumeCounters, VolumeShape, WaitCounters,
};
use weir_oltp::{Counters, FileTally, Wait};
use weir_units::Bytes;

/// Returns the hosts, stripes and volumes of a layout.
#[must_use]
pub fn shape(layout: &Layout) -> Shape {
    let mut shape = Shape::default();
    for (at, host) in layout.hosts.iter().enumerate() {
        let attributes = host_attributes(host);
        let (name, has_cache) = (host.name.clone(), host.spec.cache.is_some());
        shape.hosts.push(HostShape { name, attributes, has_cache });
        let mut stripe_of = vec![None; host.volumes.len()];
        for export in host.exports.iter().filter(|export| export.unit.is_some()) {
            for column in &export.volumes {
                stripe_of[column.0] = Some(shape.stripes.len());
            }
            let (name, attributes) = (export.name.clone(), stripe_attributes(export));
            shape.stripes.push(StripeShape { name, host: at, attributes });
        }
        for (id, (volume, stripe)) in host.volumes.iter().zip(stripe_of).enumerate() {
            let limits_change = grows(host, VolumeId(id));
            let own = volume_shape(at, host, volume, stripe);
            shape.volumes.push(VolumeShape { limits_change, ..own });
        }
    }
    shape
}

/// Returns whether a volume is a file that grows through tiers.
fn grows(host: &Host, id: VolumeId) -> bool {
    let is_file = host.instance.is_some();
    is_file && host.files.get(id.0).is_some_and(|file| file.growth.is_some())
}

/// Returns the present limits of a volume.
#[must_use]
pub fn limits_now(spec: &VolumeSpec) -> LimitsNow {
    let gate = &spec.limits.gate;
    LimitsNow { iops: rate(gate.iops.as_ref()), bytes_per_s: rate(gate.bytes.as_ref()) }
}

/// Attributes of a database in an observation.
#[derive(Debug, Clone, Copy)]
pub struct DatabaseAbout<'a> {
    /// Its name.
    pub name: &'a str,
    /// The ready-made mix, if it is one.
    pub mix: Option<&'a str>,
    /// Users.
    pub users: u32,
    /// Schedulers.
    pub vcores: u32,
    /// Its files, as indices of places, and their roles.
    pub files: &'a [(u32, &'static str)],
}

/// Adds a database and its files to the `shape` of `layout`, with its [`places`](Layout::places).
pub fn declare_database(
    shape: &mut Shape,
    layout: &Layout,
    places: &[Place],
    about: &DatabaseAbout<'_>,
) {
    let mut attributes = Attributes::new();
    set(&mut attributes, attribute::VCORES, Some(u64::from(about.vcores)));
    set(&mut attributes, "users", Some(u64::from(about.users)));
    set(&mut attributes, "mix", about.mix);
    let files = about.files.iter().map(|(file, role)| (&places[*file as usize], *role));
    // A database is on the host of its log, its last file.
    let host = files.clone().next_back().map_or(0, |(place, _)| place.host);
    let (name, waits) = (about.name.to_owned(), Wait::ALL.map(Wait::name).to_vec());
    let database = shape.databases.len();
    shape.databases.push(DatabaseShape { name, host, attributes, waits });
    shape
        .files
        .extend(files.map(|(place, role)| file_shape(layout, places, place, role, database)));
}

/// Returns the counters of the engines of a layout, without those of databases.
#[must_use]
pub fn sample(layout: &Layout, engines: &[Engine]) -> Sample {
    let mut sample = Sample::default();
    for (host, engine) in layout.hosts.iter().zip(engines) {
        let cache_resident_bytes = engine.cache_resident().get();
        sample.hosts.push(HostCounters { cache_resident_bytes });
        let volumes = 0..host.volumes.len();
        sample.volumes.extend(volumes.map(|volume| volume_counters(engine, VolumeId(volume))));
    }
    sample
}

/// Returns the counters of a database itself, without those of its memory.
#[must_use]
pub fn database_counters(counted: &Counters) -> DatabaseCounters {
    let wait = |(wait, totals): (Wait, weir_oltp::waits::WaitTotals)| WaitCounters {
        name: wait.name(),
        count: totals.count,
        time_ns: totals.time.nanos(),
    };
    DatabaseCounters {
        batch_requests: counted.batches,
        transactions: counted.transactions,
        transaction_time_ns: counted.response.nanos(),
        cpu_ns: counted.cpu.nanos(),
        checkpoints: counted.checkpoints,
        transactions_failed: counted.failed,
        file_growths: counted.growths,
        page_lookups: counted.pages_wanted,
        page_misses: counted.pages_missed,
        pages_evicted: counted.pages_evicted,
        waits: counted.waits.iter().map(wait).collect(),
        ..DatabaseCounters::default()
    }
}

/// Returns the counters of a database file.
#[must_use]
pub fn file_counters(tally: &FileTally, size: Bytes, limits: LimitsNow) -> FileCounters {
    let FileTally { read, write, service } = tally;
    FileCounters {
        reads: read.count,
        read_bytes: read.bytes,
        read_stall_ns: read.stall.nanos(),
        read_queued_ns: read.queued.nanos(),
        writes: write.count,
        write_bytes: write.bytes,
        write_stall_ns: write.stall.nanos(),
        write_queued_ns: write.queued.nanos(),
        size_bytes: size.get(),
        waits: cap_times(&service.waits),
        medium_ns: service.medium.nanos(),
        limits,
    }
}

/// Returns the time waited per cap.
#[must_use]
pub(crate) fn cap_times(waits: &Waits) -> CapTimes {
    waits.iter().map(|(cap, time)| (cap.name(), time.nanos())).collect()
}

fn volume_counters(engine: &Engine, id: VolumeId) -> VolumeCounters {
    let totals = engine.totals(id).copied().unwrap_or_default();
    let credits = engine.volume(id).map(credits).unwrap_or_default();
    let left = |cap: &Cap| Some((cap.name(), engine.credits(id, *cap)?));
    VolumeCounters {
        limits: engine.volume(id).map(limits_now).unwrap_or_default(),
        reads: totals.reads,
        read_bytes: totals.read_bytes,
        writes: totals.writes,
        write_bytes: totals.write_bytes,
        discards: totals.discards,
        counted_operations: totals.counted,
        cache_hits: totals.hits,
        waits: cap_times(&totals.waits),
        medium_ns: totals.medium.nanos(),
        busy_ns: totals.busy.nanos(),
        writebacks: totals.writebacks,
        written_back_bytes: totals.written_back,
        writeback_waits: cap_times(&totals.writeback_waits),
        burst_transactions: totals.burst_transactions,
        credits: credits.iter().filter_map(left).collect(),
    }
}

fn set<T: Into<Attribute>>(attributes: &mut Attributes, name: &str, value: Option<T>) {
    if let Some(value) = value {
        attributes.insert(name.to_owned(), value.into());
    }
}

fn rate(limit: Option<&Limit>) -> Option<u64> {
    limit.map(|limit| limit.rate.get())
}

fn peak(limit: Option<&Limit>) -> Option<u64> {
    limit.and_then(|limit| limit.burst).map(|(peak, _)| peak.get())
}

/// Sets the rates and peaks of a gate, with names that begin with `prefix`.
fn set_limits(attributes: &mut Attributes, prefix: &str, gate: &GateLimits) {
    let (iops, bytes) = (gate.iops.as_ref(), gate.bytes.as_ref());
    set(attributes, &format!("{prefix}{}", attribute::IOPS_LIMIT), rate(iops));
    set(attributes, &format!("{prefix}{}", attribute::BYTES_PER_S_LIMIT), rate(bytes));
    set(attributes, &format!("{prefix}burst_{}", attribute::IOPS_LIMIT), peak(iops));
    set(attributes, &format!("{prefix}burst_{}", attribute::BYTES_PER_S_LIMIT), peak(bytes));
}

fn host_attributes(host: &Host) -> Attributes {
    let mut attributes = Attributes::new();
    set(&mut attributes, "size", host.size.as_deref());
    set_limits(&mut attributes, "uncached_", &host.spec.uncached);
    if let Some(writes) = &host.spec.uncached_writes {
        set_limits(&mut attributes, "write_", writes);
    }
    set_limits(&mut attributes, "cached_", &host.spec.cached);
    let log = rate(host.spec.log_rate.as_ref());
    set(&mut attributes, "log_bytes_per_s_limit", log);
    let cache = host.spec.cache.as_ref().map(|cache| cache.capacity.get());
    set(&mut attributes, "cache_bytes", cache);
    if let Some(instance) = &host.instance {
        set(&mut attributes, "managed_instance", Some(instance.kind.name()));
        set(&mut attributes, attribute::VCORES, Some(u64::from(instance.vcores)));
        set(&mut attributes, "storage_bytes", Some(instance.storage.get()));
    }
    attributes
}

fn stripe_attributes(stripe: &Export) -> Attributes {
    let mut attributes = Attributes::new();
    set(&mut attributes, attribute::SIZE_BYTES, Some(stripe.size.get()));
    set(&mut attributes, "unit_bytes", stripe.unit.map(Bytes::get));
    set(&mut attributes, "columns", Some(stripe.volumes.len() as u64));
    attributes
}

fn volume_shape(at: usize, host: &Host, volume: &Volume, stripe: Option<usize>) -> VolumeShape {
    let spec = &volume.spec;
    let mut attributes = Attributes::new();
    set(&mut attributes, attribute::SIZE_BYTES, Some(spec.size.get()));
    set(&mut attributes, attribute::TIER, volume.tier.as_deref());
    set(&mut attributes, "family", volume.family.as_deref());
    set(&mut attributes, "tier_bytes", volume.tier_size.map(Bytes::get));
    set_limits(&mut attributes, "", &spec.limits.gate);
    set(&mut attributes, "io_unit_bytes", spec.limits.io_unit.map(std::num::NonZeroU64::get));
    set(&mut attributes, "cache", Some(spec.cache.name()));
    set(&mut attributes, "place", (spec.place == Location::Local).then_some("local"));
    let writes_back = spec.cache == CacheMode::ReadWrite;
    let is_billed = [spec.limits.gate.iops, spec.limits.gate.bytes];
    VolumeShape {
        name: volume.name.clone(),
        host: at,
        stripe,
        attributes,
        caps: Some(names(&caps(host, spec))),
        writeback_caps: writes_back.then(|| {
            names(
                &caps(host, spec)
                    .into_iter()
                    .filter(|cap: &Cap| *cap != Cap::CacheWriteback)
                    .collect::<Vec<_>>(),
            )
        }),
        credits: names(&credits(spec)),
        is_billed: is_billed.iter().flatten().any(Limit::is_on_demand),
        limits_change: false,
    }
}

fn names(caps: &[Cap]) -> Vec<&'static str> {
    caps.iter().map(|cap| cap.name()).collect()
}

/// Returns the caps that can throttle requests to a volume.
fn caps(host: &Host, volume: &VolumeSpec) -> Vec<Cap> {
    let (disk, uncached, cached) = (&volume.limits.gate, &host.spec.uncached, &host.spec.cached);
    let writes = host.spec.uncached_writes.as_ref().filter(|_| volume.place == Location::Remote);
    let is_cached = volume.cache != CacheMode::None || volume.place == Location::Local;
    let has = |limit: Option<Limit>| limit.is_some();
    let bursts = |limit: Option<Limit>| limit.is_some_and(|limit| limit.burst.is_some());
    let can_hold = |cap: &Cap| match cap {
        Cap::LogRate => volume.log && has(host.spec.log_rate),
        Cap::DiskIops => has(disk.iops),
        Cap::DiskBytes => has(disk.bytes),
        Cap::DiskBurstIops => bursts(disk.iops),
        Cap::DiskBurstBytes => bursts(disk.bytes),
        Cap::HostUncachedIops => has(uncached.iops),
        Cap::HostUncachedBytes => has(uncached.bytes),
        Cap::HostUncachedBurstIops => bursts(uncached.iops),
        Cap::HostUncachedBurstBytes => bursts(uncached.bytes),
        Cap::HostCachedIops => is_cached && has(cached.iops),
        Cap::HostCachedBytes => is_cached && has(cached.bytes),
        Cap::HostCachedBurstIops => is_cached && bursts(cached.iops),
        Cap::HostCachedBurstBytes => is_cached && bursts(cached.bytes),
        Cap::CacheWriteback => volume.cache == CacheMode::ReadWrite,
        Cap::HostWriteIops => writes.is_some_and(|own| has(own.iops)),
        Cap::HostWriteBytes => writes.is_some_and(|own| has(own.bytes)),
    };
    Cap::ALL.into_iter().filter(can_hold).collect()
}

/// Returns the limits of a volume that burst on credits.
fn credits(volume: &VolumeSpec) -> Vec<Cap> {
    let gate = &volume.limits.gate;
    let on_credit =
        |limit: Option<Limit>| limit.is_some_and(|l| l.burst.is_some() && !l.is_on_demand());
    let both = [(Cap::DiskIops, gate.iops), (Cap::DiskBytes, gate.bytes)];
    both.into_iter().filter(|(_, limit)| on_credit(*limit)).map(|(cap, _)| cap).collect()
}

fn file_shape(
    layout: &Layout,
    places: &[Place],
    place: &Place,
    role: &str,
    database: usize,
) -> FileShape {
    let host = &layout.hosts[place.host];
    let mut attributes = Attributes::new();
    set(&mut attributes, attribute::ROLE, Some(role));
    set(&mut attributes, attribute::SIZE_BYTES, Some(place.size.get()));
    let export = host.exports.iter().find(|export| export.device == place.device);
    let mut all: Vec<Cap> = Vec::new();
    let mut limits_change = false;
    if let Some(export) = export {
        set(&mut attributes, attribute::VOLUME, Some(export.name.as_str()));
        let columns = export.volumes.iter().map(|id| &host.volumes[id.0]);
        all.extend(columns.flat_map(|volume| caps(host, &volume.spec)));
        all.sort_unstable();
        all.dedup();
        let others = places.iter().filter(|p| (p.host, p.device) == (place.host, place.device));
        if let ([volume], 1) = (&export.volumes[..], others.count()) {
            // The file has the whole volume and its limits.
            limits_change = grows(host, *volume);
            let volume = &host.volumes[volume.0];
            set(&mut attributes, attribute::TIER, volume.tier.as_deref());
            set_limits(&mut attributes, "", &volume.spec.limits.gate);
        }
    }
    let name = place.name.clone();
    FileShape { name, database, attributes, caps: Some(names(&all)), limits_change }
}

#[cfg(test)]
mod tests;
