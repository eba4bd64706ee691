//! A plan: the layout that meets a need, with its price, its limits and its alternatives.

use crate::bars::{Bar, Bars};
use crate::cells;
use crate::chart::DrawError;
use crate::number::{Amount, Delta, percent};
use crate::page::Page;
use crate::scale::Scale;
use crate::screen::Screen;
use crate::table::{Cell, Report, Table};
use serde::Serialize;
use std::fmt::Write as _;

/// The result of planning.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PlanReport {
    /// Set if the need can be met.
    pub is_met: bool,
    /// The edition.
    pub edition: String,
    /// Region of the prices, if there are any.
    pub region: Option<String>,
    /// Currency of the prices.
    pub currency: Option<String>,
    /// The plan, if there is one.
    pub plan: Option<PlanChoice>,
    /// The layout in use, if one is extended or compared.
    pub present: Option<PlanPresent>,
    /// The best plans of other families, by price.
    pub others: Vec<PlanBeside>,
    /// The cheapest layout, if it has more disks than the plan.
    pub passed_over: Option<PlanPassedOver>,
    /// The next cheaper layout that fails.
    pub cheaper: Option<PlanCheaper>,
    /// The cheapest layout with higher limits.
    pub better: Option<PlanBeside>,
    /// Relaxed constraints under which the need can be met.
    pub relaxations: Vec<PlanRelaxation>,
    /// Results of simulation.
    pub verified: Vec<PlanVerified>,
    /// Number of candidates.
    pub compared: u64,
    /// The order of layouts, if none has all prices.
    pub unranked: Option<String>,
    /// Machines without a price that carry the need and may be cheaper than the plan.
    pub unpriced_machines: Vec<PlanUnpriced>,
    /// Notes.
    pub notes: Vec<String>,
}

/// A layout that meets the need.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PlanChoice {
    /// The family.
    pub family: String,
    /// Description in one line.
    pub title: String,
    /// The layout file.
    pub layout: String,
    /// Monthly price; items without a price are left out. `None` if no price is known.
    pub month: Option<Amount>,
    /// Number of missing prices.
    pub unpriced: u32,
    /// Number of disks; zero for instances and services.
    pub disks: u64,
    /// Price lines.
    pub lines: Vec<PlanLine>,
    /// Limits.
    pub caps: Vec<PlanCap>,
    /// Binding limit.
    pub binding: Option<String>,
    /// Risks, assumptions and changes of the layout in use; they are among the reasons, too.
    pub key_points: Vec<String>,
    /// Reasons for the choice.
    pub reasons: Vec<String>,
}

/// The layout in use and its price.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PlanPresent {
    /// File name.
    pub name: String,
    /// Monthly price; items without a price are left out. `None` if no price is known.
    pub month: Option<Amount>,
    /// Number of missing prices.
    pub unpriced: u32,
    /// Items without a price.
    pub unknown: Vec<String>,
    /// Price lines.
    pub lines: Vec<PlanLine>,
    /// Price of the plan minus the present price; `None` if an item without a price is in one of
    /// them only.
    pub difference: Option<Delta>,
}

/// A price line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanLine {
    /// The item.
    #[serde(rename = "item")]
    pub what: String,
    /// Quantity.
    pub units: u64,
    /// Quantity free of charge.
    pub free: u64,
    /// Monthly price of one.
    #[serde(rename = "unit_price")]
    pub each: Option<Amount>,
    /// Monthly price of all.
    pub month: Option<Amount>,
    /// Source of the price.
    pub source: Option<String>,
    /// Date of the price.
    pub as_of: Option<String>,
}

/// A limit and its utilisation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanCap {
    /// Owner.
    #[serde(rename = "owner")]
    pub of: String,
    /// The limit.
    pub cap: String,
    /// Demand.
    #[serde(rename = "needed")]
    pub used: f64,
    /// Value of the limit.
    #[serde(rename = "limit")]
    pub most: f64,
    /// Unit of both.
    pub unit: Unit,
    /// Utilisation, from 0 to 1.
    #[serde(rename = "utilisation")]
    pub share: f64,
}

