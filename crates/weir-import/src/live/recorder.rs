//! From values of several systems to an observation.

use super::feed::{Answer, Feed};
use crate::ImportError;
use crate::join::Join;
use std::io::Write;
use weir_observe::format::{WriteError, Writer};
use weir_observe::header::Header;
use weir_observe::observation::Note;
use weir_units::Instant;

/// How often the same is said of a system before it is only counted.
const MOST_NOTES: usize = 200;

/// What is in an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// Samples.
    pub samples: u64,
    /// Entities.
    pub entities: usize,
    /// Series.
    pub series: usize,
}

/// Writes what systems say, sample by sample, in the order of the times.
#[derive(Debug)]
pub struct Recorder<W: Write> {
    join: Join<W>,
    /// When the observation begins, in nanoseconds since 1970.
    start: i64,
    last: Instant,
    notes: usize,
    left_out: usize,
}

impl<W: Write> Recorder<W> {
    /// Begins an observation. The header says when it begins, and has nobody in it.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if it cannot be written.
    pub fn new(out: W, header: &Header) -> Result<Self, WriteError> {
        let start = header.start_unix_ns.unwrap_or(0);
        let join = Join::new(Writer::new(out, header)?);
        Ok(Self { join, start, last: Instant::ZERO, notes: 0, left_out: 0 })
    }

    /// Takes what somebody said at a time, which is later than those before.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if it is not what it must be, or cannot be written.
    pub fn take(
        &mut self,
        feed: &mut Feed,
        at: Instant,
        answer: Answer,
    ) -> Result<(), ImportError> {
        let wall = self.start.saturating_add_unsigned(at.nanos());
        feed.take(wall, answer)?;
        self.join.declare(&feed.sheet, &mut feed.places)?;
        self.join.take(&feed.sheet.row, &feed.places);
        self.join.write(at)?;
        self.last = at;
        let since = std::mem::take(&mut feed.sheet.about);
        let since = since.into_iter().map(|(what, value)| format!("{what} {value}"));
        // Who says twice since when it is counted was told to begin again: it is known once.
        let notes: Vec<_> =
            std::mem::take(&mut feed.sheet.notes).into_iter().chain(since).collect();
        for text in notes {
            if feed.told.insert(text.clone()) {
                self.note(at, &format!("{}: {text}", feed.name()))?;
            }
        }
        Ok(())
    }

    /// Says something that a reader of the numbers should know.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if it cannot be written.
    pub fn note(&mut self, at: Instant, text: &str) -> Result<(), WriteError> {
        self.notes += 1;
        if self.notes > MOST_NOTES {
            self.left_out += 1;
            return Ok(());
        }
        self.join.note(&Note { at_ns: at.nanos(), text: text.to_owned() })
    }

    /// Writes what is not yet in the file.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if it cannot be written.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.join.flush()
    }

    /// What there is so far.
    #[must_use]
    pub fn told(&self) -> Told {
        let (samples, entities, series) = self.join.counts();
        Told { samples, entities, series }
    }

    /// Ends the observation with these notes; `complete` if it came to its own end. Returns all
    /// that was noted now.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if it cannot be written.
    pub fn finish(
        mut self,
        feeds: &mut [Feed],
        mut notes: Vec<String>,
        complete: bool,
    ) -> Result<(W, Vec<String>), WriteError> {
        notes.extend(feeds.iter_mut().filter_map(Feed::unused));
        if self.left_out > 0 {
            notes.push(format!("more notes, left out: {}", self.left_out));
        }
        for text in &notes {
            self.join.note(&Note { at_ns: self.last.nanos(), text: text.clone() })?;
        }
        Ok((self.join.finish(complete)?, notes))
    }
}
