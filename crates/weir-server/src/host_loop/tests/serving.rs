//! Is every request answered once, and rightly, whatever breaks?

use super::rig::{Rig, blocking, host, iops, memory, volume};
use crate::host_loop::{ClientId, Owing};
use proptest::prelude::*;
use std::num::NonZeroU64;
use std::sync::Arc;
use weir_core::{CacheMode, DeviceId, DeviceSpec, HostSpec, Latency, Limit, VolumeId, VolumeSpec};
use weir_proto::client::{Body, ParsedReply, Session, parse_reply};
use weir_proto::{
    BlockSizes, BlockState, Command, CommandFlags, Errno, Request, TransmissionFlags,
};
use weir_store::{Fault, FaultStore, MemoryStore, Store};
use weir_units::{Bytes, Span};

const SIZE: u64 = 48 << 10;

/// A volume of each cache mode, then a stripe of three more, one of each mode.
fn every_kind() -> (HostSpec, usize) {
    let modes = [CacheMode::None, CacheMode::ReadOnly, CacheMode::ReadWrite];
    let kinds = modes.iter().chain(&modes).map(|mode| {
        let mut spec = volume(Bytes::new(SIZE));
        spec.cache = *mode;
        spec
    });
    let mut spec = host(kinds.collect());
    spec.devices.truncate(3);
    spec.devices.push(DeviceSpec::Stripe { unit: Bytes::kib(4), columns: vec![3, 4, 5] });
    (spec, 6)
}

#[derive(Debug, Clone)]
enum Op {
    Write { device: usize, at: u64, len: usize, fill: u8, fua: bool },
    Zero { device: usize, at: u64, len: u32, trim: bool, no_hole: bool },
    Read { device: usize, at: u64, len: u32 },
    Flush { device: usize },
    Wait { millis: u64 },
}

fn op() -> impl Strategy<Value = Op> {
    let (device, at) = (0_usize..4, 0..SIZE - 20_000);
    prop_oneof![
        4 => (device.clone(), at.clone(), 1_usize..20_000, 1_u8.., any::<bool>())
            .prop_map(|(device, at, len, fill, fua)| Op::Write { device, at, len, fill, fua }),
        2 => (device.clone(), at.clone(), 1_u32..20_000, any::<bool>(), any::<bool>())
            .prop_map(|(device, at, len, trim, no_hole)| Op::Zero { device, at, len, trim, no_hole }),
        4 => (device.clone(), at, 1_u32..20_000)
            .prop_map(|(device, at, len)| Op::Read { device, at, len }),
        1 => device.prop_map(|device| Op::Flush { device }),
        1 => (0_u64..2_000).prop_map(|millis| Op::Wait { millis }),
    ]
}

fn span(at: u64, len: usize) -> std::ops::Range<usize> {
    let at = usize::try_from(at).expect("a small device");
    at..at + len
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Each device is an array of bytes, whatever is between.
    #[test]
    fn written_bytes_are_read_back(ops in proptest::collection::vec(op(), 1..60)) {
        let (spec, count) = every_kind();
        let mut rig = Rig::new(spec, (0..count).map(|_| memory(Bytes::new(SIZE))).collect());
        let mut model = [(); 4].map(|()| vec![0_u8; 3 * 48 * 1024]);
        for op in ops {
            match op {
                Op::Write { device, at, len, fill, fua } => {
                    let data = vec![fill; len];
                    let cookie = match fua {
                        true => rig.write_fua(device, at, &data),
                        false => rig.write(device, at, &data),
                    };
                    model[device][span(at, len)].copy_from_slice(&data);
                    prop_assert_eq!(rig.finish(cookie), Ok(Vec::new()));
                }
                Op::Zero { device, at, len, trim, no_hole } => {
                    let command = if trim { Command::Trim } else { Command::WriteZeroes };
                    let flags = if no_hole && !trim { CommandFlags::NO_HOLE } else { CommandFlags::NONE };
                    let cookie = rig.send(rig.me, device, Request::new(command, 0, at, len).with(flags), &[]);
                    model[device][span(at, len as usize)].fill(0);
                    prop_assert_eq!(rig.finish(cookie), Ok(Vec::new()));
                }
                Op::Read { device, at, len } => {
                    prop_assert!(rig.contents(device, at, len) == model[device][span(at, len as usize)]);
                }
                Op::Flush { device } => {
                    let cookie = rig.flush(device);
                    prop_assert_eq!(rig.finish(cookie), Ok(Vec::new()));
                }
                Op::Wait { millis } => rig.wait(Span::from_millis(millis)),
            }
        }
        prop_assert_eq!(rig.in_flight(rig.me), 0);
    }
}