/// The unit of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// Operations per second.
    #[serde(rename = "IOPS")]
    Iops,
    /// Bytes per second.
    #[serde(rename = "B/s")]
    Rate,
    /// Bytes per second.
    #[serde(rename = "B")]
    Size,
    /// Virtual processors, disks, files.
    #[serde(rename = "")]
    Count,
}

impl Unit {
    /// Returns the name for JSON and CSV.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Iops => "IOPS",
            Self::Rate => "B/s",
            Self::Size => "B",
            Self::Count => "",
        }
    }

    /// Returns a number beside others of its kind, for people in the same unit as these.
    fn cell(self, n: f64, beside: &[f64]) -> Cell {
        match self {
            Self::Iops => {
                let whole = crate::number::whole(n);
                Cell::number(format!("{} IOPS", crate::number::grouped(whole)), n)
            }
            Self::Rate => Scale::of_rates(beside).cell(n),
            Self::Size => Scale::of_sizes(beside).cell(n),
            Self::Count => Cell::number(n.to_string(), n),
        }
    }
}

/// Returns demand and limit in the unit of all limits of this kind in the table.
pub(crate) fn pair<'a>(own: &PlanCap, table: impl Iterator<Item = &'a PlanCap>) -> [Cell; 2] {
    let alike = table.filter(|cap| cap.unit == own.unit);
    let beside: Vec<f64> = alike.flat_map(|cap| [cap.used, cap.most]).collect();
    [own.used, own.most].map(|n| own.unit.cell(n, &beside))
}

impl PlanCap {
    /// Returns the demand with its unit.
    #[must_use]
    pub fn needed(&self) -> Cell {
        self.unit.cell(self.used, &[self.used, self.most])
    }

    /// Returns the limit with its unit.
    #[must_use]
    pub fn limit(&self) -> Cell {
        self.unit.cell(self.most, &[self.used, self.most])
    }
}

/// A layout beside the plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanBeside {
    /// Description.
    pub title: String,
    /// Monthly price; items without a price are left out. `None` if no price is known.
    pub month: Option<Amount>,
    /// Number of missing prices.
    pub unpriced: u32,
}

/// A machine without a price that carries the need.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanUnpriced {
    /// The machine.
    pub machine: String,
    /// The layout on it, in one line.
    pub layout: String,
    /// Monthly price of everything but the machine.
    #[serde(rename = "month_without_machine")]
    pub rest: Option<Amount>,
}

/// Number of machines without a price that text names.
const NAMED: usize = 3;

/// Says how many machines have no price and may be cheaper; `None` if there are none.
#[must_use]
pub fn may_be_cheaper(machines: usize) -> Option<String> {
    match machines {
        0 => None,
        1 => Some("1 machine without a price may be cheaper".to_owned()),
        n => Some(format!("{n} machines without a price may be cheaper")),
    }
}

/// Lists machines without a price; `None` if there are none.
pub(crate) fn unpriced_words(machines: &[PlanUnpriced], currency: &str) -> Option<String> {
    let first = machines.first()?;
    let named: Vec<&str> = machines.iter().take(NAMED).map(|own| own.machine.as_str()).collect();
    let more = match machines.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let rest = first.rest.map_or_else(String::new, |rest| {
        format!("; the rest of such a layout costs {rest} {currency} a month or more")
    });
    Some(format!(
        "without a price: {}{more}{rest} (add prices with --prices FILE)",
        named.join(", ")
    ))
}

/// The cheapest layout, which has more disks than the plan and saves less than 1 %.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanPassedOver {
    /// Description.
    #[serde(flatten)]
    pub what: PlanBeside,
    /// Number of disks.
    pub disks: u64,
    /// Monthly savings.
    #[serde(rename = "savings")]
    pub saves: Amount,
}

/// A cheaper layout and the limits that it fails.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanCheaper {
    /// Description.
    #[serde(flatten)]
    pub what: PlanBeside,
    /// Limits that it fails.
    #[serde(rename = "exceeded")]
    pub fails: Vec<PlanCap>,
}

/// A relaxed constraint.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanRelaxation {
    /// The constraint and its relaxed value.
    #[serde(rename = "change")]
    pub what: String,
    /// The plan under this constraint.
    #[serde(flatten)]
    pub then: PlanBeside,
}

