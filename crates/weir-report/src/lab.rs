//! Published figures and Weir's figures side by side.

use crate::cells;
use crate::chart::DrawError;
use crate::number::rate;
use crate::page::Page;
use crate::screen::Screen;
use crate::table::{Cell, Report, Table};
use serde::{Deserialize, Serialize};
use std::fmt;

mod plot;

/// The basis of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Follows from the limits alone.
    Cap,
    /// A stated parameter was fitted to it.
    Calibrated,
    /// Predicted with parameters that were fitted to other figures of the experiment.
    Prediction,
    /// Only order and rough ratio are claimed.
    Direction,
    /// Arithmetic, for example a sum of sizes.
    Exact,
}

impl Basis {
    /// Returns the word that lab files and reports use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cap => "cap",
            Self::Calibrated => "calibrated",
            Self::Prediction => "prediction",
            Self::Direction => "direction",
            Self::Exact => "exact",
        }
    }
}

/// The comparison with the published figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compare {
    /// Equal, within the tolerance.
    #[default]
    Equal,
    /// At least as much, less the tolerance.
    AtLeast,
    /// At most as much, plus the tolerance.
    AtMost,
}

impl Compare {
    const fn sign(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::AtLeast => ">=",
            Self::AtMost => "<=",
        }
    }
}

/// The value of a figure: a number, or the name of a wait or tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A name.
    Text(String),
}

impl Value {
    /// Returns the number, if it is one.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(_) => None,
        }
    }

    fn cell(&self) -> Cell {
        match self {
            Self::Number(number) => rate(*number),
            Self::Text(text) => text.as_str().into(),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cell())
    }
}

/// The tolerance. Names must be equal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Tolerance {
    /// A share of the published value.
    Relative {
        /// Value in virtual time.
        #[serde(rename = "virtual")]
        virtual_time: f64,
        /// Value in wall time.
        wall: f64,
    },
    /// An absolute difference, for figures that are shares.
    Points {
        /// In the figure's unit.
        points: f64,
    },
    /// A factor.
    Factor {
        /// More than one.
        factor: f64,
    },
}

impl Tolerance {
    /// Returns the widest share of a value that it allows on either clock. A tolerance of zero itself
    /// is none if it is zero, and unlimited otherwise.
    #[must_use]
    pub fn share_of(self, value: f64) -> f64 {
        match self {
            Self::Relative { virtual_time, wall } => virtual_time.max(wall),
            Self::Points { points: 0.0 } => 0.0,
            Self::Points { points } => points / value.abs(),
            Self::Factor { factor } => factor.max(1.0 / factor) - 1.0,
        }
    }

    /// Returns whether zero or a value of the other sign is within the tolerance.
    #[must_use]
    pub fn reaches_zero(self, value: f64) -> bool {
        !matches!(self, Self::Factor { .. }) && self.share_of(value) >= 1.0
    }

    /// Returns the range around `x` on a clock.
    fn around(self, x: f64, clock: Clock) -> (f64, f64) {
        match (self, clock) {
            (Self::Relative { virtual_time: share, .. }, Clock::Virtual)
            | (Self::Relative { wall: share, .. }, Clock::Wall) => {
                (x - x.abs() * share, x + x.abs() * share)
            }
            (Self::Points { points }, _) => (x - points, x + points),
            (Self::Factor { factor }, _) => (x / factor, x * factor),
        }
    }

    /// Returns the difference of `got` in the terms of the tolerance; in CSV always as a share.
    fn difference(self, got: f64, expected: f64) -> Option<Cell> {
        let share = (got - expected) / expected;
        let shown = match self {
            Self::Points { .. } => format!("{:+.1}", got - expected),
            _ if expected == 0.0 => return None,
            Self::Relative { .. } => format!("{:+.1} %", share * 100.0),
            Self::Factor { .. } => format!("x {}", rate(got / expected)),
        };
        // A share of zero is undefined.
        Some(if share.is_finite() { Cell::number(shown, share) } else { shown.into() })
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Relative { virtual_time, wall } if (virtual_time - wall).abs() < 1e-9 => {
                write!(f, "{:.0} %", virtual_time * 100.0)
            }
            Self::Relative { virtual_time, wall } => {
                write!(f, "{:.0} / {:.0} %", virtual_time * 100.0, wall * 100.0)
            }
            Self::Points { points } if *points == 0.0 => f.write_str("none"),
            Self::Points { points } => write!(f, "+/- {points}"),
            Self::Factor { factor } => write!(f, "x {factor}"),
        }
    }
}

