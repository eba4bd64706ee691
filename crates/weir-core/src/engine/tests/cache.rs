//! The host cache: what counts where, what is held, what a crash loses.

use super::*;

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
fn a_medium_without_latency_writes_back_without_end() {
    let mut spec = host(vec![volume(0, 0)]);
    spec.volumes[0].cache = CacheMode::ReadWrite;
    spec.volumes[0].medium = Medium::new(Latency::zero(), Latency::zero());
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

/// A ReadWrite volume of 100 IOPS and a ReadOnly one without limits, with a cache of `blocks`
/// blocks, of which `dirty` may be dirty.
fn two_volumes(blocks: u64, dirty: u64) -> Engine {
    let mut spec = host(vec![volume(100, 0), volume(0, 0)]);
    spec.volumes[0].cache = CacheMode::ReadWrite;
    spec.volumes[1].cache = CacheMode::ReadOnly;
    let cache = spec.cache.as_mut().expect("a cache");
    cache.capacity = Bytes::new(blocks * BLOCK);
    cache.dirty_limit = Bytes::new(dirty * BLOCK);
    engine(spec)
}

fn request(device: usize, op: Op, block: u64, blocks: u64) -> Request {
    let (offset, len) = (block * BLOCK, blocks * BLOCK);
    Request { device: DeviceId(device), op, offset, len, tag: block }
}

/// Sends `request` at `now` and waits for it; returns its completion.
fn complete(engine: &mut Engine, now: Instant, request: &Request) -> Completion {
    engine.handle_request(now, request).expect("a request in range");
    loop {
        match engine.poll_event() {
            Some(Event::Completed(c)) if c.tag == request.tag => return c,
            Some(_) => {}
            None => {
                let due = engine.poll_deadline().expect("something is under way");
                engine.handle_timeout(due);
            }
        }
    }
}

/// Notices a change of the mode that leaves dirty blocks until their age is over.
#[test]
fn a_cache_that_is_switched_off_writes_back_at_once() {
    let mut engine = two_volumes(64, 32);
    let now = complete(&mut engine, Instant::ZERO, &request(0, Op::Write, 0, 1)).at;
    engine.set_cache_mode(now, VolumeId(0), CacheMode::None).expect("a volume");
    engine.handle_timeout(Instant::from_nanos(SEC / 10));
    assert_eq!(engine.totals(VolumeId(0)).map(|t| t.written_back), Some(BLOCK));
}

/// Notices additional time of a write that the cache has taken as one of a ReadWrite volume.
#[test]
fn a_write_that_waits_for_the_cache_takes_its_time_after_a_change_of_mode() {
    let mut spec = host(vec![volume(0, 0)]);
    spec.volumes[0].cache = CacheMode::ReadWrite;
    spec.cached = limits(10, 0);
    let cache = spec.cache.as_mut().expect("a cache");
    cache.write_through = Some(Latency::fixed(Span::from_micros(400)));
    let mut engine = engine(spec);
    for block in [0, 100] {
        let write = request(0, Op::Write, block, 1);
        engine.handle_request(Instant::ZERO, &write).expect("a write");
    }
    // The second waits until 100 ms.
    let soon = Instant::from_nanos(SEC / 20);
    engine.set_cache_mode(soon, VolumeId(0), CacheMode::ReadOnly).expect("a volume");
    engine.handle_timeout(secs(1));
    let done = core::iter::from_fn(|| engine.poll_event()).filter_map(|event| match event {
        Event::Completed(done) => Some((done.hit, done.medium)),
        Event::WrittenBack { .. } => None,
    });
    assert_eq!(done.collect::<Vec<_>>(), [(true, Span::from_micros(100)); 2]);
}

/// Notices a miss or a write of a cached volume that does not pass the limits of the cache.
#[test]
fn misses_and_writes_of_a_cached_volume_pass_the_limits_of_the_cache() {
    for place in [Place::Remote, Place::Local] {
        let mut spec = host(vec![VolumeSpec { place, ..volume(0, 0) }]);
        spec.volumes[0].cache = CacheMode::ReadOnly;
        spec.cached = limits(10, 0);
        let mut engine = engine(spec);
        for (block, op) in [(0, Op::Read), (100, Op::Read), (200, Op::Write)] {
            engine.handle_request(Instant::ZERO, &request(0, op, block, 1)).expect("in range");
        }
        engine.handle_timeout(secs(1));
        let totals = engine.totals(VolumeId(0)).expect("the volume");
        assert_eq!((totals.hits, totals.reads, totals.writes), (0, 2, 1));
        // The second waits for 100 ms, and the third for 200 ms.
        assert_eq!(totals.waits[Cap::HostCachedIops], 300_000_000, "{place:?}");
    }
}

/// Notices a write whose parts of the time, at the disk and in the cache, are always equally long.
#[test]
fn a_write_through_the_cache_draws_a_time_of_its_own() {
    let quantiles = [(0, Span::ZERO), (1_000_000, Span::from_millis(1))];
    let latency = Latency::from_quantiles(&quantiles).expect("ascending quantiles");
    let mut spec = host(vec![volume(0, 0)]);
    spec.volumes[0].cache = CacheMode::ReadOnly;
    spec.volumes[0].medium = Medium::new(latency.clone(), latency.clone());
    spec.cache.as_mut().expect("a cache").write_through = Some(latency.clone());
    let seed = spec.seed;
    let mut engine = engine(spec);
    for serial in 1..10 {
        let done = complete(&mut engine, Instant::ZERO, &request(0, Op::Write, serial, 1));
        let at_disk = latency.draw(seed, serial, BLOCK);
        let in_cache = done.medium.saturating_sub(at_disk);
        assert!(in_cache > Span::ZERO && in_cache != at_disk, "{in_cache}");
    }
}

#[test]
fn a_cache_writes_back_at_once_when_more_than_half_of_its_room_is_dirty() {
    let mut engine = two_volumes(1_000, 32);
    let soon = Instant::from_nanos(SEC / 2);
    engine.handle_request(Instant::ZERO, &request(0, Op::Write, 0, 16)).expect("a write");
    engine.handle_timeout(soon);
    assert_eq!(engine.totals(VolumeId(0)).map(|t| t.written_back), Some(0));
    engine.handle_request(soon, &request(0, Op::Write, 100, 1)).expect("a write");
    engine.handle_timeout(soon + Span::from_millis(100));
    assert_eq!(engine.totals(VolumeId(0)).map(|t| t.written_back), Some(17 * BLOCK));
}

/// Notices a write that waits until other blocks have their age.
#[test]
fn a_write_without_room_is_let_in_as_soon_as_the_cache_has_written_back() {
    for other in [0, 1] {
        let mut spec = host(vec![volume(100, 0); 2]);
        spec.volumes.iter_mut().for_each(|volume| volume.cache = CacheMode::ReadWrite);
        spec.cache.as_mut().expect("a cache").dirty_limit = Bytes::new(32 * BLOCK);
        let mut engine = engine(spec);
        let few = request(other, Op::Write, 0, 10);
        engine.handle_request(Instant::ZERO, &few).expect("a write");
        // It needs all of the room, and one block more would go to the disk.
        let done = complete(&mut engine, Instant::ZERO, &request(0, Op::Write, 100, 32));
        assert!(done.hit, "{done:?}");
        assert_eq!(done.waits.get(Cap::CacheWriteback), Span::from_millis(1));
    }
}

#[test]
fn blocks_that_a_discard_covers_are_not_dirty_any_more() {
    let mut engine = two_volumes(1_000, 64);
    engine.handle_request(Instant::ZERO, &request(0, Op::Write, 0, 10)).expect("a write");
    engine.handle_request(Instant::ZERO, &request(0, Op::Discard, 6, 4)).expect("a discard");
    assert_eq!(engine.dirty_blocks, 6);
}

#[test]
fn a_warm_up_of_no_bytes_brings_no_block() {
    let mut engine = two_volumes(1_000, 64);
    assert_eq!(engine.warm(DeviceId(1), 100, 0), Bytes::ZERO);
    assert_eq!(engine.cache_resident(), Bytes::ZERO);
}

/// Notices the latency of the disk for what the cache serves or takes, and additional time of
/// writes that is left out or added to others.
#[test]
fn each_request_takes_the_time_of_what_serves_it() {
    let mut engine = two_volumes(64, 32);
    let (cache, _) = engine.cache.as_mut().expect("a cache");
    cache.write_through = Some(Latency::fixed(Span::from_micros(400)));
    let mut check = |device, op, hit, micros| {
        let done = complete(&mut engine, Instant::ZERO, &request(device, op, 0, 1));
        assert_eq!((done.hit, done.medium), (hit, Span::from_micros(micros)), "{device} {op:?}");
    };
    // The ReadOnly cache: the disk, the disk and the cache, and the cache.
    check(1, Op::Read, false, 1_000);
    check(1, Op::Write, false, 1_400);
    check(1, Op::WriteThrough, false, 1_400);
    check(1, Op::Read, true, 100);
    // The ReadWrite cache.
    check(0, Op::Write, true, 100);
    check(0, Op::WriteThrough, false, 1_000);
}

#[test]
fn dirty_blocks_stay_in_the_cache_while_reads_evict_others() {
    let mut engine = two_volumes(64, 32);
    let mut now = complete(&mut engine, Instant::ZERO, &request(0, Op::Write, 0, 16)).at;
    for n in 0..500 {
        now = complete(&mut engine, now, &request(1, Op::Read, 1_000 + n, 1)).at;
    }
    assert!(now < secs(1), "nothing is written back before a second is over");
    let read = complete(&mut engine, now, &request(0, Op::Read, 0, 16));
    assert!(read.hit, "{read:?}");
    assert_eq!(engine.totals(VolumeId(0)).map(|t| (t.counted, t.written_back)), Some((0, 0)));
}

#[test]
fn blocks_in_write_back_are_still_dirty() {
    let mut engine = two_volumes(1_000, 64);
    for n in 0..300 {
        engine.handle_request(Instant::ZERO, &request(0, Op::Write, n * 100, 1)).expect("a write");
    }
    let (mut acknowledged, mut written) = (0, 0);
    while written < 300 {
        engine.handle_timeout(engine.poll_deadline().expect("something is under way"));
        while let Some(event) = engine.poll_event() {
            match event {
                Event::Completed(_) => acknowledged += 1,
                Event::WrittenBack { len, .. } => written += len / BLOCK,
            }
            assert!(acknowledged <= written + 64, "{acknowledged} acknowledged, {written} written");
        }
    }
    assert_eq!(acknowledged, 300);
}

#[test]
fn a_write_larger_than_the_room_goes_to_the_disk_before_it_is_done() {
    let mut engine = two_volumes(1_000, 32);
    let write = request(0, Op::Write, 0, 33);
    engine.handle_request(Instant::ZERO, &write).expect("a write");
    engine.handle_timeout(secs(1));
    let written = Event::WrittenBack { volume: VolumeId(0), offset: 0, len: 33 * BLOCK };
    assert_eq!(engine.poll_event(), Some(written));
    let Some(Event::Completed(c)) = engine.poll_event() else { panic!("no completion") };
    assert!(!c.hit && c.medium == Span::from_millis(1), "{c:?}");
    assert_eq!(engine.totals(VolumeId(0)).map(|t| (t.counted, t.written_back)), Some((1, 0)));
    assert!(engine.crash(secs(1)).is_empty(), "nothing of it is dirty");
}

#[test]
fn small_writes_do_not_overtake_a_large_one_that_waits_for_room() {
    let mut engine = two_volumes(1_000, 64);
    for n in 0..64 {
        engine.handle_request(Instant::ZERO, &request(0, Op::Write, n * 100, 1)).expect("a write");
    }
    engine.handle_request(Instant::ZERO, &request(0, Op::Write, 99_000, 32)).expect("a write");
    // By now there is room for small ones, and not for the large one.
    let later = Instant::from_nanos(SEC / 10);
    for n in 1_000..1_100 {
        engine.handle_request(later, &request(0, Op::Write, n * 100, 1)).expect("a write");
    }
    let mut order = Vec::new();
    while let Some(due) = engine.poll_deadline() {
        engine.handle_timeout(due);
        while let Some(event) = engine.poll_event() {
            if let Event::Completed(c) = event {
                order.push(c.tag);
            }
        }
    }
    assert_eq!(order.iter().position(|tag| *tag == 99_000), Some(64));
}

#[test]
fn a_discard_of_what_is_dirty_makes_room() {
    let mut engine = two_volumes(1_000, 64);
    // 17 runs, so that one has not been sent when the discard comes.
    for n in 0..17 {
        engine.handle_request(Instant::ZERO, &request(0, Op::Write, n * 100, 3)).expect("a write");
    }
    engine.handle_request(Instant::ZERO, &request(0, Op::Write, 5_000, 14)).expect("a write");
    let waiting = engine.waiting_for_room.len();
    engine.handle_request(Instant::ZERO, &request(0, Op::Discard, 1_600, 3)).expect("a discard");
    assert_eq!((waiting, engine.waiting_for_room.len()), (1, 0));
}

#[test]
fn write_backs_before_a_crash_are_kept() {
    let mut engine = two_volumes(1_000, 64);
    for n in 0..10 {
        engine.handle_request(Instant::ZERO, &request(0, Op::Write, n * 100, 1)).expect("a write");
    }
    engine.handle_request(Instant::ZERO, &request(0, Op::Flush, 0, 0)).expect("a flush");
    // At 100 IOPS five are admitted until 45 ms, and each takes 1 ms. The engine was not
    // called since.
    let lost = engine.crash(Instant::from_nanos(45_000_000));
    let range = |n: u64| (n * 100 * BLOCK, BLOCK);
    let expect: Vec<_> = (5..10).map(|n| (VolumeId(0), range(n).0, range(n).1)).collect();
    assert_eq!(lost, expect);
    let told: Vec<Event> = core::iter::from_fn(|| engine.poll_event()).collect();
    let written = |n| Event::WrittenBack { volume: VolumeId(0), offset: range(n).0, len: BLOCK };
    assert_eq!(told, (0..5).map(written).collect::<Vec<_>>());
}

#[test]
fn write_backs_are_counted_and_say_what_held_them() {
    let mut load = Load::new(two_volumes(1_000, 64)).clients(8, 0, Op::Write, 8 << 10);
    load.run(Instant::ZERO, secs(10));
    let totals = load.engine.totals(VolumeId(0)).expect("the volume");
    // Each client writes on and on, so runs are as long as they may be: 100 a second.
    assert!((990..=1_001).contains(&totals.writebacks), "{}", totals.writebacks);
    assert_eq!(totals.counted, totals.writebacks, "a run is one operation of the disk");
    assert!(totals.written_back <= totals.write_bytes + 64 * BLOCK);
    assert_eq!(totals.writeback_medium, Span::from_millis(totals.writebacks));
    let held: Vec<Cap> = totals.writeback_waits.iter().map(|(cap, _)| cap).collect();
    assert_eq!(held, [Cap::DiskIops], "what is behind the waits of the writes");
    assert_eq!(totals.waits.iter().map(|(cap, _)| cap).collect::<Vec<_>>(), [Cap::CacheWriteback]);
}

#[test]
fn write_backs_to_a_local_disk_use_no_uncached_limit() {
    let mut spec = host(vec![volume(0, 0)]);
    (spec.volumes[0].place, spec.volumes[0].cache) = (Place::Local, CacheMode::ReadWrite);
    (spec.uncached, spec.cached) = (limits(1, 0), limits(1_000, 0));
    let mut engine = engine(spec);
    for n in 0..10 {
        engine.handle_request(Instant::ZERO, &request(0, Op::Write, n * 100, 1)).expect("a write");
    }
    complete(&mut engine, Instant::ZERO, &request(0, Op::Flush, 1, 0));
    let totals = engine.totals(VolumeId(0)).expect("the volume");
    assert_eq!((totals.writebacks, totals.written_back), (10, 10 * BLOCK));
    assert_eq!(totals.counted, 10);
    let held: Vec<Cap> = totals.writeback_waits.iter().map(|(cap, _)| cap).collect();
    assert_eq!(held, [Cap::HostCachedIops]);
}

/// Cached volumes with a device each and a stripe over all, and a cache of this number of blocks.
fn striped(volumes: usize, blocks: u64) -> Engine {
    let mut spec = host((0..volumes).map(|_| volume(0, 0)).collect());
    spec.volumes.iter_mut().for_each(|volume| volume.cache = CacheMode::ReadOnly);
    spec.cache.as_mut().expect("a cache").capacity = Bytes::new(blocks * BLOCK);
    let (unit, columns) = (Bytes::kib(64), (0..volumes).collect());
    spec.devices.push(DeviceSpec::Stripe { unit, columns });
    engine(spec)
}

/// Returns which of the first `blocks` blocks of a volume are cached.
fn held(engine: &Engine, volume: usize, blocks: u64) -> Vec<u64> {
    let (_, blobs) = engine.cache.as_ref().expect("a cache");
    (0..blocks).filter(|block| blobs.holds(volume, block * BLOCK, BLOCK)).collect()
}

/// Reads a range of a device, 32 blocks at a time.
fn pass(engine: &mut Engine, device: usize, first: u64, blocks: u64) {
    for n in 0..blocks / 32 {
        complete(engine, Instant::ZERO, &request(device, Op::Read, first + n * 32, 32));
    }
}

#[test]
fn a_warm_up_leaves_what_a_pass_of_reads_leaves() {
    // A volume: all of it if it fits, else its end.
    for blocks in [1_024, 4_096, 6_400, 20_480] {
        let (mut warmed, mut read) = (striped(2, 4_096), striped(2, 4_096));
        let bytes = warmed.warm(DeviceId(1), 320 * BLOCK, blocks * BLOCK);
        pass(&mut read, 1, 320, blocks);
        let expect: Vec<u64> = (320 + blocks.saturating_sub(4_096)..320 + blocks).collect();
        assert_eq!(held(&read, 1, 25_000), expect, "a pass over {blocks} blocks");
        assert_eq!(held(&warmed, 1, 25_000), expect, "a warm-up of {blocks} blocks");
        assert_eq!(bytes, Bytes::new(blocks.min(4_096) * BLOCK));
    }
    // A stripe that fits: the same.
    let (mut warmed, mut read) = (striped(3, 4_096), striped(3, 4_096));
    assert_eq!(warmed.warm(DeviceId(3), 0, 3_200 * BLOCK), Bytes::new(3_200 * BLOCK));
    pass(&mut read, 3, 0, 3_200);
    for column in 0..3 {
        assert_eq!(held(&warmed, column, 4_096), held(&read, column, 4_096));
    }
    // A larger stripe fills the cache with the end of each column.
    let bytes = warmed.warm(DeviceId(3), 0, 30_720 * BLOCK);
    pass(&mut read, 3, 0, 30_720);
    assert_eq!(bytes, Bytes::new(4_095 * BLOCK));
    for engine in [&warmed, &read] {
        assert_eq!(engine.cache_resident(), Bytes::new(4_096 * BLOCK));
        for column in 0..3 {
            assert!(held(engine, column, 10_240).ends_with(&[10_238, 10_239]), "{column}");
        }
    }
}

#[test]
fn a_warm_up_of_what_is_not_cached_pushes_nothing_out() {
    let mut spec = host((0..3).map(|_| volume(0, 0)).collect());
    spec.volumes[0].cache = CacheMode::ReadOnly;
    spec.volumes[2].cache = CacheMode::ReadOnly;
    spec.cache.as_mut().expect("a cache").capacity = Bytes::new(64 * BLOCK);
    let unit = Bytes::kib(64);
    spec.devices.push(DeviceSpec::Stripe { unit, columns: vec![1, 2] });
    let mut engine = engine(spec);
    assert_eq!(engine.warm(DeviceId(0), 0, 32 * BLOCK), Bytes::new(32 * BLOCK));
    assert_eq!(engine.warm(DeviceId(1), 0, 1 << 40), Bytes::ZERO);
    assert_eq!(held(&engine, 0, 64), (0..32).collect::<Vec<u64>>());
    // Only one column of this stripe is cached.
    assert_eq!(engine.warm(DeviceId(3), 0, 64 * BLOCK), Bytes::new(32 * BLOCK));
    assert_eq!(held(&engine, 2, 64), (0..32).collect::<Vec<u64>>());
    assert_eq!((held(&engine, 0, 64).len(), held(&engine, 1, 64).len()), (32, 0));
    // Nothing is behind the end, and no device is no device.
    assert_eq!(engine.warm(DeviceId(0), 1 << 40, 4_096), Bytes::ZERO);
    assert_eq!(engine.warm(DeviceId(0), (1 << 40) - 4_096, u64::MAX), Bytes::new(4_096));
    assert_eq!(engine.warm(DeviceId(9), 0, 4_096), Bytes::ZERO);
}

/// Visiting all 4 billion units one by one would take too long.
#[test]
fn a_large_stripe_is_warmed_column_by_column() {
    let mut engine = striped(4, 262_144);
    for volume in 0..4 {
        let size = Bytes::gib(64 << 10);
        engine.set_size(Instant::ZERO, VolumeId(volume), size).expect("a volume");
    }
    assert_eq!(engine.warm(DeviceId(4), 0, u64::MAX), Bytes::gib(1));
    assert_eq!(engine.cache_resident(), Bytes::gib(1));
}

#[test]
fn a_trim_of_4_gib_forgets_all_that_is_dirty() {
    let mut engine = two_volumes(1_000, 64);
    for n in 0..8 {
        let write = request(0, Op::Write, n * 131_072, 1);
        engine.handle_request(Instant::ZERO, &write).expect("a write");
    }
    let trim = Request { len: MAX_REQUEST, ..request(0, Op::Discard, 0, 0) };
    engine.handle_request(Instant::ZERO, &trim).expect("a trim");
    assert!(engine.crash(Instant::ZERO).is_empty(), "nothing of it is dirty");
}
