//! `weir catalog`: every figure with its source and date.
//!
//! A cell such as `3,500 / 170 MB/s credit` in the text output becomes several numeric columns in
//! JSON and CSV; see [`Table`] for the notation of the headings.

use super::catalog_update::{self, Request};
use super::prices;
use crate::cli::CatalogCommand;
use crate::error::CliError;
use crate::output;
use weir_catalog::{
    Burst, BurstKind, Catalog, Edition, Figure, Found, HostCache, HostLimits, HostSize, Limits,
    Provenance, Provisioned, TierSet,
};
use weir_report::cells;
use weir_report::number::{float, gib, grouped};
use weir_report::table::{Cell, Listing, Table};
use weir_units::{Bytes, BytesPerSec, Iops};

pub(crate) fn run(command: &CatalogCommand, catalog: &Catalog) -> Result<u8, CliError> {
    let (tables, output) = match command {
        CatalogCommand::Update { edition, files, name, as_of, out } => {
            let request =
                Request { edition, files, name: name.as_deref(), as_of: as_of.as_deref() };
            return catalog_update::run(&request, out.as_deref(), catalog);
        }
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
    let mut table = Table::new("", &["edition", "as of|as_of", ">tiers", ">machines", "title"]);
    for edition in catalog.editions() {
        table.row(cells![
            edition.name(),
            edition.as_of(),
            grouped(edition.tiers().count() as u64),
            grouped(edition.hosts().count() as u64),
            edition.title(),
        ]);
    }
    table
}

fn size(bytes: Option<Bytes>) -> Cell {
    bytes.map_or_else(Cell::none, |bytes| gib(bytes.get()))
}

fn iops(iops: Option<Iops>) -> Cell {
    iops.map_or_else(Cell::none, |iops| grouped(iops.get()))
}

/// Formats a throughput in the unit of its source, for the text output.
fn throughput(rate: Option<BytesPerSec>) -> Cell {
    rate.map_or_else(Cell::none, |rate| Cell::number(rate.to_string(), float(rate.get())))
}

fn count(n: Option<u32>) -> Cell {
    n.map_or_else(Cell::none, |n| grouped(u64::from(n)))
}

/// Formats a burst as one cell of the text output, or as kind, rates and duration.
fn burst(burst: Option<Burst>) -> [Cell; 5] {
    let Some(Burst { kind, iops: peak, throughput: bytes, .. }) = burst else {
        return [(); 5].map(|()| Cell::none());
    };
    let (word, duration) = match kind {
        BurstKind::Credit { duration } => {
            let seconds = float(duration.nanos()) / 1e9;
            ("credit", Cell::number(duration.to_string(), seconds))
        }
        BurstKind::OnDemand => ("on-demand", Cell::none()),
    };
    let shown = format!("{} / {bytes} {word}", grouped(peak.get()));
    [shown.into(), word.into(), iops(Some(peak)), throughput(Some(bytes)), duration]
}

/// Lists the tiers by set, the families with purchasable limits, and the remarks on both.
fn tiers(edition: &Edition) -> Vec<Table> {
    let mut tables: Vec<Table> =
        edition.tier_sets().iter().map(|set| tier_table(edition, set)).collect();
    if tables.is_empty() {
        tables.push(Table::new("", &TIER_HEADS).named("tiers"));
    }
    tables.push(provisioned(edition.provisioned_families()));
    tables.extend([sized(edition), stores(edition), pooled(edition)]);
    let mut remarks = remarks_table();
    for set in edition.tier_sets() {
        remark(&mut remarks, edition, &set.name, &set.provenance);
    }
    for family in edition.provisioned_families() {
        remark(&mut remarks, edition, &family.family, &family.provenance);
    }
    for store in edition.stores() {
        remark(&mut remarks, edition, &store.name, &store.provenance);
    }
    for family in edition.sized_families() {
        remark(&mut remarks, edition, &family.family, &family.provenance);
    }
    for family in edition.pooled_families() {
        remark(&mut remarks, edition, &family.family, &family.provenance);
    }
    tables.push(remarks);
    tables
}

/// Returns the row of a tier.
const TIER_HEADS: [&str; 15] = [
    "tier",
    "|set",
    "family",
    ">size GiB|size_bytes",
    ">IOPS|iops",
    ">throughput|throughput_bytes_per_s",
    ">burst|",
    "|burst_kind",
    "|burst_iops",
    "|burst_throughput_bytes_per_s",
    "|burst_duration_s",
    "|plus_iops",
    "|plus_throughput_bytes_per_s",
    "as of|as_of",
    "|source",
];

fn tier_table(edition: &Edition, set: &TierSet) -> Table {
    let mut table =
        Table::new(format!("{} {}", edition.name(), set.name), &TIER_HEADS).named("tiers");
    for tier in &set.tiers {
        let (name, family) = (tier.name.as_str(), tier.family.as_str());
        let mut row = cells![name, set.name.as_str(), family, gib(tier.size.get())];
        row.extend([iops(Some(tier.iops)), throughput(Some(tier.throughput))]);
        row.extend(burst(tier.burst));
        row.extend(pair(tier.plus));
        row.extend(cells![tier.provenance.as_of(), tier.provenance.source()]);
        table.row(row);
    }
    table.notes = remark_lines(&set.provenance);
    table
}

fn pair(limits: Option<Limits>) -> [Cell; 2] {
    [iops(limits.map(|l| l.iops)), throughput(limits.map(|l| l.throughput))]
}

fn provisioned(families: &[Provisioned]) -> Table {
    let heads = [
        "provisioned|family",
        ">min GiB|min_size_bytes",
        ">max GiB|max_size_bytes",
        ">min IOPS|min_iops",
        ">min throughput|min_throughput_bytes_per_s",
        ">max IOPS|max_iops",
        ">max throughput|max_throughput_bytes_per_s",
        ">IOPS per GiB|iops_per_gib",
        ">throughput per IOPS|throughput_bytes_per_s_per_iops",
        "min included|min_included",
        "as of|as_of",
        "|source",
    ];
    let mut table = Table::new("", &heads).named("provisioned");
    for family in families {
        let mut row = cells![family.family.as_str()];
        row.extend([size(Some(family.min_size)), size(Some(family.max_size))]);
        row.extend(pair(Some(family.minimum)));
        row.extend(pair(Some(family.maximum)));
        row.extend([iops(family.iops_per_gib), throughput(family.throughput_per_iops)]);
        let included = if family.minimum_included { "yes" } else { "no" };
        row.extend(cells![included, family.provenance.as_of(), family.provenance.source()]);
        table.row(row);
    }
    table.notes = families
        .iter()
        .flat_map(|family| {
            let lines = remark_lines(&family.provenance).into_iter();
            lines.map(|line| format!("{}: {line}", family.family))
        })
        .collect();
    table
}

/// Lists the families whose limits follow from the size.
fn sized(edition: &Edition) -> Table {
    let heads = [
        "by size|family",
        ">min GiB|min_size_bytes",
        ">max GiB|max_size_bytes",
        ">IOPS per GiB|iops_per_gib",
        ">min IOPS|min_iops",
        ">max IOPS|max_iops",
        ">throughput per TiB|throughput_bytes_per_s_per_tib",
        ">max throughput|max_throughput_bytes_per_s",
        ">burst IOPS|burst_iops",
        ">credits|burst_credits",
        ">burst per TiB|burst_throughput_bytes_per_s_per_tib",
        ">max burst|burst_throughput_bytes_per_s",
        "as of|as_of",
        "|source",
    ];
    let mut table = Table::new("", &heads).named("sized");
    for family in edition.sized_families() {
        let mut row = cells![family.family.as_str()];
        row.extend([size(Some(family.min_size)), size(Some(family.max_size))]);
        let (least, most) = (family.minimum, family.maximum);
        row.extend([iops(family.iops_per_gib), iops(Some(least.iops)), iops(Some(most.iops))]);
        row.extend([throughput(family.throughput_per_tib), throughput(Some(most.throughput))]);
        let (operations, bytes) = (family.iops_burst, family.throughput_burst);
        row.push(iops(operations.map(|own| own.iops)));
        row.push(operations.map_or_else(Cell::none, |own| grouped(own.credits)));
        row.push(throughput(bytes.map(|own| own.per_tib)));
        row.push(throughput(bytes.map(|own| own.maximum)));
        row.extend(cells![family.provenance.as_of(), family.provenance.source()]);
        table.row(row);
    }
    table
}

/// Lists the services whose files share one store.
fn stores(edition: &Edition) -> Table {
    let heads = [
        "store",
        "service",
        "family",
        "engines",
        ">min GiB|min_size_bytes",
        ">max GiB|max_size_bytes",
        ">volumes",
        ">min IOPS|min_iops",
        ">min throughput|min_throughput_bytes_per_s",
        ">max IOPS|max_iops",
        ">max throughput|max_throughput_bytes_per_s",
        "as of|as_of",
        "|source",
    ];
    let mut table = Table::new("", &heads).named("stores");
    for store in edition.stores() {
        for step in &store.steps {
            let engines = step.engines.join(", ");
            let (name, service) = (store.name.as_str(), store.service.as_str());
            let mut row = cells![name, service, store.family.as_str(), engines];
            row.extend([size(Some(step.min_size)), size(Some(step.max_size))]);
            row.push(count(u32::try_from(step.volumes).ok()));
            let minimum = step.minimum;
            row.extend([iops(Some(minimum.iops)), throughput(minimum.throughput)]);
            let (most, rate) = (step.maximum.map(|own| own.iops), step.maximum);
            row.extend([iops(most), throughput(rate.and_then(|own| own.throughput))]);
            row.extend(cells![step.provenance.as_of(), step.provenance.source()]);
            table.row(row);
        }
    }
    table
}

/// Lists the families whose disks share limits.
fn pooled(edition: &Edition) -> Table {
    let heads = [
        "shared|family",
        ">min GiB|min_size_bytes",
        ">max GiB|max_size_bytes",
        ">base IOPS|base_iops",
        ">base throughput|base_throughput_bytes_per_s",
        ">IOPS per 100 GiB|iops_per_100_gib",
        ">throughput per 100 GiB|throughput_bytes_per_s_per_100_gib",
        ">write IOPS per 100 GiB|write_iops_per_100_gib",
        ">write throughput per 100 GiB|write_throughput_bytes_per_s_per_100_gib",
        "as of|as_of",
        "|source",
    ];
    let mut table = Table::new("", &heads).named("pooled");
    for family in edition.pooled_families() {
        let mut row = cells![family.family.as_str()];
        row.extend([size(family.min_size), size(family.max_size)]);
        row.extend(pair(family.base));
        row.extend(pair(Some(family.per_100_gib.limits)));
        row.extend(pair(family.per_100_gib.writes));
        row.extend(cells![family.provenance.as_of(), family.provenance.source()]);
        table.row(row);
    }
    table
}

/// Lists source, conflicts, history and notes, each with its kind.
fn remarks(provenance: &Provenance) -> Vec<(&'static str, String)> {
    let source = format!("{} ({})", provenance.source(), provenance.as_of());
    let mut remarks = vec![("source", source)];
    for (kind, texts) in [
        ("conflict", provenance.conflicts()),
        ("history", provenance.history()),
        ("note", provenance.notes()),
    ] {
        remarks.extend(texts.iter().map(|text| (kind, text.clone())));
    }
    remarks
}

fn remark_lines(provenance: &Provenance) -> Vec<String> {
    remarks(provenance).into_iter().map(|(kind, text)| format!("{kind}: {text}")).collect()
}

/// Adds a remarks table for JSON and CSV, which have no notes below a table.
fn remarks_table() -> Table {
    Table::new("", &["|edition", "|name", "|kind", "|text"]).named("remarks")
}

fn remark(table: &mut Table, edition: &Edition, name: &str, provenance: &Provenance) {
    for (kind, text) in remarks(provenance) {
        table.row(cells![edition.name(), name, kind, text]);
    }
}

fn hosts(edition: &Edition) -> Table {
    // Managed instances have storage; machines have disks.
    let storage = match edition.hosts().any(|host| host.storage.is_some()) {
        true => ">storage GiB|storage_bytes",
        false => "|storage_bytes",
    };
    let heads = [
        "machine",
        "series",
        "|architecture",
        ">vCPUs|vcpus",
        "|memory_bytes",
        storage,
        ">disks|max_data_disks",
        ">cache GiB|cache_bytes",
        ">uncached IOPS|uncached_iops",
        ">uncached throughput|uncached_throughput_bytes_per_s",
        ">cached IOPS|cached_iops",
        ">cached throughput|cached_throughput_bytes_per_s",
        "|v2_iops",
        "|v2_throughput_bytes_per_s",
        ">burst uncached|",
        "|uncached_burst_kind",
        "|uncached_burst_iops",
        "|uncached_burst_throughput_bytes_per_s",
        "|uncached_burst_duration_s",
        ">burst cached|",
        "|cached_burst_kind",
        "|cached_burst_iops",
        "|cached_burst_throughput_bytes_per_s",
        "|cached_burst_duration_s",
        "as of|as_of",
        "|source",
    ];
    let mut table = Table::new("", &heads);
    let base = |limits: Option<HostLimits>| pair(limits.map(|l| l.limits()));
    for host in edition.hosts() {
        let HostSize { uncached, cached, v2, .. } = *host;
        let architecture = edition.architecture(host).name();
        let mut row =
            cells![host.name.as_str(), host.series.as_str(), architecture, count(host.vcpus)];
        row.extend([size(host.memory), size(host.storage), count(host.max_data_disks)]);
        row.push(size(host.cache));
        row.extend([uncached, cached, v2].into_iter().flat_map(base));
        row.extend([uncached, cached].into_iter().flat_map(|l| burst(l.and_then(|l| l.burst))));
        row.extend(cells![host.provenance.as_of(), host.provenance.source()]);
        table.row(row);
    }
    table.notes.push(match table.rows.is_empty() {
        true => format!("{} has no hosts", edition.name()),
        false => "- is not published; weir catalog show NAME gives the sources".to_owned(),
    });
    if edition.hosts().any(|host| !host.pools.is_empty()) {
        let words = "disks of this type share limits on a machine: weir catalog show NAME";
        table.notes.push(words.to_owned());
    }
    table
}

/// The tables of a name: figures, tiers and remarks. Some can be empty.
fn show(name: &str, catalog: &Catalog) -> Result<Vec<Table>, CliError> {
    let mut tables = vec![figures_table(String::new())];
    if let Ok(edition) = catalog.edition(name) {
        tables.push(about(edition));
        return Ok(tables);
    }
    let found = catalog.get(name)?;
    let mut remarks = remarks_table();
    let mut prices = prices::table();
    for one in &found {
        // A name shared by several entries of an edition is shown under the one that selects it.
        let alike = |other: &&Found<'_>| {
            (other.edition().name(), other.name()) == (one.edition().name(), one.name())
        };
        let name = match found.iter().filter(alike).count() {
            1 => one.name().to_owned(),
            _ => one.qualified(),
        };
        tables.extend(tables_of(one, &name));
        add_prices(&mut prices, one)?;
        remark(&mut remarks, one.edition(), &name, one.provenance());
    }
    tables.extend([prices, remarks]);
    Ok(tables)
}

