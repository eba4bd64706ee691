//! Files in a mount. A sync is a promise, and so is a replaced file whose folder was synced.

use super::oracle::{self, BLOCK, Block, content};
use super::server::{Served, lost};
use super::system::End;
use super::writers::{self, Progress};
use super::{Campaign, ROUNDS, Tally};
use crate::error::XtaskError;
use crate::interrupt::in_own_group;
use rustix::process::geteuid;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use weir_random::Rng;

/// Blocks of a file.
const BLOCKS: usize = 32;
/// Blocks of a write, at most.
const LONGEST: u64 = 8;

/// A file with its only writer.
struct Owned {
    /// The volume and the name.
    place: (String, String),
    blocks: Vec<Block>,
    rng: Rng,
    stamp: u64,
    writes: u64,
    syncs: u64,
}

/// Returns what this machine lacks.
pub(super) fn lacks() -> Option<&'static str> {
    let can_open = File::options().read(true).write(true).open("/dev/fuse").is_ok();
    let has_helper = || Command::new("fusermount3").arg("-V").output().is_ok();
    let can = can_open && (geteuid().is_root() || has_helper());
    (!can).then_some("it needs /dev/fuse, and root or fusermount3")
}

/// Runs the rounds of a system.
pub(super) fn live(
    rng: &mut Rng,
    campaign: &Campaign<'_>,
    tally: &mut Tally,
) -> Result<String, XtaskError> {
    let volumes = rng.within(1, 3);
    let mut layout = "[host]\nunlimited = true\n".to_owned();
    for at in 0..volumes {
        let limits = match rng.below(3) {
            0 => format!("limits = {{ iops = {} }}", 500 << rng.below(6)),
            _ => "unlimited = true".to_owned(),
        };
        layout += &format!("[[volume]]\nname = \"v{at}\"\nsize = \"64 MiB\"\n{limits}\n");
    }
    let path = campaign.folder.join("layout.toml");
    fs::write(&path, layout).map_err(XtaskError::file("writing", &path))?;
    let mount = Mount::new(campaign.folder)?;
    let mut files: Vec<Owned> =
        (0..rng.within(1, 6)).map(|at| Owned::new(at % volumes, at, rng)).collect();
    for round in 0..ROUNDS {
        if (campaign.is_over)(tally) {
            break;
        }
        let mut served = mount.serve(campaign)?;
        if round == 0 {
            for file in &files {
                file.create(&mount.dir).map_err(|error| lost(&file.failed("creating", &error)))?;
            }
        }
        let end = if rng.chance(10) { End::Stop } else { End::Kill };
        files = load(&mount.dir, &mut served, files, 10 + rng.below(500), end)?;
        if end == End::Stop {
            served.stop()?;
        } else {
            mount.clear();
        }
        tally.ended(end);
        let served = mount.serve(campaign)?;
        for file in &mut files {
            tally.writes += std::mem::take(&mut file.writes);
            tally.flushes += std::mem::take(&mut file.syncs);
            tally.promises += file.check(&mount.dir, end)?;
        }
        served.stop()?;
    }
    Ok(format!("{volumes} volumes, {} files", files.len()))
}

/// Changes the files until there are some answers, and ends the server.
fn load(
    dir: &Path,
    served: &mut Served,
    files: Vec<Owned>,
    answers: u64,
    end: End,
) -> Result<Vec<Owned>, XtaskError> {
    let write = |file: &mut Owned, progress: &Progress| file.write(dir, progress);
    let ended = writers::run(served, files, answers, end, write)?;
    ended.sound(end, |file, error| file.failed("writing", error))
}

impl Owned {
    fn new(volume: u64, at: u64, rng: &mut Rng) -> Self {
        Self {
            place: (format!("v{volume}"), format!("file-{at}")),
            blocks: vec![Block::default(); BLOCKS],
            rng: Rng::new(&[rng.next_u64()]),
            stamp: rng.next_u64() >> 8,
            writes: 0,
            syncs: 0,
        }
    }

    fn folder(&self, dir: &Path) -> PathBuf {
        dir.join(&self.place.0)
    }

    fn path(&self, dir: &Path) -> PathBuf {
        self.folder(dir).join(&self.place.1)
    }

    fn failed(&self, doing: &str, error: &io::Error) -> String {
        format!("{doing} {}/{}: {error}", self.place.0, self.place.1)
    }

