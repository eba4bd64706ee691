//! One need on several clouds: the verdict, and the cheapest and the fastest layout of each.

use crate::cells;
use crate::number::{Amount, float, percent, time};
use crate::plan::{
    PlanBeside, PlanCap, PlanChoice, PlanRelaxation, PlanUnpriced, PlanVerified, unpriced_words,
};
use crate::screen::Screen;
use crate::table::{Cell, Report, Table};
use serde::Serialize;
use std::fmt::Write as _;

/// Shares of the need of at least this are printed as multiples and not in per cent.
const MANY: f64 = 10.0;

/// The result of comparing clouds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CompareReport {
    /// Set if a cloud meets the need, for no more than the budget.
    pub is_met: bool,
    /// The verdict in one sentence.
    pub verdict: String,
    /// The cheapest cloud, if prices can be compared.
    pub cheapest: Option<String>,
    /// The most that the fastest layouts may cost a month.
    pub budget: Option<Amount>,
    /// The clouds, in the order that was asked for.
    pub clouds: Vec<CompareCloud>,
    /// Assumptions about the need.
    pub notes: Vec<String>,
}

/// The answer of a cloud.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CompareCloud {
    /// The name that was asked for.
    pub cloud: String,
    /// The edition.
    pub edition: String,
    /// Region of the prices, if there are any.
    pub region: Option<String>,
    /// Currency of the prices.
    pub currency: Option<String>,
    /// The cheapest layout that meets the need.
    pub cheapest: Option<CompareChoice>,
    /// The share by which its price exceeds that of the cheapest cloud.
    pub above_cheapest: Option<f64>,
    /// The fastest layout.
    pub fastest: Option<CompareChoice>,
    /// Machines without a price that carry the need and may be cheaper than the cheapest layout.
    pub unpriced_machines: Vec<PlanUnpriced>,
    /// The reason if the cloud does not have what is asked for.
    pub refused: Option<String>,
    /// Changes under which the need can be met.
    pub relaxations: Vec<PlanRelaxation>,
    /// The smallest budget that pays for the sizes, if the stated one does not.
    pub beyond_budget: Vec<PlanRelaxation>,
    /// Notes.
    pub notes: Vec<String>,
}

/// A layout in a comparison.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CompareChoice {
    /// The layout with its price and limits.
    #[serde(flatten)]
    pub plan: PlanChoice,
    /// Operations per second that it carries, of all roles.
    pub iops: u64,
    /// Bytes per second that it carries, of all roles.
    pub bytes_per_s: u64,
    /// Share of the need's rates, 1 being all of them.
    pub share_of_need: f64,
    /// The limit with the highest utilisation.
    pub binding_limit: Option<PlanCap>,
    /// The unused share of that limit.
    pub slack: Option<f64>,
    /// The median latency that the catalog states for its disks.
    pub latency_ns: Option<u64>,
    /// Results of simulation.
    pub verified: Vec<PlanVerified>,
}

impl CompareCloud {
    fn price(&self, own: &PlanChoice) -> String {
        let currency = self.currency.as_deref().unwrap_or_default();
        match (own.unpriced, own.month) {
            (_, None) => "price unknown".to_owned(),
            (0, Some(month)) => format!("{month} {currency} a month"),
            (1, Some(month)) => format!("{month} {currency} a month and an unknown price"),
            (n, Some(month)) => format!("{month} {currency} a month and {n} unknown prices"),
        }
    }

    fn beside(&self, own: &PlanBeside) -> String {
        let PlanBeside { title, month, unpriced } = own;
        let choice = PlanChoice { month: *month, unpriced: *unpriced, ..PlanChoice::default() };
        format!("{title}: {}", self.price(&choice))
    }

    /// Returns the layouts with their names.
    fn choices(&self) -> impl Iterator<Item = (&'static str, &CompareChoice)> {
        let named = [("cheapest", &self.cheapest), ("fastest", &self.fastest)];
        named.into_iter().filter_map(|(name, own)| Some((name, own.as_ref()?)))
    }

    /// Returns the name with edition and region.
    fn heading(&self) -> String {
        let edition = (self.edition != self.cloud).then_some(self.edition.as_str());
        // The name has the region if another one of the cloud is compared.
        let region = self.region.as_deref().filter(|own| !self.cloud.ends_with(own));
        let parts: Vec<&str> = edition.into_iter().chain(region).collect();
        match parts.is_empty() {
            true => self.cloud.clone(),
            false => format!("{} ({})", self.cloud, parts.join(", ")),
        }
    }

