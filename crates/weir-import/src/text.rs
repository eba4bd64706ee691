//! Encodings and lines.
//!
//! PowerShell writes UTF-16, Windows tools a code page, editors a byte order mark; a reader gets
//! lines of text from all of them. A byte that is not UTF-8 is taken for Latin-1, which preserves
//! digits and English words.

use encoding_rs::{CoderResult, Decoder, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use std::io::{self, BufRead};

/// The longest line.
const LONGEST: usize = 16 << 20;
/// The bytes used to guess the encoding.
const GLANCE: usize = 4096;

/// The lines of an input, as text.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    input: R,
    decoder: Option<Decoder>,
    /// Bytes read before the encoding was known.
    glance: Vec<u8>,
    /// Decoded text that is not returned yet.
    text: String,
    at: usize,
    line: u64,
    ended: bool,
    /// True if the last line had no end.
    open: bool,
    /// Lines that were put back, the next one last.
    again: Vec<String>,
}

impl<R: BufRead> Lines<R> {
    /// Creates the lines of `input`.
    pub(crate) fn new(input: R) -> Self {
        let (decoder, glance, text, again) = (None, Vec::new(), String::new(), Vec::new());
        Self { input, decoder, glance, text, at: 0, line: 0, ended: false, open: false, again }
    }

    /// Returns the next line without its end.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the input fails, or a line has more than 16 MiB.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<String>> {
        if let Some(line) = self.again.pop() {
            self.line += 1;
            return Ok(Some(line));
        }
        loop {
            let rest = &self.text[self.at..];
            if let Some(end) = memchr::memchr(b'\n', rest.as_bytes()) {
                let line = rest[..end].trim_end_matches('\r').to_owned();
                self.at += end + 1;
                self.line += 1;
                self.open = false;
                return Ok(Some(line));
            }
            if self.ended {
                if rest.is_empty() {
                    return Ok(None);
                }
                let line = rest.trim_end_matches('\r').to_owned();
                self.at = self.text.len();
                self.line += 1;
                self.open = true;
                return Ok(Some(line));
            }
            if rest.len() > LONGEST {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("line {} has more than {} MiB", self.line + 1, LONGEST >> 20),
                ));
            }
            self.fill()?;
        }
    }

    /// Puts a line back, to be returned before lines that were put back earlier.
    pub(crate) fn put_back(&mut self, line: String) {
        self.line -= 1;
        self.again.push(line);
    }

    /// Returns the number of the last line, from 1.
    pub(crate) const fn number(&self) -> u64 {
        self.line
    }

    /// Returns whether the last line had no end, so that it may be cut.
    pub(crate) const fn was_open(&self) -> bool {
        self.open
    }

    fn fill(&mut self) -> io::Result<()> {
        self.text.drain(..self.at);
        self.at = 0;
        let bytes = self.input.fill_buf()?;
        let (last, len) = (bytes.is_empty(), bytes.len());
        match &mut self.decoder {
            Some(decoder) => decode(decoder, bytes, &mut self.text, last),
            // A buffer may be small, and the first bytes alone may not tell.
            None => {
                self.glance.extend_from_slice(bytes);
                if last || self.glance.len() >= GLANCE {
                    let mut decoder = decoder_of(&self.glance);
                    decode(&mut decoder, &self.glance, &mut self.text, last);
                    self.glance = Vec::new();
                    self.decoder = Some(decoder);
                }
            }
        }
        self.input.consume(len);
        self.ended = last;
        Ok(())
    }
}

/// The usual number of words in a line, for allocation.
const USUAL_WORDS: usize = 32;

/// Splits a line into words.
#[must_use]
pub(crate) fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::with_capacity(USUAL_WORDS);
    if !line.is_ascii() {
        words.extend(line.split_whitespace());
        return words;
    }
    // Columns are far apart: no space in a sequence is examined twice.
    let mut start = None;
    for (at, byte) in line.bytes().enumerate() {
        // Nearly all characters are above the space.
        match (start, byte <= b' ' && byte.is_ascii_whitespace()) {
            (None, false) => start = Some(at),
            (Some(begin), true) => {
                words.push(&line[begin..at]);
                start = None;
            }
            _ => {}
        }
    }
    words.extend(start.map(|begin| &line[begin..]));
    words
}