/// The simulated service of a role.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanVerified {
    /// The layout.
    pub layout: String,
    /// The role.
    pub role: String,
    /// Request size in bytes.
    #[serde(rename = "request_bytes")]
    pub request: u64,
    /// Requested rate per second.
    #[serde(rename = "target_per_s")]
    pub asked: u64,
    /// Achieved rate per second.
    #[serde(rename = "achieved_per_s")]
    pub got: f64,
    /// Mean latency in nanoseconds.
    pub latency_ns: f64,
    /// Median latency of reads or of writes, whichever is longer, in nanoseconds.
    pub median_ns: u64,
    /// Required median latency, if any.
    #[serde(rename = "median_target_ns")]
    pub asked_latency_ns: Option<u64>,
    /// Set if this meets the need.
    pub is_met: bool,
}

impl PlanPassedOver {
    /// Returns the reason why a plan with `disks` disks is preferred.
    #[must_use]
    pub fn words(&self, disks: u64) -> String {
        let (own, saves) = (self.disks, self.saves);
        format!(
            "{own} disks instead of {disks} save {saves}, which is less than 1 %: fewer disks are \
             preferred"
        )
    }
}

impl PlanReport {
    /// Returns the plan and its alternatives with their prices.
    fn layouts_table(&self) -> Table {
        let currency = self.currency.as_deref().unwrap_or("price");
        let month = format!(">{currency} a month");
        let heads = ["choice", "layout", &month, ">missing prices", "reason"];
        let mut table = Table::new("Layouts", &heads);
        let mut row =
            |which: &str, title: &str, month: Option<Amount>, unpriced: u32, what: &str| {
                let month = month.map_or_else(Cell::none, Cell::from);
                let missing = crate::number::grouped(u64::from(unpriced));
                table.row(cells![which, title, month, missing, what]);
            };
        if let Some(plan) = &self.plan {
            row("plan", &plan.title, plan.month, plan.unpriced, "");
        }
        if let Some(own) = &self.present {
            row("at present", &own.name, own.month, own.unpriced, &own.unknown.join("; "));
        }
        for own in &self.relaxations {
            let PlanBeside { title, month, unpriced, .. } = &own.then;
            row("feasible with", title, *month, *unpriced, &own.what);
        }
        if let (Some(own), Some(plan)) = (&self.passed_over, &self.plan) {
            let PlanBeside { title, month, unpriced, .. } = &own.what;
            row("passed over", title, *month, *unpriced, &own.words(plan.disks));
        }
        if let Some(cheaper) = &self.cheaper {
            let lacks = cheaper.fails.iter().map(|cap| {
                format!("{} of {}: {} of {}", cap.cap, cap.of, cap.limit(), cap.needed())
            });
            let lacks = lacks.collect::<Vec<_>>().join("; ");
            let PlanBeside { title, month, unpriced, .. } = &cheaper.what;
            row("next cheaper", title, *month, *unpriced, &lacks);
        }
        for (which, own) in self
            .better
            .iter()
            .map(|own| ("next better", own))
            .chain(self.others.iter().map(|own| ("another family", own)))
        {
            row(which, &own.title, own.month, own.unpriced, "");
        }
        if let Some(own) = self.present.as_ref().filter(|_| self.plan.is_some()) {
            let difference = own.difference.map_or_else(Cell::none, Cell::from);
            let what = "plan minus present";
            table.row(cells!["difference", what, difference, Cell::none(), ""]);
        }
        table
    }

