//! Read-ahead: a thread reads and decompresses the next block while the current one is parsed.

use std::fmt;
use std::io::{self, BufRead, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Size of a read, and of the beginning by which the kind of an input is detected.
const BLOCK: usize = 1 << 18;

/// A read that returns less than this has returned everything available.
const SMALL: usize = 1 << 12;

/// The most blocks waiting to be parsed.
const WAITING: usize = 2;

/// Bytes read, and the error that ended the read.
#[derive(Debug, Default)]
struct Block {
    bytes: Vec<u8>,
    error: Option<io::Error>,
}

impl Block {
    /// Reads until `bytes` is full, or until the input pauses after `least` bytes. Returns whether
    /// it is full.
    fn read(mut bytes: Vec<u8>, input: &mut impl Read, least: usize) -> (Self, bool) {
        bytes.resize(BLOCK, 0);
        let mut length = 0;
        let error = loop {
            match input.read(&mut bytes[length..]) {
                Ok(0) => break None,
                // A slow input is parsed as it arrives.
                Ok(read) => {
                    length += read;
                    // A slow input is parsed as it arrives.
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

    /// Returns whether this is the last block.
    fn is_last(&self) -> bool {
        self.bytes.is_empty() || self.error.is_some()
    }
}

/// An input with read-ahead. Its thread ends with the next block after this is dropped, or at the
/// end of the input.
pub(crate) struct Ahead {
    block: Block,
    /// Number of bytes taken from the block.
    at: usize,
    /// Least size of the next block; the first must suffice to detect the kind.
    least: usize,
    rest: Rest,
}

/// The source of further blocks.
enum Rest {
    /// The input, while it is small or slow.
    Input(Box<dyn Read + Send>),
    /// The thread, and the channel that returns the memory of used blocks.
    Thread(Receiver<Block>, SyncSender<Vec<u8>>),
    /// The end.
    Nothing,
}

impl fmt::Debug for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ahead").finish_non_exhaustive()
    }
}

impl Ahead {
    /// Reads `input` directly while it is small or slow, and through a thread afterwards.
    pub(crate) fn new(input: impl Read + Send + 'static) -> io::Result<Self> {
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
                // The thread ends after the last block.
                if let Ok(block) = blocks.recv() {
                    // A full channel means that the thread has enough memory.
                    let _ = back.try_send(taken.bytes);
                    self.block = block;
                    self.rest = Rest::Thread(blocks, back);
                }
            }
        }
        Ok(())
    }
}

/// Starts the thread that reads the rest.
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

    /// A reader that fails after this number of bytes.
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
    fn all_bytes_are_read_in_order() {
        for size in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 17] {
            let bytes: Vec<u8> = (0..size).map(|at| (at * 7919).to_le_bytes()[1]).collect();
            let mut read = Vec::new();
            Ahead::new(io::Cursor::new(bytes.clone())).unwrap().read_to_end(&mut read).unwrap();
            assert!(read == bytes, "{size} bytes");
        }
    }

    #[test]
    fn bytes_before_an_error_are_returned() {
        for size in [0, 10, BLOCK as u64, 3 * BLOCK as u64 + 5] {
            let mut read = Vec::new();
            let error = Ahead::new(Fails(size)).unwrap().read_to_end(&mut read).unwrap_err();
            assert_eq!((error.to_string().as_str(), read.len() as u64), ("no more", size));
        }
    }

    /// After the first block, small pieces are returned before more arrives.
    #[test]
    fn slow_input_is_returned_at_once() {
        let mut ahead = Ahead::new(Fails(9_500)).unwrap();
        assert_eq!(ahead.fill_buf().unwrap().len(), 5_000);
        ahead.consume(5_000);
        assert_eq!(ahead.fill_buf().unwrap().len(), 1_000);
    }

    #[test]
    fn dropping_the_reader_stops_the_thread() {
        let (gone, is_gone) = sync_channel::<()>(0);
        struct Endless(#[expect(dead_code, reason = "dropped with the reader")] SyncSender<()>);
        impl Read for Endless {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                into.fill(7);
                Ok(into.len())
            }
        }
        let mut ahead = Ahead::new(Endless(gone)).unwrap();
        assert_eq!(ahead.fill_buf().unwrap().len(), BLOCK);
        drop(ahead);
        // `recv` returns once the thread has dropped its end.
        assert!(is_gone.recv().is_err());
    }
}
