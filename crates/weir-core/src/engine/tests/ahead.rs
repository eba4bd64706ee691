//! Requests admitted ahead, against the same requests piece by piece.

use super::properties::{Arrival, Layout, layout, trace};
use super::*;
use proptest::prelude::*;

/// A random host on which only disks hold requests, and none bursts.
fn of_disks(mut layout: Layout) -> HostSpec {
    for (cache, _, kind) in &mut layout.volumes {
        (*cache, *kind) = (CacheMode::None, *kind % 4);
    }
    (layout.uncached, layout.cached, layout.log) = (0, 0, 0);
    layout.writes = None;
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

/// A random host whose volumes share limits, none of which bursts. With `is_even`, all times are
/// multiples of a quarter of a millisecond, so that most instants have several events.
fn with_shared_limits(mut layout: Layout, is_even: bool) -> HostSpec {
    for (cache, _, kind) in &mut layout.volumes {
        (*cache, *kind) = (CacheMode::None, *kind % 4);
    }
    layout.volumes[0].1 = Place::Remote;
    (layout.uncached, layout.cached, layout.log) = (1 + layout.uncached % 3, layout.cached % 4, 0);
    let mut spec = layout.spec();
    if is_even {
        for volume in &mut spec.volumes {
            volume.medium.read = Latency::fixed(Span::from_millis(1));
            volume.limits.gate = limits(1_000, 16_000 << 10);
        }
        spec.uncached = limits(4_000, 16_000 << 10);
        spec.cached = limits(2_000, 0);
    }
    spec
}

/// Arrivals in bursts, or all at once.
fn hasten(trace: &mut [Arrival], haste: u64) {
    for arrival in trace {
        arrival.gap /= haste;
    }
}

fn haste() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1_u64), Just(50), Just(u64::MAX)]
}

proptest! {
    #[test]
    fn all_figures_are_those_of_pieces_one_by_one(
        layout in layout(), mut trace in trace(), haste in haste(), probe in 1_usize..9,
    ) {
        hasten(&mut trace, haste);
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
        // Flushes and requests that wait nowhere are done when they come.
        trace.retain(|a| a.op != Op::Flush);
        let mut spec = of_disks(layout);
        for volume in &mut spec.volumes {
            volume.medium.write = volume.medium.read.clone();
        }
        let ahead = Engine::with_fixed_limits(spec.clone()).expect("a sound host");
        prop_assert_eq!(run(ahead, &trace, 3), run(engine(spec), &trace, 3));
    }

    /// All figures, and the order of completions of one instant.
    #[test]
    fn shared_limits_give_what_they_give_piece_by_piece(
        layout in layout(),
        mut trace in trace(),
        haste in haste(),
        is_even in any::<bool>(),
        probe in 1_usize..9,
    ) {
        hasten(&mut trace, haste);
        let spec = with_shared_limits(layout, is_even);
        let ahead = Engine::with_fixed_limits(spec.clone()).expect("a sound host");
        prop_assert!(ahead.ahead.is_some());
        prop_assert_eq!(run(ahead, &trace, probe), run(engine(spec), &trace, probe));
    }
}

#[test]
fn a_host_with_other_limits_is_not_admitted_ahead() {
    let is_ahead = |spec: HostSpec| Engine::with_fixed_limits(spec).expect("sound").ahead.is_some();
    let disks = || host(vec![volume(500, 0), volume(0, 1 << 20)]);
    assert!(is_ahead(disks()));
    assert!(is_ahead(HostSpec { uncached: limits(1_000, 0), ..disks() }));
    let mut bursting = limits(1_000, 0);
    bursting.iops = bursting.iops.map(|l| l.with_burst(per_sec(2_000), Span::from_secs(1)));
    assert!(!is_ahead(HostSpec { uncached: bursting, ..disks() }));
    // Without latency, completions and admissions of one instant have one order.
    let without_latency = || {
        let mut spec = disks();
        spec.volumes[0].medium.write = Latency::zero();
        spec
    };
    assert!(is_ahead(without_latency()));
    assert!(!is_ahead(HostSpec { uncached: limits(1_000, 0), ..without_latency() }));
    assert!(!is_ahead(HostSpec { uncached_writes: Some(limits(1_000, 0)), ..without_latency() }));
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
