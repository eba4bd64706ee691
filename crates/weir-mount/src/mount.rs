//! The start and the end of a mount.

use crate::core::{Core, Handles, Invalidation, TopDir};
use crate::error::MountError;
use crate::fs::Fs;
use crate::inode::{Inode, Table, node_id};
use crate::kernel::{
    Listed, MountRequest, can_stack, detach, mount, mounted_at, name_problem, nested, prepare,
    unmount,
};
use crate::limits::{DirId, FileId, Limits, Space};
use crate::listing::Listing;
use crate::names::files_in;
use crate::options::Options;
use crate::pool::{Flights, Pool, Readers};
use fuser::{Config, Filesystem, Notifier, Session, SessionACL};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Maximum number of requests in flight in a top directory.
const MAX_IN_FLIGHT: usize = 16_384;
/// Maximum number of bytes of writes that wait for admission: those of the kernel's background
/// writes, plus this many for synchronous ones. Beyond it no further requests are read, including
/// those for names.
const MAX_WAITING_BYTES: usize = 512 << 20;

/// Capacity of the invalidation queue. Invalidations beyond it are dropped.
const MAX_INVALIDATIONS: usize = 1024;

/// A top directory of a mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Top {
    /// Name in the mount.
    pub name: OsString,
    /// The backing folder, which nothing else may change meanwhile.
    pub backing: PathBuf,
    /// Id in [`Limits`].
    pub id: DirId,
}

/// A mount to be started.
///
/// [`Mount::new`] and [`Mount::single`] define it, [`Mount::spawn`] starts it.
pub struct Mount {
    tops: Vec<Top>,
    single: bool,
    limits: Arc<dyn Limits>,
    options: Options,
}

impl fmt::Debug for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tops, options, .. } = self;
        let mut debug = f.debug_struct("Mount");
        debug.field("tops", tops).field("options", options).finish_non_exhaustive()
    }
}

impl Mount {
    /// Defines a mount whose read-only root lists the top directories. Each of them is a separate
    /// mount: within one mount, the kernel's limit of dirty pages would let a throttled volume
    /// block writes to all others. Without root, the root is the directory itself, with
    /// subdirectories created for the mount; it can be changed, but other files in it belong to no
    /// volume.
    #[must_use]
    pub fn new(tops: Vec<Top>, limits: Arc<dyn Limits>, options: Options) -> Self {
        Self { tops, single: false, limits, options }
    }

    /// Defines a mount whose root is the top directory.
    #[must_use]
    pub fn single(top: Top, limits: Arc<dyn Limits>, options: Options) -> Self {
        Self { tops: vec![top], single: true, limits, options }
    }

    /// Checks that `dir` is an empty directory, before other resources are created. A dead mount of
    /// Weir is removed, as in [`Mount::spawn`].
    ///
    /// # Errors
    ///
    /// The directory is not suitable. Without root it may contain the names of top directories, so
    /// only its existence is checked.
    pub fn check_dir(dir: &Path) -> Result<(), MountError> {
        if can_stack() {
            return prepare(dir, &[]).map(drop);
        }
        let absent = |source| MountError::NoDirectory { dir: dir.to_owned(), source };
        match std::fs::symlink_metadata(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(absent(error)),
            _ => Ok(()),
        }
    }

    /// Mounts at `dir`. A dead mount of Weir, which a crash leaves, is removed first.
    ///
    /// # Errors
    ///
    /// `dir` is not an empty directory, a backing folder is missing or in use, or the system
    /// refuses the mount.
    pub fn spawn(self, dir: &Path) -> Result<Mounted, MountError> {
        self.check_names()?;
        let names: Vec<_> = self.tops.iter().map(|top| &*top.name).collect();
        let plain = !self.single && !can_stack();
        let dir = prepare(dir, if plain { &names } else { &[] })?;
        let pool = Pool::new(self.options.workers);
        let shared = Shared {
            pool: Arc::new(pool.map_err(|error| MountError::io("cannot start a thread", error))?),
            open: Arc::default(),
            most_open: raise_descriptors() / 2,
        };
        let mut cores = Vec::with_capacity(self.tops.len());
        for top in &self.tops {
            cores.push(self.core(top, &dir, &shared)?);
        }
        let tops: Vec<_> = cores.iter().map(|(core, _)| Arc::clone(core)).collect();
        let (single, state, places) = (self.single, Arc::default(), Vec::new());
        // If a later step fails, dropping it unmounts what has been mounted.
        let mut mounted = Mounted { dir: dir.clone(), single, plain, places, tops, state };
        if !single && !plain {
            let listing = (Listing::new(&mounted.tops), drop);
            mounted.add(dir.clone(), self.options, 1, listing, || {})?;
        }
        for (core, invalidations) in cores {
            let mut place = if single { dir.clone() } else { dir.join(&core.top.name) };
            if plain {
                place = create_mount_point(&place)?;
            }
            let added = mounted.add_top(place.clone(), core, invalidations);
            added.inspect_err(|_| {
                if plain {
                    // The directory was created for this mount; mounts in it are detached on drop.
                    let _ = std::fs::remove_dir(&place);
                }
            })?;
        }
        Ok(mounted)
    }

