//! A backup in wall time: the pipeline of [`weir_pipeline`] on exports and stripes.
//!
//! ```text
//!  export --> sockets --> [ buffers ] --> encoder threads --> sockets --> raw volume
//!                             ^                          \--> writer threads --> file, blob
//!                             +------------- free buffers ---------+
//! ```
//!
//! One thread owns the pipeline and all sockets. Sources are NBD exports, so each read passes the
//! limits of the server as those of any client do. Encoders hash, compress and encrypt.
//!
//! | module | holds |
//! |---|---|
//! | `engine` | the event loop |
//! | `links` | its sockets |
//! | `slots` | its buffers |
//! | `workers`, `queue` | its threads |
//! | [`ranges`] | the ranges of the sources that are read |
//! | `read_done` | the parts of frozen sources that were read |
//! | `finish` | the end: manifest, footers, names |

mod engine;
mod finish;
mod links;
mod progress;
mod queue;
pub mod ranges;
mod read_done;
mod slots;
mod workers;

pub use progress::Progress;
pub use ranges::{ChangedRanges, Changes, Extent};
pub use read_done::ReadDone;

use crate::cancel::Cancel;
use crate::error::BackupError;
use crate::export::Export;
use crate::format::{FrameEncoder, Identity, Manifest, ManifestSource, StripeDigest};
use crate::key::Key;
use crate::target::StripeSink;
use engine::Engine;
use ranges::{Piece, REMEMBERED, Walk};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use weir_pipeline::Buffers;
use weir_proto::Uri;
use weir_report::backup::BackupReport;
use weir_units::BytesPerSec;

/// A source of a backup.
pub struct Source {
    /// The export that is read: the frozen view, if there is one.
    export: Export,
    /// Its name and facts for the manifest.
    pub about: ManifestSource,
    /// The ranges that changed, for a differential.
    pub changes: Option<Box<dyn Changes>>,
    /// Takes in which parts of the frozen view were read.
    read_done: Option<Box<dyn ReadDone>>,
    /// Its pieces, if they were counted and are few.
    known: Option<VecDeque<Piece>>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("about", &self.about).finish_non_exhaustive()
    }
}

impl Source {
    /// Takes an export, its facts for the manifest, and, for a differential, what changed.
    #[must_use]
    pub fn new(uri: Uri, about: ManifestSource, changes: Option<Box<dyn Changes>>) -> Self {
        let export = Export::new(&about.name, uri);
        Self { export, about, changes, read_done: None, known: None }
    }

    /// Lets `cancel` end the waits for its server.
    #[must_use]
    pub fn with_cancel(self, cancel: &Cancel) -> Self {
        Self { export: self.export.with_cancel(cancel), ..self }
    }

    /// Has the server of a frozen view told which parts of it were read.
    #[must_use]
    pub fn with_read_done(self, read_done: Option<Box<dyn ReadDone>>) -> Self {
        Self { read_done, ..self }
    }

    /// Checks that a restore to it has ended.
    ///
    /// # Errors
    /// When it carries the mark of an unfinished one, or cannot be read.
    pub fn check(&self) -> Result<(), BackupError> {
        let Some(id) = self.export.unfinished_restore()? else { return Ok(()) };
        Err(BackupError::Refused(format!(
            "{} is not whole: a restore of backup {id} to it did not end. Restore it again with --force, \
             or name the other sources",
            self.about.name
        )))
    }

    /// Counts the ranges that a backup reads in whole blocks of `block` bytes and transfers of up to
    /// `transfer` bytes, without reading them.
    ///
    /// # Errors
    /// When the export cannot be opened, does not say which ranges hold data, or is cancelled.
    pub fn measure(&mut self, block: u64, transfer: u64) -> Result<Extent, BackupError> {
        let cancel = self.export.cancel();
        let walk = Walk::open(&self.export, block, self.changes.as_deref_mut())?;
        let mut all = Extent::default();
        let mut known = VecDeque::new();
        walk.each(&mut |piece| {
            all.add(&piece, transfer);
            if known.len() <= REMEMBERED {
                known.push_back(piece);
            }
            !cancel.is_set()
        })?;
        let is_cancelled = cancel.is_set();
        self.known = Some(known).filter(|known| known.len() <= REMEMBERED);
        if is_cancelled { Err(BackupError::Interrupted) } else { Ok(all) }
    }
}

