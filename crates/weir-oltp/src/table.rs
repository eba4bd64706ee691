//! A value for each page. Those of the working set are contiguous; those of new pages are allocated
//! in chunks.

use std::collections::HashMap;

/// Values by page number, the default for pages that were never written. Values behind the
/// contiguous ones are in chunks of `CHUNK`.
#[derive(Debug, Clone)]
pub struct Table<T, const CHUNK: usize = 4096> {
    dense: Vec<T>,
    chunks: HashMap<usize, Box<[T]>>,
}

impl<T: Copy + Default, const CHUNK: usize> Table<T, CHUNK> {
    /// Makes a table of defaults; the first `dense` values are contiguous.
    #[must_use]
    pub fn new(dense: usize) -> Self {
        Self { dense: vec![T::default(); dense], chunks: HashMap::new() }
    }

    /// Returns the value at `at`.
    #[inline]
    #[must_use]
    pub fn get(&self, at: usize) -> T {
        match self.dense.get(at) {
            Some(value) => *value,
            None => self.get_new(at - self.dense.len()),
        }
    }

    #[cold]
    fn get_new(&self, at: usize) -> T {
        self.chunks.get(&(at / CHUNK)).map_or_else(T::default, |chunk| chunk[at % CHUNK])
    }

    /// Returns the value at `at` for a change.
    #[inline]
    pub fn get_mut(&mut self, at: usize) -> &mut T {
        let dense = self.dense.len();
        if at < dense { &mut self.dense[at] } else { self.get_new_mut(at - dense) }
    }

    #[cold]
    fn get_new_mut(&mut self, at: usize) -> &mut T {
        &mut self.chunks.entry(at / CHUNK).or_insert_with(|| vec![T::default(); CHUNK].into())
            [at % CHUNK]
    }

    /// Resets the chunk of `at`, unless `at` is among the contiguous values.
    pub(crate) fn forget(&mut self, at: usize) {
        if let Some(new) = at.checked_sub(self.dense.len()) {
            self.chunks.remove(&(new / CHUNK));
        }
    }

    #[cfg(test)]
    pub(crate) fn pieces(&self) -> usize {
        self.chunks.len()
    }

    /// Returns the chunk of `at`, unless `at` is among the contiguous values.
    pub(crate) fn chunk_of(&self, at: usize) -> Option<usize> {
        at.checked_sub(self.dense.len()).map(|new| new / CHUNK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_were_never_written_are_the_default() {
        let mut table: Table<u8, 16> = Table::new(3);
        let far = 3 + 5 * 16 + 7;
        assert_eq!((table.get(2), table.get(3), table.get(usize::MAX)), (0, 0, 0));
        *table.get_mut(2) = 1;
        *table.get_mut(3) = 2;
        *table.get_mut(far) = 3;
        let got = [1, 2, 3, 4, far - 1, far, far + 1].map(|at| table.get(at));
        assert_eq!(got, [0, 1, 2, 0, 0, 3, 0]);
        // Only accessed chunks take memory.
        assert_eq!(table.chunks.len(), 2);
        assert_eq!([2, 3, far].map(|at| table.chunk_of(at)), [None, Some(0), Some(5)]);
        table.forget(far + 1);
        table.forget(2);
        assert_eq!(([2, 3, far].map(|at| table.get(at)), table.chunks.len()), ([1, 2, 0], 1));
    }
}
