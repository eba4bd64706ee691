//! Does a late driver get what the simulator gets?
//!
//! One trace goes through the engine in virtual time, where everything is done in
//! the nanosecond it is due, and through [`HostLoop`](crate::host_loop::HostLoop),
//! whose driver comes late and at irregular times. The fingerprints of all
//! completions (who, when, held by what, how long) must be the same.

use super::rig::{Cold, Rig, host, iops, memory, volume};
use crate::host_loop::Behind;
use crate::tap::{Buffer, Step as Tap};
use crate::volume::VolumeData;
use proptest::prelude::*;
use std::num::NonZeroU64;
use std::sync::Arc;
use weir_core::{
    CacheMode, DeviceId, DeviceSpec, DiskLimits, Engine, Event, GateLimits, HostSpec, Latency,
    Limit, Medium, Op, Place, Request as EngineRequest, Reserve, Totals, TraceHash, VolumeId,
    VolumeSpec,
};
use weir_proto::{Command, CommandFlags, Request};
use weir_store::MemoryStore;
use weir_units::{Bytes, Instant, Span};

const SIZE: u64 = 16 << 20;
const VOLUMES: usize = 4;

/// An event of the host, and the time since the one before.
#[derive(Debug, Clone)]
struct Step {
    gap: u64,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    Io { device: usize, op: Op, block: u64, len: u32 },
    Resize { volume: usize, size: u64, iops: u64 },
    SetCache { volume: usize, mode: CacheMode },
    Warm { device: usize, block: u64, len: u64 },
}

fn what() -> impl Strategy<Value = What> {
    let op = prop_oneof![
        5 => Just(Op::Read),
        4 => Just(Op::Write),
        1 => Just(Op::WriteThrough),
        1 => Just(Op::Discard),
        1 => Just(Op::Flush),
    ];
    let len = prop_oneof![Just(512_u32), Just(8 << 10), Just(64 << 10), Just(700 << 10)];
    let mode =
        prop_oneof![Just(CacheMode::None), Just(CacheMode::ReadOnly), Just(CacheMode::ReadWrite)];
    prop_oneof![
        40 => (0..=VOLUMES, op, 0_u64..2048, len)
            .prop_map(|(device, op, block, len)| What::Io { device, op, block, len }),
        1 => (0..VOLUMES, 0_u64..8, 300_u64..3_000)
            .prop_map(|(volume, more, iops)| What::Resize { volume, size: SIZE + (more << 20), iops }),
        1 => (0..2_usize, mode).prop_map(|(volume, mode)| What::SetCache { volume, mode }),
        1 => (0..=VOLUMES, 0_u64..2048, 1_u64..(1 << 20))
            .prop_map(|(device, block, len)| What::Warm { device, block, len }),
    ]
}

fn trace() -> impl Strategy<Value = Vec<Step>> {
    let gap = prop_oneof![3 => 0_u64..3_000_000, 1 => Just(0), 1 => 0_u64..400_000_000];
    let step = (gap, what()).prop_map(|(gap, what)| Step { gap, what });
    proptest::collection::vec(step, 1..200)
}

fn limit(n: u64) -> Option<Limit> {
    NonZeroU64::new(n).map(|rate| Limit { rate, burst: None, reserve: None })
}

/// Volumes of every cache mode and place, a stripe over three of them, and every
/// gate narrow enough to hold something.
fn spec() -> HostSpec {
    let read =
        Latency::from_quantiles(&[(0, Span::from_micros(500)), (1_000_000, Span::from_millis(4))]);
    let medium = Medium {
        sync: Some(Latency::fixed(Span::from_micros(300))),
        ..Medium::new(read.expect("ascending quantiles"), Latency::fixed(Span::from_millis(1)))
    };
    let gate = GateLimits { iops: limit(700), bytes: limit(30 << 20) };
    let reserve = Some(Reserve { holds: Span::from_millis(20), refill: Span::from_millis(60) });
    let with_reserve = |limit: Option<Limit>| limit.map(|limit| limit.with_reserve(reserve));
    let gate = GateLimits { iops: with_reserve(gate.iops), bytes: with_reserve(gate.bytes) };
    let limits = DiskLimits { gate, io_unit: NonZeroU64::new(256 << 10), merges: false };
    let one = |_| VolumeSpec { limits, medium: medium.clone(), ..volume(Bytes::new(SIZE)) };
    let mut volumes: Vec<VolumeSpec> = (0..VOLUMES).map(one).collect();
    volumes[1].cache = CacheMode::ReadOnly;
    volumes[2].cache = CacheMode::ReadWrite;
    volumes[3].place = Place::Local;
    let mut spec = host(volumes);
    spec.uncached = GateLimits { iops: limit(1_100), bytes: limit(50 << 20) };
    spec.cached = GateLimits { iops: limit(900), bytes: limit(40 << 20) };
    spec.devices.push(DeviceSpec::Stripe { unit: Bytes::kib(64), columns: vec![0, 1, 2] });
    spec
}

