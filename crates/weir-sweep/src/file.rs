//! The keys of a sweep file.

use crate::design::{Axis, Points};
use crate::error::SweepError;
use crate::replay::ReplayKeys;
use crate::value::{Range, Scale, Unit, Value};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use weir_units::{Span, nearest, parser_message};

/// Maximum number of points of a sweep.
pub const MOST_POINTS: u64 = 1_000_000;
/// Maximum number of parameters of a sweep.
pub const MOST_PARAMETERS: usize = 32;

/// A sweep file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepFile {
    /// Path of the layout, from the folder of the sweep file.
    pub layout: String,
    /// Paths of the workload: fio job files, descriptions of databases or backups, or traces.
    pub workload: OneOrMany,
    /// Path of a catalog edition of your own.
    pub catalog: Option<String>,
    /// Seed of the sample and of each simulation; 1 by default.
    #[serde(default = "one")]
    pub seed: u64,
    /// Runtime of each job, or measured time of each database, instead of their own.
    #[serde(default, deserialize_with = "some_time")]
    pub runtime: Option<Span>,
    /// Number of random points; without it, all combinations of values are points.
    pub sample: Option<u64>,
    /// Options of the replay of traces.
    pub replay: Option<ReplayKeys>,
    /// Directories or filenames of jobs, or devices of traces, and the exports that they are mapped
    /// to.
    #[serde(default)]
    pub map: BTreeMap<String, String>,
    /// Exports whose host cache is warm at the start.
    #[serde(default)]
    pub warm: Vec<String>,
    /// The parameters.
    #[serde(default, rename = "parameter")]
    pub parameters: Vec<ParameterKeys>,
}

const fn one() -> u64 {
    1
}

fn some_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Span>, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.parse::<Span>() {
        Ok(Span::ZERO) => Err(D::Error::custom("it must be more than zero")),
        Ok(time) => Ok(Some(time)),
        Err(error) => Err(D::Error::custom(error)),
    }
}

/// One text, or a list of texts.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
pub enum OneOrMany {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

impl OneOrMany {
    /// Returns the texts.
    #[must_use]
    pub fn all(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }
}

/// A parameter. It names keys of one of the files, and has a list or a range of values.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParameterKeys {
    /// Name of its column.
    pub name: String,
    /// Keys of the layout.
    pub layout: Option<OneOrMany>,
    /// Options or keys of a workload.
    pub workload: Option<OneOrMany>,
    /// Keys of the edition that `catalog` names.
    pub catalog: Option<OneOrMany>,
    /// The file of the workload, if there are several.
    pub file: Option<String>,
    /// The values.
    pub values: Option<Vec<toml::Value>>,
    /// The first value of a range.
    pub from: Option<toml::Value>,
    /// The last value of a range.
    pub to: Option<toml::Value>,
    /// The difference of two values.
    pub step: Option<toml::Value>,
    /// The number of values.
    pub steps: Option<u32>,
    /// The scale of a range.
    pub scale: Option<Scale>,
}

impl SweepFile {
    /// Reads a sweep file; `name` is its name in messages.
    ///
    /// # Errors
    ///
    /// [`SweepError::File`] for the first wrong key.
    pub fn parse(name: &str, text: &str) -> Result<Self, SweepError> {
        let file: Self = toml::from_str(text).map_err(|error| {
            let at = error.span().map(|span| place(text, span.start));
            let reason = parser_message(error.message());
            SweepError::File { file: name.to_owned(), at, reason }
        })?;
        let wrong =
            |reason: String| Err(SweepError::File { file: name.to_owned(), at: None, reason });
        match (file.parameters.len(), file.workload.all().len(), file.sample) {
            (0, ..) => wrong("a sweep needs at least one [[parameter]]".to_owned()),
            (n, ..) if n > MOST_PARAMETERS => {
                wrong(format!("{n} parameters are more than the {MOST_PARAMETERS} possible"))
            }
            (_, 0, _) => wrong("workload = []: name at least one file".to_owned()),
            (.., Some(n)) if n == 0 || n > MOST_POINTS => {
                wrong(format!("sample = {n}: a sample has 1 to {MOST_POINTS} points"))
            }
            _ => Ok(file),
        }
    }
}

fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
    (before.matches('\n').count() + 1, column + 1)
}

impl ParameterKeys {
    /// Returns the values. A range without steps is continuous, which only a sample can use.
    pub(crate) fn axis(&self, is_sample: bool) -> Result<Axis, String> {
        let range_keys = [
            ("from", self.from.is_some()),
            ("to", self.to.is_some()),
            ("step", self.step.is_some()),
            ("steps", self.steps.is_some()),
            ("scale", self.scale.is_some()),
        ];
        let given = range_keys.iter().find(|(_, is_given)| *is_given);
        let points = match (&self.values, given) {
            (Some(_), Some((key, _))) => {
                return Err(format!("values and {key} exclude each other; give a list or a range"));
            }
            (Some(values), None) => Points::List(listed(values)?),
            (None, _) => self.range(is_sample)?,
        };
        Ok(Axis { name: self.name.clone(), points })
    }

