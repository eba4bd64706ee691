//! `weir catalog`: every figure with its source and date.

use crate::cli::CatalogCommand;
use crate::error::CliError;
use crate::output;
use weir_catalog::{
    Burst, BurstKind, Catalog, Edition, Figure, Found, HostLimits, HostSize, Latency, Provenance,
    Rule,
};
use weir_report::cells;
use weir_report::number::{float, grouped, rate};
use weir_report::table::{Cell, Listing, Table};
use weir_units::{Bytes, BytesPerSec};

pub(crate) fn run(command: &CatalogCommand, catalog: &Catalog) -> Result<u8, CliError> {
    let (tables, output) = match command {
        CatalogCommand::Editions { output } => (vec![editions(catalog)], output),
        CatalogCommand::Tiers { edition, output } => (tiers(catalog.edition(edition)?), output),
        CatalogCommand::Hosts { edition, output } => {
            (vec![hosts(catalog.edition(edition)?)], output)
        }
        CatalogCommand::Show { name, output } => (show(name, catalog)?, output),
    };
    output::print(&Listing(tables), output.format())?;
    Ok(0)
}

fn editions(catalog: &Catalog) -> Table {
    let mut table = Table::new("", &["edition", "as of", ">tiers", ">machines", "title"]);
    for edition in catalog.editions() {
        table.row(cells![
            edition.name().to_owned(),
            edition.as_of().to_owned(),
            grouped(edition.tiers().count() as u64),
            grouped(edition.hosts().count() as u64),
            edition.title().to_owned(),
        ]);
    }
    table
}

fn gib(bytes: Bytes) -> Cell {
    rate(float(bytes.get()) / f64::from(1 << 30))
}

fn burst(burst: Option<&Burst>) -> String {
    burst.map_or_else(none, |burst| {
        let kind = match burst.kind {
            BurstKind::Credit { .. } => "credit",
            BurstKind::OnDemand => "on demand",
        };
        format!("{} / {} {kind}", grouped(burst.iops.get()), burst.throughput)
    })
}

fn none() -> String {
    "-".to_owned()
}

fn tiers(edition: &Edition) -> Vec<Table> {
    let mut tables = Vec::new();
    for set in edition.tier_sets() {
        let heads = ["tier", "family", ">size GiB", ">IOPS", ">throughput", ">burst", "as of"];
        let mut table = Table::new(format!("{} {}", edition.name(), set.name), &heads);
        for tier in &set.tiers {
            table.row(cells![
                tier.name.clone(),
                tier.family.clone(),
                gib(tier.size),
                grouped(tier.iops.get()),
                tier.throughput.to_string(),
                burst(tier.burst.as_ref()),
                tier.provenance.as_of().to_owned(),
            ]);
        }
        table.notes = remarks(&set.provenance);
        tables.push(table);
    }
    for family in edition.provisioned_families() {
        let name = format!("{} {}", edition.name(), family.family);
        let figures = figures(name, &family.figures(), &family.provenance);
        tables.push(figures);
    }
    tables
}

/// Source, conflicts and notes, a line each.
fn remarks(provenance: &Provenance) -> Vec<String> {
    let mut lines = vec![format!("source: {} ({})", provenance.source(), provenance.as_of())];
    let mut add = |kind: &str, texts: &[String]| {
        lines.extend(texts.iter().map(|text| format!("{kind}: {text}")));
    };
    add("conflict", provenance.conflicts());
    add("history", provenance.history());
    add("note", provenance.notes());
    lines
}

