//! Single requests to samples.
//!
//! A request counts at its completion if the trace has that time, else at its beginning. An idle
//! time has a sample at its beginning and one at its end; the counters are constant in between.
//!
//! ```text
//!  first request                                                      last completion
//!  |---- step ----|---- step ----|               idle         |---- step ----|-- rest --|
//!  sample, all 0  sample         sample                  sample         .          sample
//! ```
//!
//! A rest of less than half a step is joined to the step before it, since a rate over a short rest
//! would look like a peak.

use super::request::{Begun, Device, Direction, Origin, ReadRequests, Request, Sink};
use crate::error::ImportError;
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Sheet};
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap, VecDeque};
use weir_observe::header::{EntityId, EntityKind, SeriesId};
use weir_observe::metric::{self as m, Metric};

/// The most devices of a trace.
const MOST_DEVICES: usize = 1 << 16;
/// The number of devices up to which a scan is faster than a map.
const FEW_DEVICES: usize = 8;
/// The most in-flight requests.
const MOST_UNDER_WAY: usize = 1 << 20;
/// The time, in nanoseconds, by which a request may precede an earlier one; beyond, its time is
/// wrong.
const MOST_BACK: i64 = 60_000_000_000;
/// Samples kept back, see [`Summing::finish`].
const HELD: usize = 2;

/// The samples of a trace.
pub(crate) struct Samples {
    trace: Box<dyn ReadRequests>,
    summing: Summing,
    ended: bool,
}

impl Samples {
    /// Creates the samples of `trace`, which passes its requests to `summing`.
    pub(crate) const fn new(trace: Box<dyn ReadRequests>, summing: Summing) -> Self {
        Self { trace, summing, ended: false }
    }
}

impl ReadSamples for Samples {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        while !self.ended && self.summing.rows.len() <= HELD {
            if !self.trace.next(&mut self.summing, sheet)? {
                self.ended = true;
                self.summing.finish(sheet);
            }
        }
        Ok(self.summing.emit(sheet))
    }
}

/// Sums over the requests of a direction.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    operations: u64,
    bytes: u64,
    /// Requests that begin where the previous one ended.
    sequential: u64,
    /// Total latency in nanoseconds.
    latency: u64,
}

/// The totals so far.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    read: Sum,
    write: Sum,
    discard: Sum,
    flush: Sum,
    either: Sum,
    /// Total time in flight of all requests, in nanoseconds.
    queued: u64,
    /// Time with at least one request in flight, in nanoseconds.
    busy: u64,
}

impl Totals {
    const fn sum_mut(&mut self, direction: Direction) -> &mut Sum {
        match direction {
            Direction::Read => &mut self.read,
            Direction::Write => &mut self.write,
            Direction::Discard => &mut self.discard,
            Direction::Flush => &mut self.flush,
            Direction::Either => &mut self.either,
        }
    }
}

/// The state of a device.
#[derive(Debug, Default)]
struct State {
    host: Option<String>,
    name: String,
    totals: Totals,
    under_way: u64,
    /// The time up to which `totals` includes in-flight requests.
    settled: i64,
    /// End offset of the last request.
    end: Option<u64>,
    has_directions: bool,
    has_offsets: bool,
    has_latencies: bool,
    entity: Option<EntityId>,
    series: [Option<SeriesId>; COUNTERS.len()],
    gauges: Option<[SeriesId; 2]>,
}

impl State {
    fn settle(&mut self, at: i64) {
        let elapsed = u64::try_from(at.saturating_sub(self.settled)).unwrap_or(0);
        if self.under_way > 0 {
            let queued = self.under_way.saturating_mul(elapsed);
            self.totals.queued = self.totals.queued.saturating_add(queued);
            self.totals.busy = self.totals.busy.saturating_add(elapsed);
        }
        self.settled = at;
    }
}

