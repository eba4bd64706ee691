//! The difference between two layouts, computed once for all kinds. Items with the same name in
//! both layouts are the same.

use crate::error::ExportError;
use crate::kind::Kind;
use crate::site::{Cloud, DbFile, Disk, Site, Space};
use std::collections::{BTreeMap, BTreeSet};
use weir_catalog::Interface;
use weir_layout::luns::{MOST, lowest};

/// The new layout, and the layout in use if it is known.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) old: Option<Site>,
    pub(crate) new: Site,
    /// LUNs of remote disks, by their names in the layouts.
    luns: BTreeMap<String, u32>,
}

/// The change of a disk, a device or a file.
#[derive(Debug)]
pub(crate) enum Fate<'a, T> {
    /// To be created; without a layout in use, everything is.
    New(&'a T),
    /// In use and unchanged.
    Same(&'a T),
    /// In use and changed: old and new state.
    Changed(&'a T, &'a T),
    /// No longer in the new layout.
    Gone(&'a T),
}

// A derived implementation would require `T: Clone`.
impl<T> Clone for Fate<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Fate<'_, T> {}

impl<'a, T> Fate<'a, T> {
    /// Returns the new state, or the old one if the item goes.
    pub(crate) fn subject(self) -> &'a T {
        match self {
            Self::New(own) | Self::Same(own) | Self::Changed(_, own) | Self::Gone(own) => own,
        }
    }

    /// Returns the new state, unless the item goes.
    pub(crate) fn wanted(self) -> Option<&'a T> {
        match self {
            Self::New(own) | Self::Same(own) | Self::Changed(_, own) => Some(own),
            Self::Gone(_) => None,
        }
    }

    pub(crate) fn is_same(&self) -> bool {
        matches!(self, Self::Same(_))
    }
}

impl Change {
    pub(crate) fn between(old: Option<Site>, new: Site) -> Result<Self, ExportError> {
        let luns = luns(old.as_ref(), &new)?;
        Ok(Self { old, new, luns })
    }

    /// Checks that both layouts belong to one cloud: disks cannot move between clouds.
    pub(crate) fn check_clouds(&self, kind: Kind) -> Result<(), ExportError> {
        let Some(old) = self.old.as_ref().filter(|_| kind.is_cloud()) else { return Ok(()) };
        // Layouts without a cloud are rejected where their script would be written, with a remedy.
        if self.new.cloud.is_none() || self.new.cloud == old.cloud {
            return Ok(());
        }
        let edition = |site: &Site| site.edition.clone().unwrap_or_else(|| "none".to_owned());
        Err(ExportError::Cannot {
            layout: self.new.layout.clone(),
            what: format!("host {:?}", self.new.host),
            kind: kind.name(),
            reason: format!(
                "its edition is {}, and that of {} is {}; disks of one cloud cannot become disks \
                 of another: export without --from, and move the data",
                edition(&self.new),
                old.layout,
                edition(old)
            ),
        })
    }

    /// Rejects another file system on disks in use, because making it would erase them.
    pub(crate) fn check_file_system(&self, kind: Kind) -> Result<(), ExportError> {
        let Some(old) = &self.old else { return Ok(()) };
        match (old.filesystem, self.new.filesystem) {
            (Some(is), Some(wanted)) if is != wanted => Err(ExportError::Cannot {
                layout: self.new.layout.clone(),
                what: format!("host {:?}", self.new.host),
                kind: kind.name(),
                reason: format!(
                    "its filesystem is {}, and that of {} is {}; another file system would erase \
                     the disks in use: use the same one in both layouts, or move the data to new \
                     disks",
                    wanted.name(),
                    old.layout,
                    is.name()
                ),
            }),
            _ => Ok(()),
        }
    }

    /// Checks that LUNs are within Azure's range. AWS has device names of its own, and Google Cloud
    /// finds disks by name.
    pub(crate) fn check_numbers(&self, kind: Kind) -> Result<(), ExportError> {
        let is_used = kind.is_cloud() || kind.finds_disks();
        if !is_used || self.new.cloud != Some(Cloud::Azure) {
            return Ok(());
        }
        // Disks that go stay attached until they are detached by hand.
        let disks = self.disks();
        match disks.iter().map(|fate| fate.subject()).find(|disk| self.lun(disk) >= MOST) {
            None => Ok(()),
            Some(disk) => Err(ExportError::Cannot {
                layout: self.new.layout.clone(),
                what: format!("volume {:?}", disk.own),
                kind: kind.name(),
                reason: format!(
                    "it would be disk {} of {}, but LUNs of an Azure machine go from 0 to {}; use fewer \
                     disks",
                    self.lun(disk),
                    disks.len(),
                    MOST - 1
                ),
            }),
        }
    }

    /// Returns whether the layout in use is known.
    pub(crate) fn is_known(&self) -> bool {
        self.old.is_some()
    }

