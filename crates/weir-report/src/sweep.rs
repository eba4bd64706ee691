//! The result of a sweep: the parameter that moves a metric most.

use crate::answer::Answer;
use crate::bars::{Bar, Bars};
use crate::cells;
use crate::chart::DrawError;
use crate::number::{float, grouped, mib, percent, rate, time};
use crate::page::Page;
use crate::scatter::Scatter;
use crate::table::{Cell, Report, Table};
use serde::Serialize;

/// The result of a sweep, or of a shard of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SweepReport {
    /// Hash of all inputs.
    pub sweep: String,
    /// Number of points of the whole sweep.
    pub points: u64,
    /// Points in the results.
    pub completed: u64,
    /// Points among them that could not be simulated.
    pub invalid: u64,
    /// The shard, unless the results are whole.
    pub shard: Option<String>,
    /// The effects of parameters on a metric; none for a shard.
    pub sensitivity: Option<SensitivityReport>,
    /// Notes.
    pub notes: Vec<String>,
}

/// The effects of parameters on a metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SensitivityReport {
    /// The column of the metric. Its unit is at the end of the name.
    pub metric: String,
    /// Points with a value.
    pub points: u64,
    /// The lowest value.
    pub lowest: f64,
    /// The highest value.
    pub highest: f64,
    /// True if the points are all combinations of values.
    pub is_grid: bool,
    /// The parameters, the largest effect first.
    pub parameters: Vec<EffectReport>,
}

/// The main effect of a parameter on a metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EffectReport {
    /// The column of the parameter.
    pub parameter: String,
    /// Share of the variance over all points that the means at the values have.
    pub variance_share: f64,
    /// The share that a parameter without effect has on average; only for points that are no grid.
    pub chance_share: Option<f64>,
    /// The values, or groups of neighbouring ones.
    pub values: Vec<ValueReport>,
}

/// The mean of a metric at a value of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ValueReport {
    /// The value.
    pub value: String,
    /// The last value of a group of neighbouring ones.
    pub to: Option<String>,
    /// Number of points.
    pub points: u64,
    /// Mean of the metric.
    pub mean: f64,
}

impl ValueReport {
    fn name(&self) -> String {
        match &self.to {
            Some(to) => format!("{} to {to}", self.value),
            None => self.value.clone(),
        }
    }
}

impl EffectReport {
    fn ends(&self) -> Option<[&ValueReport; 2]> {
        let by_mean = |one: &&ValueReport, other: &&ValueReport| one.mean.total_cmp(&other.mean);
        Some([self.values.iter().min_by(by_mean)?, self.values.iter().max_by(by_mean)?])
    }
}

/// Returns a value of a column for people; the unit is at the end of the column's name.
fn shown(column: &str, value: f64) -> Cell {
    match column {
        _ if column.ends_with("_ns") => time(value),
        _ if column.ends_with("_bytes_per_s") => {
            Cell::number(format!("{} MiB/s", mib(value)), value)
        }
        _ if column.ends_with("_share") => percent(value),
        _ if column.ends_with("_s") && !column.ends_with("_per_s") => time(value * 1e9),
        _ => rate(value),
    }
}

impl SweepReport {
    fn answer(&self) -> Answer {
        let mut details = Vec::new();
        let line = match &self.sensitivity {
            Some(found) => {
                details.push(format!(
                    "{} is {} to {} over {} points",
                    found.metric,
                    shown(&found.metric, found.lowest),
                    shown(&found.metric, found.highest),
                    grouped(found.points)
                ));
                found.line()
            }
            None => format!(
                "Shard {}: {} of {} points.",
                self.shard.as_deref().unwrap_or("1/1"),
                grouped(self.completed),
                grouped(self.points)
            ),
        };
        Answer { line, details, notes: self.notes.clone() }
    }

    /// Returns the page of the sweep, with plots.
    ///
    /// # Errors
    ///
    /// [`DrawError`] if a plot cannot be drawn.
    pub fn page(&self, plots: &[Scatter]) -> Result<Page, DrawError> {
        let bars = self.sensitivity.iter().map(SensitivityReport::bars);
        let bars: Vec<Bars> = bars.collect();
        self.answer().page(&self.tables()).bars("Sensitivity", &bars)?.scatters("Plots", plots)
    }
}

impl SensitivityReport {
    fn line(&self) -> String {
        let metric = &self.metric;
        match self.parameters.first() {
            Some(first) if first.variance_share > 0.0 => format!(
                "{} moves {metric} most: it explains {} of its variance.",
                first.parameter,
                percent(first.variance_share)
            ),
            _ => format!("No parameter moves {metric} by itself."),
        }
    }

    fn bars(&self) -> Bars {
        let bar = |own: &EffectReport| Bar {
            label: own.parameter.clone(),
            value: own.variance_share,
            shown: percent(own.variance_share).to_string(),
            mark: own.chance_share,
            ..Bar::default()
        };
        let title = format!("Share of the variance of {}", self.metric);
        Bars { title, bars: self.parameters.iter().map(bar).collect() }
    }

