//! A mount from its beginning to its end.

use crate::core::{Core, Handles, LetGo, TopDir};
use crate::error::MountError;
use crate::fs::Fs;
use crate::inode::{Inode, Table, node_id};
use crate::kernel::{
    Listed, Wanted, can_stack, detach, mount, mounted_at, name_problem, nested, prepare, unmount,
};
use crate::limits::{DirId, FileId, Limits, Space};
use crate::listing::Listing;
use crate::names::files_in;
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

/// How many requests to a top directory may be under way outside of the kernel.
const MOST_UNDER_WAY: usize = 16_384;
/// How many bytes they may hold that were written and wait to be admitted: all that the kernel
/// has under way for nobody who waits, and so much for those who do. Whatever comes then is not
/// read, names neither, until there is room.
const MOST_WAITED_FOR: usize = 512 << 20;

/// How many names the kernel can be asked to let go of at once. What finds no room here is not
/// let go of now.
const MOST_LET_GO: usize = 1024;

/// A top directory of a mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Top {
    /// What it is called in the mount.
    pub name: OsString,
    /// The folder with its names and bytes. Nothing else may change it meanwhile.
    pub backing: PathBuf,
    /// By what the limits know it.
    pub id: DirId,
}

/// How a mount works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Others than who mounts may use it, as far as the modes of the files allow. A user other
    /// than root needs `user_allow_other` in `/etc/fuse.conf` for it.
    pub allow_other: bool,
    /// The kernel gathers what is written in its page cache, as it does for a file system on a
    /// disk. Otherwise each write is an I/O.
    pub writeback: bool,
    /// Direct writes to one file need not wait for each other, as on a file system on a disk.
    /// Needs Linux 6.16; with an older kernel, or without it, those of synchronous I/O go one
    /// after the other. It costs that a file's time of modification does not move by direct
    /// writes until all have closed it.
    pub direct_in_parallel: bool,
    /// The largest I/O, in bytes: at least 4 KiB, at most 1 MiB.
    pub largest_io: u32,
    /// How many I/Os nobody waits for (of the page cache, of asynchronous I/O) the kernel has
    /// under way at once, for each top directory.
    pub queue_depth: u16,
    /// How many threads read from the kernel, for each top directory: at least two.
    pub readers: usize,
    /// How many threads do what waits, for all: at least two. Half of them sync at most.
    pub workers: usize,
    /// For how long the kernel keeps names and attributes without asking again. It matters
    /// only if somebody changes a backing folder by hand.
    pub kept_for: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            allow_other: rustix::process::geteuid().is_root(),
            writeback: true,
            direct_in_parallel: true,
            largest_io: 1 << 20,
            queue_depth: 512,
            readers: 4,
            workers: 16,
            kept_for: Duration::from_secs(60),
        }
    }
}

