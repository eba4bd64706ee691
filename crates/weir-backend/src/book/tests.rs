//! Books against a server that executes requests in any order, and that forgets what it has not
//! flushed when it crashes.

use super::*;
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::BTreeSet;
use std::ops::Range;

const SIZE: usize = 24;

#[derive(Debug, Clone)]
enum Event {
    Write {
        offset: usize,
        len: usize,
        durably: bool,
    },
    Zero {
        offset: usize,
        len: usize,
        durably: bool,
    },
    Read {
        offset: usize,
        len: usize,
    },
    Flush,
    /// The server executes one request, and answers it or not.
    Execute {
        which: Index,
        answers: bool,
    },
    /// The timeouts of the callers up to one of them are over.
    Expire(Index),
    /// The server crashes. Unflushed bytes survive by chance.
    Crash(u32),
    /// The connections are cut. The server forgets what it has not executed.
    Cut,
    /// The server takes durable writes, or not.
    Connect(bool),
    /// The next write of a caller fails when half of it is executed.
    FailWrite,
    /// The next sync fails, for a flush or a durable write, and unflushed bytes survive by chance.
    FailSync(u32),
}

fn any_event() -> impl Strategy<Value = Event> {
    let range = || (0..SIZE - 4, 1_usize..5);
    prop_oneof![
        6 => (range(), prop::bool::weighted(0.3))
            .prop_map(|((offset, len), durably)| Event::Write { offset, len, durably }),
        1 => (range(), any::<bool>())
            .prop_map(|((offset, len), durably)| Event::Zero { offset, len, durably }),
        4 => range().prop_map(|(offset, len)| Event::Read { offset, len }),
        2 => Just(Event::Flush),
        14 => (any::<Index>(), prop::bool::weighted(0.8))
            .prop_map(|(which, answers)| Event::Execute { which, answers }),
        1 => any::<Index>().prop_map(Event::Expire),
        1 => any::<u32>().prop_map(Event::Crash),
        1 => Just(Event::Cut),
        4 => prop::bool::weighted(0.8).prop_map(Event::Connect),
        1 => Just(Event::FailWrite),
        1 => any::<u32>().prop_map(Event::FailSync),
    ]
}

/// The contents that a byte has been given, in the order in which its writes were submitted.
#[derive(Debug, Clone)]
struct Byte {
    given: Vec<(Id, u8)>,
    /// The last of them that was answered.
    answered: usize,
    /// The last of them that is promised to be durable.
    promised: usize,
}

/// A request whose answer is outstanding.
#[derive(Debug, Clone)]
enum Wanted {
    Write { offset: usize, len: usize },
    Read { offset: usize, len: usize, from: Vec<usize> },
    Flush { covers: Vec<usize> },
}

struct World {
    book: Book<Id>,
    bytes: Vec<Byte>,
    callers: BTreeMap<Id, Wanted>,
    last: Id,
    stamp: u8,
    volatile: [u8; SIZE],
    durable: [u8; SIZE],
    /// Bytes that the next sync makes durable. One that fails forgets them, as Linux does.
    dirty: [bool; SIZE],
    /// Requests that the server has, and those that it has executed.
    queue: Vec<(Order, bool)>,
    fails: Option<u32>,
    fails_write: bool,
    takes_durable: bool,
}

impl World {
    fn new() -> Self {
        let byte = Byte { given: vec![(0, 0)], answered: 0, promised: 0 };
        let mut book = Book::new(600);
        book.connected(true);
        Self {
            book,
            bytes: vec![byte; SIZE],
            callers: BTreeMap::new(),
            last: 0,
            stamp: 0,
            volatile: [0; SIZE],
            durable: [0; SIZE],
            dirty: [false; SIZE],
            queue: Vec::new(),
            fails: None,
            fails_write: false,
            takes_durable: true,
        }
    }

    fn submit(&mut self, offset: usize, action: Action, wanted: Wanted) {
        self.last += 2;
        self.callers.insert(self.last, wanted);
        self.book.submit(self.last, offset as u64, action, self.last);
    }

    fn write(&mut self, offset: usize, len: usize, byte: u8, durably: bool) {
        let payload = match byte {
            0 => Payload::Zeros { len: len as u64, keeps_space: false },
            _ => Payload::bytes(vec![byte; len].into()),
        };
        for own in &mut self.bytes[offset..offset + len] {
            own.given.push((self.last + 2, byte));
        }
        let action = if durably { Action::WriteDurably(payload) } else { Action::Write(payload) };
        self.submit(offset, action, Wanted::Write { offset, len });
    }

