//! Metric streams of AWS CloudWatch, as Firehose delivers them in JSON: an object per metric and
//! time, with the count, sum, maximum and minimum of a period.
//!
//! ```text
//!  {"metric_stream_name": .., "namespace": "AWS/EBS", "metric_name": "VolumeReadOps",
//!   "dimensions": {"VolumeId": "vol-1"}, "timestamp": 1611929698000,
//!   "value": {"count": 3.0, "sum": 20.0, "max": 18.0, "min": 0.0}, "unit": "Count"}
//! ```
//!
//! Objects are consecutive, on separate lines or not. Firehose sends them to an HTTP endpoint or
//! to a Lambda function in `records[].data`, encoded in base64.
//!
//! A record does not state its period. Metrics of EBS, EC2 and RDS have periods of one or five
//! minutes, which the distances of a metric's values show. Periods of one instance may differ:
//! volumes can be monitored each minute and processors every five.

use super::aws::{self, Figures, Meaning, Of, Point, entity, meaning};
use super::document::{self, SECOND, get, list, text};
use super::timeline::{least_step, period_of};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Sheet};
use crate::values::Values;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use weir_observe::header::EntityId;

pub(crate) const KIND: Kind = Kind {
    name: "cloudwatch-stream",
    about: "metrics of AWS CloudWatch, from a metric stream in JSON",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Json,
        Sign::Word(&["metric_stream_name"]),
        Sign::Word(&["metric_name"]),
        Sign::Word(&["dimensions"]),
    ]],
};

/// The most points kept for sorting, about 64 bytes each.
const MOST: usize = 4 << 20;
/// Nanoseconds in a millisecond.
const MILLISECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;

fn recognizes(text: &str) -> bool {
    let is_stream = |text: &str| text.contains("\"metric_stream_name\"");
    document::may_be(text)
        && (is_stream(text) || first_data(text).is_some_and(|data| is_stream(&data)))
}

/// Returns whether a text is a metric stream, or similar, in a format of OpenTelemetry.
pub(crate) fn is_open_telemetry(text: &str) -> bool {
    let is_it = |text: &str| {
        ["\"resourceMetrics\"", "\"resource_metrics\"", "aws.exporter.arn", "amazonaws.com/AWS/"]
            .iter()
            .any(|mark| text.contains(mark))
    };
    is_it(text) || first_data(text).is_some_and(|data| is_it(&data))
}

/// Decodes the beginning of the first base64 `data`.
fn first_data(text: &str) -> Option<String> {
    const GLANCE: usize = 4096;
    let rest = text.split_once("\"data\"")?.1.trim_start().strip_prefix(':')?;
    let coded = rest.trim_start().strip_prefix('"')?.as_bytes();
    let length = coded.iter().take(GLANCE).take_while(|byte| **byte != b'"').count();
    let data = STANDARD.decode(&coded[..length - length % 4]).ok()?;
    Some(String::from_utf8_lossy(&data).into_owned())
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    let every = options.every.and_then(|every| i64::try_from(every.nanos()).ok());
    let stream = Stream { every, ..Stream::default() };
    Ok(Box::new(MetricStream { input: Some(input), stream, figures: Figures::default() }))
}

struct MetricStream {
    input: Option<Bytes>,
    stream: Stream,
    figures: Figures,
}

impl ReadSamples for MetricStream {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        if let Some(input) = self.input.take() {
            let mut values = Values::new(input);
            while let Some((value, line)) = values.next()? {
                self.stream.take(sheet, &value, line)?;
            }
            if values.was_cut() {
                sheet.note("its last record was truncated and is left out");
            }
            self.stream.finish(sheet, &mut self.figures)?;
        }
        Ok(self.figures.next(sheet))
    }
}

/// The points of a stream.
#[derive(Debug, Default)]
struct Stream {
    every: Option<i64>,
    metrics: Vec<Metric>,
    /// Indices of metrics, by entity and name.
    places: HashMap<(EntityId, String), usize>,
    points: usize,
    /// Number of records that are not of a metric stream.
    others: u64,
    /// Examples of unused metrics.
    unused: Vec<String>,
}

/// A metric of an entity, with its points by time.
#[derive(Debug)]
struct Metric {
    entity: EntityId,
    name: String,
    meaning: Meaning,
    points: BTreeMap<i64, Statistics>,
}

/// The statistics of a period.
#[derive(Debug, Clone, Copy)]
struct Statistics {
    count: f64,
    sum: f64,
}