    fn lines_table<'a>(&self, title: &str, lines: impl Iterator<Item = &'a PlanLine>) -> Table {
        let currency = self.currency.as_deref().unwrap_or("price");
        let month = format!(">{currency} a month");
        let mut table = Table::new(
            title,
            &["item", ">units", ">unit price", &month, "|source", "|as of|as_of"],
        );
        for own in lines {
            let words = |words: &Option<String>| words.clone().unwrap_or_else(|| "-".to_owned());
            let free = if own.free > 0 { format!(", {} free", own.free) } else { String::new() };
            table.row(cells![
                format!("{}{free}", own.what).as_str(),
                crate::number::grouped(own.units),
                own.each.map_or_else(Cell::none, Amount::exact),
                own.month.map_or_else(Cell::none, Cell::from),
                words(&own.source).as_str(),
                words(&own.as_of).as_str(),
            ]);
        }
        table
    }

    fn price_table(&self) -> Table {
        self.lines_table("Price", self.plan.iter().flat_map(|plan| &plan.lines))
    }

    fn present_table(&self) -> Table {
        let lines = self.present.iter().flat_map(|present| &present.lines);
        self.lines_table("Price at present", lines)
    }

    fn caps_table(&self) -> Table {
        let mut table = Table::new(
            "Limits",
            &["owner", "limit|cap", ">needed", ">maximum|limit", "|unit", ">used|utilisation"],
        );
        let caps = || self.plan.iter().flat_map(|plan| &plan.caps);
        for own in caps() {
            let [needed, limit] = pair(own, caps());
            table.row(cells![
                own.of.as_str(),
                own.cap.as_str(),
                needed,
                limit,
                own.unit.name(),
                percent(own.share),
            ]);
        }
        table
    }

    fn unpriced_table(&self) -> Table {
        let currency = self.currency.as_deref().unwrap_or("price");
        let month = format!(">{currency} a month without it|month_without_machine");
        let heads = ["machine", "layout", &month];
        let mut table = Table::new("Machines without a price", &heads).named("unpriced");
        for own in &self.unpriced_machines {
            let rest = own.rest.map_or_else(Cell::none, Cell::from);
            table.row(cells![own.machine.as_str(), own.layout.as_str(), rest]);
        }
        table
    }

    fn verified_table(&self) -> Table {
        let heads = [
            "layout",
            "role",
            ">KiB|request_kib",
            ">target/s",
            ">achieved/s",
            ">median target|median_target_ns",
            ">median|median_ns",
            ">mean|latency_ns",
            "met",
        ];
        let mut table = Table::new("Simulated", &heads);
        let times = self.verified.iter().flat_map(|own| {
            let [median, asked] = [Some(own.median_ns), own.asked_latency_ns].map(nanos);
            [Some(own.latency_ns), median, asked].into_iter().flatten()
        });
        let scale = Scale::of_times(&times.collect::<Vec<f64>>());
        for own in &self.verified {
            table.row(cells![
                own.layout.as_str(),
                own.role.as_str(),
                crate::number::rate(crate::number::float(own.request) / 1024.0),
                crate::number::grouped(own.asked),
                crate::number::rate(own.got),
                nanos(own.asked_latency_ns).map_or_else(Cell::none, |ns| scale.cell(ns)),
                nanos(Some(own.median_ns)).map_or_else(Cell::none, |ns| scale.cell(ns)),
                scale.cell(own.latency_ns),
                if own.is_met { "yes" } else { "no" },
            ]);
        }
        table
    }

    fn price(&self, month: Option<Amount>, unpriced: u32) -> String {
        let currency = self.currency.as_deref().unwrap_or_default();
        match (unpriced, month) {
            (_, None) => "price unknown".to_owned(),
            (0, Some(month)) => format!("{month} {currency} a month"),
            (1, Some(month)) => format!("{month} {currency} a month and an unknown price"),
            (n, Some(month)) => format!("{month} {currency} a month and {n} unknown prices"),
        }
    }

    /// Returns the price of the layout in use, that of the plan, and their difference.
    fn cost_words(&self) -> Option<String> {
        let own = self.present.as_ref()?;
        let present = self.price(own.month, own.unpriced);
        let unknown = match own.unknown.as_slice() {
            [] => String::new(),
            all => format!(" ({})", all.join(", ")),
        };
        let present = format!("{present} at present ({}){unknown}", own.name);
        let Some(plan) = &self.plan else { return Some(format!("cost: {present}")) };
        let planned = self.price(plan.month, plan.unpriced);
        let currency = self.currency.as_deref().unwrap_or_default();
        let difference = match own.difference {
            Some(delta) => delta.words(currency),
            None => "unknown, because prices are missing".to_owned(),
        };
        Some(format!("cost: {present}, {planned} planned; difference: {difference}"))
    }

    /// Returns the plan with its price.
    fn headline(&self) -> String {
        match &self.plan {
            Some(plan) => {
                let price = self.price(plan.month, plan.unpriced);
                let doubt = may_be_cheaper(self.unpriced_machines.len());
                let doubt = doubt.map(|own| format!("; {own}")).unwrap_or_default();
                format!("plan: {}: {price}{doubt}", plan.title)
            }
            None => "no layout meets the need".to_owned(),
        }
    }

    /// Returns the lines below the headline: cost, binding limit, and changes that make the need
    /// feasible.
    fn details(&self) -> Vec<String> {
        let unranked = self.unranked.iter().filter(|_| self.plan.is_some()).cloned();
        let currency = self.currency.as_deref().unwrap_or_default();
        let unpriced = unpriced_words(&self.unpriced_machines, currency);
        let binding = self.plan.iter().filter_map(|plan| plan.binding.as_ref());
        let binding = binding.map(|binding| format!("binding limit: {binding}"));
        let relaxations = self
            .relaxations
            .iter()
            .map(|own| format!("feasible with {}: {}", own.what, self.beside(&own.then)));
        let prices = self.cost_words().into_iter().chain(unranked).chain(unpriced);
        prices.chain(binding).chain(relaxations).collect()
    }

    fn beside(&self, own: &PlanBeside) -> String {
        format!("{}: {}", own.title, self.price(own.month, own.unpriced))
    }

    /// Returns the reasons for the plan.
    fn reasons(&self) -> &[String] {
        self.plan.as_ref().map_or(&[], |plan| plan.reasons.as_slice())
    }

    /// Returns the layouts that were not chosen, with the reasons. Each has lines of its own.
    fn alternatives(&self) -> Vec<Vec<String>> {
        let mut all = Vec::new();
        if let Some(cheaper) = &self.cheaper {
            let fails = cheaper.fails.iter().map(|cap| {
                let (needed, limit) = (cap.needed(), cap.limit());
                format!("  fails: {} of {}: {needed} needed, limit {limit}", cap.cap, cap.of)
            });
            let next = format!("next cheaper: {}", self.beside(&cheaper.what));
            all.push(std::iter::once(next).chain(fails).collect());
        }
        if let (Some(own), Some(plan)) = (&self.passed_over, &self.plan) {
            let (layout, words) = (self.beside(&own.what), own.words(plan.disks));
            all.push(vec![format!("passed over: {layout}; {words}")]);
        }
        let better = self.better.iter().map(|own| ("next better", own));
        let others = self.others.iter().map(|own| ("another family", own));
        all.extend(
            better.chain(others).map(|(name, own)| vec![format!("{name}: {}", self.beside(own))]),
        );
        all
    }

    /// Returns the tables to print: the price, the simulation if there is one, and if `is_verbose`
    /// the bill of the layout in use and the limits.
    fn shown_tables(&self, is_verbose: bool) -> Vec<Table> {
        let mut tables = vec![self.price_table()];
        if is_verbose {
            tables.extend([self.present_table(), self.caps_table(), self.unpriced_table()]);
        }
        tables.push(self.verified_table());
        tables.retain(|table| !table.rows.is_empty());
        tables
    }

    /// Returns the blocks of text below the tables. By default these are the first alternative and
    /// the notes.
    fn shown_blocks(&self, is_verbose: bool) -> Vec<(&str, Vec<String>)> {
        let alternatives = self.alternatives();
        let shown = if is_verbose { alternatives.len() } else { 1 };
        let alternatives = alternatives.into_iter().take(shown).flatten().collect();
        let title = if is_verbose { "Alternatives" } else { "Alternative" };
        let reasons = if is_verbose { self.reasons().to_vec() } else { Vec::new() };
        let mut blocks =
            vec![("Reasons", reasons), (title, alternatives), ("Notes", self.notes.clone())];
        blocks.retain(|(_, lines)| !lines.is_empty());
        blocks
    }

    /// Returns a chart of the limits by the share that is used, the fullest first, and one of the
    /// prices of all layouts.
    fn bars(&self) -> Vec<Bars> {
        let mut caps: Vec<&PlanCap> = self.plan.iter().flat_map(|plan| &plan.caps).collect();
        caps.sort_by(|a, b| b.share.total_cmp(&a.share));
        let caps = caps.into_iter().map(|own| Bar {
            label: format!("{}: {}", own.of, own.cap),
            value: own.share,
            shown: format!("{} of {}", own.needed(), own.limit()),
            mark: Some(1.0),
            ..Bar::default()
        });
        let price = |label: String, month: Option<Amount>| {
            let month = month?;
            let shown = month.to_string();
            Some(Bar { label, value: month.number(), shown, ..Bar::default() })
        };
        let plan = self.plan.iter().map(|own| (format!("plan: {}", own.title), own.month));
        let present =
            self.present.iter().map(|own| (format!("at present: {}", own.name), own.month));
        let better =
            self.better.iter().map(|own| (format!("next better: {}", own.title), own.month));
        let others = self.others.iter().map(|own| (own.title.clone(), own.month));
        let prices = plan.chain(present).chain(better).chain(others);
        let prices: Vec<Bar> = prices.filter_map(|(label, month)| price(label, month)).collect();
        let currency = self.currency.as_deref().unwrap_or("price");
        let charts = [
            Bars { title: "Share of each limit that is used".to_owned(), bars: caps.collect() },
            Bars { title: format!("{currency} a month"), bars: prices },
        ];
        charts.into_iter().filter(|chart| !chart.bars.is_empty()).collect()
    }

    /// Returns the page of the plan.
    ///
    /// # Errors
    ///
    /// [`DrawError`] if a chart cannot be drawn.
    pub fn page(&self) -> Result<Page, DrawError> {
        let mut page = Page::new(&self.headline())
            .paragraphs(self.details().iter().map(String::as_str))
            .bars("Limits and prices", &self.bars())?
            .tables(&self.tables());
        let lists = [("Reasons", self.reasons().to_vec()), ("Notes", self.notes.clone())];
        for (title, lines) in lists.into_iter().filter(|(_, lines)| !lines.is_empty()) {
            page = page.heading(title).paragraphs(lines.iter().map(String::as_str));
        }
        Ok(match &self.plan {
            Some(plan) => page.listing("Layout", &plan.layout),
            None => page,
        })
    }
}