/// Tolerance of an explained miss.
const PINNED: Tolerance = Tolerance::Relative { virtual_time: 0.02, wall: 0.03 };

/// The explanation of a known miss. It does not cover a figure that moves further away.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Explained {
    /// Weir's value. The explanation covers 2 % around it, 3 % in wall time.
    pub gives: Value,
    /// The reason.
    pub why: String,
}

/// The verdict on a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// All clocks that ran are within the tolerance.
    Holds,
    /// The virtual clock misses.
    MissesVirtual,
    /// The wall clock misses.
    MissesWall,
    /// Both clocks miss.
    MissesBoth,
    /// A clock that ran did not give this figure; none misses.
    NotMeasured,
    /// No clock ran that can give this figure.
    NotRun,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clock {
    Virtual,
    Wall,
}

/// The clocks that ran and can give a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// The virtual clock.
    pub virtual_time: bool,
    /// The wall clock.
    pub wall: bool,
}

/// A published figure and Weir's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// Name in the lab.
    pub id: String,
    /// Unit.
    pub unit: String,
    /// The published value; `None` if the article describes it in words.
    pub published: Option<Value>,
    /// The value to compare with: the published one, or the bound that the article's words imply.
    pub expected: Value,
    /// Place in the article.
    pub place: String,
    /// Value in virtual time.
    #[serde(rename = "virtual")]
    pub virtual_time: Option<Value>,
    /// Value in wall time.
    pub wall: Option<Value>,
    /// Comparison.
    pub compare: Compare,
    /// Tolerance.
    pub tolerance: Tolerance,
    /// Basis.
    pub basis: Basis,
    /// Verdict.
    pub verdict: Verdict,
    /// Explanation of a known miss.
    pub explained: Option<Explained>,
    /// Set if it misses within the explanation.
    pub explained_miss: bool,
    /// Class by which hits are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Note, for example on contradictions in the article.
    pub note: Option<String>,
}

impl Figure {
    /// Judges the values of the clocks. A value that is not a number was not measured.
    #[must_use]
    pub fn judge(mut self, asked: Asked) -> Self {
        for measured in [&mut self.virtual_time, &mut self.wall] {
            let value = measured.take();
            *measured = value.filter(|value| value.number().is_none_or(f64::is_finite));
        }
        let clocks = [(Clock::Virtual, &self.virtual_time), (Clock::Wall, &self.wall)];
        let misses = clocks.map(|(clock, got)| got.as_ref().filter(|got| self.misses(got, clock)));
        let covers = |(got, clock)| Option::is_none_or(got, |got| self.covers(got, clock));
        let covered = misses.into_iter().zip([Clock::Virtual, Clock::Wall]).all(covers);
        let missing = (asked.virtual_time && self.virtual_time.is_none())
            || (asked.wall && self.wall.is_none());
        self.verdict = match misses.map(|miss| miss.is_some()) {
            [true, true] => Verdict::MissesBoth,
            [true, false] => Verdict::MissesVirtual,
            [false, true] => Verdict::MissesWall,
            [false, false] if missing => Verdict::NotMeasured,
            [false, false] if self.virtual_time.is_none() && self.wall.is_none() => Verdict::NotRun,
            [false, false] => Verdict::Holds,
        };
        self.explained_miss = self.is_miss() && covered && !missing;
        self
    }

