//! A map for names that repeat in the same order: the devices of a report, the columns of a
//! record. A lookup tries the successor of the last name first.

use std::collections::HashMap;

/// A map with a prediction of the next name.
#[derive(Debug)]
pub(crate) struct InTurn<T> {
    all: Vec<(String, T)>,
    places: HashMap<String, usize>,
    next: usize,
}

impl<T> Default for InTurn<T> {
    fn default() -> Self {
        Self { all: Vec::new(), places: HashMap::new(), next: 0 }
    }
}

impl<T> InTurn<T> {
    /// Removes all entries.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the value of a name, created by `make` if the name is new.
    pub(crate) fn get(&mut self, name: &str, make: impl FnOnce() -> T) -> &mut T {
        let is_next = self.all.get(self.next).is_some_and(|(own, _)| own == name);
        let place = if is_next { self.next } else { self.find(name, make) };
        self.next = if place + 1 < self.all.len() { place + 1 } else { 0 };
        &mut self.all[place].1
    }

    fn find(&mut self, name: &str, make: impl FnOnce() -> T) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let place = self.all.len();
        self.all.push((name.to_owned(), make()));
        self.places.insert(name.to_owned(), place);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_and_out_of_turn() {
        let mut all = InTurn::default();
        let mut made = 0;
        for name in ["a", "b", "c", "a", "b", "c", "b", "a", "c", "d", "a"] {
            let own = all.get(name, || {
                made += 1;
                name
            });
            assert_eq!(*own, name);
        }
        assert_eq!(made, 4);
    }
}
