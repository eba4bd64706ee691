//! The data path: split, look into the cache, pass the gates, spend the medium's
//! time, complete.

use super::Engine;
use super::part::{Owner, Parent, Part};
use super::route::{self, Route, disk_gate};
use super::types::{Completion, Event, Op, Request, VolumeId, narrow};
use super::volume::Volume;
use crate::cache::{BlobCache, Brought};
use crate::gate::Link;
use crate::spec::{CacheMode, CacheSpec, DeviceSpec};
use crate::stripe;
use crate::timers::Alarm;
use crate::waits::Waits;
use weir_units::{Instant, Span};

impl Engine {
    /// Sends a request to the volumes that its device is made of.
    pub(super) fn route_to_columns(&mut self, request: &Request, now: Instant) {
        let owner = Owner::Request { tag: request.tag, device: request.device };
        let (volume, offset) = match &self.devices[request.device.0] {
            DeviceSpec::Volume(volume) => (*volume, request.offset),
            DeviceSpec::Stripe { unit, columns } => {
                // Most requests of a database fit one unit of a stripe.
                match one_column(unit.get(), columns, request) {
                    Some(whole) => whole,
                    None => return self.split(request, unit.get(), columns.len(), now),
                }
            }
        };
        let key = self.new_part(volume, request.op, offset, request.len, owner);
        self.start(key, now);
    }

    pub(super) fn new_part(
        &mut self,
        volume: usize,
        op: Op,
        offset: u64,
        len: u64,
        owner: Owner,
    ) -> usize {
        if !matches!(owner, Owner::WriteBack(_)) {
            self.volumes[volume].begin(self.now);
        }
        let Volume { spec, run, .. } = &mut self.volumes[volume];
        let (operations, bytes) = match (op, spec.limits.io_unit) {
            (Op::Flush, _) => (0, 0),
            (Op::Discard, _) => {
                run.end();
                (1, 0)
            }
            (_, None) => (1, len),
            (_, Some(unit)) if spec.merges() => {
                let is_held = self.gates[disk_gate(volume)].is_holding();
                (run.count(unit, (op, offset, len), is_held), len)
            }
            (_, Some(unit)) => (len.div_ceil(unit.get()), len),
        };
        self.serial += 1;
        self.parts.insert(Part {
            volume,
            operations: narrow(operations),
            bytes: narrow(bytes),
            at_gate: self.now,
            waits: Waits::default(),
            link: Link::EMPTY,
            op,
            route: Route(0),
            hit: false,
            passes_cache: false,
            owner,
            offset,
            len: if op == Op::Flush { 0 } else { len },
            arrived: self.now,
            medium: Span::ZERO,
            serial: self.serial,
        })
    }

    fn split(&mut self, request: &Request, unit: u64, width: usize, now: Instant) {
        let Request { device, op, offset, len, .. } = *request;
        let parent = self.parents.insert(Parent {
            tag: request.tag,
            device,
            op,
            len,
            arrived: now,
            parts_left: match op {
                Op::Flush => width as u64,
                Op::Discard => stripe::units(unit, offset, len).min(width as u64),
                Op::Read | Op::Write | Op::WriteThrough => stripe::units(unit, offset, len),
            },
            hit: true,
            last: (Instant::ZERO, 0),
            waits: Waits::default(),
            medium: Span::ZERO,
        });
        let mut send = |column, offset, len| self.start_column(parent, column, offset, len, now);
        match op {
            Op::Flush => (0..width).for_each(|column| send(column, 0, 0)),
            // A discard covers one range of a column, so it is one operation.
            Op::Discard => {
                for column in 0..width {
                    if let Some((start, len)) =
                        stripe::column_range(unit, width, column, offset, len)
                    {
                        send(column, start, len);
                    }
                }
            }
            Op::Read | Op::Write | Op::WriteThrough => stripe::pieces(unit, width, offset, len)
                .for_each(|piece| send(piece.column, piece.offset, piece.len)),
        }
    }

