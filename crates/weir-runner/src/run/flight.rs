//! Requests in flight.

use weir_units::Instant;
use weir_workload::Op;

/// A request in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flight {
    pub(super) issued: Instant,
    pub(super) offset: u64,
    pub(super) length: u32,
    pub(super) process: u32,
    pub(super) op: Op,
}
