//! A request to end the waits of a connection.

use std::fmt;
use std::sync::Arc;

/// Tells a connection whether to go on waiting. Once it says stop, it must go on saying so: the
/// request that was waited for may still be answered, so the connection cannot be used any more.
#[derive(Clone)]
pub struct Stop(Arc<dyn Fn() -> bool + Send + Sync>);

impl Stop {
    /// Stops when `is_set` returns true. It is called about ten times per second of a wait.
    pub fn new(is_set: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_set))
    }

    /// Returns whether to stop.
    #[must_use]
    pub fn is_set(&self) -> bool {
        (self.0)()
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stop").field(&self.is_set()).finish()
    }
}