/// One volume whose store breaks when told to.
fn fragile() -> (Rig, Arc<FaultStore>) {
    let store = Arc::new(FaultStore::new(Bytes::mib(1)));
    (Rig::new(host(vec![volume(Bytes::mib(1))]), vec![blocking(&store)]), store)
}

#[test]
fn a_store_that_fails_fails_its_request_and_nothing_else() {
    let (mut rig, store) = fragile();
    let data = [7; 4096];
    let kept = rig.write_fua(0, 0, &data);
    rig.check(kept, Ok(()));

    store.fail_after(0, Fault::NoSpace);
    let full = rig.write(0, 8192, &data);
    rig.check(full, Err(Errno::NoSpc));
    let zeroes = Request::new(Command::WriteZeroes, 0, 8192, 4096);
    let full = rig.send(rig.me, 0, zeroes.with(CommandFlags::NO_HOLE), &[]);
    rig.check(full, Err(Errno::NoSpc));
    let trim = rig.send(rig.me, 0, Request::new(Command::Trim, 0, 65_536, 4096), &[]);
    rig.check(trim, Ok(()));
    assert_eq!(rig.contents(0, 0, 4096), data);
    // The operator is told once a minute.
    let reason = "no space left: injected by a test".to_owned();
    let told = [Owing::Full { volume: VolumeId(0), reason }];
    assert_eq!(rig.host.take_owing(), told);
    rig.now += Span::from_secs(60);
    let full = rig.write(0, 8192, &data);
    rig.check(full, Err(Errno::NoSpc));
    assert_eq!(rig.host.take_owing(), told);

    store.fail_after(0, Fault::Io);
    let broken = [rig.write(0, 8192, &data), rig.read(0, 0, 4096), rig.flush(0)];
    broken.into_iter().for_each(|cookie| rig.check(cookie, Err(Errno::Io)));

    store.heal();
    let again = rig.write(0, 8192, &data);
    rig.check(again, Ok(()));
    assert_eq!(rig.contents(0, 8192, 4096), data);
    let served = rig.host.served(DeviceId(0)).copied().expect("the device");
    assert_eq!((served.requests, served.errors), (11, 6));
    let later = rig.now + Span::from_secs(5);
    let (reason, ago) = rig.host.last_failure(DeviceId(0), later).expect("a failure");
    assert!(reason.contains("injected by a test") && ago >= Span::from_secs(5), "{reason} {ago}");
    assert_eq!(rig.host.take_owing(), [], "an I/O error is not a full disk");
}

#[test]
fn invalid_requests_are_refused_at_once() {
    let (mut rig, _) = fragile();
    let beyond = rig.write(0, (1 << 20) - 1, &[1, 2]);
    rig.check(beyond, Err(Errno::Inval));
    let empty = rig.read(0, 0, 0);
    rig.check(empty, Err(Errno::Inval));
    let goodbye = rig.send(rig.me, 0, Request::new(Command::Disconnect, 0, 0, 0), &[]);
    rig.check(goodbye, Err(Errno::Inval));
    assert_eq!(rig.host.outstanding(), 0);
}

#[test]
fn flushes_that_come_during_a_sync_share_the_next() {
    let (mut rig, _) = fragile();
    let first = rig.flush(0);
    rig.turn();
    assert_eq!(rig.jobs.len(), 1);
    let written = rig.write_fua(0, 0, &[1; 512]);
    let later = [rig.flush(0), rig.flush(0), written];
    rig.turn();
    rig.work_on(1);
    assert_eq!(rig.jobs.len(), 1, "one sync at a time");
    rig.work_one();
    assert_eq!(rig.answer(first), Some(&Ok(Vec::new())));
    assert!(later.iter().all(|c| rig.answer(*c).is_none()), "their sync has not begun");
    assert_eq!(rig.jobs.len(), 1, "one sync for all three");
    rig.work_one();
    assert!(later.iter().all(|c| rig.answer(*c) == Some(&Ok(Vec::new()))));
    assert!(rig.jobs.is_empty());
}