    /// Returns the remote disks.
    pub(crate) fn disks(&self) -> Vec<Fate<'_, Disk>> {
        let remote = |disks: &'_ [Disk]| -> Vec<usize> {
            (0..disks.len()).filter(|at| !disks[*at].is_local).collect()
        };
        let old = self.old.as_ref().map(|site| &site.disks[..]).unwrap_or_default();
        let old: Vec<&Disk> = remote(old).into_iter().map(|at| &old[at]).collect();
        let new: Vec<&Disk> = self.new.remote().collect();
        fates(&old, &new, |disk| disk.own.clone())
    }

    pub(crate) fn spaces(&self) -> Vec<Fate<'_, Space>> {
        let old: Vec<&Space> =
            self.old.as_ref().map(|site| &site.spaces[..]).unwrap_or_default().iter().collect();
        let new: Vec<&Space> = self.new.spaces.iter().collect();
        fates(&old, &new, |space| space.own.clone())
    }

    /// Returns the files. Files of different databases are different, whatever their names.
    pub(crate) fn files(&self) -> Vec<Fate<'_, DbFile>> {
        let old: Vec<&DbFile> =
            self.old.as_ref().map(|site| &site.files[..]).unwrap_or_default().iter().collect();
        let new: Vec<&DbFile> = self.new.files.iter().collect();
        fates(&old, &new, |file| (file.own.clone(), file.database.clone()))
    }

    /// Returns the LUN of a remote disk.
    pub(crate) fn lun(&self, disk: &Disk) -> u32 {
        self.luns.get(&disk.own).copied().unwrap_or_default()
    }

    /// Returns the old and the new size of the machine, if both are known and differ.
    pub(crate) fn resize(&self) -> Option<(&str, &str)> {
        let old = self.old.as_ref()?.size.as_deref()?;
        let new = self.new.size.as_deref()?;
        (old != new).then_some((old, new))
    }

    /// Returns the old and the new interface of the remote disks, if both are known and differ, and the machine can become
    /// the other one.
    pub(crate) fn interfaces(&self) -> Option<(Interface, Interface)> {
        let old = self.old.as_ref()?.interface()?;
        let new = self.new.interface()?;
        (old != new && self.refusal().is_none()).then_some((old, new))
    }

    /// Returns the reason why the machine cannot become the other one: another architecture, or a temporary disk.
    pub(crate) fn refusal(&self) -> Option<String> {
        let (old, new) = (self.old.as_ref()?.traits.as_ref()?, self.new.traits.as_ref()?);
        old.refusal(new)
    }

    /// Returns the new value of `licence_owned`, if it changes.
    pub(crate) fn licence(&self) -> Option<bool> {
        let new = self.new.licence_owned;
        (self.old.as_ref()?.licence_owned != new).then_some(new)
    }
}

/// Compares items: first the new ones in order, then those that go.
fn fates<'a, T: PartialEq, K: PartialEq>(
    old: &[&'a T],
    new: &[&'a T],
    key: impl Fn(&T) -> K,
) -> Vec<Fate<'a, T>> {
    let wanted = new.iter().map(|own| match old.iter().find(|other| key(other) == key(own)) {
        None => Fate::New(*own),
        Some(other) if other == own => Fate::Same(*own),
        Some(other) => Fate::Changed(*other, *own),
    });
    let gone = old
        .iter()
        .filter(|own: &&&T| !new.iter().any(|other| key(other) == key(own)))
        .map(|own| Fate::Gone(*own));
    wanted.chain(gone).collect()
}

/// Assigns LUNs. Disks in use keep theirs, and so do disks that go, because nothing is detached
/// automatically. New disks have the LUN of their layout, or the lowest free one.
fn luns(old: Option<&Site>, new: &Site) -> Result<BTreeMap<String, u32>, ExportError> {
    let there = old.iter().flat_map(|site| &site.luns);
    let mut luns: BTreeMap<String, u32> =
        there.map(|(own, (lun, _))| (own.clone(), *lun)).collect();
    let cannot = |own: &str, reason: String| ExportError::Cannot {
        layout: new.layout.clone(),
        what: format!("volume {own:?}"),
        kind: "a script",
        reason,
    };
    let from = old.map(|site| site.layout.as_str()).unwrap_or_default();
    for (own, (lun, _)) in new.luns.iter().filter(|(_, (_, is_said))| *is_said) {
        match luns.get(own) {
            Some(present) if present == lun => {}
            Some(present) => {
                let reason = format!(
                    "it has LUN {lun} here and {present} in {from}, and a disk in use is not \
                     reattached; set lun = {present} here, or lun = {lun} in {from} if the machine has \
                     that"
                );
                return Err(cannot(own, reason));
            }
            None => {
                if let Some((other, _)) = luns.iter().find(|(_, taken)| *taken == lun) {
                    let reason = format!(
                        "it would have LUN {lun}, which {other:?} of {from} has; give it a free lun, or \
                         none"
                    );
                    return Err(cannot(own, reason));
                }
                luns.insert(own.clone(), *lun);
            }
        }
    }
    let mut taken: BTreeSet<u32> = luns.values().copied().collect();
    for disk in new.remote() {
        if !luns.contains_key(&disk.own) {
            luns.insert(disk.own.clone(), lowest(&mut taken));
        }
    }
    Ok(luns)
}