/// A backup to make.
#[derive(Debug)]
pub struct Job {
    /// The facts that are known before the first read.
    pub identity: Identity,
    /// The key, if it is encrypted.
    pub key: Option<Arc<Key>>,
    /// The level of zstd, if it is compressed.
    pub compression: Option<i32>,
    /// The sources.
    pub sources: Vec<Source>,
    /// The bytes to read of all sources.
    pub bytes: u64,
    /// The stripes, as many as the identity says.
    pub stripes: Vec<Arc<dyn StripeSink>>,
    /// The target that each stripe lies on, for the report.
    pub targets: Vec<String>,
    /// The buffers.
    pub buffers: Buffers,
    /// Data is read in whole blocks of this many bytes.
    pub block: u64,
    /// Threads that hash, compress and encrypt.
    pub encoders: u32,
    /// The most bytes to read per second.
    pub limit: Option<BytesPerSec>,
    /// The manifest, without the stripes.
    pub manifest: Manifest,
}

/// A backup that was made.
#[derive(Debug)]
pub struct Finished {
    /// What was counted.
    pub report: BackupReport,
    /// The manifest that every stripe has.
    pub manifest: Manifest,
}

/// Makes a backup. `watch` is called several times per second, and ends the backup by returning
/// false.
///
/// # Errors
/// When a source cannot be read, a stripe cannot be written, or `watch` ended it. All stripes end
/// then, and what was written is removed; [`BackupError::Untidy`] says what could not be.
pub fn run(job: Job, watch: &mut dyn FnMut(&Progress) -> bool) -> Result<Finished, BackupError> {
    let stripes = job.stripes.clone();
    make(job, watch).map_err(|error| undo(error, &stripes))
}

/// Writes the header of each stripe, by which others see that a backup is being made, and on which
/// full backup it builds.
///
/// # Errors
/// When a stripe cannot be written.
pub fn announce(identity: &Identity, stripes: &[Arc<dyn StripeSink>]) -> Result<(), BackupError> {
    identity.check()?;
    let mut numbered = (0..).zip(stripes);
    numbered.try_for_each(|(stripe, sink)| sink.write_at(0, &identity.header(stripe)))
}

/// Removes what was written of stripes after a failure, all at once. Returns the failure, with what
/// could not be removed.
#[must_use]
pub fn undo(cause: BackupError, stripes: &[Arc<dyn StripeSink>]) -> BackupError {
    let left: Vec<String> = std::thread::scope(|scope| {
        let discard = |sink: &'_ Arc<dyn StripeSink>| {
            sink.cancel();
            let sink = Arc::clone(sink);
            scope.spawn(move || sink.discard().err().map(|error| error.to_string()))
        };
        let all: Vec<_> = stripes.iter().map(discard).collect();
        // A thread that panicked has said so.
        all.into_iter().filter_map(|own| own.join().ok().flatten()).collect()
    });
    match left.is_empty() {
        true => cause,
        false => BackupError::Untidy { cause: Box::new(cause), left: left.join("; ") },
    }
}

fn make(job: Job, watch: &mut dyn FnMut(&Progress) -> bool) -> Result<Finished, BackupError> {
    announce(&job.identity, &job.stripes)?;
    let encoder = || FrameEncoder::new(&job.identity, job.compression, job.key.as_ref());
    let encoders: Vec<_> = (0..job.encoders.max(1)).map(|_| encoder()).collect::<Result<_, _>>()?;
    let Job { identity, key, sources, stripes, targets, manifest, .. } = job;
    let (mut exports, mut feeds, mut read_done) = (Vec::new(), Vec::new(), Vec::new());
    for own in sources {
        exports.push(own.export);
        feeds.push((own.changes, own.known));
        read_done.push(own.read_done);
    }
    let setup = engine::Setup {
        sources: &exports,
        stripes: &stripes,
        targets: &targets,
        buffers: job.buffers,
        block: job.block,
        bytes: job.bytes,
        limit: job.limit,
        name: identity.name.clone(),
    };
    let mut engine = Engine::new(&setup, (feeds, read_done), encoders)?;
    let driven = engine.drive(watch);
    if driven.is_err() {
        // The threads of the other stripes may be in long writes.
        stripes.iter().for_each(|sink| sink.cancel());
    }
    let digests: Vec<StripeDigest> = driven?;
    let report = engine.report();
    drop(engine);
    let manifest = finish::finish(&identity, key.as_deref(), &stripes, &digests, manifest)?;
    Ok(Finished { report, manifest })
}

#[cfg(test)]
mod tests;
