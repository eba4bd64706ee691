//! A view is of one instant, whatever workers and caches have in flight.
//!
//! Random requests go to devices whose stores are written by workers, in parts and in any
//! order, with and without a ReadWrite cache. A model knows for each sector every value that
//! it was given, in order, and which of them were answered. A view may show the newest one
//! that was answered before the freeze, or a later one that came before it; and it shows that
//! for ever.

use super::rig::{Rig, blocking, host, iops, memory, volume};
use crate::host_loop::{FreezeOrder, FrozenDevice};
use crate::volume::View;
use crate::worker::Finished;
use proptest::prelude::*;
use std::sync::Arc;
use weir_core::{CacheMode, DeviceId, DeviceSpec, HostSpec};
use weir_proto::{Command, CommandFlags, Request};
use weir_store::{MemoryStore, Scratch, Store};
use weir_units::{Bytes, Span};

const SECTOR: usize = 512;
const SECTORS: usize = 64;
const DEVICES: usize = 4;

#[derive(Debug, Clone)]
enum Op {
    Write {
        device: usize,
        first: usize,
        count: usize,
        fua: bool,
    },
    Zero {
        device: usize,
        first: usize,
        count: usize,
    },
    Flush {
        device: usize,
    },
    Wait {
        millis: u64,
    },
    Run {
        which: usize,
    },
    Report {
        which: usize,
    },
    Freeze,
    /// A step in which dirty blocks of the last freeze are collected.
    Capture {
        most: usize,
    },
    Crash,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let range = || (0..DEVICES, 0..SECTORS, 1..=12_usize);
    let op = prop_oneof![
        6 => (range(), any::<bool>()).prop_map(|((device, first, count), fua)| {
            Op::Write { device, first, count: count.min(SECTORS - first), fua }
        }),
        1 => range().prop_map(|(device, first, count)| {
            Op::Zero { device, first, count: count.min(SECTORS - first) }
        }),
        1 => (0..DEVICES).prop_map(|device| Op::Flush { device }),
        2 => (0..800_u64).prop_map(|millis| Op::Wait { millis }),
        3 => (0..4_usize).prop_map(|which| Op::Run { which }),
        3 => (0..4_usize).prop_map(|which| Op::Report { which }),
        2 => Just(Op::Freeze),
        3 => (1..4_usize).prop_map(|most| Op::Capture { most }),
        1 => Just(Op::Crash),
    ];
    prop::collection::vec(op, 1..80)
}

/// A volume in files, one in memory, one with a ReadWrite cache, and a stripe.
fn rig() -> Rig {
    let size = Bytes::kib(32);
    let mut cached = volume(size);
    cached.cache = CacheMode::ReadWrite;
    cached.limits = iops(100);
    let mut spec: HostSpec =
        host(vec![volume(size), volume(size), cached, volume(size), volume(size)]);
    spec.devices = vec![
        DeviceSpec::Volume(0),
        DeviceSpec::Volume(1),
        DeviceSpec::Volume(2),
        DeviceSpec::Stripe { unit: Bytes::kib(4), columns: vec![3, 4] },
    ];
    let file = || blocking(&Arc::new(MemoryStore::new(size)));
    Rig::new(spec, vec![file(), memory(size), file(), file(), file()])
}

/// The values of a sector, oldest first, each with the request that gave it.
type History = Vec<(u8, Option<u64>)>;

struct Check {
    rig: Rig,
    finished: Vec<Vec<Finished>>,
    sectors: Vec<Vec<History>>,
    next: u8,
    /// The devices of a freeze whose dirty blocks are being collected.
    unfinished: Vec<Unfinished>,
    views: Vec<(View, Vec<u8>)>,
}

struct Unfinished {
    frozen: FrozenDevice,
    /// The columns that have all of their dirty blocks.
    complete: usize,
    /// For each sector, the values that it may have.
    may: Vec<Vec<u8>>,
}

