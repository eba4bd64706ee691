//! Samples of what a server has confirmed as durable. One that comes back with other bytes has not kept what it
//! flushed.

use crate::unflushed::Payload;
use std::collections::VecDeque;

/// Most samples. The newest are kept, since a server that syncs too late loses these.
const MOST: usize = 32;
/// Most bytes of a sample.
const LONGEST: u64 = 4 << 10;

/// The beginning of a durable write.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) offset: u64,
    payload: Payload,
}

impl Sample {
    fn new(offset: u64, payload: &Payload) -> Self {
        Self { offset, payload: payload.start(LONGEST) }
    }

    /// Returns the number of its bytes, at most 4 KiB.
    pub(crate) fn len(&self) -> u64 {
        self.payload.len()
    }

    /// Returns whether `found` begins with its bytes.
    pub(crate) fn is_in(&self, found: &[u8]) -> bool {
        match &self.payload {
            Payload::Bytes { all, start, len } => found.starts_with(&all[*start..start + len]),
            Payload::Zeros { len, .. } => {
                found.iter().zip(0..*len).all(|(byte, _)| *byte == 0) && found.len() as u64 >= *len
            }
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Witness(VecDeque<Sample>);

impl Witness {
    /// Adds durable writes, given from the newest on.
    pub(crate) fn add<'a>(&mut self, newest: impl Iterator<Item = (u64, &'a Payload)>) {
        let new: Vec<Sample> =
            newest.take(MOST).map(|(offset, payload)| Sample::new(offset, payload)).collect();
        self.0.truncate(MOST - new.len());
        new.into_iter().rev().for_each(|sample| self.0.push_front(sample));
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
        witness.samples().iter().map(|own| own.offset).collect()
    }

    #[test]
    fn the_newest_samples_are_kept_until_they_are_overwritten() {
        let (mut own, payload) = (Witness::default(), bytes(1, 512));
        own.add((0..20).map(|n| (n * 512, &payload)));
        own.add((100..120).map(|n| (n * 512, &payload)));
        let expected = (100..120).chain(0..12).map(|n| n * 512);
        assert_eq!(offsets(&own), expected.collect::<Vec<_>>());
        own.cut(0, 11 * 512 + 1);
        assert_eq!(offsets(&own), (100..120).map(|n| n * 512).collect::<Vec<_>>());
        own.cut(110 * 512 - 1, 1);
        own.cut(120 * 512, 512);
        assert_eq!(offsets(&own).len(), 19);
        own.add((0..50).map(|n| (n * 512, &payload)));
        assert_eq!(offsets(&own), (0..32).map(|n| n * 512).collect::<Vec<_>>());
    }

    #[test]
    fn a_sample_is_the_beginning_of_a_write_and_every_byte_of_it_counts() {
        let mut own = Witness::default();
        let zeros = Payload::Zeros { len: 1 << 30, keeps_space: false };
        own.add([(0, &bytes(1, 512)), (8192, &bytes(2, 8192)), (1 << 20, &zeros)].into_iter());
        for (sample, (byte, len)) in own.samples().iter().zip([(1, 512), (2, 4096), (0, 4096)]) {
            assert_eq!(sample.len(), len as u64);
            let mut found = vec![byte; len];
            assert!(sample.is_in(&found) && !sample.is_in(&found[1..]));
            found.push(9);
            assert!(sample.is_in(&found), "what follows does not matter");
            for at in [0, len - 1] {
                let mut other = found.clone();
                other[at] ^= 1;
                assert!(!sample.is_in(&other));
            }
        }
    }
}
