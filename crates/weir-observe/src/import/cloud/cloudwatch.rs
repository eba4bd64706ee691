//! Metrics of AWS CloudWatch: what `get-metric-data` and `get-metric-statistics` give, for EBS
//! volumes, instances of EC2 and databases of RDS.
//!
//! The answers do not say how long a period is: what lies between values does, or `--every`.
//! Neither does `get-metric-data` say which statistic it was asked for: counts are taken for
//! sums. If the questions (`MetricDataQueries`) stand beside the answers, they say it all.

use super::document::{self, SECOND, get, list, text};
use super::timeline::{Timeline, least_step};
use crate::header::{EntityId, EntityKind};
use crate::import::ImportError;
use crate::import::kind::Bytes;
use crate::import::measure::{self as m, Measure};
use crate::import::merge::Options;
use crate::import::moment::Clock;
use crate::import::sheet::{At, ReadSamples, Sheet};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};

pub(in crate::import) fn recognizes(text: &str) -> bool {
    document::may_be(text)
        && ["\"MetricDataResults\"", "\"Datapoints\"", "\"MetricDataQueries\""]
            .iter()
            .any(|mark| text.contains(mark))
}

pub(in crate::import) fn open(
    input: Bytes,
    options: &Options,
) -> Result<Box<dyn ReadSamples>, ImportError> {
    let (line, latencies) = (Timeline::default(), Latencies::new());
    let (input, options, taken) = (Some(input), options.clone(), HashMap::new());
    Ok(Box::new(CloudWatch { input, options, line, latencies, taken }))
}

/// Operations of a volume and what they took in seconds, by their times: to divide them.
type Latencies = BTreeMap<(EntityId, bool), BTreeMap<i64, (Option<f64>, Option<f64>)>>;

struct CloudWatch {
    input: Option<Bytes>,
    options: Options,
    line: Timeline,
    latencies: Latencies,
    /// Which answer a series came from.
    taken: HashMap<(EntityId, &'static str), String>,
}

impl ReadSamples for CloudWatch {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        if let Some(input) = self.input.take() {
            let document = document::read(input)?;
            let mut found = Found::default();
            collect(&document, &mut found);
            self.take(sheet, &found)?;
        }
        Ok(self.line.next(sheet))
    }
}

/// What is in a document.
#[derive(Default)]
struct Found<'a> {
    questions: HashMap<&'a str, Question<'a>>,
    answers: Vec<Answer<'a>>,
}

/// What was asked for.
struct Question<'a> {
    metric: &'a str,
    dimensions: Vec<(&'a str, &'a str)>,
    period: Option<i64>,
    statistic: &'a str,
}

/// What came.
struct Answer<'a> {
    id: &'a str,
    label: &'a str,
    points: Points<'a>,
}

enum Points<'a> {
    /// Times and values.
    Two(&'a [Value], &'a [Value]),
    /// Objects of a time and its statistics.
    One(&'a [Value]),
}

/// Finds answers and questions, wherever they are.
fn collect<'a>(value: &'a Value, found: &mut Found<'a>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
        Value::Object(object) => {
            if let Some(answer) = answer(object) {
                found.answers.push(answer);
            } else if let Some((id, question)) = question(object) {
                found.questions.insert(id, question);
            } else {
                object.values().for_each(|value| collect(value, found));
            }
        }
        _ => {}
    }
}

fn answer(object: &Map<String, Value>) -> Option<Answer<'_>> {
    let points = match list(object, "datapoints") {
        Some(points) => Points::One(points),
        None => Points::Two(list(object, "timestamps")?, list(object, "values")?),
    };
    let of = |key| text(object, key).unwrap_or_default();
    Some(Answer { id: of("id"), label: of("label"), points })
}

fn question(object: &Map<String, Value>) -> Option<(&str, Question<'_>)> {
    let stat = get(object, "metricstat")?.as_object()?;
    let metric = get(stat, "metric")?.as_object()?;
    let dimensions = list(metric, "dimensions").unwrap_or_default().iter().filter_map(|pair| {
        let pair = pair.as_object()?;
        Some((text(pair, "name")?, text(pair, "value")?))
    });
    let period = get(stat, "period").and_then(Value::as_i64);
    let question = Question {
        metric: text(metric, "metricname")?,
        dimensions: dimensions.collect(),
        period: period.and_then(|seconds| seconds.checked_mul(SECOND)).filter(|p| *p > 0),
        statistic: text(stat, "stat").unwrap_or_default(),
    };
    Some((text(object, "id")?, question))
}

