//! The engine against what it promises: exact rates, exact attribution, fairness,
//! the cache's accounting, live changes, and independence of how often it is called.

use super::*;
use crate::medium::Latency;
use crate::spec::{Limit, Medium};
use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZeroU64;

const SEC: u64 = 1_000_000_000;

fn per_sec(n: u64) -> NonZeroU64 {
    NonZeroU64::new(n).expect("a rate above zero")
}

fn limits(iops: u64, bytes: u64) -> GateLimits {
    let limit = |n| (n > 0).then(|| Limit { rate: per_sec(n), burst: None });
    GateLimits { iops: limit(iops), bytes: limit(bytes) }
}

fn volume(iops: u64, bytes: u64) -> VolumeSpec {
    let medium = Latency::fixed(Span::from_millis(1));
    VolumeSpec {
        size: Bytes::gib(1024),
        limits: DiskLimits { gate: limits(iops, bytes), io_unit: NonZeroU64::new(256 << 10) },
        cache: CacheMode::None,
        place: Place::Remote,
        medium: Medium { read: medium.clone(), write: medium },
    }
}

fn host(volumes: Vec<VolumeSpec>) -> HostSpec {
    let devices = (0..volumes.len()).map(DeviceSpec::Volume).collect();
    let latency = Latency::fixed(Span::from_micros(100));
    let cache = CacheSpec {
        capacity: Bytes::gib(1),
        latency,
        dirty_limit: Bytes::mib(64),
        writeback_after: Span::from_secs(1),
    };
    HostSpec { volumes, devices, cache: Some(cache), seed: 1, ..HostSpec::default() }
}

fn engine(spec: HostSpec) -> Engine {
    Engine::new(spec).expect("a sound specification")
}

/// A closed loop: each client has one request under way all the time.
struct Client {
    device: usize,
    op: Op,
    len: u64,
    next: u64,
}

struct Load {
    engine: Engine,
    clients: Vec<Client>,
    done: Vec<Completion>,
}

impl Load {
    fn new(engine: Engine) -> Self {
        Self { engine, clients: Vec::new(), done: Vec::new() }
    }

    fn clients(mut self, count: usize, device: usize, op: Op, len: u64) -> Self {
        for _ in 0..count {
            let next = self.clients.len() as u64 * (1 << 30);
            self.clients.push(Client { device, op, len, next });
        }
        self
    }

    fn issue(&mut self, now: Instant, tag: u64) {
        let client = &mut self.clients[usize::try_from(tag).expect("a small tag")];
        let Client { device, op, len, next } = *client;
        client.next = (next + len) % (512 << 30);
        let request = Request { device: DeviceId(device), op, offset: next, len, tag };
        self.engine.handle_request(now, &request).expect("a request in range");
    }

    /// Starts all clients at `from` and runs until `until`.
    fn run(&mut self, from: Instant, until: Instant) {
        (0..self.clients.len() as u64).for_each(|tag| self.issue(from, tag));
        self.go_on(until);
    }

    fn go_on(&mut self, until: Instant) {
        loop {
            while let Some(event) = self.engine.poll_event() {
                if let Event::Completed(completion) = event {
                    self.done.push(completion);
                    self.issue(completion.at, completion.tag);
                }
            }
            match self.engine.poll_deadline() {
                Some(at) if at <= until => self.engine.handle_timeout(at),
                _ => return,
            }
        }
    }

    fn completed_in(&self, device: usize, from: u64, until: u64) -> u64 {
        let inside =
            |c: &&Completion| c.device.0 == device && (from..until).contains(&c.at.nanos());
        self.done.iter().filter(inside).count() as u64
    }
}

fn secs(n: u64) -> Instant {
    Instant::from_nanos(n * SEC)
}

