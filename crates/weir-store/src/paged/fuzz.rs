//! Maps of layers from arbitrary bytes.

use super::log::{self, MapLog, Medium, Part};
use super::map::Run;
use crate::{Result, StoreError};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// A medium in memory, with the map and the log.
#[derive(Debug, Clone, Default)]
struct Memory(Arc<Mutex<[Vec<u8>; 2]>>);

impl Memory {
    fn with<T>(&self, act: impl FnOnce(&mut [Vec<u8>; 2]) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn place(part: Part) -> usize {
    usize::from(part == Part::Log)
}

impl Medium for Memory {
    fn path(&self, part: Part) -> PathBuf {
        PathBuf::from(["map", "log"][place(part)])
    }

    fn read(&self, part: Part) -> Result<Vec<u8>> {
        Ok(self.with(|files| files[place(part)].clone()))
    }

    fn replace(&mut self, part: Part, content: &[u8]) -> Result<()> {
        self.with(|files| files[place(part)] = content.to_vec());
        Ok(())
    }

    fn append(&mut self, at: u64, frame: &[u8]) -> Result<()> {
        self.with(|files| {
            let log = &mut files[place(Part::Log)];
            log.resize(crate::pieces::index(at), 0);
            log.extend(frame);
        });
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        Ok(())
    }

    fn rest(&mut self) {}
}

/// Reads `map` and `log` as those of a layer, with the right checksums if `is_repaired`. A layer that is read
/// takes a further change, and has all runs when it is read again.
pub(crate) fn map_bytes(map: &[u8], log: &[u8], is_repaired: bool) {
    let mut files = [map.to_vec(), log.to_vec()];
    if is_repaired {
        files.iter_mut().for_each(|file| log::repair(file));
    }
    let medium = Memory(Arc::new(Mutex::new(files)));
    let (mut opened, mut runs) = match open(&medium) {
        Ok(found) => found,
        Err(error) => return assert!(!error.to_string().trim().is_empty(), "{error:?}"),
    };
    let more = Run { pages: 5..9, mark: 1 };
    let written = match opened.needs_whole() {
        true => opened.write_whole(&[&runs[..], std::slice::from_ref(&more)].concat()),
        false => opened.write_changes(std::slice::from_ref(&more)),
    };
    if let Err(error) = written {
        return assert!(error.to_string().contains("an impossible generation"), "{error}");
    }
    runs.push(more);
    let (_, again) = open(&medium).expect("a map that was just written");
    assert!(again == runs, "{again:?} was read, {runs:?} was written");
}

fn open(medium: &Memory) -> std::result::Result<(MapLog, Vec<Run>), StoreError> {
    MapLog::open(Box::new(medium.clone()))
}

/// Returns a map and its log as a seed.
pub(crate) fn seed() -> [Vec<u8>; 2] {
    let medium = Memory::default();
    let mut log = MapLog::create(Box::new(medium.clone())).expect("a medium in memory");
    log.write_whole(&[Run { pages: 0..8, mark: 1 }, Run { pages: 100..4_200, mark: 2 }])
        .and_then(|()| log.write_changes(&[Run { pages: 4..5, mark: 2 }]))
        .and_then(|()| log.write_changes(&[Run { pages: 4_096..8_192, mark: 0 }]))
        .expect("a medium in memory");
    medium.with(|files| files.clone())
}
