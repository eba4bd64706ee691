//! Systems side by side: the verdict, each side, and the difference of each metric to the first.

use crate::answer::Answer;
use crate::bars::{Bar, Bars};
use crate::cells;
use crate::chart::DrawError;
use crate::number::{Amount, Delta, group, mib, percent, rate, time};
use crate::page::Page;
use crate::table::{Cell, Report, Table};
use serde::Serialize;

/// The unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricUnit {
    /// Events per second.
    PerSecond,
    /// Bytes per second.
    BytesPerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// The mean number of requests, of a queue.
    Requests,
    /// A number in the unit of its source.
    Number,
}

impl MetricUnit {
    fn cell(self, value: f64) -> Cell {
        match self {
            Self::PerSecond => Cell::number(format!("{}/s", rate(value)), value),
            Self::BytesPerSecond => Cell::number(format!("{} MiB/s", mib(value)), value),
            Self::Nanoseconds => time(value),
            Self::Requests | Self::Number => rate(value),
        }
    }
}

/// The direction in which a metric improves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// A difference is neither.
    Neither,
}

/// The outcome of the test of a metric.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceOutcome {
    /// Better by more than noise.
    Better,
    /// Worse by more than noise.
    Worse,
    /// Different by more than noise, in a metric that has no direction.
    Different,
    /// No more than noise.
    Noise,
    /// There are too few values, or they depend on each other too strongly.
    #[default]
    NotTested,
}

impl DifferenceOutcome {
    /// Returns the words for text output.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Different => "different",
            Self::Noise => "noise",
            Self::NotTested => "not tested",
        }
    }

    /// Returns whether the difference is more than noise.
    #[must_use]
    pub const fn is_difference(self) -> bool {
        matches!(self, Self::Better | Self::Worse | Self::Different)
    }
}

/// The result of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ComparisonReport {
    /// Set if a side is worse than the first by more than the tolerance, and by more than noise.
    pub is_worse: bool,
    /// Set if it cannot be told whether a side is worse, since a metric that decides was not tested.
    pub is_undecided: bool,
    /// The verdict in one sentence.
    pub verdict: String,
    /// The metric that decided, if a side is worse.
    pub decided_by: Option<DecidingMetric>,
    /// The share by which a side may be worse.
    pub tolerance: f64,
    /// Level of the test: the probability that any difference is reported for two runs of the same
    /// thing, if its assumptions hold.
    pub significance: f64,
    /// The test in words.
    pub test: String,
    /// Number of differences that were tested.
    pub tested: usize,
    /// The sides; the others are compared with the first.
    pub sides: Vec<SideReport>,
    /// The differences of each side but the first.
    pub comparisons: Vec<PairReport>,
    /// Notes.
    pub notes: Vec<String>,
}

/// The metric that decided.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DecidingMetric {
    /// The side that is worse.
    pub side: String,
    /// The subject.
    pub subject: String,
    /// The metric.
    pub metric: String,
    /// The relative difference.
    pub change: f64,
}

/// A side.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SideReport {
    /// Its letter.
    pub side: String,
    /// Its name, for example a path.
    pub name: String,
    /// Number of samples or of runs.
    pub samples: usize,
    /// The length of the observed time.
    pub seconds: Option<f64>,
    /// The verdict of its diagnosis.
    pub diagnosis: Option<&'static str>,
    /// The diagnosis in one sentence.
    pub diagnosis_summary: Option<String>,
    /// Its monthly price, as far as it is known.
    pub month: Option<Amount>,
    /// Number of items without a price.
    pub unpriced: usize,
    /// Currency of the price.
    pub currency: Option<String>,
    /// Region and date of the price.
    pub price_basis: Option<String>,
    /// The difference to the price of the first side.
    pub month_difference: Option<Delta>,
}

/// The differences of a side to the first.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PairReport {
    /// The side.
    pub side: String,
    /// The metrics.
    pub metrics: Vec<MetricReport>,
}

/// A metric of both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricReport {
    /// The kind of the subject.
    pub kind: String,
    /// The subject.
    pub subject: String,
    /// The metric.
    pub metric: String,
    /// The unit of `a` and `b`.
    pub unit: MetricUnit,
    /// The direction in which it improves.
    pub better: Better,
    /// Set if it takes part in the decision.
    pub decides: bool,
    /// Value of the first side.
    pub a: f64,
    /// Value of the other side.
    pub b: f64,
    /// Relative difference; `None` if the first value is zero.
    pub change: Option<f64>,
    /// Lower end of the 99 % confidence interval of the relative difference.
    pub change_low: Option<f64>,
    /// Upper end.
    pub change_high: Option<f64>,
    /// Probability of such a difference between two runs of the same thing, corrected for the number
    /// of metrics.
    pub p: Option<f64>,
    /// The outcome.
    pub outcome: DifferenceOutcome,
}

