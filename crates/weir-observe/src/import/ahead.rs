//! Reading ahead: a thread reads, and decompresses, while what was read before is understood.

use std::fmt;
use std::io::{self, BufRead, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Bytes that are read at once, and that the kind of an input is found by.
const BLOCK: usize = 1 << 18;

/// Blocks that wait to be understood.
const WAITING: usize = 2;

/// What was read, and what then kept more from being read.
#[derive(Debug, Default)]
struct Block {
    bytes: Vec<u8>,
    error: Option<io::Error>,
}

impl Block {
    /// Fills `bytes` as far as there is something; whether it is full.
    fn read(mut bytes: Vec<u8>, input: &mut impl Read) -> (Self, bool) {
        bytes.clear();
        let read = input.by_ref().take(BLOCK as u64).read_to_end(&mut bytes);
        let is_full = read.is_ok() && bytes.len() == BLOCK;
        (Self { bytes, error: read.err() }, is_full)
    }
}

/// See the module. The thread ends when this is dropped, or nothing more comes.
pub(super) struct Ahead {
    block: Block,
    /// How much of it was taken.
    at: usize,
    /// The blocks that follow, and the way back for the memory of those that were taken.
    rest: Option<(Receiver<Block>, SyncSender<Vec<u8>>)>,
}

impl fmt::Debug for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ahead").finish_non_exhaustive()
    }
}

impl Ahead {
    /// Reads `input`; what is one block at most is read here and now.
    pub(super) fn of(mut input: impl Read + Send + 'static) -> io::Result<Self> {
        let (block, is_full) = Block::read(Vec::with_capacity(BLOCK), &mut input);
        let mut own = Self { block, at: 0, rest: None };
        if !is_full {
            return Ok(own);
        }
        let (blocks, rest) = sync_channel(WAITING);
        let (back, spare) = sync_channel(WAITING + 1);
        thread::Builder::new().name("read".to_owned()).spawn(move || {
            let mut is_full = true;
            while is_full {
                let bytes = spare.try_recv().unwrap_or_default();
                let (block, more) = Block::read(bytes, &mut input);
                is_full = blocks.send(block).is_ok() && more;
            }
        })?;
        own.rest = Some((rest, back));
        Ok(own)
    }
}

impl Read for Ahead {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Ahead {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at >= self.block.bytes.len() {
            if let Some(error) = self.block.error.take() {
                return Err(error);
            }
            if let Some((blocks, back)) = &self.rest {
                // A sender that is gone has sent all there is.
                let next = blocks.recv().unwrap_or_default();
                let taken = std::mem::replace(&mut self.block, next);
                self.at = 0;
                // Whoever has enough memory does not take it.
                let _ = back.try_send(taken.bytes);
                if self.block.bytes.is_empty()
                    && let Some(error) = self.block.error.take()
                {
                    return Err(error);
                }
            }
        }
        Ok(&self.block.bytes[self.at..])
    }

    fn consume(&mut self, count: usize) {
        self.at = (self.at + count).min(self.block.bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many bytes, then an error.
    struct Fails(u64);

    impl Read for Fails {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::Error::other("no more"));
            }
            let read = io::repeat(7).take(self.0.min(1_000)).read(into)?;
            self.0 -= read as u64;
            Ok(read)
        }
    }

    #[test]
    fn all_of_it_comes_in_order() {
        for size in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 17] {
            let bytes: Vec<u8> = (0..size).map(|at| (at * 7919).to_le_bytes()[1]).collect();
            let mut read = Vec::new();
            Ahead::of(io::Cursor::new(bytes.clone())).unwrap().read_to_end(&mut read).unwrap();
            assert!(read == bytes, "{size} bytes");
        }
    }

    #[test]
    fn what_was_read_before_an_error_is_there() {
        for size in [0, 10, BLOCK as u64, 3 * BLOCK as u64 + 5] {
            let mut read = Vec::new();
            let error = Ahead::of(Fails(size)).unwrap().read_to_end(&mut read).unwrap_err();
            assert_eq!((error.to_string().as_str(), read.len() as u64), ("no more", size));
        }
    }

    #[test]
    fn who_stops_reading_stops_the_thread() {
        let (gone, is_gone) = sync_channel::<()>(0);
        struct Endless(#[expect(dead_code, reason = "dropped with the reader")] SyncSender<()>);
        impl Read for Endless {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                into.fill(7);
                Ok(into.len())
            }
        }
        let mut ahead = Ahead::of(Endless(gone)).unwrap();
        assert_eq!(ahead.fill_buf().unwrap().len(), BLOCK);
        drop(ahead);
        // It comes back when the thread has dropped its end.
        assert!(is_gone.recv().is_err());
    }
}
