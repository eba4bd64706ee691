//! A freezable store over one whose operations end later.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use weir_store::{
    AsyncStore, Extent, Freezable, MemoryStore, Operation, Outcome, Result, Scratch, Store,
    StoreError, Then,
};
use weir_units::Bytes;

const SIZE: u64 = 1 << 20;

/// Executes what it took when it is told to.
#[derive(Debug)]
struct Later {
    bytes: MemoryStore,
    taken: Mutex<Vec<(Operation, Then)>>,
    takes: bool,
    kicks: AtomicUsize,
}

impl Later {
    fn new(takes: bool) -> Arc<Self> {
        let bytes = MemoryStore::new(Bytes::new(SIZE));
        Arc::new(Self { bytes, taken: Mutex::default(), takes, kicks: AtomicUsize::new(0) })
    }

    fn execute(&self) {
        for (operation, then) in self.taken.lock().unwrap().drain(..) {
            then.call(operation.run(&self.bytes));
        }
    }
}

impl Store for Later {
    fn size(&self) -> Bytes {
        self.bytes.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.bytes.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.bytes.write_at(offset, data)
    }

    fn write_zeroes(&self, offset: u64, len: u64, may_trim: bool) -> Result<()> {
        self.bytes.write_zeroes(offset, len, may_trim)
    }

    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        self.bytes.trim(offset, len)
    }

    fn sync(&self) -> Result<()> {
        self.bytes.sync()
    }

    fn resize(&self, new: Bytes) -> Result<()> {
        self.bytes.resize(new)
    }

    fn extents(&self, offset: u64, len: u64, max: usize) -> Result<Vec<Extent>> {
        self.bytes.extents(offset, len, max)
    }

    fn allocated(&self) -> Result<Bytes> {
        self.bytes.allocated()
    }

    fn depth(&self) -> usize {
        7
    }

    fn syncs(&self) -> usize {
        3
    }

    fn asynchronous(&self) -> Option<&dyn AsyncStore> {
        Some(self)
    }
}

impl AsyncStore for Later {
    fn submit(&self, operation: Operation, then: Then) -> Option<(Operation, Then)> {
        if !self.takes {
            return Some((operation, then));
        }
        self.taken.lock().unwrap().push((operation, then));
        None
    }

    fn kick(&self) {
        self.kicks.fetch_add(1, Ordering::Relaxed);
    }
}

type Told = Arc<Mutex<Vec<Result<Outcome>>>>;

fn write(store: &dyn Store, offset: u64, byte: u8, told: &Told) -> Option<(Operation, Then)> {
    let told = Arc::clone(told);
    let then = Then::new(move |result| told.lock().unwrap().push(result));
    let operation = Operation::Write { offset, data: vec![byte; 4096].into(), durably: false };
    store.asynchronous().expect("it is asynchronous").submit(operation, then)
}

fn byte(store: &dyn Store, offset: u64) -> u8 {
    let mut buf = [0];
    store.read_at(offset, &mut buf).unwrap();
    buf[0]
}

#[test]
fn a_view_shows_a_write_that_was_under_way_and_none_that_came_later() {
    let later = Later::new(true);
    let store = Freezable::new(Arc::clone(&later) as Arc<dyn Store>);
    let told = Told::default();
    assert!(write(&store, 0, 1, &told).is_none());
    let view = store.freeze(Scratch::memory());
    // Its old contents are needed, so it needs a thread that waits.
    let (second, then) = write(&store, 4096, 2, &told).expect("a view needs the old contents");
    thread::scope(|scope| {
        let (tell, read) = channel();
        let view = &view;
        scope.spawn(move || tell.send((byte(&**view, 0), byte(&**view, 4096))));
        read.recv_timeout(Duration::from_millis(50)).expect_err("the first write is under way");
        later.execute();
        assert_eq!(read.recv().unwrap(), (1, 0));
    });
    then.call(second.run(&store));
    assert_eq!((byte(&*view, 4096), byte(&store, 4096)), (0, 2));
    assert_eq!(told.lock().unwrap().len(), 2);
    store.thaw(&view);
    assert!(write(&store, 0, 3, &told).is_none(), "nothing needs old contents any more");
}

#[test]
fn a_write_that_the_store_returns_is_not_under_way() {
    let store = Freezable::new(Later::new(false));
    let told = Told::default();
    let (operation, then) = write(&store, 0, 1, &told).expect("it takes none");
    let view = store.freeze(Scratch::memory());
    // It would wait for itself if it had begun before the freeze.
    then.call(operation.run(&store));
    assert_eq!((byte(&*view, 0), byte(&store, 0)), (0, 1));
}

#[test]
fn a_write_beyond_the_end_is_refused_and_marks_nothing() {
    let store = Freezable::new(Later::new(true));
    let full = store.freeze(Scratch::memory());
    assert!(store.complete(&full, "full").unwrap());
    store.thaw(&full);
    let told = Told::default();
    assert!(write(&store, SIZE - 1, 1, &told).is_none());
    let view = store.freeze(Scratch::memory());
    assert!(view.changed(0, 10).ranges.is_empty());
    let told = told.lock().unwrap();
    assert!(matches!(&told[..], [Err(StoreError::OutOfRange { .. })]), "{told:?}");
}

#[test]
fn changes_are_tracked() {
    let later = Later::new(true);
    let store = Freezable::new(Arc::clone(&later) as Arc<dyn Store>);
    let full = store.freeze(Scratch::memory());
    assert!(store.complete(&full, "full").unwrap());
    store.thaw(&full);
    assert!(write(&store, 512 << 10, 1, &Told::default()).is_none());
    later.execute();
    let view = store.freeze(Scratch::memory());
    let changed = view.changed(0, 10);
    assert_eq!(changed.ranges.iter().map(|(start, _)| *start).collect::<Vec<_>>(), [512 << 10]);
}

/// Notices a volume whose operations are executed one by one, or do not begin.
#[test]
fn a_freezable_store_has_the_properties_of_its_medium() {
    let later = Later::new(true);
    let store = Freezable::new(Arc::clone(&later) as Arc<dyn Store>);
    store.write_at(0, &[1; 4096]).unwrap();
    assert_eq!((store.depth(), store.syncs()), (7, 3));
    assert_eq!(store.allocated().unwrap(), Bytes::new(4096));
    store.asynchronous().unwrap().kick();
    assert_eq!(later.kicks.load(Ordering::Relaxed), 1);
}
