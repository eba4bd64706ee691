//! Inputs compressed with gzip, xz or zstd.
//!
//! They are decoded as a stream, so memory is bounded by the window of the decoder. A window
//! larger than [`WINDOW`] is rejected.

use crate::ahead::Ahead;
use crate::kind::Bytes;
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, BufRead, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The largest window of a decoder in bytes, the default limit of `zstd -d`. `xz -9` needs half of
/// it.
const WINDOW: u64 = 128 << 20;

/// A compressed format: its name and its first bytes.
pub(crate) type Format = (&'static str, &'static [u8]);

pub(crate) const GZIP: Format = ("gzip", b"\x1f\x8b");
pub(crate) const XZ: Format = ("xz", b"\xfd7zXZ\x00");
pub(crate) const ZSTD: Format = ("zstd", b"\x28\xb5\x2f\xfd");

/// Returns the bytes of an input, decompressed if it was compressed.
///
/// # Errors
///
/// [`io::Error`] if its beginning cannot be read.
pub fn decompressed(input: impl Read + Send + 'static) -> io::Result<Bytes> {
    let mut input = Ahead::new(input)?;
    let begin = input.fill_buf()?;
    let Some((name, _)) = [GZIP, XZ, ZSTD].into_iter().find(|(_, own)| begin.starts_with(own))
    else {
        return Ok(Box::new(input));
    };
    let state = Arc::new(State::default());
    let input = Noted { input, state: Arc::clone(&state) };
    let decoder: Box<dyn Read + Send> = match name {
        "gzip" => Box::new(MultiGzDecoder::new(input)),
        "xz" => {
            let limit_kib = u32::try_from(WINDOW >> 10).unwrap_or(u32::MAX);
            Box::new(XzReader::new_mem_limit(input, true, limit_kib))
        }
        _ => Box::new(Zstd::new(input)),
    };
    Ok(Box::new(Ahead::new(Decompressed { decoder: Some(decoder), name, state })?))
}

/// The state of a compressed input.
#[derive(Debug, Default)]
struct State {
    /// The input was read to its end.
    has_ended: AtomicBool,
    /// The system failed to read the input.
    has_failed: AtomicBool,
}

/// A compressed input that records its state.
struct Noted {
    input: Ahead,
    state: Arc<State>,
}

impl Read for Noted {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Noted {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let bytes = self.input.fill_buf();
        match &bytes {
            Ok([]) => self.state.has_ended.store(true, Ordering::Relaxed),
            Ok(_) => {}
            Err(_) => self.state.has_failed.store(true, Ordering::Relaxed),
        }
        bytes
    }

    fn consume(&mut self, count: usize) {
        self.input.consume(count);
    }
}

/// Decompressed bytes. A truncated or damaged input is reported as an error of the input, not of
/// the system.
struct Decompressed {
    /// `None` after an error, since decoders cannot continue.
    decoder: Option<Box<dyn Read + Send>>,
    name: &'static str,
    state: Arc<State>,
}

impl Read for Decompressed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(decoder) = &mut self.decoder else { return Ok(0) };
        decoder.read(into).map_err(|error| {
            if error.kind() == io::ErrorKind::Interrupted {
                return error;
            }
            self.decoder = None;
            self.fault(error)
        })
    }
}

impl Decompressed {
    fn fault(&self, error: io::Error) -> io::Error {
        let name = self.name;
        if self.state.has_failed.load(Ordering::Relaxed) {
            return error;
        }
        let words = if error.kind() == io::ErrorKind::OutOfMemory {
            format!(
                "it is compressed with {name} and needs a window of more than {} MiB: decompress \
                 it, and import the result",
                WINDOW >> 20
            )
        } else if self.state.has_ended.load(Ordering::Relaxed) {
            format!("it is compressed with {name} and ends early: copy the whole file again")
        } else {
            format!("it is compressed with {name} and is damaged ({error}): copy it again")
        };
        io::Error::new(io::ErrorKind::InvalidData, words)
    }
}

/// The frames of a zstd file in sequence.
struct Zstd<R> {
    input: R,
    decoder: FrameDecoder,
    /// True if the decoder is within a frame.
    in_frame: bool,
}

impl<R: BufRead> Zstd<R> {
    fn new(input: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW);
        Self { input, decoder, in_frame: false }
    }

    /// Starts the next frame; returns false at the end.
    fn begin(&mut self) -> io::Result<bool> {
        loop {
            if self.input.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.reset(&mut self.input) {
                Ok(()) => {
                    self.in_frame = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    let skipped = io::copy(&mut (&mut self.input).take(length), &mut io::sink())?;
                    if skipped < length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(zstd_error(error)),
            }
        }
    }

    /// Checks the checksum of a finished frame.
    fn end(&mut self) -> io::Result<()> {
        self.in_frame = false;
        let said = self.decoder.get_checksum_from_data();
        if said.is_some() && said != self.decoder.get_calculated_checksum() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its checksum is wrong"));
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.in_frame && !self.begin()? {
                return Ok(0);
            }
            if self.decoder.can_collect() > 0 {
                return self.decoder.read(into);
            }
            if self.decoder.is_finished() {
                self.end()?;
                continue;
            }
            let one = BlockDecodingStrategy::UptoBlocks(1);
            self.decoder.decode_blocks(&mut self.input, one).map_err(zstd_error)?;
        }
    }
}