    fn happen(&mut self, event: &Event) {
        match event {
            Event::Write { offset, len, durably } => {
                self.stamp = self.stamp % 250 + 1;
                self.write(*offset, *len, self.stamp, *durably);
            }
            Event::Zero { offset, len, durably } => self.write(*offset, *len, 0, *durably),
            Event::Read { offset, len } => {
                let (offset, len) = (*offset, *len);
                let from =
                    self.bytes[offset..offset + len].iter().map(|own| own.answered).collect();
                let read = Action::Read { len: u32::try_from(len).unwrap() };
                self.submit(offset, read, Wanted::Read { offset, len, from });
            }
            Event::Flush => {
                let covers = self.bytes.iter().map(|own| own.answered).collect();
                self.submit(0, Action::Flush, Wanted::Flush { covers });
            }
            Event::Execute { which, answers } => self.execute(*which, *answers),
            Event::Expire(which) => {
                let ids: Vec<Id> = self.callers.keys().copied().collect();
                if !ids.is_empty() {
                    let last = *which.get(&ids);
                    let late = self.book.expire(last);
                    let late: BTreeSet<Id> = late.into_iter().map(|(owner, _)| owner).collect();
                    let expected = ids.into_iter().filter(|id| *id <= last).collect();
                    assert_eq!(late, expected);
                    late.iter().for_each(|id| drop(self.callers.remove(id)));
                }
            }
            Event::Crash(kept) => {
                forget(&self.volatile, &mut self.durable, *kept);
                self.volatile = self.durable;
                self.dirty.fill(false);
                self.lose();
            }
            Event::Cut => self.lose(),
            Event::Connect(takes_durable) => {
                if !self.book.online {
                    self.check_samples();
                    self.takes_durable = *takes_durable;
                    self.book.connected(*takes_durable);
                }
            }
            Event::FailWrite => self.fails_write = true,
            Event::FailSync(kept) => self.fails = Some(*kept),
        }
        self.send();
        self.check_promises();
    }

    fn lose(&mut self) {
        self.queue.clear();
        if self.book.online {
            self.book.disconnected();
        }
    }

    fn send(&mut self) {
        while let Some(order) = self.book.next() {
            let (start, end) = (order.offset, order.offset + order.action.len());
            for (other, _) in &self.queue {
                let overlaps = start < other.offset + other.action.len() && other.offset < end;
                let changes = order.action.changes() || other.action.changes();
                assert!(!(overlaps && changes), "{order:?} is in flight with {other:?}");
                let sync = order.action.syncs() && other.action.syncs();
                assert!(!sync, "{order:?} is in flight with {other:?}");
            }
            let is_durable = matches!(order.action, Action::WriteDurably(_));
            assert!(self.takes_durable || !is_durable, "{order:?} to a server without FUA");
            self.queue.push((order, false));
        }
        for (id, _) in self.book.take_refused() {
            assert!(self.callers.remove(&id).is_some());
        }
    }

    fn execute(&mut self, which: Index, answers: bool) {
        if !self.queue.is_empty() {
            self.execute_at(which.index(self.queue.len()), answers);
        }
    }

    fn execute_at(&mut self, at: usize, answers: bool) {
        let (order, is_done) = &mut self.queue[at];
        let offset = usize::try_from(order.offset).unwrap();
        let mut result = Ok(());
        let range = offset..offset + usize::try_from(order.action.len()).unwrap();
        let was_done = std::mem::replace(is_done, true);
        if matches!(order.action, Action::Write(Payload::Bytes { .. }))
            && order.id % 2 == 0
            && !was_done
            && std::mem::take(&mut self.fails_write)
        {
            let half = range.len() / 2;
            self.fail_write(at, offset..offset + half);
            return;
        }
        if let Action::Write(payload) | Action::WriteDurably(payload) = &order.action
            && !was_done
        {
            self.dirty[range.clone()].fill(true);
            match payload {
                Payload::Zeros { .. } => self.volatile[range.clone()].fill(0),
                Payload::Bytes { all, start, len } => {
                    self.volatile[range.clone()].copy_from_slice(&all[*start..*start + *len]);
                }
            }
        }
        if order.action.syncs() && !was_done {
            match self.fails.take() {
                None => {
                    let is_flush = matches!(order.action, Action::Flush);
                    let synced = if is_flush { 0..SIZE } else { range };
                    for at in synced.filter(|at| std::mem::take(&mut self.dirty[*at])) {
                        self.durable[at] = self.volatile[at];
                    }
                }
                Some(kept) => {
                    result = Err(Errno::Io);
                    forget(&self.volatile, &mut self.durable, kept);
                    self.dirty.fill(false);
                }
            }
        }
        if !answers && result.is_ok() {
            return;
        }
        let (order, _) = self.queue.remove(at);
        let caller = self.book.answered(order.id, result).expect("writes are taken again");
        let Some(caller) = caller else { return };
        let Some(wanted) = self.callers.remove(&caller.owner) else { return };
        self.answered((caller, wanted), result);
    }

