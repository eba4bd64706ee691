//! Mounts in temporary folders, and limits that record, hold, refuse and count.

#![allow(dead_code, reason = "each test file uses a part")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tempfile::TempDir;
use weir_mount::{
    Capacity, DirId, Errno, FileId, Go, Io, Limits, Mount, Mounted, Op, Options, Space, Top,
    Unlimited,
};

/// A timeout for operations that are not stuck.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Returns whether mounting is possible; prints the reason otherwise.
pub(crate) fn can_mount() -> bool {
    let root = rustix::process::geteuid().is_root();
    let helper = Command::new("fusermount3").arg("-V").output().is_ok();
    let open = std::fs::File::options().read(true).write(true).open("/dev/fuse").is_ok();
    needs(
        "/dev/fuse and root or fusermount3",
        open && root || helper && Path::new("/dev/fuse").exists(),
    )
}

/// Returns whether a program exists; prints a message otherwise.
pub(crate) fn has(program: &str) -> bool {
    needs(program, Command::new(program).arg("--version").output().is_ok())
}

pub(crate) fn needs(what: &str, there: bool) -> bool {
    if !there {
        assert!(std::env::var_os("CI").is_none(), "CI must have {what}");
        println!("skipped: needs {what}");
    }
    there
}

/// A mount with its backing folders, removed at the end.
pub(crate) struct Bed {
    pub(crate) mounted: Mounted,
    pub(crate) home: TempDir,
}

impl Bed {
    pub(crate) fn unlimited() -> Option<Self> {
        Self::new(Arc::new(Unlimited), Options::default())
    }

    /// Mounts the top directories `a` and `b`, with ids 0 and 1.
    pub(crate) fn new(limits: Arc<dyn Limits>, options: Options) -> Option<Self> {
        if !can_mount() {
            return None;
        }
        let home = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(home.path().join("mnt")).expect("a folder");
        for name in ["a", "b"] {
            std::fs::create_dir_all(home.path().join("backing").join(name)).expect("a folder");
        }
        Some(Self::again(home, limits, options))
    }

    pub(crate) fn again(home: TempDir, limits: Arc<dyn Limits>, options: Options) -> Self {
        let mount = Mount::new(tops(home.path()), limits, options);
        let mounted = mount.spawn(&home.path().join("mnt")).expect("mounted");
        Self { mounted, home }
    }

    /// Returns a path in top directory `a`.
    pub(crate) fn a(&self, path: &str) -> PathBuf {
        self.home.path().join("mnt/a").join(path)
    }

    pub(crate) fn b(&self, path: &str) -> PathBuf {
        self.home.path().join("mnt/b").join(path)
    }

    /// Returns the path in the backing folder of `a`.
    pub(crate) fn backing(&self, path: &str) -> PathBuf {
        self.home.path().join("backing/a").join(path)
    }

    pub(crate) fn unmount(self) -> TempDir {
        self.mounted.unmount(LONG).expect("unmounted");
        self.home
    }
}

pub(crate) fn tops(home: &Path) -> Vec<Top> {
    let top = |(name, id): (&str, u32)| Top {
        name: name.into(),
        backing: home.join("backing").join(name),
        id: DirId(id),
    };
    [("a", 0), ("b", 1)].into_iter().map(top).collect()
}

/// Starts a Python program. Operations that may wait for the mount run in another process, because
/// a process that waits for itself cannot be killed.
pub(crate) fn spawn_python(program: &str, arguments: &[&Path]) -> Child {
    let mut command = Command::new("python3");
    command.arg("-c").arg(program).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("python3")
}

/// Runs a Python program, which must succeed, and returns its output.
pub(crate) fn python(program: &str, arguments: &[&Path]) -> String {
    let run = Command::new("python3").arg("-c").arg(program).args(arguments).output();
    said(&run.expect("python3"))
}

pub(crate) fn said(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}{stderr}");
    stdout.trim().to_owned()
}

pub(crate) fn errno<T>(result: std::io::Result<T>) -> Option<Errno> {
    result.err().and_then(|error| Errno::from_io_error(&error))
}

/// Limits for tests.
#[derive(Default)]
pub(crate) struct Notes {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    holds: Option<Op>,
    /// Restricts `holds` to one top directory.
    holds_in: Option<DirId>,
    held: Vec<(Io, Go)>,
    refuses: Option<Errno>,
    ios: Vec<Io>,
    files: HashMap<FileId, Space>,
    found: usize,
    removed: usize,
    capacity: Option<u64>,
    one_name: bool,
}

