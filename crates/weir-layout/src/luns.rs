//! The numbers of disks at their machine (LUN): those that a layout says, and those of the others.
//!
//! They change no limit. A layout records them so that a script that is made of it attaches a disk
//! where it is attached already.

use crate::file::{AlikeKeys, PlaceKey, VolumeKeys};
use crate::resolve::Host;
use crate::volume::{Volume, Wrong};
use std::collections::BTreeSet;
use weir_core::Place;

/// The most disks that the numbers are for: they go from 0 to one less.
pub const MOST: u32 = 64;

impl Host {
    /// The number of each volume that is remote, in the order of the volumes: the one that the
    /// layout says, or the lowest that is free.
    #[must_use]
    pub fn luns(&self) -> Vec<Option<u32>> {
        let mut taken: BTreeSet<u32> = self.volumes.iter().filter_map(|own| own.lun).collect();
        let mut number = |volume: &Volume| match volume.lun {
            _ if volume.spec.place == Place::Local || volume.is_gone() => None,
            Some(lun) => Some(lun),
            None => Some(lowest(&mut taken)),
        };
        self.volumes.iter().map(&mut number).collect()
    }
}

/// The lowest number that is free, which is taken then.
pub fn lowest(taken: &mut BTreeSet<u32>) -> u32 {
    let lun = (0..).find(|lun| !taken.contains(lun)).unwrap_or_default();
    taken.insert(lun);
    lun
}

/// The number that a volume's keys say.
pub(crate) fn check(keys: &VolumeKeys) -> Result<Option<u32>, Wrong> {
    let Some(given) = keys.lun else { return Ok(None) };
    if keys.place == Some(PlaceKey::Local) {
        let reason = format!(
            "lun = {given} is for a disk that is attached, and the machine's own has no number; \
             leave lun out"
        );
        return Err(("lun", reason));
    }
    match u32::try_from(given).ok().filter(|lun| *lun < MOST) {
        Some(lun) => Ok(Some(lun)),
        None => Err((
            "lun",
            format!("lun = {given} is no number of a disk; they go from 0 to {}", MOST - 1),
        )),
    }
}

/// The keys of each column of a stripe, with its number.
pub(crate) fn columns(alike: &AlikeKeys) -> Result<Vec<VolumeKeys>, Wrong> {
    if let Some(lun) = alike.each.lun {
        let reason = format!(
            "lun = {lun} would be the number of all {} columns; write luns = [..], with one for each",
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
                "luns = {luns:?} is not one number for each of {} columns; write as many, or leave it \
                 out",
                alike.count
            ),
        )),
        Some(luns) => Ok(luns.iter().map(|lun| each(Some(*lun))).collect()),
    }
}

/// Whether the number of a volume is still free on its host.
pub(crate) fn check_free(host: &Host, volume: &Volume) -> Result<(), Wrong> {
    let Some(lun) = volume.lun else { return Ok(()) };
    match host.volumes.iter().find(|other| other.lun == Some(lun)) {
        Some(other) => Err((
            "lun",
            format!("lun = {lun} is the number of {:?} already; give it another", other.name),
        )),
        None => Ok(()),
    }
}