    /// Fails a write of which only `done` was executed.
    fn fail_write(&mut self, at: usize, done: Range<usize>) {
        let (order, _) = self.queue.remove(at);
        let Action::Write(Payload::Bytes { all, start, .. }) = &order.action else { return };
        self.dirty[done.clone()].fill(true);
        self.volatile[done.clone()].copy_from_slice(&all[*start..*start + done.len()]);
        if let Some(caller) = self.book.answered(order.id, Err(Errno::NoSpc)).unwrap() {
            self.callers.remove(&caller.owner);
        }
    }

    fn answered(&mut self, (caller, wanted): (Caller<Id>, Wanted), result: Result<(), Errno>) {
        match wanted {
            Wanted::Write { offset, len } if result.is_ok() => {
                for own in &mut self.bytes[offset..offset + len] {
                    let at = own.given.iter().position(|(of, _)| *of == caller.owner).unwrap();
                    own.answered = own.answered.max(at);
                    if caller.is_durable {
                        own.promised = own.promised.max(at);
                    }
                }
            }
            Wanted::Read { offset, len, from } => {
                for (at, from) in (offset..offset + len).zip(from) {
                    let own = &self.bytes[at];
                    let found = self.volatile[at];
                    let allowed = &own.given[from..];
                    assert!(allowed.iter().any(|(_, byte)| *byte == found), "{found}: {own:?}");
                }
            }
            Wanted::Flush { covers } if result.is_ok() => {
                for (own, covers) in self.bytes.iter_mut().zip(covers) {
                    own.promised = own.promised.max(covers);
                }
            }
            Wanted::Write { .. } | Wanted::Flush { .. } => {}
        }
    }

    fn check_promises(&self) {
        for (own, durable) in self.bytes.iter().zip(self.durable) {
            let allowed = &own.given[own.promised..];
            assert!(allowed.iter().any(|(_, byte)| *byte == durable), "{durable}: {own:?}");
        }
    }

    /// A server that keeps its word has all samples.
    fn check_samples(&self) {
        for sample in self.book.samples() {
            let found = &self.volatile[usize::try_from(sample.offset).unwrap()..];
            assert!(sample.matches(found), "{sample:?}: {found:?}");
        }
    }

    /// Lets everything end well, and checks each byte.
    fn settle(&mut self) {
        (self.fails, self.fails_write) = (None, false);
        self.happen(&Event::Connect(true));
        while !self.queue.is_empty() {
            self.execute_at(0, true);
            self.send();
        }
        assert!(self.book.is_settled() && self.callers.is_empty(), "{:?}", self.callers);
        for (own, found) in self.bytes.iter().zip(self.volatile) {
            let allowed = &own.given[own.answered..];
            assert!(allowed.iter().any(|(_, byte)| *byte == found), "{found}: {own:?}");
        }
    }
}

