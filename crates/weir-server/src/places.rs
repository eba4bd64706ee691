//! A limit on how many run at once: handshakes, conversations.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Places that can be taken.
#[derive(Debug)]
pub(crate) struct Places {
    taken: Arc<AtomicUsize>,
    all: usize,
}

/// A taken place. It is free again when this is dropped, also by a panic.
#[derive(Debug)]
pub(crate) struct Place(Arc<AtomicUsize>);

impl Places {
    pub(crate) fn new(all: usize) -> Self {
        Self { taken: Arc::default(), all }
    }

    /// Returns a place, if one is free.
    pub(crate) fn take(&self) -> Option<Place> {
        let place = Place(Arc::clone(&self.taken));
        (self.taken.fetch_add(1, Ordering::AcqRel) < self.all).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_again_however_its_holder_ends() {
        let places = Places::new(1);
        let held = places.take().unwrap();
        assert!(places.take().is_none() && places.take().is_none());
        let holder = std::thread::spawn(move || {
            let _held = held;
            panic!("a defect, made by the test");
        });
        assert!(holder.join().is_err());
        assert!(places.take().is_some());
    }
}
