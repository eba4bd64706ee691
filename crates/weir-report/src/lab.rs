//! Published figures beside Weir's.

use crate::cells;
use crate::number::{float, rate};
use crate::table::{Cell, Report, Table};
use serde::Serialize;

/// What a figure rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// It follows from the limits alone.
    Cap,
    /// A stated parameter was fitted to it.
    Calibrated,
    /// Only order and rough ratio are claimed.
    Direction,
}

/// How a figure is compared with the published one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compare {
    /// Equal, within the tolerance.
    Equal,
    /// At least as much, less the tolerance.
    AtLeast,
    /// At most as much, plus the tolerance.
    AtMost,
}

/// Whether a figure holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every clock that ran is within its tolerance.
    Holds,
    /// The virtual clock is not.
    MissesVirtual,
    /// The wall clock is not.
    MissesWall,
    /// Neither is.
    MissesBoth,
    /// No clock ran that can give this figure.
    NotRun,
}

/// The tolerances of a figure, as shares of the published value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Tolerance {
    /// In virtual time.
    #[serde(rename = "virtual")]
    pub virtual_time: f64,
    /// In wall time.
    pub wall: f64,
}

/// A published figure and Weir's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// Its name in the lab.
    pub id: String,
    /// What it counts.
    pub unit: String,
    /// The number that was published; absent where the article says it in words.
    pub published: Option<f64>,
    /// What Weir's figure is held against: the published number, or the least or
    /// most that the article's words allow.
    pub expected: f64,
    /// Where, in the article.
    pub place: String,
    /// In virtual time.
    #[serde(rename = "virtual")]
    pub virtual_time: Option<f64>,
    /// In wall time.
    pub wall: Option<f64>,
    /// How the two are compared.
    pub compare: Compare,
    /// What difference is allowed.
    pub tolerance: Tolerance,
    /// What it rests on.
    pub basis: Basis,
    /// Whether it holds.
    pub verdict: Verdict,
    /// Where the article contradicts itself, or how to read it.
    pub note: Option<String>,
}

impl Figure {
    /// Judges the figures that there are.
    #[must_use]
    pub fn judge(mut self) -> Self {
        let fails = |got: Option<f64>, tolerance: f64| {
            got.is_some_and(|got| {
                let slack = self.expected * tolerance;
                match self.compare {
                    Compare::Equal => (got - self.expected).abs() > slack,
                    Compare::AtLeast => got < self.expected - slack,
                    Compare::AtMost => got > self.expected + slack,
                }
            })
        };
        let misses = (
            fails(self.virtual_time, self.tolerance.virtual_time),
            fails(self.wall, self.tolerance.wall),
        );
        self.verdict = match misses {
            _ if self.virtual_time.is_none() && self.wall.is_none() => Verdict::NotRun,
            (false, false) => Verdict::Holds,
            (true, false) => Verdict::MissesVirtual,
            (false, true) => Verdict::MissesWall,
            (true, true) => Verdict::MissesBoth,
        };
        self
    }
}

/// A lab that was run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LabReport {
    /// Its name.
    pub lab: String,
    /// What it shows.
    pub title: String,
    /// The article.
    pub article: String,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// How it was run: what was scaled, what was fitted.
    pub notes: Vec<String>,
}

impl LabReport {
    /// Whether every figure that was run holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.figures.iter().all(|f| matches!(f.verdict, Verdict::Holds | Verdict::NotRun))
    }

    fn table(&self) -> Table {
        let heads = [
            "figure",
            ">published",
            ">expected",
            ">virtual",
            ">wall",
            ">difference",
            "unit",
            "rests on",
            "verdict",
        ];
        let title = format!("{}: {} (article {})", self.lab, self.title, self.article);
        let mut table = Table::new(title, &heads);
        for f in &self.figures {
            let shown = |x: Option<f64>| x.map_or_else(Cell::none, rate);
            let off = |x: Option<f64>| {
                x.filter(|_| f.expected != 0.0)
                    .map(|x| format!("{:+.1} %", (x / f.expected - 1.0) * 100.0))
            };
            let differences: Vec<String> =
                [off(f.virtual_time), off(f.wall)].into_iter().flatten().collect();
            let expected = match f.compare {
                Compare::Equal => rate(f.expected),
                Compare::AtLeast => Cell::number(format!(">= {}", rate(f.expected)), f.expected),
                Compare::AtMost => Cell::number(format!("<= {}", rate(f.expected)), f.expected),
            };
            table.row(cells![
                f.id.clone(),
                f.published.map_or_else(Cell::none, rate),
                expected,
                shown(f.virtual_time),
                shown(f.wall),
                differences.join(" / "),
                f.unit.clone(),
                match f.basis {
                    Basis::Cap => "cap",
                    Basis::Calibrated => "calibrated",
                    Basis::Direction => "direction",
                }
                .to_owned(),
                match f.verdict {
                    Verdict::Holds => "holds",
                    Verdict::MissesVirtual => "MISSES (virtual)",
                    Verdict::MissesWall => "MISSES (wall)",
                    Verdict::MissesBoth => "MISSES (both)",
                    Verdict::NotRun => "not run",
                }
                .to_owned(),
            ]);
        }
        let noted = self.figures.iter().filter_map(|f| Some((f, f.note.as_ref()?)));
        table.notes.extend(noted.map(|(f, note)| format!("{}: {note}", f.id)));
        table.notes.extend(self.notes.iter().cloned());
        table
    }
}

/// Several labs; serialized as a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct LabReports(pub Vec<LabReport>);

impl Report for LabReports {
    fn tables(&self) -> Vec<Table> {
        let mut tables: Vec<Table> = self.0.iter().map(LabReport::table).collect();
        if let Some(last) = tables.last_mut() {
            let figures = || self.0.iter().flat_map(|lab| &lab.figures);
            let count = |verdict| figures().filter(|f| f.verdict == verdict).count();
            let all = figures().count();
            let (holds, not_run) = (count(Verdict::Holds), count(Verdict::NotRun));
            last.notes.push(format!("{holds} of {} figures hold", all - not_run));
        }
        tables
    }
}

/// The share of `part` in `whole`; zero of nothing.
#[must_use]
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { float(part) / float(whole) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(compare: Compare, virtual_time: Option<f64>, wall: Option<f64>) -> Verdict {
        let tolerance = Tolerance { virtual_time: 0.02, wall: 0.03 };
        let figure = Figure {
            id: "iops".into(),
            unit: "IOPS".into(),
            published: Some(1_000.0),
            expected: 1_000.0,
            place: "text".into(),
            virtual_time,
            wall,
            compare,
            tolerance,
            basis: Basis::Cap,
            verdict: Verdict::NotRun,
            note: None,
        };
        figure.judge().verdict
    }

    #[test]
    fn a_figure_holds_within_its_tolerance_only() {
        assert_eq!(figure(Compare::Equal, Some(1_020.0), Some(970.0)), Verdict::Holds);
        assert_eq!(figure(Compare::Equal, Some(1_021.0), Some(970.0)), Verdict::MissesVirtual);
        assert_eq!(figure(Compare::Equal, None, Some(1_031.0)), Verdict::MissesWall);
        assert_eq!(figure(Compare::AtLeast, Some(5_000.0), None), Verdict::Holds);
        assert_eq!(figure(Compare::AtLeast, Some(979.0), Some(969.0)), Verdict::MissesBoth);
        assert_eq!(figure(Compare::AtMost, Some(1_021.0), None), Verdict::MissesVirtual);
        assert_eq!(figure(Compare::Equal, None, None), Verdict::NotRun);
    }
}