impl Notes {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds I/Os of this kind until they are released.
    pub(crate) fn hold(&self, op: Op) {
        self.lock().holds = Some(op);
    }

    /// Holds I/Os of this kind in one top directory.
    pub(crate) fn hold_in(&self, dir: DirId, op: Op) {
        let mut state = self.lock();
        (state.holds, state.holds_in) = (Some(op), Some(dir));
    }

    /// Waits until `count` I/Os are held.
    pub(crate) fn wait_for_held(&self, count: usize) {
        let state = self.lock();
        let few = |state: &mut State| state.held.len() < count;
        let (_state, waited) = self.changed.wait_timeout_while(state, LONG, few).expect("notes");
        assert!(!waited.timed_out(), "too few I/Os arrived to be held");
    }

    /// Stops holding, and releases the held I/Os with this verdict.
    pub(crate) fn release(&self, verdict: Result<(), Errno>) {
        let mut state = self.lock();
        state.holds = None;
        let held = std::mem::take(&mut state.held);
        drop(state);
        for (_, go) in held {
            go(verdict);
        }
    }

    pub(crate) fn refuse(&self, errno: Option<Errno>) {
        self.lock().refuses = errno;
    }

    /// Sets the capacity in allocated bytes.
    pub(crate) fn set_capacity(&self, capacity: u64) {
        self.lock().capacity = Some(capacity);
    }

    pub(crate) fn allow_one_name(&self) {
        self.lock().one_name = true;
    }

    /// Removes and returns the recorded I/Os.
    pub(crate) fn take(&self) -> Vec<Io> {
        std::mem::take(&mut self.lock().ios)
    }

    pub(crate) fn files(&self) -> HashMap<FileId, Space> {
        self.lock().files.clone()
    }

    pub(crate) fn found_and_removed(&self) -> (usize, usize) {
        let state = self.lock();
        (state.found, state.removed)
    }
}

impl Limits for Notes {
    fn try_admit(&self, io: &Io) -> bool {
        let mut state = self.lock();
        let here = state.holds_in.is_none_or(|dir| dir == io.file.dir);
        if state.holds == Some(io.op) && here || state.refuses.is_some() {
            return false;
        }
        state.ios.push(*io);
        true
    }

    fn admit(&self, io: Io, go: Go) {
        let mut state = self.lock();
        state.ios.push(io);
        if let Some(errno) = state.refuses {
            drop(state);
            return go(Err(errno));
        }
        state.held.push((io, go));
        self.changed.notify_all();
    }

    fn register(&self, file: FileId, _: &Path, space: Space) -> Result<(), String> {
        let mut state = self.lock();
        state.found += 1;
        assert_eq!(state.files.insert(file, space), None, "a file is found twice");
        Ok(())
    }

    fn create(&self, file: FileId, _: &Path) -> Result<(), Errno> {
        let mut state = self.lock();
        if state.capacity == Some(0) {
            return Err(Errno::NOSPC);
        }
        assert_eq!(state.files.insert(file, Space::default()), None, "a file is made twice");
        Ok(())
    }

    fn reserve(&self, file: FileId, old: Space, new: Space) -> Result<(), Errno> {
        let mut state = self.lock();
        assert_eq!(state.files.get(&file), Some(&old), "a change begins where none ended");
        assert!(new.size >= old.size && new.allocated >= old.allocated, "what is wanted is more");
        let used: u64 = state.files.values().map(|space| space.allocated).sum();
        let grows = new.size > old.size || new.allocated > old.allocated;
        let beyond = state.capacity.is_some_and(|all| used - old.allocated + new.allocated > all);
        if grows && beyond {
            return Err(Errno::NOSPC);
        }
        state.files.insert(file, new);
        Ok(())
    }

    fn settled(&self, file: FileId, old: Space, new: Space) {
        let before = self.lock().files.insert(file, new);
        assert_eq!(before, Some(old), "a change begins where none ended");
    }

    fn removed(&self, file: FileId, space: Space) {
        let mut state = self.lock();
        state.removed += 1;
        assert_eq!(state.files.remove(&file), Some(space), "what goes was not there");
    }

    fn link(&self, _: FileId) -> Result<(), Errno> {
        if self.lock().one_name { Err(Errno::PERM) } else { Ok(()) }
    }

    fn capacity(&self, _: DirId) -> Option<Capacity> {
        let state = self.lock();
        let total = state.capacity?;
        let used: u64 = state.files.values().map(|space| space.allocated).sum();
        Some(Capacity { total, free: total.saturating_sub(used), files: 1000, files_free: 900 })
    }
}
