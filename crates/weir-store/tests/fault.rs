//! The failures of [`FaultStore`] are the ones that were asked for.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use weir_store::{ErrorKind, Fault, FaultStore, Store};
use weir_units::Bytes;

fn read(store: &FaultStore, offset: u64, len: usize) -> Vec<u8> {
    let mut buf = vec![0xee; len];
    store.read_at(offset, &mut buf).unwrap();
    buf
}

#[test]
fn a_crash_tears_unsynced_writes_at_sectors_and_a_seed_repeats_it() {
    let store = FaultStore::new(Bytes::mib(1));
    store.write_at(0, &[1; 65_536]).unwrap();
    store.sync().unwrap();
    store.write_at(100, &[2; 60_000]).unwrap();
    assert_eq!(store.unsynced(), 1);
    let mut outcomes = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let after = read(&store.crash(seed).unwrap(), 0, 65_536);
        assert_eq!(after, read(&store.crash(seed).unwrap(), 0, 65_536));
        assert_eq!((&after[..100], &after[60_100..]), (&[1; 100][..], &[1; 5436][..]));
        for (number, sector) in after.chunks(512).enumerate() {
            let written = &sector[if number == 0 { 100 } else { 0 }..];
            let written = &written[..written.len().min(60_100_usize.saturating_sub(number * 512))];
            assert!(written.iter().all(|b| *b == 1) || written.iter().all(|b| *b == 2));
        }
        outcomes.insert(after);
    }
    assert_eq!(outcomes.len(), 20, "a seed decides what is lost");
}

#[test]
fn a_trim_that_was_not_synced_can_come_back() {
    let store = FaultStore::new(Bytes::gib(32 << 10));
    store.write_at(1 << 40, &[1; 4096]).unwrap();
    store.sync().unwrap();
    store.trim(0, 32 << 40).unwrap();
    assert_eq!(read(&store, 1 << 40, 4096), [0; 4096]);
    let after = read(&store.crash(3).unwrap(), 1 << 40, 4096);
    assert!(after.contains(&1) && after.contains(&0));
    store.sync().unwrap();
    assert_eq!(read(&store.crash(3).unwrap(), 1 << 40, 4096), [0; 4096]);
}

#[test]
fn a_kill_loses_nothing_that_a_later_crash_could_not_lose() {
    let store = FaultStore::new(Bytes::mib(1));
    store.write_at(0, &[1; 4096]).unwrap();
    let killed = store.kill().unwrap();
    assert_eq!(read(&killed, 0, 4096), [1; 4096]);
    assert_eq!(killed.unsynced(), 1);
    assert!(read(&killed.crash(1).unwrap(), 0, 4096).contains(&0));
    killed.sync().unwrap();
    assert_eq!(read(&killed.crash(1).unwrap(), 0, 4096), [1; 4096]);
}

#[test]
fn bytes_that_a_resize_cut_off_do_not_return_with_the_next_sync() {
    let store = FaultStore::new(Bytes::mib(1));
    store.write_at(0, &[1; 8192]).unwrap();
    store.write_at(8192, &[2; 512]).unwrap();
    store.resize(Bytes::new(4096)).unwrap();
    store.resize(Bytes::mib(1)).unwrap();
    store.sync().unwrap();
    let after = read(&store.crash(0).unwrap(), 0, 16_384);
    assert_eq!((&after[..4096], &after[4096..]), (&[1; 4096][..], &[0; 12_288][..]));
}

#[test]
fn a_full_medium_refuses_what_takes_space() {
    let store = FaultStore::new(Bytes::mib(1));
    store.fail_after(2, Fault::NoSpace);
    store.write_at(0, &[1; 512]).unwrap();
    store.sync().unwrap();
    store.write_at(512, &[2; 512]).unwrap();
    let full =
        |result: weir_store::Result<()>| assert_eq!(result.unwrap_err().kind(), ErrorKind::NoSpace);
    full(store.write_at(1024, &[3; 512]));
    full(store.write_zeroes(0, 512, false));
    store.write_zeroes(0, 512, true).unwrap();
    store.sync().unwrap();
    assert_eq!(read(&store, 0, 2048), [[0; 512], [2; 512], [0; 512], [0; 512]].concat());
    store.heal();
    store.write_at(1024, &[3; 512]).unwrap();
}

#[test]
fn a_broken_medium_refuses_everything() {
    let store = FaultStore::new(Bytes::mib(1));
    store.fail_after(0, Fault::Io);
    let mut buf = [0; 512];
    let results = [
        store.read_at(0, &mut buf),
        store.try_read_at(0, &mut buf).map(|_| ()),
        store.write_at(0, &buf),
        store.write_zeroes(0, 512, true),
        store.trim(0, 512),
        store.sync(),
        store.resize(Bytes::ZERO),
        store.extents(0, 512, 1).map(|_| ()),
    ];
    for result in results {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Io);
    }
}

#[test]
fn a_durable_write_survives_a_crash_with_what_it_has_not_overwritten_at_risk() {
    let store = FaultStore::new(Bytes::mib(1));
    store.write_at(0, &[1; 1024]).unwrap();
    store.make_writes_durable(true);
    assert!(store.write_durably(512, &[2; 512]).unwrap());
    assert!(store.zero_durably(2048, 512, true).unwrap());
    assert_eq!(store.unsynced(), 1);
    for seed in 0..8 {
        let survived = store.crash(seed).unwrap();
        assert_eq!(read(&survived, 512, 512), [2; 512]);
    }
    store.write_at(4096, &[3; 512]).unwrap();
    store.write_zeroes(4096, 512, true).unwrap();
    store.make_writes_durable(false);
    assert!(!store.write_durably(4096, &[3; 512]).unwrap());
    assert!(!store.zero_durably(4096, 512, true).unwrap());
    assert_eq!(store.unsynced(), 5);
}

#[test]
fn a_range_without_space_refuses_writes_until_the_store_is_healed() {
    let store = FaultStore::new(Bytes::mib(1));
    store.fill_up(4096..8192);
    for (offset, is_full) in [(3584, false), (3585, true), (8191, true), (8192, false)] {
        let done = store.write_at(offset, &[1; 512]).map_err(|error| error.kind());
        assert_eq!(done, if is_full { Err(ErrorKind::NoSpace) } else { Ok(()) }, "{offset}");
    }
    store.trim(4096, 4096).unwrap();
    assert_eq!(store.allocated().unwrap(), Bytes::new(8192), "a page on each side");
    store.heal();
    store.write_at(4096, &[1; 512]).unwrap();
}
