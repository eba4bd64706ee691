//! The record of a tuned layout: steps, money, predicted and measured effects.

use crate::bars::{Bar, Bars};
use crate::cells;
use crate::chart::DrawError;
use crate::number::{Amount, Delta, mib, percent, rate, time};
use crate::page::Page;
use crate::screen::{Colour, Screen};
use crate::table::{Cell, Report, Table};
use serde::Serialize;
use std::fmt::Write as _;

/// The reason for which a walk ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TuneEnd {
    /// The goal is reached.
    #[default]
    Reached,
    /// Every layout that reaches the goal costs more than the budget.
    BeyondBudget,
    /// No change raises the binding limit.
    Exhausted,
    /// Storage does not hold the load back.
    NotStorage,
    /// A step did not bring what was predicted.
    Unpredicted,
    /// The number of simulations reached its maximum.
    Stopped,
    /// The user asked to stop.
    Interrupted,
    /// The running system refused a change, or has gone.
    Failed,
}

impl TuneEnd {
    /// Returns the name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Reached => "reached",
            Self::BeyondBudget => "beyond-budget",
            Self::Exhausted => "exhausted",
            Self::NotStorage => "not-storage",
            Self::Unpredicted => "unpredicted",
            Self::Stopped => "stopped",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
        }
    }
}

/// A metric, with its target if it has one.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TuneMetric {
    /// The name, with the unit and in front of it the role.
    pub name: String,
    /// The value.
    pub value: f64,
    /// The target.
    pub target: Option<f64>,
    /// Set if the target is met, or there is none.
    pub is_met: bool,
}

impl TuneMetric {
    fn cell(&self, value: f64) -> Cell {
        let shown = match &self.name {
            name if name.ends_with("_ns") => time(value).to_string(),
            name if name.ends_with("bytes_per_s") => format!("{} MiB/s", mib(value)),
            _ => rate(value).to_string(),
        };
        Cell::number(shown, value)
    }

    /// Returns the value in text, with its unit.
    #[must_use]
    pub fn shown(&self) -> String {
        self.cell(self.value).to_string()
    }

    /// Returns the name in text, without the unit.
    #[must_use]
    pub fn words(&self) -> String {
        let short = self.name.replace("bytes_per_s", "throughput").replace("_per_min", "/min");
        short.trim_end_matches("_ns").replace('_', " ")
    }
}

/// A layout under the load.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TuneState {
    /// The metrics.
    pub metrics: Vec<TuneMetric>,
    /// Share of the time at storage that requests waited at limits.
    pub waited: f64,
    /// The limit with the longest waits.
    pub binding_limit: Option<String>,
    /// The disk, stripe, file or host that has it.
    pub limit_of: Option<String>,
    /// Price per month; `None` without prices.
    pub month: Option<Amount>,
}

/// A step.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TuneStep {
    /// The change.
    pub change: String,
    /// The limit that held the load back before it.
    pub because: Option<String>,
    /// What it interrupts.
    pub downtime: String,
    /// Its price per month, if it is known.
    pub cost: Option<Delta>,
    /// Predicted metrics.
    pub predicted: Vec<TuneMetric>,
    /// Measured metrics.
    pub measured: Vec<TuneMetric>,
    /// The larger of the relative differences between predicted and measured rate and mean latency;
    /// `None` if it was not measured.
    pub deviation: Option<f64>,
    /// The layout after it.
    pub state: TuneState,
}

/// Prices before the first step and after the last.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TunePrice {
    /// Currency.
    pub currency: String,
    /// Region.
    pub region: String,
    /// Price per month before.
    pub before: Amount,
    /// Price per month after.
    pub after: Amount,
    /// The difference, if it is known.
    pub difference: Option<Delta>,
    /// Items without a price.
    pub unknown: Vec<String>,
}

/// The record of a walk.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TuneReport {
    /// Set if the last layout was measured and reaches the goal.
    pub is_met: bool,
    /// The reason for the end.
    pub end: TuneEnd,
    /// The verdict in one sentence.
    pub verdict: String,
    /// The goal in words.
    pub goal: String,
    /// Highest price per month.
    pub budget: Option<Amount>,
    /// The layout before the first step.
    pub before: TuneState,
    /// The steps.
    pub steps: Vec<TuneStep>,
    /// The layout after the last step.
    pub after: TuneState,
    /// The prices.
    pub price: Option<TunePrice>,
    /// Set if the changes were applied in simulation only.
    pub is_simulated: bool,
    /// Changes of a running system that were undone, the last one first.
    pub undone: Vec<String>,
    /// Commands that undo the changes of a running system.
    pub undo: Vec<String>,
    /// Number of layouts simulated in the search.
    pub simulated: usize,
    /// Notes.
    pub notes: Vec<String>,
    /// The layout file after the last step.
    pub layout: String,
}