/// A value and what it is of its period.
#[derive(Clone, Copy)]
struct Point {
    at: i64,
    sum: Option<f64>,
    /// The average, or whatever else there is.
    value: Option<f64>,
}

impl Answer<'_> {
    /// Its values in the order of their times. Those of an unknown statistic are both.
    fn points(
        &self,
        clock: Clock,
        question: Option<&Question<'_>>,
    ) -> Result<Vec<Point>, ImportError> {
        let no_time = |time: Option<&Value>| {
            let there = time.map_or_else(|| "nothing".to_owned(), Value::to_string);
            let reason = format!("{:?} has {there} where a time was expected", self.label);
            ImportError::whole(reason)
        };
        let mut points = Vec::new();
        match self.points {
            Points::Two(times, values) => {
                let statistic = question.map_or("", |question| question.statistic);
                let is_sum = statistic.is_empty() || statistic.eq_ignore_ascii_case("sum");
                for (time, value) in times.iter().zip(values) {
                    let at = moment(clock, time).ok_or_else(|| no_time(Some(time)))?;
                    let value = value.as_f64();
                    points.push(Point { at, sum: value.filter(|_| is_sum), value });
                }
            }
            Points::One(objects) => {
                for object in objects.iter().filter_map(Value::as_object) {
                    let time = get(object, "timestamp");
                    let at =
                        time.and_then(|time| moment(clock, time)).ok_or_else(|| no_time(time))?;
                    let of = |name| get(object, name).and_then(Value::as_f64);
                    let product = || Some(of("average")? * of("samplecount")?);
                    let value = of("average").or_else(|| of("maximum")).or_else(|| of("minimum"));
                    points.push(Point { at, sum: of("sum").or_else(product), value });
                }
            }
        }
        points.sort_by_key(|point| point.at);
        Ok(points)
    }
}

/// A time as text, in seconds since 1970, or as the parts of a `datetime`.
fn moment(clock: Clock, value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => clock.moment(text),
        Value::Number(_) => clock.moment(&value.to_string()),
        Value::Object(parts) => {
            let part = |name: &str| get(parts, name).and_then(Value::as_u64);
            let or_zero = |name: &str| part(name).unwrap_or(0);
            clock.moment(&format!(
                "{:04}-{}-{} {}:{}:{}.{:06}",
                part("year")?,
                part("month")?,
                part("day")?,
                or_zero("hour"),
                or_zero("minute"),
                or_zero("second"),
                or_zero("microsecond")
            ))
        }
        _ => None,
    }
}

/// What a metric means.
#[derive(Debug, Clone, Copy)]
struct Meaning {
    of: Of,
    means: Means,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// A volume of EBS.
    Volume,
    /// An instance.
    Host,
    /// What an instance of RDS stores to.
    Storage,
}