/// The result of a run: the fingerprint, and each volume's counters.
type Outcome = (TraceHash, Vec<Totals>);

fn totals(engine: &Engine) -> Vec<Totals> {
    (0..VOLUMES).filter_map(|id| engine.totals(VolumeId(id)).copied()).collect()
}

/// As a simulator would: never late.
fn in_virtual_time(trace: &[Step]) -> Outcome {
    let mut engine = Engine::new(spec()).expect("a sound specification");
    let mut hash = TraceHash::default();
    let mut record = |engine: &mut Engine| {
        while let Some(event) = engine.poll_event() {
            if let Event::Completed(completion) = event {
                hash.record(&completion);
            }
        }
    };
    let mut now = Instant::ZERO;
    for (tag, step) in (0..).zip(trace) {
        let at = now + Span::from_nanos(step.gap);
        while let Some(due) = engine.poll_deadline().filter(|due| *due <= at) {
            engine.handle_timeout(due);
            record(&mut engine);
        }
        now = at;
        match step.what {
            What::Io { device, op, block, len } => {
                let (offset, len) = if op == Op::Flush { (0, 0) } else { (block * 4096, len) };
                let (device, len) = (DeviceId(device), u64::from(len));
                let request = EngineRequest { device, op, offset, len, tag };
                engine.handle_request(now, &request).expect("in range");
            }
            What::Resize { volume, size, iops: n } => {
                let volume = VolumeId(volume);
                engine.set_disk_limits(now, volume, iops(n)).expect("a volume");
                engine.set_size(now, volume, Bytes::new(size)).expect("a volume");
            }
            What::SetCache { volume, mode } => {
                engine.set_cache_mode(now, VolumeId(volume), mode).expect("a volume");
            }
            What::Warm { device, block, len } => {
                engine.warm(DeviceId(device), block * 4096, len);
            }
        }
        record(&mut engine);
    }
    while let Some(due) = engine.poll_deadline() {
        engine.handle_timeout(due);
        record(&mut engine);
    }
    (hash, totals(&engine))
}

/// Irregular, from a seed: some deadlines are met, some by up to 5 ms late, some
/// turns come when nothing is due.
struct Lateness(u64);

impl Lateness {
    fn next(&mut self) -> Span {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        Span::from_nanos(if self.0 >> 62 == 0 { 0 } else { (self.0 >> 33) % 5_000_000 })
    }
}

fn request(op: Op, offset: u64, len: u32) -> (Request, Vec<u8>) {
    let new = |command| Request::new(command, 0, offset, len);
    match op {
        Op::Read => (new(Command::Read), Vec::new()),
        Op::Write => (new(Command::Write), vec![1; len as usize]),
        Op::WriteThrough => (new(Command::Write).with(CommandFlags::FUA), vec![2; len as usize]),
        Op::Discard => (new(Command::Trim), Vec::new()),
        Op::Flush => (Request::new(Command::Flush, 0, 0, 0), Vec::new()),
    }
}

/// As the server does, on a clock that is looked at late.
fn through_the_host_loop(trace: &[Step], seed: u64) -> Outcome {
    through_a_host_loop(trace, seed, None)
}

/// Does the same, recorded.
fn through_a_host_loop(trace: &[Step], seed: u64, buffer: Option<Buffer>) -> Outcome {
    let stores = (0..VOLUMES).map(|_| memory(Bytes::new(SIZE))).collect();
    let mut rig = Rig::new(spec(), stores);
    through(&mut rig, trace, seed, buffer)
}

/// Does the same with all volumes on backends, each job of which ends later. Returns also the sums of
/// the service times, of the waits for backends, and of the server overheads.
fn through_backends(trace: &[Step], seed: u64, buffer: Buffer) -> (Outcome, [Span; 3]) {
    let backend = |_| {
        let store = Cold::deep(MemoryStore::new(Bytes::new(SIZE)), 32);
        VolumeData::on_backend(Arc::new(store))
    };
    let mut rig = Rig::new(spec(), (0..VOLUMES).map(backend).collect());
    let outcome = through(&mut rig, trace, seed, Some(buffer));
    let mut sums = [Span::ZERO; 3];
    for device in 0..=VOLUMES {
        let served = rig.host.served(DeviceId(device)).expect("a device");
        for (sum, part) in sums.iter_mut().zip([served.governed, served.backend, served.overhead]) {
            *sum += part;
        }
    }
    (outcome, sums)
}

