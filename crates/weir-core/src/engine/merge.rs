//! Adjacent I/Os that count as one.
//!
//! A cloud that merges physically sequential I/Os can do so only while they are in its queue. An
//! I/O therefore joins the one before it if that still waits at the disk's limits, if it begins
//! where that ends, and if both are reads or both are writes. A discard ends the run. The run counts as a single I/O of its
//! total size, in units:
//!
//! ```text
//!   waiting:    4 KiB  4 KiB  ..  4 KiB  4 KiB        unit 256 KiB
//!   counts:       1      0          0      1
//!                 |------- 64 I/Os ------|
//! ```

use super::types::Op;
use core::num::NonZeroU64;
use weir_units::Instant;

/// The last run of adjacent I/Os of a volume.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Run {
    next: u64,
    is_read: bool,
    bytes: u64,
    /// The admission of the last I/O, where it is known ahead.
    pub(super) admitted: Instant,
}

impl Run {
    /// Ends the run: no later I/O joins it.
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }

    /// Returns the operations that an I/O counts; `is_held` if the last one still waits.
    pub(super) fn count(
        &mut self,
        unit: NonZeroU64,
        (op, offset, len): (Op, u64, u64),
        is_held: bool,
    ) -> u64 {
        let is_read = op == Op::Read;
        if is_held && self.next == offset && self.is_read == is_read {
            let before = self.bytes.div_ceil(unit.get());
            self.bytes += len;
            self.next += len;
            return self.bytes.div_ceil(unit.get()) - before;
        }
        *self = Self { next: offset + len, is_read, bytes: len, ..*self };
        len.div_ceil(unit.get())
    }
}