impl SideReport {
    fn price(&self) -> Cell {
        let currency = self.currency.as_deref().unwrap_or_default();
        match self.month {
            None => Cell::none(),
            Some(month) if self.unpriced > 0 => month.with_unknown_rest(),
            Some(month) => month.with_currency(currency),
        }
    }
}

/// Differences beyond this share are drawn as long as this.
const LONGEST: f64 = 3.0;

/// Returns a relative difference with its sign.
fn change(share: f64) -> Cell {
    let percent = format!("{:+.1} %", share * 100.0);
    let shown = match percent.as_str() {
        "-0.0 %" | "+0.0 %" => "0.0 %".to_owned(),
        _ if share.abs() >= 100.0 => format!("x {}", rate(share + 1.0)),
        _ => percent,
    };
    Cell::number(shown, share)
}

impl ComparisonReport {
    fn sides_table(&self) -> Table {
        let heads = [
            "side",
            "name",
            "diagnosis",
            ">price a month|month",
            ">difference|month_difference",
            "|currency",
            "|unpriced",
            ">samples",
            ">seconds",
            "|diagnosis_summary",
        ];
        let mut table = Table::new("", &heads).named("sides");
        for own in &self.sides {
            table.row(cells![
                own.side.as_str(),
                own.name.as_str(),
                own.diagnosis.map_or_else(Cell::none, Cell::from),
                own.price(),
                own.month_difference.map_or_else(Cell::none, Cell::from),
                own.currency.as_deref().map_or_else(Cell::none, Cell::from),
                crate::number::grouped(own.unpriced as u64),
                crate::number::grouped(own.samples as u64),
                own.seconds.map_or_else(Cell::none, rate),
                own.diagnosis_summary.as_deref().map_or_else(Cell::none, Cell::from),
            ]);
        }
        table
    }

    fn table(&self, pair: &PairReport) -> Table {
        let b = format!(">{}|b", pair.side);
        let heads = [
            "subject",
            "|kind",
            "metric",
            "|unit",
            ">A|a",
            &b,
            ">change",
            "|change_low",
            "|change_high",
            "|p",
            "result|outcome",
            "|side",
            "|decides",
        ];
        let title = match self.comparisons.len() {
            1 => String::new(),
            _ => format!("{} and A", pair.side),
        };
        let mut table = Table::new(title, &heads).named("metrics");
        for own in &pair.metrics {
            let share = |value: Option<f64>| value.map_or_else(Cell::none, percent);
            table.row(cells![
                own.subject.as_str(),
                own.kind.as_str(),
                own.metric.as_str(),
                unit_name(own.unit),
                own.unit.cell(own.a),
                own.unit.cell(own.b),
                own.change.map_or_else(Cell::none, change),
                share(own.change_low),
                share(own.change_high),
                own.p.map_or_else(Cell::none, |p| Cell::number(format!("{p:.4}"), p)),
                own.outcome.words(),
                pair.side.as_str(),
                if own.decides { "yes" } else { "no" },
            ]);
        }
        table
    }

    fn answer(&self) -> Answer {
        let mut details = Vec::new();
        for own in &self.sides {
            let summary = own.diagnosis_summary.as_ref().zip(own.diagnosis);
            details.extend(
                summary.map(|(summary, verdict)| format!("{}: {verdict}: {summary}", own.side)),
            );
        }
        let mut notes = vec![format!(
            "{} Differences tested: {}, at a level of {} for all together. In Weir's own tests, up to 3 of \
             100 pairs of runs of the same thing were reported as different.",
            self.test,
            group(self.tested as u64),
            percent(self.significance)
        )];
        for own in &self.sides {
            let basis = own.price_basis.as_ref();
            notes.extend(basis.map(|basis| format!("price of {}: {basis}", own.side)));
        }
        notes.extend(self.notes.iter().cloned());
        Answer { line: self.verdict.clone(), details, notes }
    }

