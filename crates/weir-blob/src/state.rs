//! The accounts, containers, blobs and snapshots, in memory and in order.
//!
//! No function here waits. Each change is committed to the journal before the response.

mod backslashes;

use crate::auth::sas::Policies;
use crate::fault::{Code, Result};
use crate::journal::Change;
use crate::record::{Blob, Block, Container, Key, Piece};
use crate::service::properties::Properties;
use crate::time::Moment;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;
use std::rc::Rc;

/// The sort key of a blob in its container. Snapshots sort before their blob.
pub type Place = (String, Moment);

/// Returns the sort key of a blob that is not a snapshot.
#[must_use]
pub fn base(name: &str) -> Place {
    (name.to_owned(), Moment::FAR)
}

/// A container with its contents.
#[derive(Debug)]
pub struct ContainerEntry {
    /// The container's record.
    pub record: Container,
    /// Blobs and snapshots.
    pub blobs: BTreeMap<Place, Rc<Blob>>,
    /// Uncommitted blocks by blob, in order of arrival.
    pub uncommitted: BTreeMap<String, Vec<Block>>,
}

/// The state of all accounts.
#[derive(Debug, Default)]
pub struct State {
    /// By account and name.
    containers: BTreeMap<String, BTreeMap<String, ContainerEntry>>,
    properties: BTreeMap<String, Properties>,
    /// The access policies that signatures can refer to.
    pub policies: Policies,
    /// The last ETag.
    last: Moment,
    /// The journal was not closed by the previous run.
    pub crashed: bool,
}

/// The full name of a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Names<'a> {
    /// Account name.
    pub account: &'a str,
    /// Container name.
    pub container: &'a str,
    /// Blob name.
    pub blob: &'a str,
}

impl Names<'_> {
    /// Returns the journal key of the blob or a snapshot of it.
    #[must_use]
    pub fn key(&self, snapshot: Option<Moment>) -> Key {
        let [account, container, blob] = self.owned();
        Key::Blob(account, container, blob, snapshot)
    }

    /// Returns the journal key of an uncommitted block of the blob.
    #[must_use]
    pub(crate) fn block_key(&self, id: &str) -> Key {
        let [account, container, blob] = self.owned();
        Key::Uncommitted(account, container, blob, id.to_owned())
    }

    /// Returns account, container and blob.
    #[must_use]
    pub fn owned(&self) -> [String; 3] {
        [self.account, self.container, self.blob].map(str::to_owned)
    }
}

impl State {
    /// Builds the state from the journal's records.
    ///
    /// # Errors
    ///
    /// A message that names the invalid record and the reason.
    pub fn load(records: Vec<(Key, Value)>) -> std::result::Result<Self, String> {
        let mut state = Self::default();
        // Containers first, because the others refer to them.
        let (containers, others): (Vec<_>, Vec<_>) =
            records.into_iter().partition(|(key, _)| matches!(key, Key::Container(..)));
        for (key, value) in containers.into_iter().chain(others) {
            let wrong = |error: serde_json::Error| format!("record {:?}: {error}", key.encode());
            match &key {
                Key::Running => state.crashed = true,
                Key::Service(account) => {
                    let properties = serde_json::from_value(value).map_err(wrong)?;
                    state.properties.insert(account.clone(), properties);
                }
                Key::Container(account, name) => {
                    let record = serde_json::from_value(value).map_err(wrong)?;
                    state.put_container(account, name, record);
                }
                Key::Blob(account, container, name, snapshot) => {
                    let blob: Blob = serde_json::from_value(value).map_err(wrong)?;
                    let place = (name.clone(), snapshot.unwrap_or(Moment::FAR));
                    state.last = state.last.max(Moment(blob.etag.0));
                    if let Ok(held) = state.container_mut(account, container) {
                        held.blobs.insert(place, Rc::new(blob));
                    }
                }
                Key::Uncommitted(account, container, name, _) => {
                    let block = serde_json::from_value(value).map_err(wrong)?;
                    if let Ok(held) = state.container_mut(account, container) {
                        held.uncommitted.entry(name.clone()).or_default().push(block);
                    }
                }
            }
        }
        Ok(state)
    }

    /// Returns a unique time, not before `now`.
    pub fn next(&mut self, now: Moment) -> Moment {
        self.last = self.last.next(now);
        self.last
    }

    /// Returns the properties of an account's service.
    #[must_use]
    pub fn properties(&self, account: &str) -> Properties {
        self.properties.get(account).cloned().unwrap_or_default()
    }

    /// Sets the properties of an account's service.
    pub(crate) fn set_properties(&mut self, account: &str, properties: Properties) {
        self.properties.insert(account.to_owned(), properties);
    }

    /// Iterates over the containers of an account in order.
    pub fn containers(&self, account: &str) -> impl Iterator<Item = (&str, &ContainerEntry)> {
        let own = self.containers.get(account).into_iter().flatten();
        own.map(|(name, held)| (&**name, held))
    }

    /// Iterates over the containers of an account in order, from a name.
    pub(crate) fn containers_from(
        &self,
        account: &str,
        first: &str,
    ) -> impl Iterator<Item = (&str, &ContainerEntry)> {
        let from = (Bound::Included(first), Bound::Unbounded);
        let own = self.containers.get(account).into_iter();
        own.flat_map(move |own| own.range::<str, _>(from)).map(|(name, held)| (&**name, held))
    }

    /// Returns a container.
    ///
    /// # Errors
    ///
    /// [`Code::ContainerNotFound`].
    pub fn container(&self, account: &str, name: &str) -> Result<&ContainerEntry> {
        let held = self.containers.get(account).and_then(|own| own.get(name));
        held.ok_or_else(|| Code::ContainerNotFound.into())
    }