    fn range(&self, is_sample: bool) -> Result<Points, String> {
        let (Some(from), Some(to)) = (&self.from, &self.to) else {
            return Err("give values = [..], or from and to".to_owned());
        };
        let (first, last) = (value(from)?, value(to)?);
        let range = between(&first, &last, self.scale.unwrap_or_default())?;
        match (&self.step, self.steps) {
            (Some(_), Some(_)) => Err("step and steps exclude each other".to_owned()),
            (Some(_), None) if range.scale == Scale::Log => {
                Err("step has equal differences; give steps = N for scale = \"log\"".to_owned())
            }
            (Some(step), None) => stepped(&range, &value(step)?).map(Points::List),
            (None, Some(steps)) => divided(&range, steps).map(Points::List),
            (None, None) if is_sample => Ok(Points::Continuous(range)),
            (None, None) => {
                Err("a grid needs step or steps; a range without them is for sample = N".to_owned())
            }
        }
    }
}

fn listed(values: &[toml::Value]) -> Result<Vec<Value>, String> {
    let values = values.iter().map(value).collect::<Result<Vec<_>, _>>()?;
    if values.is_empty() {
        return Err("values = []: give at least one".to_owned());
    }
    for (at, value) in values.iter().enumerate() {
        if values[..at].contains(value) {
            return Err(format!("the value {value} is given twice"));
        }
    }
    Ok(values)
}

fn value(value: &toml::Value) -> Result<Value, String> {
    match value {
        toml::Value::Integer(n) => Ok(Value::Whole(*n)),
        toml::Value::Float(x) if x.is_finite() => Ok(Value::Float(*x)),
        toml::Value::Boolean(flag) => Ok(Value::Flag(*flag)),
        toml::Value::String(text) => Ok(Value::read(text)),
        other => Err(format!("{other} is no value; use numbers, texts, true or false")),
    }
}

/// Returns the range between two values of one kind.
fn between(first: &Value, last: &Value, scale: Scale) -> Result<Range, String> {
    let unit = |value: &Value| -> Result<Option<Unit>, String> {
        match value {
            Value::Quantity(unit, _) => Ok(Some(*unit)),
            Value::Whole(_) | Value::Float(_) => Ok(None),
            other => Err(format!(
                "{other:?} is no end of a range: it is no number with a known \
                                  unit; use values = [..]",
                other = other.to_string()
            )),
        }
    };
    let (own, other) = (unit(first)?, unit(last)?);
    let (Some(from), Some(to)) = (first.number(), last.number()) else {
        return Err("the ends of a range are numbers".to_owned());
    };
    if own != other {
        return Err(format!("from = {first} and to = {last} have different units"));
    }
    if from >= to {
        return Err(format!("from = {first} is not less than to = {last}"));
    }
    if scale == Scale::Log && from <= 0.0 {
        return Err(format!("from = {first}: scale = \"log\" needs a number above zero"));
    }
    let is_whole = !matches!((first, last), (Value::Float(_), _) | (_, Value::Float(_)));
    Ok(Range { from, to, scale, is_whole, unit: own })
}

/// Returns the values from the first to the last one with equal differences.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "limited by the number of points"
)]
fn stepped(range: &Range, step: &Value) -> Result<Vec<Value>, String> {
    let own = match step {
        Value::Quantity(unit, _) => Some(*unit),
        _ => None,
    };
    let is_float = matches!(step, Value::Float(_));
    let number = step.number().filter(|number| *number > 0.0 && own == range.unit);
    let Some(number) = number.filter(|_| range.unit.is_none() || !is_float) else {
        return Err(format!("step = {step}: give a positive number in the unit of from and to"));
    };
    // Steps of floats that should end at the last value miss it by rounding.
    let count = ((range.to - range.from) / number + 1e-9).floor();
    if count >= MOST_POINTS as f64 {
        return Err(format!(
            "step = {step} makes more than {MOST_POINTS} values; use a larger one"
        ));
    }
    let range = Range { is_whole: range.is_whole && !is_float, ..range.clone() };
    Ok((0..=count as u64).map(|n| range.value(range.from + number * n as f64)).collect())
}

/// Returns a number of values with equal differences or ratios; equal whole numbers only once.
fn divided(range: &Range, steps: u32) -> Result<Vec<Value>, String> {
    if steps < 2 || u64::from(steps) > MOST_POINTS {
        return Err(format!("steps = {steps}: a range has 2 to {MOST_POINTS} values"));
    }
    let mut values: Vec<Value> =
        (0..steps).map(|n| range.at(f64::from(n) / f64::from(steps - 1))).collect();
    values.dedup();
    Ok(values)
}

/// Returns the nearest of names to one, for messages.
pub(crate) fn near<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(name, names).map(str::to_owned)
}
