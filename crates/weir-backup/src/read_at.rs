//! Where a stripe's bytes are read from: a file, a region of a volume, a blob, memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes that can be read at any offset. Offsets count from the start of the stripe.
pub trait ReadAt: Send {
    /// Returns the length in bytes. A stripe ends there.
    fn length(&self) -> u64;

    /// Fills `buffer` from `offset`.
    ///
    /// # Errors
    /// When the medium fails, or the range reaches beyond the end.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
}

/// A file that holds one stripe.
#[derive(Debug)]
pub struct FileBytes {
    file: File,
    length: u64,
}

impl FileBytes {
    /// Takes an open file. Its length is read once.
    ///
    /// # Errors
    /// When the length cannot be read.
    pub fn new(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { file, length })
    }
}

impl ReadAt for FileBytes {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }
}

impl ReadAt for Vec<u8> {
    fn length(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let found = usize::try_from(offset).ok().and_then(|start| {
            let end = start.checked_add(buffer.len())?;
            self.get(start..end)
        });
        let found = found.ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(found);
        Ok(())
    }
}
