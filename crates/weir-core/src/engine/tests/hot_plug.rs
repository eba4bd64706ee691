//! Volumes that come while others are busy, and go.

use super::*;

/// A volume that is busy from the start, and what the next one is.
fn busy(spec: HostSpec) -> Load {
    let mut load = Load::new(engine(spec)).clients(64, 0, Op::Read, 8 << 10);
    load.run(Instant::ZERO, secs(2));
    load
}

/// Adds a volume, and as many clients of it.
fn add(load: &mut Load, now: Instant, spec: VolumeSpec) -> VolumeId {
    let (volume, device) = load.engine.add_volume(now, spec).expect("it fits");
    assert_eq!(load.engine.device_size(device), Some(Bytes::gib(1024)));
    for _ in 0..64 {
        let next = load.clients.len() as u64 * (1 << 30);
        load.clients.push(Client { device: device.0, op: Op::Write, len: 8 << 10, next });
        load.issue(now, load.clients.len() as u64 - 1);
    }
    volume
}

#[test]
fn a_volume_that_comes_has_its_own_limits_and_its_share_of_the_host() {
    let host = HostSpec { uncached: limits(1_000, 0), ..host(vec![volume(800, 0)]) };
    let mut load = busy(host);
    add(&mut load, secs(2), volume(300, 0));
    load.go_on(secs(6));
    for second in 3..6 {
        let in_second = |device| load.completed_in(device, second * SEC, (second + 1) * SEC);
        // The host gives 1,000; the new one has no more than 300 of its own.
        assert!(in_second(1).abs_diff(300) <= 1, "{}", in_second(1));
        assert!(in_second(0).abs_diff(700) <= 2, "{}", in_second(0));
    }
    assert!(load.completed_in(0, SEC, 2 * SEC).abs_diff(800) <= 1);
    // Nothing was saved up before it came.
    assert!(load.completed_in(1, 2 * SEC, 3 * SEC) <= 301);
}

#[test]
fn a_volume_that_comes_has_half_of_the_host_at_once() {
    for (uncached, len, each) in
        [(limits(1_000, 0), 8 << 10, 500), (limits(0, 8 << 20), 8 << 10, 512)]
    {
        let host = HostSpec { uncached, ..host(vec![volume(0, 0)]) };
        let mut load = busy(host);
        assert!(load.completed_in(0, SEC, 2 * SEC).abs_diff(2 * each) <= 1);
        add(&mut load, secs(2), volume(0, 0));
        load.go_on(secs(5));
        // Those of the first that were on their way when it came are still answered.
        for second in 3..5 {
            for device in 0..2 {
                let got = load.completed_in(device, second * SEC, (second + 1) * SEC);
                assert!(got.abs_diff(each) <= 1, "{got} of {each} requests of {len} bytes");
            }
        }
    }
}

/// The same clients of the same volumes, one of which comes late or was there all the time.
#[test]
fn the_time_of_a_hot_plug_does_not_matter() {
    let late = {
        let mut load = busy(host(vec![volume(500, 0)]));
        add(&mut load, secs(2), volume(200, 0));
        load.go_on(secs(4));
        load.done
    };
    let early = {
        let mut load = busy(host(vec![volume(500, 0), volume(200, 0)]));
        for _ in 0..64 {
            let next = load.clients.len() as u64 * (1 << 30);
            load.clients.push(Client { device: 1, op: Op::Write, len: 8 << 10, next });
            load.issue(secs(2), load.clients.len() as u64 - 1);
        }
        load.go_on(secs(4));
        load.done
    };
    assert!(late.len() > 1_000);
    assert_eq!(late, early);
}

