//! Whether a layout carries a need.

use crate::cells;
use crate::number::{Amount, Delta, float, gib, mib, percent, rate, time};
use crate::screen::{Colour, Screen};
use crate::table::{Cell, Report, Table};
use serde::Serialize;
use std::fmt::Write as _;

/// The answer for a role, or for all: the worst one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FitAnswer {
    /// The need is met with headroom.
    #[default]
    Yes,
    /// The need is met, with little headroom.
    Barely,
    /// The need is not met.
    No,
}

impl FitAnswer {
    /// Returns the answer in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::Barely => "barely",
            Self::No => "no",
        }
    }
}

/// A limit.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FitLimit {
    /// The name in reports and metrics.
    pub name: String,
    /// The name in words.
    #[serde(skip)]
    pub words: String,
    /// The disk, stripe, file or host that has it.
    pub of: String,
    /// Set if the limit is in bytes per second rather than in operations.
    pub is_bytes: bool,
    /// The limit, of all columns of a stripe together.
    pub rate: Option<u64>,
}

/// A role of the need, at a peak of operations or of throughput.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FitRole {
    /// The name of the need, if there are several.
    pub need: Option<String>,
    /// The role.
    pub role: String,
    /// The answer.
    pub answer: FitAnswer,
    /// Set if rates are bytes per second rather than operations.
    pub is_bytes: bool,
    /// The rate that the need asks for.
    pub asked: f64,
    /// The rate that the layout delivers.
    pub delivered: f64,
    /// Median latency of reads or of writes, whichever is longer.
    pub median_ns: u64,
    /// 99th percentile of the latency.
    pub p99_ns: u64,
    /// Target of the median.
    pub latency_target_ns: Option<u64>,
    /// Set if the target is the 99th percentile of a request that does not wait.
    pub is_latency_assumed: bool,
    /// Set if the queue grows during the run.
    pub is_queue_growing: bool,
    /// Size that the need states, and the room of the role, in bytes; `None` if it fits.
    pub lack: Option<FitRoom>,
    /// Share by which the rates may grow until the answer is no; negative if they have to shrink.
    pub headroom: f64,
    /// Set if the headroom is at least the stated one.
    pub is_headroom_beyond: bool,
    /// The limit that ends the headroom; `None` if no limit does, but the latency of the disks.
    pub limit: Option<FitLimit>,
}

/// A size that does not fit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct FitRoom {
    /// The size that the need states.
    pub size_bytes: u64,
    /// The room of the role.
    pub room_bytes: u64,
}

/// A change of the layout.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FitChange {
    /// The change.
    pub what: String,
    /// The answer after it.
    pub then: FitAnswer,
    /// What it interrupts.
    pub downtime: String,
    /// Its price per month, if it is known.
    pub cost: Option<Delta>,
    /// Items without a price.
    pub unknown: Vec<String>,
}

/// The result of a fit.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FitReport {
    /// The answer.
    pub answer: FitAnswer,
    /// The roles.
    pub roles: Vec<FitRole>,
    /// The cheapest single change that makes the answer better.
    pub change: Option<FitChange>,
    /// Set if the answer is not yes, and no single change makes it better.
    pub is_change_missing: bool,
    /// Price of the layout per month.
    pub month: Option<Amount>,
    /// Currency of the prices.
    pub currency: Option<String>,
    /// What the machine or instance has too little of, in words.
    pub too_small: Vec<String>,
    /// Notes.
    pub notes: Vec<String>,
}

fn amount(is_bytes: bool, value: f64) -> Cell {
    match is_bytes {
        true => Cell::number(format!("{} MiB/s", mib(value)), value),
        false => Cell::number(format!("{} IOPS", rate(value)), value),
    }
}

impl FitRole {
    /// Returns the role, with the need if there are several.
    fn name(&self) -> String {
        match &self.need {
            Some(need) => format!("{}, {need}", self.role),
            None => self.role.clone(),
        }
    }

    fn limit_words(&self) -> String {
        match &self.limit {
            Some(limit) => match limit.rate {
                Some(own) => {
                    format!(
                        "{} of {}: {}",
                        limit.words,
                        limit.of,
                        amount(limit.is_bytes, float(own))
                    )
                }
                None => format!("{} of {}", limit.words, limit.of),
            },
            None if self.is_headroom_beyond => "-".to_owned(),
            None => "latency of the disks".to_owned(),
        }
    }

    fn headroom_cell(&self) -> Cell {
        let shown = percent(self.headroom).to_string();
        let more = if self.is_headroom_beyond { "at least " } else { "" };
        Cell::number(format!("{more}{shown}"), self.headroom)
    }

