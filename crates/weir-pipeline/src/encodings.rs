//! The time and the result size of encodings in virtual time, where nothing is encoded.

use crate::pipeline::{Encode, Plan};
use weir_units::{Instant, Span};

/// The encodings of a backup in virtual time.
#[derive(Debug)]
pub struct Encodings {
    compressed_per_mille: u32,
    compression_per_mib: Span,
    /// The end of each encoding, its buffer, and the encoded length.
    in_flight: Vec<(Instant, u32, u32)>,
}

impl Encodings {
    /// Takes the costs from a plan.
    #[must_use]
    pub const fn new(plan: &Plan) -> Self {
        let Plan { compressed_per_mille, compression_per_mib, .. } = *plan;
        Self { compressed_per_mille, compression_per_mib, in_flight: Vec::new() }
    }

    /// Starts an encoding at `now`.
    pub fn start(&mut self, now: Instant, encode: &Encode) {
        let nanos = u128::from(self.compression_per_mib.nanos()) * u128::from(encode.len);
        let nanos = u64::try_from(nanos >> 20).unwrap_or(u64::MAX).max(1);
        let done = now + Span::from_nanos(nanos);
        self.in_flight.push((done, encode.buffer, self.compressed(encode.len)));
    }

    /// Returns when the next encoding ends.
    #[must_use]
    pub fn poll_deadline(&self) -> Option<Instant> {
        self.in_flight.iter().map(|(done, ..)| *done).min()
    }

    /// Returns the buffer and the encoded length of an encoding that has ended by `now`.
    pub fn poll_done(&mut self, now: Instant) -> Option<(u32, u32)> {
        let at = self.in_flight.iter().position(|(done, ..)| *done <= now)?;
        let (_, buffer, len) = self.in_flight.remove(at);
        Some((buffer, len))
    }

    /// Returns the compressed size of bytes, in whole sectors.
    fn compressed(&self, len: u32) -> u32 {
        let bytes = u64::from(len) * u64::from(self.compressed_per_mille.min(1000)) / 1000;
        let sectors = bytes.div_ceil(512).max(1) * 512;
        u32::try_from(sectors).unwrap_or(len).min(len.max(512))
    }
}
