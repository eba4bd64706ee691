//! A plan: the layout that meets a need, what it costs, what it has left, and what comes next.

use crate::cells;
use crate::number::{Amount, Delta, percent};
use crate::scale::Scale;
use crate::table::{Cell, Format, Report, Table};
use serde::Serialize;
use std::fmt::Write as _;
use weir_units::Money;

/// What came of a need.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PlanReport {
    /// Whether the need can be met.
    pub is_met: bool,
    /// The edition that it was planned with.
    pub edition: String,
    /// The region and currency of the prices, if there are any.
    pub region: Option<String>,
    /// The currency.
    pub currency: Option<String>,
    /// The plan, if there is one.
    pub plan: Option<PlanChoice>,
    /// The layout in use, if one is to be kept or compared with.
    pub present: Option<PlanPresent>,
    /// The best of the other families, the cheapest first.
    pub others: Vec<PlanBeside>,
    /// The cheapest layout, if that is another one with more disks.
    pub passed_over: Option<PlanPassedOver>,
    /// The next cheaper layout that fails.
    pub cheaper: Option<PlanCheaper>,
    /// The cheapest that carries more.
    pub better: Option<PlanBeside>,
    /// What would have to give, where the need cannot be met.
    pub relaxations: Vec<PlanRelaxation>,
    /// What simulations of the need came to.
    pub verified: Vec<PlanVerified>,
    /// How many arrangements were compared.
    pub compared: u64,
    /// What has no price, so that it could be cheaper than the plan and is not known to be.
    pub unranked: Option<String>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// A layout that meets the need.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PlanChoice {
    /// The family.
    pub family: String,
    /// One line that says what it is.
    pub title: String,
    /// The layout file.
    pub layout: String,
    /// The price of a month, as far as it is known.
    pub month: Amount,
    /// How many prices are missing.
    pub unpriced: u32,
    /// How many disks are attached to the machine; none to instances and services.
    pub disks: u64,
    /// The price by line.
    pub lines: Vec<PlanLine>,
    /// The caps.
    pub caps: Vec<PlanCap>,
    /// The cap that binds.
    pub binding: Option<String>,
    /// Why it is this one.
    pub reasons: Vec<String>,
}

/// The layout in use and its price.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PlanPresent {
    /// Its file.
    pub name: String,
    /// The price of a month, as far as it is known.
    pub month: Amount,
    /// The number of missing prices.
    pub unpriced: u32,
    /// The items without a price.
    pub unknown: Vec<String>,
    /// The price by line.
    pub lines: Vec<PlanLine>,
    /// What the plan costs beyond it; `None` where prices are missing that the two do not share.
    pub difference: Option<Delta>,
}

/// A line of the price.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanLine {
    /// What is paid for.
    pub what: String,
    /// How many.
    pub units: u64,
    /// Of which so many cost nothing.
    pub free: u64,
    /// The price of one, a month.
    pub each: Option<Amount>,
    /// The price of all.
    pub month: Option<Amount>,
    /// Where it comes from.
    pub source: Option<String>,
    /// Of when it is.
    pub as_of: Option<String>,
}

/// A cap and what is used of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanCap {
    /// Whose.
    pub of: String,
    /// What is capped.
    pub cap: String,
    /// What the need takes.
    pub used: f64,
    /// What it lets through.
    pub most: f64,
    /// The unit of both.
    pub unit: Unit,
    /// The part that is used, from 0 to 1.
    pub share: f64,
}

/// The unit of a cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// Operations a second.
    #[serde(rename = "IOPS")]
    Iops,
    /// Bytes a second.
    #[serde(rename = "B/s")]
    Rate,
    /// Bytes.
    #[serde(rename = "B")]
    Size,
    /// Virtual processors, disks, files.
    #[serde(rename = "")]
    Count,
}

impl Unit {
    /// As machines read it.
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

/// Needed and limit of a cap of a table, in one unit for all caps of their kind.
pub(crate) fn pair<'a>(own: &PlanCap, table: impl Iterator<Item = &'a PlanCap>) -> [Cell; 2] {
    let alike = table.filter(|cap| cap.unit == own.unit);
    let beside: Vec<f64> = alike.flat_map(|cap| [cap.used, cap.most]).collect();
    [own.used, own.most].map(|n| own.unit.cell(n, &beside))
}