/// A mount to be.
///
/// [`Mount::new`] and [`Mount::of_one`] say what is mounted, [`Mount::spawn`] mounts it.
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
    /// A mount whose root lists the top directories and cannot be changed. Each is a mount of
    /// its own upon it: in one mount the kernel would let what one volume holds back, and has
    /// not been written, hold back what is written to all others. For a user other than root
    /// the root is the directory itself, with directories made for the mount; it can be changed,
    /// but what is put there is no volume's.
    #[must_use]
    pub fn new(tops: Vec<Top>, limits: Arc<dyn Limits>, options: Options) -> Self {
        Self { tops, single: false, limits, options }
    }

    /// A mount whose root is the top directory.
    #[must_use]
    pub fn of_one(top: Top, limits: Arc<dyn Limits>, options: Options) -> Self {
        Self { tops: vec![top], single: true, limits, options }
    }

    /// Whether `dir` is an empty directory, for who asks before making what a mount needs. A
    /// dead mount of Weir there is taken away, as [`Mount::spawn`] does.
    ///
    /// # Errors
    ///
    /// If it is not. A user's may hold the top directories, which only a mount knows: of that
    /// it is only said whether it is there.
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

    /// Mounts at `dir`. A dead mount of Weir there, as a crash leaves it, is taken away first.
    ///
    /// # Errors
    ///
    /// If `dir` is no empty directory, if a backing folder is not there or in use, or if the
    /// system does not mount.
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
        // Dropped on the way, it takes away what is mounted by then.
        let mut mounted = Mounted { dir: dir.clone(), single, plain, places, tops, state };
        if !single && !plain {
            let listing = (Listing::new(&mounted.tops), drop);
            mounted.add(dir.clone(), self.options, 1, listing, || {})?;
        }
        for (core, let_go) in cores {
            let mut place = if single { dir.clone() } else { dir.join(&core.top.name) };
            if plain {
                place = made(&place)?;
            }
            let added = mounted.add_top(place.clone(), core, let_go);
            added.inspect_err(|_| {
                if plain {
                    // It was made for the mount; what was mounted before goes by itself.
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
    ) -> Result<(Arc<Core>, Receiver<LetGo>), MountError> {
        let (let_go, told) = sync_channel(MOST_LET_GO);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let proc = rustix::fs::open("/proc/self/fd", flags, Mode::empty())
            .map_err(|errno| MountError::io("cannot open /proc/self/fd", errno))?;
        let opened = open_top(top, dir)?;
        self.count_files(top, &opened)?;
        let gathered = usize::from(self.options.queue_depth) * self.options.largest_io as usize;
        let bytes = gathered.saturating_add(MOST_WAITED_FOR);
        let core = Core {
            limits: Arc::clone(&self.limits),
            options: self.options,
            table: Table::new(Arc::clone(&opened.root), Arc::clone(&shared.open), shared.most_open),
            top: opened,
            files: Handles::default(),
            dirs: Handles::default(),
            proc,
            pool: Arc::clone(&shared.pool),
            flights: Arc::new(Flights::new(MOST_UNDER_WAY, bytes)),
            readers: Readers::new(self.options.readers.max(2)),
            notifier: Mutex::default(),
            direct_in_parallel: OnceLock::new(),
            let_go,
        };
        Ok((Arc::new(core), told))
    }

    fn count_files(&self, top: &Top, opened: &TopDir) -> Result<(), MountError> {
        let mut refused = None;
        let counted = files_in(&top.backing, opened.device, |path, metadata| {
            let file = FileId { dir: top.id, inode: metadata.ino() };
            let allocated = metadata.blocks().saturating_mul(512);
            let space = Space { size: metadata.len(), allocated };
            self.limits.found(file, path, space).map_err(|reason| {
                refused = Some(MountError::Found { path: top.backing.join(path), reason });
                io::ErrorKind::Other.into()
            })
        });
        let (context, dir) = ("cannot list its files", top.backing.clone());
        let failed = |source| MountError::Backing { dir, context, source };
        counted.map_err(|source| refused.take().unwrap_or_else(|| failed(source)))
    }
}

/// A directory to mount at, which may be left of a mount before.
fn made(place: &Path) -> Result<PathBuf, MountError> {
    match std::fs::create_dir(place) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(MountError::NoDirectory { dir: place.to_owned(), source: error })
        }
        _ => prepare(place, &[]),
    }
}

/// What the top directories of a mount have in common.
struct Shared {
    pool: Arc<Pool>,
    /// How many inodes of all of them are open, and may be.
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

/// Lets this process open as many files as it may, since what the kernel knows is open here;
/// returns how many.
fn raise_descriptors() -> usize {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let most = match rustix::process::setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    most.and_then(|most| usize::try_from(most).ok()).unwrap_or(1 << 20)
}

/// Has the kernel let go of a name.
fn let_it_go(core: &Core, LetGo(dir, name): &LetGo) {
    let notifier = core.notifier.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(notifier) = notifier {
        // What the kernel has forgotten of its own need not be forgotten again.
        let _ = notifier.inval_entry(fuser::INodeNo(*dir), name);
    }
}

/// Closes what the kernel did not: what was open when it ended, and files without a name. The
/// backing folder is then free for another mount.
fn close_all(core: &Core) {
    for open in core.files.drain() {
        open.inode.closed(open.writes, &*core.limits);
    }
    core.dirs.drain();
    for inode in core.table.drain() {
        inode.look_whether_gone(&*core.limits);
    }
    // Closing it unlocks it at the latest.
    let _ = rustix::fs::flock(&core.top.folder, FlockOperation::Unlock);
}

/// How many file systems of a mount are served, and whether the kernel could not be heard.
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

/// Where something is mounted, and how the kernel lists it, to know it from what came later.
#[derive(Debug)]
struct Place {
    dir: PathBuf,
    listed: Option<Listed>,
}

impl Place {
    fn is_ours(&self) -> bool {
        self.listed.is_some() && mounted_at(&self.dir) == self.listed
    }
}

/// A mount. Dropped, its name is taken away; what is open goes on until it is closed.
#[derive(Debug)]
pub struct Mounted {
    dir: PathBuf,
    single: bool,
    /// The root is a directory that others were made in.
    plain: bool,
    /// The list of the top directories first, if there is one, then they.
    places: Vec<Place>,
    tops: Vec<Arc<Core>>,
    state: Arc<State>,
}

impl Mounted {
    /// Mounts a top directory and answers for it; and makes the kernel let go of its names.
    fn add_top(
        &mut self,
        dir: PathBuf,
        core: Arc<Core>,
        let_go: Receiver<LetGo>,
    ) -> Result<(), MountError> {
        let forgetting = Arc::downgrade(&core);
        let forget = move || {
            while let Ok(what) = let_go.recv() {
                let Some(core) = forgetting.upgrade() else { return };
                let_it_go(&core, &what);
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
            ending.flights.land();
            close_all(&ending);
        })
    }

