//! The limits of a running server for the files of a mount.
//!
//! For a volume or a stripe, the directory's files share its device. On a managed instance, a
//! directory is a database and each file a volume, which is created and deleted with the file and
//! changes its tier as the file's size changes. The bytes are in the backing folder; the server's
//! volumes only keep limits and counters.

use crate::limits::{Capacity, DirId, Errno, FileId, Go, Io, Limits, Op, Space};
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use weir_layout::hot_plug::NewVolume;
use weir_server::{Answer, Ask, Disk, Exported, Handle, NotDone, Passing, ServerError, Terms};
use weir_units::Bytes;

/// Step in which a file's volume grows and shrinks, so that not every append needs a request to the
/// host.
const GRAIN: u64 = 64 << 20;
/// Number of unthrottled requests after which the host counts them at the latest.
const COUNT_AFTER: u64 = 64;
/// Alignment of a file's offset in the volume, as of a partition on a disk. Aligned I/O to the file
/// thus touches no more stripe units than necessary.
const ALIGNMENT: u64 = 1 << 20;
/// Number of files reported by `statfs` for a volume.
const MANY_FILES: u64 = u32::MAX as u64;

/// The object that a top directory represents.
#[derive(Debug, Clone)]
pub enum Dir {
    /// A volume or a stripe.
    Volume(Exported),
    /// A database of a managed instance.
    Database {
        /// Name of the instance.
        host: String,
        /// Name of the database.
        name: String,
        /// Its files in the layout; a file with such a name has at least the declared size.
        declared: Vec<Exported>,
    },
}

/// The limits of a running server. See the module's documentation.
#[derive(Debug)]
pub struct Served {
    server: Handle,
    dirs: Vec<State>,
    uncounted: AtomicU64,
    /// Locked from the choice of a volume's name until the server knows it.
    naming: Mutex<()>,
}

#[derive(Debug)]
enum State {
    Volume(Volume),
    Database { host: String, name: String, declared: Vec<Exported>, files: Mutex<Files> },
}

/// A volume or a stripe that files share.
#[derive(Debug)]
struct Volume {
    export: Exported,
    used: AtomicU64,
    /// The size as of the last look at [`Handle::changes`].
    size: AtomicU64,
    is_free: AtomicBool,
    seen: AtomicU64,
}

impl Volume {
    fn new(export: Exported, seen: u64) -> Self {
        let (size, is_free) = (export.size.get().into(), export.is_free.into());
        Self { export, used: AtomicU64::new(0), size, is_free, seen: seen.into() }
    }

    /// Takes over changes by clients of the control socket.
    fn refresh(&self, server: &Handle) {
        let now = server.changes();
        if self.seen.load(Ordering::Acquire) == now {
            return;
        }
        let exports = server.exports();
        if let Some(own) = exports.iter().find(|own| own.name == self.export.name) {
            self.size.store(own.size.get(), Ordering::Relaxed);
            self.is_free.store(own.is_free, Ordering::Relaxed);
        }
        self.seen.store(now, Ordering::Release);
    }

    /// Accounts for a change of a file's space.
    fn count(&self, old: u64, new: u64) {
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            Some(used.saturating_sub(old).saturating_add(new))
        });
    }

    fn size(&self, server: &Handle) -> u64 {
        self.refresh(server);
        self.size.load(Ordering::Relaxed)
    }
}

type Files = HashMap<u64, File>;

/// A file that is a volume.
#[derive(Clone)]
struct File {
    volume: String,
    disk: Disk,
    /// Size of the volume.
    size: u64,
    /// Space of the file.
    used: u64,
    /// Minimum size, for a file in the layout.
    declared: Option<u64>,
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File").field("volume", &self.volume).finish_non_exhaustive()
    }
}

impl Served {
    /// Builds the limits for top directories `dirs`, whose ids are their indices.
    #[must_use]
    pub fn new(server: Handle, dirs: Vec<Dir>) -> Self {
        let seen = server.changes();
        let dirs = dirs.into_iter().map(|dir| match dir {
            Dir::Volume(export) => State::Volume(Volume::new(export, seen)),
            Dir::Database { host, name, declared } => {
                State::Database { host, name, declared, files: Mutex::default() }
            }
        });
        let dirs = dirs.collect();
        Self { server, dirs, uncounted: AtomicU64::new(0), naming: Mutex::default() }
    }