    /// Creates the file, durably.
    fn create(&self, dir: &Path) -> io::Result<()> {
        let file = File::create_new(self.path(dir))?;
        file.set_len(BLOCKS as u64 * BLOCK)?;
        file.sync_all()?;
        File::open(self.folder(dir))?.sync_all()
    }

    /// Changes the file until the server is gone.
    fn write(&mut self, dir: &Path, progress: &Progress) -> io::Result<()> {
        let mut file = File::options().read(true).write(true).open(self.path(dir))?;
        while !progress.is_over() {
            match self.rng.below(20) {
                0 => file = self.replace(dir)?,
                1..5 => {
                    if self.rng.flip() {
                        file.sync_all()?
                    } else {
                        file.sync_data()?
                    }
                    self.blocks.iter_mut().for_each(Block::promise);
                    self.syncs += 1;
                }
                _ => {
                    let first = self.rng.index(BLOCKS);
                    let longest = usize::try_from(self.rng.within(1, LONGEST)).unwrap_or(1);
                    let (bytes, sent) = self.give(first, (first + longest).min(BLOCKS));
                    file.write_all_at(&bytes, first as u64 * BLOCK)?;
                    self.answer(sent);
                }
            }
            progress.count();
        }
        Ok(())
    }

    /// Replaces the file by another one with new content.
    fn replace(&mut self, dir: &Path) -> io::Result<File> {
        let new = self.folder(dir).join(format!("{}.new", self.place.1));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&new)?;
        let (bytes, sent) = self.give(0, BLOCKS);
        file.write_all_at(&bytes, 0)?;
        file.sync_all()?;
        fs::rename(&new, self.path(dir))?;
        self.answer(sent);
        File::open(self.folder(dir))?.sync_all()?;
        self.blocks.iter_mut().for_each(Block::promise);
        self.syncs += 1;
        Ok(file)
    }

    /// Returns new content for some blocks, and their numbers.
    fn give(&mut self, first: usize, last: usize) -> (Vec<u8>, Vec<(usize, usize)>) {
        let (mut bytes, mut sent) = (Vec::new(), Vec::new());
        for at in first..last {
            self.stamp += 1;
            sent.push((at, self.blocks[at].give(self.stamp)));
            bytes.extend(content(self.stamp));
        }
        (bytes, sent)
    }

    fn answer(&mut self, sent: Vec<(usize, usize)>) {
        for (at, number) in sent {
            self.blocks[at].answered = number;
        }
        self.writes += 1;
    }

    /// Checks the content. Returns how many blocks had a promise.
    fn check(&mut self, dir: &Path, end: End) -> Result<u64, XtaskError> {
        let file = File::open(self.path(dir)).map_err(|e| lost(&self.failed("opening", &e)))?;
        let mut read = |at: u64, bytes: &mut [u8]| {
            file.read_exact_at(bytes, at).map_err(|error| error.to_string())
        };
        let (volume, name) = &self.place;
        let checked = oracle::check(&mut read, &mut self.blocks, end);
        checked.map_err(|what| lost(&format!("{volume}/{name}: {what}")))
    }
}

/// A mount point, cleared if it is dropped.
pub(super) struct Mount {
    pub(super) dir: PathBuf,
}

impl Mount {
    pub(super) fn new(folder: &Path) -> Result<Self, XtaskError> {
        let dir = folder.join("mount");
        fs::create_dir(&dir).map_err(XtaskError::file("creating", &dir))?;
        Ok(Self { dir })
    }

    /// Serves the layout of a campaign here. The folder of [`Mount::new`] is the campaign's.
    pub(super) fn serve(&self, campaign: &Campaign<'_>) -> Result<Served, XtaskError> {
        Served::start_with(campaign, &["mount", "layout.toml", "mount", "--data", "data"])
    }

    /// Unmounts what a server left that was killed.
    pub(super) fn clear(&self) {
        let unmount = |program: &str, args: &[&str]| {
            let output = in_own_group(program).args(args).arg(&self.dir).output();
            output.is_ok_and(|own| own.status.success())
        };
        // If nothing is mounted, both fail.
        let _ = unmount("umount", &["-l"]) || unmount("fusermount3", &["-u", "-z"]);
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        self.clear();
    }
}
