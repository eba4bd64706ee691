//! The limits of a running server, for the files of a mount.
//!
//! A volume or a stripe is a directory whose files share its device. On a managed instance a
//! database is a directory, and each file in it is a volume of its own, which is made and
//! goes with it and moves through the tiers as the file grows and shrinks. The bytes stay in
//! the backing folder: what the server's volumes keep is their limits and counters.

use crate::limits::{Capacity, DirId, Errno, FileId, Go, Io, Limits, Op, Space};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use weir_layout::coming::NewVolume;
use weir_server::{Answer, Ask, Disk, Exported, Handle, NotDone, Passing, ServerError, Terms};
use weir_units::Bytes;

/// A file's volume grows and shrinks in such steps, so that not every append asks the host.
const GRAIN: u64 = 64 << 20;
/// Requests that nothing holds are counted by their host at the latest when there are so many.
const COUNT_AFTER: u64 = 64;
/// A file begins at a multiple of this, as its partition does on a disk: so an I/O that is
/// aligned in the file touches no more units of a stripe than it has to.
const ALIGNMENT: u64 = 1 << 20;
/// What is not a file of its own has room for so many.
const MANY_FILES: u64 = u32::MAX as u64;

/// What a top directory of a mount is.
#[derive(Debug, Clone)]
pub enum Dir {
    /// A volume or a stripe.
    Volume(Exported),
    /// A database of a managed instance.
    Database {
        /// The instance.
        host: String,
        /// Its name.
        name: String,
        /// Its files that the layout has: a file of that name has at least that size.
        declared: Vec<Exported>,
    },
}

/// See the module.
#[derive(Debug)]
pub struct Served {
    server: Handle,
    dirs: Vec<State>,
    uncounted: AtomicU64,
}

#[derive(Debug)]
enum State {
    Volume { export: Exported, used: AtomicU64 },
    Database { host: String, name: String, declared: Vec<Exported>, files: Mutex<Files> },
}

type Files = HashMap<u64, File>;

/// A file that is a volume.
#[derive(Clone)]
struct File {
    volume: String,
    disk: Disk,
    /// The volume's size.
    size: u64,
    /// What it has at least, if the layout has it.
    declared: Option<u64>,
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File").field("volume", &self.volume).finish_non_exhaustive()
    }
}

impl Served {
    /// The limits of a mount whose top directories are `dirs`, by their places in it.
    #[must_use]
    pub fn new(server: Handle, dirs: Vec<Dir>) -> Self {
        let state = |dir| match dir {
            Dir::Volume(export) => State::Volume { export, used: AtomicU64::new(0) },
            Dir::Database { host, name, declared } => {
                State::Database { host, name, declared, files: Mutex::default() }
            }
        };
        let dirs = dirs.into_iter().map(state).collect();
        Self { server, dirs, uncounted: AtomicU64::new(0) }
    }

    fn dir(&self, id: DirId) -> &State {
        &self.dirs[id.0 as usize]
    }

    /// Makes the volume of a file.
    fn make(&self, file: FileId, name: &OsStr, size: u64) -> Result<(), Errno> {
        let State::Database { host, name: database, declared, files } = self.dir(file.dir) else {
            return Ok(());
        };
        let taken = |volume: &str| locked(files).values().any(|own| own.volume == volume);
        let of_layout = declared.iter().find(|own| *own.name == *name && !taken(&own.name));
        let made = if let Some(own) = of_layout {
            let declared = own.size.get();
            let (volume, disk) = (own.name.clone(), own.disk.clone());
            File { volume, disk, size: declared, declared: Some(declared) }
        } else {
            let size = rounded(size);
            let new = NewVolume {
                name: self.volume_name(database, name, file.inode),
                database: Some(database.clone()),
                ..NewVolume::default()
            };
            let new = self.server.sized(Some(host), &new, &new.name, Bytes::new(size));
            let new = new.map_err(|error| errno_of(&error))?;
            let opened = self.server.make_hollow(Some(host), &new);
            let opened = opened.map_err(|error| errno_of(&error))?;
            File { volume: new.name, disk: opened.disk, size, declared: None }
        };
        let needs = size > made.size;
        locked(files).insert(file.inode, made);
        if needs { self.grow(file, size) } else { Ok(()) }
    }

    /// A name that says which file it is, and that nobody has.
    fn volume_name(&self, database: &str, name: &OsStr, inode: u64) -> String {
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let clean = |c: char| if fine(c) { c } else { '-' };
        let name: String = name.to_string_lossy().chars().map(clean).take(64).collect();
        let plain = format!("{database}.{name}");
        if !self.server.is_taken(&plain) {
            return plain;
        }
        let numbered = format!("{database}.{inode}.{name}");
        let more = (1..).map(|n| format!("{database}.{inode}-{n}.{name}"));
        let mut all = std::iter::once(numbered).chain(more);
        all.find(|name| !self.server.is_taken(name)).unwrap_or(plain)
    }

    /// Gives a file's volume the size that the file needs.
    fn grow(&self, id: FileId, size: u64) -> Result<(), Errno> {
        let State::Database { files, .. } = self.dir(id.dir) else { return Ok(()) };
        let Some(file) = locked(files).get(&id.inode).cloned() else { return Ok(()) };
        let size = rounded(size).max(file.declared.unwrap_or(0));
        if size == file.size {
            return Ok(());
        }
        let resized = self.server.resize(&file.volume, Bytes::new(size));
        resized.map_err(|error| errno_of(&error))?;
        if let Some(file) = locked(files).get_mut(&id.inode) {
            file.size = size;
        }
        Ok(())
    }

