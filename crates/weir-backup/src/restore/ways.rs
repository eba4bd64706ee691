//! The ways to the targets, shared by the threads that read stripes, so that the memory of a restore
//! does not grow with stripes times sources.

use super::target::{Target, TargetIo, Targets};
use crate::error::BackupError;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The ways to all targets together, if there are not more targets.
const WAYS: usize = 16;
/// The most bytes of writes that wait for an answer, on all ways together ...
const IN_FLIGHT: usize = 64 << 20;
/// ... on one way ...
const MOST: usize = 4 << 20;
/// ... and on one of very many, which may have one write in flight.
const LEAST: usize = 64 << 10;

/// A way to a target, if it was opened.
type Way = Mutex<Option<Box<dyn TargetIo>>>;

/// The ways to all targets.
pub(super) struct Ways<'a> {
    targets: &'a Targets<'a>,
    /// The ways to each target that there is. A stripe always takes the same one.
    ways: Vec<Vec<Way>>,
    in_flight: usize,
}

impl<'a> Ways<'a> {
    pub(super) fn new(targets: &'a Targets<'a>) -> Self {
        let there = targets.iter().flatten().count().max(1);
        let each = (WAYS / there).max(1);
        let in_flight = (IN_FLIGHT / (each * there)).clamp(LEAST, MOST);
        let ways = |target: &Option<&dyn Target>| {
            let count = if target.is_some() { each } else { 0 };
            (0..count).map(|_| Way::default()).collect()
        };
        Self { targets, ways: targets.iter().map(ways).collect(), in_flight }
    }

    /// Returns the way of a stripe to a target, by the number of its source, once no other stripe
    /// uses it; `None` for a source without a target.
    pub(super) fn take(&self, source: u16, stripe: u8) -> Result<Option<Taken<'_>>, BackupError> {
        let index = usize::from(source);
        let target = self.targets.get(index).copied().flatten();
        let Some((target, ways)) = target.zip(self.ways.get(index)) else { return Ok(None) };
        let way = &ways[usize::from(stripe) % ways.len()];
        let mut way = way.lock().unwrap_or_else(PoisonError::into_inner);
        if way.is_none() {
            *way = Some(target.open(self.in_flight)?);
        }
        Ok(Some(Taken(way)))
    }

    /// Waits until everything that was written is durable, and closes all ways.
    pub(super) fn finish(&self) -> Result<(), BackupError> {
        for way in self.ways.iter().flatten() {
            let way = way.lock().unwrap_or_else(PoisonError::into_inner).take();
            way.map_or(Ok(()), |mut way| way.finish())?;
        }
        Ok(())
    }
}

/// A way that is used.
pub(super) struct Taken<'a>(MutexGuard<'a, Option<Box<dyn TargetIo>>>);

impl Taken<'_> {
    pub(super) fn way(&mut self) -> Result<&mut dyn TargetIo, BackupError> {
        match self.0.as_mut() {
            Some(way) => Ok(way.as_mut()),
            None => Err(BackupError::Failed("a way to a target was closed too early".to_owned())),
        }
    }
}
