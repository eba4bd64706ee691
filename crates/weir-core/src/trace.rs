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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cap, DeviceId, Op, Waits};
    use alloc::collections::BTreeSet;
    use weir_units::{Instant, Span};

    /// Notices a field that is left out, or a hash that is the same for all runs.
    #[test]
    fn each_time_length_device_and_wait_changes_the_hash() {
        let (time, span) = (Instant::from_nanos, Span::from_nanos);
        let wait = |cap, nanos| {
            let mut waits = Waits::default();
            waits.charge(cap, span(nanos));
            waits
        };
        let (arrived, at, waits) = (time(10), time(1_000), wait(Cap::DiskBytes, 90));
        let (device, op, len, medium, hit) = (DeviceId(0), Op::Read, 4096, span(900), false);
        let base = Completion { tag: 0, device, op, len, arrived, at, waits, medium, hit };
        let all = [
            base,
            Completion { at: time(1_001), ..base },
            Completion { arrived: time(11), ..base },
            Completion { len: 4097, ..base },
            Completion { device: DeviceId(1), ..base },
            Completion { medium: span(901), ..base },
            Completion { waits: wait(Cap::LogRate, 90), ..base },
            Completion { waits: wait(Cap::DiskIops, 90), ..base },
        ];
        let hash = |completion: &Completion| {
            let mut hash = TraceHash::default();
            hash.record(completion);
            hash.get()
        };
        let hashes: BTreeSet<u64> = all.iter().map(hash).collect();
        assert_eq!(hashes.len(), all.len());
        assert_eq!(hash(&Completion { tag: 7, ..base }), hash(&base), "drivers number freely");
    }
}