impl Stream {
    /// Takes a value: a record, or an object that contains records.
    fn take(&mut self, sheet: &mut Sheet, value: &Value, line: u64) -> Result<(), ImportError> {
        if let Some(values) = value.as_array() {
            return values.iter().try_for_each(|value| self.take(sheet, value, line));
        }
        let Some(object) = value.as_object() else {
            self.others += 1;
            return Ok(());
        };
        if get(object, "metric_name").is_some() {
            return self.record(sheet, object, line);
        }
        if let Some(records) = list(object, "records") {
            return records.iter().try_for_each(|record| self.take(sheet, record, line));
        }
        if let Some(inner) = get(object, "kinesis").filter(|inner| inner.is_object()) {
            return self.take(sheet, inner, line);
        }
        match text(object, "data") {
            Some(data) => self.coded(sheet, data, line),
            None => {
                self.others += 1;
                Ok(())
            }
        }
    }

    /// Takes base64 records.
    fn coded(&mut self, sheet: &mut Sheet, data: &str, line: u64) -> Result<(), ImportError> {
        let wrong = |reason: String| ImportError::at(line, reason);
        let bytes = STANDARD.decode(data.trim());
        let bytes = bytes.map_err(|error| wrong(format!("the data of a record: {error}")))?;
        for value in serde_json::Deserializer::from_slice(&bytes).into_iter::<Value>() {
            let value = value.map_err(|error| {
                wrong(match is_open_telemetry(&String::from_utf8_lossy(&bytes)) {
                    true => "the data of a record is in a format of OpenTelemetry, which is not \
                             read: set the output format of the metric stream to JSON"
                        .to_owned(),
                    false => format!("the data of a record is not JSON: {error}"),
                })
            })?;
            if value.get("metric_name").is_none() {
                self.others += 1;
            } else if let Some(object) = value.as_object() {
                self.record(sheet, object, line)?;
            }
        }
        Ok(())
    }

    fn record(
        &mut self,
        sheet: &mut Sheet,
        record: &Map<String, Value>,
        line: u64,
    ) -> Result<(), ImportError> {
        let wrong = |reason: String| ImportError::at(line, reason);
        let (name, space) = (text(record, "metric_name"), text(record, "namespace"));
        let (name, space) = (name.unwrap_or_default(), space.unwrap_or_default());
        let Some((meaning, owner)) = owner(record, space, name) else {
            self.leave_out(sheet, record, &format!("{space} {name}"));
            return Ok(());
        };
        let time = get(record, "timestamp").and_then(Value::as_i64);
        let at = time.and_then(|ms| ms.checked_mul(MILLISECOND));
        let at = at.ok_or_else(|| {
            let there = get(record, "timestamp").map_or("nothing".to_owned(), Value::to_string);
            wrong(format!("{name} of {owner} has {there} where milliseconds were expected"))
        })?;
        let values = get(record, "value").and_then(Value::as_object);
        let number = |key| values.and_then(|values| get(values, key)).and_then(Value::as_f64);
        let (Some(count), Some(sum)) = (number("count"), number("sum")) else {
            return Err(wrong(format!("{name} of {owner} has no count and sum")));
        };
        let entity = entity(sheet, meaning.of, owner);
        for attribute in ["account_id", "region"] {
            if let Some(value) = text(record, attribute) {
                sheet.attribute(entity, attribute, value);
            }
        }
        self.point(entity, (name, meaning), at, Statistics { count, sum }).map_err(wrong)
    }

    fn point(
        &mut self,
        entity: EntityId,
        (name, meaning): (&str, Meaning),
        at: i64,
        own: Statistics,
    ) -> Result<(), String> {
        let place = *self.places.entry((entity, name.to_owned())).or_insert_with(|| {
            let (name, points) = (name.to_owned(), BTreeMap::new());
            self.metrics.push(Metric { entity, name, meaning, points });
            self.metrics.len() - 1
        });
        let Some(metric) = self.metrics.get_mut(place) else { return Ok(()) };
        match metric.points.get_mut(&at) {
            // A period is delivered again when more data has arrived.
            Some(known) if own.count >= known.count => *known = own,
            Some(_) => {}
            None => {
                metric.points.insert(at, own);
                self.points += 1;
            }
        }
        if self.points > MOST {
            return Err(format!("it has more than {MOST} points that are used: split it by time"));
        }
        Ok(())
    }

    /// Notes an unused metric, with the dimensions of its sum.
    fn leave_out(&mut self, sheet: &mut Sheet, record: &Map<String, Value>, name: &str) {
        let dimensions = get(record, "dimensions").and_then(Value::as_object);
        let names: Vec<_> = dimensions.into_iter().flatten().map(|(key, _)| key.as_str()).collect();
        let name = match names.is_empty() {
            true => format!("{name} without dimensions"),
            false => format!("{name} by {}", names.join(", ")),
        };
        sheet.unused(&name);
        if self.unused.len() < 3 && !self.unused.contains(&name) {
            self.unused.push(name);
        }
    }

