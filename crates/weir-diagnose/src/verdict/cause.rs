//! Causes outside the limits of storage.

/// A cause that is no cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Processors are busy.
    Cpu,
    /// Sessions wait for locks.
    Locks,
    /// Clients do not take what they asked for.
    Client,
    /// Queries wait for memory to run in.
    MemoryGrants,
    /// Pages in memory are wanted by many at a time.
    PageLatch,
    /// Workers of a query wait for each other.
    Parallelism,
    /// The medium is slow.
    SlowMedium,
    /// Memory is too small for what is read.
    CachePressure,
}
