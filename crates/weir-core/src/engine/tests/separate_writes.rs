//! A host with separate read and write limits to remote storage.

use super::*;

/// Two volumes that share 75 reads and 150 writes a second, and 12 MiB/s of each.
fn separate() -> HostSpec {
    HostSpec {
        uncached: limits(75, 12 << 20),
        uncached_writes: Some(limits(150, 12 << 20)),
        ..host(vec![volume(0, 0), volume(0, 0)])
    }
}

fn per_second(load: &Load, device: usize) -> u64 {
    load.completed_in(device, SEC, 5 * SEC) / 4
}

#[test]
fn reads_and_writes_have_rates_of_their_own() {
    let load = Load::new(engine(separate())).clients(8, 0, Op::Read, 4096);
    let load = load.clients(8, 1, Op::Write, 4096);
    // The volumes share what writes have.
    let mut load = load.clients(8, 0, Op::WriteThrough, 4096);
    load.run(Instant::ZERO, secs(6));
    let of =
        |op| load.done.iter().filter(move |c| c.op == op && (secs(1)..secs(5)).contains(&c.at));
    assert_eq!(of(Op::Read).count(), 4 * 75);
    assert_eq!(per_second(&load, 1), 75);
    assert_eq!(of(Op::WriteThrough).count(), 4 * 75);
}

#[test]
fn bytes_have_rates_of_their_own_and_waits_are_those_of_the_host() {
    let load = Load::new(engine(separate())).clients(4, 0, Op::Read, 1 << 20);
    let mut load = load.clients(4, 1, Op::Write, 1 << 20);
    load.run(Instant::ZERO, secs(6));
    assert_eq!([per_second(&load, 0), per_second(&load, 1)], [12, 12]);
    let waited = |c: &&Completion| c.at >= secs(1);
    for done in load.done.iter().filter(waited) {
        let cap = if done.op == Op::Read { Cap::HostUncachedBytes } else { Cap::HostWriteBytes };
        assert_eq!(done.waits.get(cap), done.waits.total());
        assert!(done.waits.total() > Span::ZERO);
    }
}

#[test]
fn write_limits_that_burst_are_refused() {
    let mut writes = limits(150, 0);
    writes.iops = writes.iops.map(|own| own.with_burst(per_sec(300), Span::from_secs(1)));
    let refused = Engine::new(HostSpec { uncached_writes: Some(writes), ..separate() });
    assert_eq!(refused.err(), Some(SpecError::BurstingWrites));
}

#[test]
fn both_kinds_together_get_the_sum_of_their_rates() {
    let rates = |spec: &HostSpec| {
        let all = spec.uncached_total();
        [all.iops, all.bytes].map(|limit| limit.map(|own| own.rate.get()))
    };
    assert_eq!(rates(&separate()), [Some(225), Some(24 << 20)]);
    let open = HostSpec { uncached_writes: Some(limits(150, 0)), ..separate() };
    assert_eq!(rates(&open), [Some(225), None]);
    let one = HostSpec { uncached_writes: None, ..separate() };
    assert_eq!(rates(&one), [Some(75), Some(12 << 20)]);
}

#[test]
fn a_trim_counts_as_a_write_and_a_flush_waits_for_nothing() {
    let mut engine = engine(HostSpec { uncached: limits(1, 0), ..separate() });
    for tag in 0..20 {
        let op = if tag % 2 == 0 { Op::Discard } else { Op::Flush };
        let request = Request { device: DeviceId(0), op, offset: 0, len: 4096, tag };
        engine.handle_request(Instant::ZERO, &request).expect("it fits");
    }
    engine.handle_timeout(secs(1));
    let done: Vec<_> = core::iter::from_fn(|| engine.poll_event()).collect();
    assert_eq!(done.len(), 20);
}

#[test]
fn the_backlog_is_that_of_the_longer_queue() {
    let mut engine = engine(separate());
    for tag in 0..76 {
        let request = Request { device: DeviceId(0), op: Op::Write, offset: 0, len: 512, tag };
        engine.handle_request(Instant::ZERO, &request).expect("it fits");
    }
    let said = engine.backlog(Instant::ZERO, DeviceId(0));
    assert!((Span::from_millis(490)..=Span::from_millis(510)).contains(&said), "{said:?}");
}

#[test]
fn write_backs_of_a_cache_pass_the_limits_of_writes() {
    let mut spec = HostSpec { uncached: limits(1, 0), ..separate() };
    spec.volumes[0].cache = CacheMode::ReadWrite;
    let mut engine = engine(spec);
    for tag in 0..60 {
        // With gaps, so that each is a write-back of its own.
        let request =
            Request { device: DeviceId(0), op: Op::Write, offset: tag << 20, len: 4096, tag };
        engine.handle_request(Instant::ZERO, &request).expect("it fits");
    }
    engine.handle_timeout(secs(2));
    let events = core::iter::from_fn(|| engine.poll_event());
    let written = events.filter(|event| matches!(event, Event::WrittenBack { .. })).count();
    // They begin after a second, and take 0.4 s at 150 a second; 60 s at the limit of reads.
    assert_eq!(written, 60);
}

#[test]
fn new_limits_of_the_host_hold_for_reads_and_writes_together() {
    let load = Load::new(engine(separate())).clients(8, 0, Op::Read, 4096);
    let mut load = load.clients(8, 1, Op::Write, 4096);
    load.run(Instant::ZERO, secs(2));
    load.engine.set_host_limits(secs(2), &limits(100, 0), &limits(0, 0));
    load.go_on(secs(8));
    let all = [0, 1].map(|device| load.completed_in(device, 3 * SEC, 7 * SEC));
    assert_eq!(all, [200, 200]);
}
