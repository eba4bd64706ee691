//! A reader of output grouped by table, as of sar and sadf. It takes line by line and keeps
//! samples until they are complete.

use super::held::Held;
use crate::error::ImportError;
use crate::kind::Bytes;
use crate::sheet::{At, ReadSamples, Reports, Sheet};
use crate::text::Lines;
use weir_observe::header::{EntityId, EntityKind};
use weir_observe::moment::Clock;

/// A parser of lines.
pub(super) trait TakeLines {
    /// Takes a line that is not blank.
    ///
    /// # Errors
    ///
    /// A description of the malformed part.
    fn line(&mut self, sheet: &mut Sheet, held: &mut Held, line: &str) -> Result<(), String>;

    /// Ends the input.
    fn end(&mut self, _sheet: &mut Sheet, held: &mut Held) {
        held.release();
    }

    /// Returns the set of devices in each sample, as far as it is known.
    fn reports(&self) -> Reports {
        Reports::AllButIdle
    }

    /// Returns the time of the sample at a moment.
    fn at(&mut self, moment: i64) -> At {
        At::Wall(moment)
    }
}

/// A reader of output grouped by table.
pub(super) struct ByTable<T> {
    lines: Lines<Bytes>,
    held: Held,
    own: T,
    ended: bool,
}

impl<T: TakeLines + 'static> ByTable<T> {
    #[expect(clippy::new_ret_no_self, reason = "a reader is always boxed")]
    pub(super) fn new(input: Bytes, own: T) -> Box<dyn ReadSamples> {
        let (lines, held) = (Lines::new(input), Held::default());
        Box::new(Self { lines, held, own, ended: false })
    }
}

impl<T: TakeLines> ReadSamples for ByTable<T> {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        sheet.reports = self.own.reports();
        loop {
            if let Some(moment) = self.held.next(sheet) {
                return Ok(Some(self.own.at(moment)));
            }
            if self.ended {
                return Ok(None);
            }
            let Some(line) = self.lines.next_line()? else {
                self.ended = true;
                self.own.end(sheet, &mut self.held);
                continue;
            };
            if line.trim_ascii().is_empty() {
                continue;
            }
            match self.own.line(sheet, &mut self.held, &line) {
                Ok(()) => {}
                Err(_) if self.lines.was_open() => sheet.note(
                    "its last line was truncated and is \
                                                               left out",
                ),
                Err(reason) => return Err(ImportError::at(self.lines.number(), reason)),
            }
        }
    }
}

/// The host of the current rows.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    last: Option<(String, EntityId)>,
}

impl Hosts {
    /// Returns the host of a name, and whether it is another than before.
    pub(super) fn host(&mut self, sheet: &mut Sheet, name: &str) -> (EntityId, bool) {
        match &self.last {
            Some((last, id)) if last == name => (*id, false),
            last => {
                let is_other = last.is_some();
                let id = sheet.entity(EntityKind::Host, name, None);
                self.last = Some((name.to_owned(), id));
                (id, is_other)
            }
        }
    }
}

/// The times of rows; rows of one time are consecutive.
#[derive(Debug, Default)]
pub(super) struct Moments {
    clock: Clock,
    last: (String, i64),
}

impl Moments {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, ..Self::default() }
    }

    /// Parses a time.
    ///
    /// # Errors
    ///
    /// A description, if the text is no time.
    pub(super) fn moment(&mut self, text: &str) -> Result<i64, String> {
        if self.last.0 != text {
            let moment = self.clock.moment(text);
            self.last = (text.to_owned(), moment.ok_or_else(|| format!("{text:?} is not a time"))?);
        }
        Ok(self.last.1)
    }
}
