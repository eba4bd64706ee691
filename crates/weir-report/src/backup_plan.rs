//! A plan for a backup: disks, stripes and transfers that meet its window, and what comes next.

use crate::cells;
use crate::number::{Amount, float, percent, rate};
use crate::plan::PlanLine;
use crate::screen::Screen;
use crate::table::{Cell, Report, Table};
use serde::Serialize;
use std::fmt::Write as _;

/// The result of `weir backup plan`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BackupPlanReport {
    /// True if the window can be met.
    pub is_met: bool,
    /// Bytes to back up.
    pub size_bytes: u64,
    /// The window.
    pub within_s: f64,
    /// The acceptable slowdown of databases beside the backup, as a share.
    pub max_slowdown: Option<f64>,
    /// The edition that it was planned with.
    pub edition: String,
    /// The region of the prices, if there are any.
    pub region: Option<String>,
    /// The currency.
    pub currency: Option<String>,
    /// The cheapest choice that meets the window.
    pub plan: Option<BackupChoice>,
    /// The fastest of those that cost less.
    pub cheaper: Option<BackupChoice>,
    /// The cheapest that is at least 5 % faster.
    pub better: Option<BackupChoice>,
    /// The fastest choice, if none meets the window.
    pub fastest: Option<BackupChoice>,
    /// Relaxations, if nothing meets the window.
    pub relaxations: Vec<BackupRelaxation>,
    /// Choices of disks, stripes and transfers that were simulated.
    pub simulated: u64,
    /// Those that their lower bound excluded.
    pub excluded: u64,
    /// Assumptions and omissions.
    pub notes: Vec<String>,
}

/// Disks with stripes on them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BackupChoice {
    /// The disks in words.
    pub disks: String,
    /// The family of the disks.
    pub family: String,
    /// Tier, if they have one.
    pub tier: Option<String>,
    /// Number of disks.
    pub count: u64,
    /// Stripes on each disk.
    pub stripes_per_disk: u64,
    /// Stripes of all disks.
    pub stripes: u64,
    /// The largest transfer.
    pub max_transfer_bytes: u64,
    /// Buffers of a set.
    pub buffer_count: u32,
    /// The highest rate at which the sources are read together.
    pub limit_bytes_per_s: Option<u64>,
    /// The simulated duration.
    pub duration_s: f64,
    /// Bytes of the sources in 2^20 bytes per second.
    pub mib_per_s: f64,
    /// True if a part was simulated, and the whole follows from it.
    pub is_extrapolated: bool,
    /// The price of the disks per month, as far as it is known. `None` if no price is known.
    pub month: Option<Amount>,
    /// How many prices are missing.
    pub unpriced: u32,
    /// Binding limit: `machine`, `source`, `target`, `compression` or `latency`.
    pub binding: String,
    /// The name of the limit, if one binds.
    pub binding_limit: Option<String>,
    /// Binding limit, in words.
    pub binding_words: String,
    /// The part of their transactions that databases beside it lose.
    pub slowdown_throughput: Option<f64>,
    /// The part that their transactions take longer.
    pub slowdown_response: Option<f64>,
    /// The price by line.
    pub lines: Vec<PlanLine>,
    /// Why these stripes and transfers.
    pub reasons: Vec<String>,
    /// Kinds of scripts for this backup; empty for other choices than the plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exports: Vec<BackupExport>,
    /// The layout with the disks.
    pub layout: String,
    /// The description of the backup.
    pub backup: String,
}

/// A kind of script for a backup.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BackupExport {
    /// The name that `weir export --as` takes.
    pub kind: String,
    /// The reason if the script cannot write this backup.
    pub refused: Option<String>,
}

/// Something that would have to give.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BackupRelaxation {
    /// The option that gives, and how far.
    pub what: String,
    /// Plan that meets the window then.
    pub then: Option<BackupChoice>,
}

/// Returns a duration in words: `1 h 32 min`, `4 min 8 s`, `12.3 s`.
#[must_use]
pub fn duration(seconds: f64) -> String {
    let whole = crate::number::whole(seconds);
    match whole {
        0..60 => format!("{seconds:.1} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => {
            let minutes = whole.div_ceil(60);
            format!("{} h {} min", minutes / 60, minutes % 60)
        }
    }
}

/// Returns a size of transfers in words.
fn transfer(bytes: u64) -> String {
    match bytes {
        own if own.is_multiple_of(1 << 20) => format!("{} MiB", own >> 20),
        own => format!("{} KiB", own >> 10),
    }
}

impl BackupChoice {
    fn price(&self, currency: Option<&str>) -> String {
        let currency = currency.unwrap_or_default();
        match (self.unpriced, self.month) {
            (_, None) => "price unknown".to_owned(),
            (0, Some(month)) => format!("{month} {currency} a month"),
            (n, Some(month)) => format!("{month} {currency} a month and {n} unknown prices"),
        }
    }