#[test]
fn a_volume_goes_when_nothing_is_under_way_and_the_next_takes_its_place() {
    let mut load = busy(host(vec![volume(500, 0)]));
    let refused = |load: &mut Load, volume| load.engine.remove_volume(secs(2), VolumeId(volume));
    assert_eq!(refused(&mut load, 0), Err(Refused::Busy));
    assert_eq!(refused(&mut load, 1), Err(Refused::NoDevice));
    let (volume_id, device) = load.engine.add_volume(secs(2), volume(3, 0)).expect("it fits");
    assert_eq!(refused(&mut load, volume_id.0), Ok(()));
    assert_eq!(refused(&mut load, volume_id.0), Err(Refused::NoDevice));
    let request = Request { device, op: Op::Read, offset: 0, len: 4096, tag: 1 };
    assert_eq!(load.engine.handle_request(secs(2), &request), Err(Refused::OutOfRange));
    let again = add(&mut load, secs(2), volume(200, 0));
    // It has the number of the removed volume and another device: the old device stays empty.
    assert_eq!((again, load.engine.devices.len()), (volume_id, 3));
    assert_eq!(load.engine.handle_request(secs(2), &request), Err(Refused::OutOfRange));
    load.go_on(secs(4));
    assert!(load.completed_in(2, 3 * SEC, 4 * SEC).abs_diff(200) <= 1, "not the 3 of the old one");
    assert!(load.completed_in(0, 3 * SEC, 4 * SEC).abs_diff(500) <= 1);
    assert_eq!(load.engine.totals(again).map(|t| t.reads), Some(0));
}

#[test]
fn dirty_blocks_of_a_removed_volume_are_dropped() {
    let cached = || VolumeSpec { cache: CacheMode::ReadWrite, ..volume(0, 0) };
    let mut engine = engine(host(vec![cached(), cached()]));
    let write = |engine: &mut Engine, device, tag| {
        let device = DeviceId(device);
        let request = Request { device, op: Op::Write, offset: 0, len: 1 << 20, tag };
        engine.handle_request(Instant::ZERO, &request).expect("in range");
    };
    write(&mut engine, 0, 1);
    write(&mut engine, 1, 2);
    let soon = Instant::from_nanos(SEC / 100);
    engine.handle_timeout(soon);
    assert_eq!((engine.outstanding(), engine.dirty_blocks), (0, 512));
    assert_eq!(engine.remove_volume(soon, VolumeId(0)), Ok(()));
    assert_eq!(engine.dirty_blocks, 256);
    assert_eq!(engine.cache_resident(), Bytes::mib(1));
    // The write-back that was due for it finds nothing.
    while let Some(at) = engine.poll_deadline() {
        engine.handle_timeout(at);
    }
    assert_eq!(engine.dirty_blocks, 0);
}

#[test]
fn a_column_stays() {
    let mut spec = host(vec![volume(0, 0), volume(0, 0)]);
    spec.devices = vec![DeviceSpec::Stripe { unit: Bytes::kib(64), columns: vec![0, 1] }];
    assert_eq!(engine(spec).remove_volume(Instant::ZERO, VolumeId(1)), Err(Refused::Busy));
}

#[test]
fn no_cache_can_be_had_where_there_is_none() {
    let mut engine = engine(HostSpec { cache: None, ..host(vec![volume(0, 0)]) });
    let cached = VolumeSpec { cache: CacheMode::ReadOnly, ..volume(0, 0) };
    let refused = engine.add_volume(Instant::ZERO, cached.clone()).map(|_| ());
    assert_eq!(refused, Err(SpecError::NoCache { volume: 1 }));
    let mut set = |mode| engine.set_cache_mode(Instant::ZERO, VolumeId(0), mode);
    assert_eq!(set(CacheMode::ReadOnly), Err(Refused::NoDevice));
    assert_eq!(set(CacheMode::None), Ok(()));
    assert!(engine.add_volume(Instant::ZERO, volume(0, 0)).is_ok(), "it asks for none");
    let with_none = HostSpec { cache: None, ..host(vec![volume(0, 0), cached]) };
    assert_eq!(Engine::new(with_none).err(), Some(SpecError::NoCache { volume: 1 }));
}

#[test]
fn a_volume_that_comes_uses_the_cache_of_the_host() {
    let mut engine = engine(host(vec![volume(0, 0)]));
    let cached = VolumeSpec { cache: CacheMode::ReadOnly, ..volume(0, 0) };
    let (_, device) = engine.add_volume(Instant::ZERO, cached).expect("it fits");
    assert_eq!(engine.warm(device, 0, 1 << 20), Bytes::mib(1));
    let request = Request { device, op: Op::Read, offset: 0, len: 4_096, tag: 0 };
    engine.handle_request(Instant::ZERO, &request).expect("in range");
    engine.handle_timeout(secs(1));
    let Some(Event::Completed(done)) = engine.poll_event() else { panic!("no completion") };
    assert!(done.hit, "{done:?}");
}
