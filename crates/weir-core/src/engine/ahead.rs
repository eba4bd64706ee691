//! A host whose limits do not change, with one alarm for each request.
//!
//! The completion of a request is known once the gates have admitted all pieces that a stripe cuts
//! it into. If limits do not change, no cache is on and nothing bursts, the engine then sets one
//! alarm for the request instead of one for each piece, and a piece needs little memory.
//!
//! Where no limit is shared either, a request waits only at the gates of its disks. They serve in
//! order of arrival, so nothing that comes later changes an admission, and all is known when a
//! request arrives:
//!
//! ```text
//!   piece by piece:  arrive --> gates' alarms --> medium's alarm --> count     (for each piece)
//!   shared limits:   arrive --> gates' alarms  (for each piece)  --> one alarm --> count them
//!   disks only:      arrive, admit and draw each piece           --> one alarm --> count them
//! ```
//!
//! The figures are the same to the nanosecond; property tests compare them.

use super::merge::Run;
use super::route::{self, Route, disk_gate};
use super::types::{Completion, DeviceId, Op, Request, narrow};
use super::volume::Volume;
use crate::gate::{Gate, Link};
use crate::spec::{CacheMode, DeviceSpec, GateLimits, HostSpec, Medium, Place, VolumeSpec};
use crate::stripe;
use crate::timers::{Alarm, Timers};
use crate::waits::Waits;
use alloc::vec::Vec;
use core::num::NonZeroU64;
use core::ops::Range;
use piece::{HostLimits, Piece, Pieces};
use slab::Slab;
use weir_units::{Instant, Span};

mod piece;

/// The requests of a host that admits ahead.
#[derive(Debug)]
pub(super) struct Ahead {
    volumes: Vec<FixedVolume>,
    requests: Slab<Planned>,
    pieces: Pieces,
    /// Requests wait at gates of the host, too.
    shares_limits: bool,
    serial: u64,
    seed: u64,
}

/// The part of a volume's specification that pieces need, and the time that it is busy.
#[derive(Debug)]
struct FixedVolume {
    medium: Medium,
    io_unit: Option<NonZeroU64>,
    /// The last run of adjacent I/Os, of a volume that merges them.
    run: Option<Run>,
    /// The routes of reads and of all other operations.
    routes: [(Route, HostLimits); 2],
    busy: Busy,
}

/// A request, with its completion as far as it is known.
#[derive(Debug)]
struct Planned {
    tag: u64,
    device: DeviceId,
    op: Op,
    len: u64,
    arrived: Instant,
    first: usize,
    count: usize,
    /// The number of pieces that are not admitted.
    waiting: usize,
    /// The admitted piece that is done last.
    last: usize,
    admitted: Instant,
    done: Instant,
    /// The place of the completion among alarms of the same time.
    order: u32,
}

impl Planned {
    fn range(&self) -> Range<usize> {
        self.first..self.first + self.count
    }
}

/// The time that a volume is busy.
#[derive(Debug, Clone, Copy, Default)]
struct Busy {
    /// The sum of all periods but the last.
    before: Span,
    /// The last period.
    start: Instant,
    end: Instant,
    /// Pieces that are not admitted.
    waiting: u64,
    /// The last completion that is counted.
    counted: Instant,
}

impl Busy {
    fn arrive(&mut self, now: Instant) {
        if self.waiting == 0 && now > self.end {
            self.before += self.end - self.start;
            self.start = now;
        }
        self.waiting += 1;
    }

    fn admit(&mut self, done: Instant) {
        self.waiting -= 1;
        self.end = self.end.max(done);
    }

    fn count(&mut self, done: Instant) {
        self.counted = self.counted.max(done);
    }

    fn total(&self) -> Span {
        self.before + (self.counted - self.start)
    }
}

/// A request whose pieces are added.
struct Arrival {
    number: usize,
    /// The key of the next piece.
    key: usize,
    op: Op,
    now: Instant,
}

