//! The starts of the targets, held back until the end.

use super::target::Target;
use crate::error::BackupError;
use crate::format::wire::is_zero;
use crate::mark::{HEAD, SECTOR};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The first [`HEAD`] bytes of each source.
#[derive(Default)]
pub(super) struct Heads(Mutex<BTreeMap<u16, Vec<u8>>>);

impl Heads {
    /// Keeps the part of `data` that is before [`HEAD`]; returns its length.
    pub(super) fn keep(&self, source: u16, offset: u64, data: &[u8]) -> usize {
        let Some(room) = HEAD.checked_sub(offset).filter(|room| *room > 0) else { return 0 };
        let length = usize::try_from(room).unwrap_or(0).min(data.len());
        let start = usize::try_from(offset).unwrap_or(0);
        let mut heads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let head = heads.entry(source).or_default();
        if head.len() < start + length {
            head.resize(start + length, 0);
        }
        head[start..start + length].copy_from_slice(&data[..length]);
        length
    }

    /// Returns whether what is kept is the part of `data` that is before [`HEAD`], and its length.
    pub(super) fn is_kept(&self, source: u16, offset: u64, data: &[u8]) -> (usize, bool) {
        let Some(room) = HEAD.checked_sub(offset).filter(|room| *room > 0) else {
            return (0, true);
        };
        let length = usize::try_from(room).unwrap_or(0).min(data.len());
        let start = usize::try_from(offset).unwrap_or(0);
        let heads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = heads.get(&source).and_then(|head| head.get(start..start + length));
        (length, own == Some(&data[..length]))
    }

    /// Writes the start of a target in the place of its mark, and waits until it is durable. If it is
    /// to be proved, reads it back.
    pub(super) fn write(
        &self,
        source: u16,
        target: &dyn Target,
        is_proved: bool,
    ) -> Result<(), BackupError> {
        let mut head = vec![0; usize::try_from(HEAD.min(target.size())).unwrap_or(0)];
        let heads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = heads.get(&source).map_or(&[][..], Vec::as_slice);
        let length = kept.len().min(head.len());
        head[..length].copy_from_slice(&kept[..length]);
        let mut way = target.open(head.len())?;
        // An image has no mark, and stays sparse.
        if !target.is_hidden() || !is_zero(&head) {
            // The sector with the mark last.
            let (first, rest) = head.split_at(SECTOR.min(head.len()));
            if !rest.is_empty() {
                way.write(SECTOR as u64, rest)?;
                way.finish()?;
            }
            way.write(0, first)?;
        }
        way.finish()?;
        if !is_proved {
            return Ok(());
        }
        let mut read = vec![0; head.len()];
        way.read(0, &mut read)?;
        if read == head {
            return Ok(());
        }
        Err(BackupError::Failed(format!(
            "the first {} bytes of {} read otherwise than they were written; the restore is not proved",
            head.len(),
            target.name()
        )))
    }
}