    /// Converts all points to values.
    fn finish(&mut self, sheet: &mut Sheet, figures: &mut Figures) -> Result<(), ImportError> {
        if self.metrics.is_empty() {
            return Err(self.nothing());
        }
        if self.others > 0 {
            sheet.note(format!("records that are not of a metric stream: {}", self.others));
        }
        let steps = self.least_steps();
        let (mut is_assumed, mut is_sparse) = (false, false);
        for metric in std::mem::take(&mut self.metrics) {
            let step = steps.get(&metric.entity).copied();
            is_sparse |= self.every.is_none() && step.is_some_and(|step| step > 5 * MINUTE);
            let moments: Vec<_> = metric.points.keys().copied().collect();
            let own = || period_of(&moments, step).map(period);
            let period = match self.every.or_else(own) {
                Some(period) => period,
                None if step.is_none() => {
                    is_assumed = true;
                    MINUTE
                }
                None if metric.meaning.means.is_of_period() => {
                    sheet.note(aws::unknown_period(&metric.name));
                    continue;
                }
                None => step.map_or(MINUTE, period),
            };
            #[expect(clippy::cast_precision_loss, reason = "seconds")]
            let seconds = period as f64 / 1e9;
            for (at, own) in metric.points {
                let mean = (own.count > 0.0).then(|| own.sum / own.count);
                let point = Point { at, sum: Some(own.sum), value: mean };
                let means = metric.meaning.means;
                figures.value(sheet, metric.entity, means, point, (period, seconds));
            }
        }
        if is_assumed {
            sheet.note("the period of metrics with one value is not stated: one minute assumed");
        }
        if is_sparse {
            sheet.note(
                "its values are more than five minutes apart, and their period is not stated: five \
                 minutes is assumed, or one minute if no step is a multiple of five; state it with \
                 --every",
            );
        }
        figures.divide(sheet);
        if figures.is_empty() {
            let reason = "latencies need their operations, and means a count".to_owned();
            return Err(ImportError::Empty { reason });
        }
        Ok(())
    }

    /// Returns the least distance between values of each entity: its metrics share a period, and
    /// some of them may have gaps.
    fn least_steps(&self) -> HashMap<EntityId, i64> {
        let mut steps = HashMap::new();
        for metric in &self.metrics {
            if let Some(step) = least_step(metric.points.keys().copied()) {
                let least = steps.entry(metric.entity).or_insert(step);
                *least = step.min(*least);
            }
        }
        steps
    }

    fn nothing(&self) -> ImportError {
        if self.unused.is_empty() {
            return ImportError::whole("it contains no record of a metric stream");
        }
        let names = self.unused.join("; ");
        ImportError::whole(format!("none of its metrics is used: {names}"))
    }
}

/// Returns the meaning of a metric and the name of its entity. A metric that is a sum over several
/// instances or volumes has none.
fn owner<'a>(
    record: &'a Map<String, Value>,
    space: &str,
    name: &str,
) -> Option<(Meaning, &'a str)> {
    let meaning = meaning(name)?;
    let (key, is_of) = match space {
        "AWS/EBS" => ("VolumeId", meaning.of == Of::Volume),
        "AWS/EC2" => ("InstanceId", meaning.of == Of::Host),
        "AWS/RDS" => ("DBInstanceIdentifier", matches!(meaning.of, Of::Host | Of::Storage)),
        _ => return None,
    };
    let dimensions = get(record, "dimensions")?.as_object()?;
    let is_own = |other: &String| other == key || space == "AWS/EBS" && other == "InstanceId";
    let owner = text(dimensions, key).filter(|_| is_of && dimensions.keys().all(is_own))?;
    Some((meaning, owner))
}

/// Returns the period from the least distance of values. A distance of more than five minutes has
/// a gap.
const fn period(step: i64) -> i64 {
    match step {
        _ if step < MINUTE => step,
        _ if step % (5 * MINUTE) == 0 => 5 * MINUTE,
        _ => MINUTE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_by_the_least_step() {
        for (minutes, expect) in [(1, 1), (5, 5), (15, 5), (2, 1)] {
            assert_eq!(period(minutes * MINUTE), expect * MINUTE, "{minutes} minutes");
        }
        assert_eq!(period(SECOND), SECOND);
    }
}