    /// Returns the dates of the prices in use.
    fn dates(&self) -> Option<String> {
        let lines = self.choices().flat_map(|(_, own)| &own.plan.lines);
        let mut dates: Vec<&str> = lines.filter_map(|line| line.as_of.as_deref()).collect();
        dates.sort_unstable();
        dates.dedup();
        (!dates.is_empty()).then(|| format!("prices of {}", dates.join(", ")))
    }

    /// Returns layouts, binding limits, changes, machines without a price, and notes.
    fn details(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (name, own) in self.choices() {
            let part = match name {
                "fastest" if own.share_of_need >= MANY => {
                    format!("; carries {} times the need", own.share_of_need.floor())
                }
                "fastest" => format!("; carries {} of the need", percent(own.share_of_need)),
                _ => String::new(),
            };
            all.push(format!("{name}: {}: {}{part}", own.plan.title, self.price(&own.plan)));
            all.extend(own.plan.binding.iter().map(|own| format!("  binding limit: {own}")));
            let lines = own.plan.lines.iter().filter(|line| line.month.is_none());
            let unknown: Vec<&str> = lines.map(|line| line.what.as_str()).collect();
            if !unknown.is_empty() {
                all.push(format!("  without a price: {}", unknown.join("; ")));
            }
        }
        all.extend(self.refused.iter().map(|why| format!("cannot meet the need: {why}")));
        if let (None, None, Some(most)) = (&self.refused, &self.cheapest, &self.fastest) {
            let limit = most.binding_limit.as_ref().map(|own| format!("{} of {}", own.cap, own.of));
            all.push(match most.share_of_need < 1.0 {
                true => format!(
                    "cannot meet the need: the most is {} of its rates{}",
                    percent(most.share_of_need),
                    limit.map(|limit| format!(", limited by {limit}")).unwrap_or_default()
                ),
                false => "cannot meet the need in simulation, although its rates can be carried"
                    .to_owned(),
            });
        }
        let feasible = self.relaxations.iter();
        all.extend(
            feasible.map(|own| format!("feasible with {}: {}", own.what, self.beside(&own.then))),
        );
        let beyond = self.beyond_budget.iter();
        all.extend(beyond.map(|own| format!("within {}: {}", own.what, self.beside(&own.then))));
        let currency = self.currency.as_deref().unwrap_or_default();
        all.extend(unpriced_words(&self.unpriced_machines, currency));
        all.extend(self.dates());
        all.extend(self.notes.iter().cloned());
        all
    }
}

impl CompareReport {
    /// Returns whether all prices are in one currency, and that currency.
    fn currency(&self) -> Option<&str> {
        let mut all = self.clouds.iter().filter_map(|own| own.currency.as_deref());
        let first = all.next()?;
        all.all(|own| own == first).then_some(first)
    }

    fn table(&self) -> Table {
        let common = self.currency();
        let month = format!(">{} a month|month", common.unwrap_or("price"));
        let heads = [
            "cloud",
            "layout|choice",
            ">IOPS|iops",
            &month,
            ">latency|latency_ns",
            ">slack|slack",
            "binding limit|binding_limit",
            "|limit_of",
            "|title",
            "|currency",
            "|share_of_need",
            "|bytes_per_s",
            "|above_cheapest",
            "|unpriced",
        ];
        let mut table = Table::new("", &heads).named("comparison");
        for cloud in &self.clouds {
            let own_currency = cloud.currency.as_deref().unwrap_or_default();
            for (name, own) in cloud.choices() {
                let price = match (own.plan.month, common) {
                    (None, _) => Cell::none(),
                    (Some(month), Some(_)) if own.plan.unpriced > 0 => month.with_unknown_rest(),
                    (Some(month), Some(_)) => Cell::from(month),
                    (Some(month), None) => month.with_currency(own_currency),
                };
                let binding = own.binding_limit.as_ref();
                let above = cloud.above_cheapest.filter(|_| name == "cheapest");
                table.row(cells![
                    cloud.cloud.as_str(),
                    name,
                    crate::number::grouped(own.iops),
                    price,
                    own.latency_ns.map_or_else(Cell::none, |own| time(float(own))),
                    own.slack.map_or_else(Cell::none, percent),
                    binding.map_or_else(Cell::none, |own| Cell::from(own.cap.as_str())),
                    binding.map_or_else(Cell::none, |own| Cell::from(own.of.as_str())),
                    own.plan.title.as_str(),
                    own_currency,
                    percent(own.share_of_need),
                    crate::number::grouped(own.bytes_per_s),
                    above.map_or_else(Cell::none, percent),
                    crate::number::grouped(u64::from(own.plan.unpriced)),
                ]);
            }
            if cloud.choices().next().is_none() {
                let mut row = cells![cloud.cloud.as_str(), "none"];
                row.resize_with(heads.len(), Cell::none);
                table.row(row);
            }
        }
        table
    }

