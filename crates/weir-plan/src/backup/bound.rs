//! The lower bound of a backup's duration: the longest time that any limit alone would take.
//!
//! | limit | traffic |
//! |---|---|
//! | disk bytes, disk operations | reads and writes of a device's disks |
//! | machine, uncached bytes | reads and writes of remote disks without cache |
//! | machine, cached bytes | reads and writes of local disks |
//! | stripe | its writes: a fixed number in flight, each at the medium's lowest latency |
//! | buffers | all transfers, each with a read and a write |
//! | processors | compression |
//! | the limit of the backup | what is read of all sources |
//!
//! A limit admits its first request at once, so one transfer is subtracted from each sum. Disks
//! with a cache are left out, because hits do not reach them.

use std::collections::BTreeMap;
use weir_core::{CacheMode, Limit, Place as Where, VolumeSpec};
use weir_layout::files::Place;
use weir_layout::{Export, Host, Layout};
use weir_pipeline::Plan;
use weir_pipeline::buffers::WRITE_DEPTH;
use weir_units::Span;

const SECOND: u128 = 1_000_000_000;

/// Bytes that a backup reads and writes, by host and device.
type Traffic = BTreeMap<(usize, usize), u64>;

/// Returns the lower bound of a backup's duration from its first transfer on. `places` are those of
/// the layout.
#[must_use]
pub fn lower_bound(layout: &Layout, places: &[Place], plan: &Plan) -> Span {
    let transfer = plan.buffers.max_transfer.get();
    let mut traffic = Traffic::new();
    let mut add = |place: u32, bytes: u64| {
        if let Some(place) = places.get(place as usize) {
            *traffic.entry((place.host, place.device.0)).or_default() += bytes;
        }
    };
    for source in &plan.sources {
        add(source.place, source.ranges.iter().map(|range| range.end - range.start).sum());
    }
    let written = compressed(plan.bytes(), plan.compressed_per_mille);
    let stripes = plan.stripes.len().max(1) as u64;
    // Buffers go to the stripes in turn, so stripes differ by one transfer at most.
    let of_stripe = (written / stripes).saturating_sub(transfer);
    for (place, _) in &plan.stripes {
        add(*place, of_stripe);
    }
    let devices = devices(layout, &traffic, transfer);
    let hosts = hosts(layout, &traffic, transfer);
    let own = [stripes_take(layout, places, plan), buffers_take(layout, places, plan)];
    let limited = plan.limit.map_or(0, |limit| takes(plan.bytes(), transfer, limit.get()));
    let all = devices.chain(hosts).chain(own).chain([processors_take(plan), limited]);
    let nanos = all.max().unwrap_or(0);
    Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn compressed(bytes: u64, per_mille: u32) -> u64 {
    let bytes = u128::from(bytes) * u128::from(per_mille.min(1000)) / 1000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Returns the time for `amount` at a rate, after the first `free`.
fn takes(amount: u64, free: u64, rate: u64) -> u128 {
    u128::from(amount.saturating_sub(free)) * SECOND / u128::from(rate.max(1))
}

fn export_of(host: &Host, device: usize) -> Option<&Export> {
    host.exports.iter().find(|export| export.device.0 == device)
}

fn volumes<'l>(host: &'l Host, export: &'l Export) -> impl Iterator<Item = &'l VolumeSpec> {
    export.volumes.iter().filter_map(|id| host.spec.volumes.get(id.0))
}

/// Returns the times of the disks of each device.
fn devices<'l>(
    layout: &'l Layout,
    traffic: &'l Traffic,
    transfer: u64,
) -> impl Iterator<Item = u128> + use<'l> {
    traffic.iter().filter_map(move |((host, device), bytes)| {
        let host = layout.hosts.get(*host)?;
        let export = export_of(host, *device)?;
        if volumes(host, export).any(|own| own.cache != CacheMode::None) {
            return None;
        }
        let count = export.volumes.len() as u64;
        let sum = |limit: fn(&VolumeSpec) -> Option<Limit>| {
            volumes(host, export)
                .map(limit)
                .try_fold(0_u64, |sum, own| own.map(|own| sum.saturating_add(own.rate.get())))
        };
        let by_bytes = sum(|own| own.limits.gate.bytes)
            .map_or(0, |rate| takes(*bytes, transfer.saturating_mul(count), rate));
        // An operation is at most one I/O unit of the disk, or one piece of the stripe.
        let unit = volumes(host, export)
            .filter_map(|own| Some(own.limits.io_unit?.get()))
            .max()
            .map(|own| export.unit.map_or(own, |cut| own.min(cut.get())));
        let by_operations = match (unit, sum(|own| own.limits.gate.iops)) {
            (Some(unit), Some(rate)) => {
                takes(bytes / unit, transfer.div_ceil(unit).saturating_mul(count), rate)
            }
            _ => 0,
        };
        Some(by_bytes.max(by_operations))
    })
}