#[derive(Debug, Clone, Copy)]
enum Means {
    /// So much in a period.
    Amount(&'static Measure),
    /// The same, of operations whose latency is given apart: those of reads, or of writes.
    Operations(&'static Measure, bool),
    /// Seconds that operations took.
    Time(bool),
    /// Seconds in which there was nothing.
    Idle,
    /// How it was, times a factor.
    Gauge(&'static Measure, f64),
}

fn meaning(metric: &str) -> Option<Meaning> {
    use Means::{Amount, Gauge, Idle, Operations, Time};
    use Of::{Host, Storage, Volume};
    let (of, means) = match metric.to_ascii_lowercase().as_str() {
        "volumereadops" => (Volume, Operations(&m::READS_PER_S, true)),
        "volumewriteops" => (Volume, Operations(&m::WRITES_PER_S, false)),
        "volumereadbytes" => (Volume, Amount(&m::READ_BYTES_PER_S)),
        "volumewritebytes" => (Volume, Amount(&m::WRITE_BYTES_PER_S)),
        "volumetotalreadtime" => (Volume, Time(true)),
        "volumetotalwritetime" => (Volume, Time(false)),
        "volumeidletime" => (Volume, Idle),
        "volumequeuelength" => (Volume, Gauge(&m::QUEUE_DEPTH, 1.0)),
        "volumeavgreadlatency" => (Volume, Gauge(&m::READ_LATENCY_NS, 1e6)),
        "volumeavgwritelatency" => (Volume, Gauge(&m::WRITE_LATENCY_NS, 1e6)),
        "burstbalance" => (Volume, Gauge(&m::BURST_BALANCE, 0.01)),
        "volumeiopsexceededcheck" => (Volume, Gauge(&m::IOPS_EXCEEDED, 1.0)),
        "volumethroughputexceededcheck" => (Volume, Gauge(&m::BYTES_EXCEEDED, 1.0)),
        "ebsreadops" => (Host, Amount(&m::READS_PER_S)),
        "ebswriteops" => (Host, Amount(&m::WRITES_PER_S)),
        "ebsreadbytes" => (Host, Amount(&m::READ_BYTES_PER_S)),
        "ebswritebytes" => (Host, Amount(&m::WRITE_BYTES_PER_S)),
        "ebsiobalance%" => (Host, Gauge(&m::BURST_BALANCE, 0.01)),
        "ebsbytebalance%" => (Host, Gauge(&m::BURST_BYTES_BALANCE, 0.01)),
        "instanceebsiopsexceededcheck" => (Host, Gauge(&m::IOPS_EXCEEDED, 1.0)),
        "instanceebsthroughputexceededcheck" => (Host, Gauge(&m::BYTES_EXCEEDED, 1.0)),
        "cpuutilization" => (Host, Gauge(&m::CPU, 0.01)),
        "freeablememory" => (Host, Gauge(&m::MEMORY_AVAILABLE_BYTES, 1.0)),
        "databaseconnections" => (Host, Gauge(&m::USERS, 1.0)),
        "readiops" => (Storage, Gauge(&m::READS_PER_S, 1.0)),
        "writeiops" => (Storage, Gauge(&m::WRITES_PER_S, 1.0)),
        "readthroughput" => (Storage, Gauge(&m::READ_BYTES_PER_S, 1.0)),
        "writethroughput" => (Storage, Gauge(&m::WRITE_BYTES_PER_S, 1.0)),
        "readlatency" => (Storage, Gauge(&m::READ_LATENCY_NS, 1e9)),
        "writelatency" => (Storage, Gauge(&m::WRITE_LATENCY_NS, 1e9)),
        "diskqueuedepth" => (Storage, Gauge(&m::QUEUE_DEPTH, 1.0)),
        "freestoragespace" => (Storage, Gauge(&m::FREE_BYTES, 1.0)),
        _ => return None,
    };
    Some(Meaning { of, means })
}

/// The metric that a label names, and what else it says.
fn label_of(label: &str) -> Option<(Meaning, String)> {
    let words: Vec<_> = label.split_whitespace().collect();
    let bare = |word: &str| meaning(word.trim_matches([',', ':', ';', '(', ')', '[', ']', '/']));
    let (at, known) = words.iter().enumerate().find_map(|(at, word)| Some((at, bare(word)?)))?;
    let others = words.iter().enumerate().filter(|(place, _)| *place != at).map(|(_, word)| *word);
    let others = others.collect::<Vec<_>>().join(" ");
    Some((known, others.trim_matches([' ', ',', ':', ';', '/', '-', '(', ')']).to_owned()))
}

impl CloudWatch {
    fn take(&mut self, sheet: &mut Sheet, found: &Found<'_>) -> Result<(), ImportError> {
        let clock = self.options.clock;
        let mut all = Vec::new();
        for answer in &found.answers {
            let question = found.questions.get(answer.id);
            let own = question.and_then(|question| {
                let name = question.dimensions.iter().map(|(_, value)| *value).collect::<Vec<_>>();
                Some((meaning(question.metric)?, name.join(" ")))
            });
            let known = own.or_else(|| label_of(answer.label)).or_else(|| label_of(answer.id));
            let points = answer.points(clock, question)?;
            match known {
                Some((known, name)) => all.push((answer, question, known, name, points)),
                None => sheet.unused(answer.label),
            }
        }
        if all.iter().all(|(.., points)| points.is_empty()) {
            return Err(nothing(found));
        }
        let is_said = all.iter().all(|(answer, question, ..)| {
            question.is_some() || matches!(answer.points, Points::One(_))
        });
        if !is_said {
            sheet.note("its statistics are not said: counts are taken for sums");
        }
        let step = least_step(all.iter().flat_map(|(.., points)| points.iter().map(|p| p.at)));
        for (answer, question, known, name, points) in all {
            let period = question.and_then(|question| question.period).or(self.period(step));
            let period = period.unwrap_or_else(|| {
                sheet.note("its period is not said: taken for a minute");
                60 * SECOND
            });
            self.values(sheet, (answer, known, &name), &points, period);
        }
        self.divide(sheet);
        if self.line.is_empty() {
            let reason = "counts need their sums, and latencies their operations".to_owned();
            return Err(ImportError::Empty { reason });
        }
        Ok(())
    }

    fn period(&self, step: Option<i64>) -> Option<i64> {
        let every = self.options.every.and_then(|every| i64::try_from(every.nanos()).ok());
        every.or(step)
    }

    /// Takes in the values of an answer.
    fn values(
        &mut self,
        sheet: &mut Sheet,
        (answer, known, name): (&Answer<'_>, Meaning, &str),
        points: &[Point],
        period: i64,
    ) {
        let Some(first) = points.first() else {
            sheet.note(format!("{:?} has no values", answer.label));
            return;
        };
        let wants_sum = !matches!(known.means, Means::Gauge(..));
        if wants_sum && first.sum.is_none() {
            sheet.note(format!("{:?} has no sums: left out", answer.label));
            return;
        }
        let mut entity = entity(sheet, known.of, name);
        let metric = match known.means {
            Means::Amount(measure) | Means::Operations(measure, _) | Means::Gauge(measure, _) => {
                measure.metric
            }
            Means::Time(true) => "time of reads",
            Means::Time(false) => "time of writes",
            Means::Idle => m::BUSY.metric,
        };
        // Answers that do not say of whom they are must not be one.
        let owner = self.taken.entry((entity, metric)).or_insert_with(|| answer.id.to_owned());
        if owner != answer.id {
            entity = self::entity(sheet, known.of, answer.id);
        }
        #[expect(clippy::cast_precision_loss, reason = "seconds")]
        let seconds = period as f64 / 1e9;
        for point in points {
            self.value(sheet, entity, known.means, *point, (period, seconds));
        }
    }

    fn value(
        &mut self,
        sheet: &mut Sheet,
        entity: EntityId,
        means: Means,
        point: Point,
        (period, seconds): (i64, f64),
    ) {
        let at = point.at.saturating_add(period);
        let value = if matches!(means, Means::Gauge(..)) { point.value } else { point.sum };
        let Some(value) = value else { return };
        let (measure, value) = match means {
            Means::Amount(measure) => (measure, value / seconds),
            Means::Operations(measure, is_read) => {
                self.latencies.entry((entity, is_read)).or_default().entry(at).or_default().0 =
                    Some(value);
                (measure, value / seconds)
            }
            Means::Time(is_read) => {
                self.latencies.entry((entity, is_read)).or_default().entry(at).or_default().1 =
                    Some(value);
                return;
            }
            Means::Idle => (&m::BUSY, (1.0 - value / seconds).max(0.0)),
            Means::Gauge(measure, by) => (measure, value * by),
        };
        let series = sheet.series(entity, measure);
        self.line.cover(at, entity, period);
        self.line.add(at, series, measure, value);
    }

    /// Latencies, from what operations took all together.
    fn divide(&mut self, sheet: &mut Sheet) {
        for ((entity, is_read), times) in std::mem::take(&mut self.latencies) {
            let measure = if is_read { &m::READ_LATENCY_NS } else { &m::WRITE_LATENCY_NS };
            for (at, pair) in times {
                if let (Some(operations), Some(seconds)) = pair
                    && operations > 0.0
                {
                    let series = sheet.series(entity, measure);
                    self.line.add(at, series, measure, seconds / operations * 1e9);
                }
            }
        }
    }
}

/// Why there is nothing to read.
fn nothing(found: &Found<'_>) -> ImportError {
    let labels: Vec<_> = found.answers.iter().map(|answer| answer.label).take(3).collect();
    let is_known = |answer: &Answer<'_>| {
        label_of(answer.label).is_some()
            || found.questions.get(answer.id).is_some_and(|q| meaning(q.metric).is_some())
    };
    if found.answers.is_empty() {
        ImportError::whole("metrics with their values were expected; there are none")
    } else if found.answers.iter().any(is_known) {
        let reason = format!("there are no values of {}", labels.join(", "));
        ImportError::Empty { reason }
    } else {
        let names = labels.join(", ");
        ImportError::whole(format!("none of its metrics is one that is used here: {names}"))
    }
}

/// Of whom a metric is, as far as its label or its dimensions say.
fn entity(sheet: &mut Sheet, of: Of, name: &str) -> EntityId {
    let or =
        |default: &'static str| if name.is_empty() { default.to_owned() } else { name.to_owned() };
    match of {
        Of::Volume => {
            let id = name.split_whitespace().find(|word| word.starts_with("vol-"));
            let name = id.map_or_else(|| or("volume"), str::to_owned);
            sheet.entity(EntityKind::Volume, &name, None)
        }
        Of::Host => sheet.entity(EntityKind::Host, &or("host"), None),
        Of::Storage => {
            let host = sheet.entity(EntityKind::Host, &or("host"), None);
            sheet.entity(EntityKind::Volume, "storage", Some(host))
        }
    }
}