#[test]
fn a_failed_sync_fails_those_who_waited_for_it_and_not_the_next() {
    let (mut rig, store) = fragile();
    let (first, fua) = (rig.flush(0), rig.write_fua(0, 0, &[1; 512]));
    rig.turn();
    let late = rig.flush(0);
    rig.turn();
    store.fail_after(0, Fault::Io);
    rig.work_one();
    store.heal();
    rig.settle();
    assert_eq!(rig.answer(first), Some(&Err(Errno::Io)));
    assert_eq!(rig.answer(fua), Some(&Ok(Vec::new())), "it shares the second sync");
    assert_eq!(rig.answer(late), Some(&Ok(Vec::new())));
}

#[test]
fn a_client_that_goes_leaves_its_writes_and_nothing_else() {
    let store = Arc::new(FaultStore::new(Bytes::mib(1)));
    let mut slow = volume(Bytes::mib(1));
    slow.limits = iops(10);
    let mut rig = Rig::new(host(vec![slow]), vec![blocking(&store)]);
    let other = ClientId(1);
    rig.connect(other);
    let write = Request::new(Command::Write, 0, 4096, 512);
    rig.send(other, 0, write.with(CommandFlags::FUA), &[9; 512]);
    for _ in 0..5 {
        rig.send(other, 0, Request::new(Command::Read, 0, 0, 4096), &[]);
        rig.send(other, 0, Request::new(Command::Flush, 0, 0, 0), &[]);
    }
    rig.turn();
    let mine = rig.read(0, 4096, 512);
    assert!(!rig.jobs.is_empty(), "a sync is under way when it goes");
    rig.disconnect(other);
    assert_eq!(rig.finish(mine), Ok(vec![9; 512]));
    assert_eq!(rig.host.outstanding(), 0);
    // Its five reads were in line before mine and took their turns.
    assert_eq!(rig.now.nanos(), 600_000_000);
}

/// The largest requests of the protocol are held to the limits with all of their bytes.
#[test]
fn zeros_over_the_longest_range_take_the_time_of_all_their_bytes() {
    let mut spec = volume(Bytes::gib(16));
    let rate = NonZeroU64::new(1 << 30).map(|rate| Limit { rate, burst: None, reserve: None });
    spec.limits.gate.bytes = rate;
    let store = Arc::new(FaultStore::new(spec.size));
    let mut rig = Rig::new(host(vec![spec]), vec![blocking(&store)]);
    let length = u32::MAX - 511;
    let zeroes = Request::new(Command::WriteZeroes, 0, 0, length).with(CommandFlags::NO_HOLE);
    for before in 0..4_u64 {
        let zeroed = rig.send(rig.me, 0, zeroes, &[]);
        rig.check(zeroed, Ok(()));
        // About four seconds for each that went before: a GiB a second.
        let bytes = u128::from(before * u64::from(length));
        assert_eq!(u128::from(rig.now.nanos()), (bytes * 1_000_000_000).div_ceil(1 << 30));
    }
    let totals = rig.host.engine().totals(VolumeId(0)).copied().expect("the volume");
    assert_eq!(totals.write_bytes, 4 * u64::from(length));
}

