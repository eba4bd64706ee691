//! Percentiles over samples of the load on storage.

use crate::error::CliError;
use weir_observe::load::{Load, mean};
use weir_observe::rates::{Reading, Spread};
use weir_observe::{Contents, EntityId, EntityKind};
use weir_report::checklist::{Checklist, Measured, Requirement};
use weir_units::Instant;

/// The unit over which a mean is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Time,
    Operations,
    Reads,
    Writes,
}

/// A metric of the load: its name, its unit, the weight of its mean, and its value.
pub(super) type Asked = (&'static str, Measured, Of, fn(&Load) -> Option<f64>);

/// The metrics, in the order of the table.
pub(super) const ASKED: [Asked; 11] = [
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

/// Percentiles are stored in thousandths; shares need the precision.
const SHARE: f64 = 1000.0;

/// The distribution of a metric over the samples.
#[derive(Debug, Default)]
pub(super) struct Row {
    spread: Spread,
    /// Sum of value times weight, and sum of weights. A mean over operations is weighted by them.
    sum: f64,
    weight: f64,
}

impl Row {
    pub(super) fn add(
        &mut self,
        (from, to): (Instant, Instant),
        unit: Measured,
        value: f64,
        weight: f64,
    ) {
        let scale = if unit == Measured::Share { SHARE } else { 1.0 };
        let seconds = Reading { from, to, amount: 0.0 }.seconds();
        self.spread.add(&Reading { from, to, amount: value * scale * seconds });
        self.sum += value * weight;
        self.weight += weight;
    }

    pub(super) fn requirement(&self, name: &'static str, unit: Measured) -> Option<Requirement> {
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

/// Returns the rows of an entity.
#[derive(Debug, Default)]
pub(super) struct Rows([Row; ASKED.len()]);

impl Rows {
    pub(super) fn add(&mut self, load: &Load) {
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

    /// Returns the known ones among the metrics at these indices of [`ASKED`].
    pub(super) fn some(&self, places: &[usize]) -> Vec<Requirement> {
        let of = |at: &usize| {
            let (name, unit, ..) = ASKED.get(*at)?;
            self.0.get(*at)?.requirement(name, *unit)
        };
        places.iter().filter_map(of).collect()
    }

    pub(super) fn list(&self, name: String) -> Checklist {
        let rows = self.0.iter().zip(&ASKED);
        let own = rows.filter_map(|(row, (name, unit, ..))| row.requirement(name, *unit));
        Checklist { name, requirements: own.collect() }
    }
}

/// Selects the entities: those named, else the files, else the volumes.
pub(super) fn wanted(contents: &Contents, only: &[String]) -> Result<Vec<EntityId>, CliError> {
    let all = || contents.entities.iter().zip(0..).map(|(own, id)| (own, EntityId(id)));
    for name in only {
        if !all().any(|(own, _)| own.name == *name) {
            let names: Vec<_> = all().map(|(own, _)| own.name.as_str()).collect();
            let there = names.join(", ");
            return Err(CliError::Refused(format!(
                "--only {name}: nothing has that name; there are: {there}"
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
