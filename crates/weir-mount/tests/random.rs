//! Random operations on a mount and a plain folder must have the same results and leave the same
//! files. The limits must have counted every byte.

#![expect(clippy::print_stdout, reason = "what is skipped is said aloud")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{Bed, Notes};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rustix::fs::{CWD, FallocateFlags, RenameFlags};
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_mount::{DirId, FileId, Options, Space};

const SLOTS: usize = 3;

#[derive(Debug, Clone)]
enum Op {
    Make(usize),
    Mkdir(usize),
    Symlink(usize, usize),
    Link(usize, usize),
    Rename(usize, usize, u32),
    Unlink(usize),
    Rmdir(usize),
    Chmod(usize, u32),
    Stat(usize),
    Truncate(usize, u64),
    Open { slot: usize, path: usize, create: bool, append: bool },
    Close(usize),
    Write { slot: usize, at: u64, len: usize },
    Read { slot: usize, at: u64, len: usize },
    Cut(usize, u64),
    Allocate { slot: usize, at: u64, len: u64, mode: u32 },
    Sync(usize),
}

/// Few names, to provoke conflicts: two directories, and files in and next to them.
const PATHS: [&str; 8] = ["d", "e", "f", "g", "d/f", "d/g", "e/f", "e/d"];

fn op() -> impl Strategy<Value = Op> {
    let (path, slot) = (0..PATHS.len(), 0..SLOTS);
    let (at, len) = (0..200_000_u64, 1..50_000_usize);
    let modes = prop::sample::select(vec![0, 1, 3, 16, 17]);
    prop_oneof![
        2 => path.clone().prop_map(Op::Make),
        2 => path.clone().prop_map(Op::Mkdir),
        1 => (path.clone(), path.clone()).prop_map(|(to, at)| Op::Symlink(to, at)),
        1 => (path.clone(), path.clone()).prop_map(|(from, to)| Op::Link(from, to)),
        3 => (path.clone(), path.clone(), 0..3_u32).prop_map(|(from, to, how)| Op::Rename(from, to, how)),
        2 => path.clone().prop_map(Op::Unlink),
        1 => path.clone().prop_map(Op::Rmdir),
        1 => (path.clone(), 0..0o1000_u32).prop_map(|(path, mode)| Op::Chmod(path, mode)),
        2 => path.clone().prop_map(Op::Stat),
        1 => (path.clone(), at.clone()).prop_map(|(path, size)| Op::Truncate(path, size)),
        6 => (slot.clone(), path, any::<bool>(), any::<bool>())
            .prop_map(|(slot, path, create, append)| Op::Open { slot, path, create, append }),
        1 => slot.clone().prop_map(Op::Close),
        6 => (slot.clone(), at.clone(), len.clone()).prop_map(|(slot, at, len)| Op::Write { slot, at, len }),
        4 => (slot.clone(), at.clone(), len).prop_map(|(slot, at, len)| Op::Read { slot, at, len }),
        1 => (slot.clone(), at.clone()).prop_map(|(slot, size)| Op::Cut(slot, size)),
        2 => (slot.clone(), at.clone(), at, modes)
            .prop_map(|(slot, at, len, mode)| Op::Allocate { slot, at, len: len + 1, mode }),
        1 => slot.prop_map(Op::Sync),
    ]
}

/// A folder and its open files.
struct Side {
    home: PathBuf,
    open: [Option<File>; SLOTS],
}

/// The result of an operation: values, or an error number.
type Said = Result<Vec<u64>, Option<i32>>;

impl Side {
    fn new(home: PathBuf) -> Self {
        Self { home, open: [const { None }; SLOTS] }
    }

    fn at(&self, path: usize) -> PathBuf {
        self.home.join(PATHS[path])
    }

    fn slot(&self, slot: usize) -> io::Result<&File> {
        self.open[slot].as_ref().ok_or_else(|| io::Error::from_raw_os_error(9))
    }

    fn apply(&mut self, op: &Op, step: usize) -> Said {
        self.try_apply(op, step).map_err(|error| error.raw_os_error())
    }