#[test]
fn a_saturated_volume_gives_its_limit_in_every_window() {
    for (iops, bytes, len, expect) in [
        (5_000, 200 << 20, 8 << 10, 5_000),
        (5_000, 200 << 20, 32 << 10, 5_000),
        (5_000, 200 << 20, 64 << 10, 3_200),
        (5_000, 200 << 20, 1 << 20, 200),
        (500, 0, 1 << 20, 125),
        (3, 0, 4 << 10, 3),
        (400_000, 0, 4 << 10, 400_000),
    ] {
        let mut load =
            Load::new(engine(host(vec![volume(iops, bytes)]))).clients(1_000, 0, Op::Read, len);
        load.run(Instant::ZERO, secs(4));
        for second in 1..4 {
            let got = load.completed_in(0, second * SEC, (second + 1) * SEC);
            assert!(got.abs_diff(expect) <= 1, "{got} of {expect} in second {second}");
        }
        if expect >= 125 {
            let tenth = load.completed_in(0, SEC, SEC + SEC / 10);
            assert!(tenth.abs_diff(expect / 10) <= 1, "{tenth} of {} in 100 ms", expect / 10);
        }
    }
}

#[test]
fn two_nested_caps_give_the_lower_one_and_charge_it() {
    let mut spec = host(vec![volume(5_000, 0)]);
    spec.uncached = limits(3_200, 0);
    let mut load = Load::new(engine(spec)).clients(64, 0, Op::Write, 8 << 10);
    load.run(Instant::ZERO, secs(3));
    let got = load.completed_in(0, SEC, 2 * SEC);
    assert!(got.abs_diff(3_200) <= 1, "{got}");
    let waits = load.engine.totals(VolumeId(0)).expect("the volume").waits;
    let host = waits[Cap::HostUncachedIops];
    assert!(host * 10 > waits.total().nanos() * 9, "{waits:?}");
}

#[test]
fn a_request_of_many_units_counts_them_all() {
    let mut engine = engine(host(vec![volume(500, 0)]));
    let len = 1_100 << 10;
    let request = Request { device: DeviceId(0), op: Op::Read, offset: 0, len, tag: 1 };
    engine.handle_request(Instant::ZERO, &request).expect("a request in range");
    engine.handle_timeout(secs(1));
    assert_eq!(engine.totals(VolumeId(0)).map(|t| (t.reads, t.counted)), Some((1, 5)));
}

#[test]
fn a_throttled_volume_does_not_hold_up_another() {
    let mut spec = host(vec![volume(100, 0), volume(5_000, 0)]);
    spec.uncached = limits(5_050, 0);
    let mut load = Load::new(engine(spec)).clients(512, 0, Op::Write, 8 << 10).clients(
        64,
        1,
        Op::Write,
        8 << 10,
    );
    load.run(Instant::ZERO, secs(3));
    let slow = load.completed_in(0, SEC, 2 * SEC);
    let fast = load.completed_in(1, SEC, 2 * SEC);
    assert!(slow.abs_diff(100) <= 1 && fast >= 4_948, "{slow} and {fast}");
}

#[test]
fn large_requests_do_not_starve_small_ones_of_another_volume() {
    let mut spec = host(vec![volume(0, 0), volume(0, 0)]);
    spec.uncached = limits(0, 512 << 20);
    let mut load =
        Load::new(engine(spec)).clients(256, 0, Op::Read, 4 << 20).clients(1, 1, Op::Read, 4 << 10);
    load.run(Instant::ZERO, secs(4));
    let small: Vec<&Completion> =
        load.done.iter().filter(|c| c.device.0 == 1 && c.at > secs(2)).collect();
    let slowest = small.iter().map(|c| (c.at - c.arrived).nanos()).max().expect("small reads");
    // At most the large request under way and one more: 2 x 4 MiB at 512 MiB/s, and the medium.
    assert!(slowest <= 17_700_000, "a 4 KiB read took {slowest} ns");
    let large = load.completed_in(0, 2 * SEC, 4 * SEC);
    assert!(large >= 250, "the cap was not used: {large} of 256 large reads");
}

