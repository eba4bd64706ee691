//! A layer's map on a medium: `map`, all of it as it once was, and `log`, what changed
//! since, one frame for each sync.
//!
//! ```text
//! map = frame                         of number 0
//! log = frame(0, no runs) frame(1) frame(2) ...
//!
//! frame, in little-endian numbers:
//!    0  8  "weirmap1" or "weirlog1"
//!    8  8  generation: a log belongs to the map of the same one
//!   16  8  number in its file
//!   24  4  how many runs
//!   28  4  CRC-32 of the frame without these four bytes
//!   32 16  per run: first page, then how many pages, with the state in the upper two
//!          bits: 0 absent, 1 data, 2 zero
//! ```
//!
//! A frame is appended and made durable before the next one, so a crash can cut or tear
//! only the last: one that is not good and has no good one behind it was never
//! acknowledged. With a good one behind it, somebody damaged it.
//!
//! A log that has grown too long is replaced by a map of the next generation, and that
//! map gets a new log. A crash between the two leaves a log of an earlier generation than
//! the map, which has all that it says.
//!
//! After a failed write the contents of the medium are unknown: the next write is then a
//! whole map of a new generation.

use super::ALL_PAGES;
use super::map::Run;
use super::state::State;
use crate::pieces::index;
use crate::{Result, StoreError, disk};
use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const MAP: [u8; 8] = *b"weirmap1";
const LOG: [u8; 8] = *b"weirlog1";
const HEAD: usize = 32;
const CRC_AT: usize = 28;
const RUN: usize = 16;
/// Frames have lengths of a multiple of this.
const GRAIN: usize = 16;
const STATE_SHIFT: u32 = 62;

/// The least length of a log, in bytes, before it is replaced by a map. Those of
/// tests are short.
pub(crate) const LOG_LIMIT: u64 = if cfg!(test) { 400 } else { 4 << 20 };
/// And how many times as long as the map.
const LOG_PER_MAP: u64 = 4;

const HINT: &str = "put the file back from a copy; the layer's bytes of the volume are \
                    untouched, but it is unknown which pages were written";

/// One of the two files of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Map,
    Log,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Map => "map",
            Self::Log => "log",
        }
    }
}

/// The medium of the two files. An operation that returns `Ok` is durable.
pub(crate) trait Medium: Debug + Send {
    /// Returns the name of a file, for messages.
    fn path(&self, part: Part) -> PathBuf;
    /// Returns the file's content.
    fn read(&self, part: Part) -> Result<Vec<u8>>;
    /// Puts `content` in place of the file's, or of none; a crash leaves either.
    fn replace(&mut self, part: Part, content: &[u8]) -> Result<()>;
    /// Puts `frame` at the end of the log, which is at `at`.
    fn append(&mut self, at: u64, frame: &[u8]) -> Result<()>;
    /// Makes durable what was found: a process that was killed may have left it.
    fn settle(&mut self) -> Result<()>;
    /// Keeps nothing open until the next append.
    fn rest(&mut self);
}

/// The place of the next frame.
#[derive(Debug, Clone, Copy)]
struct Tail {
    at: u64,
    number: u64,
}

/// A layer's map and log.
#[derive(Debug)]
pub(crate) struct MapLog {
    medium: Box<dyn Medium>,
    /// The latest that may be on the medium.
    generation: u64,
    map_len: u64,
    /// `None` where the next write has to be a whole map.
    tail: Option<Tail>,
    settled: bool,
}

impl MapLog {
    /// Returns the map of a new layer: nothing was written.
    pub(crate) fn create(medium: Box<dyn Medium>) -> Result<Self> {
        let mut log = Self { medium, generation: 0, map_len: 0, tail: None, settled: true };
        log.write_whole(&[])?;
        Ok(log)
    }

    /// Returns the earlier contents, with runs in the order in which they were written.
    pub(crate) fn open(medium: Box<dyn Medium>) -> Result<(Self, Vec<Run>)> {
        let map = medium.read(Part::Map)?;
        let log = medium.read(Part::Log)?;
        let damaged = |part: Part, what: &str| StoreError::Damaged {
            what: format!("{} {what}", medium.path(part).display()),
            hint: HINT,
        };
        let whole = Frame::parse(&map, MAP).filter(|frame| frame.len == map.len());
        let whole = whole.ok_or_else(|| damaged(Part::Map, "is truncated or was changed"))?;
        let generation = whole.generation;
        let mut runs = whole.runs;
        let tail = match log_after(&log, generation, &mut runs) {
            Ok(tail) => tail,
            Err(what) => return Err(damaged(Part::Log, what)),
        };
        let map_len = map.len() as u64;
        Ok((Self { medium, generation, map_len, tail, settled: false }, runs))
    }