    fn try_apply(&mut self, op: &Op, step: usize) -> io::Result<Vec<u64>> {
        match *op {
            Op::Make(path) => drop(File::create_new(self.at(path))?),
            Op::Mkdir(path) => fs::create_dir(self.at(path))?,
            Op::Symlink(to, at) => symlink(PATHS[to], self.at(at))?,
            Op::Link(from, to) => fs::hard_link(self.at(from), self.at(to))?,
            Op::Rename(from, to, how) => {
                let flags = RenameFlags::from_bits_truncate(how);
                rustix::fs::renameat_with(CWD, self.at(from), CWD, self.at(to), flags)?;
            }
            Op::Unlink(path) => fs::remove_file(self.at(path))?,
            Op::Rmdir(path) => fs::remove_dir(self.at(path))?,
            Op::Chmod(path, mode) => {
                fs::set_permissions(self.at(path), PermissionsExt::from_mode(mode))?;
            }
            Op::Stat(path) => return self.stat(path),
            Op::Truncate(path, size) => {
                OpenOptions::new().write(true).open(self.at(path))?.set_len(size)?;
            }
            Op::Open { slot, path, create, append } => {
                let flags = if append { 0o2000 } else { 0 };
                let mut options = OpenOptions::new();
                options.read(true).write(true).create(create).custom_flags(flags);
                self.open[slot] = Some(options.open(self.at(path))?);
            }
            Op::Close(slot) => self.open[slot] = None,
            Op::Write { slot, at, len } => {
                let byte = u8::try_from(step % 251 + 1).unwrap();
                self.slot(slot)?.write_all_at(&vec![byte; len], at)?;
            }
            Op::Read { slot, at, len } => return self.read(slot, at, len),
            Op::Cut(slot, size) => self.slot(slot)?.set_len(size)?,
            Op::Allocate { slot, at, len, mode } => {
                let mode = FallocateFlags::from_bits_retain(mode);
                rustix::fs::fallocate(self.slot(slot)?, mode, at, len)?;
            }
            Op::Sync(slot) => self.slot(slot)?.sync_data()?,
        }
        Ok(Vec::new())
    }

    fn stat(&self, path: usize) -> io::Result<Vec<u64>> {
        let stat = fs::symlink_metadata(self.at(path))?;
        let size = if stat.is_dir() { 0 } else { stat.len() };
        Ok(vec![u64::from(stat.mode()), stat.nlink(), size])
    }

    fn read(&self, slot: usize, at: u64, len: usize) -> io::Result<Vec<u64>> {
        let mut bytes = vec![0; len];
        let read = self.slot(slot)?.read_at(&mut bytes, at)?;
        Ok(bytes[..read].iter().map(|byte| u64::from(*byte)).collect())
    }
}

/// Returns all entries of a folder with kind, link count and bytes.
fn tree(home: &Path) -> BTreeMap<PathBuf, (u32, u64, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let mut folders = vec![home.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let stat = fs::symlink_metadata(&path).unwrap();
            let bytes = if stat.is_dir() {
                folders.push(path.clone());
                Vec::new()
            } else if stat.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else {
                fs::read(&path).unwrap()
            };
            let inside = path.strip_prefix(home).unwrap().to_owned();
            all.insert(inside, (stat.mode(), stat.nlink(), bytes));
        }
    }
    all
}

fn sync_all(home: &Path) {
    for path in tree(home).keys() {
        let path = home.join(path);
        if fs::symlink_metadata(&path).unwrap().is_file() {
            File::open(path).unwrap().sync_all().unwrap();
        }
    }
}

/// Returns the space of the backing files.
fn taken(backing: &Path) -> BTreeMap<FileId, Space> {
    let mut all = BTreeMap::new();
    let mut folders = vec![backing.to_owned()];
    let mut seen = HashSet::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let stat = fs::symlink_metadata(&path).unwrap();
            if stat.is_dir() {
                folders.push(path);
            } else if stat.is_file() && seen.insert(stat.ino()) {
                let file = FileId { dir: DirId(0), inode: stat.ino() };
                all.insert(file, Space { size: stat.len(), allocated: stat.blocks() * 512 });
            }
        }
    }
    all
}

fn check(ops: &[Op]) -> Result<(), TestCaseError> {
    let notes = Arc::new(Notes::default());
    let Some(bed) = Bed::new(Arc::clone(&notes) as _, Options::default()) else { return Ok(()) };
    let plain = tempfile::tempdir().unwrap();
    let mut mounted = Side::new(bed.a(""));
    let mut reference = Side::new(plain.path().to_owned());
    for (step, op) in ops.iter().enumerate() {
        let (ours, theirs) = (mounted.apply(op, step), reference.apply(op, step));
        prop_assert!(
            ours == theirs,
            "step {step}, {op:?}: {:?}, not {:?}",
            short(&ours),
            short(&theirs)
        );
    }
    mounted.open = [const { None }; SLOTS];
    // Delayed allocation makes sizes final only at the sync.
    sync_all(&bed.a(""));
    prop_assert_eq!(tree(&bed.a("")), tree(plain.path()));
    let home = bed.unmount();
    let backing = home.path().join("backing/a");
    prop_assert_eq!(tree(&backing), tree(plain.path()));
    let counted: BTreeMap<_, _> = notes.files().into_iter().collect();
    prop_assert_eq!(counted, taken(&backing));
    Ok(())
}

fn short(said: &Said) -> Result<Vec<u64>, Option<i32>> {
    said.clone().map(|mut found| {
        found.truncate(8);
        found
    })
}

#[test]
fn a_mount_behaves_like_a_folder() {
    if !common::can_mount() {
        return;
    }
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    let cases = cases.unwrap_or(40);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    runner.run(&prop::collection::vec(op(), 1..120), |ops| check(&ops)).unwrap();
}
