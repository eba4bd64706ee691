//! Metrics of AWS CloudWatch: `get-metric-data` and `get-metric-statistics`, for EBS volumes, EC2
//! instances and RDS databases.
//!
//! The answers do not state the length of a period. The distance of a metric's values shows it, or
//! `--every` does. Metrics of one instance may have several periods. `get-metric-data` does not
//! state the statistic either, so counts are taken for sums. If the queries (`MetricDataQueries`)
//! are in the input, they define both.

use super::aws::{self, Figures, Meaning, Means, Point, meaning};
use super::document::{self, SECOND, get, list, text};
use super::timeline::{least_step, period_of};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Sheet};
use serde_json::{Map, Value};
use std::collections::HashMap;
use weir_observe::header::EntityId;
use weir_observe::metric as m;
use weir_observe::moment::Clock;

pub(crate) const KIND: Kind = Kind {
    name: "cloudwatch",
    about: "metrics of AWS CloudWatch, as JSON",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Json,
        Sign::Word(&["MetricDataResults", "Datapoints", "MetricDataQueries"]),
        Sign::Word(&["Timestamps", "Timestamp"]),
        Sign::Word(&["Label"]),
    ]],
};

fn recognizes(text: &str) -> bool {
    document::may_be(text)
        && ["\"MetricDataResults\"", "\"Datapoints\"", "\"MetricDataQueries\""]
            .iter()
            .any(|mark| text.contains(mark))
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    let (input, options, taken) = (Some(input), options.clone(), HashMap::new());
    Ok(Box::new(CloudWatch { input, options, figures: Figures::default(), taken }))
}

struct CloudWatch {
    input: Option<Bytes>,
    options: Options,
    figures: Figures,
    /// The answer that each series came from.
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
        Ok(self.figures.next(sheet))
    }
}

/// Contents of a document.
#[derive(Default)]
struct Found<'a> {
    questions: HashMap<&'a str, Question<'a>>,
    answers: Vec<Answer<'a>>,
}

/// A query.
struct Question<'a> {
    metric: &'a str,
    dimensions: Vec<(&'a str, &'a str)>,
    period: Option<i64>,
    statistic: &'a str,
}

/// An answer.
struct Answer<'a> {
    id: &'a str,
    label: &'a str,
    points: Points<'a>,
}

enum Points<'a> {
    /// Times and values.
    Two(&'a [Value], &'a [Value]),
    /// Objects with a time and statistics.
    One(&'a [Value]),
}

/// Finds answers and queries at any depth.
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
    let id = text(object, "id").unwrap_or_default();
    let label = text(object, "label").unwrap_or_default();
    Some(Answer { id, label, points })
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

impl Answer<'_> {
    /// Returns its values in order of time. An unknown statistic counts as both.
    fn points(
        &self,
        clock: Clock,
        question: Option<&Question<'_>>,
    ) -> Result<Vec<Point>, ImportError> {
        let no_time = |time: Option<&Value>| {
            let there = time.map_or_else(|| "nothing".to_owned(), Value::to_string);
            let reason = format!("{:?} has {there} in place of a time", self.label);
            ImportError::whole(reason)
        };
        let mut points = Vec::new();
        match self.points {
            Points::Two(times, values) => {
                let statistic = question.map_or("", |question| question.statistic);
                let is_sum = statistic.is_empty() || statistic.eq_ignore_ascii_case("sum");
                for (time, value) in times.iter().zip(values) {
                    let at = moment(clock, time).ok_or_else(|| no_time(Some(time)))?;
                    let number = value.as_f64();
                    points.push(Point { at, sum: number.filter(|_| is_sum), value: number });
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

/// Parses a time: text, seconds since 1970, or the parts of a `datetime`.
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

/// Returns the metric in a label, and the rest of the label.
fn label_of(label: &str) -> Option<(Meaning, String)> {
    let words: Vec<_> = label.split_whitespace().collect();
    let (at, known) = words.iter().enumerate().find_map(|(at, word)| {
        let bare = word.trim_matches([',', ':', ';', '(', ')', '[', ']', '/']);
        Some((at, meaning(bare)?))
    })?;
    let others = [&words[..at], &words[at + 1..]].concat().join(" ");
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
            sheet.note("its statistics are not stated: counts are assumed to be sums");
        }
        let step = least_step(all.iter().flat_map(|(.., points)| points.iter().map(|p| p.at)));
        for (answer, question, known, name, points) in all {
            let moments: Vec<_> = points.iter().map(|point| point.at).collect();
            let said = question.and_then(|question| question.period).or(self.every());
            let period = match said.or_else(|| period_of(&moments, step)) {
                Some(period) => period,
                None if step.is_none() => {
                    sheet.note("its period is not stated: one minute assumed");
                    60 * SECOND
                }
                None if known.means.is_of_period() => {
                    sheet.note(aws::unknown_period(answer.label));
                    continue;
                }
                None => step.unwrap_or(60 * SECOND),
            };
            self.values(sheet, (answer, known, &name), &points, period);
        }
        self.figures.divide(sheet);
        if self.figures.is_empty() {
            let reason = "counts need their sums, and latencies their operations".to_owned();
            return Err(ImportError::Empty { reason });
        }
        Ok(())
    }

    /// Returns the period stated by the user.
    fn every(&self) -> Option<i64> {
        self.options.every.and_then(|every| i64::try_from(every.nanos()).ok())
    }

    /// Adds the values of an answer.
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
        let mut entity = aws::entity(sheet, known.of, name);
        let metric = match known.means {
            Means::Amount(measure) | Means::Operations(measure, _) | Means::Gauge(measure, _) => {
                measure.name
            }
            Means::Time(true) => "time of reads",
            Means::Time(false) => "time of writes",
            Means::Idle => m::BUSY.name,
        };
        // Answers without an entity must not be merged.
        let owner = self.taken.entry((entity, metric)).or_insert_with(|| answer.id.to_owned());
        if owner != answer.id {
            entity = aws::entity(sheet, known.of, answer.id);
        }
        #[expect(clippy::cast_precision_loss, reason = "seconds")]
        let seconds = period as f64 / 1e9;
        for point in points {
            self.figures.value(sheet, entity, known.means, *point, (period, seconds));
        }
    }
}

/// Describes why there is nothing to read.
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
        ImportError::whole(format!("none of its metrics is used: {names}"))
    }
}