fn nanos(time: Option<u64>) -> Option<f64> {
    time.map(crate::number::float)
}

impl Report for PlanReport {
    fn tables(&self) -> Vec<Table> {
        vec![
            self.layouts_table().named("layout"),
            self.price_table().named("price"),
            self.present_table().named("present"),
            self.caps_table().named("cap"),
            self.verified_table().named("simulated"),
            self.unpriced_table(),
        ]
    }

    fn text(&self, screen: &Screen) -> String {
        let is_verbose = screen.is_verbose();
        let mut out = format!("{}\n", screen.prose(&self.headline(), 2));
        let key_points = self.plan.iter().filter(|_| !is_verbose).flat_map(|own| &own.key_points);
        for line in self.details().iter().chain(key_points) {
            let _ = writeln!(out, "{}", screen.prose(&format!("  {line}"), 2));
        }
        for table in self.shown_tables(is_verbose) {
            let _ = write!(out, "\n{}", table.block(screen));
        }
        for (title, lines) in self.shown_blocks(is_verbose) {
            let _ = writeln!(out, "\n{title}");
            for line in lines {
                let _ = writeln!(out, "{}", screen.prose(&line, 2));
            }
        }
        if let Some(plan) = &self.plan {
            let _ = writeln!(out, "\nLayout\n{}", plan.layout.trim_end());
        }
        out
    }

    fn markdown(&self) -> String {
        let mut out = format!("**{}**\n", self.headline());
        let lines = self.details();
        for words in lines.iter().chain(self.reasons()).chain(&self.notes) {
            let _ = write!(out, "\n{words}\n");
        }
        for table in self.tables().into_iter().filter(|table| !table.rows.is_empty()) {
            let _ = write!(out, "\n**{}**\n{}\n", table.title, table.markdown());
        }
        out
    }
}