    /// Returns a chart of the relative differences of each side, with their intervals.
    fn bars(&self) -> Vec<Bars> {
        let chart = |pair: &PairReport| {
            let bars = pair.metrics.iter().filter_map(|own| {
                let value = own.change?;
                let [low, high] =
                    [own.change_low, own.change_high].map(|end| Some(end?.min(LONGEST)));
                Some(Bar {
                    label: format!("{}: {}", own.subject, own.metric),
                    value: value.min(LONGEST),
                    shown: format!("{}, {}", change(value), own.outcome.words()),
                    mark: None,
                    range: low.zip(high),
                    is_bad: own.outcome == DifferenceOutcome::Worse,
                })
            });
            let title = format!("{} against A, with the 99 % interval", pair.side);
            Bars { title, bars: bars.collect() }
        };
        let charts = self.comparisons.iter().map(chart);
        charts.filter(|chart| !chart.bars.is_empty()).collect()
    }

    /// Returns the page of the comparison.
    ///
    /// # Errors
    ///
    /// [`DrawError`] if a chart cannot be drawn.
    pub fn page(&self) -> Result<Page, DrawError> {
        self.answer().page(&self.tables()).bars("Differences", &self.bars())
    }
}

const fn unit_name(unit: MetricUnit) -> &'static str {
    match unit {
        MetricUnit::PerSecond => "per_second",
        MetricUnit::BytesPerSecond => "bytes_per_second",
        MetricUnit::Nanoseconds => "nanoseconds",
        MetricUnit::Requests => "requests",
        MetricUnit::Number => "number",
    }
}

impl Report for ComparisonReport {
    fn tables(&self) -> Vec<Table> {
        let pairs = self.comparisons.iter().map(|pair| self.table(pair));
        std::iter::once(self.sides_table()).chain(pairs).collect()
    }

    fn lead(&self) -> Option<Answer> {
        Some(self.answer())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::Screen;

    fn report() -> ComparisonReport {
        let metric = MetricReport {
            kind: "volume".to_owned(),
            subject: "data".to_owned(),
            metric: "latency".to_owned(),
            unit: MetricUnit::Nanoseconds,
            better: Better::Lower,
            decides: true,
            a: 4e6,
            b: 4.48e6,
            change: Some(0.12),
            change_low: Some(0.1),
            change_high: Some(0.14),
            p: Some(0.0004),
            outcome: DifferenceOutcome::Worse,
        };
        let side = |side: &str, name: &str| SideReport {
            side: side.to_owned(),
            name: name.to_owned(),
            samples: 60,
            diagnosis: Some("throttled"),
            diagnosis_summary: Some("data waits for its IOPS limit".to_owned()),
            ..SideReport::default()
        };
        ComparisonReport {
            is_worse: true,
            verdict: "B is worse than A".to_owned(),
            test: "Welch's t test.".to_owned(),
            tested: 1,
            significance: 0.01,
            sides: vec![side("A", "before.weirobs"), side("B", "<b>.weirobs")],
            comparisons: vec![PairReport { side: "B".to_owned(), metrics: vec![metric] }],
            ..ComparisonReport::default()
        }
    }

    #[test]
    fn the_verdict_comes_first_and_lines_fit_80_columns() {
        let text = report().text(&Screen::of_width(80));
        assert!(text.starts_with("B is worse than A\n  A: throttled: data waits"), "{text}");
        assert!(text.contains("data     latency  4.00 ms  4.48 ms  +12.0 %  worse"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn machines_get_plain_numbers() {
        let csv = report().csv();
        let heads = csv.lines().next().expect("a head");
        assert!(heads.contains("change_low") && heads.contains("month_difference"), "{csv}");
        assert!(csv.contains(",4000000,4480000,0.12,0.1,0.14,0.0004,worse,yes"), "{csv}");
        let json: serde_json::Value =
            serde_json::from_str(&report().render(crate::Format::Json)).expect("JSON");
        assert_eq!(json["comparisons"][0]["metrics"][0]["outcome"], "worse");
        assert_eq!(json["comparisons"][0]["metrics"][0]["unit"], "nanoseconds");
    }

    #[test]
    fn a_page_escapes_names() {
        let html = report().page().expect("a page").html("now");
        assert!(html.contains("<h1>B is worse than A</h1>"), "{html}");
        assert!(html.contains("&lt;b&gt;.weirobs") && !html.contains("<b>.weirobs"), "{html}");
    }

    #[test]
    fn a_large_change_is_a_factor() {
        assert_eq!(change(0.123).to_string(), "+12.3 %");
        assert_eq!(change(-0.0001).to_string(), "0.0 %");
        assert_eq!(change(149.0).to_string(), "x 150");
    }
}
