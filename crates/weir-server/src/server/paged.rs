//! Page blobs as volumes.

use crate::seat::Seat;
use std::ops::Deref;
use std::sync::Arc;
use weir_store::{PagedStore, Volume as StoredVolume};

/// The pages of a page blob.
#[derive(Debug, Clone)]
pub struct Paged {
    pages: Pages,
    seat: Arc<Seat>,
}

/// The place of the pages.
#[derive(Debug, Clone)]
pub(super) enum Pages {
    Kept(Arc<StoredVolume>),
    InMemory(Arc<PagedStore>),
}

impl Paged {
    pub(super) fn new(pages: Pages) -> Self {
        Self { pages, seat: Arc::default() }
    }

    /// Decides which clients may write.
    #[must_use]
    pub fn seat(&self) -> &Arc<Seat> {
        &self.seat
    }

    /// Returns the pages of a volume of the data directory, if it has layers.
    pub(crate) fn from_volume(volume: &Arc<StoredVolume>) -> Option<Self> {
        let pages = || Pages::Kept(Arc::clone(volume));
        volume.paged().is_some().then(|| Self::new(pages()))
    }
}

impl Deref for Paged {
    type Target = PagedStore;

    fn deref(&self) -> &PagedStore {
        match &self.pages {
            Pages::InMemory(pages) => pages,
            Pages::Kept(volume) => match volume.paged() {
                Some(pages) => pages,
                None => unreachable!("a volume does not lose its pages"),
            },
        }
    }
}
