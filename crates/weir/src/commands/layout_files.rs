//! The part of `weir layout check` about database files: the tier of each file, the sizes of the
//! neighbouring tiers, and the unused part of a managed instance's limits.

use weir_catalog::{Edition, Limits};
use weir_core::{GateLimits, Limit};
use weir_layout::files::{File, FileUse};
use weir_layout::instance::{Instance, Measure, Tally};
use weir_layout::steps::{Step, Steps};
use weir_layout::{Host, Layout, Role};
use weir_report::cells;
use weir_report::number::{float, grouped, mib};
use weir_report::table::{Cell, Table};
use weir_units::Bytes;

/// Returns the tables of all files; none if there are no files.
pub(crate) fn tables(layout: &Layout, edition: Option<&Edition>) -> Vec<Table> {
    let mut tables = Vec::new();
    for host in layout.hosts.iter().filter(|host| !host.files.is_empty()) {
        match &host.instance {
            None => tables.push(files_on_volumes(host)),
            Some(instance) => {
                tables.push(files_of_instance(host, edition));
                tables.push(totals(host));
                tables.push(bounds(host, instance));
            }
        }
    }
    tables
}

/// Formats bytes in GiB with four decimals, like the query in article 000.
fn gib(bytes: u64) -> Cell {
    let gib = format!("{:.4}", float(bytes) / float(1 << 30));
    let shown = gib.trim_end_matches('0').trim_end_matches('.');
    Cell::number(shown.to_owned(), float(bytes))
}

fn or_none<T>(value: Option<T>, cell: impl Fn(T) -> Cell) -> Cell {
    value.map_or_else(Cell::none, cell)
}

fn size(bytes: Option<Bytes>) -> Cell {
    or_none(bytes, |bytes| gib(bytes.get()))
}

fn rate(limit: Option<Limit>) -> Option<u64> {
    limit.map(|limit| limit.rate.get())
}

fn limits(gate: &GateLimits) -> [Cell; 2] {
    [or_none(rate(gate.iops), grouped), or_none(rate(gate.bytes), |n| mib(float(n)))]
}

/// Returns the cells for file, host, database and role.
fn named(host: &Host, file: &File) -> Vec<Cell> {
    let database = match file.role {
        Role::Tempdb => Cell::none(),
        _ => or_none(file.database.as_deref(), Cell::from),
    };
    cells![file.name.as_str(), host.name.as_str(), database, file.role.name()]
}

fn files_on_volumes(host: &Host) -> Table {
    let heads = [
        "file",
        "|host",
        "database",
        "role",
        ">size GiB|size_bytes",
        "|used_bytes",
        "|growth_bytes",
        "|max_size_bytes",
        "on",
        "|offset_bytes",
        "tier",
        ">IOPS|iops",
        ">MiB/s|throughput_bytes_per_s",
    ];
    let mut table = Table::new("", &heads).named("files");
    for file in &host.files {
        let mut row = named(host, file);
        row.push(gib(file.size.get()));
        row.extend(growth(file));
        let export = host.export_of(file);
        row.push(or_none(export, |export| export.name.as_str().into()));
        row.push(gib(file.base.get()));
        let volumes: Vec<_> = export
            .into_iter()
            .flat_map(|export| &export.volumes)
            .filter_map(|id| host.volumes.get(id.0))
            .collect();
        let tier = volumes.first().and_then(|volume| volume.tier.as_deref());
        row.push(or_none(tier, |tier| match volumes.len() {
            1 => tier.into(),
            columns => format!("{columns} x {tier}").into(),
        }));
        let gates = || volumes.iter().map(|volume| &volume.spec.limits.gate);
        row.push(or_none(gates().map(|gate| rate(gate.iops)).sum(), grouped));
        let bytes: Option<u64> = gates().map(|gate| rate(gate.bytes)).sum();
        row.push(or_none(bytes, |n| mib(float(n))));
        table.row(row);
    }
    table.notes.push("files on one volume or stripe share its limits".to_owned());
    table.notes.extend(growth_notes(host));
    table
}

fn files_of_instance(host: &Host, edition: Option<&Edition>) -> Table {
    let heads = [
        "file",
        "|host",
        "database",
        "role",
        ">size GiB|size_bytes",
        "|used_bytes",
        "|growth_bytes",
        "|max_size_bytes",
        ">blob GiB|blob_bytes",
        "tier",
        ">IOPS|iops",
        ">MiB/s|throughput_bytes_per_s",
        "larger|",
        "smaller|",
        "|same_until_bytes",
        "|same_from_bytes",
        "|up_size_bytes",
        "|up_tier",
        "|up_iops",
        "|up_throughput_bytes_per_s",
        "|down_size_bytes",
        "|down_tier",
        "|down_iops",
        "|down_throughput_bytes_per_s",
    ];
    let mut table = Table::new("", &heads).named("files");
    for FileUse { file, volume } in host.file_uses() {
        let mut row = named(host, file);
        row.extend([gib(volume.spec.size.get())]);
        row.extend(growth(file));
        row.push(size(volume.tier_size));
        row.push(match (volume.tier.as_deref(), host.spec.uncached.iops, file.role) {
            (Some(tier), ..) => tier.into(),
            (None, Some(_), Role::Data | Role::Log | Role::Backup) => "shared quota".into(),
            (None, ..) => "local SSD".into(),
        });
        row.extend(limits(&volume.spec.limits.gate));
        let steps = edition.and_then(|edition| volume.steps(edition));
        row.extend(match &steps {
            None => [Cell::none(), Cell::none()],
            Some(steps) => [larger(volume.spec.size, steps), smaller(volume.spec.size, steps)],
        });
        row.push(size(steps.as_ref().map(|steps| steps.until)));
        row.push(size(steps.as_ref().map(|steps| steps.from)));
        row.extend(step(steps.as_ref().and_then(|steps| steps.up.as_ref())));
        row.extend(step(steps.as_ref().and_then(|steps| steps.down.as_ref())));
        table.row(row);
    }
    table.notes.extend(growth_notes(host));
    table
}