impl PlanCap {
    /// What is needed, for people with its unit.
    #[must_use]
    pub fn needed(&self) -> Cell {
        self.unit.cell(self.used, &[self.used, self.most])
    }

    /// What there is, for people with its unit.
    #[must_use]
    pub fn limit(&self) -> Cell {
        self.unit.cell(self.most, &[self.used, self.most])
    }
}

/// A layout beside the plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanBeside {
    /// What it is.
    pub title: String,
    /// What it costs a month, as far as it is known.
    pub month: Amount,
    /// How many prices are missing.
    pub unpriced: u32,
}

/// The cheapest layout, which has more disks than the plan and saves less than 1 %.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanPassedOver {
    /// What it is.
    #[serde(flatten)]
    pub what: PlanBeside,
    /// How many disks it has.
    pub disks: u64,
    /// What it costs less a month.
    pub saves: Amount,
}

/// A layout that costs less, and why it fails.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanCheaper {
    /// What it is.
    #[serde(flatten)]
    pub what: PlanBeside,
    /// What it lacks.
    pub fails: Vec<PlanCap>,
}

/// Something that would have to give.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanRelaxation {
    /// What gives, and how far.
    pub what: String,
    /// What would meet the need then.
    #[serde(flatten)]
    pub then: PlanBeside,
}

/// What a role got in a simulation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanVerified {
    /// Of which layout.
    pub layout: String,
    /// The role.
    pub role: String,
    /// Bytes of a request.
    pub request: u64,
    /// Requests a second that were asked.
    pub asked: u64,
    /// And got.
    pub got: f64,
    /// The mean latency in nanoseconds.
    pub latency_ns: f64,
    /// What half of the reads or of the writes take at most, whichever is longer, in nanoseconds.
    pub median_ns: u64,
    /// What that may be, if the need says it.
    pub asked_latency_ns: Option<u64>,
    /// Whether that meets the need.
    pub is_met: bool,
}

impl PlanPassedOver {
    /// Says why the plan is another one, with so many disks.
    fn words(&self, disks: u64) -> String {
        let (own, saves) = (self.disks, self.saves);
        format!(
            "{own} disks instead of {disks} save {saves}, and within 1 % of the cheapest price fewer \
             disks come first"
        )
    }
}