    /// Returns its point in a plot, unless it lacks two positive numbers in virtual time.
    fn dot(&self) -> Option<plot::Dot<'_>> {
        let number = |value: &Value| value.number().filter(|number| *number > 0.0);
        Some(plot::Dot {
            class: self.class.as_deref().unwrap_or(self.basis.name()),
            published: number(&self.expected)?,
            predicted: self.virtual_time.as_ref().and_then(number)?,
            is_fitted: self.basis == Basis::Calibrated,
        })
    }

    fn is_miss(&self) -> bool {
        use Verdict::{MissesBoth, MissesVirtual, MissesWall};
        matches!(self.verdict, MissesVirtual | MissesWall | MissesBoth)
    }

    fn misses(&self, got: &Value, clock: Clock) -> bool {
        let (Value::Number(got), Value::Number(expected)) = (got, &self.expected) else {
            return *got != self.expected;
        };
        let (least, most) = self.tolerance.around(*expected, clock);
        match self.compare {
            Compare::Equal => !(least..=most).contains(got),
            Compare::AtLeast => *got < least,
            Compare::AtMost => *got > most,
        }
    }

    /// Returns whether a miss is covered by the explanation.
    fn covers(&self, got: &Value, clock: Clock) -> bool {
        let Some(Explained { gives, .. }) = &self.explained else { return false };
        let (Value::Number(got), Value::Number(gives)) = (got, gives) else {
            return got == gives;
        };
        let (least, most) = PINNED.around(*gives, clock);
        (least..=most).contains(got)
    }

    /// Returns whether it holds, or misses as explained.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.explained_miss || matches!(self.verdict, Verdict::Holds | Verdict::NotRun)
    }

    fn verdict_in_words(&self) -> String {
        let words = match self.verdict {
            Verdict::Holds => "holds",
            Verdict::MissesVirtual => "MISSES (virtual)",
            Verdict::MissesWall => "MISSES (wall)",
            Verdict::MissesBoth => "MISSES (both)",
            Verdict::NotMeasured => "not measured",
            Verdict::NotRun => "not run",
        };
        let explained = if self.explained_miss { ", explained" } else { "" };
        format!("{words}{explained}")
    }

    /// Returns the notes below the table.
    fn notes(&self) -> impl Iterator<Item = String> {
        let explained = self.explained.as_ref().map(|Explained { gives, why }| {
            match (self.verdict, self.explained_miss) {
                (_, true) => format!("explained miss: {why}"),
                (Verdict::Holds, _) => {
                    format!("it holds, so the explanation can be removed: {why}")
                }
                (Verdict::NotRun | Verdict::NotMeasured, _) => why.clone(),
                _ => format!(
                    "not within 2 % (3 % in wall time) of the explained value {gives}: {why}"
                ),
            }
        });
        let notes = [self.note.clone(), explained];
        notes.into_iter().flatten().map(|note| format!("{}: {note}", self.id))
    }

    fn row(&self, lab: &LabReport) -> Vec<Cell> {
        let shown = |value: &Option<Value>| value.as_ref().map_or_else(Cell::none, Value::cell);
        let got = |value: &Option<Value>| match value {
            // A long text is printed once.
            Some(text @ Value::Text(long)) if long.len() > LONG && *text == self.expected => {
                "the same".into()
            }
            value => shown(value),
        };
        let off = |value: &Option<Value>| {
            let (got, expected) = (value.as_ref()?.number()?, self.expected.number()?);
            self.tolerance.difference(got, expected)
        };
        let differences = [off(&self.virtual_time), off(&self.wall)];
        let both: Vec<String> = differences.iter().flatten().map(Cell::to_string).collect();
        let [virtual_difference, wall_difference] =
            differences.map(|difference| difference.unwrap_or_else(Cell::none));
        let expected = match (self.compare, &self.expected) {
            (Compare::AtLeast | Compare::AtMost, Value::Number(number)) => {
                Cell::number(format!("{} {}", self.compare.sign(), rate(*number)), *number)
            }
            (_, value) => value.cell(),
        };
        let allowed = match self.expected {
            Value::Number(_) => self.tolerance.to_string().into(),
            Value::Text(_) => Cell::none(),
        };
        cells![
            lab.lab.clone(),
            self.id.clone(),
            shown(&self.published),
            self.compare.sign(),
            expected,
            got(&self.virtual_time),
            got(&self.wall),
            both.join(" / "),
            virtual_difference,
            wall_difference,
            allowed,
            self.unit.clone(),
            self.basis.name(),
            self.verdict_in_words(),
            Cell::number(lab.tries.to_string(), lab.tries.into()),
        ]
    }
}