    /// Returns the space used by the files of a volume, or by the file that is the volume.
    #[must_use]
    pub fn used(&self, volume: &str) -> Option<u64> {
        self.dirs.iter().find_map(|dir| match dir {
            State::Volume(own) if own.export.name == volume => {
                Some(own.used.load(Ordering::Relaxed))
            }
            State::Volume(_) => None,
            State::Database { files, .. } => {
                locked(files).values().find(|file| file.volume == volume).map(|file| file.used)
            }
        })
    }

    fn dir(&self, id: DirId) -> &State {
        &self.dirs[id.0 as usize]
    }

    /// Creates the volume of a file.
    fn make(&self, file: FileId, path: &Path, size: u64) -> Result<(), ServerError> {
        let State::Database { host, name: database, declared, files } = self.dir(file.dir) else {
            return Ok(());
        };
        let is_taken = |volume: &str| locked(files).values().any(|own| own.volume == volume);
        let mut unused = declared.iter().filter(|own| Path::new(&own.name) == path);
        let made = if let Some(own) = unused.find(|own| !is_taken(&own.name)) {
            let declared = own.size.get();
            let (volume, disk) = (own.name.clone(), own.disk.clone());
            File { volume, disk, size: declared, used: 0, declared: Some(declared) }
        } else {
            let size = rounded(size);
            let _alone = self.naming.lock().unwrap_or_else(PoisonError::into_inner);
            let new = NewVolume {
                name: self.volume_name(database, path, file.inode),
                database: Some(database.clone()),
                ..NewVolume::default()
            };
            let new = self.server.sized(Some(host), &new, &new.name, Bytes::new(size))?;
            let opened = self.server.make_hollow(Some(host), &new)?;
            File { volume: new.name, disk: opened.disk, size, used: 0, declared: None }
        };
        let needs = size > made.size;
        locked(files).insert(file.inode, made);
        if needs { self.grow(file, size) } else { Ok(()) }
    }

    /// Returns an unused volume name that contains the file's path as far as possible.
    fn volume_name(&self, database: &str, path: &Path, inode: u64) -> String {
        let clean = |c: char| match c {
            '.' | '_' => c,
            c if c.is_ascii_alphanumeric() => c,
            _ => '-',
        };
        let name: String = path.to_string_lossy().chars().map(clean).take(64).collect();
        let plain = format!("{database}.{name}");
        if !self.server.is_taken(&plain) {
            return plain;
        }
        let numbered = format!("{database}.{inode}.{name}");
        let more = (1..).map(|n| format!("{database}.{inode}-{n}.{name}"));
        let mut all = std::iter::once(numbered).chain(more);
        all.find(|name| !self.server.is_taken(name)).unwrap_or(plain)
    }

    /// Resizes a file's volume to the size that the file needs.
    fn grow(&self, id: FileId, size: u64) -> Result<(), ServerError> {
        let State::Database { files, .. } = self.dir(id.dir) else { return Ok(()) };
        let Some(file) = locked(files).get(&id.inode).cloned() else { return Ok(()) };
        let size = rounded(size).max(file.declared.unwrap_or(0));
        if size == file.size {
            return Ok(());
        }
        self.server.resize(&file.volume, Bytes::new(size))?;
        if let Some(file) = locked(files).get_mut(&id.inode) {
            file.size = size;
        }
        Ok(())
    }

