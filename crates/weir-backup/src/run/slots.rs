//! The buffers of a backup, each with room for a frame around what is read into it.

use crate::format::{EncodedFrame, FRAME_LEAD, frame_room};
use weir_client::Payloads;
use weir_pipeline::Transfer;
use weir_proto::Errno;
use weir_units::Instant;

/// A buffer.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// Empty while a thread has it.
    pub(super) frame: Vec<u8>,
    /// The read that filled it.
    pub(super) read: Option<Transfer>,
    /// The transfer in flight.
    pub(super) transfer: Option<Transfer>,
    pub(super) issued: Instant,
    /// The frame that was made of it.
    pub(super) encoded: Option<EncodedFrame>,
}

/// All buffers, and the requests that were answered.
#[derive(Debug)]
pub(super) struct Slots {
    pub(super) all: Vec<Slot>,
    pub(super) finished: Vec<(u32, Result<(), Errno>)>,
    room: usize,
}

impl Slots {
    pub(super) fn new(count: u32, transfer: u64) -> Self {
        let room = frame_room(usize::try_from(transfer).unwrap_or(usize::MAX));
        let all = (0..count).map(|_| Slot::default()).collect();
        Self { all, finished: Vec::new(), room }
    }

    pub(super) fn slot(&mut self, buffer: u32) -> &mut Slot {
        &mut self.all[buffer as usize]
    }

    /// Makes a buffer ready for a read: memory is taken when it is used for the first time.
    pub(super) fn prepare(&mut self, buffer: u32) {
        let room = self.room;
        self.slot(buffer).frame.resize(room, 0);
    }

    fn index(cookie: u64) -> usize {
        usize::try_from(cookie).unwrap_or(usize::MAX)
    }
}

impl Payloads for Slots {
    fn landing(&mut self, cookie: u64) -> &mut [u8] {
        let slot = &mut self.all[Self::index(cookie)];
        let length = slot.transfer.map_or(0, |transfer| transfer.len as usize);
        &mut slot.frame[FRAME_LEAD..FRAME_LEAD + length]
    }

    fn lent(&self, cookie: u64) -> &[u8] {
        let slot = &self.all[Self::index(cookie)];
        let length = slot.transfer.map_or(0, |transfer| transfer.len as usize);
        &slot.frame[..length]
    }

    fn finished(&mut self, cookie: u64, result: Result<(), Errno>) {
        self.finished.push((u32::try_from(cookie).unwrap_or(u32::MAX), result));
    }
}
