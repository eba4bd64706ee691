//! What there is: accounts, containers, blobs and their snapshots, in memory and in order.
//!
//! Nothing here waits. Whoever changes something puts the change into the journal before
//! its client is answered.

use crate::auth::sas::Policies;
use crate::fault::{Code, Result};
use crate::journal::Change;
use crate::record::{Blob, Block, Container, Key, Piece};
use crate::service::properties::Properties;
use crate::time::Moment;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

/// Where a blob stands in its container: snapshots come before what they are of.
pub type Place = (String, Moment);

/// The place of a blob itself.
#[must_use]
pub fn base(name: &str) -> Place {
    (name.to_owned(), Moment::FAR)
}

/// A container and what is in it.
#[derive(Debug)]
pub struct Held {
    /// What is remembered of it.
    pub record: Container,
    /// Its blobs and their snapshots.
    pub blobs: BTreeMap<Place, Rc<Blob>>,
    /// Blocks that are in no blob yet, by blob, in the order in which they came.
    pub uncommitted: BTreeMap<String, Vec<Block>>,
}

/// All there is.
#[derive(Debug, Default)]
pub struct State {
    /// By account, by name.
    containers: BTreeMap<String, BTreeMap<String, Held>>,
    properties: BTreeMap<String, Properties>,
    /// What signatures may refer to.
    pub policies: Policies,
    /// The last ETag that was given.
    last: Moment,
    /// The service that wrote the journal ended without a word.
    pub crashed: bool,
}

/// A blob by its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Names<'a> {
    /// The account.
    pub account: &'a str,
    /// The container.
    pub container: &'a str,
    /// The blob.
    pub blob: &'a str,
}

impl Names<'_> {
    /// What it, or a snapshot of it, is remembered under.
    #[must_use]
    pub fn key(&self, snapshot: Option<Moment>) -> Key {
        let [account, container, blob] = self.owned();
        Key::Blob(account, container, blob, snapshot)
    }

    /// The three.
    #[must_use]
    pub fn owned(&self) -> [String; 3] {
        [self.account, self.container, self.blob].map(str::to_owned)
    }
}

impl State {
    /// What the journal remembers.
    ///
    /// # Errors
    ///
    /// The record that cannot be read, and why.
    pub fn load(records: Vec<(Key, Value)>) -> std::result::Result<Self, String> {
        let mut state = Self::default();
        // Containers come before what is in them.
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

    /// A moment that no other change has, from `now` on.
    pub fn next(&mut self, now: Moment) -> Moment {
        self.last = self.last.next(now);
        self.last
    }

    /// The properties of an account's service.
    #[must_use]
    pub fn properties(&self, account: &str) -> Properties {
        self.properties.get(account).cloned().unwrap_or_default()
    }

    /// Changes them.
    pub fn set_properties(&mut self, account: &str, properties: Properties) {
        self.properties.insert(account.to_owned(), properties);
    }

    /// The containers of an account, in order.
    pub fn containers(&self, account: &str) -> impl Iterator<Item = (&str, &Held)> {
        let own = self.containers.get(account).into_iter().flatten();
        own.map(|(name, held)| (&**name, held))
    }

    /// A container.
    ///
    /// # Errors
    ///
    /// [`Code::ContainerNotFound`].
    pub fn container(&self, account: &str, name: &str) -> Result<&Held> {
        let held = self.containers.get(account).and_then(|own| own.get(name));
        held.ok_or_else(|| Code::ContainerNotFound.into())
    }

    /// A container, to change it.
    ///
    /// # Errors
    ///
    /// [`Code::ContainerNotFound`].
    pub fn container_mut(&mut self, account: &str, name: &str) -> Result<&mut Held> {
        let held = self.containers.get_mut(account).and_then(|own| own.get_mut(name));
        held.ok_or_else(|| Code::ContainerNotFound.into())
    }

    /// Puts a container's record in place.
    pub fn put_container(&mut self, account: &str, name: &str, record: Container) {
        let key = (account.to_owned(), name.to_owned());
        self.last = self.last.max(Moment(record.etag.0));
        self.policies.insert(key, record.policies.clone());
        let own = self.containers.entry(account.to_owned()).or_default();
        match own.get_mut(name) {
            Some(held) => held.record = record,
            None => {
                let (blobs, uncommitted) = (BTreeMap::new(), BTreeMap::new());
                own.insert(name.to_owned(), Held { record, blobs, uncommitted });
            }
        }
    }

    /// Takes a container out, with all that is in it: what is to be forgotten with it.
    pub fn take_container(&mut self, account: &str, name: &str) -> Option<(Held, Vec<Change>)> {
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
            changes.extend(blocks.iter().map(|block| {
                let [account, container, blob] = Names { account, container: name, blob }.owned();
                Change::remove(Key::Uncommitted(account, container, blob, block.id.clone()))
            }));
        }
        Some((held, changes))
    }

