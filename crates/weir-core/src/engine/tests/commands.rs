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