impl Check {
    fn note(&mut self, device: usize, sectors: std::ops::Range<usize>, value: u8, cookie: u64) {
        for sector in sectors {
            self.sectors[device][sector].push((value, Some(cookie)));
        }
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Write { device, first, count, fua } => {
                self.next = self.next.checked_add(1).unwrap_or(1);
                let (value, offset) = (self.next, (first * SECTOR) as u64);
                let data = vec![value; count * SECTOR];
                let cookie = match fua {
                    true => self.rig.write_fua(device, offset, &data),
                    false => self.rig.write(device, offset, &data),
                };
                self.note(device, first..first + count, value, cookie);
                self.rig.turn();
            }
            Op::Zero { device, first, count } => {
                let length = u32::try_from(count * SECTOR).expect("small");
                let request =
                    Request::new(Command::WriteZeroes, 0, (first * SECTOR) as u64, length)
                        .with(CommandFlags::NONE);
                let cookie = self.rig.send(self.rig.me, device, request, &[]);
                self.note(device, first..first + count, 0, cookie);
                self.rig.turn();
            }
            Op::Flush { device } => {
                self.rig.flush(device);
                self.rig.turn();
            }
            Op::Wait { millis } => self.rig.wait(Span::from_millis(millis)),
            Op::Run { which } => self.finished.extend(self.rig.run_some(which)),
            Op::Report { which } => {
                // Those of a lane in order: the oldest of all is.
                if which < self.finished.len() {
                    let done = self.finished.remove(0);
                    self.rig.hand_back(done);
                }
            }
            Op::Freeze => self.freeze(),
            Op::Capture { most } => self.capture(most),
            Op::Crash => {
                self.rig.host.crash(self.rig.now);
                self.rig.reconnect();
                // The cache's contents may be lost: any earlier value may come back.
                for history in self.sectors.iter_mut().flatten() {
                    history.iter_mut().for_each(|(_, cookie)| *cookie = None);
                }
            }
        }
    }

    fn freeze(&mut self) {
        let order = |device| FreezeOrder {
            device: DeviceId(device),
            scratch: (0..if device == 3 { 2 } else { 1 }).map(|_| Scratch::memory()).collect(),
        };
        // A server has one freeze at a time.
        self.capture(usize::MAX);
        let devices = self.rig.host.freeze((0..DEVICES).map(order).collect());
        for (device, frozen) in devices.into_iter().enumerate() {
            let may = |history: &History| {
                let answered = |(_, cookie): &(u8, Option<u64>)| {
                    cookie.is_some_and(|cookie| self.rig.answer(cookie).is_some())
                };
                let newest = history.iter().rposition(answered).unwrap_or(0);
                history[newest..].iter().map(|(value, _)| *value).collect()
            };
            let may = self.sectors[device].iter().map(may).collect();
            self.unfinished.push(Unfinished { frozen, complete: 0, may });
        }
    }

    fn capture(&mut self, most: usize) {
        for mut own in std::mem::take(&mut self.unfinished) {
            let device = own.frozen.device;
            while let Some(column) = own.frozen.columns.get_mut(own.complete) {
                let (dirty, is_last) = self.rig.host.capture_some(device, own.complete, most);
                column.add(dirty);
                if !is_last {
                    break;
                }
                own.complete += 1;
            }
            if own.complete < own.frozen.columns.len() {
                self.unfinished.push(own);
                continue;
            }
            let view = own.frozen.into_view();
            let content = read(&view);
            for (sector, may) in own.may.iter().enumerate() {
                let found = &content[sector * SECTOR..(sector + 1) * SECTOR];
                assert!(found.iter().all(|byte| *byte == found[0]), "a torn sector");
                let place = format!("sector {sector} of {device:?}");
                assert!(may.contains(&found[0]), "{place} is {}, not one of {may:?}", found[0]);
            }
            self.views.push((view, content));
        }
    }
}

fn read(view: &View) -> Vec<u8> {
    let mut content = vec![0xee; SECTORS * SECTOR];
    view.read_at(0, &mut content).expect("a view");
    content
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_view_is_of_the_moment_of_its_freeze_for_ever(ops in ops()) {
        let fresh = || vec![vec![(0, None)]; SECTORS];
        let mut check = Check {
            rig: rig(),
            finished: Vec::new(),
            sectors: vec![fresh(); DEVICES],
            next: 0,
            unfinished: Vec::new(),
            views: Vec::new(),
        };
        for op in ops.iter().chain([&Op::Freeze]) {
            check.apply(op);
        }
        check.capture(usize::MAX);
        std::mem::take(&mut check.finished).into_iter().for_each(|done| check.rig.hand_back(done));
        check.rig.settle();
        for (view, content) in &check.views {
            prop_assert!(read(view) == *content, "a view moved");
            let extents = view.extents(0, content.len() as u64, 1000).expect("extents");
            let mut at = 0;
            for extent in extents {
                let len = usize::try_from(extent.len).expect("small");
                let is_zero = content[at..at + len].iter().all(|byte| *byte == 0);
                prop_assert!(is_zero || extent.kind == weir_store::ExtentKind::Data);
                at += len;
            }
            prop_assert_eq!(at, content.len());
            view.thaw();
        }
    }
}
