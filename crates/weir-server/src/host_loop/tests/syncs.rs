//! Which requests share a sync, and how many are under way?

use super::rig::{Cold, Rig, blocking, host, volume};
use crate::worker::Task;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use weir_core::DeviceSpec;
use weir_proto::Errno;
use weir_store::{Fault, FaultStore};
use weir_units::{Bytes, Span};

type Slow = Arc<Cold<FaultStore>>;

const SIZE: Bytes = Bytes::mib(1);

fn slow(at_once: usize) -> Slow {
    Arc::new(Cold::new(FaultStore::new(SIZE)).with_syncs(at_once))
}

fn serve(store: &Slow) -> Rig {
    Rig::new(host(vec![volume(SIZE)]), vec![blocking(store)])
}

/// Sends flushes, and lets them pass the limits.
fn flush(rig: &mut Rig, count: usize) -> Vec<u64> {
    let sent = (0..count).map(|_| rig.flush(0)).collect();
    rig.wait(Span::from_secs(1));
    sent
}

fn syncs(rig: &Rig) -> usize {
    rig.jobs.iter().filter(|job| matches!(job.task, Task::Sync { .. })).count()
}

#[track_caller]
fn check_answered(rig: &Rig, requests: &[u64], expect: bool) {
    for request in requests {
        assert_eq!(rig.answer(*request).is_some(), expect, "request {request}");
    }
}

#[test]
fn requests_of_a_turn_share_a_sync_and_later_ones_do_not_wait_for_it() {
    let store = slow(2);
    let mut rig = serve(&store);
    let first = flush(&mut rig, 3);
    assert_eq!(syncs(&rig), 1);
    let second = flush(&mut rig, 2);
    assert_eq!(syncs(&rig), 2);
    // The store takes no more. All who come share the next.
    let third = [flush(&mut rig, 1), flush(&mut rig, 2)].concat();
    assert_eq!(syncs(&rig), 2);
    rig.work_on(1);
    check_answered(&rig, &second, true);
    check_answered(&rig, &first, false);
    check_answered(&rig, &third, false);
    assert_eq!(syncs(&rig), 2);
    rig.work();
    check_answered(&rig, &first, true);
    check_answered(&rig, &third, true);
    assert_eq!(store.syncs.load(Ordering::Relaxed), 3);
}

#[test]
fn a_store_that_takes_one_sync_at_a_time_gets_one() {
    let mut rig = serve(&slow(1));
    let first = flush(&mut rig, 1);
    let second = flush(&mut rig, 1);
    assert_eq!(syncs(&rig), 1);
    rig.work_one();
    check_answered(&rig, &first, true);
    check_answered(&rig, &second, false);
    rig.work();
    check_answered(&rig, &second, true);
}

#[test]
fn a_stripe_takes_as_many_syncs_as_each_of_its_columns() {
    let mut spec = host(vec![volume(SIZE), volume(SIZE)]);
    spec.devices = vec![DeviceSpec::Stripe { unit: Bytes::kib(64), columns: vec![0, 1] }];
    let mut rig = Rig::new(spec, vec![blocking(&slow(3)), blocking(&slow(2))]);
    let sent: Vec<_> = (0..3).flat_map(|_| flush(&mut rig, 1)).collect();
    assert_eq!(syncs(&rig), 4);
    // One column of each sync: nothing is durable yet.
    rig.work_on(2);
    rig.work_on(0);
    check_answered(&rig, &sent, false);
    rig.work();
    check_answered(&rig, &sent, true);
}

#[test]
fn a_failed_sync_fails_those_who_share_it_and_no_other() {
    let store = slow(2);
    let mut rig = serve(&store);
    let first = flush(&mut rig, 2);
    let second = flush(&mut rig, 1);
    store.store.fail_after(0, Fault::Io);
    rig.work_one();
    store.store.heal();
    rig.work();
    first.into_iter().for_each(|request| rig.check(request, Err(Errno::Io)));
    rig.check(second[0], Ok(()));
}
