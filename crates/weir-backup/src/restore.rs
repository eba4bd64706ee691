//! Restore: the frames of a backup, checked, into volumes or images.
//!
//! Stripes are read in parallel, and each thread writes what it reads. A frame is checked before
//! it is written. The first [`HEAD`] bytes of each target are written last, after everything else
//! is durable: an interrupted restore leaves volumes that begin with a mark, which no file system
//! and no database takes for whole.
//!
//! | module | holds |
//! |---|---|
//! | `target` | what a target can do |
//! | [`image`], [`nbd`] | raw images, and volumes that a server exports |
//! | `ways` | the connections to the targets |
//! | `heads`, `ending` | the end: the first bytes of the targets, then their names |

mod ending;
mod heads;
pub mod image;
pub mod nbd;
mod target;
mod ways;

pub use crate::mark::HEAD;
pub use target::{Target, TargetIo, Targets};

use crate::assemble::Assembly;
use crate::damage::Damage;
use crate::error::BackupError;
use crate::format::wire::is_zero;
use crate::format::{BackupId, FrameHeader, Kind, ManifestSource};
use crate::verify::{Counts, Reached, Watch};
use crate::walk::FrameSink;
use heads::Heads;
use ways::{Taken, Ways};

/// The unit in which zeros inside of a frame are left out.
const PIECE: usize = 64 << 10;

/// How to restore.
#[derive(Debug, Clone, Copy, Default)]
pub struct RestoreOptions {
    /// Restore what is sound of a damaged backup.
    pub is_damage_skipped: bool,
    /// Read everything back and compare it.
    pub is_proved: bool,
}

/// Marks all targets as being restored, and then makes those that are `used` read as zeros. If one
/// cannot be marked, the others get back what they had.
///
/// # Errors
/// When a target fails, or `watch` ends it. It knows how far each target came.
pub fn prepare(
    targets: &[&dyn Target],
    used: &[&dyn Target],
    id: BackupId,
    watch: &Watch,
) -> Result<(), BackupError> {
    if targets.len() > 1 {
        targets.iter().try_for_each(|target| target.check_aside())?;
    }
    let mut marked = Vec::new();
    for target in targets {
        let begun = watch.pass(0).and_then(|()| {
            watch.reach(target.name(), Reached::Unknown);
            target.begin(id)
        });
        match begun {
            Ok(head) => marked.push((*target, head)),
            Err(cause) => return Err(unmark(cause, &marked, watch)),
        }
        watch.reach(target.name(), Reached::Begun);
    }
    used.iter().try_for_each(|target| target.clear(watch))
}

/// Gives targets back the bytes that their marks replaced. Returns the failure, with the targets that
/// stay marked.
fn unmark(cause: BackupError, marked: &[(&dyn Target, Vec<u8>)], watch: &Watch) -> BackupError {
    let mut left = Vec::new();
    for (target, head) in marked {
        match target.unmark(head) {
            Ok(()) => watch.forget(target.name()),
            Err(error) => left.push(format!("{} stays marked: {error}", target.name())),
        }
    }
    match left.is_empty() {
        true => cause,
        false => BackupError::Untidy { cause: Box::new(cause), left: left.join("; ") },
    }
}

/// Restores a full or copy-only backup, and the differential on it if there is one, to targets
/// that read as zeros, except for their marks. Returns what was found of each backup.
///
/// # Errors
/// When a backup is damaged and damage is not skipped, is encrypted and there is no key, or a
/// target fails. `watch` knows how far each target came.
pub fn restore(
    base: &mut Assembly,
    differential: Option<&mut Assembly>,
    targets: &Targets<'_>,
    options: RestoreOptions,
    watch: &Watch,
) -> Result<Vec<Counts>, BackupError> {
    let heads = Heads::default();
    let mut all = Vec::new();
    let is_zero = base.identity.kind != Kind::Differential;
    let newest = differential.as_deref().unwrap_or(base).manifest.clone();
    let newest = newest.map_or_else(Vec::new, |manifest| manifest.sources);
    for (own, is_zero) in [(Some(base), is_zero), (differential, false)] {
        let Some(own) = own else { continue };
        check(own, options)?;
        let places = places(own, &newest);
        let ways = Ways::new(targets);
        let pass = Pass { targets, places, ways, heads: &heads, is_zero, options, watch };
        all.push(pass.write(own)?);
        if options.is_proved {
            pass.compare(own)?;
        }
    }
    ending::publish(targets, &heads, options.is_proved, watch)?;
    Ok(all)
}