    /// Returns all of it on one line.
    fn headline(&self, currency: Option<&str>) -> String {
        let each = match self.stripes_per_disk {
            own if self.count > 1 => format!(" ({own} on each)"),
            _ => String::new(),
        };
        let plural = if self.stripes == 1 { "" } else { "s" };
        format!(
            "{}, {} stripe{plural}{each}, transfers of {}: {}, {}; {} binds",
            self.disks,
            self.stripes,
            transfer(self.max_transfer_bytes),
            duration(self.duration_s),
            self.price(currency),
            self.binding_words
        )
    }

    /// Returns the loss of throughput or the increase of response time, whichever is larger.
    fn slowdown(&self) -> Option<f64> {
        self.slowdown_throughput.zip(self.slowdown_response).map(|(rate, time)| rate.max(time))
    }

    /// Returns whether databases run beside the backup.
    fn slows(&self) -> bool {
        self.slowdown().is_some()
    }

    /// Returns the scripts that write the backup, and the reasons of those that cannot.
    fn export_words(&self) -> Vec<String> {
        let fits = self.exports.iter().filter(|own| own.refused.is_none());
        let fits: Vec<&str> = fits.map(|own| own.kind.as_str()).collect();
        let mut all = Vec::new();
        if !fits.is_empty() {
            all.push(format!("weir export --as writes it as {}", fits.join(", ")));
        }
        for own in &self.exports {
            let refused = own.refused.iter();
            all.extend(refused.map(|why| format!("not as {}: {why}", own.kind)));
        }
        all
    }

    /// Returns the disks on few columns.
    fn label(&self) -> String {
        format!("{} x {}", self.count, self.tier.as_deref().unwrap_or(&self.family))
    }
}

impl BackupPlanReport {
    /// Returns the choices with their places in the answer.
    fn choices(&self) -> Vec<(&str, &BackupChoice)> {
        let own = [
            ("plan", &self.plan),
            ("next cheaper", &self.cheaper),
            ("next better", &self.better),
            ("fastest", &self.fastest),
        ];
        own.into_iter().filter_map(|(which, own)| Some((which, own.as_ref()?))).collect()
    }

    fn choices_table(&self) -> Table {
        let month = format!(">{}/month|month", self.currency.as_deref().unwrap_or("price"));
        let is_beside = self.choices().iter().any(|(_, own)| own.slowdown_throughput.is_some());
        let slower = if is_beside { ">slower|slowdown" } else { "|slowdown" };
        let heads = [
            "which",
            "disks",
            ">stripes",
            ">transfer|max_transfer_bytes",
            ">duration|duration_s",
            ">MiB/s|mib_per_s",
            &month,
            slower,
            "binds|binding",
            "|binding_limit",
            "|family",
            "|stripes_per_disk",
        ];
        let mut table = Table::new("", &heads).named("choice");
        for (which, own) in self.choices() {
            table.row(cells![
                which,
                own.label(),
                crate::number::grouped(own.stripes),
                Cell::number(transfer(own.max_transfer_bytes), float(own.max_transfer_bytes)),
                Cell::number(duration(own.duration_s), own.duration_s),
                rate(own.mib_per_s),
                own.month.map_or_else(Cell::none, Cell::from),
                own.slowdown().map_or_else(Cell::none, percent),
                own.binding.as_str(),
                own.binding_limit.as_deref().map_or_else(Cell::none, Cell::from),
                own.family.as_str(),
                crate::number::grouped(own.stripes_per_disk),
            ]);
        }
        table
    }

    fn relaxations_table(&self) -> Table {
        let mut table =
            Table::new("", &["relaxation", "disks", ">duration|duration_s"]).named("relaxation");
        for own in &self.relaxations {
            let then = own.then.as_ref();
            table.row(cells![
                own.what.as_str(),
                then.map_or_else(Cell::none, |own| Cell::from(own.label())),
                then.map_or_else(Cell::none, |own| {
                    Cell::number(duration(own.duration_s), own.duration_s)
                }),
            ]);
        }
        table
    }

    fn price_table(&self) -> Table {
        let heads = ["|what", "|units", "|each", "|month", "|source", "|as_of"];
        let mut table = Table::new("", &heads).named("price");
        for own in self.plan.iter().flat_map(|plan| &plan.lines) {
            table.row(cells![
                own.what.as_str(),
                crate::number::grouped(own.units),
                own.each.map_or_else(Cell::none, Amount::exact),
                own.month.map_or_else(Cell::none, Cell::from),
                own.source.as_deref().unwrap_or("-"),
                own.as_of.as_deref().unwrap_or("-"),
            ]);
        }
        table
    }

