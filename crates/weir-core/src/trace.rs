//! A fingerprint of a run: equal for two runs exactly if the engine admitted the
//! same requests at the same nanosecond and charged the same waits.

use crate::engine::Completion;
use weir_random::mix;

/// A sum of hashes, one of each completion: in which order a driver hears of
/// completions of the same moment is not a part of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TraceHash(u64);

impl TraceHash {
    /// Takes in a completion. The driver's tag is left out: drivers number freely.
    #[inline]
    pub fn record(&mut self, c: &Completion) {
        // Each value by an odd factor of its own, so that none waits for another.
        let mut factor = 0x9E37_79B9_7F4A_7C15_u64;
        let mut fold = |word: u64| {
            factor = factor.wrapping_add(0x3C6E_F372_FE94_F82A);
            word.wrapping_mul(factor)
        };
        let times = fold(c.arrived.nanos()).wrapping_add(fold(c.at.nanos()));
        let what = fold(c.device.0 as u64).wrapping_add(fold(c.len));
        let mut folded = times.wrapping_add(what).wrapping_add(fold(c.medium.nanos()));
        for cap in crate::Cap::ALL {
            folded = folded.wrapping_add(fold(c.waits[cap]));
        }
        self.0 = self.0.wrapping_add(mix(folded));
    }

    /// The hash so far.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }
}
