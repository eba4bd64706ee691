//! The volumes of a data directory that are in use.

use crate::sync::locked;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

/// The volumes in use, each with the number of its opening.
#[derive(Debug)]
pub(crate) struct Registry<V> {
    pub(crate) volumes: BTreeMap<String, (u64, Weak<V>)>,
    pub(crate) last: u64,
}

impl<V> Default for Registry<V> {
    fn default() -> Self {
        Self { volumes: BTreeMap::new(), last: 0 }
    }
}

/// The right of a volume to its folder, until another opens it or it is removed.
#[derive(Debug)]
pub(crate) struct Registration<V> {
    registry: Arc<Mutex<Registry<V>>>,
    name: String,
    number: u64,
}

impl<V> Registration<V> {
    /// Returns the right of the volume that is opened as `number`.
    pub(crate) fn new(registry: Arc<Mutex<Registry<V>>>, name: &str, number: u64) -> Self {
        Self { registry, name: name.to_owned(), number }
    }

    /// Calls `act` if the folder is still this volume's. No other gets it meanwhile.
    pub(crate) fn while_own<T>(&self, act: impl FnOnce() -> T) -> Option<T> {
        let registry = locked(&self.registry);
        let is_own = registry.volumes.get(&self.name).is_some_and(|(own, _)| *own == self.number);
        is_own.then(act)
    }
}