/// Longest text of a cell.
const LONG: usize = 40;

/// The columns of [`Figure::row`].
const HEADS: [&str; 15] = [
    "|lab",
    "figure",
    ">published",
    "|compare",
    ">expected",
    ">virtual",
    ">wall",
    ">difference|",
    "|virtual_difference",
    "|wall_difference",
    ">tolerance",
    "unit",
    "basis",
    "verdict",
    "|tries",
];

/// A lab that was run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LabReport {
    /// Name.
    pub lab: String,
    /// Title.
    pub title: String,
    /// The article.
    pub article: String,
    /// Figures.
    pub figures: Vec<Figure>,
    /// Number of runs in wall time; the figures are of the last one. 0 if there was none.
    pub tries: u32,
    /// Notes, for example on scaling and fitting.
    pub notes: Vec<String>,
}

impl LabReport {
    /// Returns whether all figures hold, or miss as explained.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.figures.iter().all(Figure::passes)
    }

    fn table(&self) -> Table {
        let title = format!("{}: {} (article {})", self.lab, self.title, self.article);
        let mut table = Table::new(title, &HEADS);
        self.figures.iter().for_each(|figure| table.row(figure.row(self)));
        for note in self.figures.iter().flat_map(Figure::notes).chain(self.notes.iter().cloned()) {
            if !table.notes.contains(&note) {
                table.notes.push(note);
            }
        }
        table
    }
}

/// Several labs, serialized as a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct LabReports(pub Vec<LabReport>);

impl LabReports {
    /// Returns whether all figures hold, or miss as explained.
    #[must_use]
    pub fn hold(&self) -> bool {
        self.0.iter().all(LabReport::holds)
    }
}

impl LabReports {
    /// Returns the page of the labs.
    #[must_use]
    pub fn page(&self) -> Page {
        let tables: Vec<Table> = self.0.iter().map(LabReport::table).collect();
        Page::new(&ByLab(&self.0).summary()).tables(&tables)
    }
}

impl LabReports {
    /// Returns a plot of all numbers in virtual time as an SVG: published against predicted, and
    /// the deviations by class.
    ///
    /// # Errors
    ///
    /// [`DrawError`] if it cannot be drawn.
    pub fn plot(&self) -> Result<String, DrawError> {
        plot::svg(self.0.iter().flat_map(|lab| &lab.figures).filter_map(Figure::dot))
    }
}

impl Report for LabReports {
    fn tables(&self) -> Vec<Table> {
        ByLab(&self.0).tables()
    }

    fn text(&self, screen: &Screen) -> String {
        let labs = ByLab(&self.0);
        format!("{}\n\n{}", screen.prose(&labs.summary(), 2), labs.text(screen))
    }

    fn markdown(&self) -> String {
        let labs = ByLab(&self.0);
        format!("**{}**\n\n{}", labs.summary(), labs.markdown())
    }

    /// Returns one table for all labs, with the lab in each row.
    fn csv(&self) -> String {
        let mut one = Table::new("", &HEADS);
        one.rows = self.tables().into_iter().flat_map(|table| table.rows).collect();
        crate::table::csv(&[one])
    }
}

/// A table for each lab.
#[derive(Serialize)]
#[serde(transparent)]
struct ByLab<'a>(&'a [LabReport]);

impl ByLab<'_> {
    fn summary(&self) -> String {
        let figures = || self.0.iter().flat_map(|lab| &lab.figures);
        let ran = figures().filter(|f| f.verdict != Verdict::NotRun).count();
        let hold = figures().filter(|f| f.verdict == Verdict::Holds).count();
        let explained = match figures().filter(|f| f.explained_miss).count() {
            0 => String::new(),
            1 => ", 1 explained miss".to_owned(),
            n => format!(", {n} explained misses"),
        };
        format!("{hold} of {ran} figures hold{explained}")
    }
}

impl Report for ByLab<'_> {
    fn tables(&self) -> Vec<Table> {
        self.0.iter().map(LabReport::table).collect()
    }
}

#[cfg(test)]
mod tests;