    /// Returns the answer on one line.
    fn headline(&self) -> String {
        let currency = self.currency.as_deref();
        match (&self.plan, &self.fastest) {
            (Some(plan), _) => plan.headline(currency),
            (None, Some(own)) if own.duration_s <= self.within_s && own.slows() => format!(
                "no disks meet {} and slow the databases down by {} at most: {} take {} and slow them \
                 down by {}; {} binds",
                duration(self.within_s),
                percent(self.max_slowdown.unwrap_or_default()),
                own.disks,
                duration(own.duration_s),
                own.slowdown().map_or_else(Cell::none, percent),
                own.binding_words
            ),
            (None, Some(own)) => format!(
                "no disks meet {}: the shortest duration is {}, with {}; {} binds",
                duration(self.within_s),
                duration(own.duration_s),
                own.disks,
                own.binding_words
            ),
            (None, None) => format!("no disks meet {}", duration(self.within_s)),
        }
    }

    /// Returns the reasons and what could give, line by line.
    fn details(&self) -> Vec<String> {
        let currency = self.currency.as_deref();
        let mut all: Vec<String> =
            self.plan.iter().chain(&self.fastest).flat_map(|own| own.reasons.clone()).collect();
        all.extend(self.plan.iter().flat_map(BackupChoice::export_words));
        for own in &self.relaxations {
            all.push(match &own.then {
                Some(then) => {
                    format!("{} would fit the window: {}", own.what, then.headline(currency))
                }
                None => format!("{} would fit the window", own.what),
            });
        }
        all
    }
}

impl Report for BackupPlanReport {
    fn tables(&self) -> Vec<Table> {
        let mut tables = vec![self.choices_table()];
        let more = [self.relaxations_table(), self.price_table()];
        tables.extend(more.into_iter().filter(|table| !table.rows.is_empty()));
        tables
    }

    fn text(&self, screen: &Screen) -> String {
        let is = if self.plan.is_some() { "plan: " } else { "" };
        let mut out = screen.prose(&format!("{is}{}", self.headline()), 2) + "\n";
        for line in self.details() {
            let _ = writeln!(out, "{}", screen.prose(&format!("  {line}"), 2));
        }
        let _ = writeln!(out, "\n{}", self.choices_table().text(screen));
        for (head, text) in self.files() {
            let _ = writeln!(out, "\n{head}\n{}", text.trim_end());
        }
        if !self.notes.is_empty() {
            out.push('\n');
        }
        for note in &self.notes {
            let _ = writeln!(out, "{}", screen.prose(note, 2));
        }
        out
    }

    fn markdown(&self) -> String {
        let mut out = format!("**{}**\n", self.headline());
        for line in self.details() {
            let _ = writeln!(out, "\n{line}");
        }
        let _ = writeln!(out, "\n{}", self.choices_table().markdown());
        for (head, text) in self.files() {
            let _ = writeln!(out, "\n**{head}**\n\n```toml\n{}\n```", text.trim_end());
        }
        for note in &self.notes {
            let _ = writeln!(out, "\n{note}");
        }
        out
    }
}

impl BackupPlanReport {
    /// Returns the files that the other verbs take.
    fn files(&self) -> Vec<(&'static str, &str)> {
        let plan = self.plan.iter();
        plan.flat_map(|own| [("Backup", own.backup.as_str())]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_only_the_slowdown_misses_is_not_called_too_short() {
        let headline = |slowdown: Option<f64>, duration_s| {
            let fastest = BackupChoice {
                disks: "3 x P10".to_owned(),
                duration_s,
                binding_words: "the machine".to_owned(),
                slowdown_throughput: slowdown,
                slowdown_response: slowdown,
                ..BackupChoice::default()
            };
            let max_slowdown = slowdown.map(|_| 0.1);
            let own = BackupPlanReport {
                within_s: 600.0,
                max_slowdown,
                fastest: Some(fastest),
                ..BackupPlanReport::default()
            };
            own.headline()
        };
        let words = "no disks meet 10 min 0 s and slow the databases down by 10.0 % at most: 3 x P10 \
                     take 9 min 20 s and slow them down by 50.0 %; the machine binds";
        assert_eq!(headline(Some(0.5), 560.0), words);
        let words = "no disks meet 10 min 0 s: the shortest duration is 12 min 0 s, with 3 x P10; the \
                     machine binds";
        assert_eq!(headline(Some(0.05), 720.0), words);
        assert_eq!(headline(None, 720.0), words);
    }

    #[test]
    fn durations_read_as_people_say_them() {
        let check = |seconds: f64, expect: &str| assert_eq!(duration(seconds), expect);
        check(12.34, "12.3 s");
        check(200.0, "3 min 20 s");
        check(3_600.0, "1 h 0 min");
        // A minute that has begun counts.
        check(5_521.0, "1 h 33 min");
    }
}