/// Bytes that are not durable become so by chance; the server forgets the others.
fn forget(volatile: &[u8; SIZE], durable: &mut [u8; SIZE], kept: u32) {
    for at in 0..SIZE {
        if kept >> at & 1 == 1 {
            durable[at] = volatile[at];
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever is lost: a read returns what was answered last before it, or something newer; what a
    /// flush or a durable write promised is durable; and what was answered is there in the end.
    #[test]
    fn nothing_that_was_answered_is_lost(events in prop::collection::vec(any_event(), 0..120)) {
        let mut world = World::new();
        events.iter().for_each(|event| world.happen(event));
        world.settle();
    }
}

fn stored(owner: Id) -> Caller<Id> {
    Caller { owner, is_durable: false }
}

fn bytes(byte: u8, len: usize) -> Payload {
    Payload::bytes(vec![byte; len].into())
}

/// An older write that was written again over it would be newer in the store.
#[test]
fn a_durable_write_is_not_kept_and_neither_is_what_it_has_overwritten() {
    let mut book: Book<Id> = Book::new(1 << 20);
    book.connected(true);
    book.submit(2, 0, Action::Write(bytes(1, 1024)), 2);
    let write = book.next().unwrap();
    assert_eq!(book.answered(write.id, Ok(())), Ok(Some(stored(2))));
    book.submit(4, 256, Action::WriteDurably(bytes(2, 512)), 4);
    let write = book.next().unwrap();
    assert!(matches!(write.action, Action::WriteDurably(_)));
    let durable = Caller { owner: 4, is_durable: true };
    assert_eq!(book.answered(write.id, Ok(())), Ok(Some(durable)));
    book.disconnected();
    book.connected(true);
    for expected in [0..256, 768..1024] {
        let again = book.next().unwrap();
        assert!(matches!(again.action, Action::Write(_)), "{again:?}");
        assert_eq!(again.offset..again.offset + again.action.len(), expected);
    }
    assert!(book.next().is_none());
}

/// The first of several syncs in flight may be the only one that is told of an error.
#[test]
fn a_durable_write_beside_another_sync_is_an_ordinary_one() {
    let mut book: Book<Id> = Book::new(1 << 20);
    book.connected(true);
    for id in [2, 4] {
        book.submit(id, id * 1024, Action::WriteDurably(bytes(1, 512)), id);
    }
    book.submit(6, 0, Action::Flush, 6);
    let (first, second) = (book.next().unwrap(), book.next().unwrap());
    assert!(matches!(first.action, Action::WriteDurably(_)) && book.next().is_none());
    assert!(matches!(second.action, Action::Write(_)));
    assert_eq!(book.answered(second.id, Ok(())), Ok(Some(stored(4))));
    assert_eq!(book.answered(first.id, Err(Errno::Io)), Ok(Some(stored(2))));
    let again = book.next().unwrap();
    assert!(again.offset == 4096 && matches!(again.action, Action::Write(_)));
    assert!(book.next().is_none(), "the flush waits until it is written again");
    assert_eq!(book.answered(again.id, Ok(())), Ok(None));
    assert!(matches!(book.next().unwrap().action, Action::Flush));
}

/// A change in flight may be executed or not, so it ends a sample before it is answered.
#[test]
fn what_is_durable_and_not_changing_is_sampled() {
    let mut book: Book<Id> = Book::new(1 << 20);
    book.connected(true);
    let write = |book: &mut Book<Id>, id: Id, action, answers: bool| {
        book.submit(id, id * 1024, action, id);
        let order = book.next().unwrap();
        if answers {
            assert!(book.answered(order.id, Ok(())).is_ok());
        }
    };
    write(&mut book, 2, Action::Write(bytes(1, 512)), true);
    write(&mut book, 4, Action::Write(bytes(1, 512)), true);
    assert!(book.samples().is_empty());
    book.submit(6, 0, Action::Flush, 6);
    let flush = book.next().unwrap();
    // One of them is written again before the flush is answered.
    book.submit(8, 4 * 1024, Action::Write(bytes(2, 512)), 8);
    let newer = book.next().unwrap();
    assert_eq!(book.answered(flush.id, Ok(())), Ok(Some(stored(6))));
    let offsets = |book: &Book<Id>| book.samples().iter().map(|own| own.offset).collect::<Vec<_>>();
    assert_eq!(offsets(&book), [2048]);
    assert_eq!(book.answered(newer.id, Ok(())), Ok(Some(stored(8))));
    write(&mut book, 10, Action::WriteDurably(bytes(3, 512)), true);
    assert_eq!(offsets(&book), [10 * 1024, 2048]);
    book.submit(12, 10 * 1024 + 511, Action::Write(bytes(4, 1)), 12);
    assert_eq!(offsets(&book).len(), 2, "it is not sent");
    assert!(book.next().is_some());
    assert_eq!(offsets(&book), [2048]);
}

/// A write that fails may have changed some of its bytes.
#[test]
fn what_a_failed_write_may_have_changed_is_no_sample() {
    let mut book: Book<Id> = Book::new(1 << 20);
    book.connected(true);
    for (id, offset) in [(2, 0), (4, 1024), (6, 2048)] {
        book.submit(id, offset, Action::Write(bytes(1, 1024)), id);
        let write = book.next().unwrap();
        assert!(book.answered(write.id, Ok(())).is_ok());
    }
    book.submit(8, 1536, Action::Write(bytes(2, 512)), 8);
    let write = book.next().unwrap();
    assert!(book.answered(write.id, Err(Errno::NoSpc)).is_ok());
    book.submit(10, 0, Action::Flush, 10);
    let flush = book.next().unwrap();
    assert!(book.answered(flush.id, Ok(())).is_ok());
    let mut offsets: Vec<_> = book.samples().iter().map(|own| own.offset).collect();
    offsets.sort_unstable();
    assert_eq!(offsets, [0, 2048]);
}

#[test]
fn a_flush_comes_before_the_memory_is_full() {
    let mut book: Book<Id> = Book::new(1 << 20);
    book.connected(true);
    let mut flushes = 0;
    for n in 1..100_u64 {
        let payload = Payload::bytes(vec![1; 64 << 10].into());
        book.submit(n * 2, n << 16, Action::Write(payload), n);
        while let Some(order) = book.next() {
            flushes += u32::from(matches!(order.action, Action::Flush));
            book.answered(order.id, Ok(())).unwrap();
        }
        assert!(book.unflushed.held() <= 1 << 20 && book.is_settled());
    }
    assert!(flushes >= 6, "{flushes}");
}

#[test]
fn a_write_that_nobody_waits_for_still_keeps_others_away() {
    let mut book: Book<Id> = Book::new(1 << 20);
    book.connected(true);
    let write = || Action::Write(Payload::bytes(vec![1; 512].into()));
    book.submit(2, 0, write(), 2);
    let first = book.next().unwrap();
    assert_eq!(book.expire(2), [(2, Some(2))]);
    book.submit(4, 256, write(), 4);
    book.submit(6, 0, Action::Read { len: 512 }, 6);
    book.submit(8, 4096, write(), 8);
    assert_eq!(book.next().unwrap().id, 8);
    assert!(book.next().is_none());
    assert_eq!(book.answered(first.id, Ok(())), Ok(None));
    assert_eq!(book.next().unwrap().id, 4);
}

#[test]
fn a_write_that_is_not_taken_again_ends_the_volume() {
    let mut book: Book<Id> = Book::new(1 << 20);
    book.connected(true);
    book.submit(2, 512, Action::Write(Payload::bytes(vec![1; 512].into())), 2);
    let first = book.next().unwrap();
    assert_eq!(book.answered(first.id, Ok(())), Ok(Some(stored(2))));
    book.disconnected();
    book.submit(4, 0, Action::Read { len: 512 }, 4);
    book.connected(true);
    let again = book.next().unwrap();
    assert!(matches!(again.action, Action::Write(_)) && book.next().is_none());
    let untaken = Untaken { offset: 512, bytes: 512, errno: Errno::NoSpc };
    assert_eq!(book.answered(again.id, Err(Errno::NoSpc)), Err(untaken));
    assert_eq!(book.give_up(), [4]);
}

/// Of two flushes in flight, the second would succeed after the first failed and dropped its writes.
#[test]
fn flushes_are_sent_one_at_a_time() {
    let mut book: Book<Id> = Book::new(1 << 20);
    book.connected(true);
    book.submit(2, 0, Action::Write(Payload::bytes(vec![1; 512].into())), 2);
    let write = book.next().unwrap();
    assert_eq!(book.answered(write.id, Ok(())), Ok(Some(stored(2))));
    book.submit(4, 0, Action::Flush, 4);
    book.submit(6, 0, Action::Flush, 6);
    let flush = book.next().unwrap();
    assert!(book.next().is_none());
    assert_eq!(book.answered(flush.id, Err(Errno::Io)), Ok(Some(stored(4))));
    assert_eq!(book.take_refused(), [(6, Errno::Io)]);
    book.submit(8, 0, Action::Flush, 8);
    assert!(matches!(book.next().unwrap().action, Action::Write(_)), "it is written again first");
}
