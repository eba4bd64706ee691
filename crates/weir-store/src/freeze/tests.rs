//! Records of changes: the end of the process or a power loss between any two steps leaves a right
//! record, or none, and then a full backup is needed.

use super::record::Record;
use super::{BLOCK, Freezable, Frozen, Home, Scratch};
use crate::store::Store;
use crate::sync::locked;
use crate::{ErrorKind, FaultStore, Result, StoreError};
use proptest::prelude::*;
use std::io;
use std::sync::{Arc, Mutex};
use weir_units::Bytes;

mod marks;
mod views;

const SIZE: u64 = 8 * BLOCK;

/// A record on a medium: what a process finds, and what is there after a power loss.
#[derive(Debug, Clone, Default)]
struct Medium(Arc<Mutex<File>>);

#[derive(Debug, Clone, Default)]
struct File {
    now: Option<Vec<u8>>,
    durable: Option<Vec<u8>>,
    /// Steps that are still done before the machine stops.
    steps: Option<u32>,
    /// True if the step in which it stops is done in part.
    half: bool,
}

impl File {
    /// Takes a step, of which there are several in each operation.
    fn step(&mut self, act: impl FnOnce(&mut Self)) -> Result<()> {
        match &mut self.steps {
            Some(0) => {
                if std::mem::take(&mut self.half) {
                    act(self);
                }
                let source = io::Error::other("the machine stopped");
                return Err(StoreError::Io { context: "injected".to_owned(), source });
            }
            Some(steps) => *steps -= 1,
            None => {}
        }
        act(self);
        Ok(())
    }
}

impl Home for Medium {
    fn load(&self, _: u64) -> Result<Option<Vec<u8>>> {
        Ok(locked(&self.0).now.clone())
    }

    fn save(&self, record: &[u8]) -> Result<()> {
        let mut file = locked(&self.0);
        // The temporary file, its name, and the name made durable.
        file.step(|_| {})?;
        file.step(|file| file.now = Some(record.to_vec()))?;
        file.step(|file| file.durable.clone_from(&file.now))
    }

    fn forget(&self) -> Result<()> {
        let mut file = locked(&self.0);
        file.step(|file| file.now = None)?;
        file.step(|file| file.durable = None)
    }
}

#[derive(Debug, Clone)]
enum Op {
    Write {
        block: u64,
        fill: u8,
    },
    Trim {
        block: u64,
    },
    /// A full backup begins.
    Freeze,
    /// It is complete.
    Complete,
    Close,
    /// The machine stops after this number of steps of the medium.
    Stop {
        steps: u32,
        half: bool,
        power_loss: bool,
        seed: u64,
    },
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let block = 0..SIZE / BLOCK;
    let op = prop_oneof![
        4 => (block.clone(), 1..=255_u8).prop_map(|(block, fill)| Op::Write { block, fill }),
        1 => block.prop_map(|block| Op::Trim { block }),
        2 => Just(Op::Freeze),
        2 => Just(Op::Complete),
        2 => Just(Op::Close),
        2 => (0..4_u32, any::<bool>(), any::<bool>(), any::<u64>()).prop_map(
            |(steps, half, power_loss, seed)| Op::Stop { steps, half, power_loss, seed }
        ),
    ];
    prop::collection::vec(op, 1..40)
}

fn bytes(store: &dyn Store) -> Vec<u8> {
    let mut found = vec![0; usize::try_from(SIZE).unwrap()];
    store.read_at(0, &mut found).unwrap();
    found
}

