//! Values of several systems to one observation.

use super::feed::{Answer, Feed};
use crate::error::ImportError;
use crate::join::Join;
use std::io::Write;
use weir_observe::columns::Note;
use weir_observe::format::{WriteError, Writer};
use weir_observe::header::{Contents, Header};
use weir_units::Instant;

/// The most notes about a system; further ones are counted.
const MOST_NOTES: usize = 200;

/// The contents of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// Samples.
    pub samples: u64,
    /// Entities.
    pub entities: usize,
    /// Series.
    pub series: usize,
}

/// A writer of the answers of systems, sample by sample in order of time.
#[derive(Debug)]
pub struct Recorder<W: Write> {
    join: Join<W>,
    /// Start of the observation, in nanoseconds since 1970.
    start: i64,
    last: Instant,
    notes: usize,
    left_out: usize,
}

impl<W: Write> Recorder<W> {
    /// Begins an observation. The header has its start and no entities.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if it cannot be written.
    pub fn new(out: W, header: &Header) -> Result<Self, WriteError> {
        let start = header.start_unix_ns.unwrap_or(0);
        let join = Join::new(Writer::new(out, header)?);
        Ok(Self { join, start, last: Instant::ZERO, notes: 0, left_out: 0 })
    }

    /// Takes an answer with its time, which is later than those before, and shows its sample.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if the answer is malformed or cannot be written.
    pub fn take(
        &mut self,
        feed: &mut Feed,
        at: Instant,
        answer: Answer,
        show: impl FnOnce(&Contents, &[Option<i64>]),
    ) -> Result<(), ImportError> {
        let wall = self.start.saturating_add_unsigned(at.nanos());
        feed.take(wall, answer)?;
        self.join.declare(&feed.sheet, &mut feed.places)?;
        self.join.take(&feed.sheet.row, &feed.places);
        let (contents, row) = self.join.present();
        show(contents, row);
        self.join.write(at)?;
        self.last = at;
        let since = std::mem::take(&mut feed.sheet.about);
        let since = since.into_iter().map(|(what, value)| format!("{what} {value}"));
        // A second note on the start of counters follows a reset: one is enough.
        let notes: Vec<_> =
            std::mem::take(&mut feed.sheet.notes).into_iter().chain(since).collect();
        for text in notes {
            if feed.told.insert(text.clone()) {
                self.note(at, &format!("{}: {text}", feed.name()))?;
            }
        }
        Ok(())
    }

    /// Writes a note.
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

    /// Writes pending samples to the file.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if they cannot be written.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.join.flush()
    }

    /// Returns the present contents.
    #[must_use]
    pub fn told(&self) -> Told {
        let (samples, entities, series) = self.join.counts();
        Told { samples, entities, series }
    }

    /// Finishes the observation with these notes; `complete` if it ended normally. Returns the
    /// notes written now.
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
