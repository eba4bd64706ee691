//! Stripes on raw volumes, reached as NBD exports.
//!
//! A volume has a label and regions. Frames go through the event loop of the
//! backup; header, manifest, footer and label are written here.

use super::lock::{VolumeLock, scope};
use super::{Region, StripeSink};
use crate::cancel::Cancel;
use crate::error::BackupError;
use crate::export::Export;
use crate::format::{BackupId, Identity};
use crate::label::{Entry, LABEL, Label, SLOT, Slots, VolumeId};
use crate::place::{FoundStripe, Place};
use crate::read_at::ReadAt;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_client::{ClientError, Connection, Stop};
use weir_proto::{BlockState, TransmissionFlags};
use weir_units::{Bytes, Instant, Span};
use weir_wall::Clock;

/// The time for removing a stripe that was not finished.
const TIDYING: Span = Span::from_secs(2);
/// The smallest volume that takes backups.
const LEAST: u64 = 2 << 20;

/// A raw volume that is written.
#[derive(Debug)]
struct Volume {
    export: Export,
    size: u64,
    connection: Mutex<Connection>,
    /// Ends the waits of the connection.
    is_cancelled: Arc<AtomicBool>,
    /// The number that its label has or gets.
    id: VolumeId,
    /// No other process of this machine changes the label meanwhile.
    _lock: VolumeLock,
    /// Held until a new volume has its label.
    new: Mutex<Option<VolumeLock>>,
    /// Held while the label is read, changed and written: stripes are removed over connections of
    /// their own, several at the same time.
    label: Mutex<()>,
}

/// A stripe on a raw volume.
#[derive(Debug)]
pub struct RawStripe {
    volume: Arc<Volume>,
    id: BackupId,
    stripe: u8,
    region: Region,
    /// The length of the stripe, once it is closed.
    length: Mutex<u64>,
}

/// The room of a stripe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// The most bytes that it can have.
    pub stripe: u64,
    /// True if a smaller region may suffice, because the contents are compressed.
    pub may_be_less: bool,
}

/// Checks that a volume takes backups, as far as that is quick, and writes nothing.
///
/// # Errors
/// When the volume cannot be written, holds something that is no backup, or is in use.
pub fn check(export: &Export) -> Result<(), BackupError> {
    Volume::open(export, Emptiness::IfQuick).map(drop)
}

/// Reserves regions for stripes on a volume. Where less may do and the volume does not have the
/// whole room, they share what is free in equal parts. What writers of this machine left that have
/// ended in the middle is free.
///
/// # Errors
/// When the volume cannot be written, holds something that is no backup, or has no room.
pub fn reserve(
    export: &Export,
    identity: &Identity,
    stripes: &[u8],
    room: Room,
) -> Result<Vec<RawStripe>, BackupError> {
    let volume = Arc::new(Volume::open(export, Emptiness::Checked)?);
    let mut made = Vec::new();
    let writer = scope();
    volume.change_label(|label| {
        label.remove_abandoned(writer);
        let least = share(label, volume.size, stripes.len() as u64);
        let room = match room.may_be_less && least > 0 {
            true => room.stripe.min(least),
            false => room.stripe,
        };
        for stripe in stripes {
            let entry = Entry {
                id: identity.id,
                stripe: *stripe,
                is_complete: false,
                writer,
                offset: 0,
                length: room,
                created_unix_ms: identity.created_unix_ms,
            };
            made.push(label.reserve(export.name(), volume.size, entry)?);
        }
        Ok(())
    })?;
    let stripe = |entry: Entry| RawStripe {
        volume: Arc::clone(&volume),
        id: entry.id,
        stripe: entry.stripe,
        region: Region { export: export.clone(), base: entry.offset, room: entry.length },
        length: Mutex::new(entry.length),
    };
    Ok(made.into_iter().map(stripe).collect())
}

/// Returns the largest length that `count` regions can have.
fn share(label: &Label, size: u64, count: u64) -> u64 {
    let free = label.free(size);
    let fits = |length: u64| free.iter().map(|(_, own)| own / length.max(1)).sum::<u64>() >= count;
    let (mut least, mut most) = (0, size / SLOT as u64);
    while least < most {
        let middle = least + (most - least).div_ceil(2);
        if fits(middle * SLOT as u64) { least = middle } else { most = middle - 1 }
    }
    least * SLOT as u64
}

