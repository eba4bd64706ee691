//! Several clients that write and sync at the same time.

use super::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use weir_random::Rng;

const CLIENTS: usize = 3;
/// The pages of each client, which are neighbours of those of the others.
const OWN: usize = 4;
const ROUNDS: u8 = 10;

/// A [`Machine`] whose media take their time, during which others get their turn.
#[derive(Debug, Clone)]
struct Slow {
    machine: Machine,
    pauses: Arc<AtomicU64>,
}

impl Slow {
    fn pause(&self) {
        let number = self.pauses.fetch_add(1, Ordering::Relaxed);
        for _ in 0..Rng::from_state(number).below(12) {
            thread::yield_now();
        }
    }

    fn slowed(&self, number: u64, parts: Parts) -> Parts {
        let bytes = Arc::clone(&locked(&self.machine.0).layers[&number].bytes);
        let bytes = Arc::new(SlowBytes { home: self.clone(), own: parts.bytes, bytes });
        let medium = parts.medium.map(|own| {
            let slow: Box<dyn Medium> = Box::new(SlowFiles { home: self.clone(), own });
            slow
        });
        Parts { bytes, medium }
    }
}

impl Home for Slow {
    fn check_size(&self, size: Bytes) -> Result<()> {
        self.machine.check_size(size)
    }

    fn make(&self, number: u64, size: Bytes) -> Result<Parts> {
        Ok(self.slowed(number, self.machine.make(number, size)?))
    }

    fn save(&self, list: &LayerList) -> Result<()> {
        self.machine.save(list)
    }

    fn synced(&self, number: u64) -> Result<()> {
        self.machine.synced(number)
    }

    fn remove(&self, number: u64) -> Result<()> {
        self.machine.remove(number)
    }
}

/// Bytes whose sync makes durable what was written before it began, and nothing else.
#[derive(Debug)]
struct SlowBytes {
    home: Slow,
    own: Arc<dyn Store>,
    bytes: Arc<FaultStore>,
}

impl Store for SlowBytes {
    fn size(&self) -> Bytes {
        self.own.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.own.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.own.write_at(offset, data)
    }

    fn write_zeroes(&self, offset: u64, len: u64, may_trim: bool) -> Result<()> {
        self.own.write_zeroes(offset, len, may_trim)
    }

    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        self.own.trim(offset, len)
    }

    fn sync(&self) -> Result<()> {
        locked(&self.home.machine.0).step()?;
        let begun = self.bytes.begin_sync()?;
        self.home.pause();
        locked(&self.home.machine.0).step()?;
        self.bytes.end_sync(begun)
    }

    fn resize(&self, new: Bytes) -> Result<()> {
        self.own.resize(new)
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>> {
        self.own.extents(offset, len, max)
    }

    fn allocated(&self) -> Result<Bytes> {
        self.own.allocated()
    }
}

#[derive(Debug)]
struct SlowFiles {
    home: Slow,
    own: Box<dyn Medium>,
}

impl Medium for SlowFiles {
    fn path(&self, part: Part) -> PathBuf {
        self.own.path(part)
    }

    fn read(&self, part: Part) -> Result<Vec<u8>> {
        self.own.read(part)
    }

    fn replace(&mut self, part: Part, content: &[u8]) -> Result<()> {
        self.home.pause();
        self.own.replace(part, content)
    }

    fn append(&mut self, at: u64, frame: &[u8]) -> Result<()> {
        self.home.pause();
        self.own.append(at, frame)
    }

    fn settle(&mut self) -> Result<()> {
        self.own.settle()
    }

    fn rest(&mut self) {
        self.own.rest();
    }
}

/// The states of a page: the byte that fills it, or 0 if it was cleared.
#[derive(Debug, Clone)]
struct Page {
    offset: u64,
    states: Vec<u8>,
    /// The last state that a sync promised.
    promised: usize,
}

/// Changes pages of its own and syncs, and notes which states it was promised.
fn run_client(store: &PagedStore, pages: &mut [Page], seed: u64) {
    let mut random = Rng::from_state(seed);
    for round in 2..2 + ROUNDS {
        let mut changed = Vec::new();
        for _ in 0..=random.below(2) {
            let at = index(random.below(pages.len() as u64));
            let page = &mut pages[at];
            let clears = random.below(3) == 0;
            page.states.push(if clears { 0 } else { round });
            let done = match clears {
                true => store.trim(page.offset, PAGE),
                false => store.write_at(page.offset, &[round; 512]),
            };
            if done.is_err() {
                return;
            }
            changed.push(at);
        }
        if store.sync().is_ok() {
            for at in changed {
                pages[at].promised = pages[at].states.len() - 1;
            }
        }
    }
}

/// Lets clients run until a failure and beyond. After a loss of power each page has to be what a sync
/// promised last, or what came later. Returns whether some pages were what was promised, and later.
fn check(steps: u64, failure: Failure, seed: u64) -> (bool, bool) {
    let machine = Machine::new();
    locked(&machine.0).coin = seed | 1;
    let slow = Slow { machine: machine.clone(), pauses: Arc::new(AtomicU64::new(seed << 20)) };
    let store = PagedStore::create(Arc::new(slow), Bytes::new(START)).unwrap();
    // Below, so that a page without bytes does not look like one from before.
    store.write_at(BASE, &[1; CLIENTS * OWN * 512]).unwrap();
    store.snapshot().unwrap();
    let mut pages: Vec<Vec<Page>> = (0..CLIENTS)
        .map(|client| {
            let own = (0..OWN).map(|page| (page * CLIENTS + client) as u64);
            let new = |page| Page { offset: BASE + page * PAGE, states: vec![1], promised: 0 };
            own.map(new).collect()
        })
        .collect();
    machine.fail_after(steps, failure);
    thread::scope(|scope| {
        for (client, pages) in (0..).zip(&mut pages) {
            let store = &store;
            scope.spawn(move || run_client(store, pages, seed * 64 + client));
        }
    });
    let (mut was_promised, mut was_later) = (false, false);
    for crash in 0..3 {
        let after = machine.after(After::PowerLoss, seed * 8 + crash).open();
        for Page { offset, states, promised } in pages.iter().flatten() {
            let mut found = [0xee; 512];
            after.read_at(*offset, &mut found).unwrap();
            let (byte, allowed) = (found[0], &states[*promised..]);
            let page = (offset - BASE) / PAGE;
            assert!(
                found == [byte; 512] && allowed.contains(&byte),
                "steps {steps}, seed {seed}: page {page} is {byte}, not one of {allowed:?}"
            );
            let is_there = !after.pages(None, *offset, PAGE, 1).unwrap().is_empty();
            assert!(is_there || allowed.contains(&0), "seed {seed}: page {page} is gone");
            was_promised |= *promised > 0 && byte == allowed[0];
            was_later |= byte != allowed[0];
        }
    }
    (was_promised, was_later)
}

#[test]
fn what_was_synced_beside_others_survives_a_loss_of_power() {
    let (mut was_promised, mut was_later) = (false, false);
    for seed in 0..400 {
        let failure = if seed % 4 == 3 { Failure::Passing } else { Failure::End };
        let (promised, later) = check(seed * 7 % 120, failure, seed);
        was_promised |= promised;
        was_later |= later;
    }
    assert!(was_promised && was_later);
}
