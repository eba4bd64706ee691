//! Verification: reads a whole backup to find out if it can be restored, and writes nothing.

use crate::assemble::{Assembly, StripeInput};
use crate::damage::Damage;
use crate::error::BackupError;
use crate::format::{BackupId, FrameHeader, Identity, Manifest};
use crate::key::Keys;
use crate::walk::FrameSink;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The most damages of a stripe that are listed one by one.
pub const MAX_LISTED: usize = 1000;

/// How far a restore has come with one of its targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// Its first bytes are being written: it is as before, or as after.
    Unknown,
    /// It begins with the mark of an unfinished restore.
    Begun,
    /// It is complete and durable.
    Whole,
}

/// How far a long operation has come, and whether it is to end. Threads share it.
#[derive(Debug, Default)]
pub struct Watch {
    passed: AtomicU64,
    is_stopped: AtomicBool,
    /// The targets of a restore that were written to, by their names.
    reached: Mutex<BTreeMap<String, Reached>>,
}

impl Watch {
    /// Returns the bytes of stripes that were read.
    #[must_use]
    pub fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }

    /// Ends the operation at the next frame of each stripe.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Returns how far a restore has come with a target; `None` if nothing was written to it.
    #[must_use]
    pub fn reached(&self, target: &str) -> Option<Reached> {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner).get(target).copied()
    }

    pub(crate) fn reach(&self, target: &str, reached: Reached) {
        let mut all = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(target.to_owned(), reached);
    }

    /// Takes back that a target was written to.
    pub(crate) fn forget(&self, target: &str) {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner).remove(target);
    }

    pub(crate) fn pass(&self, bytes: u64) -> Result<(), BackupError> {
        self.passed.fetch_add(bytes, Ordering::Relaxed);
        match self.is_stopped.load(Ordering::Relaxed) {
            true => Err(BackupError::Interrupted),
            false => Ok(()),
        }
    }
}

/// Frames and damage, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sound frames.
    pub frames: u64,
    /// The bytes of the sources in them.
    pub raw_bytes: u64,
    /// Frames that are lost.
    pub lost_frames: u64,
    /// The damage, up to [`MAX_LISTED`].
    pub damage: Vec<Damage>,
    /// The number of damages that are not listed.
    pub unlisted: u64,
    /// True if damage loses data.
    pub is_lossy: bool,
}

impl Counts {
    pub(crate) fn add_damage(&mut self, damage: Damage) {
        self.lost_frames = self.lost_frames.saturating_add(damage.lost_frames());
        self.is_lossy |= damage.loses_data();
        if self.damage.len() < MAX_LISTED {
            self.damage.push(damage);
        } else {
            self.unlisted += 1;
        }
    }

    /// Adds those of another stripe.
    pub(crate) fn add(&mut self, other: Self) {
        self.frames = self.frames.saturating_add(other.frames);
        self.raw_bytes = self.raw_bytes.saturating_add(other.raw_bytes);
        self.lost_frames = self.lost_frames.saturating_add(other.lost_frames);
        self.damage.extend(other.damage);
        self.unlisted += other.unlisted;
        self.is_lossy |= other.is_lossy;
    }
}

/// The result of a verification.
#[derive(Debug)]
pub struct Verified {
    /// The backup.
    pub identity: Identity,
    /// Its description, if a stripe has a sound one.
    pub manifest: Option<Manifest>,
    /// The stripes that are there: their number from 0, and their name.
    pub stripes: Vec<(usize, String)>,
    /// The results.
    pub counts: Counts,
    /// True if the contents were checked; `false` for an encrypted backup without its key, of
    /// which only the stored bytes were.
    pub is_decrypted: bool,
}

impl Verified {
    /// Returns whether everything is as it was written.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.counts.damage.is_empty() && self.manifest.is_some()
    }

    /// Returns whether a restore gives all contents, whatever else is damaged.
    #[must_use]
    pub const fn is_restorable(&self) -> bool {
        !self.counts.is_lossy && self.manifest.is_some()
    }
}

/// Reads a whole backup and names whatever is damaged.
///
/// # Errors
/// When there is no backup in the inputs, for another version of the format, for a wrong key,
/// and when `watch` ends it. Damage is no error.
pub fn verify(
    inputs: Vec<StripeInput>,
    id: Option<BackupId>,
    keys: Option<&Keys>,
    watch: &Watch,
) -> Result<Verified, BackupError> {
    verify_assembly(Assembly::new(inputs, id, keys)?, watch)
}

/// Reads all frames of a backup whose stripes are known.
///
/// # Errors
/// When `watch` ends it.
pub fn verify_assembly(mut assembly: Assembly, watch: &Watch) -> Result<Verified, BackupError> {
    let sinks = assembly.walk(|_| Ok(Check { counts: Counts::default(), watch }))?;
    let mut counts = Counts::default();
    std::mem::take(&mut assembly.damage).into_iter().for_each(|damage| counts.add_damage(damage));
    sinks.into_iter().for_each(|sink| counts.add(sink.counts));
    Ok(Verified {
        stripes: assembly.names().map(|(index, name)| (index, name.to_owned())).collect(),
        is_decrypted: assembly.identity.encryption.is_none() || assembly.key.is_some(),
        identity: assembly.identity,
        manifest: assembly.manifest,
        counts,
    })
}

/// A sink that only counts.
struct Check<'a> {
    counts: Counts,
    watch: &'a Watch,
}

impl fmt::Debug for Check<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.counts.fmt(f)
    }
}

impl FrameSink for Check<'_> {
    fn frame(&mut self, header: &FrameHeader, _: Option<&[u8]>) -> Result<(), BackupError> {
        self.counts.frames += 1;
        self.counts.raw_bytes = self.counts.raw_bytes.saturating_add(header.raw_length);
        Ok(())
    }

    fn damage(&mut self, damage: Damage) -> Result<(), BackupError> {
        self.counts.add_damage(damage);
        Ok(())
    }

    fn passed(&mut self, bytes: u64) -> Result<(), BackupError> {
        self.watch.pass(bytes)
    }
}

#[cfg(test)]
mod tests;