/// Zeros that take their space are a forced write, which takes the time of a sync; others are a trim.
#[test]
fn zeros_without_holes_count_as_a_forced_write_and_others_as_a_trim() {
    let took = |flags: CommandFlags, cache: CacheMode| {
        let mut spec = VolumeSpec { cache, ..volume(Bytes::mib(16)) };
        spec.limits = iops(1_000);
        spec.limits.io_unit = NonZeroU64::new(256 << 10);
        spec.medium.sync = Some(Latency::fixed(Span::from_millis(3)));
        let mut rig = Rig::new(host(vec![spec]), vec![memory(Bytes::mib(16))]);
        let zeroes = Request::new(Command::WriteZeroes, 0, 0, 1 << 20).with(flags);
        let zeroed = rig.send(rig.me, 0, zeroes, &[]);
        rig.check(zeroed, Ok(()));
        let totals = rig.host.engine().totals(VolumeId(0)).copied().expect("the volume");
        let counts = (totals.writes, totals.write_bytes, totals.discards, totals.counted);
        (counts, rig.now.nanos() / 1_000_000)
    };
    for cache in [CacheMode::None, CacheMode::ReadWrite] {
        assert_eq!(took(CommandFlags::NO_HOLE, cache), ((1, 1 << 20, 0, 4), 3), "{cache:?}");
        assert_eq!(took(CommandFlags::NONE, cache), ((0, 0, 1, 1), 0), "{cache:?}");
    }
}

#[test]
fn a_flush_takes_the_time_of_a_sync() {
    let mut spec = volume(Bytes::mib(16));
    spec.medium.sync = Some(Latency::fixed(Span::from_millis(3)));
    let mut rig = Rig::new(host(vec![spec]), vec![memory(Bytes::mib(16))]);
    let flushed = rig.flush(0);
    rig.check(flushed, Ok(()));
    assert_eq!(rig.now.nanos(), 3_000_000);
}

#[test]
fn a_resize_under_load_answers_everything_at_the_new_rate() {
    let mut spec = volume(Bytes::mib(1));
    spec.limits = iops(10);
    let mut rig = Rig::new(host(vec![spec.clone()]), vec![memory(Bytes::mib(1))]);
    let data: Vec<u8> = (0..=255).collect();
    let written = rig.write(0, 1000, &data);
    rig.check(written, Ok(()));
    let reads: Vec<u64> = (0..41).map(|_| rig.read(0, 1000, 256)).collect();
    rig.wait(Span::from_secs(1));
    let answered = |rig: &Rig| reads.iter().filter(|c| rig.answer(**c).is_some()).count();
    assert_eq!(answered(&rig), 10);

    let bigger = weir_core::VolumeSpec { size: Bytes::mib(4), limits: iops(100), ..spec.clone() };
    rig.resize(&bigger).expect("there is space");
    assert_eq!(rig.host.size(DeviceId(0)), Bytes::mib(4));
    rig.wait(Span::from_millis(310));
    assert_eq!(answered(&rig), 41, "31 were left, at 100 per second");
    assert!(reads.iter().all(|c| rig.answer(*c) == Some(&Ok(data.clone()))));
    assert_eq!(rig.contents(0, 3 << 20, 4096), [0; 4096]);

    let written = rig.write(0, (4 << 20) - 512, &[5; 512]);
    rig.check(written, Ok(()));
    assert_eq!(
        rig.resize(&spec),
        Err("volume \"data\": there is data beyond 1 MiB; trim or move it before shrinking".into())
    );
    let last = rig.read(0, (4 << 20) - 512, 512);
    let trim = rig.send(rig.me, 0, Request::new(Command::Trim, 0, 1 << 20, 3 << 20), &[]);
    rig.check(trim, Ok(()));
    rig.check(last, Ok(()));
    rig.resize(&spec).expect("nothing is behind the new end");
    let beyond = rig.read(0, 1 << 20, 512);
    rig.check(beyond, Err(Errno::Inval));
    assert_eq!(rig.contents(0, 1000, 256), data);
}

#[test]
fn a_shrinking_under_a_read_that_waits_answers_it() {
    let mut spec = volume(Bytes::mib(2));
    spec.limits = iops(1);
    let mut rig = Rig::new(host(vec![spec.clone()]), vec![memory(Bytes::mib(2))]);
    let (first, waits) = (rig.read(0, 0, 512), rig.read(0, 1 << 20, 512));
    let smaller = weir_core::VolumeSpec { size: Bytes::mib(1), ..spec };
    rig.resize(&smaller).expect("it is empty");
    rig.check(first, Ok(()));
    rig.check(waits, Err(Errno::Inval));
}