/// Splits a line at a separator.
#[must_use]
pub(crate) fn fields(line: &str, separator: u8) -> Vec<&str> {
    debug_assert!(separator.is_ascii());
    let mut fields = Vec::with_capacity(USUAL_WORDS);
    let mut start = 0;
    for at in memchr::memchr_iter(separator, line.as_bytes()) {
        fields.push(&line[start..at]);
        start = at + 1;
    }
    fields.push(&line[start..]);
    fields
}

fn decode(decoder: &mut Decoder, bytes: &[u8], text: &mut String, last: bool) {
    let most = decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(bytes.len() * 3 + 16);
    text.reserve(most);
    let (result, _, _) = decoder.decode_to_string(bytes, text, last);
    debug_assert_eq!(result, CoderResult::InputEmpty, "there is room for all");
}

/// Guesses the encoding from the byte order mark, from the zeros of UTF-16, or from valid UTF-8.
fn decoder_of(bytes: &[u8]) -> Decoder {
    let glance = &bytes[..bytes.len().min(GLANCE)];
    let zeros = |start: usize| glance.iter().skip(start).step_by(2).filter(|b| **b == 0).count();
    let mostly = |zeros: usize| zeros * 2 > glance.len() / 2 && glance.len() > 3;
    if glance.starts_with(&[0xff, 0xfe]) || mostly(zeros(1)) {
        return UTF_16LE.new_decoder();
    }
    if glance.starts_with(&[0xfe, 0xff]) || mostly(zeros(0)) {
        return UTF_16BE.new_decoder();
    }
    match std::str::from_utf8(glance) {
        // A character may be cut at the end of the beginning.
        Err(error) if error.error_len().is_some() => WINDOWS_1252.new_decoder(),
        _ => UTF_8.new_decoder(),
    }
}

/// Decodes the beginning of an input, for detection.
#[must_use]
pub(crate) fn beginning(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2 + 16);
    let _ = decoder_of(bytes).decode_to_string(bytes, &mut text, false);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expect: &[&str], open: bool) {
        // A reader with a small buffer cuts characters in the middle.
        for size in [3, 8192] {
            let mut lines = Lines::new(io::BufReader::with_capacity(size.max(4), bytes));
            let mut got = Vec::new();
            while let Some(line) = lines.next_line().expect("lines") {
                got.push(line);
            }
            assert_eq!((&got[..], lines.was_open()), (&expect.map_owned()[..], open));
        }
    }

    trait MapOwned {
        fn map_owned(&self) -> Vec<String>;
    }

    impl MapOwned for [&str] {
        fn map_owned(&self) -> Vec<String> {
            self.iter().map(|line| (*line).to_owned()).collect()
        }
    }

    #[test]
    fn lines_of_any_encoding() {
        check(b"a\r\nb\n", &["a", "b"], false);
        check(b"a\n\nb", &["a", "", "b"], true);
        check(b"", &[], false);
        check("\u{feff}é\n".as_bytes(), &["é"], false);
        check(b"caf\xe9 1\nx\n", &["café 1", "x"], false);
        let wide = |text: &str, big: bool| -> Vec<u8> {
            let bytes = |unit: u16| if big { unit.to_be_bytes() } else { unit.to_le_bytes() };
            text.encode_utf16().flat_map(bytes).collect()
        };
        for big in [false, true] {
            check(&wide("\u{feff}one\r\ntwo\r\n", big), &["one", "two"], false);
            check(&wide("no mark here\n", big), &["no mark here"], false);
        }
    }

    #[test]
    fn words_and_fields() {
        assert_eq!(words("  a\tbc   d "), ["a", "bc", "d"]);
        assert_eq!(words("é\u{a0}x"), ["é", "x"]);
        assert_eq!(words(" "), [""; 0]);
        assert_eq!(fields("a;;é;", b';'), ["a", "", "é", ""]);
        assert_eq!(fields("", b';'), [""]);
    }

    #[test]
    fn a_line_that_was_put_back_is_returned_again() {
        let mut lines = Lines::new(&b"a\nb\n"[..]);
        let first = lines.next_line().expect("a line").expect("one");
        lines.put_back(first);
        assert_eq!(lines.number(), 0);
        assert_eq!(lines.next_line().expect("a line").as_deref(), Some("a"));
        assert_eq!(lines.next_line().expect("a line").as_deref(), Some("b"));
        assert_eq!(lines.number(), 2);
    }
}