    /// Mounts a file system and answers for it on threads of its own; at its end does `ending`.
    fn add<F: Filesystem>(
        &mut self,
        dir: PathBuf,
        options: Options,
        readers: usize,
        (fs, serving): (F, impl FnOnce(Notifier)),
        ending: impl FnOnce() + Send + 'static,
    ) -> Result<(), MountError> {
        let fuse = mount(&Wanted { dir: &dir, allow_other: options.allow_other })?;
        let listed = mounted_at(&dir);
        self.places.push(Place { dir: dir.clone(), listed });
        let mut config = Config::default();
        config.n_threads = Some(readers);
        // Who may use the mount is for the kernel to check.
        let session = Session::from_fd(fs, fuse, SessionACL::All, config).map_err(|error| {
            MountError::io("the kernel and we do not understand each other", error)
        })?;
        serving(session.notifier());
        let state = Arc::clone(&self.state);
        let answer = move || {
            let ended = session.run();
            if ended.is_err() {
                // Nobody answers any more: better no mount than one that hangs.
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

    /// Where it is mounted.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Waits until it is unmounted, by whomever, and all that was under way is done.
    ///
    /// # Errors
    ///
    /// If it ended because the kernel could no longer be heard.
    pub fn wait(&self) -> Result<(), MountError> {
        let mut served = self.state.lock();
        while served.running > 0 {
            served = self.state.changed.wait(served).unwrap_or_else(PoisonError::into_inner);
        }
        self.tidy();
        let context = "the kernel could no longer be heard";
        served.failed.map_or(Ok(()), |errno| Err(MountError::io(context, errno)))
    }

    /// Unmounts, and waits for what is under way: first for what the kernel holds of files that
    /// are open for writing, however long that takes. What is open can be used until it is
    /// closed, for as long as `patience`; by then nothing can be opened any more.
    ///
    /// # Errors
    ///
    /// [`MountError::InUse`] if files are still open then. Their users get errors once this
    /// process ends. The same if the system does not unmount.
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

    /// Has the kernel send what it holds. Another process waits for that: one that waits for
    /// itself could not be killed.
    fn drain(&self) -> Result<(), MountError> {
        let tops = self.places.iter().rev().zip(self.tops.iter().rev());
        let is_written = |core: &Core| core.files.any(|open| open.writes);
        let written = tops.filter(|(place, core)| place.is_ours() && is_written(core));
        let sync = |(place, _): (&Place, _)| {
            Command::new("sync").arg("-f").arg(&place.dir).stderr(Stdio::null()).spawn()
        };
        let syncing: Result<Vec<_>, _> = written.map(sync).collect();
        let failed =
            |error| MountError::io("cannot run 'sync' to write what is not written", error);
        for mut sync in syncing.map_err(failed)? {
            // What could not be written, whoever wrote it hears of.
            sync.wait().map_err(failed)?;
        }
        Ok(())
    }

    /// How many files are open.
    #[must_use]
    pub fn open_files(&self) -> usize {
        self.tops.iter().map(|core| core.files.len()).sum()
    }

    /// Removes the directories that were made for the mount.
    fn tidy(&self) {
        for place in self.places.iter().filter(|_| self.plain) {
            // One that something else is mounted at, or put in, is no longer ours.
            let _ = std::fs::remove_dir(&place.dir);
        }
    }

    fn in_use(&self) -> MountError {
        MountError::InUse { dir: self.dir.clone() }
    }

    /// Whether it has been unmounted and all is done.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.state.lock().running == 0
    }

    /// What a file is called in the mount, if the kernel knows it: for a person to read.
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
            // Nobody is left to hear why it can't be.
            let _ = detach(&place.dir);
        }
        self.tidy();
    }
}