    /// The device that an I/O goes to, and what it is there.
    fn passing(&self, io: &Io) -> Option<(Disk, Passing)> {
        let (disk, size, start) = match self.dir(io.file.dir) {
            State::Volume { export, .. } => {
                let size = export.size.get();
                // Files lie somewhere on the volume, each at a place of its own as a rule.
                (export.disk.clone(), size, scatter(io.file.inode) % size / ALIGNMENT * ALIGNMENT)
            }
            State::Database { files, .. } => {
                let files = locked(files);
                // A flush of a directory is nobody's.
                let file = files.get(&io.file.inode)?;
                (file.disk.clone(), file.size, 0)
            }
        };
        let len = io.len.min(size).min(1 << 30);
        let offset = (start + io.offset % size) % size / 4096 * 4096;
        let offset = offset.min(size - len);
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        let passing = match io.op {
            Op::Flush => Passing::Flush,
            Op::Read if len > 0 => Passing::Read(offset, len),
            Op::Write if len > 0 => Passing::Write(offset, len, io.durable),
            Op::Discard if len > 0 => Passing::Discard(offset, len),
            _ => return None,
        };
        Some((disk, passing))
    }
}

impl Limits for Served {
    fn try_admit(&self, io: &Io) -> bool {
        let State::Volume { export: Exported { is_free: true, .. }, .. } = self.dir(io.file.dir)
        else {
            return false;
        };
        if let Some((disk, passing)) = self.passing(io) {
            // Nothing holds it: it is only counted.
            disk.ask_later(Ask::Admit(passing), Terms::default(), drop);
            if self.uncounted.fetch_add(1, Ordering::Relaxed).is_multiple_of(COUNT_AFTER) {
                disk.go();
            }
        }
        true
    }

    fn admit(&self, io: Io, go: Go) {
        match self.passing(&io) {
            Some((disk, passing)) => {
                let told = move |answer: Answer| {
                    // Its host has ended or crashed.
                    go(answer.map(drop).map_err(|_: NotDone| Errno::IO));
                };
                disk.ask(Ask::Admit(passing), Terms::default(), told);
            }
            None => go(Ok(())),
        }
    }

    fn found(&self, file: FileId, name: &OsStr, space: Space) {
        match self.dir(file.dir) {
            State::Volume { used, .. } => drop(used.fetch_add(space.allocated, Ordering::Relaxed)),
            // One that the instance has no room for any more is not held by limits of its own.
            State::Database { .. } => drop(self.make(file, name, space.size)),
        }
    }

    fn create(&self, file: FileId, name: &OsStr) -> Result<(), Errno> {
        self.make(file, name, 0)
    }

    fn resize(&self, file: FileId, old: Space, new: Space) -> Result<(), Errno> {
        match self.dir(file.dir) {
            State::Database { .. } => self.grow(file, new.size),
            State::Volume { export, used } => {
                let size = export.size.get();
                let change = |used: u64| {
                    let after = used.saturating_sub(old.allocated).saturating_add(new.allocated);
                    // What is given back is never refused.
                    (after <= size || new.allocated <= old.allocated).then_some(after)
                };
                let order = Ordering::Relaxed;
                used.fetch_update(order, order, change).map(drop).map_err(|_| Errno::NOSPC)
            }
        }
    }

    fn removed(&self, file: FileId, space: Space) {
        match self.dir(file.dir) {
            State::Volume { used, .. } => {
                let order = Ordering::Relaxed;
                let change = |used: u64| Some(used.saturating_sub(space.allocated));
                let _ = used.fetch_update(order, order, change);
            }
            State::Database { files, .. } => {
                let gone = locked(files).remove(&file.inode);
                match gone {
                    Some(File { volume, declared: None, .. }) => {
                        // The server only fails to if it ends, which takes the volume too.
                        drop(self.server.delete(&volume));
                    }
                    Some(File { volume, declared: Some(size), .. }) => {
                        drop(self.server.resize(&volume, Bytes::new(size)));
                    }
                    None => {}
                }
            }
        }
    }

    fn link(&self, file: FileId) -> Result<(), Errno> {
        match self.dir(file.dir) {
            State::Volume { .. } => Ok(()),
            // It is a volume, which has one name.
            State::Database { .. } => Err(Errno::PERM),
        }
    }

    fn capacity(&self, dir: DirId) -> Option<Capacity> {
        match self.dir(dir) {
            State::Volume { export, used } => {
                let total = export.size.get();
                let free = total.saturating_sub(used.load(Ordering::Relaxed));
                Some(Capacity { total, free, files: MANY_FILES, files_free: MANY_FILES })
            }
            State::Database { host, .. } => {
                let (total, used) = self.server.storage(host)?;
                let free = total.get().saturating_sub(used.get());
                let total = total.get();
                Some(Capacity { total, free, files: MANY_FILES, files_free: MANY_FILES })
            }
        }
    }
}

fn locked(files: &Mutex<Files>) -> MutexGuard<'_, Files> {
    files.lock().unwrap_or_else(PoisonError::into_inner)
}

fn rounded(size: u64) -> u64 {
    size.max(1).div_ceil(GRAIN).saturating_mul(GRAIN)
}

/// What a program is told that wants what the instance has not.
fn errno_of(error: &ServerError) -> Errno {
    match error {
        ServerError::Layout(_) => Errno::NOSPC,
        _ => Errno::IO,
    }
}

/// Spreads inode numbers, which are near each other, over a volume.
fn scatter(inode: u64) -> u64 {
    inode.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16
}