/// Adds the prices of a disk, a machine or a family in the edition's own region, once.
fn add_prices(table: &mut Table, found: &Found<'_>) -> Result<(), CliError> {
    let edition = found.edition();
    let name = match found {
        Found::Tier(_, tier) if edition.tier(&tier.name).is_ok_and(|own| own == *tier) => {
            &tier.name
        }
        Found::Tier(_, tier) => &tier.qualified(),
        Found::Host(_, host) => &host.name,
        Found::Provisioned(_, family) => &family.family,
        Found::Pooled(_, family) => &family.family,
        Found::Store(_, store) => &store.name,
        _ => return Ok(()),
    };
    let Some(book) = edition.price_book(None, None, None)? else { return Ok(()) };
    let mut own = prices::table();
    prices::add(&mut own, edition, &book, name);
    own.rows.retain(|row| !table.rows.contains(row));
    table.rows.append(&mut own.rows);
    own.notes.retain(|note| !table.notes.contains(note));
    table.notes.append(&mut own.notes);
    Ok(())
}

fn about(edition: &Edition) -> Table {
    let heads = ["|edition", "|name", "about|kind", "text"];
    let mut table = Table::new(edition.name(), &heads).named("remarks");
    let mut row = |kind: &str, text: &str| {
        table.row(cells![edition.name(), edition.name(), kind, text]);
    };
    row("title", edition.title());
    row("as of", edition.as_of());
    row("scope", edition.scope());
    let unit = edition.io_unit().map(|unit| unit.to_string());
    row("I/O unit", unit.as_deref().unwrap_or("none: every I/O counts once"));
    edition.conflicts().iter().for_each(|text| row("conflict", text));
    edition.notes().iter().for_each(|text| row("note", text));
    edition.bursting().iter().for_each(|rule| row(&format!("bursting {}", rule.name), &rule.text));
    edition.rules().iter().for_each(|rule| row(&format!("rule {}", rule.name), &rule.text));
    table
}

