//! The governor of a host's log: one rate for the writes of all its log volumes.

use super::*;

const MIB: u64 = 1 << 20;

/// Two logs and a data volume behind a log rate of `mib` MiB/s.
fn governed(mib: u64) -> HostSpec {
    let log = |spec| VolumeSpec { log: true, ..spec };
    let mut spec = host(vec![log(volume(0, 0)), log(volume(0, 0)), volume(0, 0)]);
    spec.log_rate = Some(Limit { rate: per_sec(mib * MIB), burst: None, reserve: None });
    spec
}

fn mib_per_s(load: &Load, device: usize, len: u64) -> u64 {
    load.completed_in(device, SEC, 3 * SEC) * len / 2 / MIB
}

#[test]
fn the_log_of_a_host_is_held_to_its_rate() {
    let len = 60 << 10;
    let load = Load::new(engine(governed(22))).clients(8, 0, Op::Write, len);
    let mut load = load.clients(8, 1, Op::WriteThrough, len);
    load.run(Instant::ZERO, secs(4));
    for from in (SEC..3 * SEC).step_by(100_000_000) {
        let until = from + 100_000_000;
        let done = load.completed_in(0, from, until) + load.completed_in(1, from, until);
        assert!((done * len).abs_diff(22 * MIB / 10) <= len, "{done} of 60 KiB from {from}");
    }
    // Both have half, whatever kind their writes are of.
    let [left, right] = [0, 1].map(|device| load.completed_in(device, SEC, 3 * SEC));
    assert!(left.abs_diff(right) <= 2, "{left} and {right}");
}

#[test]
fn reads_and_other_volumes_do_not_pass_the_log_rate() {
    let len = 64 << 10;
    let load = Load::new(engine(governed(3))).clients(4, 0, Op::Write, len);
    let mut load = load.clients(4, 1, Op::Read, len).clients(4, 2, Op::Write, len);
    load.run(Instant::ZERO, secs(4));
    assert_eq!(mib_per_s(&load, 0, len), 3);
    // Four in flight at 1 ms each.
    for device in [1, 2] {
        assert_eq!(mib_per_s(&load, device, len), 250);
        assert!(
            load.done
                .iter()
                .filter(|c| c.device.0 == device)
                .all(|c| c.waits.total() == Span::ZERO)
        );
    }
}

#[test]
fn waits_are_charged_to_the_log_rate_and_then_to_the_disk() {
    let mut spec = governed(1);
    spec.volumes[0].limits.gate = limits(20, 0);
    let mut engine = engine(spec);
    for tag in 0..3 {
        let request =
            Request { device: DeviceId(0), op: Op::Write, offset: 0, len: MIB / 100, tag };
        engine.handle_request(Instant::ZERO, &request).expect("a request in range");
    }
    engine.handle_timeout(secs(1));
    let waits = |event| match event {
        Event::Completed(c) => {
            assert_eq!(c.at - c.arrived, c.waits.total() + c.medium, "{c:?}");
            [Cap::LogRate, Cap::DiskIops].map(|cap| c.waits.get(cap).nanos())
        }
        Event::WrittenBack { .. } => panic!("{event:?}"),
    };
    let got: Vec<[u64; 2]> = core::iter::from_fn(|| engine.poll_event()).map(waits).collect();
    // 10,485 bytes of 1 MiB are 9,999,276 ns, rounded up; the disk takes one in 50 ms.
    assert_eq!(got, [[0, 0], [9_999_276, 40_000_724], [19_998_551, 80_001_449]]);
    let waits = engine.totals(VolumeId(0)).expect("the volume").waits;
    assert_eq!(waits[Cap::LogRate], 29_997_827);
}

#[test]
fn a_log_rate_does_not_burst() {
    let mut spec = governed(1);
    let bursting =
        spec.log_rate.map(|limit| limit.with_burst(per_sec(9 * MIB), Span::from_secs(9)));
    spec.log_rate = bursting;
    let mut engine = engine(spec);
    for round in 0..2 {
        let now = secs(10 * round);
        engine.set_log_rate(now, bursting);
        for tag in 0..3 {
            let request = Request { device: DeviceId(0), op: Op::Write, offset: 0, len: MIB, tag };
            engine.handle_request(now, &request).expect("a request in range");
        }
        engine.handle_timeout(secs(10 * round + 5));
        let waits = engine.totals(VolumeId(0)).expect("the volume").waits;
        assert_eq!(waits[Cap::LogRate], (round + 1) * 3 * SEC);
    }
}

#[test]
fn a_new_log_rate_holds_at_once_and_none_lets_everything_go() {
    let len = 64 << 10;
    let mut load = Load::new(engine(governed(2))).clients(64, 0, Op::Write, len);
    load.run(Instant::ZERO, secs(2));
    let rate = Limit { rate: per_sec(10 * MIB), burst: None, reserve: None };
    load.engine.set_log_rate(secs(2), Some(rate));
    load.go_on(secs(4));
    assert_eq!(load.completed_in(0, SEC, 2 * SEC), 2 * 16);
    assert_eq!(load.completed_in(0, 3 * SEC, 4 * SEC), 10 * 16);
    load.engine.set_log_rate(secs(4), None);
    load.go_on(secs(5));
    assert!(load.completed_in(0, 4 * SEC, 5 * SEC) > 63_000, "64 clients at 1 ms each");
}

/// Writes that a read-write cache takes count at the log rate; their write-backs do not count
/// again.
#[test]
fn a_cached_log_is_governed_once() {
    let mut spec = governed(8);
    spec.volumes[0].cache = CacheMode::ReadWrite;
    let len = 64 << 10;
    let mut load = Load::new(engine(spec)).clients(4, 0, Op::Write, len);
    load.run(Instant::ZERO, secs(4));
    assert_eq!(mib_per_s(&load, 0, len), 8);
    let totals = load.engine.totals(VolumeId(0)).expect("the volume");
    assert!(totals.writebacks > 0 && totals.writeback_waits[Cap::LogRate] == 0);
}