    fn table(&self) -> Table {
        let heads = [
            "parameter",
            ">variance|variance_share",
            if self.is_grid { "|chance_share" } else { ">by chance|chance_share" },
            ">lowest mean|lowest_mean",
            "at|lowest_at",
            ">highest mean|highest_mean",
            "at|highest_at",
        ];
        let mut table =
            Table::new(format!("Effect on {}", self.metric), &heads).named("parameters");
        for own in &self.parameters {
            let Some([low, high]) = own.ends() else { continue };
            table.row(cells![
                own.parameter.as_str(),
                percent(own.variance_share),
                own.chance_share.map_or_else(Cell::none, percent),
                shown(&self.metric, low.mean),
                low.name(),
                shown(&self.metric, high.mean),
                high.name(),
            ]);
        }
        let rest = 1.0 - self.parameters.iter().map(|own| own.variance_share).sum::<f64>();
        if self.is_grid && self.lowest < self.highest && rest > 0.000_5 {
            let words = "The rest, {}, is from interactions: the effect of one parameter depends on \
                         another.";
            table.notes.push(words.replace("{}", &percent(rest).to_string()));
        }
        table
    }

    /// Lists the means at all values, for machines.
    fn values(&self) -> Table {
        let heads = ["|parameter", "|value", "|to", "|points", "|mean"];
        let mut table = Table::new("", &heads).named("values");
        for own in &self.parameters {
            for value in &own.values {
                table.row(cells![
                    own.parameter.as_str(),
                    value.value.as_str(),
                    value.to.as_deref().map_or_else(Cell::none, Cell::from),
                    grouped(value.points),
                    Cell::number(String::new(), value.mean),
                ]);
            }
        }
        table
    }
}

impl Report for SweepReport {
    fn tables(&self) -> Vec<Table> {
        let counts = ["|sweep", "|points", "|completed", "|invalid", "|shard"];
        let mut sweep = Table::new("", &counts).named("sweep");
        let number = |n: u64| Cell::number(n.to_string(), float(n));
        sweep.row(cells![
            self.sweep.as_str(),
            number(self.points),
            number(self.completed),
            number(self.invalid),
            self.shard.as_deref().map_or_else(Cell::none, Cell::from),
        ]);
        let found = self.sensitivity.iter().flat_map(|found| [found.table(), found.values()]);
        std::iter::once(sweep).chain(found).collect()
    }

    fn lead(&self) -> Option<Answer> {
        Some(self.answer())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Format;

    fn effect(parameter: &str, share: f64, means: [f64; 2]) -> EffectReport {
        let value = |(value, mean): (&str, f64)| ValueReport {
            value: value.to_owned(),
            to: None,
            points: 2,
            mean,
        };
        EffectReport {
            parameter: parameter.to_owned(),
            variance_share: share,
            chance_share: None,
            values: [("low", means[0]), ("high", means[1])].map(value).to_vec(),
        }
    }

    fn report() -> SweepReport {
        let parameters =
            vec![effect("tier", 0.8, [500.0, 5_000.0]), effect("depth", 0.1, [2_000.0, 3_500.0])];
        let metric = "iops".to_owned();
        SweepReport {
            sweep: "0123456789abcdef".to_owned(),
            points: 4,
            completed: 4,
            invalid: 0,
            shard: None,
            sensitivity: Some(SensitivityReport {
                metric,
                points: 4,
                lowest: 400.0,
                highest: 6_000.0,
                is_grid: true,
                parameters,
            }),
            notes: Vec::new(),
        }
    }

    #[test]
    fn the_answer_is_the_parameter_with_the_largest_effect() {
        let text = report().render(Format::Text);
        assert!(text.starts_with("tier moves iops most: it explains 80.0 % of its variance.\n  iops is 400 to 6,000 over 4 points\n"), "{text}");
        assert!(text.contains("The rest, 10.0 %, is from interactions"), "{text}");
        assert!(text.contains("\n tier         80.0 %          500  low "), "{text}");
        let json: serde_json::Value =
            serde_json::from_str(&report().render(Format::Json)).expect("JSON");
        assert_eq!(json["sensitivity"]["parameters"][1]["values"][0]["mean"], 2_000.0);
        let page = report().page(&[]).expect("a page").html("now");
        assert!(page.contains("<h1>tier moves iops most") && page.contains("<rect"), "{page}");
    }

    #[test]
    fn a_shard_says_how_much_it_has() {
        let shard = Some("2/8".to_owned());
        let part = SweepReport { shard, completed: 1, sensitivity: None, ..report() };
        assert_eq!(part.render(Format::Text), "Shard 2/8: 1 of 4 points.\n");
        let csv = part.render(Format::Csv);
        assert_eq!(csv, "sweep,points,completed,invalid,shard\n0123456789abcdef,4,1,0,2/8\n");
    }

    #[test]
    fn units_follow_from_the_names_of_columns() {
        let check = |column: &str, value: f64, expect: &str| {
            assert_eq!(shown(column, value).to_string(), expect);
        };
        check("latency_p99_ns", 1_500_000.0, "1.50 ms");
        check("throughput_bytes_per_s", 1_048_576.0, "1.00 MiB/s");
        check("batches_per_s", 250.0, "250");
        check("binding_share", 0.5, "50.0 %");
        check("backup_s", 90.0, "90.0 s");
    }
}
