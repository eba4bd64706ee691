//! A fleet: which databases go onto which instances, what that costs, and what could be cheaper.

use crate::cells;
use crate::number::{Amount, percent};
use crate::plan::{PlanCap, PlanChoice, pair};
use crate::table::{Cell, Format, Report, Table};
use serde::Serialize;
use std::fmt::Write as _;

/// What came of a fleet.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FleetReport {
    /// Whether every database has an instance.
    pub is_met: bool,
    /// The edition that it was planned with.
    pub edition: String,
    /// The region of the prices, if there are any.
    pub region: Option<String>,
    /// Their currency.
    pub currency: Option<String>,
    /// How many databases there are.
    pub databases: usize,
    /// What the instances were compared by.
    pub goal: Option<String>,
    /// The price of a month, as far as it is known.
    pub month: Option<Amount>,
    /// How many prices are missing.
    pub unpriced: u32,
    /// What no other packing costs less than a month.
    pub bound: Option<Amount>,
    /// The part of the whole, from 0 to 1, by which another answer could be better at most.
    pub gap: Option<f64>,
    /// The instances, the dearest first.
    pub instances: Vec<FleetHost>,
    /// Databases that fit no instance.
    pub lacks: Vec<FleetLack>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// An instance and its databases.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetHost {
    /// Its name, and its layout's.
    pub name: String,
    /// The databases on it.
    pub databases: Vec<String>,
    /// What it is.
    #[serde(flatten)]
    pub plan: PlanChoice,
    /// The least part of what a role asked for that it got in simulation, from 0 to 1.
    pub verified: Option<f64>,
}

/// A database that fits no instance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetLack {
    /// The database.
    pub database: String,
    /// What the instance lacks that comes nearest.
    pub caps: Vec<PlanCap>,
}

impl FleetReport {
    fn table(&self) -> Table {
        let month = format!(">{} a month", self.currency.as_deref().unwrap_or("price"));
        let heads = [
            "instance",
            "what",
            &month,
            ">databases|count",
            "binding limit",
            ">simulated",
            "databases",
        ];
        let mut table = Table::new("Instances", &heads);
        for own in &self.instances {
            let most = own.plan.caps.iter().max_by(|one, other| one.share.total_cmp(&other.share));
            let binds = most.map(|cap| format!("{} {}", cap.cap, percent(cap.share)));
            table.row(cells![
                own.name.as_str(),
                own.plan.title.as_str(),
                match own.plan.unpriced {
                    0 => Cell::from(own.plan.month),
                    _ => Cell::from("price unknown"),
                },
                own.databases.len().to_string().as_str(),
                binds.unwrap_or_default().as_str(),
                own.verified.map_or_else(Cell::none, percent),
                own.databases.join(" ").as_str(),
            ]);
        }
        table
    }

    fn lacks_table(&self) -> Table {
        let mut table =
            Table::new("Fit nowhere", &["database", "cap", ">needed", ">at most", "|unit"]);
        for own in &self.lacks {
            for cap in &own.caps {
                let [needed, limit] = pair(cap, self.lacks.iter().flat_map(|own| &own.caps));
                table.row(cells![
                    own.database.as_str(),
                    format!("{} of {}", cap.cap, cap.of).as_str(),
                    needed,
                    limit,
                    cap.unit.name(),
                ]);
            }
            if own.caps.is_empty() {
                table.row(cells![own.database.as_str(), "no file or medium does", "-", "-", "-"]);
            }
        }
        table
    }

    fn headline(&self) -> String {
        let count = self.databases;
        if !self.is_met {
            return match self.lacks.len() {
                0 => format!("{}: no plan", counted(count, "database")),
                n => format!("{n} of {count} databases fit no instance"),
            };
        }
        let currency = self.currency.as_deref().unwrap_or_default();
        let price = match (&self.month, self.unpriced) {
            (Some(month), 0) => format!(": {month} {currency} a month"),
            _ => ": price unknown".to_owned(),
        };
        let databases = counted(count, "database");
        format!("{databases} on {}{price}", counted(self.instances.len(), "instance"))
    }

    fn proof(&self) -> Option<String> {
        // Rounded up, for it is that at most; a gap has six decimals.
        let gap = format!("{:.2} %", ((self.gap? * 1e6).round() / 100.0).ceil() / 100.0);
        let goal = self.goal.as_deref()?;
        Some(match (&self.bound, self.gap? > 0.0) {
            (Some(bound), true) => format!(
                "no other packing costs less than {bound}: this one is at most {gap} above the \
                 cheapest"
            ),
            (None, true) => format!("compared by {goal}: at most {gap} above the best"),
            (Some(_), false) => "no other packing costs less".to_owned(),
            (None, false) => format!("compared by {goal}: no other packing is better"),
        })
    }
}

impl FleetReport {
    fn text(&self) -> String {
        let mut out = format!("plan: {}\n", self.headline());
        if let Some(proof) = self.proof() {
            let _ = writeln!(out, "  {proof}");
        }
        for table in self.tables().into_iter().filter(|table| !table.rows.is_empty()) {
            let text = table.text(comfy_table::presets::NOTHING);
            let _ = write!(out, "\n{}\n{text}\n", table.title);
        }
        if !self.notes.is_empty() {
            out.push('\n');
        }
        for note in &self.notes {
            let _ = writeln!(out, "{note}");
        }
        out
    }
}

impl Report for FleetReport {
    fn tables(&self) -> Vec<Table> {
        vec![self.table().named("instance"), self.lacks_table().named("lack")]
    }

    fn render(&self, format: Format) -> String {
        match format {
            Format::Text => self.text(),
            Format::Json => crate::table::json(self),
            Format::Csv => crate::table::csv(&self.tables()),
            Format::Markdown => {
                let mut out = format!("**{}**\n", self.headline());
                for words in self.proof().iter().chain(&self.notes) {
                    let _ = write!(out, "\n{words}\n");
                }
                for table in self.tables().into_iter().filter(|table| !table.rows.is_empty()) {
                    let text = table.text(comfy_table::presets::ASCII_MARKDOWN);
                    let _ = write!(out, "\n**{}**\n{text}\n", table.title);
                }
                out
            }
        }
    }
}

/// `1 database`, `2 databases`.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(databases: usize) -> FleetReport {
        let plan = PlanChoice { title: "gp with 4 vCores".to_owned(), ..PlanChoice::default() };
        let names = (0..databases).map(|at| format!("db{at}")).collect();
        let one =
            FleetHost { name: "instance1".to_owned(), databases: names, plan, verified: None };
        FleetReport {
            is_met: true,
            databases,
            instances: vec![one],
            notes: vec!["a note".to_owned()],
            ..FleetReport::default()
        }
    }

    #[test]
    fn one_is_not_many() {
        let headline = |count: usize| report(count).headline();
        assert_eq!(headline(1), "1 database on 1 instance: price unknown");
        assert_eq!(headline(3), "3 databases on 1 instance: price unknown");
    }

    #[test]
    fn markdown_has_the_headings_of_a_plan() {
        let text = report(2).render(Format::Markdown);
        let begin =
            "**2 databases on 1 instance: price unknown**\n\na note\n\n**Instances**\n| instance";
        assert!(text.starts_with(begin), "{text}");
    }
}
