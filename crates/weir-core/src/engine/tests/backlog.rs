//! The estimate of a wait, against the waits.

use super::*;

/// A request that comes waits for as long as its host said it would.
#[test]
fn a_backlog_is_what_the_next_request_waits() {
    let mut engine = engine(host(vec![volume(500, 0), volume(0, 1 << 20)]));
    let ask = |engine: &mut Engine, device: usize, tag: u64| {
        let (device, op, len) = (DeviceId(device), Op::Read, 8 << 10);
        let request = Request { device, op, offset: 0, len, tag };
        engine.handle_request(Instant::ZERO, &request).expect("it fits");
    };
    assert_eq!(engine.backlog(Instant::ZERO, DeviceId(0)), Span::ZERO);
    let mut said = Vec::new();
    for tag in 0..100 {
        let device = usize::from(tag % 2 == 1);
        said.push(engine.backlog(Instant::ZERO, DeviceId(device)));
        ask(&mut engine, device, tag);
    }
    engine.handle_timeout(secs(2));
    let mut held = 0;
    while let Some(event) = engine.poll_event() {
        let Event::Completed(done) = event else { continue };
        let tag = usize::try_from(done.tag).expect("it is small");
        let waited = done.waits.iter().map(|(_, span)| span.nanos()).sum::<u64>();
        assert!(said[tag].nanos().abs_diff(waited) <= 2, "{tag}: {:?}, {waited}", said[tag]);
        held += u64::from(waited > 0);
    }
    assert_eq!(held, 98);
    for device in 0..2 {
        assert_eq!(engine.backlog(secs(2), DeviceId(device)), Span::ZERO, "{device}");
    }
}

/// At a host those that wait for operations will wait for bytes, too.
#[test]
fn a_backlog_of_a_host_counts_who_waits_for_operations_and_for_bytes() {
    for place in [Place::Remote, Place::Local] {
        let mut spec = host(vec![VolumeSpec { place, ..volume(0, 0) }]);
        spec.uncached = limits(1_000, 100 << 20);
        spec.cached = limits(1_000, 100 << 20);
        let mut engine = engine(spec);
        let ask = |engine: &mut Engine, tag: u64| {
            let (device, op, len) = (DeviceId(0), Op::Read, 1 << 20);
            let request = Request { device, op, offset: tag << 20, len, tag };
            engine.handle_request(Instant::ZERO, &request).expect("it fits");
        };
        (0..100).for_each(|tag| ask(&mut engine, tag));
        let said = engine.backlog(Instant::ZERO, DeviceId(0));
        ask(&mut engine, 100);
        engine.handle_timeout(secs(10));
        let all = core::iter::from_fn(|| engine.poll_event());
        let waited = all.filter_map(|event| match event {
            Event::Completed(done) if done.tag == 100 => Some(done.waits.total().nanos()),
            _ => None,
        });
        let waited: u64 = waited.sum();
        assert!(waited > 0 && said.nanos().abs_diff(waited) <= waited / 50, "{said:?}, {waited}");
    }
}

/// Queues reads of 4 KiB at once, `depths[n]` on volume n. Returns the estimate for one more on the last
/// volume and its wait.
fn said_and_waited(uncached: GateLimits, depths: [u64; 3]) -> (u64, u64) {
    let mut engine = engine(HostSpec { uncached, ..host(vec![volume(0, 0); 3]) });
    let ask = |engine: &mut Engine, device: usize, tag: u64| {
        let (device, op, len) = (DeviceId(device), Op::Read, 4 << 10);
        let request = Request { device, op, offset: 0, len, tag };
        engine.handle_request(Instant::ZERO, &request).expect("it fits");
    };
    for (device, depth) in depths.into_iter().enumerate() {
        (0..depth).for_each(|_| ask(&mut engine, device, 0));
    }
    let said = engine.backlog(Instant::ZERO, DeviceId(2)).nanos();
    ask(&mut engine, 2, 1);
    engine.handle_timeout(secs(10));
    let mut all = core::iter::from_fn(|| engine.poll_event());
    let waited = all.find_map(|event| match event {
        Event::Completed(done) if done.tag == 1 => Some(done.waits.total().nanos()),
        _ => None,
    });
    (said, waited.expect("a completion"))
}

/// A request waits for those of its volume, and meanwhile for as many of each volume that waits, too.
#[test]
fn a_backlog_counts_as_many_requests_of_each_rival() {
    const MS: u64 = 1_000_000;
    let bytes = |per_second: u64| per_second * (4 << 10);
    for (uncached, depths, expect) in [
        (limits(1_000, 0), [300, 300, 10], 30),
        (limits(1_000, 0), [0, 0, 10], 10),
        // The rivals have fewer than their share.
        (limits(1_000, 0), [20, 1, 100], 121),
        // They wait for bytes.
        (limits(0, bytes(500)), [300, 300, 10], 60),
        // They still wait for operations, and then for bytes, which take twice as long.
        (limits(1_000, bytes(500)), [300, 300, 10], 60),
    ] {
        let (said, waited) = said_and_waited(uncached, depths);
        for found in [said, waited] {
            // The order within a round of the volumes is not estimated.
            assert!(found.abs_diff(expect * MS) <= 8 * MS, "{found} ns of {expect} ms: {depths:?}");
        }
    }
}

/// Notices a limit of the host that a volume does not pass, or one that it passes and that is left out.
#[test]
fn a_backlog_counts_the_limits_on_the_way_to_the_place_and_the_cache_of_a_volume() {
    let mut spec = host(vec![volume(0, 0); 4]);
    (spec.uncached, spec.cached) = (limits(1, 0), limits(1, 0));
    spec.uncached_writes = Some(limits(1, 0));
    spec.volumes[1].cache = CacheMode::ReadOnly;
    spec.volumes[2].place = Place::Local;
    // A remote volume, one with a cache, a local one, and another remote one.
    for (device, op, expect) in [
        (3, Op::Read, [true, true, false]),
        (3, Op::Write, [true, true, false]),
        (2, Op::Read, [false, true, true]),
    ] {
        let mut engine = engine(spec.clone());
        let request = Request { device: DeviceId(device), op, offset: 0, len: 512, tag: 0 };
        engine.handle_request(Instant::ZERO, &request).expect("in range");
        let waits = [0, 1, 2].map(|device| {
            let backlog = engine.backlog(Instant::ZERO, DeviceId(device));
            assert!([Span::ZERO, Span::from_secs(1)].contains(&backlog), "{backlog}");
            backlog > Span::ZERO
        });
        assert_eq!(waits, expect, "{op:?} of {device}");
    }
}