    /// Starts what a column gets of a striped request. The last of them may complete it.
    fn start_column(&mut self, parent: usize, column: usize, offset: u64, len: u64, now: Instant) {
        let Parent { device, op, .. } = self.parents[parent];
        let volume = self.devices[device.0].columns()[column];
        let key = self.new_part(volume, op, offset, len, Owner::Stripe { parent });
        self.start(key, now);
    }

    /// Sends a part on its way, unless the cache lets it wait.
    fn start(&mut self, key: usize, now: Instant) {
        let Part { volume, op, .. } = self.parts[key];
        match op {
            Op::Flush => self.start_flush(key, volume, now),
            Op::Write if self.volumes[volume].spec.cache == CacheMode::ReadWrite => {
                self.start_cached_write(key, now);
            }
            _ => self.send(key, now),
        }
    }

    /// Sends a part on its way; a write that the cache takes has its room there.
    pub(super) fn send(&mut self, key: usize, now: Instant) {
        let part = &self.parts[key];
        let (volume, op, offset, len) = (part.volume, part.op, part.offset, part.len);
        let spec = &self.volumes[volume].spec;
        let to_disk = Route::to_disk(spec.place, op, self.has_separate_writes);
        let mut hit = false;
        let route = match (spec.cache, op) {
            (CacheMode::None, _) => to_disk,
            (CacheMode::ReadWrite, Op::Write) if !part.passes_cache => {
                hit = true;
                Route::CACHED
            }
            (_, Op::Read) => {
                let serves =
                    |(_, blobs): &mut (CacheSpec, BlobCache)| blobs.serves(volume, offset, len);
                hit = self.cache.as_mut().is_some_and(serves);
                if hit { Route::CACHED } else { to_disk | Route::CACHED }
            }
            _ => to_disk | Route::CACHED,
        };
        let logged = spec.log && matches!(op, Op::Write | Op::WriteThrough);
        let route = if logged { route | Route::LOG } else { route };
        if op == Op::Discard {
            self.forget_dirty(volume, offset, len);
        }
        let part = &mut self.parts[key];
        part.route = Route(route);
        part.hit = hit;
        self.proceed(key, now);
    }

    /// Sends a part through the gates that it still has to pass, then to the medium.
    pub(super) fn proceed(&mut self, key: usize, now: Instant) {
        let Self { gates, timers, parts, volumes, .. } = self;
        let count = |gate, part: &Part| count_above(volumes, gate, part);
        if route::pass(gates, timers, parts, (key, now), count) {
            self.enter_medium(key, now);
        }
    }

    /// Releases the head of a gate, and those behind it that are admitted at the same instant.
    pub(super) fn release(&mut self, gate: usize, now: Instant) {
        let mut has_more = true;
        while has_more {
            let Self { gates, timers, parts, volumes, .. } = self;
            let Some(released) = route::release(gates, timers, parts, (gate, now)) else { return };
            count_above(volumes, gate, &parts[released.key]);
            self.proceed(released.key, now);
            has_more = released.has_more;
        }
    }

    fn enter_medium(&mut self, key: usize, now: Instant) {
        let part = &mut self.parts[key];
        let spec = &self.volumes[part.volume].spec;
        let latency = match (&self.cache, part.hit, part.op) {
            (Some((cache, _)), true, _) => &cache.latency,
            (_, _, Op::Read) => &spec.medium.read,
            _ => &spec.medium.write,
        };
        part.medium = latency.draw(self.seed, part.serial, u64::from(part.bytes));
        let is_write = matches!(part.op, Op::Write | Op::WriteThrough);
        if is_write && !part.hit && spec.cache == CacheMode::ReadOnly {
            let cache = self.cache.as_ref().and_then(|(cache, _)| cache.write_through.as_ref());
            let extra = cache.map(|latency| latency.draw(!self.seed, part.serial, 0));
            part.medium += extra.unwrap_or(Span::ZERO);
        }
        if part.op == Op::WriteThrough {
            part.medium += spec.medium.sync_time(self.seed, part.serial);
        }
        if part.medium == Span::ZERO {
            self.finish(key, now);
        } else {
            self.timers.set(now + part.medium, Alarm::Medium(narrow(key as u64)));
        }
    }

