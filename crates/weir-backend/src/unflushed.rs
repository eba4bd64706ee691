//! Answered writes that no flush covers: a map without overlaps, so they can be written again in any
//! order.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The content of a range.
#[derive(Debug, Clone)]
pub(crate) enum Payload {
    /// Bytes, from `start` on.
    Bytes { all: Arc<[u8]>, start: usize, len: usize },
    /// Zeros, which keep their space if `keeps_space`.
    Zeros { len: u64, keeps_space: bool },
}

impl Payload {
    /// Returns all of `all`.
    pub(crate) fn bytes(all: Arc<[u8]>) -> Self {
        let len = all.len();
        Self::Bytes { all, start: 0, len }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Bytes { len, .. } => *len as u64,
            Self::Zeros { len, .. } => *len,
        }
    }

    /// Returns the bytes of memory that it takes.
    pub(crate) fn held(&self) -> u64 {
        match self {
            Self::Bytes { len, .. } => *len as u64,
            Self::Zeros { .. } => 0,
        }
    }

    /// Returns a part of it. Small parts are copied, so that they do not keep the whole.
    fn part(&self, from: u64, to: u64) -> Self {
        match self {
            Self::Zeros { keeps_space, .. } => {
                Self::Zeros { len: to - from, keeps_space: *keeps_space }
            }
            Self::Bytes { all, start, .. } => {
                let (from, to) = (start + index(from), start + index(to));
                if (to - from) * 2 < all.len() {
                    Self::bytes(all[from..to].into())
                } else {
                    Self::Bytes { all: Arc::clone(all), start: from, len: to - from }
                }
            }
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "within a buffer that is in memory")]
fn index(n: u64) -> usize {
    n as usize
}

/// The memory that an entry takes beside its bytes.
const ENTRY: u64 = 128;

#[derive(Debug, Clone)]
struct Piece {
    payload: Payload,
    /// The number of its answer.
    number: u64,
    /// A later write of the same bytes has failed, so the server may have others.
    is_doubtful: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Unflushed {
    pieces: BTreeMap<u64, Piece>,
    held: u64,
}

impl Unflushed {
    /// Returns the memory that it takes.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    /// Adds a write that was answered as the `number`th, over those before it.
    pub(crate) fn add(&mut self, offset: u64, payload: Payload, number: u64) {
        self.cut(offset, payload.len());
        self.insert(offset, Piece { payload, number, is_doubtful: false });
    }

    /// Forgets a range.
    pub(crate) fn cut(&mut self, offset: u64, len: u64) {
        let end = offset + len;
        let before = self.pieces.range(..offset).next_back();
        let first = before.filter(|(at, piece)| *at + piece.payload.len() > offset);
        let first = first.map_or(offset, |(at, _)| *at);
        let covered: Vec<u64> = self.pieces.range(first..end).map(|(at, _)| *at).collect();
        for at in covered {
            let Some(old) = self.remove(at) else { continue };
            let whole = old.payload.len();
            if at < offset {
                self.insert(at, Piece { payload: old.payload.part(0, offset - at), ..old });
            }
            if at + whole > end {
                self.insert(end, Piece { payload: old.payload.part(end - at, whole), ..old });
            }
        }
    }

    fn insert(&mut self, at: u64, piece: Piece) {
        self.held += ENTRY + piece.payload.held();
        self.pieces.insert(at, piece);
    }

    fn remove(&mut self, at: u64) -> Option<Piece> {
        let piece = self.pieces.remove(&at)?;
        self.held -= ENTRY + piece.payload.held();
        Some(piece)
    }

    /// Returns the newest `most` writes up to the `number`th, in any order, without those that a failed write may have
    /// changed.
    pub(crate) fn newest(&self, number: u64, most: usize) -> Vec<(u64, &Payload)> {
        let pieces = self.pieces.iter();
        let sure = pieces.filter(|(_, piece)| piece.number <= number && !piece.is_doubtful);
        let mut sure: Vec<_> = sure.collect();
        if sure.len() > most {
            sure.select_nth_unstable_by_key(most, |(_, piece)| Reverse(piece.number));
            sure.truncate(most);
        }
        sure.into_iter().map(|(at, piece)| (*at, &piece.payload)).collect()
    }

    /// Takes in that a write of this range has failed, and may have changed some of it.
    pub(crate) fn doubt(&mut self, offset: u64, len: u64) {
        for (at, piece) in self.pieces.range_mut(..offset + len).rev() {
            // Pieces do not overlap, so those before this one end before it, too.
            if at + piece.payload.len() <= offset {
                return;
            }
            piece.is_doubtful = true;
        }
    }

    /// Forgets all up to the `number`th, which are durable.
    pub(crate) fn forget(&mut self, number: u64) {
        self.pieces.retain(|_, piece| piece.number > number);
        self.held = self.pieces.values().map(|own| ENTRY + own.payload.held()).sum();
    }

    /// Returns the first piece from `from` on.
    pub(crate) fn next(&self, from: u64) -> Option<(u64, Payload)> {
        let (at, piece) = self.pieces.range(from..).next()?;
        Some((*at, piece.payload.clone()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The model is an array of (byte, number of the write).
        #[test]
        fn it_holds_the_newest_bytes_that_no_flush_covers(
            ops in prop::collection::vec((0_u64..64, 1_u64..20, 0_u8..5, any::<bool>()), 0..40),
        ) {
            let mut own = Unflushed::default();
            let mut model = [None::<(u8, u64)>; 90];
            for (number, (offset, len, byte, flush)) in (1..).zip(ops) {
                let payload = match byte {
                    0 => Some(Payload::Zeros { len, keeps_space: false }),
                    4 => None,
                    _ => Some(Payload::bytes(vec![byte; index(len)].into())),
                };
                let newest = payload.as_ref().map(|_| (byte, number));
                match payload {
                    Some(payload) => own.add(offset, payload, number),
                    None => own.cut(offset, len),
                }
                model[index(offset)..index(offset + len)].fill(newest);
                if flush {
                    own.forget(number - 1);
                    model.iter_mut().for_each(|at| *at = at.filter(|(_, of)| *of >= number));
                }
                let (mut found, mut at, mut held) = ([None; 90], 0, 0);
                while let Some((start, payload)) = own.next(at) {
                    for n in 0..payload.len() {
                        let byte = match &payload {
                            Payload::Zeros { .. } => 0,
                            Payload::Bytes { all, start, .. } => all[start + index(n)],
                        };
                        prop_assert_eq!(found[index(start + n)].replace(byte), None);
                    }
                    held += ENTRY + payload.held();
                    at = start + payload.len();
                }
                prop_assert_eq!(found, model.map(|own| own.map(|(byte, _)| byte)));
                prop_assert_eq!((held, own.is_empty()), (own.held(), held == 0));
            }
        }
    }
}