    /// Returns whether the next write must be a whole map.
    pub(crate) fn needs_whole(&self) -> bool {
        self.tail.is_none()
    }

    /// Returns whether the next write should be a whole map.
    pub(crate) fn wants_whole(&self) -> bool {
        let limit = LOG_LIMIT.max(self.map_len.saturating_mul(LOG_PER_MAP));
        self.tail.is_none_or(|tail| tail.at > limit)
    }

    /// Notes a failure: the contents of the medium are unknown.
    pub(crate) fn lose_track(&mut self) {
        self.tail = None;
    }

    /// Makes durable what the files already say.
    pub(crate) fn settle(&mut self) -> Result<()> {
        if !self.settled {
            self.medium.settle()?;
            self.settled = true;
        }
        Ok(())
    }

    /// Makes changes durable; the map must not need to be whole. If it fails, the caller
    /// [loses track](Self::lose_track).
    pub(crate) fn write_changes(&mut self, runs: &[Run]) -> Result<()> {
        let Some(tail) = self.tail else { return self.write_whole(runs) };
        self.settle()?;
        let frame = encode(LOG, self.generation, tail.number, runs);
        self.medium.append(tail.at, &frame)?;
        let at = tail.at + frame.len() as u64;
        self.tail = Some(Tail { at, number: tail.number + 1 });
        Ok(())
    }

    /// Makes all of a map durable. If it fails, the caller [loses track](Self::lose_track).
    pub(crate) fn write_whole(&mut self, runs: &[Run]) -> Result<()> {
        // No map is replaced that often.
        self.generation = self.generation.checked_add(1).ok_or_else(|| StoreError::Damaged {
            what: format!("{} has an impossible generation", self.medium.path(Part::Map).display()),
            hint: HINT,
        })?;
        let map = encode(MAP, self.generation, 0, runs);
        self.medium.replace(Part::Map, &map)?;
        let log = encode(LOG, self.generation, 0, &[]);
        self.medium.replace(Part::Log, &log)?;
        self.map_len = map.len() as u64;
        self.tail = Some(Tail { at: log.len() as u64, number: 1 });
        self.settled = true;
        Ok(())
    }

    /// Keeps nothing open until the next write.
    pub(crate) fn rest(&mut self) {
        self.medium.rest();
    }
}

/// Appends what a log says to `runs`; tells where the next frame goes, if it can.
fn log_after(
    log: &[u8],
    generation: u64,
    runs: &mut Vec<Run>,
) -> std::result::Result<Option<Tail>, &'static str> {
    // It was put there as a whole.
    let head = Frame::parse(log, LOG).filter(|head| head.number == 0 && head.runs.is_empty());
    let head = head.ok_or("is truncated, or was changed at its beginning")?;
    if head.generation > generation {
        return Err("belongs to a later map than the one beside it");
    }
    if head.generation < generation {
        return Ok(None);
    }
    let mut at = head.len;
    let mut number = 1;
    let is_next = |frame: &Frame, number| frame.generation == generation && frame.number == number;
    while let Some(frame) = Frame::parse(&log[at..], LOG).filter(|f| is_next(f, number)) {
        runs.extend(frame.runs);
        at += frame.len;
        number += 1;
    }
    let behind = (at..log.len()).step_by(GRAIN).filter_map(|at| Frame::parse(&log[at..], LOG));
    if behind.into_iter().any(|frame| frame.generation == generation) {
        return Err("was changed before its last entry");
    }
    Ok(Some(Tail { at: at as u64, number }))
}

#[derive(Debug)]
struct Frame {
    generation: u64,
    number: u64,
    runs: Vec<Run>,
    /// Returns its length in bytes.
    len: usize,
}

impl Frame {
    /// Returns the frame that `bytes` begin with, if it is as it was written.
    fn parse(bytes: &[u8], magic: [u8; 8]) -> Option<Self> {
        if !bytes.starts_with(&magic) {
            return None;
        }
        let head = bytes.get(..HEAD)?;
        let len = HEAD + index(u64::from(u32_at(head, 24)?)) * RUN;
        let body = bytes.get(HEAD..len)?;
        if checksum(head, body) != u32_at(head, CRC_AT)? {
            return None;
        }
        let runs = body.chunks_exact(RUN).map(run_of).collect::<Option<Vec<_>>>()?;
        Some(Self { generation: u64_at(head, 8)?, number: u64_at(head, 16)?, runs, len })
    }
}