fn through(rig: &mut Rig, trace: &[Step], seed: u64, buffer: Option<Buffer>) -> Outcome {
    if let Some(buffer) = buffer {
        assert!(rig.host.begin_recording(buffer.clone()));
        assert!(!rig.host.begin_recording(buffer), "one recording at a time");
    }
    let mut lateness = Lateness(seed);
    let mut sent = Vec::new();
    for step in trace {
        let at = rig.now + Span::from_nanos(step.gap);
        while let Some(due) = rig.host.deadline() {
            let turn = due.max(rig.now) + lateness.next();
            if turn >= at {
                break;
            }
            rig.now = turn;
            rig.turn();
            rig.work_one();
        }
        rig.now = at;
        match step.what {
            What::Io { device, op, block, len } => {
                let (request, payload) = request(op, block * 4096, len);
                sent.push(rig.send(rig.me, device, request, &payload));
            }
            What::Resize { volume: id, size, iops: n } => {
                let spec = VolumeSpec { limits: iops(n), ..volume(Bytes::new(size)) };
                rig.host.resize(at, VolumeId(id), "v", &spec, Behind::Keep, |told| {
                    told.expect("it only grows")
                });
            }
            What::SetCache { volume, mode } => rig.host.set_cache(at, VolumeId(volume), mode),
            What::Warm { device, block, len } => {
                rig.host.warm(DeviceId(device), block * 4096, len);
            }
        }
    }
    while let Some(due) = rig.host.deadline() {
        rig.now = due.max(rig.now) + lateness.next();
        rig.turn();
    }
    rig.settle();
    assert!(sent.iter().all(|cookie| rig.answer(*cookie).is_some()));
    rig.host.end_recording();
    (rig.host.trace(), totals(rig.host.engine()))
}

/// Replays a recording in virtual time: each request at its time, in its order. Returns the
/// fingerprint, and the latencies of the replies as recorded.
fn replayed(buffer: &Buffer) -> (TraceHash, Vec<Span>) {
    let mut events = Vec::new();
    assert_eq!(buffer.take(&mut events), 0, "nothing is lost");
    let mut engine = Engine::new(spec()).expect("a sound specification");
    let mut hash = TraceHash::default();
    let mut record = |engine: &mut Engine| {
        while let Some(event) = engine.poll_event() {
            if let Event::Completed(completion) = event {
                hash.record(&completion);
            }
        }
    };
    let mut latencies = Vec::new();
    for event in events {
        match event.step {
            Tap::Begun { device, op, offset, len, at } => {
                let request = EngineRequest { device, op, offset, len, tag: 0 };
                engine.handle_request(at, &request).expect("in range");
                record(&mut engine);
            }
            Tap::Ended(latency) => latencies.extend(latency),
        }
    }
    while let Some(due) = engine.poll_deadline() {
        engine.handle_timeout(due);
        record(&mut engine);
    }
    (hash, latencies)
}

/// Sizes that never shrink: a run whose shrinking is refused is another run.
fn growing(mut trace: Vec<Step>) -> Vec<Step> {
    let mut sizes = [SIZE; VOLUMES];
    for step in &mut trace {
        if let What::Resize { volume, size, .. } = &mut step.what {
            sizes[*volume] = sizes[*volume].max(*size);
            *size = sizes[*volume];
        }
    }
    trace
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn the_server_admits_what_the_simulator_admits(trace in trace(), seed: u64) {
        let trace = growing(trace);
        let (hash, totals) = through_the_host_loop(&trace, seed);
        let (expect, expect_totals) = in_virtual_time(&trace);
        prop_assert_eq!(totals, expect_totals);
        prop_assert_eq!(hash, expect);
    }

    /// A backend delays replies and no admission, and all of the latency is accounted for.
    #[test]
    fn a_slow_backend_changes_no_admission_and_its_waits_add_up(trace in trace(), seed: u64) {
        // Changes of a host wait for its stores.
        let is_request = |step: &Step| matches!(step.what, What::Io { .. });
        let trace: Vec<Step> = trace.into_iter().filter(is_request).collect();
        let buffer = Buffer::default();
        let ((hash, totals), sums) = through_backends(&trace, seed, buffer.clone());
        let (expect, expect_totals) = in_virtual_time(&trace);
        prop_assert_eq!(totals, expect_totals);
        prop_assert_eq!(hash, expect);
        let (_, latencies) = replayed(&buffer);
        prop_assert_eq!(latencies.len(), trace.len());
        let sum = |spans: &[Span]| spans.iter().fold(Span::ZERO, |sum, span| sum + *span);
        prop_assert_eq!(sum(&latencies), sum(&sums));
    }

    #[test]
    fn a_recording_of_the_server_is_replayed_with_the_same_admissions(
        trace in trace(),
        seed: u64,
    ) {
        // A recording has the requests and no changes of the host.
        let is_request = |step: &Step| matches!(step.what, What::Io { .. });
        let trace: Vec<Step> = trace.into_iter().filter(is_request).collect();
        let buffer = Buffer::default();
        let (hash, _) = through_a_host_loop(&trace, seed, Some(buffer.clone()));
        let (expect, latencies) = replayed(&buffer);
        prop_assert_eq!(hash, expect);
        prop_assert_eq!(latencies.len(), trace.len());
    }
}

#[test]
fn the_fingerprint_tells_a_nanosecond() {
    let step =
        |gap| vec![Step { gap, what: What::Io { device: 0, op: Op::Read, block: 0, len: 4096 } }];
    assert_eq!(in_virtual_time(&step(5)).0, in_virtual_time(&step(5)).0);
    assert_ne!(in_virtual_time(&step(5)).0, in_virtual_time(&step(6)).0);
}