fn hosts(edition: &Edition) -> Table {
    let heads = [
        "machine",
        "series",
        ">disks",
        ">cache GiB",
        ">uncached IOPS",
        ">uncached throughput",
        ">cached IOPS",
        ">cached throughput",
        ">burst uncached",
        "as of",
    ];
    let mut table = Table::new("", &heads);
    let iops = |l: Option<&HostLimits>| l.map_or_else(Cell::none, |l| grouped(l.iops.get()));
    let throughput =
        |l: Option<&HostLimits>| l.map_or_else(none, |l| BytesPerSec::to_string(&l.throughput));
    for host in edition.hosts() {
        let HostSize { uncached, cached, .. } = host;
        table.row(cells![
            host.name.clone(),
            host.series.clone(),
            host.max_data_disks.map_or_else(Cell::none, |n| grouped(u64::from(n))),
            host.cache.map_or_else(Cell::none, gib),
            iops(uncached.as_ref()),
            throughput(uncached.as_ref()),
            iops(cached.as_ref()),
            throughput(cached.as_ref()),
            burst(uncached.as_ref().and_then(|l| l.burst.as_ref())),
            host.provenance.as_of().to_owned(),
        ]);
    }
    table.notes.push("- is not published; weir catalog show NAME gives the sources".to_owned());
    table
}

fn show(name: &str, catalog: &Catalog) -> Result<Vec<Table>, CliError> {
    if let Ok(edition) = catalog.edition(name) {
        return Ok(vec![about(edition)]);
    }
    let found = catalog.find(name);
    if found.is_empty() {
        let near = catalog.nearest(name).map(|near| format!("; did you mean {near:?}?"));
        return Err(CliError::Refused(format!(
            "nothing in the catalog is called {name:?}{}",
            near.unwrap_or_default()
        )));
    }
    Ok(found.iter().map(one).collect())
}

fn about(edition: &Edition) -> Table {
    let mut table = Table::new(edition.name(), &["about", "text"]);
    let mut row = |kind: &str, text: &str| table.row(cells![kind.to_owned(), text.to_owned()]);
    row("title", edition.title());
    row("as of", edition.as_of());
    row("scope", edition.scope());
    row("I/O unit", &edition.io_unit().to_string());
    edition.conflicts().iter().for_each(|text| row("conflict", text));
    edition.notes().iter().for_each(|text| row("note", text));
    edition.bursting().iter().for_each(|rule| row(&format!("bursting {}", rule.name), &rule.text));
    edition.rules().iter().for_each(|rule| row(&format!("rule {}", rule.name), &rule.text));
    table
}

fn one(found: &Found<'_>) -> Table {
    let title = format!("{} {}", found.edition().name(), found.name());
    match found {
        Found::Tier(_, tier) => figures(title, &tier.figures(), &tier.provenance),
        Found::Host(_, host) => figures(title, &host.figures(), &host.provenance),
        Found::Provisioned(_, family) => figures(title, &family.figures(), &family.provenance),
        Found::TierSet(edition, set) => {
            let mut table = Table::new(title, &["tier", "family", "in edition"]);
            for tier in &set.tiers {
                let edition = edition.name().to_owned();
                table.row(cells![tier.name.clone(), tier.family.clone(), edition]);
            }
            table.notes = remarks(&set.provenance);
            table
        }
        Found::Latency(_, latency) => latency_table(title, latency),
        Found::Rule(_, rule) => rule_table(title, rule),
        other => Table::new(other.name(), &["name"]),
    }
}

fn figures(title: String, figures: &[Figure<'_>], provenance: &Provenance) -> Table {
    let mut table = Table::new(title, &["figure", ">value", "as of", "source"]);
    for figure in figures {
        table.row(cells![
            figure.name.to_owned(),
            figure.value.clone(),
            figure.citation.as_of.clone(),
            figure.citation.source.clone(),
        ]);
    }
    table.notes = remarks(provenance);
    table
}

fn latency_table(title: String, latency: &Latency) -> Table {
    let mut table = Table::new(title, &["quantile", ">read", ">write"]);
    let names = ["p0", "p50", "p90", "p99", "p99.9", "p100"];
    let points = latency.read.points().into_iter().zip(latency.write.points());
    for (name, (read, write)) in names.iter().zip(points) {
        table.row(cells![(*name).to_owned(), read.1.to_string(), write.1.to_string()]);
    }
    table.notes.push(format!("{}: {}", latency.basis, latency.reason));
    table.notes.extend(remarks(&latency.provenance));
    table
}

fn rule_table(title: String, rule: &Rule) -> Table {
    let mut table = Table::new(title, &["rule"]);
    table.row(cells![rule.text.clone()]);
    table.notes = remarks(&rule.provenance);
    table
}
