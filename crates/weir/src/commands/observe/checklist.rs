//! `weir observe checklist`: what an application asks of its storage.

use crate::cli::ObserveChecklistArgs;
use crate::error::CliError;
use crate::output;
use std::collections::BTreeMap;
use weir_observe::import::measure as m;
use weir_observe::load::{Load, Loads, mean};
use weir_observe::rates::{Reading, Spread, Track, Tracker};
use weir_observe::{Contents, EntityId, EntityKind};
use weir_report::checklist::{Checklist, ChecklistReport, Measured, Requirement};
use weir_units::Instant;

/// The name of all together.
const ALL: &str = "all together";

/// What a mean is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Time,
    Operations,
    Reads,
    Writes,
}

/// Something asked of storage: its name, its unit, what its mean is of, and its value.
type Asked = (&'static str, Measured, Of, fn(&Load) -> Option<f64>);

/// What is asked, in the order of the table.
const ASKED: [Asked; 11] = [
    ("IOPS", Measured::Count, Of::Time, Load::iops),
    ("throughput", Measured::Bytes, Of::Time, Load::bytes_per_s),
    ("reads", Measured::Share, Of::Operations, Load::read_share),
    ("writes", Measured::Share, Of::Operations, |load| Some(1.0 - load.read_share()?)),
    ("random", Measured::Share, Of::Operations, |load| {
        Some(1.0 - mean(load.sequential, load.operations)?)
    }),
    ("sequential", Measured::Share, Of::Operations, |load| mean(load.sequential, load.operations)),
    ("request size", Measured::Bytes, Of::Operations, |load| mean(load.bytes, load.operations)),
    ("latency", Measured::Nanoseconds, Of::Operations, Load::latency_ns),
    ("read latency", Measured::Nanoseconds, Of::Reads, |load| mean(load.read_ns, load.reads)),
    ("write latency", Measured::Nanoseconds, Of::Writes, |load| mean(load.write_ns, load.writes)),
    ("queue depth", Measured::Count, Of::Time, |load| load.depth),
];

/// Percentiles are kept in thousandths: shares need more.
const SHARE: f64 = 1000.0;

/// A requirement over the samples, and what its mean is of.
#[derive(Debug, Default)]
struct Row {
    spread: Spread,
    /// Value by weight, and the weights: operations for what is a mean of them.
    sum: f64,
    weight: f64,
}

impl Row {
    fn add(&mut self, (from, to): (Instant, Instant), unit: Measured, value: f64, weight: f64) {
        let scale = if unit == Measured::Share { SHARE } else { 1.0 };
        let seconds = Reading { from, to, amount: 0.0 }.seconds();
        self.spread.add(&Reading { from, to, amount: value * scale * seconds });
        self.sum += value * weight;
        self.weight += weight;
    }

    fn requirement(&self, name: &'static str, unit: Measured) -> Option<Requirement> {
        let scale = if unit == Measured::Share { SHARE } else { 1.0 };
        let at = |share| self.spread.quantile(share) / scale;
        (self.spread.count() > 0 && self.weight > 0.0).then(|| Requirement {
            name,
            unit,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            mean: self.sum / self.weight,
            max: self.spread.max() / scale,
            samples: self.spread.count(),
        })
    }
}

/// The rows of somebody.
#[derive(Debug, Default)]
struct Rows([Row; ASKED.len()]);

impl Rows {
    fn add(&mut self, load: &Load) {
        for (row, (_, unit, of, value)) in self.0.iter_mut().zip(&ASKED) {
            let weight = match of {
                Of::Time => Some(load.seconds()),
                Of::Operations => load.operations,
                Of::Reads => load.reads,
                Of::Writes => load.writes,
            };
            let weight = weight.unwrap_or(0.0);
            if let Some(value) = value(load) {
                row.add((load.from, load.to), *unit, value, weight);
            }
        }
    }

    fn list(&self, name: String) -> Checklist {
        let rows = self.0.iter().zip(&ASKED);
        let own = rows.filter_map(|(row, (name, unit, ..))| row.requirement(name, *unit));
        Checklist { name, requirements: own.collect() }
    }
}

/// What hosts say of processors and memory.
const OF_HOSTS: [(&str, Measured, m::Measure); 2] =
    [("CPU", Measured::Share, m::CPU), ("memory", Measured::Share, m::MEMORY_SHARE)];

pub(super) fn run(args: &ObserveChecklistArgs) -> Result<u8, CliError> {
    let header = super::whole_header(&args.file)?;
    let contents = &header.contents;
    let wanted = wanted(contents, &args.only)?;
    let mut loads = Loads::new(contents);
    let mut each: BTreeMap<EntityId, Rows> = BTreeMap::new();
    let mut all = Rows::default();
    let tracks: Vec<(EntityId, usize, Track)> = hosts(contents);
    let mut tracker =
        Tracker::new(contents, &tracks.iter().map(|(.., track)| track.clone()).collect::<Vec<_>>());
    let mut of_hosts: Vec<Row> = tracks.iter().map(|_| Row::default()).collect();
    let mut reader = super::open(&args.file)?;
    let (mut row, failed) = (Vec::new(), |source| super::failed(&args.file, source));
    while let Some(chunk) = reader.next_chunk().map_err(failed)? {
        for (sample, at) in chunk.times.iter().enumerate() {
            chunk.row(sample, &mut row);
            let mut sum: Option<Load> = None;
            loads.sample(*at, &row, |entity, load| {
                if !wanted.contains(&entity) {
                    return;
                }
                each.entry(entity).or_default().add(&load);
                match &mut sum {
                    Some(sum) => sum.add(&load),
                    sum => *sum = Some(load),
                }
            });
            if let Some(sum) = sum {
                all.add(&sum);
            }
            tracker.sample(*at, &row, |index, reading| {
                let (_, which, _) = &tracks[index];
                let unit = OF_HOSTS[*which].1;
                let weight = reading.seconds();
                of_hosts[index].add((reading.from, reading.to), unit, reading.rate(), weight);
            });
        }
    }
    let name = |id: EntityId| contents.entity(id).map(|own| own.name.clone()).unwrap_or_default();
    let mut lists: Vec<_> = each.iter().map(|(id, rows)| rows.list(name(*id))).collect();
    if lists.len() > 1 {
        lists.push(all.list(ALL.to_owned()));
    }
    for ((id, which, _), row) in tracks.iter().zip(&of_hosts) {
        let (what, unit, _) = &OF_HOSTS[*which];
        let requirements = row.requirement(what, *unit).into_iter().collect();
        lists.push(Checklist { name: name(*id), requirements });
    }
    let mut notes = Vec::new();
    let is_volume =
        |id: &EntityId| contents.entity(*id).is_some_and(|own| own.kind == EntityKind::Volume);
    if each.len() > 1 && args.only.is_empty() && each.keys().any(is_volume) {
        notes.push(
            "where devices lie on each other (partitions, LVM, encryption), all together counts \
             them twice: choose with --only"
                .to_owned(),
        );
    }
    output::print(&ChecklistReport { lists, notes }, args.output.format())?;
    Ok(0)
}

/// Whose load is asked for: those named, else the files, else the volumes.
fn wanted(contents: &Contents, only: &[String]) -> Result<Vec<EntityId>, CliError> {
    let all = || contents.entities.iter().zip(0..).map(|(own, id)| (own, EntityId(id)));
    for name in only {
        if !all().any(|(own, _)| own.name == *name) {
            let names: Vec<_> = all().map(|(own, _)| own.name.as_str()).collect();
            let there = names.join(", ");
            return Err(CliError::Refused(format!(
                "--only {name}: nobody of that name; there are: {there}"
            )));
        }
    }
    let of = |kind: EntityKind| -> Vec<EntityId> {
        all().filter(|(own, _)| own.kind == kind).map(|(_, id)| id).collect()
    };
    let named = all().filter(|(own, _)| only.contains(&own.name)).map(|(_, id)| id);
    let named: Vec<_> = named.collect();
    if !named.is_empty() {
        return Ok(named);
    }
    let files = of(EntityKind::File);
    Ok(if files.is_empty() { of(EntityKind::Volume) } else { files })
}

/// The tracks of hosts: whose, which of [`OF_HOSTS`], and of what.
fn hosts(contents: &Contents) -> Vec<(EntityId, usize, Track)> {
    let hosts = contents.entities.iter().zip(0..).filter(|(own, _)| own.kind == EntityKind::Host);
    let ids: Vec<_> = hosts.map(|(_, id)| EntityId(id)).collect();
    let track = |id: EntityId, which: usize| {
        let series = contents.find(id, OF_HOSTS[which].2.metric)?;
        Some((id, which, Track(vec![series])))
    };
    let both = |id: EntityId| (0..OF_HOSTS.len()).filter_map(move |which| track(id, which));
    ids.into_iter().flat_map(both).collect()
}