    /// Completes a flush for which nothing is dirty any more, once its medium has synced.
    pub(super) fn finish_flush(&mut self, key: usize, now: Instant) {
        let part = &mut self.parts[key];
        part.medium = self.volumes[part.volume].spec.medium.sync_time(self.seed, part.serial);
        if part.medium == Span::ZERO {
            self.finish(key, now);
        } else {
            self.timers.set(now + part.medium, Alarm::Medium(narrow(key as u64)));
        }
    }

    pub(super) fn finish(&mut self, key: usize, now: Instant) {
        let part = self.parts.remove(key);
        let (volume, offset, len) = (VolumeId(part.volume), part.offset, part.len);
        if let Owner::WriteBack(run) = part.owner {
            self.finish_write_back(&run, &part, now);
            return;
        }
        let held = &mut self.volumes[part.volume];
        part.count(&mut held.totals);
        held.end(now);
        let mode = held.spec.cache;
        let brought = match part.op {
            _ if part.hit || mode == CacheMode::None => None,
            Op::Read => Some(Brought::Read { offset, len }),
            Op::Write | Op::WriteThrough => Some(Brought::Write { offset, len }),
            Op::Discard | Op::Flush => None,
        };
        if let (Some(brought), Some((_, blobs))) = (brought, &mut self.cache) {
            let volumes = &self.volumes;
            let pinned = |volume: usize, first| volumes[volume].dirty.mask(first);
            blobs.insert(part.volume, brought, pinned);
        }
        if part.passes_cache {
            self.events.push_back(Event::WrittenBack { volume, offset, len });
        }
        match part.owner {
            Owner::Request { tag, device } => self.complete(Completion {
                tag,
                device,
                op: part.op,
                len,
                arrived: part.arrived,
                at: now,
                waits: part.waits,
                medium: part.medium,
                hit: part.hit,
            }),
            Owner::Stripe { parent } => self.finish_column(parent, &part, now),
            Owner::WriteBack(_) => {}
        }
    }

    fn finish_column(&mut self, key: usize, part: &Part, now: Instant) {
        let parent = &mut self.parents[key];
        parent.parts_left -= 1;
        parent.hit &= part.hit;
        if parent.last <= (now, part.serial) {
            parent.last = (now, part.serial);
            (parent.waits, parent.medium) = (part.waits, part.medium);
        }
        if parent.parts_left > 0 {
            return;
        }
        let parent = self.parents.remove(key);
        self.complete(Completion {
            tag: parent.tag,
            device: parent.device,
            op: parent.op,
            len: parent.len,
            arrived: parent.arrived,
            at: now,
            waits: parent.waits,
            medium: parent.medium,
            hit: parent.hit,
        });
    }

    fn complete(&mut self, completion: Completion) {
        self.events.push_back(Event::Completed(completion));
    }
}

/// Counts what is above the target of a disk that bursts on demand, when a part passes its gate.
fn count_above(volumes: &mut [Volume], gate: usize, part: &Part) {
    let Some(volume) = gate.checked_sub(disk_gate(0)) else { return };
    if let Some(Volume { above: Some(above), totals, .. }) = volumes.get_mut(volume) {
        totals.burst_transactions += above.passed(part.at_gate, part.operations, part.bytes);
    }
}

/// The volume and offset of a request that touches one unit of a stripe only.
fn one_column(unit: u64, columns: &[usize], request: &Request) -> Option<(usize, u64)> {
    if request.op == Op::Flush || request.offset % unit + request.len > unit {
        return None;
    }
    let piece = stripe::pieces(unit, columns.len(), request.offset, request.len).next()?;
    Some((columns[piece.column], piece.offset))
}
