//! Requests that are admitted when they arrive.
//!
//! Where no limit is shared and no cache is on, a request waits only at the gates of its disks.
//! They serve in order of arrival, so nothing that comes later changes an admission. If limits do
//! not change either, the completion of a request is known when it arrives. The engine then sets
//! one alarm for a request, however many pieces a stripe cuts it into, instead of two for each.
//!
//! ```text
//!   piece by piece:  arrive --> gate's alarm --> medium's alarm --> count     (for each piece)
//!   ahead:           arrive, admit and draw each piece --> one alarm --> count them
//! ```
//!
//! The figures are the same to the nanosecond; a property test compares the two.

use super::types::{Completion, DeviceId, Event, Op, Request, Totals};
use super::{Engine, Volume, disk_gate, narrow};
use crate::gate::{AHEAD_METERS, Gate};
use crate::spec::{CacheMode, DeviceSpec, GateLimits, HostSpec, Place, SpecError};
use crate::stripe;
use crate::timers::Alarm;
use crate::waits::Waits;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use weir_units::{Instant, Span};

/// The requests of a host that admits ahead.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// In order of arrival; `None` are done.
    requests: VecDeque<Option<Planned>>,
    /// The number of the first of them.
    first: u32,
    busy: Vec<Busy>,
    /// Tables of pieces for the next requests.
    spare: Vec<Vec<Piece>>,
}

impl Ahead {
    pub(super) fn tags(&self) -> impl Iterator<Item = u64> + '_ {
        self.requests.iter().flatten().map(|request| request.tag)
    }

    /// Keeps a request until it is done; returns its number.
    fn keep(&mut self, request: Planned) -> u32 {
        let number = self.first.wrapping_add(narrow(self.requests.len() as u64)) & Alarm::INDEX;
        self.requests.push_back(Some(request));
        number
    }

    fn take(&mut self, number: u32) -> Option<Planned> {
        let at = number.wrapping_sub(self.first) & Alarm::INDEX;
        let request = self.requests.get_mut(at as usize)?.take();
        while let Some(None) = self.requests.front() {
            self.requests.pop_front();
            self.first = (self.first + 1) & Alarm::INDEX;
        }
        request
    }
}

/// A request with its completion.
#[derive(Debug)]
struct Planned {
    tag: u64,
    device: DeviceId,
    op: Op,
    len: u64,
    arrived: Instant,
    /// The piece that is done last.
    last: usize,
    pieces: Vec<Piece>,
}

/// A request on one disk.
#[derive(Debug, Clone, Copy)]
struct Piece {
    done: Instant,
    medium: Span,
    waits: [Span; AHEAD_METERS],
    volume: u32,
    len: u32,
    operations: u32,
    is_counted: bool,
}

impl Piece {
    fn admitted(&self) -> u64 {
        self.done.nanos() - self.medium.nanos()
    }

    fn count(&self, op: Op, gate: &Gate, totals: &mut Totals) {
        let len = u64::from(self.len);
        match op {
            Op::Read => {
                totals.reads += 1;
                totals.read_bytes += len;
            }
            Op::Write | Op::WriteThrough => {
                totals.writes += 1;
                totals.write_bytes += len;
            }
            Op::Discard => totals.discards += 1,
            Op::Flush => {}
        }
        totals.counted += u64::from(self.operations);
        totals.medium += self.medium;
        self.charge(gate, &mut totals.waits);
    }

    fn charge(&self, gate: &Gate, waits: &mut Waits) {
        for (cap, wait) in gate.caps().zip(self.waits) {
            waits.charge(cap, wait);
        }
    }
}

/// The time that a volume is busy.
#[derive(Debug, Clone, Copy, Default)]
struct Busy {
    /// Of all periods but the last.
    before: Span,
    /// The last period.
    start: Instant,
    end: Instant,
    /// The last completion that is counted.
    counted: Instant,
}

impl Busy {
    fn add(&mut self, arrived: Instant, done: Instant) {
        if arrived > self.end {
            self.before += self.end - self.start;
            self.start = arrived;
        }
        self.end = self.end.max(done);
    }

    fn count(&mut self, done: Instant) {
        self.counted = self.counted.max(done);
    }

