//! Views of a volume that changes while they are read, and the old contents that they keep.

use super::*;
use crate::store::Extent;
use crate::{Fault, MemoryStore};
use std::fmt;

type Act = Box<dyn FnOnce() + Send>;

/// A store that lets a test act in the midst of its next read or write.
#[derive(Default)]
struct Midst {
    read: Mutex<Option<Act>>,
    write: Mutex<Option<Act>>,
}

#[derive(Debug)]
struct Acting {
    bytes: MemoryStore,
    midst: Midst,
}

impl fmt::Debug for Midst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Midst")
    }
}

impl Acting {
    fn act(next: &Mutex<Option<Act>>) {
        let act = locked(next).take();
        if let Some(act) = act {
            act();
        }
    }
}

impl Store for Acting {
    fn size(&self) -> Bytes {
        self.bytes.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        Self::act(&self.midst.read);
        self.bytes.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        Self::act(&self.midst.write);
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
}

fn acting() -> (Arc<Acting>, Freezable) {
    let bytes = MemoryStore::new(Bytes::new(SIZE));
    bytes.write_at(0, &vec![1; 8 * (64 << 10)]).unwrap();
    let store = Arc::new(Acting { bytes, midst: Midst::default() });
    (Arc::clone(&store), Freezable::new(store))
}

/// Notices a view that does not wait for a write that had begun before another view ended.
#[test]
fn a_view_waits_for_a_write_that_began_before_an_earlier_view() {
    let (store, freezable) = acting();
    let view = Arc::new(Mutex::new(None));
    let (own, told) = (freezable.clone(), Arc::clone(&view));
    *locked(&store.midst.write) = Some(Box::new(move || {
        let earlier = own.freeze(Scratch::memory());
        own.thaw(&earlier);
        let view = own.freeze(Scratch::memory());
        assert!(!view.try_read_at(0, &mut [0]).unwrap(), "the write is under way");
        *locked(&told) = Some(view);
    }));
    freezable.write_at(0, &[2]).unwrap();
    let view = locked(&view).take().unwrap();
    let mut found = [0; 2];
    assert!(view.try_read_at(0, &mut found).unwrap());
    assert_eq!(found, [2, 1]);
}

#[test]
fn a_read_of_a_view_succeeds_while_its_volume_is_cut() {
    let (store, freezable) = acting();
    let view = freezable.freeze(Scratch::memory());
    let own = freezable.clone();
    *locked(&store.midst.read) = Some(Box::new(move || own.resize(Bytes::new(BLOCK)).unwrap()));
    assert_eq!(bytes(&*view), vec![1; 8 * (64 << 10)]);
    assert_eq!((view.size(), freezable.size()), (Bytes::new(SIZE), Bytes::new(BLOCK)));
}

#[test]
fn a_read_that_the_medium_refuses_fails_and_the_view_stays() {
    let store = Arc::new(FaultStore::new(Bytes::new(SIZE)));
    let freezable = Freezable::new(store.clone());
    let view = freezable.freeze(Scratch::memory());
    store.fail_after(0, Fault::Io);
    assert_eq!(view.read_at(0, &mut [0]).unwrap_err().kind(), ErrorKind::Io);
    store.heal();
    view.read_at(0, &mut [0]).unwrap();
    assert_eq!(view.lost(), None);
}

/// Notices old contents that are kept, or count as kept, after they were read.
#[test]
fn released_blocks_take_no_space_and_others_do() {
    const TAIL: u64 = 4096;
    let size = 6 * BLOCK + TAIL;
    let content = |byte| vec![byte; usize::try_from(size).unwrap()];
    let freezable = Freezable::new(Arc::new(MemoryStore::new(Bytes::new(size))));
    freezable.write_at(0, &content(1)).unwrap();
    let view = freezable.freeze(Scratch::memory());
    freezable.write_at(0, &content(2)).unwrap();
    let check = |left: u64| {
        assert_eq!((view.kept(), view.allocated().unwrap()), (Bytes::new(left), Bytes::new(left)));
    };
    check(size);
    let released = [
        (BLOCK, 2 * BLOCK, 2 * BLOCK),
        // Twice.
        (BLOCK, 2 * BLOCK, 0),
        // The second half of a block with the first one, and the first half alone.
        (3 * BLOCK, BLOCK / 2, 0),
        (3 * BLOCK + BLOCK / 2, BLOCK, BLOCK),
        (0, BLOCK / 2, 0),
        (BLOCK / 2, BLOCK / 2, BLOCK),
        // The end of the volume.
        (5 * BLOCK, 9 * BLOCK, BLOCK + TAIL),
    ];
    let mut left = size;
    for (offset, len, freed) in released {
        view.release(offset, len);
        left -= freed;
        check(left);
    }
    let mut kept = [0; 512];
    view.read_at(4 * BLOCK, &mut kept).unwrap();
    assert_eq!((kept, left, view.most_kept()), ([1; 512], BLOCK, Bytes::new(size)));
    assert_eq!(view.read_at(0, &mut kept).unwrap_err().kind(), ErrorKind::FrozenLost);
}
