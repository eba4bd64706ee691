//! Books against a server that executes requests in any order, and that forgets what it has not
//! flushed when it crashes.

use super::*;
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::BTreeSet;

const SIZE: usize = 24;

#[derive(Debug, Clone)]
enum Event {
    Write {
        offset: usize,
        len: usize,
    },
    Zero {
        offset: usize,
        len: usize,
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
    Connect,
    /// The next flush fails, and unflushed bytes survive by chance.
    FailFlush(u32),
}

fn any_event() -> impl Strategy<Value = Event> {
    let range = || (0..SIZE - 4, 1_usize..5);
    prop_oneof![
        6 => range().prop_map(|(offset, len)| Event::Write { offset, len }),
        1 => range().prop_map(|(offset, len)| Event::Zero { offset, len }),
        4 => range().prop_map(|(offset, len)| Event::Read { offset, len }),
        2 => Just(Event::Flush),
        14 => (any::<Index>(), prop::bool::weighted(0.8))
            .prop_map(|(which, answers)| Event::Execute { which, answers }),
        1 => any::<Index>().prop_map(Event::Expire),
        1 => any::<u32>().prop_map(Event::Crash),
        1 => Just(Event::Cut),
        4 => Just(Event::Connect),
        1 => any::<u32>().prop_map(Event::FailFlush),
    ]
}

/// The contents that a byte has been given, in the order in which its writes were submitted.
#[derive(Debug, Clone)]
struct Byte {
    given: Vec<(Id, u8)>,
    /// The last of them that was answered.
    answered: usize,
    /// The last of them that a flush covers.
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
    /// Bytes that the next flush makes durable. One that fails forgets them, as Linux does.
    dirty: [bool; SIZE],
    /// Requests that the server has, and those that it has executed.
    queue: Vec<(Order, bool)>,
    fails: Option<u32>,
}

impl World {
    fn new() -> Self {
        let byte = Byte { given: vec![(0, 0)], answered: 0, promised: 0 };
        let mut book = Book::new(600);
        book.connected();
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
        }
    }

    fn submit(&mut self, offset: usize, action: Action, wanted: Wanted) {
        self.last += 2;
        self.callers.insert(self.last, wanted);
        self.book.submit(self.last, offset as u64, action, self.last);
    }

    fn write(&mut self, offset: usize, len: usize, byte: u8) {
        let payload = match byte {
            0 => Payload::Zeros { len: len as u64, keeps_space: false },
            _ => Payload::bytes(vec![byte; len].into()),
        };
        for own in &mut self.bytes[offset..offset + len] {
            own.given.push((self.last + 2, byte));
        }
        self.submit(offset, Action::Write(payload), Wanted::Write { offset, len });
    }

    fn happen(&mut self, event: &Event) {
        match event {
            Event::Write { offset, len } => {
                self.stamp = self.stamp % 250 + 1;
                self.write(*offset, *len, self.stamp);
            }
            Event::Zero { offset, len } => self.write(*offset, *len, 0),
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
            Event::Connect => {
                if !self.book.online {
                    self.book.connected();
                }
            }
            Event::FailFlush(kept) => self.fails = Some(*kept),
        }
        self.send();
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
            }
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
        match &order.action {
            _ if *is_done => {}
            Action::Write(Payload::Zeros { .. }) => {
                self.dirty[range.clone()].fill(true);
                self.volatile[range].fill(0);
            }
            Action::Write(Payload::Bytes { all, start, len }) => {
                self.dirty[range.clone()].fill(true);
                self.volatile[range].copy_from_slice(&all[*start..*start + *len]);
            }
            Action::Flush => match self.fails.take() {
                None => {
                    for at in (0..SIZE).filter(|at| self.dirty[*at]) {
                        self.durable[at] = self.volatile[at];
                    }
                    self.dirty.fill(false);
                }
                Some(kept) => {
                    result = Err(Errno::Io);
                    forget(&self.volatile, &mut self.durable, kept);
                    self.dirty.fill(false);
                }
            },
            Action::Read { .. } | Action::Extents { .. } => {}
        }
        *is_done = true;
        if !answers && result.is_ok() {
            return;
        }
        let (order, _) = self.queue.remove(at);
        let owner = self.book.answered(order.id, result).expect("writes are taken again");
        let Some(wanted) = owner.and_then(|id| self.callers.remove(&id).map(|own| (id, own)))
        else {
            return;
        };
        self.answered(wanted, result);
    }

    fn answered(&mut self, (id, wanted): (Id, Wanted), result: Result<(), Errno>) {
        match wanted {
            Wanted::Write { offset, len } => {
                for own in &mut self.bytes[offset..offset + len] {
                    let at = own.given.iter().position(|(of, _)| *of == id).unwrap();
                    own.answered = own.answered.max(at);
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
                for ((own, durable), covers) in self.bytes.iter_mut().zip(self.durable).zip(covers)
                {
                    own.promised = own.promised.max(covers);
                    let allowed = &own.given[own.promised..];
                    assert!(allowed.iter().any(|(_, byte)| *byte == durable), "{durable}: {own:?}");
                }
            }
            Wanted::Flush { .. } => {}
        }
    }

    /// Lets everything end well, and checks each byte.
    fn settle(&mut self) {
        self.fails = None;
        self.happen(&Event::Connect);
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

    /// Whatever is lost: a read returns what was answered last before it, or something newer; a flush
    /// makes durable what was answered before it; and what was answered is there in the end.
    #[test]
    fn nothing_that_was_answered_is_lost(events in prop::collection::vec(any_event(), 0..120)) {
        let mut world = World::new();
        events.iter().for_each(|event| world.happen(event));
        world.settle();
    }
}

#[test]
fn a_flush_comes_before_the_memory_is_full() {
    let mut book: Book<Id> = Book::new(1 << 20);
    book.connected();
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
    book.connected();
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
    book.connected();
    book.submit(2, 512, Action::Write(Payload::bytes(vec![1; 512].into())), 2);
    let first = book.next().unwrap();
    assert_eq!(book.answered(first.id, Ok(())), Ok(Some(2)));
    book.disconnected();
    book.submit(4, 0, Action::Read { len: 512 }, 4);
    book.connected();
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
    book.connected();
    book.submit(2, 0, Action::Write(Payload::bytes(vec![1; 512].into())), 2);
    let write = book.next().unwrap();
    assert_eq!(book.answered(write.id, Ok(())), Ok(Some(2)));
    book.submit(4, 0, Action::Flush, 4);
    book.submit(6, 0, Action::Flush, 6);
    let flush = book.next().unwrap();
    assert!(book.next().is_none());
    assert_eq!(book.answered(flush.id, Err(Errno::Io)), Ok(Some(4)));
    assert_eq!(book.take_refused(), [(6, Errno::Io)]);
    book.submit(8, 0, Action::Flush, 8);
    assert!(matches!(book.next().unwrap().action, Action::Write(_)), "it is written again first");
}
