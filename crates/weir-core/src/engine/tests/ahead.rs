//! Requests admitted ahead, against the same requests piece by piece.

use super::properties::{Arrival, Layout, layout, trace};
use super::*;
use proptest::prelude::*;

/// A random host on which only disks hold requests, and none bursts.
fn of_disks(mut layout: Layout) -> HostSpec {
    for (cache, _, kind) in &mut layout.volumes {
        (*cache, *kind) = (CacheMode::None, *kind % 3);
    }
    (layout.uncached, layout.cached, layout.log) = (0, 0, 0);
    layout.spec()
}

/// The events of a trace, and counters and requests in flight at every `probe`-th step.
#[derive(Debug, PartialEq)]
struct Outcome {
    events: Vec<Completion>,
    counters: Vec<(Vec<Totals>, Vec<u64>)>,
}

fn run(mut engine: Engine, trace: &[Arrival], probe: usize) -> Outcome {
    let (mut events, mut counters) = (Vec::new(), Vec::new());
    let mut now = Instant::ZERO;
    let turn = |engine: &mut Engine, until: Instant, events: &mut Vec<Completion>| {
        while let Some(due) = engine.poll_deadline().filter(|due| *due <= until) {
            engine.handle_timeout(due);
        }
        engine.handle_timeout(until);
        events.extend(core::iter::from_fn(|| engine.poll_event()).map(|event| match event {
            Event::Completed(completion) => completion,
            Event::WrittenBack { .. } => panic!("there is no cache"),
        }));
    };
    for (n, a) in trace.iter().enumerate() {
        now += Span::from_nanos(a.gap);
        turn(&mut engine, now, &mut events);
        let (device, offset) = (DeviceId(a.device), a.block * 4_096);
        let request = Request { device, op: a.op, offset, len: a.len, tag: n as u64 };
        engine.handle_request(now, &request).expect("it is in range");
        if n % probe == 0 {
            engine.settle_totals(now);
            let totals = engine.volumes.iter().map(|volume| volume.totals).collect();
            let mut tags = engine.outstanding_tags();
            tags.sort_unstable();
            counters.push((totals, tags));
        }
    }
    turn(&mut engine, Instant::from_nanos(1 << 60), &mut events);
    engine.settle_totals(now);
    counters.push((engine.volumes.iter().map(|volume| volume.totals).collect(), Vec::new()));
    assert_eq!(engine.outstanding(), 0);
    Outcome { events, counters }
}

/// Completions of one time in the order of the requests.
fn sorted(mut outcome: Outcome) -> Outcome {
    outcome.events.sort_by_key(|completion| (completion.at, completion.tag));
    outcome
}

proptest! {
    #[test]
    fn all_figures_are_those_of_pieces_one_by_one(
        layout in layout(),
        mut trace in trace(),
        haste in prop_oneof![Just(1_u64), Just(50), Just(u64::MAX)],
        probe in 1_usize..9,
    ) {
        for a in &mut trace {
            a.gap /= haste;
        }
        let spec = of_disks(layout);
        let ahead = Engine::with_fixed_limits(spec.clone()).expect("a sound host");
        prop_assert!(ahead.ahead.is_some());
        let ahead = run(ahead, &trace, probe);
        let one_by_one = run(engine(spec), &trace, probe);
        prop_assert_eq!(sorted(ahead), sorted(one_by_one));
    }

    /// With latencies that all differ, in the same order too.
    #[test]
    fn completions_come_in_the_same_order(layout in layout(), mut trace in trace()) {
        // Flushes and what waits nowhere are done when they come.
        trace.retain(|a| a.op != Op::Flush);
        let mut spec = of_disks(layout);
        for volume in &mut spec.volumes {
            volume.medium.write = volume.medium.read.clone();
        }
        let ahead = Engine::with_fixed_limits(spec.clone()).expect("a sound host");
        prop_assert_eq!(run(ahead, &trace, 3), run(engine(spec), &trace, 3));
    }
}

#[test]
fn a_host_with_other_limits_is_not_admitted_ahead() {
    let is_ahead = |spec: HostSpec| Engine::with_fixed_limits(spec).expect("sound").ahead.is_some();
    let disks = || host(vec![volume(500, 0), volume(0, 1 << 20)]);
    assert!(is_ahead(disks()));
    assert!(!is_ahead(HostSpec { uncached: limits(1_000, 0), ..disks() }));
    // Nothing on this host is local or cached.
    assert!(is_ahead(HostSpec { cached: limits(1_000, 0), ..disks() }));
    let with = |change: fn(&mut VolumeSpec)| {
        let mut spec = HostSpec { log_rate: limits(0, 1 << 20).bytes, ..disks() };
        change(&mut spec.volumes[1]);
        is_ahead(spec)
    };
    assert!(with(|_| ()));
    assert!(!with(|volume| volume.log = true));
    assert!(!with(|volume| volume.cache = CacheMode::ReadOnly));
    assert!(!with(|volume| {
        let limit = volume.limits.gate.bytes.expect("a limit");
        let peak = limit.rate.saturating_add(1);
        volume.limits.gate.bytes = Some(limit.with_burst(peak, Span::from_secs(1)));
    }));
}

#[test]
#[should_panic(expected = "a host with fixed limits takes no commands")]
fn fixed_limits_are_fixed() {
    let mut engine = Engine::with_fixed_limits(host(vec![volume(1, 0)])).expect("a sound host");
    engine.crash(Instant::ZERO);
}