/// A counter of a device: its metric, whether the device has it, its value.
type Counter = (&'static Metric, fn(&State) -> bool, fn(&Totals) -> u64);

const COUNTERS: [Counter; 15] = [
    (&m::READS, |d| d.has_directions, |t| t.read.operations),
    (&m::WRITES, |d| d.has_directions, |t| t.write.operations),
    (&m::READ_BYTES, |d| d.has_directions, |t| t.read.bytes),
    (&m::WRITE_BYTES, |d| d.has_directions, |t| t.write.bytes),
    (&m::SEQUENTIAL_READS, |d| d.has_directions && d.has_offsets, |t| t.read.sequential),
    (&m::SEQUENTIAL_WRITES, |d| d.has_directions && d.has_offsets, |t| t.write.sequential),
    (&m::IO_STALL_READ_MS, |d| d.has_directions && d.has_latencies, |t| t.read.latency),
    (&m::IO_STALL_WRITE_MS, |d| d.has_directions && d.has_latencies, |t| t.write.latency),
    (&m::DISCARDS, |d| d.totals.discard.operations > 0, |t| t.discard.operations),
    (&m::DISCARD_BYTES, |d| d.totals.discard.bytes > 0, |t| t.discard.bytes),
    (&m::FLUSHES, |d| d.totals.flush.operations > 0, |t| t.flush.operations),
    (&m::OPERATIONS, |d| d.totals.either.operations > 0, |t| t.either.operations),
    (&m::BYTES, |d| d.totals.either.operations > 0, |t| t.either.bytes),
    (
        &m::SEQUENTIAL_OPERATIONS,
        |d| d.totals.either.operations > 0 && d.has_offsets,
        |t| t.either.sequential,
    ),
    (&m::IO_STALL_MS, |d| d.totals.either.operations > 0 && d.has_latencies, |t| t.either.latency),
];

/// A sample that is not returned yet.
#[derive(Debug)]
struct Row {
    at: i64,
    /// Totals by device; a missing one has no I/O yet.
    totals: Vec<Totals>,
}

/// The end of a request.
#[derive(Debug, Clone, Copy)]
struct End {
    at: i64,
    /// Sequence number: ends at the same time keep their order.
    number: u64,
    device: Device,
    direction: Direction,
    length: u64,
    latency: u64,
}

impl PartialEq for End {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for End {}

impl PartialOrd for End {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for End {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// A summation of requests.
#[derive(Debug)]
pub(crate) struct Summing {
    /// The moment that times count from; set before the first request.
    pub(crate) origin: Origin,
    /// Resolution of times, in nanoseconds.
    pub(crate) resolution: u64,
    step: i64,
    /// Time of the first request.
    first: Option<i64>,
    now: i64,
    /// Time of the next sample.
    due: i64,
    devices: Vec<State>,
    /// Devices by host and name.
    known: HashMap<String, HashMap<String, Device>>,
    ends: BinaryHeap<Reverse<End>>,
    told: u64,
    rows: VecDeque<Row>,
    /// The last sample returned.
    last: Option<Row>,
    /// Number of requests earlier than one before them, and the largest difference.
    late: (u64, i64),
    /// Number of requests left out because they were much earlier.
    wrong: u64,
}

impl Summing {
    /// Creates a summation with the sampling interval of `options`.
    pub(crate) fn new(options: &Options) -> Self {
        let step = i64::try_from(options.step().nanos()).unwrap_or(i64::MAX).max(1);
        Self {
            origin: Origin::Unknown,
            resolution: 0,
            step,
            first: None,
            now: 0,
            due: 0,
            devices: Vec::new(),
            known: HashMap::new(),
            ends: BinaryHeap::new(),
            told: 0,
            rows: VecDeque::new(),
            last: None,
            late: (0, 0),
            wrong: 0,
        }
    }

    /// Adds an in-flight request.
    fn enter(&mut self, device: Device) {
        let now = self.now;
        if let Some(state) = self.devices.get_mut(device.0) {
            state.settle(now);
            state.under_way += 1;
        }
    }

    /// Removes an in-flight request.
    fn exit(&mut self, device: Device) {
        let now = self.now;
        if let Some(state) = self.devices.get_mut(device.0) {
            state.settle(now);
            state.under_way = state.under_way.saturating_sub(1);
        }
    }

    /// Records whether a request continues where the previous one ended.
    fn place(&mut self, device: Device, direction: Direction, offset: Option<u64>, length: u64) {
        let Some(state) = self.devices.get_mut(device.0) else { return };
        let Some(offset) = offset.filter(|_| length > 0) else { return };
        if matches!(direction, Direction::Discard | Direction::Flush) {
            return;
        }
        state.has_offsets = true;
        if state.end == Some(offset) {
            state.totals.sum_mut(direction).sequential += 1;
        }
        state.end = Some(offset.saturating_add(length));
    }

    fn count(&mut self, device: Device, direction: Direction, length: u64, latency: Option<u64>) {
        let Some(state) = self.devices.get_mut(device.0) else { return };
        state.has_directions |= direction != Direction::Either;
        state.has_latencies |= latency.is_some();
        let sum = state.totals.sum_mut(direction);
        sum.operations += 1;
        sum.bytes = sum.bytes.saturating_add(length);
        sum.latency = sum.latency.saturating_add(latency.unwrap_or(0));
    }

    /// Advances to `at`, with all ends until then; returns false if that time is long past.
    fn reach(&mut self, at: i64) -> bool {
        if self.first.is_none() {
            self.first = Some(at);
            self.now = at;
            self.due = at.saturating_add(self.step);
            self.devices.iter_mut().for_each(|device| device.settled = at);
            self.rows.push_back(Row { at, totals: Vec::new() });
        }
        let back = self.now.saturating_sub(at);
        if back > MOST_BACK {
            self.wrong += 1;
            return false;
        }
        if back > 0 {
            self.late = (self.late.0 + 1, self.late.1.max(back));
        }
        while let Some(Reverse(end)) = self.ends.peek().copied().filter(|end| end.0.at <= at) {
            self.ends.pop();
            self.finish_one(end);
        }
        self.go(at.max(self.now));
        true
    }

    fn finish_one(&mut self, end: End) {
        self.go(end.at.max(self.now));
        self.exit(end.device);
        self.count(end.device, end.direction, end.length, Some(end.latency));
    }

    /// Advances without events.
    fn go(&mut self, at: i64) {
        if at >= self.due {
            self.close(self.due);
            let steps = at.saturating_sub(self.due) / self.step;
            if steps > 0 {
                self.due = self.due.saturating_add(steps.saturating_mul(self.step));
                self.close(self.due);
            }
            self.due = self.due.saturating_add(self.step);
        }
        self.now = at;
    }

    /// Makes a sample of the present totals.
    fn close(&mut self, at: i64) {
        self.devices.iter_mut().for_each(|device| device.settle(at));
        let totals = self.devices.iter().map(|device| device.totals).collect();
        self.rows.push_back(Row { at, totals });
    }

    /// Ends the trace.
    fn finish(&mut self, sheet: &mut Sheet) {
        while let Some(Reverse(end)) = self.ends.pop() {
            self.finish_one(end);
        }
        self.tell(sheet);
        let Some(closed) = self.rows.back().map(|row| row.at) else { return };
        let mut end = self.now.saturating_add_unsigned(self.resolution);
        if self.rows.len() >= HELD {
            if end.saturating_sub(closed).saturating_mul(2) < self.step {
                self.rows.pop_back();
            }
        } else if end == closed {
            // All pending requests end at once, over one step, since their ends are unknown.
            end = end.saturating_add(self.step);
        }
        self.close(end);
    }

    fn tell(&self, sheet: &mut Sheet) {
        if self.late.0 > 0 {
            sheet.note(format!(
                "{} requests were earlier than a previous one, by at most {} ms: counted at their \
                 position",
                self.late.0,
                self.late.1.unsigned_abs().div_ceil(1_000_000)
            ));
        }
        if self.wrong > 0 {
            sheet.note(format!(
                "{} requests that were more than {} s earlier than a previous one are left out",
                self.wrong,
                MOST_BACK / 1_000_000_000
            ));
        }
    }

    /// Writes the next sample into the sheet.
    fn emit(&mut self, sheet: &mut Sheet) -> Option<At> {
        let row = self.rows.pop_front()?;
        for (index, device) in self.devices.iter_mut().enumerate() {
            let totals = row.totals.get(index).copied().unwrap_or_default();
            let entity = *device.entity.get_or_insert_with(|| {
                let host = device.host.as_deref().unwrap_or("host");
                let host = sheet.entity(EntityKind::Host, host, None);
                sheet.entity(EntityKind::Volume, &device.name, Some(host))
            });
            for (at, (measure, has, value)) in COUNTERS.iter().enumerate() {
                if !has(device) {
                    continue;
                }
                let Some(series) = device.series.get_mut(at) else { continue };
                let series = *series.get_or_insert_with(|| sheet.series(entity, measure));
                sheet.put(series, measure, in_unit(measure, value(&totals)));
            }
            if let Some(last) = self.last.as_ref().filter(|_| device.has_latencies) {
                let before = last.totals.get(index).copied().unwrap_or_default();
                let elapsed = float(row.at.abs_diff(last.at)).max(1.0);
                let [queue, busy] = *device.gauges.get_or_insert_with(|| {
                    [&m::QUEUE_DEPTH, &m::BUSY].map(|measure| sheet.series(entity, measure))
                });
                let part = |now: u64, before: u64| float(now.saturating_sub(before)) / elapsed;
                sheet.put(queue, &m::QUEUE_DEPTH, part(totals.queued, before.queued));
                sheet.put(busy, &m::BUSY, part(totals.busy, before.busy));
            }
        }
        let at = match self.origin {
            Origin::Epoch => At::Wall(row.at),
            Origin::Unknown => At::Since(row.at.abs_diff(self.first.unwrap_or(row.at))),
        };
        self.last = Some(row);
        Some(at)
    }
}

impl Sink for Summing {
    fn device(&mut self, host: Option<&str>, name: &str) -> Result<Device, ImportError> {
        let is_it = |state: &State| state.name == name && state.host.as_deref() == host;
        if let Some(index) = self.devices.iter().take(FEW_DEVICES).position(is_it) {
            return Ok(Device(index));
        }
        let of_host = host.unwrap_or_default();
        if let Some(device) = self.known.get(of_host).and_then(|devices| devices.get(name)) {
            return Ok(*device);
        }
        if self.devices.len() >= MOST_DEVICES {
            return Err(ImportError::whole(format!("it has more than {MOST_DEVICES} devices")));
        }
        let device = Device(self.devices.len());
        let (host, owned) = (host.map(str::to_owned), name.to_owned());
        self.devices.push(State { host, name: owned, settled: self.now, ..State::default() });
        self.known.entry(of_host.to_owned()).or_default().insert(name.to_owned(), device);
        Ok(device)
    }

    fn request(&mut self, request: Request) -> Result<(), ImportError> {
        let Request { at, device, direction, offset, length, latency } = request;
        let Some(latency) = latency else {
            if self.reach(at) {
                self.place(device, direction, offset, length);
                self.count(device, direction, length, None);
            }
            return Ok(());
        };
        if self.begin(&request).is_none() {
            return Ok(());
        }
        if self.ends.len() >= MOST_UNDER_WAY {
            return Err(ImportError::whole(format!(
                "more than {MOST_UNDER_WAY} requests are in flight at once: its latencies cannot \
                 be right"
            )));
        }
        self.told += 1;
        let at = at.saturating_add_unsigned(latency);
        let end = End { at, number: self.told, device, direction, length, latency };
        self.ends.push(Reverse(end));
        Ok(())
    }

    fn begin(&mut self, request: &Request) -> Option<Begun> {
        let Request { at, device, direction, offset, length, .. } = *request;
        if !self.reach(at) {
            return None;
        }
        self.place(device, direction, offset, length);
        self.enter(device);
        Some(Begun(None))
    }

    fn end(&mut self, _begun: Begun, request: &Request) {
        let Request { at, device, direction, length, latency, .. } = *request;
        if self.reach(at) {
            self.exit(device);
            self.count(device, direction, length, latency);
        }
    }

    fn done(&mut self, request: &Request) {
        let Request { at, device, direction, offset, length, latency } = *request;
        if self.reach(at) {
            self.place(device, direction, offset, length);
            self.count(device, direction, length, latency);
        }
    }

    fn leave(&mut self, _begun: Begun, device: Device) {
        self.exit(device);
    }

    fn pass(&mut self, at: i64) {
        self.reach(at);
    }
}

/// Converts a total to the unit of its metric.
fn in_unit(measure: &Metric, total: u64) -> f64 {
    match measure.unit {
        m::Quantity::Milliseconds => float(total) / 1e6,
        _ => float(total),
    }
}

#[expect(clippy::cast_precision_loss, reason = "less than a millionth of a millionth")]
const fn float(number: u64) -> f64 {
    number as f64
}

/// Parses a non-negative number of units, rounded down, exactly even where floats are not exact.
pub(crate) fn scaled(text: &str, unit: u64) -> Option<u64> {
    // The most common form. Parsing would also accept a sign.
    if text.starts_with(|c: char| c.is_ascii_digit())
        && let Ok(number) = text.parse::<u64>()
    {
        return number.checked_mul(unit);
    }
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u64::from_str_radix(digits, 16).ok()?.checked_mul(unit);
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) || whole.len() + fraction.len() == 0 {
        return floating(text, unit);
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction = &fraction[..fraction.len().min(18)];
    let mut part: u128 = 0;
    for byte in fraction.bytes() {
        part = part * 10 + u128::from(byte - b'0');
    }
    let tens = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let part = u64::try_from(part * u128::from(unit) / tens).ok()?;
    whole.checked_mul(unit)?.checked_add(part)
}

/// Parses a number like `1.5e-3`.
fn floating(text: &str, unit: u64) -> Option<u64> {
    if !text.contains(['e', 'E']) || !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let number = text.parse::<f64>().ok()? * float(unit);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
    (0.0..9.0e18).contains(&number).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_units() {
        let check = |text: &str, unit: u64, expect: Option<u64>| {
            assert_eq!(scaled(text, unit), expect, "{text}");
        };
        check("128166372003061629", 100, Some(12_816_637_200_306_162_900));
        check("0.679741681", 1_000_000_000, Some(679_741_681));
        check("13.191135", 1_000_000, Some(13_191_135));
        check(".5", 512, Some(256));
        check("7", 512, Some(3584));
        check("0x10", 512, Some(8192));
        check("1.5e-3", 1_000_000, Some(1500));
        check("18446744073709551615", 2, None);
        for text in ["", ".", "-1", "+1", "1.2.3", "x", "1e999", "0x", "e5"] {
            check(text, 1, None);
        }
    }
}