/// When a volume without a label is looked at whether it is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Emptiness {
    Checked,
    /// Only if its server says which ranges hold data. Otherwise all of it is read.
    IfQuick,
}

impl Volume {
    fn open(export: &Export, emptiness: Emptiness) -> Result<Self, BackupError> {
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let cancel = export.cancel().with(Arc::clone(&is_cancelled));
        let export = export.clone().with_cancel(&cancel);
        let (mut connection, name) = (export.open_sparse()?, export.name());
        if connection.offers(TransmissionFlags::READ_ONLY) {
            return Err(BackupError::Refused(format!("{name} is read-only; it takes no backup")));
        }
        let size = connection.size().get();
        if size < LEAST {
            return Err(BackupError::Refused(format!(
                "{name} has {}: a volume for backups has {} at least",
                Bytes::new(size),
                Bytes::new(LEAST)
            )));
        }
        let (id, lock, new) = lock(&mut connection, name, &cancel, emptiness)?;
        let (connection, new) = (Mutex::new(connection), Mutex::new(new));
        let label = Mutex::default();
        Ok(Self { size, connection, is_cancelled, id, _lock: lock, new, label, export })
    }

    fn name(&self) -> &str {
        self.export.name()
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn label_lock(&self) -> MutexGuard<'_, ()> {
        self.label.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the label, changes it, and makes the new one durable.
    fn change_label(
        &self,
        change: impl FnOnce(&mut Label) -> Result<(), BackupError>,
    ) -> Result<(), BackupError> {
        let label = self.label_lock();
        change_label(&mut self.connection(), (self.name(), self.id), change)?;
        drop(label);
        self.new.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(())
    }
}

/// Takes the lock of a volume; returns it with the number of the volume. For a volume without a label,
/// returns the lock for those too, which is to be held until it has one.
fn lock(
    connection: &mut Connection,
    name: &str,
    cancel: &Cancel,
    emptiness: Emptiness,
) -> Result<(VolumeId, VolumeLock, Option<VolumeLock>), BackupError> {
    let slots = read_slots(connection, name)?;
    if let Some(id) = slots.newest().and_then(|label| label.volume) {
        return Ok((id, VolumeLock::take(id, name)?, None));
    }
    let is_quick = connection.has_extents();
    if slots.newest().is_none() && (is_quick || emptiness == Emptiness::Checked) {
        check_empty(connection, name)?;
    }
    let new = VolumeLock::take_for_new(cancel)?;
    // Another backup may have been faster.
    let id = read_slots(connection, name)?.newest().and_then(|label| label.volume);
    let id = id.map_or_else(VolumeId::fresh, Ok)?;
    Ok((id, VolumeLock::take(id, name)?, Some(new)))
}

/// Reads a label over a connection, changes it, and makes the new one durable in both places.
fn change_label(
    connection: &mut Connection,
    (name, id): (&str, VolumeId),
    change: impl FnOnce(&mut Label) -> Result<(), BackupError>,
) -> Result<(), BackupError> {
    let failed = BackupError::export(name);
    let slots = read_slots(connection, name)?;
    let before = slots.newest().cloned().unwrap_or_default();
    if before.volume.is_some_and(|own| own != id) {
        return Err(BackupError::Unusable(format!(
            "{name} got another label in the meantime: something else writes there"
        )));
    }
    let mut label = before.clone();
    change(&mut label)?;
    if label == before {
        return Ok(());
    }
    (label.sequence, label.volume) = (label.sequence + 1, Some(id));
    let bytes = label.encode();
    for slot in slots.order() {
        connection.write(slot * SLOT as u64, &bytes).map_err(&failed)?;
        flush(connection).map_err(&failed)?;
    }
    Ok(())
}

/// Reads the label of a volume.
fn read_slots(connection: &mut Connection, name: &str) -> Result<Slots, BackupError> {
    let mut start = [0; LABEL];
    connection.read(0, &mut start).map_err(BackupError::export(name))?;
    let slots = Slots::parse(&start);
    slots.check(name)?;
    Ok(slots)
}

/// Refuses a volume without a label that holds anything but zeros.
fn check_empty(connection: &mut Connection, name: &str) -> Result<(), BackupError> {
    let failed = BackupError::export(name);
    let size = connection.size().get();
    let mut bytes = vec![0; 1 << 20];
    let mut at = 0;
    while at < size {
        let length = u32::try_from((size - at).min(1 << 30)).unwrap_or(1 << 30);
        // Where extents say nothing, all of it is read.
        let extents = match connection.has_extents() {
            true => connection.extents(at, length).map_err(&failed)?,
            false => Vec::new(),
        };
        let mut parts: Vec<(u64, bool)> = extents
            .iter()
            .map(|extent| (extent.length.into(), extent.state.contains(BlockState::ZERO)))
            .collect();
        if parts.is_empty() {
            parts.push((length.into(), false));
        }
        for (length, is_zero) in parts {
            let end = at.saturating_add(length).min(size);
            while at < end && !is_zero {
                let part = usize::try_from(end - at).unwrap_or(usize::MAX).min(bytes.len());
                connection.read(at, &mut bytes[..part]).map_err(&failed)?;
                if bytes[..part].iter().any(|byte| *byte != 0) {
                    return Err(BackupError::Refused(format!(
                        "{name} contains data other than backups; give an empty volume"
                    )));
                }
                at += part as u64;
            }
            at = end;
        }
    }
    Ok(())
}

fn flush(connection: &mut Connection) -> Result<(), ClientError> {
    match connection.flush() {
        // A server without flush keeps nothing back.
        Err(ClientError::NotOffered(_)) => Ok(()),
        flushed => flushed,
    }
}

impl StripeSink for RawStripe {
    fn name(&self) -> String {
        self.volume.name().to_owned()
    }

