//! The packing of a fleet of databases onto instances, with its price and optimality gap.

use crate::cells;
use crate::number::{Amount, percent};
use crate::page::Page;
use crate::plan::{PlanCap, PlanChoice, pair};
use crate::screen::Screen;
use crate::table::{Cell, Report, Table};
use serde::Serialize;
use std::fmt::Write as _;

/// The packing of a fleet.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FleetReport {
    /// Set if every database has an instance.
    pub is_met: bool,
    /// The edition.
    pub edition: String,
    /// Region of the prices, if there are any.
    pub region: Option<String>,
    /// Currency of the prices.
    pub currency: Option<String>,
    /// Number of databases.
    pub databases: usize,
    /// The objective.
    #[serde(rename = "objective")]
    pub goal: Option<String>,
    /// Monthly price; items without a price are left out.
    pub month: Option<Amount>,
    /// Number of missing prices.
    pub unpriced: u32,
    /// Lower bound of the monthly price.
    #[serde(rename = "lower_bound")]
    pub bound: Option<Amount>,
    /// Optimality gap, from 0 to 1.
    #[serde(rename = "optimality_gap")]
    pub gap: Option<f64>,
    /// Instances, by price.
    pub instances: Vec<FleetHost>,
    /// Databases that fit no instance.
    #[serde(rename = "unplaced")]
    pub lacks: Vec<FleetLack>,
    /// Notes.
    pub notes: Vec<String>,
}

/// An instance and its databases.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetHost {
    /// Name of the instance and of its layout.
    pub name: String,
    /// The databases on it.
    pub databases: Vec<String>,
    /// Description.
    #[serde(flatten)]
    pub plan: PlanChoice,
    /// Lowest share of a role's demand that was met in simulation, from 0 to 1.
    pub verified: Option<f64>,
}

/// A database that fits no instance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetLack {
    /// The database.
    pub database: String,
    /// Limits that the nearest instance fails.
    #[serde(rename = "exceeded")]
    pub caps: Vec<PlanCap>,
}

impl FleetReport {
    fn table(&self) -> Table {
        let month = format!(">{} a month", self.currency.as_deref().unwrap_or("price"));
        let heads = [
            "instance",
            "machine",
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
                match (own.plan.unpriced, own.plan.month) {
                    (0, Some(month)) => Cell::from(month),
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
        let mut table = Table::new(
            "Databases that fit no instance",
            &["database", "limit", ">needed", ">maximum", "|unit"],
        );
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
                table.row(cells![own.database.as_str(), "no file or disk fits", "-", "-", "-"]);
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
            (Some(bound), true) => format!("lower bound {bound}: optimality gap {gap}"),
            (None, true) => format!("compared by {goal}: optimality gap {gap}"),
            (Some(_), false) => "optimal: no other packing costs less".to_owned(),
            (None, false) => format!("compared by {goal}: optimal"),
        })
    }

    /// Returns the page of the fleet.
    #[must_use]
    pub fn page(&self) -> Page {
        Page::new(&self.headline())
            .paragraphs(self.proof().as_deref())
            .tables(&self.tables())
            .paragraphs(self.notes.iter().map(String::as_str))
    }
}

impl Report for FleetReport {
    fn tables(&self) -> Vec<Table> {
        vec![self.table().named("instance"), self.lacks_table().named("unplaced")]
    }

    fn text(&self, screen: &Screen) -> String {
        let mut out = screen.prose(&format!("plan: {}", self.headline()), 2) + "\n";
        if let Some(proof) = self.proof() {
            let _ = writeln!(out, "{}", screen.prose(&format!("  {proof}"), 2));
        }
        for table in self.tables().into_iter().filter(|table| !table.rows.is_empty()) {
            let _ = write!(out, "\n{}", table.block(screen));
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
        for words in self.proof().iter().chain(&self.notes) {
            let _ = write!(out, "\n{words}\n");
        }
        for table in self.tables().into_iter().filter(|table| !table.rows.is_empty()) {
            let _ = write!(out, "\n**{}**\n{}\n", table.title, table.markdown());
        }
        out
    }
}

/// Returns a count with its noun, for example `2 databases`.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

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