fn zstd_error(error: FrameDecoderError) -> io::Error {
    let kind = match error {
        FrameDecoderError::WindowSizeTooBig { .. } => io::ErrorKind::OutOfMemory,
        _ => io::ErrorKind::InvalidData,
    };
    io::Error::new(kind, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ImportError;
    use flate2::{Compression, write::GzEncoder};
    use lzma_rust2::{XzOptions, XzWriter};
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    use std::io::Write;

    fn text() -> String {
        (0..30_000).map(|n| format!("{}\n", n * 7919 % 10_007)).collect()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut writer = GzEncoder::new(Vec::new(), Compression::default());
        writer.write_all(bytes).expect("memory");
        writer.finish().expect("memory")
    }

    fn xz(bytes: &[u8]) -> Vec<u8> {
        let mut writer = XzWriter::new(Vec::new(), XzOptions::with_preset(1)).expect("options");
        writer.write_all(bytes).expect("memory");
        writer.finish().expect("memory")
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        compress_to_vec(bytes, CompressionLevel::Fastest)
    }

    type Compress = fn(&[u8]) -> Vec<u8>;
    const FORMATS: [(&str, Compress); 3] = [("gzip", gzip), ("xz", xz), ("zstd", zstd)];

    /// Reads everything, or returns the error and whether the input is at fault.
    fn read(bytes: Vec<u8>) -> Result<String, (String, bool)> {
        let told = |error: io::Error| {
            let error = ImportError::from(error);
            (error.to_string(), error.is_input())
        };
        let mut read = Vec::new();
        let mut input = decompressed(io::Cursor::new(bytes)).map_err(told)?;
        input.read_to_end(&mut read).map_err(told)?;
        Ok(String::from_utf8_lossy(&read).into_owned())
    }

    #[test]
    fn every_format_is_read_also_in_several_parts() {
        for (name, compress) in FORMATS {
            let whole = compress(text().as_bytes());
            assert!(whole.len() < text().len(), "{name}");
            assert_eq!(read(whole.clone()).as_ref(), Ok(&text()), "{name}");
            let twice = [whole, compress(b"the end\n")].concat();
            assert_eq!(read(twice), Ok(text() + "the end\n"), "{name}");
        }
    }

    #[test]
    fn an_input_that_ends_early_is_at_fault() {
        for (name, compress) in FORMATS {
            let whole = compress(text().as_bytes());
            let words =
                format!("it is compressed with {name} and ends early: copy the whole file again");
            for length in [7, 12, 13, whole.len() / 2, whole.len() - 1] {
                let expect = Err((words.clone(), true));
                assert_eq!(read(whole[..length].to_vec()), expect, "{name} {length}");
            }
        }
    }

    #[test]
    fn an_input_that_is_damaged_is_at_fault() {
        for (name, compress) in FORMATS {
            let whole = compress(text().as_bytes());
            for at in [2, 8, whole.len() / 3, whole.len() / 2] {
                let mut damaged = whole.clone();
                damaged[at] ^= 0x5a;
                // Damage to a name or time in a header is harmless.
                if let Err((words, is_input)) = read(damaged) {
                    assert!(words.contains(&format!("compressed with {name} and")), "{words}");
                    assert!(is_input, "{words}");
                }
            }
            let mut damaged = whole.clone();
            damaged[whole.len() / 2] ^= 0x5a;
            assert!(read(damaged).is_err(), "{name}: its checksum is wrong");
        }
    }

    #[test]
    fn a_window_beyond_the_limit_is_rejected_before_it_is_allocated() {
        // A frame with a window of 2 GiB: its descriptor is 21 << 3 above 1 KiB.
        let bomb = [ZSTD.1, &[0x00, 21 << 3, 0x01, 0x00, 0x00]].concat();
        let (words, is_input) = read(bomb).expect_err("it is refused");
        let expect = "it is compressed with zstd and needs a window of more than 128 MiB: \
                      decompress it, and import the result";
        assert_eq!((words.as_str(), is_input), (expect, true));
    }

    #[test]
    fn highly_compressed_input_is_read_in_pieces() {
        let zeros = vec![b'0'; 64 << 20];
        for (name, compress) in FORMATS {
            let small = compress(&zeros);
            assert!(small.len() < zeros.len() / 100, "{name}: {} bytes", small.len());
            let mut input = decompressed(io::Cursor::new(small)).expect("its beginning");
            let (mut count, mut most) = (0, 0);
            loop {
                let length = input.fill_buf().expect(name).len();
                if length == 0 {
                    break;
                }
                (count, most) = (count + length, most.max(length));
                input.consume(length);
            }
            assert_eq!(count, zeros.len(), "{name}");
            assert!(most <= 1 << 18, "{name}: {most} bytes at once");
        }
    }
}
