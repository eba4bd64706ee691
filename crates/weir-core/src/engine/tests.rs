//! The engine against what it promises: exact rates, exact attribution, fairness,
//! the cache's accounting, live changes, and independence of how often it is called.

use super::*;
use crate::medium::Latency;
use crate::spec::{CacheMode, DiskLimits, GateLimits, Limit, Medium, Place, Reserve};
use alloc::vec;
use core::num::NonZeroU64;
use weir_units::{Share, Span};

mod ahead;
mod backlog;
mod cache;
mod commands;
mod hot_plug;
mod log_rate;
mod properties;
mod separate_writes;
mod shares;

const SEC: u64 = 1_000_000_000;

fn per_sec(n: u64) -> NonZeroU64 {
    NonZeroU64::new(n).expect("a rate above zero")
}

fn limits(iops: u64, bytes: u64) -> GateLimits {
    let limit = |n| (n > 0).then(|| Limit { rate: per_sec(n), burst: None, reserve: None });
    GateLimits { iops: limit(iops), bytes: limit(bytes) }
}

fn volume(iops: u64, bytes: u64) -> VolumeSpec {
    let medium = Latency::fixed(Span::from_millis(1));
    VolumeSpec {
        size: Bytes::gib(1024),
        limits: DiskLimits {
            gate: limits(iops, bytes),
            io_unit: NonZeroU64::new(256 << 10),
            merges: false,
        },
        cache: CacheMode::None,
        place: Place::Remote,
        medium: Medium::new(medium.clone(), medium),
        log: false,
        credits: Share::WHOLE,
    }
}

fn host(volumes: Vec<VolumeSpec>) -> HostSpec {
    let devices = (0..volumes.len()).map(DeviceSpec::Volume).collect();
    let latency = Latency::fixed(Span::from_micros(100));
    let cache = CacheSpec {
        capacity: Bytes::gib(1),
        latency,
        write_through: None,
        dirty_limit: Bytes::mib(64),
        writeback_after: Span::from_secs(1),
    };
    HostSpec { volumes, devices, cache: Some(cache), seed: 1, ..HostSpec::default() }
}

fn engine(spec: HostSpec) -> Engine {
    Engine::new(spec).expect("a sound specification")
}

/// A closed loop: each client has one request in flight at all times.
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
    /// The engine is asked for the next event, not called at each deadline.
    is_to_event: bool,
    /// Calls of the engine for what is due.
    calls: u64,
}

