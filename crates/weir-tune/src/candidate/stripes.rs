//! Stripes: a volume becomes one, or one gets another unit or more columns.

use super::Steps;
use weir_catalog::{Edition, Provisioned};
use weir_core::{Cap, Limit, Place as Medium};
use weir_diagnose::{Change, StripeDisk};
use weir_layout::{Export, Host, Volume};
use weir_units::Bytes;

/// Stripe units that candidates have.
const UNITS: [u64; 4] = [128 << 10, 256 << 10, 512 << 10, 1 << 20];

/// The unit of a new stripe: the advice for transactions. Larger ones are candidates after it.
const UNIT: u64 = 64 << 10;

/// Columns of a new stripe.
const STRIPES: [u32; 9] = [2, 3, 4, 5, 6, 8, 10, 12, 16];

/// Additional columns of a stripe.
const COLUMNS: [u32; 9] = [1, 2, 3, 4, 6, 8, 12, 16, 24];

/// Returns larger units of a stripe: a request that crosses a unit counts once for each column.
pub(super) fn units(export: &Export) -> Vec<Change> {
    let Some(unit) = export.unit else { return Vec::new() };
    let larger = UNITS.into_iter().filter(|own| *own > unit.get());
    larger.map(|bytes| Change::Unit { name: export.name.clone(), bytes }).collect()
}

/// Returns more columns of a stripe.
pub(super) fn columns(export: &Export) -> Vec<Change> {
    let Some(now) = export.unit.and_then(|_| u32::try_from(export.volumes.len()).ok()) else {
        return Vec::new();
    };
    let more = COLUMNS.iter().map(|more| now.saturating_add(*more));
    more.map(|columns| Change::Columns { name: export.name.clone(), columns }).collect()
}

/// Returns the stripes that a volume of a machine can become: of its own tier and size, and of lower tiers or smaller
/// disks that hold the data together.
pub(super) fn stripes(
    host: &Host,
    export: &Export,
    (edition, cap, steps): (&Edition, Cap, Steps),
) -> Vec<Change> {
    let (None, [id]) = (export.unit, export.volumes.as_slice()) else { return Vec::new() };
    let Some(volume) = host.volumes.get(id.0) else { return Vec::new() };
    let is_remote = volume.spec.place == Medium::Remote && host.instance.is_none();
    if !is_remote || volume.choices().has_own_limits {
        return Vec::new();
    }
    let family = volume.family.as_deref().unwrap_or_default();
    let tiers = edition.tier_set(family).map(|set| set.tiers.as_slice()).unwrap_or_default();
    let size = volume.spec.size.get();
    let bought = edition.provisioned(family).ok();
    let mut changes = Vec::new();
    let mut stripe = |columns, tier, each| {
        let name = export.name.clone();
        changes.push(Change::Stripe { name, columns, tier, each, unit: UNIT });
    };
    for columns in STRIPES {
        stripe(columns, None, None);
        for grown in [false, true] {
            let steps = Some((cap, steps)).filter(|_| grown);
            let smaller = |family| smaller_disk(volume, family, (u64::from(columns), steps));
            if let Some(each) = bought.and_then(smaller) {
                stripe(columns, None, Some(each));
            }
        }
        let smaller =
            tiers.iter().filter(|tier| volume.tier.is_some() && tier.holds < volume.spec.size);
        for tier in
            smaller.filter(|tier| u64::from(columns).saturating_mul(tier.holds.get()) >= size)
        {
            stripe(columns, Some(tier.name.clone()), None);
        }
    }
    changes
}

/// Returns the smallest disk of which `columns` hold the data of a volume, with its share of the volume's rates, or the
/// lowest rates that are sold. With a limit and steps, the limit's rate is as high as the load needs it.
fn smaller_disk(
    volume: &Volume,
    family: &Provisioned,
    (columns, grown): (u64, Option<(Cap, Steps)>),
) -> Option<StripeDisk> {
    let size = volume.spec.size.get();
    let step = family.size_step.unwrap_or(Bytes::gib(1)).get().max(1);
    let each = size.div_ceil(columns).next_multiple_of(step);
    let each = Bytes::new(each).max(family.min_size);
    let gate = &volume.spec.limits.gate;
    let share = |limit: Option<Limit>, counts_bytes: bool| {
        let rate = limit.map_or(0, |own| own.rate.get());
        let needed = grown.filter(|(cap, _)| cap.counts_bytes() == counts_bytes);
        needed.and_then(|(_, steps)| steps.exact(rate)).unwrap_or(rate).div_ceil(columns)
    };
    let own = family.closest(each, share(gate.iops, false), share(gate.bytes, true));
    let throughput = (!family.throughput_follows).then_some(own.throughput.get());
    let disk = StripeDisk { size: each.get(), iops: own.iops.get(), throughput };
    (each.get() < size).then_some(disk)
}