/// Checks before anything is written what can be known by then.
///
/// # Errors
/// When the backup lacks a key, its description, or a stripe.
pub fn check(backup: &Assembly, options: RestoreOptions) -> Result<(), BackupError> {
    let id = backup.identity.id;
    if backup.identity.encryption.is_some() && backup.key.is_none() {
        return Err(BackupError::NoKey { backup: id });
    }
    if backup.manifest.is_none() {
        return Err(BackupError::Unusable(format!(
            "backup {id} is incomplete: no stripe has a footer and a sound manifest, so it was \
             interrupted, or all of its stripes are damaged; nothing is restored"
        )));
    }
    let lossy: Vec<&Damage> = backup.damage.iter().filter(|own| own.loses_data()).collect();
    if lossy.is_empty() || options.is_damage_skipped {
        return Ok(());
    }
    let missing = |own: &&Damage| matches!(own, Damage::Missing { .. });
    // A missing stripe says already that its frames are gone.
    let gone: Vec<Option<u8>> = lossy.iter().copied().filter(missing).map(Damage::stripe).collect();
    let is_said = |own: &Damage| matches!(own, Damage::Lost { .. }) && gone.contains(&own.stripe());
    let mut said: Vec<&Damage> = lossy.into_iter().filter(|own| !is_said(own)).collect();
    let text = |all: &[&Damage]| all.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    if said.iter().all(missing) {
        return Err(BackupError::Unusable(format!(
            "not all stripes of backup {id} are here: {}; name the other places that have stripes of it \
             with --from. If they are lost, --damaged skip restores the rest",
            text(&said)
        )));
    }
    said.sort_by_key(|own| !missing(own));
    Err(BackupError::Unusable(format!(
        "backup {id} is damaged: {}; --damaged skip restores the rest",
        text(&said)
    )))
}

/// Finds each source of a backup among those of the newest one: its index and its size there.
fn places(backup: &Assembly, newest: &[ManifestSource]) -> Vec<Option<(u16, u64)>> {
    let own = backup.manifest.as_ref().map_or(&[][..], |manifest| &manifest.sources);
    let find = |(at, source): (usize, &ManifestSource)| {
        let is_it = |other: &ManifestSource| other.name == source.name;
        let same = newest.get(at).is_some_and(is_it).then_some(at);
        let index = same.or_else(|| newest.iter().position(is_it))?;
        Some((u16::try_from(index).ok()?, newest[index].size))
    };
    own.iter().enumerate().map(find).collect()
}

/// One backup on its way to the targets.
struct Pass<'a> {
    targets: &'a Targets<'a>,
    /// The index and the size that each of its sources has in the newest backup.
    places: Vec<Option<(u16, u64)>>,
    ways: Ways<'a>,
    heads: &'a Heads,
    /// True if the targets read as zeros, so that zeros need not be written.
    is_zero: bool,
    options: RestoreOptions,
    watch: &'a Watch,
}

impl Pass<'_> {
    fn write(&self, backup: &mut Assembly) -> Result<Counts, BackupError> {
        let mut counts = Counts::default();
        backup.damage.iter().for_each(|damage| counts.add_damage(damage.clone()));
        let sinks =
            backup.walk(|stripe| Ok(Writer { pass: self, stripe, counts: Counts::default() }))?;
        self.ways.finish()?;
        sinks.into_iter().for_each(|sink| counts.add(sink.counts));
        Ok(counts)
    }

    fn compare(&self, backup: &mut Assembly) -> Result<(), BackupError> {
        backup.walk(|stripe| Ok(Comparer { pass: self, stripe, buffer: Vec::new() })).map(drop)
    }

    /// Returns the way of a stripe to the target of a source.
    fn way(&self, source: u16, stripe: u8) -> Result<Taken<'_>, BackupError> {
        let way = self.ways.take(source, stripe)?;
        way.ok_or_else(|| BackupError::Failed(format!("source {source} has no target")))
    }

    /// Returns the target of a frame, its index, and the length of the frame in it: a source may
    /// have become smaller since its full backup.
    fn target(&self, header: &FrameHeader) -> Option<(&dyn Target, u16, u64)> {
        let (index, size) = (*self.places.get(usize::from(header.address.source))?)?;
        let target = self.targets.get(usize::from(index)).copied().flatten()?;
        let length = header.raw_length.min(size.saturating_sub(header.address.offset));
        (length > 0).then_some((target, index, length))
    }
}

/// A sink that writes.
struct Writer<'a> {
    pass: &'a Pass<'a>,
    stripe: u8,
    counts: Counts,
}

