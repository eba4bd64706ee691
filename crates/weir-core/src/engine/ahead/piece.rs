//! The pieces of the requests of a host that admits ahead.

use super::super::route::{Route, Routed};
use super::super::types::{Op, Totals};
use crate::gate::{Link, Passes};
use crate::spec::Place;
use crate::waits::{Cap, Waits};
use alloc::vec::Vec;
use core::ops::{Index, IndexMut, Range};
use weir_units::{Instant, Span};

/// The caps without a burst, by the place of a volume. A piece waits at no others.
const REMOTE: [Cap; 4] =
    [Cap::DiskIops, Cap::DiskBytes, Cap::HostUncachedIops, Cap::HostUncachedBytes];
const REMOTE_WRITES: [Cap; 4] =
    [Cap::DiskIops, Cap::DiskBytes, Cap::HostWriteIops, Cap::HostWriteBytes];
const LOCAL: [Cap; 4] = [Cap::DiskIops, Cap::DiskBytes, Cap::HostCachedIops, Cap::HostCachedBytes];

/// The limits of a host that a piece passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostLimits {
    Remote,
    RemoteWrites,
    Local,
}

impl HostLimits {
    pub(super) fn new(place: Place, op: Op, has_separate_writes: bool) -> Self {
        match place {
            Place::Local => Self::Local,
            Place::Remote if has_separate_writes && op != Op::Read => Self::RemoteWrites,
            Place::Remote => Self::Remote,
        }
    }
}

/// A request on one disk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    /// The number of its request.
    pub(super) request: u32,
    pub(super) volume: u32,
    pub(super) len: u32,
    pub(super) operations: u32,
    pub(super) bytes: u32,
    pub(super) limits: HostLimits,
    pub(super) route: Route,
    pub(super) is_counted: bool,
    pub(super) at_gate: Instant,
    /// In the order of [`REMOTE`].
    pub(super) waits: [Span; 4],
    pub(super) link: Link,
    pub(super) serial: u64,
    pub(super) medium: Span,
    /// The completion; [`Instant::FAR`] until it is known.
    pub(super) done: Instant,
}

impl Piece {
    const EMPTY: Self = Self {
        request: 0,
        volume: 0,
        len: 0,
        operations: 0,
        bytes: 0,
        limits: HostLimits::Remote,
        route: Route(0),
        is_counted: false,
        at_gate: Instant::ZERO,
        waits: [Span::ZERO; 4],
        link: Link::EMPTY,
        serial: 0,
        medium: Span::ZERO,
        done: Instant::FAR,
    };

    /// Counts it as done.
    pub(super) fn count(&self, op: Op, totals: &mut Totals) {
        totals.count(op, u64::from(self.len));
        totals.counted += u64::from(self.operations);
        totals.medium += self.medium;
        self.charge_to(&mut totals.waits);
    }

    /// Adds its waits to others.
    pub(super) fn charge_to(&self, waits: &mut Waits) {
        let caps = match self.limits {
            HostLimits::Remote => REMOTE,
            HostLimits::RemoteWrites => REMOTE_WRITES,
            HostLimits::Local => LOCAL,
        };
        for (cap, wait) in caps.into_iter().zip(self.waits) {
            waits.charge(cap, wait);
        }
    }
}

impl Passes for Piece {
    fn volume(&self) -> usize {
        self.volume as usize
    }

    fn operations(&self) -> u32 {
        self.operations
    }

    fn bytes(&self) -> u32 {
        self.bytes
    }

    fn at_gate(&self) -> Instant {
        self.at_gate
    }

    fn set_at_gate(&mut self, at: Instant) {
        self.at_gate = at;
    }

    fn link(&self) -> &Link {
        &self.link
    }

    fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }

    fn charge(&mut self, cap: Cap, wait: Span) {
        let at = match cap {
            Cap::DiskIops => 0,
            Cap::DiskBytes => 1,
            Cap::HostUncachedIops | Cap::HostWriteIops | Cap::HostCachedIops => 2,
            _ => 3,
        };
        self.waits[at] += wait;
    }
}

impl Routed for Piece {
    fn route_mut(&mut self) -> &mut Route {
        &mut self.route
    }
}

/// Pieces in runs: those of one request lie side by side.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    all: Vec<Piece>,
    /// Unused runs, by the power of two that is their length.
    spare: Vec<Vec<usize>>,
}

impl Pieces {
    /// Takes a run for `count` pieces, which the caller fills; returns the key of the first.
    pub(super) fn take(&mut self, count: usize) -> usize {
        let power = count.next_power_of_two();
        let spare = self.spare.get_mut(power.trailing_zeros() as usize);
        spare.and_then(Vec::pop).unwrap_or_else(|| {
            let first = self.all.len();
            self.all.resize(first + power, Piece::EMPTY);
            first
        })
    }

    /// Gives back a run from [`take`](Self::take).
    pub(super) fn give_back(&mut self, first: usize, count: usize) {
        let power = count.next_power_of_two().trailing_zeros() as usize;
        if self.spare.len() <= power {
            self.spare.resize(power + 1, Vec::new());
        }
        self.spare[power].push(first);
    }

    pub(super) fn run(&self, range: Range<usize>) -> &[Piece] {
        &self.all[range]
    }

    pub(super) fn run_mut(&mut self, range: Range<usize>) -> &mut [Piece] {
        &mut self.all[range]
    }
}

impl Index<usize> for Pieces {
    type Output = Piece;

    fn index(&self, key: usize) -> &Piece {
        &self.all[key]
    }
}

impl IndexMut<usize> for Pieces {
    fn index_mut(&mut self, key: usize) -> &mut Piece {
        &mut self.all[key]
    }
}

#[cfg(test)]
mod tests {
    use super::Pieces;

    /// Notices pieces that take new memory with each request.
    #[test]
    fn a_run_is_used_again_by_as_many_pieces_as_fit_it() {
        let mut pieces = Pieces::default();
        let (three, one) = (pieces.take(3), pieces.take(1));
        pieces.give_back(three, 3);
        pieces.give_back(one, 1);
        assert_eq!([pieces.take(1), pieces.take(4)], [one, three]);
        assert_eq!(pieces.all.len(), 5);
    }
}