impl PlanReport {
    /// The plan and what stands beside it, each with its price.
    fn layouts_table(&self) -> Table {
        let currency = self.currency.as_deref().unwrap_or("price");
        let month = format!(">{currency} a month");
        let heads = ["which", "what", &month, ">prices missing", "why"];
        let mut table = Table::new("Layouts", &heads);
        let mut row = |which: &str, title: &str, month: Amount, unpriced: u32, what: &str| {
            // Of what has no price at all nothing is known.
            let is_known = unpriced == 0 || month != Amount(Money::ZERO);
            let month = if is_known { Cell::from(month) } else { Cell::none() };
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
            row("could be met", title, *month, *unpriced, &own.what);
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
        let mut table = Table::new(title, &["what", ">units", ">each", &month, "|source", "as of"]);
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
        let mut table = Table::new("Caps", &["of", "cap", ">needed", ">limit", "|unit", ">used"]);
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

    fn verified_table(&self) -> Table {
        let heads = [
            "layout",
            "role",
            ">KiB each",
            ">asked/s",
            ">got/s",
            ">median at most|median_at_most_ns",
            ">median|median_ns",
            ">mean latency|latency_ns",
            "is met",
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

    fn price(&self, month: Amount, unpriced: u32) -> String {
        let currency = self.currency.as_deref().unwrap_or_default();
        match (unpriced, month) {
            (0, month) => format!("{month} {currency} a month"),
            (_, Amount(Money::ZERO)) => "price unknown".to_owned(),
            (1, month) => format!("{month} {currency} a month and a price that is not known"),
            (n, month) => format!("{month} {currency} a month and {n} prices that are not known"),
        }
    }

    /// Returns the price of the layout in use, and how far the plan's is from it.
    fn present_words(&self) -> Option<String> {
        let own = self.present.as_ref()?;
        let price = self.price(own.month, own.unpriced);
        let currency = self.currency.as_deref().unwrap_or_default();
        let unknown = match own.unknown.as_slice() {
            [] => String::new(),
            all => format!(" ({})", all.join(", ")),
        };
        let difference = match (&self.plan, own.difference) {
            (None, _) => String::new(),
            (Some(_), Some(delta)) => format!("; the plan costs {}", delta.words(currency)),
            (Some(_), None) => "; the difference is not known, for prices are missing".to_owned(),
        };
        Some(format!("at present: {}: {price}{unknown}{difference}", own.name))
    }

    /// What the plan is and costs, and what is not known of that.
    fn headline(&self) -> (String, Option<&str>) {
        match &self.plan {
            Some(plan) => {
                let price = self.price(plan.month, plan.unpriced);
                (format!("{}: {price}", plan.title), self.unranked.as_deref())
            }
            None => ("no layout meets the need".to_owned(), None),
        }
    }

    fn text(&self) -> String {
        let mut out = String::new();
        let beside =
            |own: &PlanBeside| format!("{}: {}", own.title, self.price(own.month, own.unpriced));
        let mut line = |text: &str| {
            out.push_str(text);
            out.push('\n');
        };
        let (headline, unranked) = self.headline();
        match &self.plan {
            Some(plan) => {
                line(&format!("plan: {headline}"));
                unranked.iter().for_each(|words| line(&format!("  {words}")));
                plan.reasons.iter().for_each(|reason| line(&format!("  {reason}")));
                if let Some(binding) = &plan.binding {
                    line(&format!("  binding limit: {binding}"));
                }
            }
            None => line(&headline),
        }
        self.present_words().iter().for_each(|words| line(words));
        for own in &self.relaxations {
            line(&format!("  it could be met with {}: {}", own.what, beside(&own.then)));
        }
        if let (Some(own), Some(plan)) = (&self.passed_over, &self.plan) {
            line(&format!("passed over: {}; {}", beside(&own.what), own.words(plan.disks)));
        }
        if let Some(cheaper) = &self.cheaper {
            line(&format!("next cheaper: {}", beside(&cheaper.what)));
            for cap in &cheaper.fails {
                line(&format!(
                    "  fails: {} of {}: {} needed, {} there",
                    cap.cap,
                    cap.of,
                    cap.needed(),
                    cap.limit()
                ));
            }
        }
        if let Some(better) = &self.better {
            line(&format!("next better: {}", beside(better)));
        }
        self.others.iter().for_each(|other| line(&format!("of another family: {}", beside(other))));
        for table in
            [self.price_table(), self.present_table(), self.caps_table(), self.verified_table()]
        {
            if !table.rows.is_empty() {
                let text = table.text(comfy_table::presets::NOTHING);
                line(&format!("\n{}\n{text}", table.title));
            }
        }
        if let Some(plan) = &self.plan {
            line(&format!("\nLayout\n{}", plan.layout.trim_end()));
        }
        if !self.notes.is_empty() {
            line("");
        }
        self.notes.iter().for_each(|note| line(note));
        out
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
        ]
    }

    fn render(&self, format: Format) -> String {
        match format {
            Format::Text => self.text(),
            Format::Json => crate::table::json(self),
            Format::Csv => crate::table::csv(&self.tables()),
            Format::Markdown => {
                let (headline, unranked) = self.headline();
                let mut out = format!("**{headline}**\n");
                let plan = self.plan.iter();
                let reasons = plan.clone().flat_map(|plan| &plan.reasons).cloned();
                let binding = plan.flat_map(|plan| &plan.binding);
                let binding = binding.map(|binding| format!("binding limit: {binding}"));
                let unranked = unranked.map(str::to_owned).into_iter();
                let unranked = unranked.chain(self.present_words());
                for words in unranked.chain(reasons).chain(binding).chain(self.notes.clone()) {
                    let _ = write!(out, "\n{words}\n");
                }
                for table in self.tables() {
                    if !table.rows.is_empty() {
                        let text = table.text(comfy_table::presets::ASCII_MARKDOWN);
                        let _ = write!(out, "\n**{}**\n{text}\n", table.title);
                    }
                }
                out
            }
        }
    }
}