    /// Returns the device of an I/O, and the I/O as the device sees it.
    fn passing(&self, io: &Io) -> Option<(Disk, Passing)> {
        let (disk, size, start) = match self.dir(io.file.dir) {
            State::Volume(volume) => {
                let size = volume.size(&self.server);
                // Files are scattered over the volume.
                let start = scatter(io.file.inode) % size / ALIGNMENT * ALIGNMENT;
                (volume.export.disk.clone(), size, start)
            }
            State::Database { files, .. } => {
                let files = locked(files);
                // A flush of a directory belongs to no volume.
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
        let State::Volume(volume) = self.dir(io.file.dir) else { return false };
        volume.refresh(&self.server);
        if !volume.is_free.load(Ordering::Relaxed) {
            return false;
        }
        if let Some((disk, passing)) = self.passing(io) {
            // Not throttled, so it only needs to be counted.
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
                    // The host has stopped or crashed.
                    go(answer.map(drop).map_err(|_: NotDone| Errno::IO));
                };
                disk.ask(Ask::Admit(passing), Terms::default(), told);
            }
            None => go(Ok(())),
        }
    }

    fn register(&self, file: FileId, path: &Path, space: Space) -> Result<(), String> {
        match self.dir(file.dir) {
            State::Volume(volume) => {
                volume.used.fetch_add(space.allocated, Ordering::Relaxed);
                Ok(())
            }
            State::Database { files, .. } => {
                let made = self.make(file, path, space.size);
                locked(files).entry(file.inode).and_modify(|own| own.used = space.allocated);
                made.map_err(|error| format!("it is {}: {error}", Bytes::new(space.size)))
            }
        }
    }

    fn create(&self, file: FileId, path: &Path) -> Result<(), Errno> {
        self.make(file, path, 0).map_err(|error| errno_of(&error))
    }

    fn reserve(&self, file: FileId, old: Space, new: Space) -> Result<(), Errno> {
        match self.dir(file.dir) {
            State::Database { files, .. } => {
                self.grow(file, new.size).map_err(|error| errno_of(&error))?;
                locked(files).entry(file.inode).and_modify(|own| own.used = new.allocated);
                Ok(())
            }
            State::Volume(volume) => {
                let size = volume.size(&self.server);
                let change = |used: u64| {
                    let after = used.saturating_add(new.allocated - old.allocated);
                    (after <= size || new.allocated == old.allocated).then_some(after)
                };
                let order = Ordering::Relaxed;
                volume.used.fetch_update(order, order, change).map(drop).map_err(|_| Errno::NOSPC)
            }
        }
    }

    fn settled(&self, file: FileId, old: Space, new: Space) {
        match self.dir(file.dir) {
            // Shrinking a volume is not refused. If the host has stopped, its size no longer
            // matters.
            State::Database { files, .. } => {
                locked(files).entry(file.inode).and_modify(|own| own.used = new.allocated);
                drop(self.grow(file, new.size));
            }
            State::Volume(volume) => volume.count(old.allocated, new.allocated),
        }
    }

    fn removed(&self, file: FileId, space: Space) {
        match self.dir(file.dir) {
            State::Volume(volume) => volume.count(space.allocated, 0),
            State::Database { files, .. } => {
                let gone = locked(files).remove(&file.inode);
                // Only this mount changes the volume, so deletion fails only if the server has
                // stopped.
                match gone {
                    Some(File { volume, declared: None, .. }) => drop(self.server.delete(&volume)),
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
            State::Volume(_) => Ok(()),
            // A volume has one name only.
            State::Database { .. } => Err(Errno::PERM),
        }
    }

    fn capacity(&self, dir: DirId) -> Option<Capacity> {
        match self.dir(dir) {
            State::Volume(volume) => {
                let total = volume.size(&self.server);
                let free = total.saturating_sub(volume.used.load(Ordering::Relaxed));
                Some(Capacity { total, free, files: MANY_FILES, files_free: MANY_FILES })
            }
            State::Database { host, .. } => {
                let (total, used) = self.server.storage(host)?;
                let free = total.get().saturating_sub(used.get());
                let total = total.get();
                let (files, own) = self.server.files(host).unwrap_or((MANY_FILES, 0));
                Some(Capacity { total, free, files, files_free: files.saturating_sub(own) })
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

/// Returns the error number for a request that exceeds the instance's limits.
fn errno_of(error: &ServerError) -> Errno {
    match error {
        ServerError::Layout(_) => Errno::NOSPC,
        _ => Errno::IO,
    }
}

/// Distributes inode numbers, which are close to each other, over a volume.
fn scatter(inode: u64) -> u64 {
    inode.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16
}
