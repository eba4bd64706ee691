//! Random hosts under random loads, against what must always be so.

use super::*;
use crate::TraceHash;
use proptest::prelude::*;
use weir_units::time::NANOS_PER_SEC;

/// One arrival of a random trace.
#[derive(Debug, Clone)]
pub(super) struct Arrival {
    pub(super) gap: u64,
    pub(super) device: usize,
    pub(super) op: Op,
    pub(super) block: u64,
    pub(super) len: u64,
    /// A change of the host before it.
    change: Option<Change>,
}

#[derive(Debug, Clone, Copy)]
enum Change {
    Disk { volume: usize, limits: u8 },
    Host { uncached: u8, cached: u8 },
    Log { rate: u8 },
    Mode { volume: usize, mode: CacheMode },
    Crash,
}

/// A random host: four volumes, of which two hold logs, and a stripe over some of them.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub(super) volumes: [(CacheMode, Place, u8); 4],
    pub(super) uncached: u8,
    /// Limits of writes, if they are apart.
    pub(super) writes: Option<u8>,
    pub(super) cached: u8,
    pub(super) log: u8,
    columns: Vec<usize>,
    unit_kib: u64,
    cache_kib: u64,
    dirty_kib: u64,
}

/// Limits of a kind: none, low, high, with a reserve, bursting with a reserve, bursting on demand.
pub(super) fn some_limits(kind: u8) -> GateLimits {
    let reserve = Some(Reserve { holds: Span::from_millis(30), refill: Span::from_millis(90) });
    let reserved = |rate: u64| Some(Limit { rate: per_sec(rate), burst: None, reserve });
    let burst = |rate: u64, peak| {
        Limit { rate: per_sec(rate), burst: None, reserve: None }
            .with_burst(per_sec(peak), Span::from_millis(200))
    };
    let on_demand = |rate: u64, peak| {
        Limit { rate: per_sec(rate), burst: None, reserve: None }.with_on_demand(per_sec(peak))
    };
    match kind {
        0 => GateLimits::default(),
        1 => limits(90, 8 << 20),
        2 => limits(2_500, 90 << 20),
        3 => GateLimits { iops: reserved(170), bytes: reserved(10 << 20) },
        4 => GateLimits {
            iops: Some(burst(150, 900).with_reserve(reserve)),
            bytes: Some(burst(9 << 20, 60 << 20)),
        },
        _ => {
            GateLimits { iops: Some(on_demand(80, 700)), bytes: Some(on_demand(9 << 20, 50 << 20)) }
        }
    }
}

/// Limits of the log gate: none, low, high.
fn log_rate(kind: u8) -> Option<Limit> {
    some_limits(kind).bytes
}

fn disk_limits(kind: u8) -> DiskLimits {
    DiskLimits { gate: some_limits(kind), io_unit: NonZeroU64::new(256 << 10), merges: false }
}

fn mode() -> impl Strategy<Value = CacheMode> {
    prop_oneof![Just(CacheMode::None), Just(CacheMode::ReadOnly), Just(CacheMode::ReadWrite)]
}

pub(super) fn layout() -> impl Strategy<Value = Layout> {
    let place = prop_oneof![3 => Just(Place::Remote), 1 => Just(Place::Local)];
    let volume = (mode(), place, 0_u8..6);
    let columns = proptest::sample::subsequence(vec![0, 1, 2, 3], 2..=4).prop_shuffle();
    let sizes = (prop_oneof![Just(4_u64), Just(64)], 128_u64..2_048, 64_u64..1_500);
    let shared = (0_u8..5, proptest::option::of(0_u8..4), 0_u8..5, 0_u8..3);
    (proptest::array::uniform4(volume), shared, columns, sizes).prop_map(
        |(volumes, (uncached, writes, cached, log), columns, (unit_kib, cache_kib, dirty_kib))| {
            Layout {
                volumes,
                uncached,
                writes,
                cached,
                log,
                columns,
                unit_kib,
                cache_kib,
                dirty_kib,
            }
        },
    )
}

