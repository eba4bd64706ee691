//! Fixes for disks without tiers: rates that are bought, or that follow from the size.

use crate::case::{Case, amount, size};
use crate::change::Change;
use crate::system::Disk;
use weir_catalog::{Provisioned, SizedFamily};
use weir_report::number::{float, whole};
use weir_units::{Bytes, BytesPerSec, Iops};

/// Returns the fix for a disk whose rates are bought or follow from its size: about twice the limit, as far as it is
/// sold. `None` for other disks.
pub(super) fn more_of(
    case: &Case<'_>,
    disk: usize,
    needs_bytes: bool,
) -> Option<(String, Option<Change>)> {
    let own = &case.system.disks[disk];
    let (edition, family) = (case.edition?, own.family.as_deref()?);
    let stripe = own.stripe.map(|stripe| case.system.stripes[stripe].name.clone());
    let name = stripe.unwrap_or_else(|| own.name.clone());
    if let Ok(family) = edition.provisioned(family) {
        return bought(own, family, (name, needs_bytes));
    }
    let (family, is_alone) = (edition.sized(family)?, own.stripe.is_none());
    grown(own, family, (name, needs_bytes)).filter(|_| is_alone)
}

fn bought(
    own: &Disk,
    family: &Provisioned,
    (name, needs_bytes): (String, bool),
) -> Option<(String, Option<Change>)> {
    let now = (whole(own.limits.iops?.rate), whole(own.limits.bytes?.rate));
    let most = family.max_iops(Bytes::new(own.size?));
    let step = family.throughput_step.map_or(1_000_000, BytesPerSec::get).max(1);
    let (iops, throughput) = match needs_bytes {
        true => {
            let bytes = now.1.saturating_mul(2).next_multiple_of(step);
            let each = family.throughput_per_iops.map_or(u64::MAX, BytesPerSec::get).max(1);
            let iops = Iops::new(bytes.div_ceil(each).max(now.0))?.min(most);
            (iops, bytes.min(family.max_throughput(iops).get()))
        }
        false => {
            let iops = Iops::new(now.0.saturating_mul(2))?.min(most);
            (iops, now.1.max(family.min_throughput(iops).get()))
        }
    };
    let is_more = if needs_bytes { throughput > now.1 } else { iops.get() > now.0 };
    if !is_more {
        let words =
            format!("{name} has the highest rate of {} for its size: stripe it", family.family);
        return Some((words, None));
    }
    let follows = family.throughput_follows;
    let throughput = (!follows).then_some(throughput);
    let words = throughput.map(|own| format!(" and {}", amount(true, float(own))));
    let each = if own.stripe.is_some() { "each disk of " } else { "" };
    let action = format!(
        "buy {}{} for {each}{name}, or stripe it over more disks",
        amount(false, float(iops.get())),
        words.unwrap_or_default()
    );
    Some((action, Some(Change::Bought { name, iops: iops.get(), throughput })))
}

fn grown(
    own: &Disk,
    family: &SizedFamily,
    (name, needs_bytes): (String, bool),
) -> Option<(String, Option<Change>)> {
    let now = Bytes::new(own.size?);
    let larger = Bytes::new(now.get().saturating_mul(2)).min(family.max_size);
    let limits = |size: Bytes| {
        let limits = family.limits(size).ok()?.base;
        Some(if needs_bytes { limits.throughput.get() } else { limits.iops.get() })
    };
    if limits(larger)? <= limits(now)? {
        let words = format!("{name} has the highest rate of {}: stripe it", family.family);
        return Some((words, None));
    }
    let action = format!(
        "grow {name} to {}: the limits of {} follow from the size; or use a family whose rates are bought",
        size(larger.get()),
        family.family
    );
    Some((action, Some(Change::Size { name, bytes: larger.get() })))
}
