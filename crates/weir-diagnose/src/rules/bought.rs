//! Fixes for disks without tiers: rates that are bought, or that follow from the size.

use crate::case::{Case, size};
use crate::change::{self, Change};
use crate::system::Disk;
use weir_catalog::{Limits, Provisioned, SizedFamily};
use weir_report::number::whole;
use weir_units::Bytes;

/// Most doublings of a size to look at: from the smallest disk to the largest.
const DOUBLINGS: u32 = 16;

/// Returns the fix for a disk whose rates are bought or follow from its size: about twice the limit, as far as it is
/// sold. `None` for other disks, and for those with limits of their own.
pub(super) fn more_of(
    case: &Case<'_>,
    disk: usize,
    (needs_bytes, is_peak): (bool, bool),
) -> Option<(String, Option<Change>)> {
    let own = &case.system.disks[disk];
    let (edition, family) = (case.edition?, own.family.as_deref()?);
    let stripe = own.stripe.map(|stripe| case.system.stripes[stripe].name.clone());
    let name = stripe.unwrap_or_else(|| own.name.clone());
    let now = (whole(own.limits.iops?.rate), whole(own.limits.bytes?.rate));
    if let Ok(family) = edition.provisioned(family) {
        return match now.0 >= family.min_iops(Bytes::new(own.size?)).get() {
            true => bought(own, now, family, (name, needs_bytes)),
            false => None,
        };
    }
    let family = edition.sized(family)?;
    let base = family.limits(Bytes::new(own.size?)).ok()?.base;
    let is_own = now != (base.iops.get(), base.throughput.get());
    if own.stripe.is_some() || is_own {
        return None;
    }
    grown(own, family, (name, needs_bytes, is_peak))
}

fn bought(
    own: &Disk,
    now: (u64, u64),
    family: &Provisioned,
    (name, needs_bytes): (String, bool),
) -> Option<(String, Option<Change>)> {
    let size = Bytes::new(own.size?);
    let Limits { iops, throughput } = match needs_bytes {
        true => family.closest(size, now.0, now.1.saturating_mul(2)),
        false => family.closest(size, now.0.saturating_mul(2), now.1),
    };
    let (iops, throughput) = (iops.get(), throughput.get());
    let is_more = if needs_bytes { throughput > now.1 } else { iops > now.0 };
    let stripe = if own.stripe.is_some() { "use more columns" } else { "stripe it" };
    if !is_more {
        let words = format!(
            "{name} has the highest rate of {} for its size: grow it, or {stripe}",
            family.family
        );
        return Some((words, None));
    }
    let throughput = (!family.throughput_follows).then_some(throughput);
    let each = if own.stripe.is_some() { "each disk of " } else { "" };
    let rates = change::rates(iops, throughput);
    let action = format!("buy {rates} for {each}{name}, or {stripe}");
    Some((action, Some(Change::Bought { name, iops, throughput })))
}

fn grown(
    own: &Disk,
    family: &SizedFamily,
    (name, needs_bytes, is_peak): (String, bool, bool),
) -> Option<(String, Option<Change>)> {
    let limit = |size: Bytes| {
        let limits = family.limits(size).ok()?;
        let peak = match needs_bytes {
            true => limits.throughput.map(|(peak, _)| peak.get()),
            false => limits.iops.map(|(peak, _)| peak.get()),
        };
        let base = match needs_bytes {
            true => limits.base.throughput.get(),
            false => limits.base.iops.get(),
        };
        Some(peak.filter(|_| is_peak).unwrap_or(base))
    };
    let now = limit(Bytes::new(own.size?))?;
    // The limit of a burst may stay the same over several doublings.
    let doubled = (1..=DOUBLINGS).filter_map(|times| own.size?.checked_mul(1 << times));
    let mut sold = doubled.map(|bytes| Bytes::new(bytes).min(family.max_size));
    let larger = sold.find(|size| limit(*size).is_some_and(|limit| limit > now));
    let Some(larger) = larger else {
        let words = format!(
            "{name} has the highest rate of {}: stripe it, or use a family whose rates are bought",
            family.family
        );
        return Some((words, None));
    };
    let action = format!(
        "grow {name} to {}: the limits of {} follow from the size; or use a family whose rates are bought",
        size(larger.get()),
        family.family
    );
    Some((action, Some(Change::Size { name, bytes: larger.get() })))
}
