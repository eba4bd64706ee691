//! Regions open one by one or in groups, and are sealed one by one.

use super::super::log;
use super::*;
use crate::MemoryStore;
use crate::pieces::index;
use weir_units::Bytes;

const PACE: Pace = Pace { every: 2, quiet: 8 };

fn states() -> States<MemoryStore> {
    let list = Log::init(MemoryStore::new(Bytes::new(log::LEN)), Regions::NONE).unwrap();
    States::load(list, PACE).unwrap()
}

fn write(states: &States<MemoryStore>, stretch: u64) {
    drop(states.enter(stretch * STRETCH, 1).unwrap());
}

/// Syncs, and seals what is due. Returns the regions that are open then.
fn sync(states: &States<MemoryStore>) -> Vec<u16> {
    if states.begin_sync() {
        states.seal(&states.due(false)).unwrap();
    }
    open(states)
}

fn open(states: &States<MemoryStore>) -> Vec<u16> {
    locked(&states.table).open().iter().collect()
}

#[test]
fn writes_all_over_a_volume_open_groups_and_cost_few_syncs_of_the_list() {
    let states = states();
    let before = states.generation();
    for number in 0..REGIONS {
        write(&states, number * 1021 % REGIONS);
    }
    assert_eq!(open(&states).len() as u64, REGIONS);
    // Eight doublings to groups of 256, and 16 of these.
    let lists = states.generation() - before;
    assert!(lists <= 2 + 8 + 16, "{lists} lists");
}

#[test]
fn a_few_regions_and_those_that_open_now_and_then_open_alone() {
    let states = states();
    write(&states, 100);
    write(&states, 3000);
    assert_eq!(open(&states), [100, 3000]);
    for stretch in (200..2000).step_by(100) {
        (0..SOON).for_each(|_| drop(sync(&states)));
        write(&states, stretch);
        let most = 2 + index(PACE.quiet / SOON);
        assert!(open(&states).len() <= most, "{stretch}: {:?}", open(&states));
    }
}

#[test]
fn the_neighbours_of_a_group_are_sealed_when_nobody_writes_to_them() {
    let states = states();
    for stretch in [0, 900, 1800, 2700] {
        write(&states, stretch);
    }
    assert_eq!(open(&states), [0, 900, 1800, 1801, 2700, 2701, 2702, 2703]);
    let mut left = Vec::new();
    for _ in 0..2 * PACE.quiet {
        write(&states, 2701);
        left = sync(&states);
    }
    assert_eq!(left, [2701]);
}

#[test]
fn a_write_over_all_regions_opens_each_once() {
    let states = states();
    drop(states.enter(STRETCH - 1, 3 * REGIONS * STRETCH).unwrap());
    assert_eq!(open(&states).len() as u64, REGIONS);
    assert!(locked(&states.table).regions.values().all(|region| region.active == 0));
}

#[test]
fn a_region_that_is_written_after_it_was_found_due_stays_open() {
    let states = states();
    write(&states, 7);
    let due = states.due(true);
    let writing = states.enter(7 * STRETCH, 1).unwrap();
    states.seal(&due).unwrap();
    assert_eq!(open(&states), [7], "a write is under way");
    drop(writing);
    states.seal(&due).unwrap();
    assert_eq!(open(&states), [7], "its bytes and checksums may not be durable");
    states.seal(&states.due(true)).unwrap();
    assert!(open(&states).is_empty());
}
