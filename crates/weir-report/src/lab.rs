//! Published figures beside Weir's.

use crate::cells;
use crate::number::{float, rate};
use crate::table::{Cell, Format, Listing, Report, Table};
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

impl Compare {
    const fn sign(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::AtLeast => ">=",
            Self::AtMost => "<=",
        }
    }
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
    /// A clock that ran should have given this figure and did not; none misses.
    NotMeasured,
    /// No clock ran that can give this figure.
    NotRun,
}

/// Which clocks ran that can give a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// The virtual one.
    pub virtual_time: bool,
    /// The wall clock.
    pub wall: bool,
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
    /// Judges what the clocks gave. What is no number was not measured.
    #[must_use]
    pub fn judge(mut self, asked: Asked) -> Self {
        for measured in [&mut self.virtual_time, &mut self.wall] {
            *measured = measured.filter(|got| got.is_finite());
        }
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
        let missing = (asked.virtual_time && self.virtual_time.is_none())
            || (asked.wall && self.wall.is_none());
        self.verdict = match misses {
            (true, true) => Verdict::MissesBoth,
            (true, false) => Verdict::MissesVirtual,
            (false, true) => Verdict::MissesWall,
            (false, false) if missing => Verdict::NotMeasured,
            (false, false) if self.virtual_time.is_none() && self.wall.is_none() => Verdict::NotRun,
            (false, false) => Verdict::Holds,
        };
        self
    }

    fn row(&self, lab: &LabReport) -> Vec<Cell> {
        let shown = |x: Option<f64>| x.map_or_else(Cell::none, rate);
        let off = |x: Option<f64>| {
            let share =
                x.filter(|_| self.expected != 0.0).map(|x| (x - self.expected) / self.expected);
            share.map(|share| Cell::number(format!("{:+.1} %", share * 100.0), share))
        };
        let differences = [off(self.virtual_time), off(self.wall)];
        let both: Vec<String> = differences.iter().flatten().map(Cell::to_string).collect();
        let [virtual_difference, wall_difference] =
            differences.map(|difference| difference.unwrap_or_else(Cell::none));
        let expected = match self.compare {
            Compare::Equal => rate(self.expected),
            other => {
                let shown = format!("{} {}", other.sign(), rate(self.expected));
                Cell::number(shown, self.expected)
            }
        };
        cells![
            lab.lab.clone(),
            self.id.clone(),
            self.published.map_or_else(Cell::none, rate),
            self.compare.sign(),
            expected,
            shown(self.virtual_time),
            shown(self.wall),
            both.join(" / "),
            virtual_difference,
            wall_difference,
            self.unit.clone(),
            match self.basis {
                Basis::Cap => "cap",
                Basis::Calibrated => "calibrated",
                Basis::Direction => "direction",
            },
            match self.verdict {
                Verdict::Holds => "holds",
                Verdict::MissesVirtual => "MISSES (virtual)",
                Verdict::MissesWall => "MISSES (wall)",
                Verdict::MissesBoth => "MISSES (both)",
                Verdict::NotMeasured => "not measured",
                Verdict::NotRun => "not run",
            },
            Cell::number(lab.tries.to_string(), lab.tries.into()),
        ]
    }
}

/// The columns of [`Figure::row`].
const HEADS: [&str; 14] = [
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
    "unit",
    "rests on|rests_on",
    "verdict",
    "|tries",
];

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
    /// How often it was run in wall time until its figures held there, or were given
    /// up; 0 if it was not. The figures are of the last time.
    pub tries: u32,
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
        let title = format!("{}: {} (article {})", self.lab, self.title, self.article);
        let mut table = Table::new(title, &HEADS);
        self.figures.iter().for_each(|figure| table.row(figure.row(self)));
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

impl LabReports {
    /// Whether every figure that was run holds.
    #[must_use]
    pub fn hold(&self) -> bool {
        self.0.iter().all(LabReport::holds)
    }
}

impl Report for LabReports {
    fn tables(&self) -> Vec<Table> {
        ByLab(&self.0).tables()
    }

    /// People read a table for each lab. In CSV it is one, which says the lab in each
    /// row, however many there are.
    fn render(&self, format: Format) -> String {
        if format != Format::Csv {
            return ByLab(&self.0).render(format);
        }
        let mut one = Table::new("", &HEADS);
        one.rows = self.tables().into_iter().flat_map(|table| table.rows).collect();
        Listing(vec![one]).render(format)
    }
}

/// A table for each lab.
#[derive(Serialize)]
#[serde(transparent)]
struct ByLab<'a>(&'a [LabReport]);

