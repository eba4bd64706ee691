//! Files that lose power: operations are done and noted, and a test does a part of them again.
//!
//! ```text
//! write  --> not durable before the file is synced; each 512 bytes of it survive, or not
//! name   --> made, renamed or removed: not durable before the folder is synced; each survives, or not
//! ```

use crate::target::disk::{Disk, DiskFile, System};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use weir_random::Rng;

/// An operation, with files by their numbers.
#[derive(Debug, Clone)]
pub(crate) enum Operation {
    Write(usize, u64, Vec<u8>),
    Length(usize, u64),
    Sync(usize),
    Name(PathBuf, usize),
    Unname(PathBuf),
    SyncFolder,
}

/// A disk that notes what is done on it.
#[derive(Debug, Default)]
pub(crate) struct Noting(Arc<Mutex<Notes>>);

#[derive(Debug, Default)]
struct Notes {
    /// The number of the file of each name.
    names: BTreeMap<PathBuf, usize>,
    files: usize,
    operations: Vec<Operation>,
    /// The bytes that can still be written, if there is a limit.
    room: Option<u64>,
}

/// The names that survived, with their contents.
pub(crate) type Survivors = BTreeMap<PathBuf, Vec<u8>>;

impl Noting {
    /// Makes a disk on which no more than `room` bytes can be written.
    pub(crate) fn with_room(room: u64) -> Self {
        Self(Arc::new(Mutex::new(Notes { room: Some(room), ..Notes::default() })))
    }

    /// Begins with the files that are in a folder already. They are durable.
    pub(crate) fn in_folder(folder: &Path) -> (Self, Survivors) {
        let own = Self::default();
        let mut before = Survivors::new();
        let mut notes = own.0.lock().unwrap();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let number = notes.files;
            notes.files += 1;
            before.insert(path.clone(), fs::read(&path).unwrap());
            notes.names.insert(path, number);
        }
        drop(notes);
        (own, before)
    }

    pub(crate) fn operations(&self) -> Vec<Operation> {
        self.0.lock().unwrap().operations.clone()
    }
}

#[derive(Debug)]
struct NotedFile {
    notes: Arc<Mutex<Notes>>,
    number: usize,
    file: Box<dyn DiskFile>,
}

impl DiskFile for NotedFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut notes = self.notes.lock().unwrap();
        if let Some(room) = &mut notes.room {
            *room = room.checked_sub(bytes.len() as u64).ok_or(io::ErrorKind::StorageFull)?;
        }
        notes.operations.push(Operation::Write(self.number, offset, bytes.to_vec()));
        self.file.write_at(offset, bytes)
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_at(offset, bytes)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.notes.lock().unwrap().operations.push(Operation::Length(self.number, length));
        self.file.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.notes.lock().unwrap().operations.push(Operation::Sync(self.number));
        Ok(())
    }
}

impl Notes {
    fn name(&mut self, path: &Path, number: usize) {
        self.names.insert(path.to_owned(), number);
        self.operations.push(Operation::Name(path.to_owned(), number));
    }

    fn unname(&mut self, path: &Path) -> usize {
        self.operations.push(Operation::Unname(path.to_owned()));
        self.names.remove(path).unwrap()
    }
}

impl Disk for Noting {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = System.create_new(path)?;
        let mut notes = self.0.lock().unwrap();
        let number = notes.files;
        notes.files += 1;
        notes.name(path, number);
        Ok(Box::new(NotedFile { notes: Arc::clone(&self.0), number, file }))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        System.link(from, to)?;
        let mut notes = self.0.lock().unwrap();
        let number = notes.names[from];
        notes.name(to, number);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        System.rename(from, to)?;
        let mut notes = self.0.lock().unwrap();
        let number = notes.unname(from);
        notes.name(to, number);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        System.remove(path)?;
        self.0.lock().unwrap().unname(path);
        Ok(())
    }

    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        self.0.lock().unwrap().operations.push(Operation::SyncFolder);
        Ok(())
    }
}

#[derive(Default, Clone)]
struct File {
    durable: Vec<u8>,
    /// A length that is not durable.
    length: Option<u64>,
    unsynced: Vec<(u64, Vec<u8>)>,
}

impl File {
    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let start = usize::try_from(offset).unwrap();
        let end = start + bytes.len();
        if self.durable.len() < end {
            self.durable.resize(end, 0);
        }
        self.durable[start..end].copy_from_slice(bytes);
    }

    fn grow(&mut self) {
        let length = self.length.take().map_or(0, |length| usize::try_from(length).unwrap());
        let length = length.max(self.durable.len());
        self.durable.resize(length, 0);
    }

    fn survive(mut self, coin: &mut Rng) -> Vec<u8> {
        if coin.flip() {
            self.grow();
        }
        for (offset, bytes) in std::mem::take(&mut self.unsynced) {
            for (at, sector) in (0_u64..).zip(bytes.chunks(512)) {
                if coin.flip() {
                    self.write(offset + at * 512, sector);
                }
            }
        }
        self.durable
    }
}

/// Returns what survives a power loss after these operations.
pub(crate) fn lose(before: &Survivors, operations: &[Operation], seed: u64) -> Survivors {
    let mut coin = Rng::new(&[seed]);
    let mut files: BTreeMap<usize, File> = BTreeMap::new();
    let mut names: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for (number, (path, bytes)) in before.iter().enumerate() {
        // Numbers were given in the order of a listing; names say which is which.
        names.insert(path.clone(), usize::MAX - number);
        files.insert(usize::MAX - number, File { durable: bytes.clone(), ..File::default() });
    }
    let mut pending: Vec<(PathBuf, Option<usize>)> = Vec::new();
    for operation in operations {
        match operation {
            Operation::Write(number, offset, bytes) => {
                files.entry(*number).or_default().unsynced.push((*offset, bytes.clone()));
            }
            Operation::Length(number, length) => {
                files.entry(*number).or_default().length = Some(*length);
            }
            Operation::Sync(number) => {
                let file = files.entry(*number).or_default();
                file.grow();
                for (offset, bytes) in std::mem::take(&mut file.unsynced) {
                    file.write(offset, &bytes);
                }
            }
            Operation::Name(path, number) => pending.push((path.clone(), Some(*number))),
            Operation::Unname(path) => pending.push((path.clone(), None)),
            Operation::SyncFolder => set(&mut names, pending.drain(..)),
        }
    }
    let survived: Vec<_> = pending.into_iter().filter(|_| coin.flip()).collect();
    set(&mut names, survived.into_iter());
    let contents = |(path, number): (PathBuf, usize)| {
        let file = files.get(&number).cloned().unwrap_or_default();
        (path, file)
    };
    let all: Vec<_> = names.into_iter().map(contents).collect();
    all.into_iter().map(|(path, file)| (path, file.survive(&mut coin))).collect()
}

fn set(
    names: &mut BTreeMap<PathBuf, usize>,
    changes: impl Iterator<Item = (PathBuf, Option<usize>)>,
) {
    for (path, number) in changes {
        match number {
            Some(number) => names.insert(path, number),
            None => names.remove(&path),
        };
    }
}