    fn unpriced_table(&self) -> Table {
        let heads = ["cloud", "machine", "layout|title", ">price without it|month_without_machine"];
        let mut table = Table::new("Machines without a price", &heads).named("unpriced");
        for cloud in &self.clouds {
            for own in &cloud.unpriced_machines {
                table.row(cells![
                    cloud.cloud.as_str(),
                    own.machine.as_str(),
                    own.layout.as_str(),
                    own.rest.map_or_else(Cell::none, Cell::from),
                ]);
            }
        }
        table
    }

    fn relaxations_table(&self) -> Table {
        let heads = ["cloud", "change", "title", ">price|month"];
        let mut table = Table::new("Feasible with", &heads).named("relaxation");
        for cloud in &self.clouds {
            for own in cloud.relaxations.iter().chain(&cloud.beyond_budget) {
                table.row(cells![
                    cloud.cloud.as_str(),
                    own.what.as_str(),
                    own.then.title.as_str(),
                    own.then.month.map_or_else(Cell::none, Cell::from),
                ]);
            }
        }
        table
    }

    fn simulated_table(&self) -> Table {
        let heads = [
            "cloud",
            "layout|choice",
            "role",
            ">target/s|target_per_s",
            ">achieved/s|achieved_per_s",
            ">median|median_ns",
            "met",
        ];
        let mut table = Table::new("Simulated", &heads).named("simulated");
        for cloud in &self.clouds {
            for (name, choice) in cloud.choices() {
                for own in &choice.verified {
                    table.row(cells![
                        cloud.cloud.as_str(),
                        name,
                        own.role.as_str(),
                        crate::number::grouped(own.asked),
                        crate::number::rate(own.got),
                        time(float(own.median_ns)),
                        if own.is_met { "yes" } else { "no" },
                    ]);
                }
            }
        }
        table
    }
}

impl Report for CompareReport {
    fn tables(&self) -> Vec<Table> {
        let more = [self.unpriced_table(), self.relaxations_table(), self.simulated_table()];
        std::iter::once(self.table())
            .chain(more.into_iter().filter(|table| !table.rows.is_empty()))
            .collect()
    }

    fn text(&self, screen: &Screen) -> String {
        let mut out = format!("{}\n\n", screen.prose(&self.verdict, 2));
        let _ = write!(out, "{}", self.table().block(screen));
        for cloud in &self.clouds {
            let _ = writeln!(out, "\n{}", screen.prose(&cloud.heading(), 2));
            for line in cloud.details() {
                let _ = writeln!(out, "{}", screen.prose(&format!("  {line}"), 2));
            }
        }
        if screen.is_verbose() {
            let more = [self.unpriced_table(), self.simulated_table()];
            for table in more.into_iter().filter(|table| !table.rows.is_empty()) {
                let _ = write!(out, "\n{}", table.block(screen));
            }
        }
        if !self.notes.is_empty() {
            out.push_str("\nNotes\n");
        }
        for note in &self.notes {
            let _ = writeln!(out, "{}", screen.prose(note, 2));
        }
        out
    }

    fn markdown(&self) -> String {
        let mut out = format!("**{}**\n\n{}\n", self.verdict, self.table().markdown());
        for cloud in &self.clouds {
            let _ = write!(out, "\n**{}**\n", cloud.heading());
            for line in cloud.details() {
                let _ = write!(out, "\n{}\n", line.trim_start());
            }
        }
        for table in self.tables().into_iter().skip(1) {
            let _ = write!(out, "\n**{}**\n\n{}\n", table.title, table.markdown());
        }
        for note in &self.notes {
            let _ = write!(out, "\n{note}\n");
        }
        out
    }
}