#[test]
fn a_stripe_joins_the_limits_of_its_columns() {
    let mut spec = host((0..2).map(|_| volume(5_000, 200 << 20)).collect());
    spec.devices.push(DeviceSpec::Stripe { unit: Bytes::kib(64), columns: vec![0, 1] });
    let small = |spec: HostSpec, len| {
        let mut load = Load::new(engine(spec)).clients(256, 2, Op::Write, len);
        load.run(Instant::ZERO, secs(3));
        load.completed_in(2, SEC, 2 * SEC)
    };
    let got = small(spec.clone(), 64 << 10);
    assert!(got.abs_diff(6_400) <= 2, "{got}: two columns of 3,200");
    let got = small(spec, 1 << 20);
    assert!(got.abs_diff(400) <= 2, "{got}: 400 MiB/s");
}

#[test]
fn the_cache_accounts_as_the_table_says() {
    let with = |mode| {
        let mut spec = host(vec![volume(100, 0)]);
        spec.volumes[0].cache = mode;
        spec.cached = limits(1_000, 0);
        engine(spec)
    };
    let rate = |mut engine: Engine, op, warm| {
        if warm {
            engine.warm(DeviceId(0), 0, 1 << 20);
        }
        let mut load = Load::new(engine).clients(1, 0, op, 4 << 10);
        // One client goes over the same 1 MiB again and again.
        load.clients[0].len = 4 << 10;
        load.run(Instant::ZERO, Instant::from_nanos(SEC / 10));
        let totals = *load.engine.totals(VolumeId(0)).expect("the volume");
        (totals.hits, totals.counted, totals.waits[Cap::DiskIops] > 0)
    };
    let (hits, counted, waited) = rate(with(CacheMode::ReadOnly), Op::Read, true);
    assert!(hits > 90 && counted == 0 && !waited, "hits pass the cached cap only");
    let (hits, counted, waited) = rate(with(CacheMode::ReadOnly), Op::Read, false);
    assert!(hits == 0 && counted > 5 && waited, "misses pass the disk");
    let (_, counted, waited) = rate(with(CacheMode::ReadOnly), Op::Write, true);
    assert!(counted > 5 && waited, "writes of a ReadOnly cache pass the disk");
    let (_, counted, waited) = rate(with(CacheMode::ReadWrite), Op::Write, false);
    assert!(counted == 0 && !waited, "writes of a ReadWrite cache do not wait for the disk");
    let (_, counted, waited) = rate(with(CacheMode::ReadWrite), Op::WriteThrough, false);
    assert!(counted > 5 && waited, "forced unit access does");
}

#[test]
fn a_read_brings_the_block_and_the_next_one_hits() {
    let mut spec = host(vec![volume(100, 0)]);
    spec.volumes[0].cache = CacheMode::ReadOnly;
    let mut engine = engine(spec);
    let mut read = |now| {
        let request = Request { device: DeviceId(0), op: Op::Read, offset: 0, len: 4096, tag: 0 };
        engine.handle_request(now, &request).expect("a request in range");
        engine.handle_timeout(now + Span::from_millis(50));
        match engine.poll_event() {
            Some(Event::Completed(completion)) => completion.hit,
            other => panic!("{other:?}"),
        }
    };
    assert!(!read(secs(1)));
    assert!(read(secs(2)));
}

#[test]
fn a_flush_of_a_readwrite_cache_waits_for_the_disk_and_a_crash_loses_the_rest() {
    let mut spec = host(vec![volume(100, 0)]);
    spec.volumes[0].cache = CacheMode::ReadWrite;
    let mut engine = engine(spec);
    let request = |op, offset, tag| Request { device: DeviceId(0), op, offset, len: 4096, tag };
    for n in 0..10 {
        let write = request(Op::Write, n * (1 << 20), n);
        engine.handle_request(Instant::ZERO, &write).expect("a request in range");
    }
    engine.handle_request(Instant::from_nanos(1), &request(Op::Flush, 0, 99)).expect("a flush");
    engine.handle_timeout(Instant::from_nanos(SEC / 2));
    let mut order = Vec::new();
    while let Some(event) = engine.poll_event() {
        order.push(event);
    }
    let written = order.iter().filter(|e| matches!(e, Event::WrittenBack { .. })).count();
    assert_eq!(written, 10);
    let Some(Event::Completed(flush)) = order.last() else { panic!("{order:?}") };
    assert_eq!((flush.tag, flush.op), (99, Op::Flush));
    // Ten writes at 100 IOPS: the last is admitted after 90 ms and takes 1 ms.
    assert_eq!(flush.at, Instant::from_nanos(91_000_001));
    assert_eq!(flush.waits.total(), flush.at - flush.arrived);

    let late = Instant::from_nanos(SEC / 2);
    engine.handle_request(late, &request(Op::Write, 7 << 20, 1)).expect("a write");
    engine.handle_timeout(late + Span::from_millis(1));
    assert_eq!(engine.crash(late + Span::from_millis(1)), [(VolumeId(0), 7 << 20, 4096)]);
    assert_eq!(engine.outstanding(), 0);
}

