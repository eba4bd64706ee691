//! Reading ahead: a thread reads, and decompresses, while what was read before is understood.

use std::fmt;
use std::io::{self, BufRead, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Bytes that are read at once, and that the kind of an input is found by.
const BLOCK: usize = 1 << 18;

/// A read that brings less than this has brought all there is by now.
const SMALL: usize = 1 << 12;

/// Blocks that wait to be understood.
const WAITING: usize = 2;

/// What was read, and what then kept more from being read.
#[derive(Debug, Default)]
struct Block {
    bytes: Vec<u8>,
    error: Option<io::Error>,
}

impl Block {
    /// Fills `bytes` with what there is, and waits until that is `least`; whether it is full.
    fn read(mut bytes: Vec<u8>, input: &mut impl Read, least: usize) -> (Self, bool) {
        bytes.resize(BLOCK, 0);
        let mut length = 0;
        let error = loop {
            match input.read(&mut bytes[length..]) {
                Ok(0) => break None,
                // What comes slowly is understood as it comes.
                Ok(read) => {
                    length += read;
                    // What comes slowly is understood as it comes.
                    if read < SMALL && length >= least {
                        break None;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Some(error),
            }
            if length == BLOCK {
                break None;
            }
        };
        bytes.truncate(length);
        let is_full = length == BLOCK && error.is_none();
        (Self { bytes, error }, is_full)
    }

    /// Whether nothing follows.
    fn is_last(&self) -> bool {
        self.bytes.is_empty() || self.error.is_some()
    }
}

/// See the module. The thread ends with its next block when this is dropped, or when nothing more
/// comes.
pub(super) struct Ahead {
    block: Block,
    /// How much of it was taken.
    at: usize,
    /// How much the next block has at least: the first is what a kind is found by.
    least: usize,
    rest: Rest,
}

/// Where what follows comes from.
enum Rest {
    /// From the input, as long as it comes in small pieces.
    Input(Box<dyn Read + Send>),
    /// From the thread; and the way back for the memory of blocks that were taken.
    Thread(Receiver<Block>, SyncSender<Vec<u8>>),
    /// Nothing follows.
    Nothing,
}

impl fmt::Debug for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ahead").finish_non_exhaustive()
    }
}

impl Ahead {
    /// Reads `input`: here and now as long as it is small or slow, then by a thread.
    pub(super) fn of(input: impl Read + Send + 'static) -> io::Result<Self> {
        let mut own = Self {
            block: Block::default(),
            at: 0,
            least: SMALL,
            rest: Rest::Input(Box::new(input)),
        };
        own.next()?;
        Ok(own)
    }

    /// Takes the next block.
    fn next(&mut self) -> io::Result<()> {
        self.at = 0;
        let taken = std::mem::take(&mut self.block);
        if taken.error.is_some() {
            self.rest = Rest::Nothing;
            return taken.error.map_or(Ok(()), Err);
        }
        match std::mem::replace(&mut self.rest, Rest::Nothing) {
            Rest::Nothing => {}
            Rest::Input(mut input) => {
                let (block, is_full) = Block::read(taken.bytes, &mut input, self.least);
                self.least = 1;
                if is_full {
                    self.rest = follow(input)?;
                } else if !block.is_last() {
                    self.rest = Rest::Input(input);
                }
                self.block = block;
            }
            Rest::Thread(blocks, back) => {
                // Who has sent all there is has gone.
                if let Ok(block) = blocks.recv() {
                    // Whoever has enough memory does not take it.
                    let _ = back.try_send(taken.bytes);
                    self.block = block;
                    self.rest = Rest::Thread(blocks, back);
                }
            }
        }
        Ok(())
    }
}

/// The thread that reads what follows.
fn follow(mut input: impl Read + Send + 'static) -> io::Result<Rest> {
    let (blocks, rest) = sync_channel(WAITING);
    let (back, spare) = sync_channel(WAITING + 1);
    thread::Builder::new().name("read".to_owned()).spawn(move || {
        loop {
            let (block, _) = Block::read(spare.try_recv().unwrap_or_default(), &mut input, 1);
            let is_last = block.is_last();
            if blocks.send(block).is_err() || is_last {
                break;
            }
        }
    })?;
    Ok(Rest::Thread(rest, back))
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
            self.next()?;
            if self.block.bytes.is_empty() && self.block.error.is_some() {
                self.next()?;
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

    /// What comes in small pieces is there before more comes, but for the first.
    #[test]
    fn what_comes_slowly_does_not_wait() {
        let mut ahead = Ahead::of(Fails(9_500)).unwrap();
        assert_eq!(ahead.fill_buf().unwrap().len(), 5_000);
        ahead.consume(5_000);
        assert_eq!(ahead.fill_buf().unwrap().len(), 1_000);
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
