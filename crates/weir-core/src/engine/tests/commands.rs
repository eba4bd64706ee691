//! Requests that are refused, and sizes, limits and credits at the start and after a change.

use super::*;

#[test]
fn invalid_requests_are_refused() {
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
    // One that ends where the device does is not.
    let offset = (1 << 40) - 512;
    let last = Request { device: DeviceId(0), op: Op::Read, offset, len: 512, tag: 0 };
    assert_eq!(engine.handle_request(Instant::ZERO, &last), Ok(()));
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

/// Notices a size that is not that of the smallest column in whole units, and one that a change
/// of a column leaves as it was.
#[test]
fn a_stripe_has_the_whole_units_of_its_smallest_column_before_and_after_a_resize() {
    let mut spec = host(vec![volume(0, 0), volume(0, 0)]);
    spec.volumes[0].size = Bytes::kib(1_000);
    spec.volumes[1].size = Bytes::kib(2_000);
    spec.devices.push(DeviceSpec::Stripe { unit: Bytes::kib(64), columns: vec![0, 1] });
    let mut engine = engine(spec);
    // 15 units of each.
    assert_eq!(engine.device_size(DeviceId(2)), Some(Bytes::kib(1_920)));
    engine.set_size(Instant::ZERO, VolumeId(0), Bytes::kib(64)).expect("a volume");
    assert_eq!(engine.device_size(DeviceId(2)), Some(Bytes::kib(128)));
}

/// Notices a change of limits that keeps the old unit of counting, or the old billing counter.
#[test]
fn new_limits_count_in_their_own_unit_and_bill_their_own_burst() {
    let mut engine = engine(host(vec![volume(100, 0)]));
    let mut gate = limits(1, 0);
    gate.iops = gate.iops.map(|limit| limit.with_on_demand(per_sec(100)));
    let new = DiskLimits { gate, io_unit: NonZeroU64::new(4_096), merges: false };
    engine.set_disk_limits(Instant::ZERO, VolumeId(0), new).expect("a volume");
    let request = Request { device: DeviceId(0), op: Op::Read, offset: 0, len: 16 << 10, tag: 0 };
    engine.handle_request(Instant::ZERO, &request).expect("a request in range");
    engine.handle_timeout(secs(1));
    let totals = engine.totals(VolumeId(0)).map(|t| (t.counted, t.burst_transactions));
    // Of four operations in a second, one is within the target.
    assert_eq!(totals, Some((4, 3)));
}

/// Notices a host or an added volume whose buckets are full whatever its specification says.
#[test]
fn a_host_and_an_added_volume_start_with_the_credits_that_they_are_given() {
    let mut gate = limits(500, 0);
    gate.iops = gate.iops.map(|limit| limit.with_burst(per_sec(1_000), Span::from_secs(60)));
    let mut spec = host(vec![volume(0, 0)]);
    (spec.uncached, spec.credits) = (gate, Share::NONE);
    let mut engine = engine(spec);
    assert_eq!(engine.credits(VolumeId(0), Cap::HostUncachedIops), Some(0));
    let mut added = volume(0, 0);
    (added.limits.gate, added.credits) = (gate, Share::NONE);
    let (added, _) = engine.add_volume(secs(5), added).expect("it fits");
    assert_eq!(engine.credits(added, Cap::DiskIops), Some(0));
}

/// The number of spent credits is kept, not the part of the bucket; limits without a burst forget it.
#[test]
fn new_limits_keep_the_credits_that_were_spent_if_they_burst() {
    let gate = |peak: Option<u64>| {
        let limit = Limit { rate: per_sec(500), burst: None, reserve: None };
        let bursting = |peak| limit.with_burst(per_sec(peak), Span::from_secs(100));
        GateLimits { iops: Some(peak.map_or(limit, bursting)), bytes: None }
    };
    let mut spec = host(vec![volume(0, 0)]);
    spec.volumes[0].limits.gate = gate(Some(1_500));
    let limits = spec.volumes[0].limits;
    let mut engine = engine(spec);
    let mut after = |peak| {
        let new = DiskLimits { gate: gate(peak), ..limits };
        engine.set_disk_limits(Instant::ZERO, VolumeId(0), new).expect("the volume");
        engine.credits(VolumeId(0), Cap::DiskIops)
    };
    assert_eq!(after(Some(1_500)), Some(100_000));
    let half = "50 %".parse().expect("a share");
    engine.set_credits(Instant::ZERO, VolumeId(0), half).expect("a volume");
    let mut after = |peak| {
        let new = DiskLimits { gate: gate(peak), ..limits };
        engine.set_disk_limits(Instant::ZERO, VolumeId(0), new).expect("the volume");
        engine.credits(VolumeId(0), Cap::DiskIops)
    };
    let all = [Some(2_500), Some(1_500), Some(700), Some(1_500), None, Some(1_500)].map(&mut after);
    assert_eq!(all, [Some(150_000), Some(50_000), Some(0), Some(80_000), None, Some(100_000)]);
}

/// A host whose four limits each burst on credits of their own.
fn with_four_buckets() -> HostSpec {
    let credits = |credits| {
        let limit = Limit { rate: per_sec(500), burst: None, reserve: None };
        Some(limit.with_credits(per_sec(1_000), credits))
    };
    let mut spec = host(vec![volume(0, 0)]);
    spec.uncached = GateLimits { iops: credits(1_000), bytes: credits(2_000) };
    spec.cached = GateLimits { iops: credits(3_000), bytes: credits(4_000) };
    spec
}

/// Notices a cap of the host whose credits are not known, or are those of another.
#[test]
fn each_cap_of_a_host_has_its_own_credits() {
    let mut engine = engine(with_four_buckets());
    let caps =
        [Cap::HostUncachedIops, Cap::HostUncachedBytes, Cap::HostCachedIops, Cap::HostCachedBytes];
    let buckets = |engine: &Engine| {
        caps.map(|cap| engine.bucket(Instant::ZERO, VolumeId(0), cap).expect("a bucket"))
    };
    let full = [1_000, 2_000, 3_000, 4_000];
    assert_eq!(buckets(&engine), full.map(|credits| (credits, credits)));
    engine.set_host_credits(Instant::ZERO, "50 %".parse().expect("a share"));
    assert_eq!(buckets(&engine), full.map(|credits| (credits / 2, credits)));
    assert_eq!(engine.bucket(Instant::ZERO, VolumeId(0), Cap::DiskIops), None);
    assert_eq!(engine.bucket(Instant::ZERO, VolumeId(0), Cap::CacheWriteback), None);
}

#[test]
fn the_specification_of_a_volume_is_the_current_one() {
    let mut engine = engine(host(vec![volume(0, 0)]));
    engine.set_size(Instant::ZERO, VolumeId(0), Bytes::mib(3)).expect("a volume");
    assert_eq!(engine.volume(VolumeId(0)).map(|spec| spec.size), Some(Bytes::mib(3)));
    assert!(engine.volume(VolumeId(1)).is_none());
}

/// Sends three requests of 4 KiB at once to a disk of 1,000 IOPS, and changes the host after half
/// a second. Returns the waits for the disk and for `cap`, in milliseconds.
fn waits_of_three(
    spec: HostSpec,
    op: Op,
    cap: Cap,
    change: impl FnOnce(&mut Engine, Instant),
) -> (u64, u64) {
    let mut engine = engine(spec);
    for tag in 0..3 {
        let request = Request { device: DeviceId(0), op, offset: 0, len: 4_096, tag };
        engine.handle_request(Instant::ZERO, &request).expect("in range");
    }
    change(&mut engine, Instant::from_nanos(SEC / 2));
    engine.handle_timeout(secs(5));
    assert_eq!(engine.outstanding(), 0);
    let waits = engine.totals(VolumeId(0)).expect("the volume").waits;
    let millis = |cap| waits.get(cap).nanos() / 1_000_000;
    assert_eq!(waits.total(), waits.get(cap) + waits.get(Cap::DiskIops), "{waits:?}");
    (millis(Cap::DiskIops), millis(cap))
}

/// Notices a request that passes a limit at which it waited, or a limit before it a second time.
#[test]
fn requests_that_wait_at_a_limit_of_the_host_arrive_there_again_when_it_changes() {
    let (operation, page) = (limits(1, 0), limits(0, 4_096));
    let disk = || host(vec![volume(1_000, 0)]);
    // The second and the third leave the disk after 1 and 2 ms, and the host after 1 and 2 s.
    for (own, place, cap) in [
        (operation, Place::Remote, Cap::HostUncachedIops),
        (page, Place::Remote, Cap::HostUncachedBytes),
        (operation, Place::Local, Cap::HostCachedIops),
        (page, Place::Local, Cap::HostCachedBytes),
    ] {
        let mut spec = HostSpec { uncached: own, cached: own, ..disk() };
        spec.volumes[0].place = place;
        let waits = waits_of_three(spec, Op::Read, cap, |engine, now| {
            engine.set_host_limits(now, &own, &own);
            engine.set_host_credits(now, Share::NONE);
        });
        assert_eq!(waits, (3, 2_997), "{cap}");
    }
    // The limits of writes go, so both are released after half a second.
    for (own, cap) in [(operation, Cap::HostWriteIops), (page, Cap::HostWriteBytes)] {
        let spec = HostSpec { uncached_writes: Some(own), ..disk() };
        let waits = waits_of_three(spec, Op::Write, cap, |engine, now| {
            engine.set_host_limits(now, &limits(0, 0), &limits(0, 0));
        });
        assert_eq!(waits, (3, 997), "{cap}");
    }
    // The limit of a log is before that of its disk.
    let mut spec = HostSpec { log_rate: page.bytes, ..disk() };
    spec.volumes[0].log = true;
    let waits = waits_of_three(spec, Op::Write, Cap::LogRate, |engine, now| {
        engine.set_log_rate(now, page.bytes);
    });
    assert_eq!(waits, (0, 3_000));
}

/// Notices a request that a crash has ended and that is still in the queue of a disk or of the host.
#[test]
fn a_crash_empties_the_queues() {
    for spec in [
        host(vec![volume(100, 0)]),
        HostSpec { uncached: limits(100, 0), ..host(vec![volume(0, 0)]) },
    ] {
        let mut engine = engine(spec);
        let ask = |engine: &mut Engine, now, tag| {
            let request = Request { device: DeviceId(0), op: Op::Read, offset: 0, len: 512, tag };
            engine.handle_request(now, &request).expect("in range");
        };
        (0..10).for_each(|tag| ask(&mut engine, Instant::ZERO, tag));
        engine.crash(Instant::ZERO);
        assert_eq!(engine.backlog(secs(1), DeviceId(0)), Span::ZERO);
        (10..13).for_each(|tag| ask(&mut engine, secs(1), tag));
        engine.handle_timeout(secs(2));
        let done = core::iter::from_fn(|| engine.poll_event()).map(|event| match event {
            Event::Completed(done) => done.tag,
            Event::WrittenBack { .. } => panic!("{event:?}"),
        });
        assert_eq!(done.collect::<Vec<_>>(), [10, 11, 12]);
    }
}

/// Notices a flush, or a write that must not stay in a volatile cache, that leaves out its sync.
#[test]
fn flushes_and_forced_writes_take_the_time_of_a_sync() {
    let mut spec = host(vec![volume(0, 0)]);
    spec.volumes[0].medium.sync = Some(Latency::fixed(Span::from_micros(700)));
    let fixed = Engine::with_fixed_limits(spec.clone()).expect("a sound host");
    for mut engine in [engine(spec), fixed] {
        for (tag, (op, micros)) in (0..).zip([
            (Op::Read, 1_000),
            (Op::Write, 1_000),
            (Op::WriteThrough, 1_700),
            (Op::Flush, 700),
        ]) {
            let request = Request { device: DeviceId(0), op, offset: 0, len: 4_096, tag };
            engine.handle_request(secs(tag), &request).expect("in range");
            engine.handle_timeout(secs(tag + 1));
            let Some(Event::Completed(done)) = engine.poll_event() else { panic!("{op:?}") };
            assert_eq!(done.medium, Span::from_micros(micros), "{op:?}");
        }
    }
}
