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
    /// Stores bytes, see [`Store::write_at`].
    Write {
        /// The first byte.
        offset: u64,
        /// The bytes.
        data: Arc<[u8]>,
    },
    /// Makes every operation that has ended durable.
    Sync,
}

impl Operation {
    /// Executes the operation and waits for its end. Returns the bytes of a read, and no bytes for
    /// anything else.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub fn run(&self, store: &dyn Store) -> Result<Vec<u8>> {
        match self {
            Self::Read { offset, len } => {
                let mut bytes = vec![0; *len];
                store.read_at(*offset, &mut bytes)?;
                Ok(bytes)
            }
            Self::Write { offset, data } => store.write_at(*offset, data).map(|()| Vec::new()),
            Self::Sync => store.sync().map(|()| Vec::new()),
        }
    }
}

/// The receiver of an operation's result, which is that of [`Operation::run`].
pub struct Then(Box<dyn FnOnce(Result<Vec<u8>>) + Send>);

impl Then {
    /// Makes a receiver of a function. It is called on any thread, and must not wait.
    pub fn new(then: impl FnOnce(Result<Vec<u8>>) + Send + 'static) -> Self {
        Self(Box::new(then))
    }

    /// Hands over the result.
    pub fn call(self, result: Result<Vec<u8>>) {
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