    fn volume(&self) -> Option<&Region> {
        Some(&self.region)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), BackupError> {
        self.region.check(self.volume.name(), offset, bytes.len() as u64)?;
        let mut connection = self.volume.connection();
        let most = connection.session().block.max_payload() as usize;
        for (at, part) in (0_u64..).zip(bytes.chunks(most)) {
            let offset = self.region.base + offset + at * most as u64;
            connection.write(offset, part).map_err(BackupError::export(self.volume.name()))?;
        }
        Ok(())
    }

    fn sync(&self, length: u64, is_closed: bool) -> Result<(), BackupError> {
        if is_closed {
            *self.length.lock().unwrap_or_else(PoisonError::into_inner) = length;
        }
        flush(&mut self.volume.connection()).map_err(BackupError::export(self.volume.name()))
    }

    fn publish(&self) -> Result<(), BackupError> {
        let length = *self.length.lock().unwrap_or_else(PoisonError::into_inner);
        self.volume.change_label(|label| {
            let own = label.entries.iter_mut().find(|own| {
                (own.id, own.stripe, own.offset) == (self.id, self.stripe, self.region.base)
            });
            let Some(own) = own else {
                return Err(BackupError::Unusable(format!(
                    "the label of {} lost this backup while it was written: something else \
                     writes there",
                    self.volume.name()
                )));
            };
            (own.is_complete, own.length) = (true, length);
            Ok(())
        })
    }

    fn cancel(&self) {
        self.volume.is_cancelled.store(true, Ordering::Relaxed);
    }

    fn discard(&self) -> Result<(), BackupError> {
        // A request may be in flight on the connection of the volume.
        let (clock, end) = (Clock::start(), Instant::ZERO + TIDYING);
        let stop = Stop::new(move || clock.now() >= end);
        let export = &self.volume.export;
        let _label = self.volume.label_lock();
        let removed = Connection::open_until(export.uri(), true, &stop)
            .map_err(BackupError::export(export.name()))
            .and_then(|mut connection| {
                // An entry that stays says that the stripe is incomplete, unless it was published.
                change_label(&mut connection, (export.name(), self.volume.id), |label| {
                    label.entries.retain(|own| (own.id, own.stripe) != (self.id, self.stripe));
                    Ok(())
                })
            });
        removed.map_err(|error| {
            let why = match error {
                BackupError::Interrupted => format!("{} does not answer", export.name()),
                error => error.to_string(),
            };
            BackupError::Failed(format!(
                "stripe {} on {} was not removed: {why}",
                u16::from(self.stripe) + 1,
                export.name()
            ))
        })
    }
}

/// A raw volume as a place of stripes.
#[derive(Debug)]
pub struct RawPlace(Export);

impl RawPlace {
    /// Takes an export.
    #[must_use]
    pub const fn new(export: Export) -> Self {
        Self(export)
    }