fn encode(magic: [u8; 8], generation: u64, number: u64, runs: &[Run]) -> Vec<u8> {
    let count = u32::try_from(runs.len()).unwrap_or(u32::MAX);
    assert_eq!(count as usize, runs.len(), "a map of 2^32 runs does not fit in memory");
    let mut frame = Vec::with_capacity(HEAD + runs.len() * RUN);
    frame.extend(magic);
    frame.extend(generation.to_le_bytes());
    frame.extend(number.to_le_bytes());
    frame.extend(count.to_le_bytes());
    frame.extend([0; HEAD - CRC_AT]);
    for Run { pages, mark } in runs {
        let len = pages.end - pages.start;
        frame.extend(pages.start.to_le_bytes());
        frame.extend((len | u64::from(*mark) << STATE_SHIFT).to_le_bytes());
    }
    let crc = checksum(&frame[..HEAD], &frame[HEAD..]);
    frame[CRC_AT..HEAD].copy_from_slice(&crc.to_le_bytes());
    frame
}

/// Corrects the checksums of all frames, so that a fuzzer reaches what they protect.
pub(super) fn repair(file: &mut [u8]) {
    let mut rest = file;
    while rest.len() >= HEAD {
        let count = u32_at(rest, 24).unwrap_or_default();
        let len = HEAD.saturating_add(index(u64::from(count)).saturating_mul(RUN)).min(rest.len());
        let (frame, after) = rest.split_at_mut(len);
        let crc = checksum(&frame[..HEAD], &frame[HEAD..]);
        frame[CRC_AT..HEAD].copy_from_slice(&crc.to_le_bytes());
        rest = after;
    }
}

fn checksum(head: &[u8], body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&head[..CRC_AT]);
    hasher.update(body);
    hasher.finalize()
}

fn run_of(bytes: &[u8]) -> Option<Run> {
    let (start, rest) = (u64_at(bytes, 0)?, u64_at(bytes, 8)?);
    let len = rest & ((1 << STATE_SHIFT) - 1);
    let mark = [State::Absent, State::Data, State::Zero]
        .map(State::mark)
        .into_iter()
        .find(|mark| u64::from(*mark) == rest >> STATE_SHIFT)?;
    let end = start.checked_add(len).filter(|end| *end <= ALL_PAGES)?;
    Some(Run { pages: start..end, mark })
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Files of a folder.
#[derive(Debug)]
pub(crate) struct Files {
    dir: PathBuf,
    log: Option<File>,
}

impl Files {
    pub(crate) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), log: None }
    }

    fn log(&mut self) -> Result<&File> {
        let path = self.path(Part::Log);
        let file = match self.log.take() {
            Some(file) => file,
            None => OpenOptions::new()
                .write(true)
                .open(&path)
                .map_err(|e| StoreError::io("open", &path, e))?,
        };
        Ok(self.log.insert(file))
    }
}

impl Medium for Files {
    fn path(&self, part: Part) -> PathBuf {
        self.dir.join(part.name())
    }

    fn read(&self, part: Part) -> Result<Vec<u8>> {
        let path = self.path(part);
        std::fs::read(&path).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => StoreError::Damaged {
                what: format!(
                    "{} is missing; it recorded which pages were written",
                    path.display()
                ),
                hint: HINT,
            },
            _ => StoreError::io("read", &path, e),
        })
    }

    fn replace(&mut self, part: Part, content: &[u8]) -> Result<()> {
        self.log = None;
        disk::replace_file(&self.dir, part.name(), content)
    }

    fn append(&mut self, at: u64, frame: &[u8]) -> Result<()> {
        let log = self.log()?;
        let done = log.write_all_at(frame, at).and_then(|()| log.sync_data());
        done.map_err(|e| StoreError::io("write", &self.path(Part::Log), e))
    }

    fn settle(&mut self) -> Result<()> {
        let done = self.log()?.sync_data();
        done.map_err(|e| StoreError::io("sync", &self.path(Part::Log), e))?;
        disk::sync_dir(&self.dir)
    }

    fn rest(&mut self) {
        self.log = None;
    }
}
