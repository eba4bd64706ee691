//! All blocks of a volume compared with their checksums.

use super::Summed;
use super::block::{BLOCK, CHUNK, Part, parts};
use super::read::{Verdict, Wait};
use crate::pieces::index;
use crate::store::{Extent, ExtentKind, Store};
use crate::{Result, StoreError};

/// The bytes that a scrub has looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scrub {
    /// Those of blocks that were compared with their checksums.
    pub verified: u64,
    /// Those of blocks whose checksums are unknown.
    pub unknown: u64,
}

/// A range of a volume whose bytes are not those that were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedRange {
    /// The first byte in the volume.
    pub offset: u64,
    /// The length in bytes.
    pub len: u64,
    /// The reason; `None` for bytes that differ from their checksums.
    pub reason: Option<String>,
}

impl<S: Store> Summed<S> {
    /// Compares all blocks that have bytes or checksums. Damaged neighbours are reported as one range.
    pub(crate) fn scrub(&self, mut report: impl FnMut(DamagedRange)) -> Result<Scrub> {
        let mut scrub = Scrub::default();
        let mut joined = Joined(None);
        let size = self.size().get();
        let mut at = 0;
        while at < size {
            // One stretch after the other, so that a volume of many extents needs no long list.
            let end = size.min(at + super::STRETCH);
            let mut offset = at;
            // Where checksums cannot be read, no extent is known to have none: each block is looked at.
            let all = || vec![Extent { len: end - at, kind: ExtentKind::Data }];
            let extents = self.extents(at, end - at, usize::MAX);
            for extent in extents.unwrap_or_else(|_| all()) {
                let next = offset + extent.len;
                if extent.kind == ExtentKind::Data {
                    let first = offset / BLOCK * BLOCK;
                    let last = next.next_multiple_of(BLOCK).min(size);
                    self.scrub_data(first, last, &mut scrub, &mut |found| {
                        joined.add(found, &mut report)
                    })?;
                }
                offset = next;
            }
            at = end;
        }
        joined.end(&mut report);
        Ok(scrub)
    }

    fn scrub_data(
        &self,
        start: u64,
        end: u64,
        scrub: &mut Scrub,
        report: &mut dyn FnMut(DamagedRange),
    ) -> Result<()> {
        if self.states.is_unknown(start) {
            scrub.unknown += end - start;
            return Ok(());
        }
        let mut buffer = vec![0; index((end - start).min(CHUNK))];
        for part in parts(start, end - start) {
            scrub.verified += part.len;
            let out = &mut buffer[..index(part.len)];
            if let Ok(Some(Verdict::Sound)) = self.read_part(part, out, Wait::Yes) {
                continue;
            }
            for offset in (part.offset..part.offset + part.len).step_by(4096) {
                let len = (part.offset + part.len - offset).min(BLOCK);
                let block = Part { offset, len, is_whole: len == BLOCK };
                let found = self.read_part(block, &mut buffer[..index(len)], Wait::Yes);
                let reason = match found {
                    Ok(Some(Verdict::Sound)) => continue,
                    Ok(_) => None,
                    Err(error) => Some(told(&error)),
                };
                report(DamagedRange { offset, len, reason });
            }
        }
        Ok(())
    }
}

/// Returns an error with its cause.
pub(crate) fn told(error: &StoreError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// The last damage, to which a neighbour is added.
struct Joined(Option<DamagedRange>);

impl Joined {
    fn add(&mut self, found: DamagedRange, report: &mut dyn FnMut(DamagedRange)) {
        match &mut self.0 {
            Some(last) if last.offset + last.len == found.offset && last.reason == found.reason => {
                last.len += found.len;
            }
            // Two extents can begin and end in one block.
            Some(last) if found.offset < last.offset + last.len => {}
            last => {
                if let Some(before) = last.replace(found) {
                    report(before);
                }
            }
        }
    }

    fn end(self, report: &mut dyn FnMut(DamagedRange)) {
        self.0.into_iter().for_each(report);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_with_one_reason_are_joined_and_a_block_is_told_once() {
        let range = |offset, len, reason: &str| DamagedRange {
            offset,
            len,
            reason: (!reason.is_empty()).then(|| reason.to_owned()),
        };
        let (mut joined, mut told) = (Joined(None), Vec::new());
        let found = [
            range(0, 4096, ""),
            range(4096, 4096, ""),
            // The block of two extents.
            range(4096, 4096, ""),
            range(8192, 4096, "bad sector"),
            range(12_288, 4096, "bad sector"),
            range(20_480, 4096, "bad sector"),
        ];
        for range in found {
            joined.add(range, &mut |range| told.push(range));
        }
        joined.end(&mut |range| told.push(range));
        let bad = |offset, len| range(offset, len, "bad sector");
        assert_eq!(told, [range(0, 8192, ""), bad(8192, 8192), bad(20_480, 4096)]);
    }
}
