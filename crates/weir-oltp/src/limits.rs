//! Limits of an OLTP description.

use crate::model::PAGE;
use weir_units::Bytes;

/// Maximum number of users.
pub(crate) const MAX_USERS: u32 = 1_000_000;
/// Maximum mean number of pages of a transaction.
pub(crate) const MAX_MEAN: f64 = 1_000_000.0;
/// Maximum working set. Each of its pages takes 2 to 6 bytes of memory.
pub(crate) const MAX_WORKING_SET: Bytes = Bytes::gib(4 << 10);
/// Minimum working set.
pub(crate) const PAGE_SIZE: Bytes = Bytes::new(PAGE);
