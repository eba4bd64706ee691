//! Samples of what a server has confirmed as durable. One that comes back with other bytes has not kept what it
//! flushed.

use crate::unflushed::Payload;
use std::collections::VecDeque;

/// Most samples. The newest are kept, since a server that syncs too late loses these.
pub(crate) const MOST: usize = 32;
/// Most bytes of a sample.
const LONGEST: usize = 4 << 10;

/// A part of a durable write: the first 4 KiB that are not all zeros.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) offset: u64,
    bytes: Box<[u8]>,
}

impl Sample {
    /// Returns the number of its bytes, at most 4 KiB.
    pub(crate) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Returns whether `found` begins with its bytes.
    pub(crate) fn matches(&self, found: &[u8]) -> bool {
        found.starts_with(&self.bytes)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Witness(VecDeque<Sample>);

impl Witness {
    /// Adds a durable write, which becomes the newest. Zeros are left out: an empty server has them, too.
    pub(crate) fn add(&mut self, offset: u64, payload: &Payload) {
        let Payload::Bytes { all, start, len } = payload else { return };
        let parts = all[*start..start + len].chunks(LONGEST).zip(0..);
        let mut written = parts.filter(|(part, _)| part.iter().any(|byte| *byte != 0));
        if let Some((part, at)) = written.next() {
            self.0.truncate(MOST - 1);
            self.0.push_front(Sample { offset: offset + at * LONGEST as u64, bytes: part.into() });
        }
    }

    /// Forgets what a write is about to change.
    pub(crate) fn cut(&mut self, offset: u64, len: u64) {
        self.0.retain(|own| own.offset + own.len() <= offset || offset + len <= own.offset);
    }

    pub(crate) fn samples(&self) -> Vec<Sample> {
        self.0.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(byte: u8, len: usize) -> Payload {
        Payload::bytes(vec![byte; len].into())
    }

    fn offsets(witness: &Witness) -> Vec<u64> {
        witness.samples().iter().map(|own| own.offset / 512).collect()
    }

    #[test]
    fn the_newest_samples_are_kept_until_they_are_overwritten() {
        let (mut own, payload) = (Witness::default(), bytes(1, 512));
        (0..40).for_each(|n| own.add(n * 512, &payload));
        assert_eq!(offsets(&own), (8..40).rev().collect::<Vec<_>>());
        own.cut(0, 11 * 512 + 1);
        assert_eq!(offsets(&own), (12..40).rev().collect::<Vec<_>>());
        own.cut(20 * 512 - 1, 1);
        own.cut(40 * 512, 512);
        assert_eq!(offsets(&own).len(), 27);
        assert!(!offsets(&own).contains(&19));
    }

    #[test]
    fn a_sample_is_a_part_of_a_write_and_every_byte_of_it_counts() {
        let mut own = Witness::default();
        own.add(0, &bytes(1, 512));
        own.add(8192, &bytes(2, 8192));
        for (sample, (byte, len)) in own.samples().iter().zip([(2, 4096), (1, 512)]) {
            assert_eq!(sample.len(), len as u64);
            let mut found = vec![byte; len];
            assert!(sample.matches(&found) && !sample.matches(&found[1..]));
            found.push(9);
            assert!(sample.matches(&found), "what follows does not matter");
            for at in [0, len - 1] {
                let mut other = found.clone();
                other[at] ^= 1;
                assert!(!sample.matches(&other));
            }
        }
    }

    #[test]
    fn a_write_that_begins_with_zeros_is_sampled_behind_them() {
        let mut own = Witness::default();
        let mut written = vec![0; 10_000];
        written[9_999] = 1;
        own.add(512, &Payload::bytes(written.into()));
        let samples = own.samples();
        assert_eq!((samples[0].offset, samples[0].len()), (512 + 8192, 10_000 - 8192));
    }

    #[test]
    fn zeros_prove_nothing() {
        let mut own = Witness::default();
        own.add(0, &Payload::Zeros { len: 4096, keeps_space: true });
        own.add(4096, &bytes(0, 4096));
        assert!(own.samples().is_empty());
    }
}
