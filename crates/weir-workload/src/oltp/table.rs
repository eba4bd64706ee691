//! A value for each page: of those of the working set in one piece, of new ones as they
//! come.

/// Entries that come at once.
const CHUNK: usize = 1 << 15;

/// Values by page number; the default where nothing was written.
#[derive(Debug, Clone)]
pub struct Table<T> {
    dense: Vec<T>,
    chunks: Vec<Option<Box<[T]>>>,
    default: T,
}

impl<T: Copy + Default> Table<T> {
    /// The default everywhere; the first `dense` are kept in one piece.
    #[must_use]
    pub fn new(dense: usize) -> Self {
        Self { dense: vec![T::default(); dense], chunks: Vec::new(), default: T::default() }
    }

    /// The value at `at`.
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
        let chunk = self.chunks.get(at / CHUNK).and_then(Option::as_ref);
        chunk.map_or(self.default, |chunk| chunk[at % CHUNK])
    }

    /// The value at `at`, to change it.
    #[inline]
    pub fn get_mut(&mut self, at: usize) -> &mut T {
        let dense = self.dense.len();
        if at < dense { &mut self.dense[at] } else { self.get_new_mut(at - dense) }
    }

    #[cold]
    fn get_new_mut(&mut self, at: usize) -> &mut T {
        if self.chunks.len() <= at / CHUNK {
            self.chunks.resize_with(at / CHUNK + 1, || None);
        }
        let default = self.default;
        let chunk = self.chunks[at / CHUNK].get_or_insert_with(|| vec![default; CHUNK].into());
        &mut chunk[at % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_written_is_the_default() {
        let mut table: Table<u8> = Table::new(3);
        let far = 5 * CHUNK + 7;
        assert_eq!((table.get(2), table.get(3), table.get(usize::MAX)), (0, 0, 0));
        *table.get_mut(2) = 1;
        *table.get_mut(3) = 2;
        *table.get_mut(far) = 3;
        let got = [1, 2, 3, 4, far - 1, far, far + 1].map(|at| table.get(at));
        assert_eq!(got, [0, 1, 2, 0, 0, 3, 0]);
        // Only what was touched takes room.
        assert_eq!(table.chunks.iter().flatten().count(), 2);
    }
}
