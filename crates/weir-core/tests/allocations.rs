//! The hot path allocates nothing per request once its tables have grown to the load,
//! and with a ReadWrite cache little.

use std::num::NonZeroU64;
use weir_core::{
    CacheMode, CacheSpec, Completion, DeviceId, DeviceSpec, DiskLimits, Engine, Event, GateLimits,
    HostSpec, Latency, Limit, Medium, Op, Place, Request, VolumeSpec,
};
use weir_units::{Bytes, Span};

const COLUMNS: usize = 4;

fn host(mode: CacheMode, capacity: Bytes) -> HostSpec {
    let limit = |n| NonZeroU64::new(n).map(|rate| Limit { rate, burst: None, reserve: None });
    let gate = GateLimits { iops: limit(5_000), bytes: limit(200 << 20) };
    let medium =
        Latency::from_quantiles(&[(0, Span::from_micros(500)), (1_000_000, Span::from_millis(4))])
            .expect("ascending quantiles");
    let volume = VolumeSpec {
        size: Bytes::gib(1024),
        limits: DiskLimits { gate, io_unit: NonZeroU64::new(256 << 10), merges: false },
        cache: mode,
        place: Place::Remote,
        medium: Medium::new(medium.clone(), medium.clone()),
        log: true,
        credits: weir_units::Share::WHOLE,
    };
    let cache = CacheSpec {
        capacity,
        latency: medium,
        write_through: None,
        dirty_limit: Bytes::mib(64),
        writeback_after: Span::from_secs(1),
    };
    let columns = (0..COLUMNS).collect();
    HostSpec {
        volumes: vec![volume; COLUMNS],
        devices: vec![DeviceSpec::Stripe { unit: Bytes::kib(64), columns }],
        uncached: GateLimits { iops: limit(12_800), bytes: limit(512 << 20) },
        log_rate: limit(1 << 30),
        cache: Some(cache),
        seed: 1,
        ..HostSpec::default()
    }
}

/// Requests of all kinds that are cut into pieces, each followed by the next.
fn request(tag: u64, n: u64) -> Request {
    let op = [Op::Read, Op::Write, Op::Discard, Op::Flush, Op::Read][(n % 5) as usize];
    let offset = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (1 << 16) * 4096;
    Request { device: DeviceId(0), op, offset, len: 700 << 10, tag }
}

fn next_completion(engine: &mut Engine) -> Completion {
    loop {
        match engine.poll_event() {
            Some(Event::Completed(completion)) => return completion,
            Some(Event::WrittenBack { .. }) => {}
            None => {
                let due = engine.poll_deadline().expect("something is under way");
                engine.handle_timeout(due);
            }
        }
    }
}

/// Allocations in 10,000 requests to a host that has served 50,000.
fn allocations(mode: CacheMode, capacity: Bytes) -> u64 {
    let mut engine = Engine::new(host(mode, capacity)).expect("a sound specification");
    for n in 0..64 {
        let first = request(n, n);
        engine.handle_request(weir_units::Instant::ZERO, &first).expect("in range");
    }
    let mut serve = |from: u64, count: u64| {
        for n in from..from + count {
            let done = next_completion(&mut engine);
            engine.handle_request(done.at, &request(done.tag, n)).expect("in range");
        }
    };
    serve(64, 50_000);
    allocation_counter::measure(|| serve(50_064, 10_000)).count_total
}

#[test]
fn a_request_allocates_nothing() {
    // The requests go over 256 MiB: all of it fits the cache, or a fifth.
    for capacity in [512, 50] {
        let count = allocations(CacheMode::ReadOnly, Bytes::mib(capacity));
        // A table grows once in a while: when a bucket of the timers is fuller than ever.
        assert!(count < 100, "{count} allocations in 10,000 requests, cache of {capacity} MiB");
    }
}

/// Dirty blocks are in a tree whose nodes come and go with hundreds of blocks.
#[test]
fn a_readwrite_cache_allocates_now_and_then() {
    for capacity in [512, 50] {
        let count = allocations(CacheMode::ReadWrite, Bytes::mib(capacity));
        assert!(count < 5_000, "{count} allocations in 10,000 requests, cache of {capacity} MiB");
    }
}