impl FrameSink for Writer<'_> {
    fn frame(&mut self, header: &FrameHeader, raw: Option<&[u8]>) -> Result<(), BackupError> {
        let Some((_, source, length)) = self.pass.target(header) else { return Ok(()) };
        self.counts.frames += 1;
        self.counts.raw_bytes = self.counts.raw_bytes.saturating_add(header.raw_length);
        let offset = header.address.offset;
        let Some(raw) = raw else {
            if !header.is_zeros {
                return Err(BackupError::NoKey { backup: header.id });
            }
            return self.zeros(source, offset, length);
        };
        let raw = &raw[..usize::try_from(length).unwrap_or(raw.len()).min(raw.len())];
        let kept = self.pass.heads.keep(source, offset, raw);
        if kept == raw.len() {
            return Ok(());
        }
        let mut taken = self.pass.way(source, self.stripe)?;
        let way = taken.way()?;
        if !self.pass.is_zero {
            return way.write(offset + kept as u64, &raw[kept..]);
        }
        // Runs of zeros stay holes.
        let mut run: Option<(usize, usize)> = None;
        for start in (kept..raw.len()).step_by(PIECE) {
            let end = raw.len().min(start + PIECE);
            if is_zero(&raw[start..end]) {
                if let Some((from, to)) = run.take() {
                    way.write(offset + from as u64, &raw[from..to])?;
                }
            } else {
                run = Some((run.map_or(start, |(from, _)| from), end));
            }
        }
        match run {
            Some((from, to)) => way.write(offset + from as u64, &raw[from..to]),
            None => Ok(()),
        }
    }

    fn damage(&mut self, damage: Damage) -> Result<(), BackupError> {
        if damage.loses_data() && !self.pass.options.is_damage_skipped {
            return Err(BackupError::Unusable(format!(
                "the backup is damaged: {damage}; --damaged skip restores the rest"
            )));
        }
        self.counts.add_damage(damage);
        Ok(())
    }

    fn passed(&mut self, bytes: u64) -> Result<(), BackupError> {
        self.pass.watch.pass(bytes)
    }
}

impl Writer<'_> {
    fn zeros(&mut self, source: u16, offset: u64, length: u64) -> Result<(), BackupError> {
        let before = HEAD.saturating_sub(offset).min(length);
        if before > 0 {
            let zeros = vec![0; usize::try_from(before).unwrap_or(0)];
            self.pass.heads.keep(source, offset, &zeros);
        }
        if self.pass.is_zero || before == length {
            return Ok(());
        }
        let mut taken = self.pass.way(source, self.stripe)?;
        taken.way()?.write_zeros(offset + before, length - before)
    }
}

/// A sink that reads back and compares.
struct Comparer<'a> {
    pass: &'a Pass<'a>,
    stripe: u8,
    buffer: Vec<u8>,
}

impl Comparer<'_> {
    fn compare(
        &mut self,
        header: &FrameHeader,
        offset: u64,
        length: usize,
        is_same: impl Fn(&[u8]) -> bool,
    ) -> Result<(), BackupError> {
        let Some((target, source, _)) = self.pass.target(header) else { return Ok(()) };
        self.buffer.resize(length, 0);
        self.pass.way(source, self.stripe)?.way()?.read(offset, &mut self.buffer)?;
        if is_same(&self.buffer) {
            return Ok(());
        }
        Err(BackupError::Failed(format!(
            "{}: {length} bytes at offset {offset} read otherwise than they were written; the \
             restore is not proved",
            target.name()
        )))
    }
}

impl FrameSink for Comparer<'_> {
    fn frame(&mut self, header: &FrameHeader, raw: Option<&[u8]>) -> Result<(), BackupError> {
        let Some((_, source, length)) = self.pass.target(header) else { return Ok(()) };
        let offset = header.address.offset;
        if let Some(raw) = raw {
            let raw = &raw[..usize::try_from(length).unwrap_or(raw.len()).min(raw.len())];
            let (kept, is_kept) = self.pass.heads.is_kept(source, offset, raw);
            if !is_kept {
                return Err(BackupError::Failed(format!(
                    "the start of source {} is not the one of the backup",
                    header.address.source
                )));
            }
            let rest = &raw[kept..];
            return self.compare(header, offset + kept as u64, rest.len(), |own| own == rest);
        }
        let (mut at, end) = (offset.max(HEAD), offset.saturating_add(length));
        while at < end {
            let length = (end - at).min(1 << 20);
            self.compare(header, at, usize::try_from(length).unwrap_or(0), is_zero)?;
            at += length;
            self.pass.watch.pass(0)?;
        }
        Ok(())
    }

    fn damage(&mut self, _: Damage) -> Result<(), BackupError> {
        // It was named when the frames were written.
        Ok(())
    }

    fn passed(&mut self, _: u64) -> Result<(), BackupError> {
        self.pass.watch.pass(0)
    }
}

#[cfg(test)]
mod tests;
