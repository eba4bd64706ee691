//! Stripes on raw volumes, reached as NBD exports.
//!
//! A volume has a label and regions. Frames go through the event loop of the
//! backup; header, manifest, footer and label are written here.

use super::label::{Entry, Label, SLOT};
use super::lock::VolumeLock;
use super::{Region, StripeSink};
use crate::error::BackupError;
use crate::export::Export;
use crate::format::{BackupId, Identity};
use crate::place::{FoundStripe, Place};
use crate::read_at::ReadAt;
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
    /// No other process of this machine changes the label meanwhile.
    _lock: VolumeLock,
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

/// Reserves regions for stripes on a volume. Where less may do and the volume does not have the
/// whole room, they share what is free in equal parts.
///
/// # Errors
/// When the volume cannot be written, holds something that is no backup, or has no room.
pub fn reserve(
    export: &Export,
    identity: &Identity,
    stripes: &[u8],
    room: Room,
) -> Result<Vec<RawStripe>, BackupError> {
    let volume = Arc::new(Volume::open(export)?);
    let mut made = Vec::new();
    volume.change_label(|label| {
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

impl Volume {
    fn open(export: &Export) -> Result<Self, BackupError> {
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let cancel = export.cancel().with(Arc::clone(&is_cancelled));
        let export = export.clone().with_cancel(&cancel);
        let (connection, name) = (export.open_sparse()?, export.name());
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
        let lock = VolumeLock::take(export.uri(), name)?;
        Ok(Self { size, connection: Mutex::new(connection), is_cancelled, _lock: lock, export })
    }

    fn name(&self) -> &str {
        self.export.name()
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the label, changes it, and makes the new one durable.
    fn change_label(
        &self,
        change: impl FnOnce(&mut Label) -> Result<(), BackupError>,
    ) -> Result<(), BackupError> {
        change_label(&mut self.connection(), self.name(), change)
    }
}

/// Reads a label over a connection, changes it, and makes the new one durable.
fn change_label(
    connection: &mut Connection,
    name: &str,
    change: impl FnOnce(&mut Label) -> Result<(), BackupError>,
) -> Result<(), BackupError> {
    let failed = BackupError::export(name);
    let mut label = match read_label(connection, name)? {
        Some(label) => label,
        None => {
            check_empty(connection, name)?;
            Label::default()
        }
    };
    let before = label.clone();
    change(&mut label)?;
    if label == before {
        return Ok(());
    }
    label.sequence += 1;
    connection.write(label.slot() * SLOT as u64, &label.encode()).map_err(&failed)?;
    flush(connection).map_err(&failed)
}

/// Returns the label of a volume; `None` if it has none.
fn read_label(connection: &mut Connection, name: &str) -> Result<Option<Label>, BackupError> {
    let mut slots = [[0; SLOT]; 2];
    for (at, slot) in (0..).zip(&mut slots) {
        connection.read(at * SLOT as u64, slot).map_err(BackupError::export(name))?;
    }
    let labels = slots.iter().filter_map(Label::parse);
    Ok(labels.max_by_key(|label| label.sequence))
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

    fn discard(&self) {
        // A request may be in flight on the connection of the volume.
        let (clock, end) = (Clock::start(), Instant::ZERO + TIDYING);
        let stop = Stop::new(move || clock.now() >= end);
        let export = &self.volume.export;
        let Ok(mut connection) = Connection::open_until(export.uri(), true, &stop) else { return };
        // An entry that stays says that the stripe is incomplete.
        let _ = change_label(&mut connection, export.name(), |label| {
            label.entries.retain(|own| (own.id, own.stripe) != (self.id, self.stripe));
            Ok(())
        });
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
        let label = read_label(&mut connection, self.0.name())?.unwrap_or_default();
        let mut found = Vec::new();
        for own in label.entries {
            let name = format!("{} at {}", self.0, own.offset);
            let locator = format!("{} {}", own.offset, own.length);
            let mut bytes = self.bytes(own.offset, own.length)?;
            found.push(FoundStripe {
                named: Some(own.stripe),
                // A label has the time of the start. An incomplete stripe may have been written since.
                modified_unix_ms: own.is_complete.then_some(own.created_unix_ms),
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
        let (offset, length) = parse_locator(&stripe.locator)?;
        Ok(Box::new(self.bytes(offset, length)?))
    }

    fn remove(&mut self, stripe: &FoundStripe) -> Result<(), BackupError> {
        let (offset, length) = parse_locator(&stripe.locator)?;
        let volume = Volume::open(&self.0)?;
        volume.change_label(|label| {
            label.entries.retain(|own| (own.offset, own.length) != (offset, length));
            Ok(())
        })
    }
}

fn parse_locator(locator: &str) -> Result<(u64, u64), BackupError> {
    let parts = locator.split_once(' ');
    let numbers = parts.and_then(|(offset, length)| offset.parse().ok().zip(length.parse().ok()));
    numbers.ok_or_else(|| BackupError::Refused(format!("{locator:?} names no region of a volume")))
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