    fn check_names(&self) -> Result<(), MountError> {
        for (number, top) in self.tops.iter().enumerate() {
            let twice = self.tops[..number].iter().any(|other| other.name == top.name);
            let problem = match name_problem(&top.name) {
                _ if self.single => None,
                None if twice => Some("is there twice"),
                problem => problem,
            };
            if let Some(problem) = problem {
                let name = top.name.to_string_lossy().into_owned();
                return Err(MountError::Name { name, problem });
            }
        }
        Ok(())
    }

    fn core(
        &self,
        top: &Top,
        dir: &Path,
        shared: &Shared,
    ) -> Result<(Arc<Core>, Receiver<Invalidation>), MountError> {
        let (invalidations, told) = sync_channel(MAX_INVALIDATIONS);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let proc = rustix::fs::open("/proc/self/fd", flags, Mode::empty())
            .map_err(|errno| MountError::io("cannot open /proc/self/fd", errno))?;
        let opened = open_top(top, dir)?;
        self.count_files(top, &opened)?;
        let gathered = usize::from(self.options.queue_depth) * self.options.largest_io as usize;
        let bytes = gathered.saturating_add(MAX_WAITING_BYTES);
        let core = Core {
            limits: Arc::clone(&self.limits),
            options: self.options,
            table: Table::new(Arc::clone(&opened.root), Arc::clone(&shared.open), shared.most_open),
            top: opened,
            files: Handles::default(),
            dirs: Handles::default(),
            proc,
            pool: Arc::clone(&shared.pool),
            flights: Arc::new(Flights::new(MAX_IN_FLIGHT, bytes)),
            readers: Readers::new(self.options.readers.max(2)),
            notifier: Mutex::default(),
            direct_in_parallel: OnceLock::new(),
            invalidations,
        };
        Ok((Arc::new(core), told))
    }

    fn count_files(&self, top: &Top, opened: &TopDir) -> Result<(), MountError> {
        let mut refused = None;
        let counted = files_in(&top.backing, opened.device, |path, metadata| {
            let file = FileId { dir: top.id, inode: metadata.ino() };
            let allocated = metadata.blocks().saturating_mul(512);
            let space = Space { size: metadata.len(), allocated };
            self.limits.register(file, path, space).map_err(|reason| {
                refused = Some(MountError::Found { path: top.backing.join(path), reason });
                io::ErrorKind::Other.into()
            })
        });
        let (context, dir) = ("cannot list its files", top.backing.clone());
        let failed = |source| MountError::Backing { dir, context, source };
        counted.map_err(|source| refused.take().unwrap_or_else(|| failed(source)))
    }
}

/// Creates a mount point, or takes one left by an earlier mount.
fn create_mount_point(place: &Path) -> Result<PathBuf, MountError> {
    match std::fs::create_dir(place) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(MountError::NoDirectory { dir: place.to_owned(), source: error })
        }
        _ => prepare(place, &[]),
    }
}

/// The state shared by the top directories of a mount.
struct Shared {
    pool: Arc<Pool>,
    /// Number of open inodes of all of them, and its limit.
    open: Arc<AtomicUsize>,
    most_open: usize,
}

fn open_top(top: &Top, dir: &Path) -> Result<TopDir, MountError> {
    let failed = |context, source: io::Error| {
        let dir = top.backing.clone();
        MountError::Backing { dir, context, source }
    };
    let resolved = top.backing.canonicalize().map_err(|error| failed("cannot be found", error))?;
    if nested(&resolved, dir) {
        let (backing, dir) = (top.backing.clone(), dir.to_owned());
        return Err(MountError::Nested { backing, dir });
    }
    let open = |flags: OFlags| {
        let flags = flags | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&resolved, flags, Mode::empty());
        opened.map_err(|errno| failed("cannot be opened", errno.into()))
    };
    let (folder, path) = (open(OFlags::RDONLY)?, open(OFlags::PATH)?);
    match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            return Err(MountError::BackingInUse { dir: top.backing.clone() });
        }
        Err(errno) => return Err(failed("cannot be locked", errno.into())),
    }
    let stat = rustix::fs::fstat(&path).map_err(|errno| failed("cannot be read", errno.into()))?;
    let file = FileId { dir: top.id, inode: stat.st_ino };
    let root = Arc::new(Inode::new(node_id(file.inode, file.inode), file, path, &stat));
    Ok(TopDir { name: top.name.clone(), id: top.id, device: stat.st_dev, root, folder })
}