#[test]
fn a_resize_that_fails_changes_nothing() {
    let (mut rig, store) = fragile();
    store.fail_after(0, Fault::Io);
    for size in [Bytes::mib(2), Bytes::kib(512)] {
        let spec = weir_core::VolumeSpec { limits: iops(1), ..volume(size) };
        assert_eq!(rig.resize(&spec), Err("injected by a test".to_owned()));
    }
    store.heal();
    assert_eq!(rig.host.size(DeviceId(0)), Bytes::mib(1));
    for _ in 0..3 {
        assert_eq!(rig.contents(0, (1 << 20) - 512, 512), [0; 512]);
    }
    assert_eq!(rig.now.nanos(), 0, "the new limit does not hold");
}

#[test]
fn a_request_without_a_limit_is_due_in_the_same_turn() {
    let mut rig = Rig::new(host(vec![volume(Bytes::mib(1))]), vec![memory(Bytes::mib(1))]);
    assert_eq!(rig.host.deadline(), None);
    let cookie = rig.write(0, 0, &[1]);
    assert!(
        rig.host.deadline().is_some_and(|due| due <= rig.now),
        "the host would not be called again"
    );
    rig.turn();
    assert!(rig.answer(cookie).is_some());
    assert_eq!(rig.host.deadline(), None);
}

#[test]
fn governed_and_overhead_are_the_latency() {
    let mut spec = volume(Bytes::mib(1));
    spec.limits = iops(10);
    let mut rig = Rig::new(host(vec![spec]), vec![memory(Bytes::mib(1))]);
    for _ in 0..3 {
        rig.read(0, 0, 512);
    }
    rig.turn();
    // The host was not run when the second and third were due, at 100 and 200 ms.
    rig.now += Span::from_millis(250);
    rig.turn();
    let served = rig.host.served(DeviceId(0)).copied().expect("the device");
    assert_eq!(
        (served.governed, served.overhead),
        (Span::from_millis(300), Span::from_millis(200))
    );
}

/// The extents that `BLOCK_STATUS` answers, as (length, is data).
#[track_caller]
fn extents(rig: &mut Rig, offset: u64, length: u32, one: bool) -> Vec<(u32, bool)> {
    let flags = if one { CommandFlags::REQ_ONE } else { CommandFlags::NONE };
    let request = Request::new(Command::BlockStatus, 0, offset, length).with(flags);
    let out = rig.block_status(0, request);
    let session = Session {
        size: Bytes::ZERO,
        flags: TransmissionFlags::NONE,
        block: BlockSizes::DEFAULT,
        structured: true,
        meta_context: Some(1),
    };
    let reply = match parse_reply(&out, &session, |_| None).expect("a reply") {
        ParsedReply::Reply { reply, .. } => reply,
        ParsedReply::NeedMore { .. } => panic!("half a reply"),
    };
    let Body::BlockStatus { extents, .. } = reply.body else { panic!("{reply:?}") };
    extents
        .map(|extent| {
            let hole = BlockState::HOLE | BlockState::ZERO;
            assert!([BlockState::NONE, hole].contains(&extent.state), "{extent:?}");
            (extent.length, extent.state == BlockState::NONE)
        })
        .collect()
}

#[test]
fn block_status_of_a_volume() {
    let mut rig = Rig::new(host(vec![volume(Bytes::mib(1))]), vec![memory(Bytes::mib(1))]);
    let written = rig.write(0, 8192, &[1; 4096]);
    rig.check(written, Ok(()));
    let whole = [(8192, false), (4096, true), ((1 << 20) - 12_288, false)];
    assert_eq!(extents(&mut rig, 0, 1 << 20, false), whole);
    assert_eq!(extents(&mut rig, 0, 1 << 20, true), whole[..1]);
    assert_eq!(extents(&mut rig, 8192, 512, false), [(512, true)]);
    assert_eq!(extents(&mut rig, 9000, 100_000, true), [(3288, true)]);
}

#[test]
fn block_status_is_counted_like_any_request() {
    let (mut rig, store) = fragile();
    assert_eq!(extents(&mut rig, 0, 1 << 20, false), [(1 << 20, false)]);
    store.fail_after(0, Fault::Io);
    rig.block_status(0, Request::new(Command::BlockStatus, 0, 0, 512));
    let served = rig.host.served(DeviceId(0)).copied().expect("the device");
    assert_eq!((served.requests, served.errors), (2, 1));
    assert_eq!(served.governed, Span::ZERO);
}