/// Returns the times of the machines.
fn hosts<'l>(
    layout: &'l Layout,
    traffic: &'l Traffic,
    transfer: u64,
) -> impl Iterator<Item = u128> + use<'l> {
    layout.hosts.iter().enumerate().map(move |(at, host)| {
        let (mut remote, mut local) = (0_u64, 0_u64);
        for ((_, device), bytes) in traffic.iter().filter(|((own, _), _)| *own == at) {
            let Some(export) = export_of(host, *device) else { continue };
            if volumes(host, export).any(|own| own.cache != CacheMode::None) {
                continue;
            }
            match volumes(host, export).all(|own| own.place == Where::Local) {
                true => local += bytes,
                false => remote += bytes,
            }
        }
        let time = |bytes: u64, limit: Option<Limit>| {
            limit.map_or(0, |limit| takes(bytes, transfer, limit.rate.get()))
        };
        time(remote, host.spec.uncached_total().bytes).max(time(local, host.spec.cached.bytes))
    })
}

/// Returns the shortest time of a transfer at a place.
fn shortest(layout: &Layout, places: &[Place], place: u32, is_write: bool) -> u64 {
    let found = places.get(place as usize).and_then(|place| {
        let host = layout.hosts.get(place.host)?;
        let export = export_of(host, place.device.0)?;
        let is_cached = volumes(host, export).any(|own| own.cache != CacheMode::None);
        volumes(host, export)
            .filter(|_| !is_cached)
            .map(|own: &VolumeSpec| {
                let medium = if is_write { &own.medium.write } else { &own.medium.read };
                medium.shortest().nanos()
            })
            .min()
    });
    found.unwrap_or(0)
}

fn transfers(plan: &Plan) -> u64 {
    let transfer = plan.buffers.max_transfer.get().max(1);
    let ranges = plan.sources.iter().flat_map(|source| &source.ranges);
    ranges.map(|range| (range.end - range.start).div_ceil(transfer)).sum()
}

/// Returns the time of the slowest stripe.
fn stripes_take(layout: &Layout, places: &[Place], plan: &Plan) -> u128 {
    let each = transfers(plan) / (plan.stripes.len().max(1) as u64) / u64::from(WRITE_DEPTH);
    let slowest = plan.stripes.iter().map(|(place, _)| shortest(layout, places, *place, true));
    u128::from(each) * u128::from(slowest.max().unwrap_or(0))
}

/// Returns the time of the buffers, each of which is read into and written.
fn buffers_take(layout: &Layout, places: &[Place], plan: &Plan) -> u128 {
    let read = plan.sources.iter().map(|own| shortest(layout, places, own.place, false)).min();
    let write = plan.stripes.iter().map(|own| shortest(layout, places, own.0, true)).min();
    let each = u128::from(read.unwrap_or(0)) + u128::from(write.unwrap_or(0));
    let buffers = u64::from(plan.buffers.count.max(1)) * u64::from(plan.buffers.sets.max(1));
    u128::from(transfers(plan) / buffers) * each
}

/// Returns the time of compression.
pub(super) fn processors_take(plan: &Plan) -> u128 {
    let each = u128::from(plan.compression_per_mib.nanos());
    let all = each * u128::from(plan.bytes()) / (1 << 20);
    all / u128::from(plan.encoders.max(1))
}
