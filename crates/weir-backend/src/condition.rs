//! The state of the connection to a server, for people.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_units::Span;
use weir_wall::Clock;

/// The state of a backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It answers.
    Connected,
    /// It does not answer, or there is no connection. Requests wait, and fail after the timeout.
    Lost {
        /// The reason.
        reason: String,
    },
    /// It cannot be used any more, since it may not have what was written. All requests fail.
    Failed {
        /// The reason.
        reason: String,
    },
}

/// The state of a backend, and for how long it has been in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The state.
    pub state: State,
    /// The time since it changed.
    pub lasts: Span,
}

/// The receiver of changes, called on the thread of the volume. It must not wait.
#[derive(Clone, Default)]
pub struct Hearing(Option<Arc<Hear>>);

type Hear = dyn Fn(&State) + Send + Sync;

impl Hearing {
    /// Calls `hear` for each change.
    pub fn with(hear: impl Fn(&State) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hear)))
    }
}

impl fmt::Debug for Hearing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hearing").field(&self.0.is_some()).finish()
    }
}

/// The place at which a volume's thread leaves its state.
#[derive(Debug)]
pub(crate) struct Gauge {
    clock: Clock,
    now: Mutex<(State, weir_units::Instant)>,
    hearing: Hearing,
}

impl Gauge {
    pub(crate) fn new(hearing: Hearing) -> Self {
        let clock = Clock::start();
        Self { clock, now: Mutex::new((State::Connected, clock.now())), hearing }
    }

    fn lock(&self) -> MutexGuard<'_, (State, weir_units::Instant)> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the state. A change between two losses is a new reason and no new state: it is not told,
    /// and the time goes on.
    pub(crate) fn set(&self, state: State) {
        let told = {
            let mut now = self.lock();
            let goes_on = matches!((&now.0, &state), (State::Lost { .. }, State::Lost { .. }));
            let is_new = now.0 != state && !goes_on;
            if is_new {
                now.1 = self.clock.now();
            }
            now.0 = state.clone();
            is_new
        };
        if let (true, Some(hear)) = (told, &self.hearing.0) {
            hear(&state);
        }
    }

    pub(crate) fn read(&self) -> Condition {
        let now = self.lock();
        Condition { state: now.0.clone(), lasts: self.clock.now() - now.1 }
    }
}