impl Report for ByLab<'_> {
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

    const BOTH: Asked = Asked { virtual_time: true, wall: true };
    const VIRTUAL: Asked = Asked { virtual_time: true, wall: false };

    fn judged(compare: Compare, measured: [Option<f64>; 2], asked: Asked) -> Figure {
        let figure = Figure {
            id: "iops".into(),
            unit: "IOPS".into(),
            published: Some(1_000.0),
            expected: 1_000.0,
            place: "text".into(),
            virtual_time: measured[0],
            wall: measured[1],
            compare,
            tolerance: Tolerance { virtual_time: 0.02, wall: 0.03 },
            basis: Basis::Cap,
            verdict: Verdict::NotRun,
            note: None,
        };
        figure.judge(asked)
    }

    #[test]
    fn a_figure_holds_within_its_tolerance_only() {
        let check = |compare, virtual_time: f64, wall: f64, expect| {
            let figure = judged(compare, [Some(virtual_time), Some(wall)], BOTH);
            assert_eq!(figure.verdict, expect);
        };
        check(Compare::Equal, 1_020.0, 970.0, Verdict::Holds);
        check(Compare::Equal, 1_021.0, 970.0, Verdict::MissesVirtual);
        check(Compare::Equal, 1_000.0, 1_031.0, Verdict::MissesWall);
        check(Compare::AtLeast, 5_000.0, 5_000.0, Verdict::Holds);
        check(Compare::AtLeast, 979.0, 969.0, Verdict::MissesBoth);
        check(Compare::AtMost, 1_021.0, 1.0, Verdict::MissesVirtual);
    }

    #[test]
    fn a_clock_that_gives_no_number_is_told_from_one_that_cannot() {
        let check = |measured, asked, expect| {
            assert_eq!(judged(Compare::Equal, measured, asked).verdict, expect);
        };
        let (good, bad) = (Some(1_000.0), Some(1.0));
        check([good, None], BOTH, Verdict::NotMeasured);
        check([None, good], BOTH, Verdict::NotMeasured);
        check([None, None], BOTH, Verdict::NotMeasured);
        check([good, Some(f64::NAN)], BOTH, Verdict::NotMeasured);
        check([bad, None], BOTH, Verdict::MissesVirtual);
        check([good, None], VIRTUAL, Verdict::Holds);
        check([None, None], Asked { virtual_time: false, wall: false }, Verdict::NotRun);
    }

    fn lab(name: &str, figures: Vec<Figure>) -> LabReport {
        let (lab, title, article) = (name.to_owned(), "what it shows".into(), "003".into());
        LabReport { lab, title, article, figures, tries: 2, notes: vec!["wall: scaled".into()] }
    }

    #[test]
    fn what_was_not_measured_does_not_hold() {
        let holds = |measured, asked| {
            LabReports(vec![lab("a", vec![judged(Compare::Equal, measured, asked)])]).hold()
        };
        assert!(holds([Some(1_000.0), None], VIRTUAL));
        assert!(!holds([Some(1_000.0), None], BOTH));
    }

    fn two() -> LabReports {
        let figure = |compare, wall| judged(compare, [Some(1_010.0), wall], BOTH);
        let first = lab("a", vec![figure(Compare::AtLeast, Some(995.0))]);
        LabReports(vec![first, lab("b", vec![figure(Compare::Equal, None)])])
    }

    #[test]
    fn csv_is_one_table_with_every_column() {
        let head = "lab,figure,published,compare,expected,virtual,wall,virtual_difference,\
                    wall_difference,unit,rests_on,verdict,tries\n";
        let a = "a,iops,1000,>=,1000,1010,995,0.01,-0.005,\
                 IOPS,cap,holds,2\n";
        let b = "b,iops,1000,=,1000,1010,,0.01,,IOPS,cap,not measured,2\n";
        let reports = two();
        assert_eq!(reports.render(Format::Csv), format!("{head}{a}{b}"));
        let one = LabReports(reports.0[..1].to_vec());
        assert_eq!(one.render(Format::Csv), format!("{head}{a}"));
    }

    #[test]
    fn people_read_a_table_for_each_lab() {
        let markdown = two().render(Format::Markdown);
        let b = "**b: what it shows (article 003)**\n\n\
            | figure | published | expected | virtual | wall | difference | unit | rests on | verdict      |\n\
            |--------|-----------|----------|---------|------|------------|------|----------|--------------|\n\
            | iops   |     1,000 |    1,000 |   1,010 |    - |     +1.0 % | IOPS | cap      | not measured |\n\
            \nwall: scaled\n\n1 of 2 figures hold\n";
        assert!(markdown.ends_with(b), "{markdown}");
        assert!(markdown.contains("| >= 1,000 |"), "{markdown}");
        let text = two().render(Format::Text);
        assert!(text.contains("+1.0 % / -0.5 %"), "{text}");
    }

    #[test]
    fn json_is_a_list_of_labs() {
        let json: serde_json::Value =
            serde_json::from_str(&two().render(Format::Json)).expect("JSON");
        let figure = &json[1]["figures"][0];
        assert_eq!(json[1]["tries"], 2);
        assert_eq!(figure["verdict"], "not-measured");
        assert_eq!(figure["wall"], serde_json::Value::Null);
        for key in ["id", "published", "virtual", "wall", "tolerance", "basis", "verdict"] {
            assert!(figure.get(key).is_some(), "{key}");
        }
    }
}