#[test]
fn block_status_of_what_a_cache_has_not_written_back() {
    let mut spec = volume(Bytes::mib(1));
    spec.cache = CacheMode::ReadWrite;
    let store = Arc::new(MemoryStore::new(Bytes::mib(1)));
    let mut rig = Rig::new(host(vec![spec]), vec![blocking(&store)]);
    assert_eq!(extents(&mut rig, 0, 16_384, false), [(16_384, false)]);
    let written = rig.write(0, 8192, &[1; 4096]);
    rig.check(written, Ok(()));
    assert_eq!(extents(&mut rig, 0, 16_384, false), [(16_384, true)]);
    let flushed = rig.flush(0);
    rig.check(flushed, Ok(()));
    let expect = [(8192, false), (4096, true), (4096, false)];
    assert_eq!(extents(&mut rig, 0, 16_384, false), expect);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// On a stripe too, what is told of each byte is what its column says of it.
    #[test]
    fn block_status_of_a_stripe(
        written in proptest::collection::vec(0_u64..96, 0..30),
        first in 0_u64..90,
        blocks in 1_u32..40,
        one: bool,
    ) {
        let unit = Bytes::kib(16);
        let stores: Vec<_> =
            (0..3).map(|_| Arc::new(MemoryStore::new(Bytes::kib(128)))).collect();
        let mut spec = host(stores.iter().map(|s| volume(s.size())).collect());
        spec.devices = vec![DeviceSpec::Stripe { unit, columns: vec![0, 1, 2] }];
        let mut rig = Rig::new(spec, stores.iter().map(blocking).collect());
        for block in &written {
            let cookie = rig.write(0, block * 4096, &[1; 4096]);
            prop_assert!(rig.finish(cookie).is_ok());
        }
        let length = (blocks * 4096).min((96 - u32::try_from(first).expect("small")) * 4096);
        let got = extents(&mut rig, first * 4096, length, one);
        let mut at = first * 4096;
        for (len, is_data) in &got {
            for block in at / 4096..(at + u64::from(*len)) / 4096 {
                prop_assert_eq!(written.contains(&block), *is_data, "block {} in {:?}", block, got);
            }
            at += u64::from(*len);
        }
        prop_assert!(got.len() == 1 || !one);
        prop_assert!(one || at == first * 4096 + u64::from(length), "{:?}", got);
    }
}

#[test]
fn a_client_that_does_not_take_its_replies_gets_no_more_data() {
    let cold = Arc::new(super::rig::Cold::new(MemoryStore::new(Bytes::mib(1))));
    let (warm, cold_spec) = (volume(Bytes::mib(1)), volume(Bytes::mib(1)));
    let stores = vec![memory(Bytes::mib(1)), blocking(&cold)];
    let mut rig = Rig::new(host(vec![warm, cold_spec]), stores);
    let me = rig.me;
    let first = rig.read(1, 0, 4096);
    rig.turn();
    assert_eq!(rig.held(me), 4096);
    rig.set_full(me, true);
    let held = [rig.read(0, 0, 4096), rig.read(1, 0, 4096), rig.read(0, 512, 512)];
    let written = rig.write(0, 0, &[1; 4096]);
    rig.turn();
    assert_eq!(rig.jobs.len(), 1, "no worker reads for it");
    rig.work();
    let answered = |rig: &Rig, cookie: u64| rig.answer(cookie).is_some();
    assert!(answered(&rig, first) && answered(&rig, written));
    assert!(held.iter().all(|cookie| !answered(&rig, *cookie)));
    assert_eq!((rig.held(me), rig.in_flight(me)), (0, 3));

    rig.set_full(me, false);
    rig.work();
    assert_eq!(rig.answer(held[0]), Some(&Ok(vec![1; 4096])), "it sees the write before it");
    assert!(held.iter().all(|cookie| answered(&rig, *cookie)));

    rig.set_full(me, true);
    rig.read(0, 0, 4096);
    rig.turn();
    assert_eq!(rig.host.outstanding(), 1);
    rig.reconnect();
    assert_eq!(rig.host.outstanding(), 0, "it has gone, and what was held for it too");
}
