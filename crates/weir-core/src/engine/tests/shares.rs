//! The shares of volumes at a gate after times without load.

use super::*;

/// Requests of one second of the gate's bytes each, and the volumes in the order of their completions.
fn order(engine: &mut Engine, requests: &[(u64, usize)]) -> Vec<usize> {
    for (tag, (at, device)) in (0..).zip(requests) {
        let (device, op, len) = (DeviceId(*device), Op::Read, 1 << 20);
        let request = Request { device, op, offset: 0, len, tag };
        engine.handle_request(secs(*at), &request).expect("in range");
    }
    engine.handle_timeout(secs(1_000));
    let all = core::iter::from_fn(|| engine.poll_event());
    all.filter_map(|event| match event {
        Event::Completed(done) => Some(done.device.0),
        Event::WrittenBack { .. } => None,
    })
    .collect()
}

fn shared_by_two() -> Engine {
    engine(HostSpec { uncached: limits(0, 1 << 20), ..host(vec![volume(0, 0); 2]) })
}

/// Start tags have a lower bound: without it, a volume that was idle would be served alone for as long as
/// the other one was.
#[test]
fn an_idle_volume_saves_up_no_priority() {
    let busy = (0..30).map(|_| (0, 0));
    let late = (0..8).map(|_| (20, 1));
    let requests: Vec<(u64, usize)> = busy.chain(late).collect();
    let served = order(&mut shared_by_two(), &requests);
    assert_eq!(served.len(), 38);
    // From the arrival of the other on, they take turns.
    let both = &served[22..38];
    for turn in both.chunks(2) {
        assert_eq!(turn.iter().sum::<usize>(), 1, "{served:?}");
    }
}

/// An idle gate forgets its volumes' shares: a large request at the end of a busy time is not charged to its
/// volume in the next one.
#[test]
fn an_idle_gate_forgets_what_its_volumes_had() {
    let mut engine = shared_by_two();
    let large = |tag: u64| Request {
        device: DeviceId(0),
        op: Op::Read,
        offset: 0,
        len: 8 << 20,
        tag: 100 + tag,
    };
    (0..3).for_each(|tag| engine.handle_request(secs(0), &large(tag)).expect("in range"));
    // All have passed; the last one is owed until 24 s.
    engine.handle_timeout(secs(17));
    while engine.poll_event().is_some() {}
    let requests: Vec<(u64, usize)> =
        [0, 0, 0, 0, 1, 1, 1].into_iter().map(|volume| (18, volume)).collect();
    let served = order(&mut engine, &requests);
    // The first waits alone; behind it, they take turns.
    assert_eq!(served, [0, 0, 1, 0, 1, 0, 1]);
}
