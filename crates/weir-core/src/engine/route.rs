//! The gates of a host, and the way of a part through them.

use super::types::{Op, narrow};
use crate::gate::{Arrival, Gate, Parts, Passes};
use crate::spec::Place;
use crate::timers::{Alarm, SLOTS, Timers};
use weir_units::Instant;

// A shared gate limits either operations or bytes. Its serving order decides the share of each
// volume; one order for both would leave a part of both rates unused.
pub(super) const UNCACHED_IOPS: usize = 0;
pub(super) const UNCACHED_BYTES: usize = 1;
pub(super) const CACHED_IOPS: usize = 2;
pub(super) const CACHED_BYTES: usize = 3;
pub(super) const LOG: usize = 4;
/// The gates of writes to remote storage, on a host with separate write limits.
pub(super) const WRITE_IOPS: usize = 5;
pub(super) const WRITE_BYTES: usize = 6;

pub(super) const SHARED_GATES: usize = WRITE_BYTES + 1;

const _: () = assert!(SHARED_GATES == SLOTS, "a shared gate sets its alarm at each release");

/// The gate of a volume's disk.
pub(super) const fn disk_gate(volume: usize) -> usize {
    SHARED_GATES + volume
}

/// The gates that a part still has to pass; the lowest bit is the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Route(pub(super) u8);

impl Route {
    pub(super) const LOG: u8 = 1;
    pub(super) const DISK: u8 = 1 << 1;
    pub(super) const UNCACHED_IOPS: u8 = 1 << 2;
    pub(super) const UNCACHED_BYTES: u8 = 1 << 3;
    pub(super) const WRITE_IOPS: u8 = 1 << 4;
    pub(super) const WRITE_BYTES: u8 = 1 << 5;
    pub(super) const CACHED_IOPS: u8 = 1 << 6;
    pub(super) const CACHED_BYTES: u8 = 1 << 7;
    pub(super) const UNCACHED: u8 = Self::UNCACHED_IOPS | Self::UNCACHED_BYTES;
    pub(super) const WRITES: u8 = Self::WRITE_IOPS | Self::WRITE_BYTES;
    pub(super) const CACHED: u8 = Self::CACHED_IOPS | Self::CACHED_BYTES;

    /// Returns the gates between a volume and its place, without the cache's. `has_separate_writes` is
    /// true for a host with separate write limits.
    #[inline]
    pub(super) fn to_disk(place: Place, op: Op, has_separate_writes: bool) -> u8 {
        match place {
            Place::Local => Self::DISK | Self::CACHED,
            Place::Remote if has_separate_writes && op != Op::Read => Self::DISK | Self::WRITES,
            Place::Remote => Self::DISK | Self::UNCACHED,
        }
    }

    /// Takes the next gate of a part of `volume`.
    fn next_gate(&mut self, volume: usize) -> Option<usize> {
        let bit = self.0 & self.0.wrapping_neg();
        self.0 ^= bit;
        match bit {
            0 => None,
            Self::DISK => Some(disk_gate(volume)),
            Self::UNCACHED_IOPS => Some(UNCACHED_IOPS),
            Self::UNCACHED_BYTES => Some(UNCACHED_BYTES),
            Self::WRITE_IOPS => Some(WRITE_IOPS),
            Self::WRITE_BYTES => Some(WRITE_BYTES),
            Self::CACHED_IOPS => Some(CACHED_IOPS),
            Self::CACHED_BYTES => Some(CACHED_BYTES),
            _ => Some(LOG),
        }
    }
}

/// A part with the gates that it still has to pass.
pub(super) trait Routed: Passes {
    fn route_mut(&mut self) -> &mut Route;
}

/// Sends a part through its gates until it has to wait. `passed` is told of each gate, with the
/// part. Returns whether the part has passed all of them.
#[inline]
pub(super) fn pass<P>(
    gates: &mut [Gate],
    timers: &mut Timers,
    parts: &mut P,
    (key, now): (usize, Instant),
    mut passed: impl FnMut(usize, &P::Output),
) -> bool
where
    P: Parts<Output: Routed>,
{
    let part = &mut parts[key];
    part.set_at_gate(now);
    let volume = part.volume();
    while let Some(gate) = parts[key].route_mut().next_gate(volume) {
        if gates[gate].is_open() {
            continue;
        }
        match gates[gate].arrive(key, parts, now) {
            Arrival::Passed => passed(gate, &parts[key]),
            Arrival::Queued => return false,
            Arrival::Head(due) => {
                set_alarm(gates, timers, gate, due);
                return false;
            }
        }
    }
    true
}

/// A part that a gate has released.
pub(super) struct Released {
    pub(super) key: usize,
    /// The gate's next part is released at the same instant.
    pub(super) has_more: bool,
}

/// Releases the head of a gate. The next part is in line before the released one is sent on, so
/// that whatever the released one causes at this gate comes behind.
#[inline]
pub(super) fn release(
    gates: &mut [Gate],
    timers: &mut Timers,
    parts: &mut impl Parts,
    (gate, now): (usize, Instant),
) -> Option<Released> {
    let key = gates[gate].release_head(parts)?;
    let next = gates[gate].next_head(parts);
    let waits = next.filter(|due| *due > now);
    if let Some(due) = waits {
        set_alarm(gates, timers, gate, due);
    }
    Some(Released { key, has_more: waits.is_none() })
}

fn set_alarm(gates: &mut [Gate], timers: &mut Timers, gate: usize, due: Instant) {
    gates[gate].head_due = Some(due);
    let alarm = Alarm::Gate(narrow(gate as u64));
    if gate < SHARED_GATES {
        timers.set_slot(gate, due, alarm);
    } else {
        timers.set(due, alarm);
    }
}
