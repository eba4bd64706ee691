//! Pages with changes whose log is not written yet. They must not be written to their files
//! (write-ahead logging).

use std::collections::HashMap;

/// The number of such changes per page. A byte is enough, except for a page that hundreds of
/// commits change at once.
#[derive(Debug)]
pub(crate) struct Unhardened {
    changes: Vec<u8>,
    /// Changes beyond 255, and those of new pages.
    more: HashMap<u32, u32>,
}

impl Unhardened {
    /// Makes an empty set; pages from number `pages` on are new.
    pub(crate) fn new(pages: u32) -> Self {
        Self { changes: vec![0; pages as usize], more: HashMap::new() }
    }

    /// Counts a change of a page.
    #[inline]
    pub(crate) fn add(&mut self, page: u32) {
        if let Some(changes) = self.changes.get_mut(page as usize)
            && let Some(more) = changes.checked_add(1)
        {
            *changes = more;
        } else {
            *self.more.entry(page).or_default() += 1;
        }
    }

    /// Removes a change whose log is written.
    #[inline]
    pub(crate) fn remove(&mut self, page: u32) {
        if self.more.is_empty() || !self.remove_more(page) {
            self.changes[page as usize] -= 1;
        }
    }

    /// Removes a change beyond 255, and returns whether there was one.
    fn remove_more(&mut self, page: u32) -> bool {
        let Some(changes) = self.more.get_mut(&page) else { return false };
        *changes -= 1;
        if *changes == 0 {
            self.more.remove(&page);
        }
        true
    }

    /// Returns whether a page has such changes.
    #[inline]
    pub(crate) fn contains(&self, page: u32) -> bool {
        match self.changes.get(page as usize) {
            Some(changes) => *changes > 0,
            None => self.more.contains_key(&page),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_there_until_all_its_changes_are_hardened() {
        for changes in [1, 2, 255, 256, 1000] {
            let mut pages = Unhardened::new(10);
            (0..changes).for_each(|_| pages.add(7));
            pages.add(8);
            pages.remove(8);
            // A new page.
            pages.add(12);
            assert!(pages.contains(12) && !pages.contains(11));
            pages.remove(12);
            assert!(!pages.contains(12));
            for _ in 0..changes {
                assert!(pages.contains(7) && !pages.contains(8), "{changes}");
                pages.remove(7);
            }
            assert!(!pages.contains(7) && pages.more.is_empty(), "{changes}");
        }
    }
}
