//! Is everything there that was promised to be?
//!
//! Random requests go to a host over stores that lose power: of what was not
//! synced, any sectors survive and any do not. A model knows for each sector every
//! value that it was given, in order, and which of them a promise covers: a FUA
//! write that was acknowledged, or a write that was acknowledged before a flush was
//! sent that was. After the loss a sector may hold the newest promised value or any
//! later one; nothing older and nothing else.
//!
//! Workers do their jobs in any order, in parts, and report late: what the stores
//! have, and what the host knows that they have, are different things.

use super::rig::{Cold, Rig, blocking, host, iops, volume};
use crate::worker::Finished;
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use weir_core::{CacheMode, DeviceSpec, HostSpec, VolumeId, VolumeSpec};
use weir_proto::{Command, CommandFlags, Errno, Request};
use weir_store::{Fault, FaultStore};
use weir_units::{Bytes, Span};

const SECTOR: usize = 512;
/// Sectors of each device.
const SECTORS: usize = 48;
const DEVICES: usize = 3;

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
        trim: bool,
        fua: bool,
    },
    Read {
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
    /// A worker does one of the jobs, or the beginning of it.
    Run {
        which: usize,
    },
    /// A worker reports: the oldest of a lane first.
    Report {
        which: usize,
    },
    /// The store takes no more, or nothing works any more.
    Fail {
        volume: usize,
        fault: Fault,
    },
    Heal {
        volume: usize,
    },
    /// Reads have to wait for the medium from here on, or need not.
    Cool {
        volume: usize,
        cold: bool,
    },
    SetCache {
        volume: usize,
        mode: CacheMode,
    },
    /// The host goes down and comes back: its cache is lost, the power stays.
    HostCrash,
}

fn op() -> impl Strategy<Value = Op> {
    let range = (0..DEVICES, 0..SECTORS, 1..17_usize)
        .prop_map(|(device, first, count)| (device, first, count.min(SECTORS - first)));
    let mode =
        prop_oneof![Just(CacheMode::None), Just(CacheMode::ReadOnly), Just(CacheMode::ReadWrite)];
    prop_oneof![
        20 => (range.clone(), prop::bool::weighted(0.2)).prop_map(|((device, first, count), fua)| {
            Op::Write { device, first, count, fua }
        }),
        4 => (range.clone(), any::<bool>(), prop::bool::weighted(0.2))
            .prop_map(|((device, first, count), trim, fua)| {
                Op::Zero { device, first, count, trim, fua }
            }),
        8 => range.prop_map(|(device, first, count)| Op::Read { device, first, count }),
        8 => (0..DEVICES).prop_map(|device| Op::Flush { device }),
        6 => (0_u64..1500).prop_map(|millis| Op::Wait { millis }),
        12 => (0..6_usize).prop_map(|which| Op::Run { which }),
        12 => (0..6_usize).prop_map(|which| Op::Report { which }),
        1 => (0..VOLUMES, prop_oneof![Just(Fault::NoSpace), Just(Fault::Io)])
            .prop_map(|(volume, fault)| Op::Fail { volume, fault }),
        2 => (0..VOLUMES, any::<bool>()).prop_map(|(volume, cold)| Op::Cool { volume, cold }),
        2 => (0..VOLUMES).prop_map(|volume| Op::Heal { volume }),
        1 => (0..VOLUMES, mode).prop_map(|(volume, mode)| Op::SetCache { volume, mode }),
        1 => Just(Op::HostCrash),
    ]
}

const VOLUMES: usize = 4;

/// A plain volume, a ReadWrite one, and a stripe of one of each.
fn spec() -> HostSpec {
    let sectors = |n: usize| Bytes::new((n * SECTOR) as u64);
    let plain = VolumeSpec { limits: iops(200), ..volume(sectors(SECTORS)) };
    let cached = VolumeSpec { cache: CacheMode::ReadWrite, ..plain.clone() };
    let half = |spec: &VolumeSpec| VolumeSpec { size: sectors(SECTORS / 2), ..spec.clone() };
    let mut spec = host(vec![plain.clone(), cached.clone(), half(&plain), half(&cached)]);
    spec.cache.as_mut().expect("a cache").dirty_limit = Bytes::kib(8);
    spec.devices.truncate(2);
    spec.devices.push(DeviceSpec::Stripe { unit: Bytes::kib(2), columns: vec![2, 3] });
    spec
}

/// Every value that a sector was given, oldest first. The stamp 0 is zeros.
#[derive(Debug, Clone)]
struct Sector {
    given: Vec<u64>,
    /// Index of the newest value that a read must show, at least.
    acknowledged: usize,
    /// Index of the newest value that must survive, at least.
    promised: usize,
}

/// A request that is not answered yet, with what its answer will promise.
#[derive(Debug)]
enum Sent {
    Write { device: usize, first: usize, at: Vec<usize>, fua: bool },
    Read { device: usize, first: usize, least: Vec<usize> },
    Flush { device: usize, covers: Vec<usize> },
}

