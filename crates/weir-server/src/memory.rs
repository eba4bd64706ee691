//! Memory for the payloads of a host's clients: received writes and unsent replies.
//!
//! Every client has [`BASE`] bytes of its own, which most never exceed. Larger holdings come from the
//! budget of the host. A client that holds some of it may hold as much as is left for others, so a
//! client that takes no replies waits for itself. A quarter of the budget is kept for small holdings.
//!
//! The budget belongs to the host's thread, so there are no locks. A request costs two subtractions
//! and a comparison.

use crate::host_loop::ClientId;
use std::collections::VecDeque;

/// Buffer of a connection for input; its output has as much. A client has both for itself.
pub(crate) const INPUT: usize = 256 << 10;
/// Bytes that a client may hold without the budget.
const BASE: usize = 2 * INPUT;
/// Holdings up to this size use all of the budget.
const SMALL: usize = 2 << 20;
/// Most bytes of the budget that one client holds: the largest write, as it was received and as it is written.
const MOST: usize = 2 * weir_proto::wire::MAX_PAYLOAD as usize;
/// Least budget of a host: a client with the largest request, and room for others.
const LEAST: usize = 2 * MOST;

/// The budget of a host.
#[derive(Debug)]
pub(crate) struct Memory {
    all: usize,
    used: usize,
    /// Memory was released since this was last asked.
    freed: bool,
    /// Clients that wait for memory, in order.
    pub(crate) waiting: VecDeque<ClientId>,
}

/// The part of a client.
#[derive(Debug, Default)]
pub(crate) struct Share {
    /// Bytes of the budget that it holds.
    extra: usize,
    /// Bytes by which its holdings may grow.
    pub(crate) room: usize,
    /// It holds as much as it may.
    pub(crate) is_over: bool,
    /// More than half of the budget is used, so no unused memory should be kept.
    pub(crate) is_tight: bool,
}

impl Memory {
    /// Divides the memory of a server among its hosts.
    pub(crate) fn new(all: usize, hosts: usize) -> Self {
        let all = (all / hosts.max(1)).max(LEAST);
        Self { all, used: 0, freed: false, waiting: VecDeque::new() }
    }

    /// Charges a client that holds `held` bytes.
    #[inline]
    pub(crate) fn settle(&mut self, share: &mut Share, held: usize) {
        let extra = held.saturating_sub(BASE);
        if extra != share.extra {
            self.freed |= extra < share.extra;
            self.used = self.used - share.extra + extra;
            share.extra = extra;
        }
        let growth = self.growth(extra);
        share.room = BASE.saturating_sub(held) + growth;
        share.is_over = extra > 0 && growth == 0;
        share.is_tight = self.used > self.all / 2;
    }

    /// Releases what a client held.
    pub(crate) fn release(&mut self, share: &Share) {
        self.freed |= share.extra > 0;
        self.used -= share.extra;
    }

    /// Returns how many bytes of the budget a client that holds `extra` of it may take.
    #[inline]
    fn growth(&self, extra: usize) -> usize {
        let free = self.all.saturating_sub(self.used);
        let large = free.saturating_sub(self.all / 4);
        // The first request is admitted whatever its size.
        let fair = if extra == 0 { MOST } else { free.saturating_sub(extra) / 2 };
        let large = large.min(fair).min(MOST.saturating_sub(extra));
        large.max(free.min(SMALL.saturating_sub(extra)))
    }

    /// Returns whether memory was released for which clients wait.
    pub(crate) fn is_awaited(&self) -> bool {
        self.freed && !self.waiting.is_empty()
    }

    /// Returns whether memory was released since the last call, for which clients wait.
    pub(crate) fn has_freed(&mut self) -> bool {
        let is_awaited = self.is_awaited();
        self.freed = false;
        is_awaited
    }

    /// Notes that memory is left for further clients that wait.
    pub(crate) const fn look_again(&mut self) {
        self.freed = true;
    }

    /// Returns the used bytes of the budget.
    #[cfg(test)]
    pub(crate) const fn used(&self) -> usize {
        self.used
    }
}

impl Share {
    /// Returns whether the client holds a part of the budget.
    pub(crate) const fn holds_some(&self) -> bool {
        self.extra > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    /// Lets a client hold `len` more bytes if it may; returns whether it may.
    fn take(memory: &mut Memory, (share, held): &mut (Share, usize), len: usize) -> bool {
        memory.settle(share, *held);
        let may = len <= share.room;
        if may {
            *held += len;
            memory.settle(share, *held);
        }
        may
    }

    fn client() -> (Share, usize) {
        (Share::default(), 0)
    }

    #[test]
    fn clients_that_hold_much_leave_room_for_others() {
        let mut memory = Memory::new(512 * MIB, 1);
        let mut deaf: Vec<_> = std::iter::repeat_with(client).take(160).collect();
        for _ in 0..8 {
            for one in &mut deaf {
                take(&mut memory, one, 64 * MIB);
            }
        }
        assert!(memory.used() <= 384 * MIB, "{}", memory.used());
        assert!(deaf.iter().all(|(_, held)| *held <= 128 * MIB + BASE));
        // Others go on with requests of any usual size, and without the budget in any case.
        let mut others: Vec<_> = std::iter::repeat_with(client).take(60).collect();
        assert!(others.iter_mut().all(|one| take(&mut memory, one, 2 * MIB)));
        let mut more: Vec<_> = std::iter::repeat_with(client).take(1000).collect();
        assert!(more.iter_mut().all(|one| take(&mut memory, one, BASE)));
        assert!(memory.used() <= 512 * MIB, "{}", memory.used());
        // What the first ones give back is for the largest request again.
        assert!(!take(&mut memory, &mut client(), 64 * MIB));
        deaf.drain(..12).for_each(|(share, _)| memory.release(&share));
        assert!(take(&mut memory, &mut client(), 64 * MIB));
    }

    #[test]
    fn a_client_alone_holds_its_most_and_what_it_releases_is_noticed() {
        let mut memory = Memory::new(512 * MIB, 8);
        let mut one = client();
        assert!(take(&mut memory, &mut one, 64 * MIB));
        assert!(take(&mut memory, &mut one, 32 * MIB));
        assert!(!one.0.is_over && !memory.has_freed());
        while take(&mut memory, &mut one, 4096) {}
        assert!(one.0.is_over && one.1 <= 128 * MIB + BASE && memory.used() <= 192 * MIB);
        memory.waiting.push_back(ClientId(1));
        one.1 = 0;
        memory.settle(&mut one.0, 0);
        assert_eq!((memory.used(), memory.has_freed(), memory.has_freed()), (0, true, false));
    }
}