#[test]
fn a_full_readwrite_cache_makes_writes_wait_and_says_so() {
    let mut spec = host(vec![volume(1_000, 0)]);
    spec.volumes[0].cache = CacheMode::ReadWrite;
    spec.cache.as_mut().expect("a cache").dirty_limit = Bytes::kib(256);
    let mut load = Load::new(engine(spec)).clients(32, 0, Op::Write, 8 << 10);
    load.run(Instant::ZERO, secs(3));
    let waits = load.engine.totals(VolumeId(0)).expect("the volume").waits;
    assert!(waits[Cap::CacheWriteback] > SEC, "{waits:?}");
    for c in &load.done {
        assert_eq!(c.at - c.arrived, c.waits.total() + c.medium);
    }
}

#[test]
fn a_resize_moves_the_limits_at_once_and_loses_nothing() {
    let mut load =
        Load::new(engine(host(vec![volume(500, 0)]))).clients(100, 0, Op::Write, 8 << 10);
    load.run(Instant::ZERO, secs(2));
    let p30 = DiskLimits { gate: limits(5_000, 0), io_unit: None };
    load.engine.set_disk_limits(secs(2), VolumeId(0), p30).expect("the volume");
    load.go_on(secs(4));
    assert!(load.completed_in(0, SEC, 2 * SEC).abs_diff(500) <= 1);
    let after = load.completed_in(0, 2 * SEC, 3 * SEC);
    assert!(after.abs_diff(5_000) <= 10, "{after}");
    assert_eq!(load.engine.outstanding(), 100);
    let open = DiskLimits::default();
    load.engine.set_disk_limits(secs(4), VolumeId(0), open).expect("the volume");
    load.go_on(Instant::from_nanos(4 * SEC + SEC / 100));
    assert!(load.completed_in(0, 4 * SEC, 5 * SEC) >= 900, "100 clients at 1 ms each");
}

#[test]
fn credits_are_spent_and_earned() {
    let mut spec = host(vec![volume(0, 0)]);
    let limit = Limit { rate: per_sec(500), burst: None };
    let bursting = limit.with_burst(per_sec(3_500), Span::from_secs(10));
    spec.volumes[0].limits.gate.iops = Some(bursting);
    let mut load = Load::new(engine(spec)).clients(64, 0, Op::Read, 4 << 10);
    assert_eq!(load.engine.credits(VolumeId(0), Cap::DiskIops), Some(30_000));
    load.run(Instant::ZERO, secs(14));
    assert!(load.completed_in(0, 5 * SEC, 6 * SEC).abs_diff(3_500) <= 1);
    assert!(load.completed_in(0, 12 * SEC, 13 * SEC).abs_diff(500) <= 1);
    let waits = load.engine.totals(VolumeId(0)).expect("the volume").waits;
    assert!(waits[Cap::DiskBurstIops] > 0 && waits[Cap::DiskIops] > 0);
}

#[test]
fn a_medium_without_latency_writes_back_without_end() {
    let mut spec = host(vec![volume(0, 0)]);
    spec.volumes[0].cache = CacheMode::ReadWrite;
    spec.volumes[0].medium = Medium { read: Latency::zero(), write: Latency::zero() };
    let cache = spec.cache.as_mut().expect("a cache");
    cache.latency = Latency::zero();
    cache.dirty_limit = Bytes::gib(1);
    let mut engine = engine(spec);
    for tag in 0..120_000 {
        let (device, op) = (DeviceId(0), Op::Write);
        let request = Request { device, op, offset: tag * 8_192, len: 4_096, tag };
        engine.handle_request(Instant::ZERO, &request).expect("a request in range");
    }
    let flush = Request { device: DeviceId(0), op: Op::Flush, offset: 0, len: 0, tag: 1 };
    engine.handle_request(Instant::ZERO, &flush).expect("a flush");
    let events: Vec<Event> = core::iter::from_fn(|| engine.poll_event()).collect();
    let written = events.iter().filter(|e| matches!(e, Event::WrittenBack { .. })).count();
    assert_eq!((written, engine.outstanding()), (120_000, 0));
}