impl Layout {
    pub(super) fn spec(&self) -> HostSpec {
        let read = Latency::from_quantiles(&[
            (0, Span::from_micros(500)),
            (1_000_000, Span::from_millis(4)),
        ]);
        let read = read.expect("ascending quantiles");
        let one = |(id, (cache, place, kind)): (usize, &(CacheMode, Place, u8))| {
            let sync = (id % 3 == 1).then(|| Latency::fixed(Span::from_micros(700)));
            let medium = Medium { read: read.clone(), sync, ..volume(0, 0).medium };
            VolumeSpec {
                // Every other disk merges adjacent I/Os.
                limits: DiskLimits { merges: id % 2 == 0, ..disk_limits(*kind) },
                cache: *cache,
                place: *place,
                medium,
                log: id % 2 == 1,
                ..volume(0, 0)
            }
        };
        let mut spec = host(self.volumes.iter().enumerate().map(one).collect());
        spec.uncached = some_limits(self.uncached);
        spec.uncached_writes = self.writes.map(some_limits);
        spec.cached = some_limits(self.cached);
        spec.log_rate = log_rate(self.log);
        let cache = spec.cache.as_mut().expect("a cache");
        cache.capacity = Bytes::kib(self.cache_kib);
        cache.dirty_limit = Bytes::kib(self.dirty_kib);
        cache.write_through = Some(Latency::fixed(Span::from_micros(400)));
        cache.writeback_after = Span::from_millis(50);
        let (unit, columns) = (Bytes::kib(self.unit_kib), self.columns.clone());
        spec.devices.push(DeviceSpec::Stripe { unit, columns });
        spec
    }
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (0_usize..4, 0_u8..6).prop_map(|(volume, limits)| Change::Disk { volume, limits }),
        2 => (0_u8..5, 0_u8..5).prop_map(|(uncached, cached)| Change::Host { uncached, cached }),
        1 => (0_u8..3).prop_map(|rate| Change::Log { rate }),
        2 => (0_usize..4, mode()).prop_map(|(volume, mode)| Change::Mode { volume, mode }),
        1 => Just(Change::Crash),
    ]
}

pub(super) fn trace() -> impl Strategy<Value = Vec<Arrival>> {
    let op = prop_oneof![
        4 => Just(Op::Read),
        4 => Just(Op::Write),
        1 => Just(Op::WriteThrough),
        1 => Just(Op::Discard),
        1 => Just(Op::Flush),
    ];
    let len = prop_oneof![Just(512_u64), Just(8 << 10), Just(64 << 10), Just(700 << 10)];
    let change = prop_oneof![6 => Just(None), 1 => change().prop_map(Some)];
    let arrival = (0_u64..3_000_000, 0_usize..5, op, 0_u64..512, len, change).prop_map(
        |(gap, device, op, block, len, change)| Arrival { gap, device, op, block, len, change },
    );
    let continues = proptest::collection::vec(prop::bool::ANY, 150);
    (proptest::collection::vec(arrival, 1..150), continues).prop_map(|(mut trace, continues)| {
        // Half of the arrivals go on where the one before ends.
        for at in 1..trace.len() {
            let before = trace[at - 1].clone();
            let end = before.block + before.len.div_ceil(4_096);
            if continues[at] && end < 512 {
                trace[at].block = end;
                (trace[at].device, trace[at].op) = (before.device, before.op);
            }
        }
        trace
    })
}

/// A driver: its delay after each deadline, and whether it fetches events each time or only
/// when it must.
struct Driver<L: Fn(u64) -> u64> {
    late: L,
    asks_each_time: bool,
}

const PUNCTUAL: Driver<fn(u64) -> u64> = Driver { late: |_| 0, asks_each_time: true };

/// The outcome of a run.
#[derive(Debug, PartialEq)]
struct Outcome {
    events: Vec<Event>,
    /// Requests that a crash has ended.
    crashed: usize,
    totals: Vec<Totals>,
}