struct Model {
    rig: Rig,
    stores: Vec<Arc<Cold<FaultStore>>>,
    /// Jobs that workers have done and not reported.
    ran: Vec<Finished>,
    sectors: Vec<Vec<Sector>>,
    sent: Vec<(u64, Sent)>,
    stamp: u64,
}

type Checked = Result<(), TestCaseError>;

impl Model {
    /// Starts with stores that take `depth` operations and some syncs at once, and that make single
    /// writes durable if `durable`.
    fn new(depth: usize, durable: bool) -> Self {
        let spec = spec();
        let store =
            |v: &VolumeSpec| Arc::new(Cold::deep(FaultStore::new(v.size), depth).with_syncs(3));
        let stores: Vec<_> = spec.volumes.iter().map(store).collect();
        stores.iter().for_each(|store| store.store.make_writes_durable(durable));
        let rig = Rig::new(spec, stores.iter().map(blocking).collect());
        let sector = Sector { given: vec![0], acknowledged: 0, promised: 0 };
        let sectors = vec![vec![sector; SECTORS]; DEVICES];
        Self { rig, stores, ran: Vec::new(), sectors, sent: Vec::new(), stamp: 0 }
    }

    /// Gives sectors a new value; returns its index in each.
    fn give(&mut self, device: usize, first: usize, stamps: &[u64]) -> Vec<usize> {
        let sectors = self.sectors[device][first..].iter_mut();
        let give = |(sector, stamp): (&mut Sector, &u64)| {
            sector.given.push(*stamp);
            sector.given.len() - 1
        };
        sectors.zip(stamps).map(give).collect()
    }

    fn apply(&mut self, op: &Op) -> Checked {
        match *op {
            Op::Write { device, first, count, fua } => {
                let stamps: Vec<u64> = (1..=count as u64).map(|n| self.stamp + n).collect();
                self.stamp += count as u64;
                let data: Vec<u8> =
                    stamps.iter().flat_map(|s| s.to_le_bytes().repeat(64)).collect();
                let (at, offset) = (self.give(device, first, &stamps), (first * SECTOR) as u64);
                let cookie = match fua {
                    true => self.rig.write_fua(device, offset, &data),
                    false => self.rig.write(device, offset, &data),
                };
                self.sent.push((cookie, Sent::Write { device, first, at, fua }));
            }
            Op::Zero { device, first, count, trim, fua } => {
                let at = self.give(device, first, &vec![0; count]);
                let command = if trim { Command::Trim } else { Command::WriteZeroes };
                let length = u32::try_from(count * SECTOR).expect("short");
                let request = Request::new(command, 0, (first * SECTOR) as u64, length);
                let flags = if fua { CommandFlags::FUA } else { CommandFlags::NONE };
                let cookie = self.rig.send(self.rig.me, device, request.with(flags), &[]);
                self.sent.push((cookie, Sent::Write { device, first, at, fua }));
            }
            Op::Read { device, first, count } => {
                let sectors = &self.sectors[device][first..first + count];
                let least = sectors.iter().map(|s| s.acknowledged).collect();
                let length = u32::try_from(count * SECTOR).expect("short");
                let cookie = self.rig.read(device, (first * SECTOR) as u64, length);
                self.sent.push((cookie, Sent::Read { device, first, least }));
            }
            Op::Flush { device } => {
                let covers = self.sectors[device].iter().map(|s| s.acknowledged).collect();
                let cookie = self.rig.flush(device);
                self.sent.push((cookie, Sent::Flush { device, covers }));
            }
            Op::Wait { millis } => self.rig.wait(Span::from_millis(millis)),
            Op::Run { which } => self.ran.extend(self.rig.run_some(which).into_iter().flatten()),
            Op::Report { which } => self.report(which),
            Op::Fail { volume, fault } => self.stores[volume].store.fail_after(0, fault),
            Op::Heal { volume } => self.stores[volume].store.heal(),
            Op::Cool { volume, cold } => self.stores[volume].cold.store(cold, Ordering::Release),
            Op::SetCache { volume, mode } => {
                self.rig.host.set_cache(self.rig.now, VolumeId(volume), mode);
            }
            Op::HostCrash => return self.crash_host(),
        }
        self.rig.turn();
        self.note_answers()
    }

    /// Hands back one of the reports; those of a lane in their order.
    fn report(&mut self, which: usize) {
        let lane = |done: &Finished| match done {
            Finished::Lane { volume, .. } => Some(*volume),
            _ => None,
        };
        let Some(done) = self.ran.get(which) else { return };
        let first = match lane(done) {
            Some(volume) => self.ran.iter().position(|done| lane(done) == Some(volume)),
            None => Some(which),
        };
        let done = self.ran.remove(first.expect("it is one of them"));
        self.rig.hand_back(vec![done]);
    }

