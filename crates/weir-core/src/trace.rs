//! A fingerprint of a run: equal for two runs exactly if the engine admitted the
//! same requests at the same nanosecond and charged the same waits.

use crate::engine::Completion;

/// A multiplicative hash over every completion, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceHash(u64);

impl Default for TraceHash {
    fn default() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }
}

impl TraceHash {
    /// Takes in a completion. The driver's tag is left out: drivers number freely.
    pub fn record(&mut self, c: &Completion) {
        self.word(c.arrived.nanos());
        self.word(c.at.nanos());
        // What follows is folded first, each value by an odd factor of its own, so
        // that the chain of dependent steps stays short.
        let mut factor = 0x9E37_79B9_7F4A_7C15_u64;
        let mut fold = |word: u64| {
            factor = factor.wrapping_add(0x3C6E_F372_FE94_F82A);
            word.wrapping_mul(factor)
        };
        let device = fold(c.device.0 as u64);
        let mut folded = device ^ fold(c.len) ^ fold(c.medium.nanos());
        for cap in crate::Cap::ALL {
            folded = folded.wrapping_add(fold(c.waits[cap]));
        }
        self.word(folded);
    }

    /// The hash so far.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }

    fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(29);
    }
}