impl TuneReport {
    /// Returns a table of the metrics before, after each step and their targets.
    fn metrics(&self) -> Table {
        let heads =
            ["metric", ">target|target", ">before|before", ">predicted|predicted", ">after|after"];
        let mut table = Table::new("Effect", &heads).named("effect");
        let last = self.steps.last().map_or(&[][..], |step| &step.predicted);
        for (at, before) in self.before.metrics.iter().enumerate() {
            let cell = |own: Option<&TuneMetric>| match own {
                Some(own) => own.cell(own.value),
                None => Cell::none(),
            };
            let target = before.target.map_or_else(Cell::none, |own| before.cell(own));
            let predicted = cell(last.get(at));
            let after = cell(self.after.metrics.get(at));
            table.row(cells![before.words(), target, cell(Some(before)), predicted, after]);
        }
        table
    }

    fn steps(&self) -> Table {
        let currency = self.price.as_ref().map_or("price", |own| own.currency.as_str());
        let month = format!(">{currency} a month|month_difference");
        let heads = [">step|step", "change", &month, "downtime", ">off by|deviation", "|because"];
        let mut table = Table::new("Steps", &heads).named("steps");
        for (at, step) in self.steps.iter().enumerate() {
            table.row(cells![
                Cell::number((at + 1).to_string(), crate::number::float(at as u64 + 1)),
                step.change.as_str(),
                step.cost.map_or_else(Cell::none, Cell::from),
                step.downtime.as_str(),
                step.deviation.map_or_else(Cell::none, percent),
                step.because.as_deref().unwrap_or_default(),
            ]);
        }
        table
    }

    /// Returns the sentence about money.
    fn money(&self) -> Option<String> {
        let own = self.price.as_ref()?;
        let currency = &own.currency;
        let change = match own.difference {
            Some(difference) => difference.words(currency),
            None => "the difference is unknown".to_owned(),
        };
        let unknown = match own.unknown.is_empty() {
            true => String::new(),
            false => format!("; without a price: {}", own.unknown.join(", ")),
        };
        Some(format!(
            "{} {currency} a month before, {} {currency} after ({change}), in {}{unknown}",
            own.before.0, own.after.0, own.region
        ))
    }

    /// Returns a chart per metric: before, and after each step, with the target.
    fn bars(&self) -> Vec<Bars> {
        let chart = |(at, before): (usize, &TuneMetric)| {
            let bar = |label: &str, own: &TuneMetric| Bar {
                label: label.to_owned(),
                value: own.value,
                shown: own.shown(),
                mark: own.target,
                is_bad: !own.is_met,
                range: None,
            };
            let steps = self.steps.iter().filter_map(|step| {
                Some(bar(&format!("after: {}", step.change), step.state.metrics.get(at)?))
            });
            let bars = std::iter::once(bar("before", before)).chain(steps).collect();
            Bars { title: before.words(), bars }
        };
        self.before.metrics.iter().enumerate().map(chart).collect()
    }

    /// Returns the record as a page.
    ///
    /// # Errors
    ///
    /// [`DrawError`] if a chart cannot be drawn.
    pub fn page(&self) -> Result<Page, DrawError> {
        let goal = format!("Goal: {}", self.goal);
        let page = Page::new(&self.verdict)
            .paragraphs(self.money().as_deref())
            .paragraphs([goal.as_str()])
            .tables(&self.tables())
            .bars("Each step, with the target as a line", &self.bars())?;
        Ok(page.paragraphs(self.notes.iter().map(String::as_str)).listing("Layout", &self.layout))
    }
}

impl Report for TuneReport {
    fn tables(&self) -> Vec<Table> {
        vec![self.metrics(), self.steps()]
    }

    fn text(&self, screen: &Screen) -> String {
        let colour = match self.end {
            TuneEnd::Reached => Colour::Green,
            TuneEnd::NotStorage => Colour::Cyan,
            _ => Colour::Red,
        };
        let mut out = screen.paint(colour, &screen.prose(&self.verdict, 0));
        out.push('\n');
        let goal = format!("goal: {}", self.goal);
        let mut lines = vec![goal];
        lines.extend(self.money());
        for line in lines {
            let _ = writeln!(out, "{}", screen.prose(&line, 2));
        }
        for table in self.tables().iter().filter(|table| !table.rows.is_empty()) {
            let _ = writeln!(out, "\n{}\n{}", table.title, table.text(screen));
        }
        for (at, step) in self.steps.iter().enumerate() {
            if let Some(because) = &step.because {
                let line = format!("step {}: {because}", at + 1);
                let _ = writeln!(out, "{}", screen.prose(&line, 2));
            }
        }
        if !self.undo.is_empty() {
            let _ = writeln!(out, "to undo the changes:\n  {}", self.undo.join("\n  "));
        }
        for note in &self.notes {
            let _ = writeln!(out, "{}", screen.prose(&format!("note: {note}"), 2));
        }
        out
    }
}
