//! An input that can be examined again from a line on. At unexpected content, another kind of
//! input may begin.

use crate::detect::detect;
use crate::kind::{Bytes, Kind};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

/// The bytes kept, besides the current block.
const KEPT: usize = 1 << 19;
/// The lines used to detect a kind.
const GLANCE: usize = 40;
/// Kinds that are recognized by the heads of their tables.
const HEADED: [&str; 4] = ["sqlserver", "postgres", "perfmon", "get-counter"];
/// The most bytes examined.
const MOST: usize = 1 << 16;

/// The input of a reader, with a copy of the recent part.
pub(crate) struct Watched {
    shared: Rc<RefCell<Shared>>,
    block: Rc<Vec<u8>>,
    at: usize,
}

/// The recent part of an input.
pub(crate) struct Lately(Rc<RefCell<Shared>>);

struct Shared {
    input: Bytes,
    blocks: VecDeque<Rc<Vec<u8>>>,
    kept: usize,
    /// Number of lines that are no longer kept.
    lines_before: u64,
}

/// Splits an input into one for the reader and one for later examination.
pub(crate) fn watched(input: Bytes) -> (Bytes, Lately) {
    let shared = Shared { input, blocks: VecDeque::new(), kept: 0, lines_before: 0 };
    let shared = Rc::new(RefCell::new(shared));
    let block = Rc::default();
    (Box::new(Watched { shared: Rc::clone(&shared), block, at: 0 }), Lately(shared))
}

impl BufRead for Watched {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at >= self.block.len() {
            (self.block, self.at) = (self.shared.borrow_mut().next()?, 0);
        }
        Ok(&self.block[self.at..])
    }

    fn consume(&mut self, count: usize) {
        self.at += count;
    }
}

impl Read for Watched {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(into)?;
        self.consume(count);
        Ok(count)
    }
}

impl Shared {
    fn next(&mut self) -> io::Result<Rc<Vec<u8>>> {
        let block = Rc::new(self.input.fill_buf()?.to_vec());
        self.input.consume(block.len());
        self.kept += block.len();
        self.blocks.push_back(Rc::clone(&block));
        while let Some(first) = self.blocks.front().filter(|own| self.kept - own.len() > KEPT) {
            self.kept -= first.len();
            self.lines_before += lines(first);
            self.blocks.pop_front();
        }
        Ok(block)
    }
}

fn lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

impl Lately {
    /// Returns the kind of input that begins in a line, where `before` is the current kind. It is
    /// another kind, or the same one with a second head.
    pub(crate) fn begins(&self, line: u64, before: &str) -> Option<Kind> {
        // An error in the first line concerns the only kind.
        let text = self.text_at(line).filter(|_| line > 1)?;
        let kind = detect(first_lines(&text)).ok()?;
        if kind.name != before {
            return Some(kind);
        }
        if !HEADED.contains(&before) {
            return None;
        }
        let next = text.iter().position(|byte| *byte == b'\n').map_or(text.len(), |at| at + 1);
        let is_head = detect(first_lines(&text[next..])).ok() != Some(kind);
        is_head.then_some(kind)
    }

    /// Returns the kept text from a line on, extended by further input if it is short.
    fn text_at(&self, line: u64) -> Option<Vec<u8>> {
        let mut shared = self.0.borrow_mut();
        let skipped = line.checked_sub(shared.lines_before + 1)?;
        // The first kept line may be incomplete.
        if skipped == 0 && shared.lines_before > 0 {
            return None;
        }
        let mut text: Vec<u8> = shared.blocks.iter().flat_map(|own| own.iter().copied()).collect();
        let ends = || (0..).zip(&text).filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let start = match usize::try_from(skipped).ok()?.checked_sub(1) {
            Some(nth) => ends().nth(nth)?,
            None => 0,
        };
        text.drain(..start);
        while text.len() < MOST {
            match shared.next() {
                Ok(block) if !block.is_empty() => text.extend_from_slice(&block),
                _ => break,
            }
        }
        text.truncate(MOST);
        Some(text)
    }
}

fn first_lines(text: &[u8]) -> &[u8] {
    let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    ends.map(|(at, _)| at + 1).nth(GLANCE - 1).map_or(text, |end| &text[..end])
}