impl<L: Fn(u64) -> u64> Driver<L> {
    /// Runs a trace to its end; `look` sees the engine at every step, and how many
    /// have arrived.
    fn run(
        &self,
        layout: &Layout,
        trace: &[Arrival],
        mut look: impl FnMut(&Engine, usize),
    ) -> Outcome {
        let mut engine = engine(layout.spec());
        let (mut events, mut crashed) = (Vec::new(), 0);
        let (mut now, mut calls) = (Instant::ZERO, 0);
        for (n, a) in trace.iter().enumerate() {
            let at = now + Span::from_nanos(a.gap);
            while let Some(due) = engine.poll_deadline().filter(|due| *due < at) {
                calls += 1;
                let late = due + Span::from_nanos((self.late)(calls));
                engine.handle_timeout(late.min(at));
                look(&engine, n);
                if self.asks_each_time {
                    events.extend(core::iter::from_fn(|| engine.poll_event()));
                }
            }
            now = at;
            match a.change {
                Some(Change::Crash) => {
                    engine.handle_timeout(now);
                    events.extend(core::iter::from_fn(|| engine.poll_event()));
                    crashed += engine.outstanding();
                    engine.crash(now);
                }
                Some(other) => other.apply(&mut engine, now),
                None => {}
            }
            let (device, offset) = (DeviceId(a.device), a.block * 4_096);
            let request = Request { device, op: a.op, offset, len: a.len, tag: n as u64 };
            engine.handle_request(now, &request).expect("a request in range");
            look(&engine, n + 1);
        }
        while let Some(due) = engine.poll_deadline() {
            engine.handle_timeout(due);
            look(&engine, trace.len());
        }
        events.extend(core::iter::from_fn(|| engine.poll_event()));
        assert_eq!(engine.outstanding(), 0);
        let totals = engine.volumes.iter().map(|volume| volume.totals).collect();
        Outcome { events, crashed, totals }
    }
}

impl Change {
    fn apply(self, engine: &mut Engine, now: Instant) {
        let applied = match self {
            Self::Disk { volume, limits } => {
                engine.set_disk_limits(now, VolumeId(volume), disk_limits(limits))
            }
            Self::Host { uncached, cached } => {
                engine.set_host_limits(now, &some_limits(uncached), &some_limits(cached));
                Ok(())
            }
            Self::Log { rate } => {
                engine.set_log_rate(now, log_rate(rate));
                Ok(())
            }
            Self::Mode { volume, mode } => engine.set_cache_mode(now, VolumeId(volume), mode),
            Self::Crash => Ok(()),
        };
        applied.expect("a volume and a cache");
    }
}

impl Outcome {
    fn completions(&self) -> impl DoubleEndedIterator<Item = &Completion> {
        self.events.iter().filter_map(|event| match event {
            Event::Completed(completion) => Some(completion),
            Event::WrittenBack { .. } => None,
        })
    }

    fn hash(&self) -> TraceHash {
        let mut hash = TraceHash::default();
        self.completions().for_each(|completion| hash.record(completion));
        hash
    }
}

/// The rate of each meter of a gate with the credits that it begins with.
fn rates(limits: &GateLimits) -> Vec<(u64, u64)> {
    let of = |limit: Limit| {
        // A reserve earns less than the idle time that it needs, so it never adds to a window.
        let reserved = |rate: NonZeroU64| {
            let holds = limit.reserve.map_or(0, |reserve| reserve.holds.nanos());
            (rate.get(), (rate.get() * holds).div_ceil(NANOS_PER_SEC))
        };
        match limit.burst {
            None => vec![reserved(limit.rate)],
            Some((peak, Limit::ON_DEMAND)) => vec![reserved(peak)],
            Some((peak, lasts)) => {
                let surplus = peak.get() - limit.rate.get();
                vec![reserved(peak), (limit.rate.get(), surplus * lasts.nanos() / NANOS_PER_SEC)]
            }
        }
    };
    [limits.iops, limits.bytes].into_iter().flatten().flat_map(of).collect()
}

/// Checks all windows at once: between any two moments at which something passed, no
/// more did than the rate allows, with the credits before. What passed up to `t`,
/// less the rate times `t`, may then never rise by more than the credits. Each time is
/// rounded up to the nanosecond, so a window may be one longer than it seems.
fn check_windows(passed: &[(Instant, u64)], rate: u64, credits: u64) {
    let nanos = i128::from(NANOS_PER_SEC);
    let mut sum = 0;
    let mut lowest = i128::MAX;
    for (at, cost) in passed {
        let above = sum * nanos - i128::from(rate) * i128::from(at.nanos());
        lowest = lowest.min(above);
        assert!(
            above - lowest <= i128::from(credits) * nanos + i128::from(rate),
            "{} too much at {rate} a second until {at:?}",
            (above - lowest) / nanos - i128::from(credits)
        );
        sum += i128::from(*cost);
    }
}

