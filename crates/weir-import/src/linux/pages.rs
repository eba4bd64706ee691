//! Heads of `vmstat`: those of another run, and those of another page of the same run.
//!
//! vmstat repeats its head after each page of as many rows as a window shows, less three. Output
//! to a file or a pipe has pages of 21 rows, and windows in use are not lower than that. A head
//! therefore begins a run if
//!
//! - it follows fewer rows than a page, or than the page before; or
//! - the rows have times, and the step to its row is not the usual one; or
//! - its row repeats the first row of the previous run, since an average since the start of the
//!   machine hardly changes.
//!
//! Without times, a head after pages of more than 21 rows is ambiguous: a high window, or a run
//! with as many rows. The rates of its row are then unknown.

/// Rows of a page of output to a file or a pipe.
const PAGE: u64 = 21;
/// A step differs from the usual one if the difference exceeds this fraction, and the rounding of
/// times to whole seconds.
const STEP_DIFFERS: f64 = 0.2;
const ROUNDING_NS: u64 = 2_000_000_000;
/// Averages since the start of the machine differ by less than this fraction, or by one unit of
/// rounding.
const SAME: f64 = 0.1;

/// The beginning that a row makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begins {
    /// A run, whose first row is an average since the start of the machine.
    Run,
    /// Possibly a run.
    Unknown,
    Nothing,
}

/// The state of rows and heads of an input.
#[derive(Debug, Default)]
pub(super) struct Pages {
    /// Rates of the first row of the run.
    first: Option<Vec<f64>>,
    /// Rows since the last head, and rows of the previous page in the same run.
    rows: u64,
    page: Option<u64>,
    /// Time of the last row, and the step to it.
    last: Option<i64>,
    step_ns: Option<i64>,
}

impl Pages {
    /// Takes a row with its time and its rates. Returns what begins with it.
    pub(super) fn take(&mut self, follows_head: bool, at: Option<i64>, rates: &[f64]) -> Begins {
        let begins = match &self.first {
            None => Begins::Run,
            Some(_) if !follows_head => Begins::Nothing,
            Some(first) => self.behind_a_head(first, at, rates),
        };
        match begins {
            Begins::Run => {
                self.first = Some(rates.to_vec());
                self.page = None;
                self.step_ns = None;
                self.rows = 0;
            }
            _ if follows_head => {
                self.page = Some(self.rows);
                self.rows = 0;
            }
            _ => {}
        }
        self.rows += 1;
        if begins != Begins::Run {
            self.step_ns = self.step_to(at).or(self.step_ns);
        }
        self.last = at;
        begins
    }

    fn step_to(&self, at: Option<i64>) -> Option<i64> {
        at.zip(self.last).and_then(|(at, last)| at.checked_sub(last))
    }

    /// Returns what begins with a row after a repeated head.
    fn behind_a_head(&self, first: &[f64], at: Option<i64>, rates: &[f64]) -> Begins {
        let step = self.step_to(at);
        let is_short = self.rows < self.page.unwrap_or(PAGE);
        let is_off = step.zip(self.step_ns).is_some_and(|(step, usual)| differs(step, usual));
        if is_short || is_off || is_same(first, rates) {
            return Begins::Run;
        }
        let is_timed = step.is_some() && self.step_ns.is_some();
        if is_timed || self.rows == PAGE { Begins::Nothing } else { Begins::Unknown }
    }
}

/// Returns whether a step is not the usual one.
fn differs(step: i64, usual: i64) -> bool {
    let apart = step.abs_diff(usual);
    #[expect(clippy::cast_precision_loss, reason = "only compared")]
    let is_other = apart as f64 > STEP_DIFFERS * usual as f64;
    step <= 0 || is_other && apart > ROUNDING_NS
}

/// Returns whether two rows hold averages since the same start.
fn is_same(first: &[f64], other: &[f64]) -> bool {
    let is_near = |(one, other): (&f64, &f64)| {
        (one - other).abs() <= (SAME * one.abs().max(other.abs())).max(1.0)
    };
    first.len() == other.len() && first.iter().zip(other).all(is_near)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AVERAGE: [f64; 3] = [7.0, 38.0, 134.0];

    /// Feeds blocks of rows with a head before each: number of rows, second of the first row, and
    /// whether that row is an average. Returns the beginning that each block makes.
    fn begins(blocks: &[(u64, Option<i64>, bool)]) -> Vec<Begins> {
        let mut pages = Pages::default();
        let mut told = Vec::new();
        for (block, (rows, second, is_average)) in blocks.iter().enumerate() {
            for row in 0..*rows {
                let at = second.map(|second| (second + 5 * row.cast_signed()) * 1_000_000_000);
                let busy = [500.0 * (block + 1) as f64, 100.0 * row as f64, 9_000.0];
                let rates = if row == 0 && *is_average { AVERAGE } else { busy };
                let own = pages.take(row == 0, at, &rates);
                match row {
                    0 => told.push(own),
                    _ => assert_eq!(own, Begins::Nothing),
                }
            }
        }
        told
    }

    #[test]
    fn heads_of_pages_and_of_runs() {
        use Begins::{Nothing, Run, Unknown};
        // One run, written to a file.
        assert_eq!(
            begins(&[(21, None, true), (21, None, false), (9, None, false)]),
            [Run, Nothing, Nothing]
        );
        // vmstat 5 12, appended by cron.
        assert_eq!(begins(&[(12, None, true), (12, None, false)]), [Run, Run]);
        // vmstat 1 30 twice.
        let blocks = [(21, None, true), (9, None, false), (21, None, false), (9, None, false)];
        assert_eq!(begins(&blocks), [Run, Nothing, Run, Nothing]);
        // vmstat 1 21 twice: averages since the start repeat.
        assert_eq!(begins(&[(21, None, true), (21, None, true)]), [Run, Run]);
        // A high window, or runs of 47 rows.
        assert_eq!(begins(&[(47, None, true), (47, None, false)]), [Run, Unknown]);
        assert_eq!(begins(&[(1, None, true), (1, None, false)]), [Run, Run]);
    }

    #[test]
    fn heads_of_rows_with_times() {
        use Begins::{Nothing, Run};
        let at = |second: i64| Some(second);
        assert_eq!(begins(&[(47, at(0), true), (47, at(235), false)]), [Run, Nothing]);
        assert_eq!(begins(&[(47, at(0), true), (47, at(250), false)]), [Run, Run]);
        // Shorter than the gap between them.
        assert_eq!(begins(&[(2, at(0), true), (2, at(60), false)]), [Run, Run]);
        // Without a gap.
        assert_eq!(begins(&[(3, at(0), true), (3, at(15), false)]), [Run, Run]);
    }
}