/// A differential restores the volume: the blocks that differ from the base are among those that
/// are told, or nothing is known and a full backup is needed.
fn check_known(freezable: &Freezable, store: &FaultStore, fulls: &[(String, Vec<u8>)]) {
    let frozen = freezable.freeze(Scratch::memory());
    if let Some(base) = &frozen.tracking().base {
        let (_, base) = fulls.iter().rfind(|(id, _)| id == base).unwrap();
        let now = bytes(store);
        let changed = frozen.changed(0, usize::MAX).ranges;
        for block in 0..SIZE / BLOCK {
            let range = usize::try_from(block * BLOCK).unwrap()
                ..usize::try_from((block + 1) * BLOCK).unwrap();
            let told =
                changed.iter().any(|(from, len)| (*from..from + len).contains(&(block * BLOCK)));
            assert!(told || now[range.clone()] == base[range], "block {block} is not told");
        }
    }
    freezable.thaw(&frozen);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_record_is_right_or_not_there_whenever_the_machine_stops(ops in ops()) {
        let medium = Medium::default();
        let mut store = Arc::new(FaultStore::new(Bytes::new(SIZE)));
        let mut freezable = Freezable::recorded(store.clone(), Box::new(medium.clone()));
        let mut fulls: Vec<(String, Vec<u8>)> = Vec::new();
        let mut open: Option<(Arc<Frozen>, Vec<u8>)> = None;
        for op in ops {
            let done = match op {
                Op::Write { block, fill } => freezable.write_at(block * BLOCK + 5, &[fill; 100]),
                Op::Trim { block } => freezable.trim(block * BLOCK, BLOCK),
                Op::Freeze => {
                    open.iter().for_each(|(frozen, _)| freezable.thaw(frozen));
                    open = Some((freezable.freeze(Scratch::memory()), bytes(&*store)));
                    Ok(())
                }
                Op::Complete => match open.take() {
                    None => Ok(()),
                    Some((frozen, image)) => {
                        // The backup has what the view shows, which need not be durable.
                        prop_assert!(bytes(&*frozen) == image, "the view moved");
                        let id = format!("full {}", fulls.len());
                        fulls.push((id.clone(), image));
                        let done = freezable.complete(&frozen, &id);
                        freezable.thaw(&frozen);
                        done.map(|_| ())
                    }
                },
                Op::Close => freezable.record(),
                Op::Stop { steps, half, power_loss, seed } => {
                    let mut file = locked(&medium.0);
                    match file.steps {
                        None => (file.steps, file.half) = (Some(steps), half),
                        Some(_) => {
                            // It has stopped, or is stopped here.
                            if power_loss {
                                file.now = file.durable.clone();
                                store = Arc::new(store.crash(seed).unwrap());
                            } else {
                                store = Arc::new(store.kill().unwrap());
                            }
                            (file.steps, file.half) = (None, false);
                            drop(file);
                            open = None;
                            freezable = Freezable::opened(store.clone(), Box::new(medium.clone()));
                        }
                    }
                    Ok(())
                }
            };
            if let Err(error) = done {
                prop_assert_eq!(error.kind(), ErrorKind::Io);
            }
            check_known(&freezable, &store, &fulls);
        }
        // An orderly end, and what is found after it.
        locked(&medium.0).steps = None;
        let known = freezable.tracking();
        freezable.record().unwrap();
        let again = Freezable::opened(store.clone(), Box::new(medium));
        prop_assert_eq!(again.tracking(), known);
        check_known(&again, &store, &fulls);
    }
}

/// Found by the test above: the process was killed between removing the record and making
/// that durable, and the next one, which found none, did not make it so either.
#[test]
fn a_removal_that_was_cut_off_is_made_durable_before_the_next_change() {
    let medium = Medium::default();
    let store = Arc::new(FaultStore::new(Bytes::new(SIZE)));
    let freezable = Freezable::recorded(store.clone(), Box::new(medium.clone()));
    freezable.record().unwrap();
    locked(&medium.0).steps = Some(1);
    freezable.write_at(0, &[1]).unwrap_err();
    locked(&medium.0).steps = None;
    let opened = Freezable::opened(store, Box::new(medium.clone()));
    assert!(locked(&medium.0).durable.is_some() && !opened.tracking().known);
    opened.write_at(0, &[1]).unwrap();
    assert_eq!(locked(&medium.0).durable, None);
}

#[test]
fn a_record_that_is_damaged_or_of_another_size_is_none() {
    let medium = Medium::default();
    let store = Arc::new(FaultStore::new(Bytes::new(SIZE)));
    let freezable = Freezable::recorded(store, Box::new(medium.clone()));
    let frozen = freezable.freeze(Scratch::memory());
    freezable.write_at(3 * BLOCK, &[1]).unwrap();
    assert!(freezable.complete(&frozen, "base").unwrap());
    freezable.record().unwrap();
    let good = locked(&medium.0).now.clone().unwrap();
    let check = |content: &[u8], size: u64, expect: bool| {
        let base = Record::decode(content, size).map(|record| record.base);
        assert_eq!(base, expect.then(|| Some("base".to_owned())));
        *locked(&medium.0) = File { now: Some(content.to_vec()), ..File::default() };
        let store = Arc::new(FaultStore::new(Bytes::new(size)));
        let opened = Freezable::opened(store, Box::new(medium.clone()));
        assert_eq!(opened.tracking().known, expect);
        // The old record is gone before something changes.
        opened.write_at(0, &[1]).unwrap();
        assert_eq!(locked(&medium.0).now, None);
    };
    check(&good, SIZE, true);
    check(&good, SIZE - 1, false);
    for at in (0..good.len()).step_by(37).chain([0, good.len() - 1]) {
        let mut damaged = good.clone();
        damaged[at] ^= 0x10;
        check(&damaged, SIZE, false);
        check(&good[..at], SIZE, false);
    }
    // Its sum is right, and its content is not.
    for content in [&b"weir changes 2\n"[..], b"weir changes 1\n\0", b""] {
        let sum = crc32fast::hash(content).to_le_bytes();
        check(&[content, &sum].concat(), SIZE, false);
    }
}