/// Raises the limit of open files, because each inode that the kernel knows needs a descriptor.
/// Returns the limit.
fn raise_descriptors() -> usize {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let most = match rustix::process::setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    most.and_then(|most| usize::try_from(most).ok()).unwrap_or(1 << 20)
}

/// Invalidates a directory entry in the kernel.
fn send_invalidation(core: &Core, Invalidation(dir, name): &Invalidation) {
    let notifier = core.notifier.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(notifier) = notifier {
        // An error means that the kernel has already dropped the entry.
        let _ = notifier.inval_entry(fuser::INodeNo(*dir), name);
    }
}

/// Closes all remaining handles, including those of unlinked files, and frees the backing folder
/// for another mount.
fn close_all(core: &Core) {
    for open in core.files.drain() {
        open.inode.closed(open.writes, &*core.limits);
    }
    core.dirs.drain();
    for inode in core.table.drain() {
        inode.report_if_removed(&*core.limits);
    }
    // Closing the descriptor would unlock it as well.
    let _ = rustix::fs::flock(&core.top.folder, FlockOperation::Unlock);
}

/// Number of file systems that are being served, and whether reading from the kernel failed.
#[derive(Debug, Default)]
struct State {
    served: Mutex<Served>,
    changed: Condvar,
}

#[derive(Debug, Default, Clone, Copy)]
struct Served {
    running: usize,
    failed: Option<Errno>,
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Served> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, how: io::Result<()>) {
        let mut served = self.lock();
        served.running -= 1;
        if let Err(error) = how {
            served.failed = Some(Errno::from_io_error(&error).unwrap_or(Errno::IO));
        }
        drop(served);
        self.changed.notify_all();
    }
}

/// A mount point with the kernel's entry at the time of mounting, which identifies it later.
#[derive(Debug, Clone)]
struct Place {
    dir: PathBuf,
    listed: Option<Listed>,
}

impl Place {
    fn is_ours(&self) -> bool {
        self.listed.is_some() && mounted_at(&self.dir) == self.listed
    }
}

fn was_aborted(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::CONNABORTED.raw_os_error())
}

/// A running mount. Dropping it detaches it; open files remain usable until they are closed.
#[derive(Debug)]
pub struct Mounted {
    dir: PathBuf,
    single: bool,
    /// True if the root is a plain directory with subdirectories created for the mount.
    plain: bool,
    /// Mount points: the root first, if it is a file system, then the top directories.
    places: Vec<Place>,
    tops: Vec<Arc<Core>>,
    state: Arc<State>,
}

impl Mounted {
    /// Mounts a top directory, and starts its threads for requests and invalidations.
    fn add_top(
        &mut self,
        dir: PathBuf,
        core: Arc<Core>,
        invalidations: Receiver<Invalidation>,
    ) -> Result<(), MountError> {
        let forgetting = Arc::downgrade(&core);
        let forget = move || {
            while let Ok(what) = invalidations.recv() {
                let Some(core) = forgetting.upgrade() else { return };
                send_invalidation(&core, &what);
            }
        };
        let thread = std::thread::Builder::new().name("weir-mount-names".to_owned());
        thread.spawn(forget).map_err(|error| MountError::io("cannot start a thread", error))?;
        let (options, ending) = (core.options, Arc::clone(&core));
        let serving = |notifier| {
            *core.notifier.lock().unwrap_or_else(PoisonError::into_inner) = Some(notifier);
        };
        let fs = Fs(Arc::clone(&core));
        self.add(dir, options, options.readers.max(2), (fs, serving), move || {
            ending.notifier.lock().unwrap_or_else(PoisonError::into_inner).take();
            ending.flights.wait_idle();
            close_all(&ending);
        })
    }

    /// Returns the source of a mount in lists of mounts: `weir`, or `weir/NAME` for a top directory.
    fn source(&self, dir: &Path) -> OsString {
        let mut source = OsString::from("weir");
        if let Some(name) = dir.strip_prefix(&self.dir).ok().and_then(Path::file_name) {
            source.push("/");
            source.push(name);
        }
        source
    }

