//! Requests beside each other, and beside syncs and computed checksums.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// A medium whose requests take a while, so that others come between two of them.
#[derive(Debug)]
struct Slow(MemoryStore);

impl Slow {
    fn after<T>(done: T) -> T {
        thread::park_timeout(Duration::from_micros(10));
        done
    }
}

impl Store for Slow {
    fn size(&self) -> Bytes {
        self.0.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        Self::after(self.0.read_at(offset, buf))
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        Self::after(self.0.write_at(offset, data))
    }

    fn write_zeroes(&self, offset: u64, len: u64, may_trim: bool) -> Result<()> {
        Self::after(self.0.write_zeroes(offset, len, may_trim))
    }

    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        Self::after(self.0.trim(offset, len))
    }

    fn sync(&self) -> Result<()> {
        Self::after(self.0.sync())
    }

    fn resize(&self, new: Bytes) -> Result<()> {
        self.0.resize(new)
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>> {
        self.0.extents(offset, len, max)
    }

    fn allocated(&self) -> Result<Bytes> {
        self.0.allocated()
    }
}

/// Sets its flag at the end, also at that of a panic, so that the other threads end too.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn write_often(store: &impl Store, fill: u8) {
    for round in 0..600_u64 {
        // Over more blocks than the cache has checksums of, and two chunks now and then.
        let at = round % 38 * BLOCK;
        store.write_at(at + round % 5 * 100, &[fill; 8192]).unwrap();
        store.write_at(round % 5 * 1000, &[fill; 8192]).unwrap();
        if round % 3 == 0 {
            store.trim(at / 2 + 5000, 80_000).unwrap();
        }
    }
}

/// Reads bytes that one of the writers left.
fn read_bytes(store: &impl Store, at: u64) {
    let mut found = [9; 9000];
    store.read_at(at, &mut found).unwrap();
    assert!(found.iter().all(|byte| *byte <= 2), "{found:?}");
    found.fill(9);
    if store.try_read_at(at, &mut found).unwrap() {
        assert!(found.iter().all(|byte| *byte <= 2), "{found:?}");
    }
}

#[test]
fn requests_beside_each_other_are_never_taken_for_damage() {
    for computes in [false, true] {
        let media = Media::new(SIZE, |size| Slow(MemoryStore::new(size)));
        let store = &media.open().unwrap();
        let has_ended = &AtomicBool::new(false);
        let until_the_end = |act: &dyn Fn()| {
            let _end = End(has_ended);
            while !has_ended.load(Ordering::Acquire) {
                act();
            }
        };
        thread::scope(|scope| {
            for fill in [1, 2] {
                scope.spawn(move || {
                    let _end = End(has_ended);
                    write_often(store, fill);
                });
            }
            for _ in 0..2 {
                scope.spawn(|| until_the_end(&|| store.sync().unwrap()));
            }
            scope.spawn(|| {
                until_the_end(&|| (0..37).for_each(|at| read_bytes(store, at * BLOCK + 500)));
            });
            if computes {
                scope.spawn(|| {
                    until_the_end(&|| {
                        store.states.set_open_unknown();
                        store.rebuild(u64::MAX).unwrap();
                    });
                });
            }
        });
        assert_eq!(store.damaged_reads(), 0);
        store.rebuild(u64::MAX).unwrap();
        let mut damaged = Vec::new();
        let scrub = store.scrub(|range| damaged.push(range)).unwrap();
        assert_eq!((damaged, scrub.unknown), (Vec::new(), 0));
    }
}