/// Describes the used part, the growth increment and the maximum size.
fn growth(file: &File) -> [Cell; 3] {
    let growth = file.growth.filter(|_| file.role == Role::Data);
    let most = growth.map(|growth| growth.most).filter(|most| most.get() < u64::MAX);
    [size(file.used), size(growth.map(|growth| growth.by)), size(most)]
}

/// Describes the same as text, one line for each file that has such settings.
fn growth_notes(host: &Host) -> impl Iterator<Item = String> + '_ {
    let words = |file: &File| {
        let used = file.used.map(|used| format!("{used} in use"));
        let grows = file.growth.filter(|_| file.role == Role::Data).map(|growth| {
            let limit = host.instance.as_ref().map(|instance| instance.storage);
            match (growth.most.get(), limit) {
                (u64::MAX, Some(storage)) => {
                    format!(
                        "grows by {} while all files together have {storage} or less",
                        growth.by
                    )
                }
                _ => format!("grows by {} up to {}", growth.by, growth.most),
            }
        });
        let parts: Vec<String> = grows.into_iter().chain(used).collect();
        (!parts.is_empty()).then(|| format!("{}: {}", file.name, parts.join("; ")))
    };
    host.files.iter().filter_map(words)
}

fn step(step: Option<&Step>) -> [Cell; 4] {
    [
        size(step.map(|step| step.size)),
        or_none(step, |step| step.tier.as_str().into()),
        or_none(step, |step| grouped(step.limits.iops.get())),
        or_none(step, |step| mib(float(step.limits.throughput.get()))),
    ]
}

fn in_words(step: &Step) -> String {
    let Limits { iops, throughput } = step.limits;
    let (iops, throughput) = (grouped(iops.get()), mib(float(throughput.get())));
    format!("{}, {iops} IOPS, {throughput} MiB/s", step.tier)
}

/// Describes the upper bound of the tier, and the next tier.
fn larger(size: Bytes, steps: &Steps) -> Cell {
    let idle = match size < steps.until {
        true => format!("{} is no faster than {size}; ", steps.until),
        false => String::new(),
    };
    match &steps.up {
        Some(up) => format!("{idle}{} is the next tier up: {}", up.size, in_words(up)).into(),
        None => format!("{idle}there is no higher tier").into(),
    }
}

/// Describes the lower bound of the tier, and the previous tier.
fn smaller(size: Bytes, steps: &Steps) -> Cell {
    let Some(down) = &steps.down else { return "there is no lower tier".into() };
    let spare = match size > steps.from {
        true => format!("{} is as fast; ", steps.from),
        false => String::new(),
    };
    format!("{spare}{} is the next tier down: {}", down.size, in_words(down)).into()
}

/// Sums the files by role, and in total.
fn totals(host: &Host) -> Table {
    let heads = [
        "role",
        "|host",
        ">files",
        ">size GiB|size_bytes",
        ">blob GiB|blob_bytes",
        ">IOPS|iops",
        ">MiB/s|throughput_bytes_per_s",
    ];
    let mut table = Table::new("", &heads).named("totals");
    let uses = host.file_uses();
    let mut total = |name: &str, of: &dyn Fn(&FileUse<'_>) -> bool| {
        let uses: Vec<FileUse<'_>> = uses.iter().copied().filter(|file| of(file)).collect();
        if uses.is_empty() {
            return;
        }
        let tally = Tally::sum(&uses);
        let limits = || uses.iter().map(|file| &file.volume.spec.limits.gate);
        let sum = |rate: &dyn Fn(&GateLimits) -> Option<u64>| -> Option<u64> {
            let rates: Vec<u64> = limits().filter_map(rate).collect();
            (!rates.is_empty()).then(|| rates.iter().sum())
        };
        let blobs = Some(tally.get(Measure::Blobs)).filter(|blobs| *blobs > 0);
        table.row(cells![
            name,
            host.name.as_str(),
            grouped(tally.get(Measure::FileCount)),
            gib(tally.get(Measure::Files)),
            or_none(blobs, gib),
            or_none(sum(&|gate| rate(gate.iops)), grouped),
            or_none(sum(&|gate| rate(gate.bytes)), |n| mib(float(n))),
        ]);
    };
    for role in Role::ALL {
        total(role.name(), &|file| file.file.role == role);
    }
    total("all", &|_| true);
    table
}

/// Lists the used and the unused part of the instance's limits.
fn bounds(host: &Host, instance: &Instance) -> Table {
    let heads = ["limit", "|host", ">used", ">most", ">left", "unit|", "|unit"];
    let mut table = Table::new("", &heads).named("limits");
    let tally = Tally::sum(&host.file_uses());
    for bound in &instance.bounds {
        let used = tally.get(bound.measure);
        let (number, shown, unit): (fn(u64) -> Cell, _, _) = match bound.measure.is_bytes() {
            true => (gib, "GiB", "bytes"),
            false => (grouped, "", "count"),
        };
        table.row(cells![
            bound.measure.name(),
            host.name.as_str(),
            number(used),
            number(bound.most),
            number(bound.most.saturating_sub(used)),
            shown,
            unit,
        ]);
    }
    table
}