    fn total(&self) -> Span {
        self.before + (self.counted - self.start)
    }
}

/// The parts of the engine that are needed to split a request.
struct Planner<'a> {
    volumes: &'a [Volume],
    gates: &'a mut [Gate],
    busy: &'a mut [Busy],
    pieces: &'a mut Vec<Piece>,
    serial: &'a mut u64,
    seed: u64,
    op: Op,
    now: Instant,
    last: usize,
}

impl Planner<'_> {
    #[inline]
    fn add(&mut self, volume: usize, len: u64) {
        *self.serial += 1;
        let spec = &self.volumes[volume].spec;
        let (latency, operations, bytes) = match (self.op, spec.limits.io_unit) {
            (Op::Flush, _) => {
                return self.push(volume, 0, 0, (self.now, Span::ZERO), <_>::default());
            }
            (Op::Discard, _) => (&spec.medium.write, 1, 0),
            (op, unit) => {
                let latency = if op == Op::Read { &spec.medium.read } else { &spec.medium.write };
                // Most pieces are one operation, and a division takes long.
                let one = unit.is_none_or(|unit| len <= unit.get());
                let operations = unit.filter(|_| !one).map_or(1, |unit| len.div_ceil(unit.get()));
                (latency, operations, len)
            }
        };
        let gate = &mut self.gates[disk_gate(volume)];
        let (admitted, waits) = gate.admit_ahead(self.now, operations, bytes);
        let medium = latency.draw(self.seed, *self.serial, bytes);
        self.push(volume, len, operations, (admitted, medium), waits);
    }

    #[inline]
    fn push(
        &mut self,
        volume: usize,
        len: u64,
        operations: u64,
        (admitted, medium): (Instant, Span),
        waits: [Span; AHEAD_METERS],
    ) {
        let piece = Piece {
            done: admitted + medium,
            medium,
            waits,
            volume: narrow(volume as u64),
            len: narrow(len),
            operations: narrow(operations),
            is_counted: false,
        };
        self.busy[volume].add(self.now, piece.done);
        // The last admitted one among those that complete at the same time.
        let last = self.pieces.get(self.last);
        if last.is_none_or(|l| (l.done, l.admitted()) <= (piece.done, piece.admitted())) {
            self.last = self.pieces.len();
        }
        self.pieces.push(piece);
    }
}

impl Engine {
    /// Compiles `spec` for a driver that gives no commands: limits, sizes and cache modes stay,
    /// no volume is added or removed, and the host does not crash. If all limits are those of
    /// disks that do not burst, and there is no cache, requests are admitted when they arrive;
    /// a striped request then costs little more than one that is not.
    ///
    /// The completions are the same as of [`Engine::new`]. [`poll_deadline`](Self::poll_deadline)
    /// tells of completions only, and [`totals`](Self::totals) needs
    /// [`settle_totals`](Self::settle_totals) first.
    ///
    /// Commands to an engine that admits ahead panic.
    ///
    /// # Errors
    ///
    /// [`SpecError`] if a device or a cache mode does not fit the rest.
    pub fn with_fixed_limits(spec: HostSpec) -> Result<Self, SpecError> {
        let can = can_admit_ahead(&spec);
        let busy = alloc::vec![Busy::default(); spec.volumes.len()];
        let engine = Self::new(spec)?;
        Ok(Self { ahead: can.then(|| Ahead { busy, ..Ahead::default() }), ..engine })
    }

    /// Counts all that is done until `now`, which must not be later than the driver has come to.
    /// An engine from [`Engine::new`] has counted it already.
    pub fn settle_totals(&mut self, now: Instant) {
        let Self { ahead: Some(ahead), gates, volumes, .. } = self else { return };
        for request in ahead.requests.iter_mut().flatten() {
            let due = |piece: &&mut Piece| piece.done <= now && !piece.is_counted;
            for piece in request.pieces.iter_mut().filter(due) {
                let volume = piece.volume as usize;
                let gate = &gates[disk_gate(volume)];
                piece.count(request.op, gate, &mut volumes[volume].totals);
                ahead.busy[volume].count(piece.done);
                piece.is_counted = true;
            }
        }
        for (volume, busy) in volumes.iter_mut().zip(&ahead.busy) {
            volume.totals.busy = busy.total();
        }
    }

