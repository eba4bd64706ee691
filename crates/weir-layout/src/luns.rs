//! Numbers of disks at their machine (LUN).
//!
//! They change no limit. A layout records them so that its scripts do not attach a disk elsewhere.

use crate::error::Wrong;
use crate::file::{AlikeKeys, PlaceKey, VolumeKeys};
use std::collections::BTreeSet;

/// Number of LUNs: they go from 0 to one less.
pub const MOST: u32 = 64;

/// Takes and returns the lowest free number.
pub fn lowest(taken: &mut BTreeSet<u32>) -> u32 {
    let lun = (0..).find(|lun| !taken.contains(lun)).unwrap_or_default();
    taken.insert(lun);
    lun
}

/// Checks and returns the number in a volume's keys.
pub(crate) fn check(keys: &VolumeKeys) -> Result<Option<u32>, Wrong> {
    let Some(given) = keys.lun else { return Ok(None) };
    if keys.place == Some(PlaceKey::Local) {
        let reason = format!(
            "lun = {given} is for an attached disk, but the machine's local disk has no LUN; leave \
             lun out"
        );
        return Err(("lun", reason));
    }
    match u32::try_from(given).ok().filter(|lun| *lun < MOST) {
        Some(lun) => Ok(Some(lun)),
        None => Err(("lun", format!("lun = {given} is not a valid LUN; use 0 to {}", MOST - 1))),
    }
}

/// Returns the keys of each column of a stripe, with its number.
pub(crate) fn columns(alike: &AlikeKeys) -> Result<Vec<VolumeKeys>, Wrong> {
    if let Some(lun) = alike.each.lun {
        let reason = format!(
            "lun = {lun} would be the LUN of all {} columns; write luns = [..] with one for each",
            alike.count
        );
        return Err(("volumes.lun", reason));
    }
    let each = |lun| VolumeKeys { lun, ..alike.each.clone() };
    match &alike.luns {
        None => Ok((0..alike.count).map(|_| each(None)).collect()),
        Some(luns) if luns.len() != alike.count as usize => Err((
            "volumes.luns",
            format!(
                "luns = {luns:?} does not have one LUN for each of {} columns; give as many, or \
                 leave it out",
                alike.count
            ),
        )),
        Some(luns) => Ok(luns.iter().map(|lun| each(Some(*lun))).collect()),
    }
}
