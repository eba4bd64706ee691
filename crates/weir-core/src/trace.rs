//! A fingerprint of a run: equal for two runs exactly if the engine admitted the
//! same requests at the same nanosecond and charged the same waits.

use crate::engine::Completion;

/// FNV-1a over every completion, in order.
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
        self.word(c.device.0 as u64);
        self.word(c.len);
        self.word(c.arrived.nanos());
        self.word(c.at.nanos());
        self.word(c.medium.nanos());
        for cap in crate::Cap::ALL {
            self.word(c.waits[cap]);
        }
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
