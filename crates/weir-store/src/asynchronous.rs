//! Operations that end later, without a thread that waits for them.

use crate::Result;
use crate::store::Store;
use std::fmt::{self, Debug};
use std::sync::Arc;

/// An operation of a store.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Reads `len` bytes from `offset` on.
    Read {
        /// The first byte.
        offset: u64,
        /// The number of bytes.
        len: usize,
    },
    /// Stores bytes, see [`Store::write_at`], or [`Store::write_durably`] if `durably`.
    Write {
        /// The first byte.
        offset: u64,
        /// The bytes.
        data: Arc<[u8]>,
        /// The bytes should be durable.
        durably: bool,
    },
    /// Makes every operation that has ended durable.
    Sync,
}

/// The result of an operation that succeeded.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The bytes of a read.
    Bytes(Vec<u8>),
    /// A sync has ended, or the bytes are stored. The next sync makes them durable.
    Done,
    /// The bytes are stored and durable.
    Durable,
}

impl Operation {
    /// Executes the operation and waits for its end.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub fn run(&self, store: &dyn Store) -> Result<Outcome> {
        match self {
            Self::Read { offset, len } => {
                let mut bytes = vec![0; *len];
                store.read_at(*offset, &mut bytes)?;
                Ok(Outcome::Bytes(bytes))
            }
            Self::Write { offset, data, durably: true } => {
                let is_durable = store.write_durably(*offset, data)?;
                Ok(if is_durable { Outcome::Durable } else { Outcome::Done })
            }
            Self::Write { offset, data, durably: false } => {
                store.write_at(*offset, data).map(|()| Outcome::Done)
            }
            Self::Sync => store.sync().map(|()| Outcome::Done),
        }
    }
}

/// The receiver of an operation's result, which is that of [`Operation::run`].
pub struct Then(Box<dyn FnOnce(Result<Outcome>) + Send>);

impl Then {
    /// Makes a receiver of a function. It is called on any thread, and must not wait.
    pub fn new(then: impl FnOnce(Result<Outcome>) + Send + 'static) -> Self {
        Self(Box::new(then))
    }

    /// Hands over the result.
    pub fn call(self, result: Result<Outcome>) {
        (self.0)(result);
    }
}

impl fmt::Debug for Then {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Then")
    }
}

/// A store whose operations end later, see [`Store::asynchronous`].
pub trait AsyncStore: Debug {
    /// Takes an operation, or returns both arguments if this one needs a thread that waits. It may begin
    /// as late as the next [`AsyncStore::kick`].
    #[must_use = "what is returned was not taken"]
    fn submit(&self, operation: Operation, then: Then) -> Option<(Operation, Then)>;

    /// Begins all operations that were submitted. One call for many costs less than one for each.
    fn kick(&self);
}