impl Load {
    fn new(engine: Engine) -> Self {
        Self { engine, clients: Vec::new(), done: Vec::new(), is_to_event: false, calls: 0 }
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
                Some(at) if at > until => return,
                Some(_) if self.is_to_event => drop(self.engine.handle_timeout_until_event(until)),
                Some(at) => self.engine.handle_timeout(at),
                None => return,
            }
            self.calls += 1;
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
        // Windows that begin anywhere, in steps that are no multiple of a period.
        let mut done: Vec<u64> = load.done.iter().map(|c| c.at.nanos()).collect();
        done.sort_unstable();
        let count = |from: u64, until: u64| {
            done.partition_point(|at| *at < until) - done.partition_point(|at| *at < from)
        };
        for window in [100_000_000, 137_000_001, 999_999_999] {
            for from in (SEC..4 * SEC - window).step_by(7_654_321) {
                let got = count(from, from + window) as u64;
                let (least, most) = (expect * window / SEC, (expect * window).div_ceil(SEC));
                assert!(got + 1 >= least && got <= most + 1, "{got} of {expect}/s in {window} ns");
            }
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
fn a_trim_counts_as_one_operation_and_no_bytes() {
    let mut engine = engine(host(vec![volume(500, 1 << 20)]));
    for (tag, len) in [(0, 1 << 30), (1, 1 << 30), (2, 4096)] {
        let offset = tag << 30;
        let request = Request { device: DeviceId(0), op: Op::Discard, offset, len, tag };
        engine.handle_request(Instant::ZERO, &request).expect("a request in range");
    }
    engine.handle_timeout(secs(1));
    let totals = engine.totals(VolumeId(0)).expect("the volume");
    assert_eq!((totals.discards, totals.counted), (3, 3));
    // At 500 per second, the second and the third wait 2 and 4 ms; 2 GiB would wait half an hour.
    assert_eq!(totals.waits[Cap::DiskIops], 6_000_000);
    assert_eq!(totals.waits[Cap::DiskBytes], 0);
}

/// Of four disks in units of 64 KiB: as many operations as disks are touched, however many units are.
#[test]
fn a_trim_of_a_stripe_counts_as_one_operation_of_each_disk_that_it_reaches() {
    const UNIT: u64 = 64 << 10;
    for (offset, len, expect) in [
        (0, UNIT, [1, 0, 0, 0]),
        (UNIT / 2, UNIT, [1, 1, 0, 0]),
        (3 * UNIT, 2 * UNIT, [1, 0, 0, 1]),
        (UNIT, 3 * UNIT + 512, [1, 1, 1, 1]),
        (0, 1 << 30, [1, 1, 1, 1]),
    ] {
        let mut spec = host(vec![volume(500, 1 << 20); 4]);
        spec.devices.push(DeviceSpec::Stripe { unit: Bytes::kib(64), columns: (0..4).collect() });
        let mut engine = engine(spec);
        let request = Request { device: DeviceId(4), op: Op::Discard, offset, len, tag: 0 };
        engine.handle_request(Instant::ZERO, &request).expect("a request in range");
        engine.handle_timeout(secs(1));
        let counted = [0, 1, 2, 3].map(|volume| engine.totals(VolumeId(volume)).map(|t| t.counted));
        assert_eq!(counted, expect.map(Some), "{len} bytes at {offset}");
        // Nothing waits, whatever the bytes: the next trim of each disk finds its meters as they were.
        assert_eq!(engine.backlog(secs(1), DeviceId(4)), Span::ZERO);
    }
}

#[test]
fn volumes_share_the_bytes_of_a_host_whatever_their_request_size() {
    let mut spec = host(vec![volume(0, 0), volume(0, 0)]);
    spec.uncached = limits(0, 100 << 20);
    let mut load = Load::new(engine(spec)).clients(64, 0, Op::Read, 64 << 10).clients(
        64,
        1,
        Op::Read,
        1 << 20,
    );
    load.run(Instant::ZERO, secs(6));
    let mib = |device, requests: u64| load.completed_in(device, SEC, 6 * SEC) * requests / 16;
    let (small, large) = (mib(0, 1), mib(1, 16));
    // 50 MiB a second each, to within a large request.
    assert!(small.abs_diff(250) <= 1 && large.abs_diff(250) <= 1, "{small} and {large} MiB");
}

#[test]
fn the_largest_request_counts_whole() {
    let gib = 1 << 30;
    let mut spec = host(vec![volume(1 << 20, gib), volume(1 << 20, gib)]);
    let transfer =
        Latency::zero().with_transfer(weir_units::BytesPerSec::new(gib).expect("a rate"));
    for volume in &mut spec.volumes {
        volume.medium = Medium::new(transfer.clone(), transfer.clone());
    }
    spec.devices.push(DeviceSpec::Stripe { unit: Bytes::kib(64), columns: vec![0, 1] });
    let mut engine = engine(spec);
    let (op, offset, len) = (Op::Write, 0, MAX_REQUEST);
    for (tag, device) in [(0, 0), (1, 1), (2, 0), (3, 1), (4, 2)] {
        let request = Request { device: DeviceId(device), op, offset, len, tag };
        engine.handle_request(Instant::ZERO, &request).expect("a request in range");
    }
    engine.handle_timeout(secs(60));
    let mut done: Vec<Completion> = core::iter::from_fn(|| engine.poll_event())
        .filter_map(|event| match event {
            Event::Completed(completion) => Some(completion),
            Event::WrittenBack { .. } => None,
        })
        .collect();
    done.sort_unstable_by_key(|completion| completion.tag);
    // 4 GiB less a byte at 1 GiB/s are four seconds at the gate, and as many at the medium.
    let four = Span::from_nanos(4 * SEC - 1);
    for (c, behind) in done.iter().zip([0, 0, 1, 1]) {
        assert_eq!(c.medium, four, "{c:?}");
        assert_eq!(c.waits.total().nanos(), behind * 4 * SEC, "{c:?}");
    }
    // The stripe's halves come behind two of these, and their last unit last.
    let last = done[4].waits.total().nanos();
    assert!((9_999_000_000..10_000_000_000).contains(&last), "{last}");
    for volume in 0..2 {
        let totals = engine.totals(VolumeId(volume)).expect("the volume");
        assert_eq!(totals.counted, 2 * 16_384 + 32_768, "of 256 KiB, and of the stripe's 64 KiB");
    }
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
    // At most the large request in flight and one more: 2 x 4 MiB at 512 MiB/s, and the
    // medium.
    assert!(slowest <= 17_700_000, "a 4 KiB read took {slowest} ns");
    let large = load.completed_in(0, 2 * SEC, 4 * SEC);
    assert!(large >= 250, "the cap was not used: {large} of 256 large reads");
}

#[test]
fn volumes_share_a_gate_evenly_and_a_stripe_is_its_columns() {
    let mut spec = host((0..5).map(|_| volume(0, 0)).collect());
    spec.uncached = limits(5_000, 0);
    spec.devices.push(DeviceSpec::Stripe { unit: Bytes::kib(64), columns: vec![1, 2, 3, 4] });
    let mut load = Load::new(engine(spec)).clients(64, 0, Op::Read, 8 << 10).clients(
        256,
        5,
        Op::Read,
        64 << 10,
    );
    load.run(Instant::ZERO, secs(3));
    let single = load.completed_in(0, SEC, 2 * SEC);
    let stripe = load.completed_in(5, SEC, 2 * SEC);
    assert!(single.abs_diff(1_000) <= 5 && stripe.abs_diff(4_000) <= 5, "{single} and {stripe}");
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
fn busy_time_is_the_time_with_requests_in_flight() {
    let request = |tag| Request { tag, device: DeviceId(0), op: Op::Read, offset: 0, len: 4096 };
    let mut engine = engine(host(vec![volume(500, 0)]));
    // Two come at once: 2 ms until the second may go, and its 1 ms. Later one comes alone.
    for (at, tag) in [(0, 1), (0, 2), (10, 3)] {
        let now = Instant::ZERO + Span::from_millis(at);
        engine.handle_request(now, &request(tag)).expect("a sound request");
    }
    engine.handle_timeout(secs(1));
    let busy = |engine: &Engine| engine.totals(VolumeId(0)).map(|totals| totals.busy);
    assert_eq!(busy(&engine), Some(Span::from_millis(3 + 1)));
    // Requests that a crash ended are not in flight any more.
    engine.handle_request(secs(2), &request(4)).expect("a sound request");
    engine.crash(secs(2));
    engine.handle_request(secs(3), &request(5)).expect("a sound request");
    engine.handle_timeout(secs(4));
    assert_eq!(busy(&engine), Some(Span::from_millis(3 + 1 + 1)));
}

#[test]
fn a_resize_moves_the_limits_at_once_and_loses_nothing() {
    let mut load =
        Load::new(engine(host(vec![volume(500, 0)]))).clients(100, 0, Op::Write, 8 << 10);
    load.run(Instant::ZERO, secs(2));
    let p30 = DiskLimits { gate: limits(5_000, 0), io_unit: None, merges: false };
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
    let limit = Limit { rate: per_sec(500), burst: None, reserve: None };
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

/// A P10 with empty, half and full buckets, in exact figures: 500 IOPS and 3,500 for 30 min.
#[test]
fn only_a_limit_that_bursts_has_credits() {
    let mut spec = host(vec![volume(500, 1 << 20), volume(500, 1 << 20)]);
    let iops = &mut spec.volumes[1].limits.gate.iops;
    *iops = iops.map(|limit| limit.with_burst(per_sec(1_000), Span::from_secs(60)));
    let engine = engine(spec);
    let credits = |volume, cap| engine.credits(VolumeId(volume), cap);
    for (volume, cap) in [(0, Cap::DiskIops), (0, Cap::DiskBytes), (1, Cap::DiskBytes)] {
        assert_eq!(credits(volume, cap), None, "{volume} {cap:?}");
    }
    assert_eq!(credits(1, Cap::DiskIops), Some(30_000));
}

#[test]
fn credits_start_at_any_part() {
    let p10 = |credits| {
        let mut spec = host(vec![volume(0, 0)]);
        let limit = Limit { rate: per_sec(500), burst: None, reserve: None };
        let bursting = limit.with_burst(per_sec(3_500), Span::from_secs(1_800));
        spec.volumes[0].limits.gate.iops = Some(bursting);
        spec.volumes[0].credits = credits;
        spec
    };
    let half = "50 %".parse().expect("a share");
    // A burst of s seconds, and the operations that pass in the first ten minutes past it.
    for (share, left, burst) in
        [(Share::NONE, 0, 0), (half, 2_700_000, 900), (Share::WHOLE, 5_400_000, 1_800)]
    {
        let engine = engine(p10(share));
        assert_eq!(
            engine.bucket(Instant::ZERO, VolumeId(0), Cap::DiskIops),
            Some((left, 5_400_000))
        );
        let mut load = Load::new(engine).clients(64, 0, Op::Read, 4 << 10);
        load.run(Instant::ZERO, secs(burst + 20));
        let second = |n: u64| load.completed_in(0, n * SEC, (n + 1) * SEC);
        for n in [10, 100, 800, 1_700].into_iter().filter(|n| *n < burst) {
            assert!(second(n).abs_diff(3_500) <= 1, "{share}: {} at {n} s", second(n));
        }
        for n in [burst + 2, burst + 10, burst + 18] {
            assert!(second(n).abs_diff(500) <= 1, "{share}: {} at {n} s", second(n));
        }
    }
}

#[test]
fn credits_that_are_set_hold_for_requests_that_wait() {
    let mut spec = host(vec![volume(0, 0)]);
    let limit = Limit { rate: per_sec(500), burst: None, reserve: None };
    let bursting = limit.with_burst(per_sec(3_500), Span::from_secs(1_800));
    spec.volumes[0].limits.gate.iops = Some(bursting);
    // The host bursts, too, and is given credits that its disk does not need.
    spec.uncached.iops = Some(bursting);
    let mut load = Load::new(engine(spec)).clients(64, 0, Op::Read, 4 << 10);
    load.run(Instant::ZERO, secs(5));
    load.engine.set_credits(secs(5), VolumeId(0), Share::NONE).expect("a volume");
    assert_eq!(load.engine.credits(VolumeId(0), Cap::DiskIops), Some(0));
    load.run(secs(5), secs(10));
    load.engine.set_credits(secs(10), VolumeId(0), Share::WHOLE).expect("a volume");
    load.run(secs(10), secs(15));
    load.engine.set_host_credits(secs(15), Share::NONE);
    assert_eq!(load.engine.credits(VolumeId(0), Cap::HostUncachedIops), Some(0));
    load.run(secs(15), secs(20));
    for (from, expect) in [(1, 3_500), (6, 500), (11, 3_500), (16, 500)] {
        let done = load.completed_in(0, from * SEC, (from + 3) * SEC);
        assert!(done.abs_diff(3 * expect) <= 2, "{done} from {from} s on, not {}", 3 * expect);
    }
    let none = load.engine.set_credits(secs(20), VolumeId(1), Share::NONE);
    assert_eq!(none, Err(Refused::NoDevice));
    // Idle buckets fill without a call of the engine.
    load.engine.crash(secs(20));
    let later = load.engine.bucket(secs(50), VolumeId(0), Cap::HostUncachedIops);
    let (left, full) = later.expect("a bucket");
    assert!(left.abs_diff(30 * 500) <= 1, "{left}");
    assert_eq!(full, 5_400_000);
}

/// One volume asks for all bytes of a host, another for all operations.
#[test]
fn a_host_delivers_both_of_its_rates_to_volumes_that_share_them() {
    let mut spec = host(vec![volume(0, 0), volume(0, 0)]);
    spec.uncached = limits(10_000, 100 << 20);
    let load = Load::new(engine(spec)).clients(8, 0, Op::Read, 256 << 10);
    let mut load = load.clients(256, 1, Op::Read, 4 << 10);
    load.run(Instant::ZERO, secs(12));
    let of = |len: u64| {
        let within = load.done.iter().filter(|c| (2 * SEC..12 * SEC).contains(&c.at.nanos()));
        within.filter(|c| c.len == len).count() as u64
    };
    let (large, small) = (of(256 << 10), of(4 << 10));
    let (operations, bytes) = (large + small, (large << 18) + (small << 12));
    // To a thousandth, for those at the medium come and go.
    assert!(operations.abs_diff(100_000) <= 100, "{operations} operations in ten seconds");
    assert!(bytes.abs_diff(1_000 << 20) <= 1 << 20, "{bytes} bytes in ten seconds");
}

/// One asks for two and a half times the bytes that there are, the other for 95 % of the operations:
/// those of the first that wait for bytes have taken operations, but the second keeps its half.
#[test]
fn a_volume_over_its_byte_limit_keeps_to_its_share_of_operations() {
    let mut spec = host(vec![volume(0, 0), volume(0, 0)]);
    spec.uncached = limits(10_000, 100 << 20);
    let mut engine = engine(spec);
    let large = (0..40_000).map(|n| (n * SEC / 4_000, 0, 64 << 10));
    let small = (0..95_000).map(|n| (n * SEC / 9_500, 1, 4 << 10));
    let mut all: Vec<(u64, usize, u64)> = large.chain(small).collect();
    all.sort_unstable();
    for (tag, (at, device, len)) in all.into_iter().enumerate() {
        let (tag, device) = (tag as u64, DeviceId(device));
        let request = Request { device, op: Op::Read, offset: (tag % 1_000) << 20, len, tag };
        engine.handle_request(Instant::from_nanos(at), &request).expect("it fits");
    }
    engine.handle_timeout(secs(10));
    let all = core::iter::from_fn(|| engine.poll_event());
    let (mut small, mut bytes) = (0, 0);
    for event in all {
        let Event::Completed(done) = event else { continue };
        small += u64::from(done.device == DeviceId(1));
        bytes += done.len;
    }
    assert!(small >= 50_000, "{small} of 95,000 in ten seconds, and 50,000 are its half");
    // Bytes are used up, but for those at the medium.
    assert!(bytes.abs_diff(1_000 << 20) <= 10 << 20, "{bytes} of 1,000 MiB");
}

/// A request that a removed limit releases meets the new limit.
#[test]
fn new_host_limits_apply_to_requests_that_wait_at_another_gate() {
    let mut spec = host(vec![volume(0, 0)]);
    spec.uncached = limits(100, 0);
    let mut engine = engine(spec);
    for tag in 0..1_000 {
        let (device, op, len) = (DeviceId(0), Op::Read, 256 << 10);
        let request = Request { device, op, offset: tag << 20, len, tag };
        engine.handle_request(Instant::ZERO, &request).expect("it fits");
    }
    engine.set_host_limits(secs(1), &limits(0, 1 << 20), &limits(0, 0));
    engine.handle_timeout(secs(3));
    let all = core::iter::from_fn(|| engine.poll_event());
    let after = all.filter(|event| {
        matches!(event, Event::Completed(done) if (2 * SEC..3 * SEC).contains(&done.at.nanos()))
    });
    assert_eq!(after.count(), 4);
}

/// At a shared gate a volume with little load overtakes a busy one.
#[test]
fn an_overtaken_request_is_charged_to_the_cap_that_throttled_the_head() {
    let mut spec = host(vec![volume(0, 0), volume(0, 0)]);
    let limit = Limit { rate: per_sec(12_800), burst: None, reserve: None };
    spec.uncached.iops = Some(limit.with_burst(per_sec(16_000), Span::from_secs(1)));
    let load = Load::new(engine(spec)).clients(120, 0, Op::Write, 4 << 10);
    let mut load = load.clients(20, 1, Op::Write, 4 << 10);
    load.run(Instant::ZERO, secs(3));
    let share = |from: u64, cap: Cap| {
        let within = load.done.iter().filter(|c| (from..from + SEC).contains(&c.arrived.nanos()));
        let (held, all) = within
            .fold((0, 0), |(held, all), c| (held + c.waits[cap], all + c.waits.total().nanos()));
        held * 100 / all
    };
    assert_eq!(share(0, Cap::HostUncachedBurstIops), 99, "while the credits last");
    assert_eq!(share(2 * SEC, Cap::HostUncachedIops), 100);
}

/// A request behind 1 MiB, which owes 0.4 s of operations and 1 s of bytes, when both limits change.
#[test]
fn a_change_of_limits_charges_the_cap_that_held_a_request_and_keeps_what_is_owed() {
    for (millis, at_operations, at_bytes) in [
        // Two operations are owed then, at 20 a second, and 0.8 MiB, at 4 MiB/s.
        (200, 300_000_000, 100_000_000),
        // The operations of 0.4 s are over at this moment, and 0.6 MiB are owed.
        (400, 0, 550_000_000),
        (500, 0, 625_000_000),
    ] {
        let mut engine = engine(host(vec![volume(10, 1 << 20)]));
        for (tag, len) in [(0, 1 << 20), (1, 4096)] {
            let request = Request { device: DeviceId(0), op: Op::Read, offset: 0, len, tag };
            engine.handle_request(Instant::ZERO, &request).expect("in range");
        }
        let at = Instant::ZERO + Span::from_millis(millis);
        let io_unit = NonZeroU64::new(256 << 10);
        let new = DiskLimits { gate: limits(20, 4 << 20), io_unit, merges: false };
        engine.set_disk_limits(at, VolumeId(0), new).expect("the volume");
        engine.handle_timeout(secs(5));
        let last = core::iter::from_fn(|| engine.poll_event()).last();
        let Some(Event::Completed(done)) = last else { panic!("{last:?}") };
        let near = |cap: Cap, expect: u64| done.waits[cap].abs_diff(expect) <= 2;
        let is_charged = near(Cap::DiskIops, at_operations) && near(Cap::DiskBytes, at_bytes);
        assert!(done.tag == 1 && is_charged, "changed at {millis} ms: {:?}", done.waits);
    }
}

#[test]
fn new_burst_limits_admit_nothing_in_the_past() {
    let mut load = Load::new(engine(host(vec![volume(10, 0)]))).clients(500, 0, Op::Read, 4096);
    load.run(Instant::ZERO, secs(3));
    let mut gate = limits(500, 0);
    gate.iops = gate.iops.map(|l| l.with_burst(per_sec(1_000), Span::from_secs(60)));
    let new = DiskLimits { gate, io_unit: None, merges: false };
    load.engine.set_disk_limits(secs(3), VolumeId(0), new).expect("the volume");
    load.go_on(secs(5));
    let first = load.completed_in(0, 3 * SEC, 4 * SEC);
    assert!(first <= 1_001, "{first} in a second that allows 1,000");
    for c in &load.done {
        assert_eq!(c.at - c.arrived, c.waits.total() + c.medium, "{c:?}");
    }
}

#[test]
fn bursting_on_demand_has_no_end_and_is_counted() {
    let mut spec = host(vec![volume(0, 0), volume(7_000, 0)]);
    let limit = Limit { rate: per_sec(5_000), burst: None, reserve: None };
    spec.volumes[0].limits.gate.iops = Some(limit.with_on_demand(per_sec(7_000)));
    let mut load =
        Load::new(engine(spec)).clients(64, 0, Op::Read, 4 << 10).clients(64, 1, Op::Read, 4 << 10);
    load.run(Instant::ZERO, secs(4));
    assert!(load.completed_in(0, 3 * SEC, 4 * SEC).abs_diff(7_000) <= 1);
    let of = |volume| load.engine.totals(VolumeId(volume)).expect("the volume");
    // The first request of the fifth second may have passed.
    assert!(of(0).burst_transactions.abs_diff(4 * 2_000) <= 1, "{}", of(0).burst_transactions);
    assert_eq!(of(1).burst_transactions, 0);
    assert!(of(0).waits[Cap::DiskBurstIops] > 0 && of(0).waits[Cap::DiskIops] == 0);
    assert_eq!(load.engine.credits(VolumeId(0), Cap::DiskIops), None);
}

#[test]
fn a_disk_that_begins_to_burst_on_demand_still_owes() {
    let mut engine = engine(host(vec![volume(1, 0)]));
    let request = |tag| Request { device: DeviceId(0), op: Op::Read, offset: 0, len: 4096, tag };
    engine.handle_request(Instant::ZERO, &request(0)).expect("a request in range");
    let mut new = limits(2, 0);
    new.iops = new.iops.map(|limit| limit.with_on_demand(per_sec(4)));
    let limits = DiskLimits { gate: new, io_unit: None, merges: false };
    engine.set_disk_limits(Instant::ZERO, VolumeId(0), limits).expect("the volume");
    engine.handle_request(Instant::ZERO, &request(1)).expect("a request in range");
    engine.handle_timeout(secs(2));
    let last = core::iter::from_fn(|| engine.poll_event()).last();
    let Some(Event::Completed(second)) = last else { panic!("{last:?}") };
    // One operation was owed: a quarter of a second at the new rate.
    assert_eq!(second.waits.total(), Span::from_millis(250));
}

#[test]
fn going_to_the_next_event_gives_the_same_as_going_to_each_deadline() {
    let run = |to_event: bool| {
        let mut spec = host(vec![volume(5_000, 200 << 20); 5]);
        spec.uncached = limits(50_000, 512 << 20);
        spec.devices.push(DeviceSpec::Stripe { unit: Bytes::kib(64), columns: (0..4).collect() });
        let striped = Load::new(engine(spec)).clients(6, 5, Op::Read, 1 << 20);
        let mut load = striped.clients(3, 4, Op::Write, 96 << 10);
        load.is_to_event = to_event;
        load.run(Instant::ZERO, secs(2));
        (load.calls, load.done)
    };
    let ((each, expect), (few, done)) = (run(false), run(true));
    assert!(expect.len() > 500 && few * 3 < each, "{} {few} {each}", expect.len());
    assert_eq!(done, expect);
}

/// 64 KiB units of sequential 4 KiB I/Os that all wait count once each.
#[test]
fn adjacent_requests_that_wait_count_as_one() {
    let admitted = |merges: bool, stride: u64, op: fn(u64) -> Op| {
        let mut spec = host(vec![volume(100, 0)]);
        spec.volumes[0].limits.io_unit = NonZeroU64::new(64 << 10);
        spec.volumes[0].limits.merges = merges;
        let mut engine = engine(spec);
        for n in 0..320 {
            let offset = n * stride;
            let request = Request { device: DeviceId(0), op: op(n), offset, len: 4_096, tag: n };
            engine.handle_request(Instant::ZERO, &request).expect("in range");
        }
        while let Some(due) = engine.poll_deadline() {
            engine.handle_timeout(due);
        }
        let counted = engine.volumes[0].totals.counted;
        (counted, engine.now.nanos() / 1_000_000)
    };
    let reads = |_| Op::Read;
    // The first passes alone; the other 319 are 19 whole units and 15 I/Os. The last wait for 20 ops.

    assert_eq!(admitted(true, 4_096, reads), (21, 211));
    assert_eq!(admitted(false, 4_096, reads), (320, 3_191));
    // Neither gaps nor a change of direction merge.
    assert_eq!(admitted(true, 8_192, reads), (320, 3_191));
    assert_eq!(admitted(true, 4_096, |n| if n % 2 == 0 { Op::Read } else { Op::Write }).0, 320);
}

/// The first write has left the queue, where only a discard waits.
#[test]
fn a_write_after_a_discard_joins_no_run() {
    let mut spec = host(vec![volume(100, 0)]);
    spec.volumes[0].limits.io_unit = NonZeroU64::new(64 << 10);
    spec.volumes[0].limits.merges = true;
    let mut engine = engine(spec);
    for (tag, (op, offset)) in
        (0..).zip([(Op::Write, 0), (Op::Discard, 1 << 20), (Op::Write, 4_096)])
    {
        let request = Request { device: DeviceId(0), op, offset, len: 4_096, tag };
        engine.handle_request(Instant::ZERO, &request).expect("in range");
    }
    while let Some(due) = engine.poll_deadline() {
        engine.handle_timeout(due);
    }
    assert_eq!(engine.volumes[0].totals.counted, 3);
}
