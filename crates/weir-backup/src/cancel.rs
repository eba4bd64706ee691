//! A request to stop, heard by everything that may wait for long.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_client::Stop;

/// A request to stop. It is made when one of its flags is set, and is never taken back.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Vec<Arc<AtomicBool>>);

impl Cancel {
    /// Makes a request of flags that others set, for example at signals.
    pub fn new(flags: impl IntoIterator<Item = Arc<AtomicBool>>) -> Self {
        Self(flags.into_iter().collect())
    }

    /// Returns this request with one more flag.
    #[must_use]
    pub fn with(&self, flag: Arc<AtomicBool>) -> Self {
        Self(self.0.iter().cloned().chain([flag]).collect())
    }

    /// Returns the request for the waits of a connection.
    pub(crate) fn stop(&self) -> Stop {
        let own = self.clone();
        Stop::new(move || own.is_set())
    }

    /// Returns whether the request was made.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.iter().any(|flag| flag.load(Ordering::Relaxed))
    }
}

/// All values are equal, so that comparisons of addresses ignore them.
impl PartialEq for Cancel {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Cancel {}

impl Hash for Cancel {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