    /// Checks that the driver of fixed limits keeps its word.
    pub(super) fn assert_not_fixed(&self) {
        assert!(self.ahead.is_none(), "a host with fixed limits takes no commands");
    }

    /// Plans a request, which is sound, to its end.
    pub(super) fn admit_ahead(&mut self, request: &Request, now: Instant) {
        let Self { devices, volumes, gates, ahead: Some(ahead), serial, .. } = self else { return };
        let Request { tag, device, op, offset, len } = *request;
        let mut pieces = ahead.spare.pop().unwrap_or_default();
        let mut planner = Planner {
            volumes,
            gates,
            busy: &mut ahead.busy,
            pieces: &mut pieces,
            serial,
            seed: self.seed,
            op,
            now,
            last: 0,
        };
        let mut whole = len;
        match &devices[device.0] {
            DeviceSpec::Volume(volume) => {
                whole = if op == Op::Flush { 0 } else { len };
                planner.add(*volume, whole);
            }
            DeviceSpec::Stripe { columns, .. } if op == Op::Flush => {
                columns.iter().for_each(|volume| planner.add(*volume, 0));
            }
            // A discard covers one range of a column, so it is one operation.
            DeviceSpec::Stripe { unit, columns } if op == Op::Discard => {
                for (column, volume) in columns.iter().enumerate() {
                    let range =
                        stripe::column_range(unit.get(), columns.len(), column, offset, len);
                    range.into_iter().for_each(|(_, len)| planner.add(*volume, len));
                }
            }
            DeviceSpec::Stripe { unit, columns } => {
                for piece in stripe::pieces(unit.get(), columns.len(), offset, len) {
                    planner.add(columns[piece.column], piece.len);
                }
            }
        }
        let last = planner.last;
        let Piece { done, medium, .. } = pieces[last];
        let planned = Planned { tag, device, op, len: whole, arrived: now, last, pieces };
        if done <= now {
            self.complete_ahead(planned, now);
            return;
        }
        let number = ahead.keep(planned);
        // Alarms of media are set at admission. The longer one is of the earlier admission.
        let order = u32::MAX - u32::try_from(medium.nanos()).unwrap_or(u32::MAX);
        self.timers.set_in_order(done, order, Alarm::Ahead(number));
    }

    pub(super) fn finish_ahead(&mut self, number: u32, now: Instant) {
        let request = self.ahead.as_mut().and_then(|ahead| ahead.take(number));
        if let Some(request) = request {
            self.complete_ahead(request, now);
        }
    }

    fn complete_ahead(&mut self, request: Planned, now: Instant) {
        let Self { ahead: Some(ahead), gates, volumes, events, .. } = self else { return };
        let Planned { tag, device, op, len, arrived, last, mut pieces } = request;
        for piece in pieces.iter().filter(|piece| !piece.is_counted) {
            let volume = piece.volume as usize;
            piece.count(op, &gates[disk_gate(volume)], &mut volumes[volume].totals);
            ahead.busy[volume].count(piece.done);
        }
        let (piece, mut waits) = (pieces[last], Waits::default());
        piece.charge(&gates[disk_gate(piece.volume as usize)], &mut waits);
        pieces.clear();
        ahead.spare.push(pieces);
        let (at, medium) = (now, piece.medium);
        let completion =
            Completion { tag, device, op, len, arrived, at, waits, medium, hit: false };
        events.push_back(Event::Completed(completion));
    }
}

/// Returns whether requests wait only at disks that do not burst.
fn can_admit_ahead(spec: &HostSpec) -> bool {
    let open = GateLimits::default();
    let bursts = |limits: &GateLimits| {
        [limits.iops, limits.bytes].iter().flatten().any(|limit| limit.burst.is_some())
    };
    spec.volumes.iter().all(|volume| {
        let host = match volume.place {
            Place::Remote => &spec.uncached,
            Place::Local => &spec.cached,
        };
        *host == open
            && volume.cache == CacheMode::None
            && !(volume.log && spec.log_rate.is_some())
            && !bursts(&volume.limits.gate)
    })
}