/// The gates and alarms of the engine.
pub(super) type Paths<'a> = (&'a mut [Gate], &'a mut Timers);

impl Ahead {
    /// Returns `None` for a host whose requests cannot be admitted ahead.
    pub(super) fn new(spec: &HostSpec) -> Option<Self> {
        let shares_limits = shares_limits(spec)?;
        let has_separate_writes = spec.uncached_writes.is_some();
        let volumes = spec.volumes.iter().map(|volume| FixedVolume {
            medium: volume.medium.clone(),
            io_unit: volume.limits.io_unit,
            run: volume.merges().then(Run::default),
            routes: [Op::Read, Op::Write].map(|op| {
                let route = Route(Route::to_disk(volume.place, op, has_separate_writes));
                (route, HostLimits::new(volume.place, op, has_separate_writes))
            }),
            busy: Busy::default(),
        });
        Some(Self {
            volumes: volumes.collect(),
            requests: Slab::new(),
            pieces: Pieces::default(),
            shares_limits,
            serial: 0,
            seed: spec.seed,
        })
    }

    pub(super) fn tags(&self) -> impl Iterator<Item = u64> + '_ {
        self.requests.iter().map(|(_, request)| request.tag)
    }

    /// Takes a request that comes at `now`, and admits its pieces as far as they need not wait for
    /// others. Returns its number if it is done at once.
    pub(super) fn arrive(
        &mut self,
        mut paths: Paths<'_>,
        spec: &DeviceSpec,
        request: &Request,
        now: Instant,
    ) -> Option<usize> {
        let Request { op, offset, len, .. } = *request;
        let number = self.open(spec, request, now);
        let key = self.requests[number].first;
        let mut arrival = Arrival { number, key, op, now };
        match spec {
            DeviceSpec::Volume(volume) => {
                self.add(&mut paths, &mut arrival, *volume, (offset, len));
            }
            DeviceSpec::Stripe { columns, .. } if op == Op::Flush => {
                for volume in columns {
                    self.add(&mut paths, &mut arrival, *volume, (0, 0));
                }
            }
            // A discard covers one range of a column, so it is one operation.
            DeviceSpec::Stripe { unit, columns } if op == Op::Discard => {
                for (column, volume) in columns.iter().enumerate() {
                    let range =
                        stripe::column_range(unit.get(), columns.len(), column, offset, len);
                    if let Some(range) = range {
                        self.add(&mut paths, &mut arrival, *volume, range);
                    }
                }
            }
            DeviceSpec::Stripe { unit, columns } => {
                for piece in stripe::pieces(unit.get(), columns.len(), offset, len) {
                    let range = (piece.offset, piece.len);
                    self.add(&mut paths, &mut arrival, columns[piece.column], range);
                }
            }
        }
        let planned = &self.requests[number];
        debug_assert_eq!(arrival.key, planned.range().end, "{spec:?} {request:?}");
        (planned.waiting == 0 && planned.done <= now).then_some(number)
    }

    /// Makes room for a request and its pieces; returns its number.
    fn open(&mut self, spec: &DeviceSpec, request: &Request, now: Instant) -> usize {
        let Request { tag, device, op, offset, len } = *request;
        let units = match spec {
            DeviceSpec::Volume(_) => 1,
            DeviceSpec::Stripe { columns, .. } if op == Op::Flush => columns.len() as u64,
            DeviceSpec::Stripe { unit, columns } if op == Op::Discard => {
                stripe::units(unit.get(), offset, len).min(columns.len() as u64)
            }
            DeviceSpec::Stripe { unit, .. } => stripe::units(unit.get(), offset, len),
        };
        let count = narrow(units) as usize;
        let is_one_flush = op == Op::Flush && matches!(spec, DeviceSpec::Volume(_));
        let first = self.pieces.take(count);
        self.requests.insert(Planned {
            tag,
            device,
            op,
            len: if is_one_flush { 0 } else { len },
            arrived: now,
            first,
            count,
            waiting: count,
            last: first,
            admitted: Instant::ZERO,
            done: Instant::ZERO,
            order: 0,
        })
    }

    /// Adds the next piece of an arrival.
    #[inline]
    fn add(
        &mut self,
        (gates, timers): &mut Paths<'_>,
        arrival: &mut Arrival,
        volume: usize,
        (offset, len): (u64, u64),
    ) {
        let Arrival { number, key, op, now } = *arrival;
        arrival.key += 1;
        self.serial += 1;
        let fixed = &mut self.volumes[volume];
        let (operations, bytes) = match (op, fixed.io_unit) {
            (Op::Flush, _) => (0, 0),
            (Op::Discard, _) => {
                if let Some(run) = &mut fixed.run {
                    run.end();
                }
                (1, 0)
            }
            (_, Some(unit)) if fixed.run.is_some() => {
                let is_held = match &fixed.run {
                    Some(run) if !self.shares_limits => run.admitted > now,
                    _ => gates[disk_gate(volume)].is_holding(),
                };
                let run = fixed.run.get_or_insert_default();
                (run.count(unit, (op, offset, len), is_held), len)
            }
            // Most pieces are one operation, and a division takes long.
            (_, Some(unit)) if len > unit.get() => (len.div_ceil(unit.get()), len),
            _ => (1, len),
        };
        fixed.busy.arrive(now);
        let (route, limits) = fixed.routes[usize::from(op != Op::Read)];
        self.pieces[key] = Piece {
            request: narrow(number as u64),
            volume: narrow(volume as u64),
            len: if op == Op::Flush { 0 } else { narrow(len) },
            operations: narrow(operations),
            bytes: narrow(bytes),
            limits,
            route,
            is_counted: false,
            at_gate: now,
            waits: [Span::ZERO; 4],
            link: Link::EMPTY,
            serial: self.serial,
            medium: Span::ZERO,
            done: Instant::FAR,
        };
        if op == Op::Flush {
            let sync = fixed.medium.sync_time(self.seed, self.serial);
            self.admit(timers, key, now, sync);
        } else if !self.shares_limits {
            let admitted = gates[disk_gate(volume)].admit_ahead(&mut self.pieces[key]);
            if let Some(run) = &mut self.volumes[volume].run {
                run.admitted = admitted;
            }
            self.enter_medium(timers, key, admitted);
        } else if route::pass(gates, timers, &mut self.pieces, (key, now), |_, _| ()) {
            self.enter_medium(timers, key, now);
        }
    }

    /// Releases the head of a gate, and those behind it that are admitted at the same instant.
    pub(super) fn release(&mut self, (gates, timers): Paths<'_>, gate: usize, now: Instant) {
        let mut has_more = true;
        while has_more {
            let released = route::release(gates, timers, &mut self.pieces, (gate, now));
            let Some(route::Released { key, has_more: more }) = released else { return };
            if route::pass(gates, timers, &mut self.pieces, (key, now), |_, _| ()) {
                self.enter_medium(timers, key, now);
            }
            has_more = more;
        }
    }

    #[inline]
    fn enter_medium(&mut self, timers: &mut Timers, key: usize, now: Instant) {
        let Piece { request, volume, serial, bytes, .. } = self.pieces[key];
        let medium = &self.volumes[volume as usize].medium;
        let op = self.requests[request as usize].op;
        let latency = match op {
            Op::Read => &medium.read,
            _ => &medium.write,
        };
        let mut time = latency.draw(self.seed, serial, u64::from(bytes));
        if op == Op::WriteThrough {
            time += medium.sync_time(self.seed, serial);
        }
        self.admit(timers, key, now, time);
    }

    /// All gates have admitted a piece at `now`. Sets the alarm of its request with the last one.
    #[inline]
    fn admit(&mut self, timers: &mut Timers, key: usize, now: Instant, medium: Span) {
        let piece = &mut self.pieces[key];
        let done = now + medium;
        (piece.medium, piece.done) = (medium, done);
        self.volumes[piece.volume as usize].busy.admit(done);
        let number = piece.request;
        let request = &mut self.requests[number as usize];
        request.waiting -= 1;
        // Alarms of media are set at admission. At one time, the longer one is of the earlier
        // admission; only with shared limits do pieces of several requests come here in order.
        let order = if self.shares_limits {
            timers.next_order()
        } else {
            u32::MAX - u32::try_from(medium.nanos()).unwrap_or(u32::MAX)
        };
        // Among pieces done at the same time, the last of the range determines the waits, and the
        // last admitted one determines the place of the alarm.
        if (request.done, request.last) <= (done, key) {
            request.last = key;
        }
        if (request.done, request.admitted) <= (done, now) {
            (request.done, request.admitted, request.order) = (done, now, order);
        }
        if request.waiting == 0 && request.done > request.arrived {
            timers.set_in_order(request.done, request.order, Alarm::Ahead(number));
        }
    }

    /// Takes a request that is done, and counts its pieces.
    pub(super) fn take(&mut self, number: usize, volumes: &mut [Volume]) -> Completion {
        let request = self.requests.remove(number);
        let Planned { tag, device, op, len, arrived, last, done, .. } = request;
        for piece in self.pieces.run(request.range()).iter().filter(|piece| !piece.is_counted) {
            let volume = piece.volume as usize;
            piece.count(op, &mut volumes[volume].totals);
            self.volumes[volume].busy.count(piece.done);
        }
        let (piece, mut waits) = (&self.pieces[last], Waits::default());
        piece.charge_to(&mut waits);
        let medium = piece.medium;
        self.pieces.give_back(request.first, request.count);
        Completion { tag, device, op, len, arrived, at: done, waits, medium, hit: false }
    }

    /// Counts the pieces that are done at `now`, of requests that may not be.
    pub(super) fn settle(&mut self, volumes: &mut [Volume], now: Instant) {
        for (_, request) in &self.requests {
            let pieces = self.pieces.run_mut(request.range()).iter_mut();
            for piece in pieces.filter(|piece| piece.done <= now && !piece.is_counted) {
                let volume = piece.volume as usize;
                piece.count(request.op, &mut volumes[volume].totals);
                self.volumes[volume].busy.count(piece.done);
                piece.is_counted = true;
            }
        }
        for (volume, fixed) in volumes.iter_mut().zip(&self.volumes) {
            volume.totals.busy = fixed.busy.total();
        }
    }
}

/// Returns whether requests wait at shared limits, too; `None` if they cannot be admitted ahead.
fn shares_limits(spec: &HostSpec) -> Option<bool> {
    let bursts = |limits: &GateLimits| {
        [limits.iops, limits.bytes].iter().flatten().any(|limit| limit.burst.is_some())
    };
    let mut shares = false;
    for volume in &spec.volumes {
        let host = match volume.place {
            Place::Remote => &spec.uncached,
            Place::Local => &spec.cached,
        };
        let writes = spec.uncached_writes.as_ref().filter(|_| volume.place == Place::Remote);
        shares |=
            [Some(host), writes].into_iter().flatten().any(|own| *own != GateLimits::default());
        let changes = volume.cache != CacheMode::None
            || (volume.log && spec.log_rate.is_some())
            || bursts(&volume.limits.gate)
            || bursts(host);
        if changes {
            return None;
        }
    }
    // Completions of the same instant as an admission have no order of their own.
    let takes_time = |volume: &VolumeSpec| {
        [&volume.medium.read, &volume.medium.write].iter().all(|l| l.shortest() > Span::ZERO)
    };
    (!shares || spec.volumes.iter().all(takes_time)).then_some(shares)
}