proptest! {
    #[test]
    fn every_nanosecond_is_charged_once(layout in layout(), trace in trace()) {
        let outcome = PUNCTUAL.run(&layout, &trace, |_, _| {});
        let mut completed = 0;
        for c in outcome.completions() {
            completed += 1;
            prop_assert_eq!(c.at - c.arrived, c.waits.total() + c.medium, "{:?}", c);
        }
        prop_assert_eq!(completed + outcome.crashed, trace.len());
    }

    #[test]
    fn a_late_driver_gets_the_same_admissions(layout in layout(), trace in trace(), seed: u64) {
        let punctual = PUNCTUAL.run(&layout, &trace, |_, _| {});
        let late = |n: u64| (n.wrapping_mul(seed | 1) >> 40) % 5_000_000;
        for asks_each_time in [true, false] {
            let outcome = Driver { late, asks_each_time }.run(&layout, &trace, |_, _| {});
            prop_assert_eq!(outcome.hash(), punctual.hash());
            prop_assert_eq!(&outcome, &punctual);
        }
        // In which order completions of one moment are taken in does not matter.
        let mut other = TraceHash::default();
        punctual.completions().rev().for_each(|completion| other.record(completion));
        prop_assert_eq!(other, punctual.hash());
    }

    /// Holds for any gate, while requests of all kinds pass it and its limits change.
    #[test]
    fn no_window_of_a_gate_exceeds_its_rate(layout in layout(), trace in trace()) {
        let log = |kind| GateLimits { iops: None, bytes: log_rate(kind) };
        let [uncached, cached] = [layout.uncached, layout.cached].map(|kind| sides(&some_limits(kind)));
        let writes = sides(&layout.writes.map(some_limits).unwrap_or_default());
        let mut of_gates = [&uncached[..], &cached, &[log(layout.log)], &writes].concat();
        of_gates.extend(layout.volumes.iter().map(|volume| some_limits(volume.2)));
        let mut changed = 0;
        PUNCTUAL.run(&layout, &trace, |engine, arrived| {
            // Limits change before the request that brings the change.
            for a in &trace[changed..arrived] {
                match a.change {
                    Some(Change::Disk { volume, limits }) => of_gates[disk_gate(volume)] = some_limits(limits),
                    Some(Change::Host { uncached, cached }) => {
                        of_gates[..=UNCACHED_BYTES].copy_from_slice(&sides(&some_limits(uncached)));
                        of_gates[WRITE_IOPS..=WRITE_BYTES].fill(GateLimits::default());
                        of_gates[CACHED_IOPS..=CACHED_BYTES].copy_from_slice(&sides(&some_limits(cached)));
                    }
                    Some(Change::Log { rate }) => of_gates[LOG] = log(rate),
                    _ => {}
                }
            }
            changed = arrived;
            for (gate, limits) in engine.gates.iter().zip(&of_gates) {
                let rates = rates(limits);
                assert_eq!(gate.passed().count(), rates.len());
                for ((meter, passed), (rate, credits)) in gate.passed().zip(rates) {
                    assert_eq!(meter.rate().get(), rate);
                    check_windows(passed, rate, credits);
                }
            }
        });
    }

    #[test]
    fn dirty_blocks_are_kept_within_their_limit(
        layout in layout(),
        mut trace in trace(),
    ) {
        for a in &mut trace {
            // Part of a block is not held, and what a mode leaves behind is not either.
            a.len = a.len.max(4_096);
            a.change = a.change.filter(|change| !matches!(change, Change::Mode { .. }));
        }
        PUNCTUAL.run(&layout, &trace, |engine, _| {
            let (_, blobs) = engine.cache.as_ref().expect("a cache");
            assert!(blobs.resident_bytes() <= layout.cache_kib << 10);
            assert!(engine.dirty_blocks <= engine.dirty_room);
            let mut dirty = 0;
            for (id, volume) in engine.volumes.iter().enumerate() {
                for (offset, len) in volume.dirty.ranges() {
                    assert!(blobs.holds(id, offset, len), "{id}: {len} bytes at {offset}");
                    dirty += len / BLOCK;
                }
            }
            assert!(dirty <= engine.dirty_blocks, "{dirty} of {}", engine.dirty_blocks);
        });
    }
}