    /// Takes note of what was acknowledged since.
    fn note_answers(&mut self) -> Checked {
        for (cookie, sent) in std::mem::take(&mut self.sent) {
            let Some(answer) = self.rig.answer(cookie) else {
                self.sent.push((cookie, sent));
                continue;
            };
            match (&sent, answer) {
                (_, Err(errno)) => {
                    prop_assert!([Errno::NoSpc, Errno::Io].contains(errno), "{:?}", sent);
                }
                (Sent::Write { device, first, at, fua }, Ok(_)) => {
                    for (sector, at) in self.sectors[*device][*first..].iter_mut().zip(at) {
                        sector.acknowledged = sector.acknowledged.max(*at);
                        let promised = if *fua { *at } else { 0 };
                        sector.promised = sector.promised.max(promised);
                    }
                }
                (Sent::Flush { device, covers }, Ok(_)) => {
                    for (sector, at) in self.sectors[*device].iter_mut().zip(covers) {
                        sector.promised = sector.promised.max(*at);
                    }
                }
                (Sent::Read { device, first, least }, Ok(data)) => {
                    for (n, least) in least.iter().enumerate() {
                        let found = &data[n * SECTOR..][..SECTOR];
                        check(&self.sectors[*device][first + n], *least, found)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn crash_host(&mut self) -> Checked {
        self.rig.host.crash(self.rig.now);
        // A new client; what the old one waited for never comes.
        self.rig.reconnect();
        self.sent.clear();
        self.rig.hand_back(std::mem::take(&mut self.ran));
        self.rig.work();
        self.stores.iter().for_each(|store| store.store.heal());
        for device in 0..DEVICES {
            let length = u32::try_from(SECTORS * SECTOR).expect("short");
            let data = self.rig.contents(device, 0, length);
            for (sector, found) in self.sectors[device].iter_mut().zip(data.chunks(SECTOR)) {
                check(sector, sector.promised, found)?;
                // The contents that were found are the expected ones from now on.
                sector.given.push(stamp_of(found));
                sector.acknowledged = sector.given.len() - 1;
            }
        }
        Ok(())
    }

    /// Power is lost; another host comes up on what the media kept.
    fn lose_power(self, seed: u64) -> Checked {
        let survived = self
            .stores
            .iter()
            .zip(seed..)
            .map(|(store, seed)| Arc::new(store.store.crash(seed).expect("a store in memory")));
        let stores: Vec<_> = survived.collect();
        let mut rig = Rig::new(spec(), stores.iter().map(blocking).collect());
        for (device, sectors) in self.sectors.iter().enumerate() {
            let length = u32::try_from(SECTORS * SECTOR).expect("short");
            let data = rig.contents(device, 0, length);
            for (sector, found) in sectors.iter().zip(data.chunks(SECTOR)) {
                check(sector, sector.promised, found)?;
            }
        }
        Ok(())
    }
}

fn stamp_of(found: &[u8]) -> u64 {
    u64::from_le_bytes(found[..8].try_into().expect("eight bytes"))
}

/// Returns the number of losses of power: `WEIR_POWER_LOSSES`, or 400.
fn losses() -> u32 {
    std::env::var("WEIR_POWER_LOSSES").map_or(400, |n| n.parse().expect("a number"))
}

/// A sector holds, whole, one of its values from `least` on.
fn check(sector: &Sector, least: usize, found: &[u8]) -> Checked {
    let stamp = stamp_of(found);
    prop_assert!(found == stamp.to_le_bytes().repeat(64), "a torn sector: {:?}", found);
    let allowed = &sector.given[least..];
    prop_assert!(allowed.contains(&stamp), "{} is none of {:?}", stamp, allowed);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(losses()))]

    #[test]
    fn durable_writes_survive_a_loss_of_power(
        ops in proptest::collection::vec(op(), 1..80),
        seed in any::<u32>(),
        depth in prop_oneof![Just(1_usize), Just(3), Just(32)],
        durable in any::<bool>(),
    ) {
        let mut model = Model::new(depth, durable);
        for op in &ops {
            model.apply(op)?;
        }
        model.lose_power(u64::from(seed))?;
    }
}

/// The model is no blank cheque: it finds a host that forgets.
#[test]
fn a_lost_promise_is_found() {
    let mut model = Model::new(1, false);
    let write = Op::Write { device: 0, first: 3, count: 1, fua: true };
    let (run, report) = (Op::Run { which: 0 }, Op::Report { which: 0 });
    let done = [write, Op::Wait { millis: 100 }, run.clone(), report.clone(), run, report];
    done.iter().for_each(|op| model.apply(op).expect("a sound host"));
    assert_eq!(model.sectors[0][3].promised, 1);
    let empty = FaultStore::new(Bytes::new((SECTORS * SECTOR) as u64));
    model.stores[0] = Arc::new(Cold::new(empty));
    let lost = model.lose_power(1).expect_err("the write is gone");
    assert!(lost.to_string().contains("0 is none of [1]"), "{lost}");
}