    /// Returns a container for modification.
    ///
    /// # Errors
    ///
    /// [`Code::ContainerNotFound`].
    pub(crate) fn container_mut(
        &mut self,
        account: &str,
        name: &str,
    ) -> Result<&mut ContainerEntry> {
        let held = self.containers.get_mut(account).and_then(|own| own.get_mut(name));
        held.ok_or_else(|| Code::ContainerNotFound.into())
    }

    /// Adds a container or replaces its record.
    pub(crate) fn put_container(&mut self, account: &str, name: &str, record: Container) {
        let key = (account.to_owned(), name.to_owned());
        self.last = self.last.max(Moment(record.etag.0));
        self.policies.insert(key, record.policies.clone());
        let own = self.containers.entry(account.to_owned()).or_default();
        match own.get_mut(name) {
            Some(held) => held.record = record,
            None => {
                let (blobs, uncommitted) = (BTreeMap::new(), BTreeMap::new());
                own.insert(name.to_owned(), ContainerEntry { record, blobs, uncommitted });
            }
        }
    }

    /// Removes a container. Returns it with the removals for the journal.
    pub(crate) fn take_container(
        &mut self,
        account: &str,
        name: &str,
    ) -> Option<(ContainerEntry, Vec<Change>)> {
        let key = (account.to_owned(), name.to_owned());
        self.policies.remove(&key);
        let held = self.containers.get_mut(account)?.remove(name)?;
        let mut changes = vec![Change::remove(Key::Container(account.into(), name.into()))];
        for (blob, at) in held.blobs.keys() {
            let names = Names { account, container: name, blob };
            let snapshot = Some(*at).filter(|at| *at != Moment::FAR);
            changes.push(Change::remove(names.key(snapshot)));
        }
        for (blob, blocks) in &held.uncommitted {
            let names = Names { account, container: name, blob };
            changes.extend(blocks.iter().map(|block| Change::remove(names.block_key(&block.id))));
        }
        Some((held, changes))
    }

    /// Returns a blob or a snapshot.
    ///
    /// # Errors
    ///
    /// [`Code::ContainerNotFound`], [`Code::BlobNotFound`].
    pub fn blob(&self, names: Names<'_>, snapshot: Option<Moment>) -> Result<&Rc<Blob>> {
        let held = self.container(names.account, names.container)?;
        let place = (names.blob.to_owned(), snapshot.unwrap_or(Moment::FAR));
        held.blobs.get(&place).ok_or_else(|| Code::BlobNotFound.into())
    }

    /// Returns a blob for modification.
    ///
    /// # Errors
    ///
    /// [`Code::ContainerNotFound`], [`Code::BlobNotFound`].
    pub(crate) fn blob_mut(
        &mut self,
        names: Names<'_>,
        snapshot: Option<Moment>,
    ) -> Result<&mut Blob> {
        let held = self.container_mut(names.account, names.container)?;
        let place = (names.blob.to_owned(), snapshot.unwrap_or(Moment::FAR));
        let blob = held.blobs.get_mut(&place).map(Rc::make_mut);
        blob.ok_or_else(|| Code::BlobNotFound.into())
    }

    /// Returns the snapshots of a blob, oldest first.
    ///
    /// # Errors
    ///
    /// [`Code::ContainerNotFound`].
    pub fn snapshots(&self, names: Names<'_>) -> Result<Vec<Moment>> {
        let held = self.container(names.account, names.container)?;
        let range = (names.blob.to_owned(), Moment(0))..base(names.blob);
        Ok(held.blobs.range(range).map(|((_, at), _)| *at).collect())
    }

    /// Returns the volumes that records refer to.
    #[must_use]
    pub fn volumes(&self) -> HashSet<String> {
        let blobs = self.entries().flat_map(|held| held.blobs.values());
        blobs.filter_map(|blob| Some(blob.page()?.volume.clone())).collect()
    }

    /// Returns whether a blob or snapshot is in the volume.
    #[must_use]
    pub(crate) fn names_volume(&self, volume: &str) -> bool {
        let blobs = self.entries().flat_map(|held| held.blobs.values());
        blobs.filter_map(|blob| blob.page()).any(|page| page.volume == volume)
    }

    /// Returns whether a blob that is not a snapshot is in the volume.
    #[must_use]
    pub(crate) fn has_blob_in(&self, volume: &str) -> bool {
        let blobs = self.entries().flat_map(|held| &held.blobs);
        let mut base = blobs.filter(|((_, at), _)| *at == Moment::FAR);
        base.any(|(_, blob)| blob.page().is_some_and(|page| page.volume == volume))
    }

    /// Iterates over all blobs and snapshots for modification.
    pub(crate) fn all_mut(
        &mut self,
    ) -> impl Iterator<Item = (Names<'_>, Option<Moment>, &mut Blob)> {
        self.containers.iter_mut().flat_map(|(account, own)| {
            own.iter_mut().flat_map(move |(container, held)| {
                held.blobs.iter_mut().map(move |((name, at), blob)| {
                    let snapshot = Some(*at).filter(|at| *at != Moment::FAR);
                    (Names { account, container, blob: name }, snapshot, Rc::make_mut(blob))
                })
            })
        })
    }

    fn entries(&self) -> impl Iterator<Item = &ContainerEntry> {
        self.containers.values().flat_map(BTreeMap::values)
    }

    /// Iterates over the pieces in all records; shared pieces are repeated.
    pub fn pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        self.entries().flat_map(|held| {
            let blobs = held.blobs.values().flat_map(|blob| blob.pieces());
            let loose = held.uncommitted.values().flatten().map(|block| block.piece);
            blobs.chain(loose)
        })
    }
}