    fn bytes(&self, offset: u64, length: u64) -> Result<ExportBytes, BackupError> {
        let connection = self.0.open()?;
        let is_inside =
            offset.checked_add(length).is_some_and(|end| end <= connection.size().get());
        if !is_inside {
            return Err(BackupError::Unusable(format!(
                "the label of {} names bytes beyond its end",
                self.0
            )));
        }
        Ok(ExportBytes { connection, base: offset, length })
    }
}

impl Place for RawPlace {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn list(&mut self) -> Result<Vec<FoundStripe>, BackupError> {
        let mut connection = self.0.open()?;
        if connection.size().get() < LEAST {
            return Ok(Vec::new());
        }
        let slots = read_slots(&mut connection, self.0.name())?;
        let mut found: Vec<FoundStripe> = slots
            .problem(self.0.name())
            .map(|problem| damaged(&self.0, problem))
            .into_iter()
            .collect();
        let label = slots.newest().cloned().unwrap_or_default();
        // A writer within sight of this process that does not hold the lock has ended.
        let ended = scope().filter(|_| label.volume.is_some_and(|id| !VolumeLock::is_taken(id)));
        for own in label.entries {
            let name = format!("{} at {}", self.0, own.offset);
            let locator = Locator::of_entry(&own).to_string();
            let mut bytes = self.bytes(own.offset, own.length)?;
            // A label has the time of the start. A stripe may have been written since, if its writer
            // may be alive.
            let is_dated = own.is_complete || (ended.is_some() && own.writer == ended);
            found.push(FoundStripe {
                named: Some(own.stripe),
                modified_unix_ms: is_dated.then_some(own.created_unix_ms),
                is_temporary: !own.is_complete,
                is_published: own.is_complete,
                ..FoundStripe::inspect(name, locator, &mut bytes)
            });
        }
        // Stripes whose reading was ended look damaged.
        match self.0.cancel().is_set() {
            true => Err(BackupError::Interrupted),
            false => Ok(found),
        }
    }

    fn open(&mut self, stripe: &FoundStripe) -> Result<Box<dyn ReadAt>, BackupError> {
        let Locator { offset, length, .. } = Locator::parse(&stripe.locator)?;
        Ok(Box::new(self.bytes(offset, length)?))
    }

    fn remove(&mut self, stripe: &FoundStripe) -> Result<(), BackupError> {
        let listed = Locator::parse(&stripe.locator)?;
        let volume = Volume::open(&self.0, Emptiness::Checked)?;
        volume.change_label(|label| {
            // Another stripe may have taken the region since.
            label.entries.retain(|own| Locator::of_entry(own) != listed);
            Ok(())
        })
    }
}

/// Returns what stands in a list for a part of the label that cannot be read. Nothing is pruned beside
/// it: what the label says may be older than it was.
fn damaged(export: &Export, problem: String) -> FoundStripe {
    FoundStripe {
        name: format!("the label of {export}"),
        locator: String::new(),
        named: None,
        length: 0,
        modified_unix_ms: None,
        is_temporary: false,
        is_published: true,
        header: None,
        footer: None,
        problem: Some(problem),
    }
}

/// A listed stripe: its region, and the backup and stripe that it belongs to.
#[derive(Debug, PartialEq, Eq)]
struct Locator {
    offset: u64,
    length: u64,
    stripe: u8,
    id: String,
}

impl Locator {
    fn of_entry(entry: &Entry) -> Self {
        let Entry { offset, length, stripe, id, .. } = *entry;
        Self { offset, length, stripe, id: id.to_string() }
    }

    fn parse(locator: &str) -> Result<Self, BackupError> {
        let mut parts = locator.split(' ');
        let mut number = || parts.next()?.parse().ok();
        let read = number().zip(number()).zip(number());
        let read = read.and_then(|((offset, length), stripe)| {
            let id = parts.next()?.to_owned();
            Some(Self { offset, length, stripe: u8::try_from(stripe).ok()?, id })
        });
        read.ok_or_else(|| BackupError::Refused(format!("{locator:?} names no stripe of a volume")))
    }
}

impl fmt::Display for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.offset, self.length, self.stripe, self.id)
    }
}

/// A region of an export.
#[derive(Debug)]
pub struct ExportBytes {
    connection: Connection,
    base: u64,
    length: u64,
}

impl ReadAt for ExportBytes {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let most = self.connection.session().block.max_payload() as usize;
        for (at, part) in (0_u64..).zip(buffer.chunks_mut(most)) {
            let read = self.connection.read(self.base + offset + at * most as u64, part);
            read.map_err(|error| match error {
                ClientError::Stopped => io::ErrorKind::Interrupted.into(),
                error => io::Error::other(error.to_string()),
            })?;
        }
        Ok(())
    }
}