/// Shows one entry called `name`.
fn tables_of(found: &Found<'_>, name: &str) -> Vec<Table> {
    let figures = |list: &[Figure<'_>], text: &[String]| figures(found, name, list, text);
    match found {
        Found::Tier(_, tier) => vec![figures(&tier.figures(), &[])],
        Found::Host(_, host) => vec![figures(&host.figures(), &[])],
        Found::Provisioned(_, family) => vec![figures(&family.figures(), &[])],
        Found::Sized(_, family) => vec![figures(&family.figures(), &[])],
        Found::Store(_, store) => vec![figures(&store.figures(), &[])],
        Found::Pooled(_, family) => vec![figures(&family.figures(), &[])],
        Found::TierSet(edition, set) => vec![tier_table(edition, set)],
        Found::Latency(_, latency) => {
            let families = format!("for {}", latency.families.join(", "));
            let basis = format!("{}: {}", latency.basis, latency.reason);
            vec![figures(&latency.figures(), &[families, basis])]
        }
        Found::HostCache(edition, cache) => {
            let uncacheable = cache.uncacheable.join(", ");
            let text = (!uncacheable.is_empty()).then(|| format!("not cached: {uncacheable}"));
            vec![accounting(edition, cache), figures(&cache.figures(), text.as_slice())]
        }
        Found::Bursting(_, rule) => {
            let applies = format!("for {}", rule.applies_to.join(", "));
            vec![figures(&rule.figures(), &[applies, rule.text.clone()])]
        }
        Found::Striping(_, striping) => vec![figures(&striping.figures(), &[])],
        Found::Rule(_, rule) => {
            vec![figures(&rule.figures(), std::slice::from_ref(&rule.text))]
        }
        _ => vec![figures(&[], &[])],
    }
}

/// Lists the limits that an I/O counts against, by cache mode.
fn accounting(edition: &Edition, cache: &HostCache) -> Table {
    let heads = ["|edition", "cache", "operation", "disk", "uncached", "cached", "note"];
    let title = format!("{} host-cache: what an I/O counts against", edition.name());
    let mut table = Table::new(title, &heads).named("accounting");
    let counts = |counts: bool| if counts { "yes" } else { "no" };
    for row in &cache.rows {
        let (mode, op) = (row.mode.to_string(), row.op.to_string());
        let [disk, uncached, cached] =
            [row.counts.disk, row.counts.uncached, row.counts.cached].map(counts);
        // The notes of the whole table follow its figures.
        let own = row.provenance.notes().iter().find(|n| !cache.provenance.notes().contains(n));
        let note = own.map_or_else(Cell::none, |note| Cell::from(note.as_str()));
        table.row(cells![edition.name(), mode, op, disk, uncached, cached, note]);
    }
    table
}

fn figures_table(title: String) -> Table {
    let heads = ["|edition", "|name", "figure", ">value", "|unit", "as of|as_of", "source"];
    Table::new(title, &heads).named("figures")
}

/// Lists the figures of one row, with its text lines above the remarks.
fn figures(found: &Found<'_>, name: &str, figures: &[Figure<'_>], text: &[String]) -> Table {
    let edition = found.edition().name();
    let mut table = figures_table(format!("{edition} {name}"));
    for figure in figures {
        let shown = figure.value.to_string();
        let value = match figure.value.number() {
            Some(number) => Cell::number(shown, float(number)),
            None => shown.into(),
        };
        let unit = figure.value.unit().map_or_else(Cell::none, Cell::from);
        let citation = figure.citation;
        table.row(cells![
            edition,
            name,
            figure.name.as_str(),
            value,
            unit,
            &*citation.as_of,
            &*citation.source,
        ]);
    }
    table.notes = [text.to_vec(), remark_lines(found.provenance())].concat();
    table
}