    /// Returns the reason for which the need is not met.
    fn reason(&self) -> String {
        let target = self.latency_target_ns.unwrap_or(0);
        match () {
            () if self.lack.is_some() => {
                let FitRoom { size_bytes, room_bytes } = self.lack.unwrap_or_default();
                format!("it needs {} GiB of room and has {} GiB", gib(size_bytes), gib(room_bytes))
            }
            () if self.delivered < 0.98 * self.asked => format!(
                "{} of {} asked",
                amount(self.is_bytes, self.delivered),
                amount(self.is_bytes, self.asked)
            ),
            () if self.is_queue_growing => "its queue grows as long as the load lasts".to_owned(),
            () => format!(
                "its median latency is {}, above {}",
                time(float(self.median_ns)),
                time(float(target))
            ),
        }
    }
}

impl FitReport {
    fn verdict(&self) -> String {
        if !self.too_small.is_empty() {
            return format!("no: {}; choose a larger machine", self.too_small.join("; "));
        }
        let worst = self.roles.iter().max_by(|one, two| {
            one.answer.cmp(&two.answer).then(two.headroom.total_cmp(&one.headroom))
        });
        let Some(worst) = worst else { return self.answer.name().to_owned() };
        match self.answer {
            FitAnswer::Yes => {
                let least =
                    self.roles.iter().min_by(|one, two| one.headroom.total_cmp(&two.headroom));
                let least = least.unwrap_or(worst);
                format!(
                    "yes: the layout carries the need with {} of headroom",
                    least.headroom_cell()
                )
            }
            FitAnswer::Barely => format!(
                "barely: {} has {} of headroom until the {}",
                worst.name(),
                worst.headroom_cell(),
                worst.limit_words()
            ),
            FitAnswer::No => {
                let limit = match worst.lack {
                    Some(_) => String::new(),
                    None => format!("; {}", worst.limit_words()),
                };
                format!("no: {}: {}{limit}", worst.name(), worst.reason())
            }
        }
    }

    fn change_words(&self) -> Option<String> {
        let currency = self.currency.as_deref().unwrap_or_default();
        if self.is_change_missing {
            return Some(
                "no single change makes it a yes; weir tune combines several, and weir plan looks \
                 for another layout"
                    .to_owned(),
            );
        }
        let own = self.change.as_ref()?;
        let cost = match &own.cost {
            Some(cost) if cost.words(currency) == "the same" => "free".to_owned(),
            Some(cost) => format!("{} a month", cost.words(currency)),
            None if self.currency.is_none() => "its price is unknown".to_owned(),
            None => format!("its price is unknown: {}", own.unknown.join(", ")),
        };
        Some(format!(
            "cheapest single change to {}: {} ({cost}; downtime: {})",
            own.then.name(),
            own.what,
            own.downtime
        ))
    }

    fn table(&self) -> Table {
        let has_needs = self.roles.iter().any(|role| role.need.is_some());
        let heads = [
            if has_needs { "need" } else { "|need" },
            "role",
            "answer",
            ">asked|asked",
            ">delivered|delivered",
            ">median|median_ns",
            ">target|latency_target_ns",
            ">headroom|headroom",
            "limit",
            "|limit_name",
            "|limit_of",
            "|p99_ns",
        ];
        let mut table = Table::new("", &heads).named("roles");
        for role in &self.roles {
            let target = role.latency_target_ns.map_or_else(Cell::none, |own| time(float(own)));
            let limit = |of: fn(&FitLimit) -> &str| {
                role.limit.as_ref().map_or_else(Cell::none, |own| Cell::from(of(own)))
            };
            table.row(cells![
                role.need.as_deref().map_or_else(Cell::none, Cell::from),
                role.role.as_str(),
                role.answer.name(),
                amount(role.is_bytes, role.asked),
                amount(role.is_bytes, role.delivered),
                time(float(role.median_ns)),
                target,
                role.headroom_cell(),
                role.limit_words(),
                limit(|own| &own.name),
                limit(|own| &own.of),
                time(float(role.p99_ns)),
            ]);
        }
        table
    }
}

impl Report for FitReport {
    fn tables(&self) -> Vec<Table> {
        vec![self.table()]
    }

    fn text(&self, screen: &Screen) -> String {
        let colour = match self.answer {
            FitAnswer::Yes => Colour::Green,
            FitAnswer::Barely => Colour::Yellow,
            FitAnswer::No => Colour::Red,
        };
        let mut out = screen.paint(colour, &screen.prose(&self.verdict(), 2));
        let _ = write!(out, "\n\n{}\n", self.table().text(screen));
        for line in self.change_words().iter().chain(&self.notes) {
            let _ = writeln!(out, "\n{}", screen.prose(line, 2));
        }
        out
    }
}