    /// Mounts a file system and serves it on its own threads. At the end it runs `ending`.
    fn add<F: Filesystem>(
        &mut self,
        dir: PathBuf,
        options: Options,
        readers: usize,
        (fs, serving): (F, impl FnOnce(Notifier)),
        ending: impl FnOnce() + Send + 'static,
    ) -> Result<(), MountError> {
        let source = self.source(&dir);
        let request = MountRequest { dir: &dir, source: &source, allow_other: options.allow_other };
        let fuse = mount(&request)?;
        let listed = mounted_at(&dir);
        let place = Place { dir: dir.clone(), listed };
        self.places.push(place.clone());
        let mut config = Config::default();
        config.n_threads = Some(readers);
        // The kernel checks access.
        let session = Session::from_fd(fs, fuse, SessionACL::All, config).map_err(|error| {
            MountError::io("the protocol version of the kernel is not supported", error)
        })?;
        serving(session.notifier());
        let state = Arc::clone(&self.state);
        let answer = move || {
            let ended = match session.run() {
                // The end of a detached mount, when its last file is closed. Linux 6.18 sometimes calls it an abort
                // and not a device that is gone.
                Err(error) if was_aborted(&error) && !place.is_ours() => Ok(()),
                ended => ended,
            };
            if ended.is_err() {
                // Requests are no longer answered; detaching avoids hanging programs.
                let _ = detach(&dir);
            }
            ending();
            state.end(ended);
        };
        self.state.lock().running += 1;
        let thread = std::thread::Builder::new().name("weir-mount".to_owned());
        thread.spawn(answer).map(drop).map_err(|error| {
            self.state.lock().running -= 1;
            MountError::io("cannot start a thread", error)
        })
    }

    /// Returns the mount directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Waits until the mount is unmounted and all requests have completed.
    ///
    /// # Errors
    ///
    /// Reading requests from the kernel failed.
    pub fn wait(&self) -> Result<(), MountError> {
        let mut served = self.state.lock();
        while served.running > 0 {
            served = self.state.changed.wait(served).unwrap_or_else(PoisonError::into_inner);
        }
        self.tidy();
        let context = "the connection to the kernel was lost";
        served.failed.map_or(Ok(()), |errno| Err(MountError::io(context, errno)))
    }

    /// Unmounts. It first waits without a time limit for the unsent writes of open files, then up
    /// to `patience` for the files to be closed. No file can be opened during the latter.
    ///
    /// # Errors
    ///
    /// [`MountError::InUse`] if files are still open, or the system refuses to unmount. Programs
    /// get errors for open files once this process ends.
    pub fn unmount(&self, patience: Duration) -> Result<(), MountError> {
        self.drain()?;
        for place in self.places.iter().rev().filter(|place| place.is_ours()) {
            if !unmount(&place.dir)? {
                detach(&place.dir)?;
            }
        }
        let served = self.state.lock();
        let waited =
            self.state.changed.wait_timeout_while(served, patience, |served| served.running > 0);
        drop(waited);
        if self.has_ended() { self.wait() } else { Err(self.in_use()) }
    }

    /// Makes the kernel send its dirty pages. A separate process waits for it, because a process
    /// that waits for itself cannot be killed.
    fn drain(&self) -> Result<(), MountError> {
        let tops = self.places.iter().rev().zip(self.tops.iter().rev());
        let is_written = |core: &Core| core.files.any(|open| open.writes);
        let written = tops.filter(|(place, core)| place.is_ours() && is_written(core));
        let sync = |(place, _): (&Place, _)| {
            Command::new("sync").arg("-f").arg(&place.dir).stderr(Stdio::null()).spawn()
        };
        let syncing: Result<Vec<_>, _> = written.map(sync).collect();
        let failed = |error| MountError::io("cannot run 'sync' to flush unwritten data", error);
        for mut sync in syncing.map_err(failed)? {
            // Write errors are reported to the programs that wrote.
            sync.wait().map_err(failed)?;
        }
        Ok(())
    }

    /// Returns the number of open files.
    #[must_use]
    pub fn open_files(&self) -> usize {
        self.tops.iter().map(|core| core.files.len()).sum()
    }

    /// Removes the directories created for the mount.
    fn tidy(&self) {
        for place in self.places.iter().filter(|_| self.plain) {
            // Directories that have been used for something else are kept.
            let _ = std::fs::remove_dir(&place.dir);
        }
    }

    fn in_use(&self) -> MountError {
        MountError::InUse { dir: self.dir.clone() }
    }

    /// Returns whether the mount has ended and all requests have completed.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.state.lock().running == 0
    }

    /// Returns the path of a file in the mount for display, if the kernel knows it.
    #[must_use]
    pub fn path_of(&self, file: FileId) -> Option<PathBuf> {
        let top = self.tops.iter().find(|core| core.top.id == file.dir)?;
        let inode = top.table.get(top.node(file.inode))?;
        let backing = |fd| std::fs::read_link(Core::proc_path(fd)).ok();
        let (folder, path) = (backing(&top.top.folder)?, backing(&inode.fd)?);
        let inside = path.strip_prefix(folder).ok()?;
        let name = if self.single { OsStr::new("") } else { &*top.top.name };
        Some(Path::new(name).join(inside))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        for place in self.places.iter().rev().filter(|place| place.is_ours()) {
            // An error cannot be reported here.
            let _ = detach(&place.dir);
        }
        self.tidy();
    }
}
