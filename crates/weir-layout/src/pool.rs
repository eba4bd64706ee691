//! Disks that share their limits: all disks of one type on a machine have limits by their total size.
//!
//! The engine enforces these limits at the host's gate to remote storage. A host therefore has disks
//! of one such type, or disks with limits of their own, but not both.

use crate::error::Kind;
use crate::layout::{Host, TO_REMOTE};
use crate::volume::{Volume, gate_of, with_reserve};
use weir_catalog::{Edition, HostSize, Limits, PoolLimits};
use weir_core::{GateLimits, Place};
use weir_units::Bytes;

/// Applies the limits of the pool to a host whose disks share theirs. `size` is its machine size in
/// the edition, if it has one.
pub(crate) fn take(
    host: &mut Host,
    size: Option<&HostSize>,
    edition: Option<&Edition>,
) -> Result<(), Kind> {
    let Some(own) = host.volumes.iter().find(|volume| volume.is_pooled) else { return Ok(()) };
    let family = own.family.clone().unwrap_or_default();
    let Some(pooled) = edition.and_then(|edition| edition.pooled(&family)) else { return Ok(()) };
    let is_other = |volume: &&Volume| {
        let is_remote = volume.spec.place == Place::Remote;
        is_remote && !(volume.is_pooled && volume.family.as_deref() == Some(&*family))
    };
    if let Some(other) = host.volumes.iter().find(is_other) {
        let limits = match &other.family {
            Some(name) if name != &family && !name.is_empty() => format!("the limits of {name}"),
            _ => "its own limits".to_owned(),
        };
        let reason = format!(
            "{family} disks share limits that apply to all remote disks of a machine, but {:?} has \
             {limits}: put it on another host",
            other.name
        );
        return Err(wrong(host, reason));
    }
    let most = match size {
        Some(size) => Some(*size.pools.get(&pooled.family).ok_or_else(|| {
            let others: Vec<&str> = size.pools.keys().map(String::as_str).collect();
            let reason = format!(
                "no limit of {family} disks is published for {}; it has limits for {}",
                size.name,
                others.join(", ")
            );
            wrong(host, reason)
        })?),
        None => None,
    };
    let all = host.volumes.iter().filter(|volume| volume.is_pooled);
    let all = Bytes::new(all.map(|volume| volume.spec.size.get()).fold(0, u64::saturating_add));
    let PoolLimits { limits, writes } = pooled.limits(all, most);
    let gate = |limits| with_reserve(gate_of(limits), edition);
    // Limits that a layout gives its host hold for reads and writes together.
    let separate = writes.filter(|_| host.spec.uncached == GateLimits::default());
    host.spec.uncached_writes = separate.map(gate);
    host.spec.uncached = lower(host.spec.uncached, gate(limits));
    host.notes.retain(|note| !note.ends_with(TO_REMOTE));
    let words = |own: Limits| format!("{} and {}", own.iops, own.throughput);
    let have = match (separate, writes) {
        (Some(writes), _) => {
            format!("{} for reads, and {} for writes", words(limits), words(writes))
        }
        (None, Some(_)) => format!(
            "{} for reads and writes together, because the host has limits of its own",
            words(limits)
        ),
        (None, None) => words(limits),
    };
    host.notes.push(format!(
        "{family} disks share their limits on a machine: {all} in total have {have}"
    ));
    Ok(())
}

/// Checks that a volume does not share its limits, which would change with its size.
pub(crate) fn check_alone(volume: &Volume) -> Result<(), Kind> {
    if !volume.is_pooled {
        return Ok(());
    }
    let reason = format!(
        "{} disks share limits that depend on their total size; change the layout and restart",
        volume.family.as_deref().unwrap_or_default()
    );
    Err(Kind::Contradiction { what: format!("volume {:?}", volume.name), reason })
}

fn wrong(host: &Host, reason: String) -> Kind {
    Kind::Contradiction { what: format!("host {:?}", host.name), reason }
}

/// Returns the lower of the explicit limits of a host and those of its disks.
fn lower(own: GateLimits, pool: GateLimits) -> GateLimits {
    let least = |own: Option<weir_core::Limit>, pool: Option<weir_core::Limit>| match (own, pool) {
        (Some(own), Some(pool)) if own.rate < pool.rate => Some(own),
        (own, pool) => pool.or(own),
    };
    GateLimits { iops: least(own.iops, pool.iops), bytes: least(own.bytes, pool.bytes) }
}