#[test]
fn new_burst_limits_admit_nothing_in_the_past() {
    let mut load = Load::new(engine(host(vec![volume(10, 0)]))).clients(500, 0, Op::Read, 4096);
    load.run(Instant::ZERO, secs(3));
    let mut gate = limits(500, 0);
    gate.iops = gate.iops.map(|l| l.with_burst(per_sec(1_000), Span::from_secs(60)));
    let new = DiskLimits { gate, io_unit: None };
    load.engine.set_disk_limits(secs(3), VolumeId(0), new).expect("the volume");
    load.go_on(secs(5));
    let first = load.completed_in(0, 3 * SEC, 4 * SEC);
    assert!(first <= 1_001, "{first} in a second that allows 1,000");
    for c in &load.done {
        assert_eq!(c.at - c.arrived, c.waits.total() + c.medium, "{c:?}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut engine = engine(host(vec![volume(0, 0)]));
    let mut check = |device, offset, len, expect| {
        let request = Request { device: DeviceId(device), op: Op::Read, offset, len, tag: 0 };
        assert_eq!(engine.handle_request(Instant::ZERO, &request), Err(expect));
    };
    check(1, 0, 512, Refused::NoDevice);
    check(0, 1 << 40, 512, Refused::OutOfRange);
    check(0, u64::MAX, 512, Refused::OutOfRange);
    check(0, 0, 0, Refused::BadLength);
    check(0, 0, MAX_REQUEST + 1, Refused::BadLength);
    let bad = |device, expect| {
        let mut spec = host(vec![volume(0, 0)]);
        spec.devices = vec![device];
        assert_eq!(Engine::new(spec).err(), Some(expect));
    };
    let unit = Bytes::kib(64);
    bad(DeviceSpec::Volume(3), SpecError::NoSuchVolume { device: 0, volume: 3 });
    bad(DeviceSpec::Stripe { unit, columns: vec![0] }, SpecError::BadStripe { device: 0 });
    bad(DeviceSpec::Stripe { unit, columns: vec![0, 0] }, SpecError::BadStripe { device: 0 });
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    /// One arrival of a random trace.
    #[derive(Debug, Clone)]
    struct Arrival {
        gap: u64,
        device: usize,
        op: Op,
        block: u64,
        len: u64,
        /// A change that comes with it: of limits or of a cache mode.
        change: Option<(u8, u8)>,
    }

    /// Limits of a kind: none, low, high, bursting.
    fn some_limits(kind: u8) -> GateLimits {
        let burst = |rate: u64, peak| {
            Limit { rate: per_sec(rate), burst: None }
                .with_burst(per_sec(peak), Span::from_millis(200))
        };
        match kind % 4 {
            0 => GateLimits::default(),
            1 => limits(90, 8 << 20),
            2 => limits(2_500, 90 << 20),
            _ => GateLimits { iops: Some(burst(150, 900)), bytes: Some(burst(9 << 20, 60 << 20)) },
        }
    }

    fn change(engine: &mut Engine, now: Instant, what: (u8, u8)) {
        let volume = VolumeId(usize::from(what.0 % 4));
        match what.0 % 7 {
            0..4 => {
                let gate = some_limits(what.1);
                let limits = DiskLimits { gate, io_unit: NonZeroU64::new(256 << 10) };
                engine.set_disk_limits(now, volume, limits).expect("a volume");
            }
            4 => engine.set_host_limits(now, &some_limits(what.1), &some_limits(what.1 / 4)),
            _ => {
                let modes = [CacheMode::None, CacheMode::ReadOnly, CacheMode::ReadWrite];
                let mode = modes[usize::from(what.1 % 3)];
                engine.set_cache_mode(now, volume, mode).expect("a volume and a cache");
            }
        }
    }

    fn trace() -> impl Strategy<Value = Vec<Arrival>> {
        let op = prop_oneof![
            4 => Just(Op::Read),
            4 => Just(Op::Write),
            1 => Just(Op::WriteThrough),
            1 => Just(Op::Discard),
            1 => Just(Op::Flush),
        ];
        let len = prop_oneof![Just(512_u64), Just(8 << 10), Just(64 << 10), Just(700 << 10)];
        let change = prop_oneof![6 => Just(None), 1 => any::<(u8, u8)>().prop_map(Some)];
        let arrival = (0_u64..3_000_000, 0_usize..5, op, 0_u64..4_096, len, change).prop_map(
            |(gap, device, op, block, len, change)| Arrival { gap, device, op, block, len, change },
        );
        proptest::collection::vec(arrival, 1..150)
    }

    fn small_host() -> HostSpec {
        let mut volumes: Vec<VolumeSpec> = (0..4).map(|_| volume(700, 30 << 20)).collect();
        volumes[1].cache = CacheMode::ReadOnly;
        volumes[2].cache = CacheMode::ReadWrite;
        volumes[3].place = Place::Local;
        for v in &mut volumes {
            v.medium.read = Latency::from_quantiles(&[
                (0, Span::from_micros(500)),
                (1_000_000, Span::from_millis(4)),
            ])
            .expect("ascending quantiles");
        }
        let mut spec = host(volumes);
        spec.uncached = limits(1_100, 50 << 20);
        spec.cached = limits(900, 40 << 20);
        spec.cache.as_mut().expect("a cache").dirty_limit = Bytes::mib(1);
        let columns = vec![0, 1, 2];
        spec.devices.push(DeviceSpec::Stripe { unit: Bytes::kib(64), columns });
        spec
    }

    /// Runs a trace; `lateness` says how late the driver comes for each deadline.
    fn run(trace: &[Arrival], lateness: impl Fn(u64) -> u64) -> Vec<Event> {
        let mut engine = engine(small_host());
        let mut events = Vec::new();
        let mut now = Instant::ZERO;
        let mut calls = 0;
        for (tag, a) in trace.iter().enumerate() {
            let at = now + Span::from_nanos(a.gap);
            while let Some(due) = engine.poll_deadline().filter(|due| *due < at) {
                calls += 1;
                let late = due + Span::from_nanos(lateness(calls));
                engine.handle_timeout(late.min(at));
                events.extend(core::iter::from_fn(|| engine.poll_event()));
            }
            now = at;
            if let Some(what) = a.change {
                change(&mut engine, now, what);
            }
            let tag = tag as u64;
            let (device, offset) = (DeviceId(a.device), a.block * 4_096);
            let request = Request { device, op: a.op, offset, len: a.len, tag };
            engine.handle_request(now, &request).expect("a request in range");
        }
        while let Some(due) = engine.poll_deadline() {
            engine.handle_timeout(due);
            events.extend(core::iter::from_fn(|| engine.poll_event()));
        }
        events.extend(core::iter::from_fn(|| engine.poll_event()));
        assert_eq!(engine.outstanding(), 0);
        events
    }

    proptest! {
        #[test]
        fn every_nanosecond_is_charged_once(trace in trace()) {
            let events = run(&trace, |_| 0);
            let mut completed = 0;
            for event in events {
                if let Event::Completed(c) = event {
                    completed += 1;
                    prop_assert_eq!(c.at - c.arrived, c.waits.total() + c.medium, "{:?}", c);
                }
            }
            prop_assert_eq!(completed, trace.len());
        }

        #[test]
        fn a_late_driver_gets_the_same_admissions(trace in trace(), seed: u64) {
            let late = run(&trace, |n| (n.wrapping_mul(seed | 1) >> 40) % 5_000_000);
            let punctual = run(&trace, |_| 0);
            prop_assert_eq!(late, punctual);
        }
    }
}
