//! Imports a text, and queries the resulting observation.

use std::io::BufReader;
use weir_import::{ImportError, Input, Options, Summary, import, kind_named};
use weir_observe::{Attribute, EntityId, Observation};

/// The result of an import.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) observation: Observation,
    pub(crate) summary: Summary,
}

pub(crate) fn input(name: &str, bytes: impl Into<Vec<u8>>, kind: Option<&str>) -> Input {
    let bytes = std::io::Cursor::new(bytes.into());
    let kind = kind.map(|kind| kind_named(kind).unwrap_or_else(|| panic!("no kind {kind}")));
    Input { name: name.to_owned(), bytes: Box::new(BufReader::new(bytes)), kind }
}

/// Reads inputs side by side.
pub(crate) fn try_read(inputs: Vec<Input>, options: &Options) -> Result<Read, ImportError> {
    let (bytes, summary) = import(inputs, options, Vec::new()).map_err(|(_, error)| error)?;
    let observation = Observation::read(&bytes[..]).expect("an observation");
    Ok(Read { observation, summary })
}

/// Reads a text and detects its kind.
#[track_caller]
pub(crate) fn read(text: &str) -> Read {
    try_read(vec![input("input", text, None)], &Options::default())
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the error of a text that is rejected.
#[track_caller]
pub(crate) fn refused(text: &str) -> String {
    let result = try_read(vec![input("input", text, None)], &Options::default());
    result.expect_err("it is refused").to_string()
}

/// Checks that no truncation of a text and no change of a byte makes its reader panic.
pub(crate) fn survives(text: &str, kind: &str) {
    let check = |bytes: Vec<u8>| {
        let result = try_read(vec![input("input", bytes, Some(kind))], &Options::default());
        if let Err(error) = result {
            assert!(!error.to_string().is_empty());
        }
    };
    for at in 0..text.len() {
        check(text.as_bytes()[..at].to_vec());
        for byte in [b'-', b'9', b'\n', 0xff] {
            let mut changed = text.as_bytes().to_vec();
            changed[at] = byte;
            check(changed);
        }
    }
}

impl Read {
    /// Returns the detected kind.
    pub(crate) fn kind(&self) -> &str {
        self.summary.inputs[0].1
    }

    /// Returns the entity of a name.
    #[track_caller]
    pub(crate) fn entity(&self, name: &str) -> EntityId {
        let entities = &self.observation.contents().entities;
        let at = entities.iter().position(|entity| entity.name == name);
        let at = at.unwrap_or_else(|| {
            panic!("no {name} in {:?}", entities.iter().map(|e| &e.name).collect::<Vec<_>>())
        });
        EntityId(u32::try_from(at).expect("few"))
    }

    /// Returns an attribute of an entity.
    #[track_caller]
    pub(crate) fn attribute(&self, name: &str, attribute: &str) -> Option<Attribute> {
        let id = self.entity(name).0 as usize;
        self.observation.contents().entities[id].attributes.get(attribute).cloned()
    }

    /// Returns the number of rows before the first sample, which start the interval of its rates.
    pub(crate) fn lead(&self) -> usize {
        let samples = usize::try_from(self.summary.samples).expect("few");
        self.observation.times.len() - samples
    }

    /// Returns the values of a metric, in its unit, from the first sample on.
    #[track_caller]
    pub(crate) fn values(&self, name: &str, metric: &str) -> Vec<Option<f64>> {
        let id = self.observation.contents().find(self.entity(name), metric);
        let id = id.unwrap_or_else(|| panic!("{name} has no {metric}"));
        let scale = self.observation.contents().series[id.0 as usize].scale;
        let column = self.observation.column(id).expect("a column");
        #[expect(clippy::cast_precision_loss, reason = "small")]
        let scaled = |v: i64| v as f64 * 10_f64.powi(scale.into());
        column.iter().skip(self.lead()).map(|v| v.map(scaled)).collect()
    }

    /// Returns the values of a metric, rounded to thousandths; none is missing.
    #[track_caller]
    pub(crate) fn all(&self, name: &str, metric: &str) -> Vec<f64> {
        let values = self.values(name, metric);
        values.into_iter().map(|v| (v.expect("a value") * 1e3).round() / 1e3).collect()
    }

    /// Returns the times of the samples in seconds, from the first one or, without dates, from the
    /// beginning.
    pub(crate) fn seconds(&self) -> Vec<f64> {
        let times = &self.observation.times[self.lead()..];
        let is_dated = self.observation.header.start_unix_ns.is_some();
        let zero = if is_dated { times[0] } else { weir_units::Instant::ZERO };
        #[expect(clippy::cast_precision_loss, reason = "small")]
        times.iter().map(|at| (*at - zero).nanos() as f64 / 1e9).collect()
    }

    /// Returns the interval of the first sample in seconds.
    pub(crate) fn first_interval(&self) -> f64 {
        let times = &self.observation.times;
        #[expect(clippy::cast_precision_loss, reason = "small")]
        let nanos = (times[self.lead()] - times[0]).nanos() as f64;
        nanos / 1e9
    }

    /// Returns the time of the first sample.
    pub(crate) fn start(&self) -> Option<String> {
        let nanos = self.observation.header.start_unix_ns?;
        let first = self.observation.times.get(self.lead())?.nanos();
        let nanos = nanos.saturating_add_unsigned(first);
        jiff::Timestamp::from_nanosecond(nanos.into()).ok().map(|at| at.to_string())
    }

    /// Returns whether a note contains a text.
    pub(crate) fn notes(&self, what: &str) -> bool {
        self.summary.notes.iter().any(|note| note.contains(what))
    }
}
