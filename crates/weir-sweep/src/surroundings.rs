//! The environment and includes of job files, read once.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use weir_workload::Source;

/// Environment and includes as they were when first read, so that all points have the same.
pub(crate) struct Surroundings {
    source: Box<dyn Source + Send + Sync>,
    known: Mutex<BTreeMap<String, Option<String>>>,
}

impl Surroundings {
    /// Makes surroundings of which nothing is read yet.
    pub(crate) fn new(source: Box<dyn Source + Send + Sync>) -> Self {
        Self { source, known: Mutex::default() }
    }

    /// Returns all that was read so far, with its names.
    pub(crate) fn read(&self) -> Vec<(String, Option<String>)> {
        self.known().iter().map(|(key, own)| (key.clone(), own.clone())).collect()
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Option<String>>> {
        // The map is whole at all times.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").finish_non_exhaustive()
    }
}

impl Source for Surroundings {
    fn env(&self, name: &str) -> Option<String> {
        let key = format!("environment {name}");
        self.known().entry(key).or_insert_with(|| self.source.env(name)).clone()
    }

    fn include(&self, from: &str, name: &str) -> io::Result<String> {
        let key = format!("include {from} {name}");
        if let Some(Some(text)) = self.known().get(&key) {
            return Ok(text.clone());
        }
        let text = self.source.include(from, name)?;
        self.known().insert(key, Some(text.clone()));
        Ok(text)
    }
}