    /// A blob, or a snapshot of it.
    ///
    /// # Errors
    ///
    /// [`Code::ContainerNotFound`], [`Code::BlobNotFound`].
    pub fn blob(&self, names: Names<'_>, snapshot: Option<Moment>) -> Result<&Rc<Blob>> {
        let held = self.container(names.account, names.container)?;
        let place = (names.blob.to_owned(), snapshot.unwrap_or(Moment::FAR));
        held.blobs.get(&place).ok_or_else(|| Code::BlobNotFound.into())
    }

    /// A blob, to change it.
    ///
    /// # Errors
    ///
    /// [`Code::ContainerNotFound`], [`Code::BlobNotFound`].
    pub fn blob_mut(&mut self, names: Names<'_>, snapshot: Option<Moment>) -> Result<&mut Blob> {
        let held = self.container_mut(names.account, names.container)?;
        let place = (names.blob.to_owned(), snapshot.unwrap_or(Moment::FAR));
        let blob = held.blobs.get_mut(&place).map(Rc::make_mut);
        blob.ok_or_else(|| Code::BlobNotFound.into())
    }

    /// The snapshots of a blob, oldest first.
    ///
    /// # Errors
    ///
    /// [`Code::ContainerNotFound`].
    pub fn snapshots(&self, names: Names<'_>) -> Result<Vec<Moment>> {
        let held = self.container(names.account, names.container)?;
        let range = (names.blob.to_owned(), Moment(0))..base(names.blob);
        Ok(held.blobs.range(range).map(|((_, at), _)| *at).collect())
    }

    /// The volumes that records are in.
    #[must_use]
    pub fn volumes(&self) -> HashSet<String> {
        let blobs = self.held().flat_map(|held| held.blobs.values());
        blobs.filter_map(|blob| Some(blob.page()?.volume.clone())).collect()
    }

    /// Whether a record, of a blob or a snapshot, is in that volume.
    #[must_use]
    pub fn names_volume(&self, volume: &str) -> bool {
        let blobs = self.held().flat_map(|held| held.blobs.values());
        blobs.filter_map(|blob| blob.page()).any(|page| page.volume == volume)
    }

    /// Whether a blob, and not only snapshots of one, is in that volume.
    #[must_use]
    pub fn has_blob_in(&self, volume: &str) -> bool {
        let blobs = self.held().flat_map(|held| &held.blobs);
        let mut base = blobs.filter(|((_, at), _)| *at == Moment::FAR);
        base.any(|(_, blob)| blob.page().is_some_and(|page| page.volume == volume))
    }

    /// All blobs and snapshots, to change them.
    pub fn all_mut(&mut self) -> impl Iterator<Item = (Names<'_>, Option<Moment>, &mut Blob)> {
        self.containers.iter_mut().flat_map(|(account, own)| {
            own.iter_mut().flat_map(move |(container, held)| {
                held.blobs.iter_mut().map(move |((name, at), blob)| {
                    let snapshot = Some(*at).filter(|at| *at != Moment::FAR);
                    (Names { account, container, blob: name }, snapshot, Rc::make_mut(blob))
                })
            })
        })
    }

    fn held(&self) -> impl Iterator<Item = &Held> {
        self.containers.values().flat_map(BTreeMap::values)
    }

    /// The pieces that records name, as often as they do.
    pub fn pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        self.held().flat_map(|held| {
            let blobs = held.blobs.values().flat_map(|blob| blob.pieces());
            let loose = held.uncommitted.values().flatten().map(|block| block.piece);
            blobs.chain(loose)
        })
    }
}
