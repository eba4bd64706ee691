//! Metrics of Azure Monitor: `az monitor metrics list`, the REST API (single and batch) and
//! `Get-AzMetric`, alone or within other JSON.
//!
//! `OS Disk`, `Data Disk` and `Temp Disk` of a virtual machine are volumes of their own; data
//! disks by LUN if the metric was split by it. Of several aggregations the average is used. For
//! shares of limits, the maximum is kept too.

use super::document::{self, SECOND, get, list, text};
use super::timeline::{Timeline, least_step};
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::sheet::{At, ReadSamples, Sheet};
use serde_json::{Map, Value};
use weir_observe::header::{EntityId, EntityKind};
use weir_observe::metric::{self as m, Metric};
use weir_observe::moment::Clock;

pub(crate) const KIND: Kind = Kind {
    name: "azure-monitor",
    about: "metrics of Azure Monitor, as JSON",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Json,
        Sign::Word(&["timeseries"]),
        Sign::Word(&["timeStamp"]),
        Sign::Word(&["timespan", "namespace"]),
    ]],
};

fn recognizes(text: &str) -> bool {
    let small = text.to_ascii_lowercase();
    document::may_be(text)
        && ["microsoft.insights/metrics", "\"timeseries\"", "\"metadatavalues\""]
            .iter()
            .any(|mark| small.contains(mark))
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    Ok(Box::new(AzureMonitor {
        input: Some(input),
        options: options.clone(),
        line: Timeline::default(),
    }))
}

struct AzureMonitor {
    input: Option<Bytes>,
    options: Options,
    line: Timeline,
}

impl ReadSamples for AzureMonitor {
    fn next_sample(&mut self, sheet: &mut Sheet) -> Result<Option<At>, ImportError> {
        if let Some(input) = self.input.take() {
            let document = document::read(input)?;
            let mut metrics = Vec::new();
            collect(&document, &About::default(), &mut metrics);
            self.take(sheet, &metrics)?;
        }
        Ok(self.line.next(sheet))
    }
}

/// Facts from enclosing objects.
#[derive(Debug, Clone, Copy, Default)]
struct About<'a> {
    interval: Option<i64>,
    resource: Option<&'a str>,
}

/// The values of a metric of a resource.
struct Reported<'a> {
    name: &'a str,
    unit: &'a str,
    resource: &'a str,
    interval: Option<i64>,
    /// Dimensions by name and value.
    dimensions: Vec<(&'a str, &'a str)>,
    data: &'a [Value],
}

/// Finds metrics at any depth.
fn collect<'a>(value: &'a Value, about: &About<'a>, metrics: &mut Vec<Reported<'a>>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect(value, about, metrics)),
        Value::Object(object) => {
            let about = About {
                interval: text(object, "interval").and_then(duration).or(about.interval),
                resource: text(object, "resourceid").or(about.resource),
            };
            if metric(object, &about, metrics).is_none() {
                object.values().for_each(|value| collect(value, &about, metrics));
            }
        }
        _ => {}
    }
}

/// Reads an object that is a metric.
fn metric<'a>(
    object: &'a Map<String, Value>,
    about: &About<'a>,
    metrics: &mut Vec<Reported<'a>>,
) -> Option<()> {
    let name = named(get(object, "name")?)?;
    let series = list(object, "timeseries").unwrap_or_default();
    let data = list(object, "data").unwrap_or_default();
    get(object, "timeseries").or_else(|| get(object, "data"))?.as_array()?;
    let metric = |dimensions, data| Reported {
        name,
        unit: text(object, "unit").unwrap_or_default(),
        resource: about.resource.or_else(|| text(object, "id")).unwrap_or_default(),
        interval: about.interval,
        dimensions,
        data,
    };
    let before = metrics.len();
    for one in series.iter().filter_map(Value::as_object) {
        let values = list(one, "metadatavalues").unwrap_or_default();
        let dimensions = values
            .iter()
            .filter_map(Value::as_object)
            .filter_map(|pair| Some((named(get(pair, "name")?)?, text(pair, "value")?)));
        metrics.push(metric(dimensions.collect(), list(one, "data").unwrap_or_default()));
    }
    if metrics.len() == before {
        metrics.push(metric(Vec::new(), data));
    }
    Some(())
}

/// Returns a name, also from a localizable object.
fn named(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| text(value.as_object()?, "value"))
}

/// Parses `PT1M`, `PT1H`, `P1D`, `00:05:00` to nanoseconds.
fn duration(text: &str) -> Option<i64> {
    if let Some((hours, rest)) = text.split_once(':') {
        let (minutes, seconds) = rest.split_once(':')?;
        let [hours, minutes, seconds] =
            [hours, minutes, seconds].map(|part| part.parse::<i64>().ok());
        let all = hours?.checked_mul(3600)?.checked_add(minutes?.checked_mul(60)?)?;
        return all.checked_add(seconds?)?.checked_mul(SECOND);
    }
    let (days, time) = match text.strip_prefix('P')?.split_once('T') {
        Some((days, time)) => (days, time),
        None => (text.strip_prefix('P')?, ""),
    };
    let (mut all, mut number) = (0_i64, 0_i64);
    let units = days.chars().map(|c| (c, false)).chain(time.chars().map(|c| (c, true)));
    for (c, is_time) in units {
        if let Some(digit) = c.to_digit(10) {
            number = number.checked_mul(10)?.checked_add(i64::from(digit))?;
            continue;
        }
        let seconds = match (c, is_time) {
            ('W', false) => 7 * 86_400,
            ('D', false) => 86_400,
            ('H', true) => 3600,
            ('M', true) => 60,
            ('S', true) => 1,
            _ => return None,
        };
        all = all.checked_add(number.checked_mul(seconds)?)?;
        number = 0;
    }
    all.checked_mul(SECOND).filter(|all| *all > 0)
}

impl AzureMonitor {
    fn take(&mut self, sheet: &mut Sheet, metrics: &[Reported<'_>]) -> Result<(), ImportError> {
        if metrics.is_empty() {
            return Err(ImportError::whole(
                "a metric with its time series was expected; there is none",
            ));
        }
        if metrics.iter().all(|metric| metric.data.is_empty()) {
            let name = metrics.first().map(|metric| metric.name).unwrap_or_default();
            let reason = match metrics.len() {
                1 => format!("the time series of {name:?} are empty"),
                count => {
                    format!("the time series of all {count} metrics are empty, {name:?} first")
                }
            };
            return Err(ImportError::Empty { reason });
        }
        let clock = self.options.clock;
        let step = least_step(metrics.iter().flat_map(|metric| {
            metric.data.iter().filter_map(move |point| moment(clock, point.as_object()?))
        }));
        let mut known = false;
        for metric in metrics {
            if metric.data.is_empty() {
                sheet.note(format!("the time series of {:?} are empty", metric.name));
                continue;
            }
            let Some(meaning) = meaning(metric.name, metric.unit) else {
                sheet.unused(metric.name);
                continue;
            };
            known = true;
            let interval = self.interval(sheet, metric, step);
            self.values(sheet, metric, meaning, interval)?;
        }
        if !known {
            let names: Vec<_> = metrics.iter().map(|metric| metric.name).take(3).collect();
            let reason = format!("none of its metrics is used: {}", names.join(", "));
            return Err(ImportError::whole(reason));
        }
        if self.line.is_empty() {
            let reason = "its time series have times, but no values".to_owned();
            return Err(ImportError::Empty { reason });
        }
        Ok(())
    }

    fn interval(&self, sheet: &mut Sheet, metric: &Reported<'_>, step: Option<i64>) -> i64 {
        let every = self.options.every.and_then(|every| i64::try_from(every.nanos()).ok());
        metric.interval.or(every).or(step).unwrap_or_else(|| {
            let told = "its intervals are not stated: one minute is assumed";
            if !sheet.notes.iter().any(|note| note == told) {
                sheet.note(told);
            }
            60 * SECOND
        })
    }

    fn values(
        &mut self,
        sheet: &mut Sheet,
        metric: &Reported<'_>,
        meaning: Meaning,
        interval: i64,
    ) -> Result<(), ImportError> {
        let entity = entity(sheet, metric, meaning.volume);
        let aggregation = meaning.aggregation(metric.data);
        if let Some((name, true)) = aggregation {
            sheet.note(format!("{:?} has no averages: its {name} values are used", metric.name));
        }
        if let (Number::Resource, Some(("average", _))) = (meaning.number, aggregation) {
            sheet.note(format!("{:?} is read as an average over 15 s", metric.name));
        }
        #[expect(clippy::cast_precision_loss, reason = "seconds")]
        let seconds = interval as f64 / 1e9;
        for point in metric.data {
            let Some(point) = point.as_object() else { continue };
            let Some(at) = moment(self.options.clock, point) else {
                let there = get(point, "timestamp").map(Value::to_string).unwrap_or_default();
                let reason = format!("{:?} has a value without a time: {there:?}", metric.name);
                return Err(ImportError::whole(reason));
            };
            let at = at.saturating_add(interval);
            let value = |name: &str| get(point, name).and_then(Value::as_f64);
            if let Some((name, _)) = aggregation
                && let Some(number) = value(name)
            {
                let series = sheet.series(entity, meaning.measure);
                let number = meaning.number.convert(number, name, seconds);
                self.line.cover(at, entity, interval);
                self.line.add(at, series, meaning.measure, number);
            }
            if let (Some(most), Some(number)) = (meaning.most, value("maximum")) {
                let series = sheet.series(entity, most);
                self.line.add(at, series, most, meaning.number.convert(number, "maximum", seconds));
            }
        }
        Ok(())
    }
}

fn moment(clock: Clock, point: &Map<String, Value>) -> Option<i64> {
    clock.moment(text(point, "timestamp")?)
}

/// The volume for all data disks, if metrics are not split by LUN.
const DATA_DISKS: &str = "data disks";

/// The meaning of a metric.
#[derive(Debug, Clone, Copy)]
struct Meaning {
    /// Volume of the machine.
    volume: Option<&'static str>,
    measure: &'static Metric,
    /// Metric of its maxima.
    most: Option<&'static Metric>,
    number: Number,
}

/// The conversion of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Number {
    Times(f64),
    /// The complement to 100 %.
    Rest,
    /// A total of an interval, which the platform reports each minute.
    Amount,
    /// A count per sampling interval of managed instances, whose resources are measured every 15 s.
    Resource,
}

impl Number {
    fn convert(self, value: f64, aggregation: &str, interval: f64) -> f64 {
        let every = |seconds: f64| if aggregation == "total" { interval } else { seconds };
        match self {
            Self::Times(by) => value * by,
            Self::Rest => 1.0 - value / 100.0,
            Self::Amount => value / every(60.0),
            Self::Resource => value / every(15.0),
        }
    }
}

impl Meaning {
    /// Returns the aggregation to use, and whether it replaces a better one.
    fn aggregation(&self, data: &[Value]) -> Option<(&'static str, bool)> {
        let has = |name: &&'static str| {
            data.iter().any(|point| {
                let value = point.as_object().and_then(|point| get(point, name));
                value.is_some_and(Value::is_number)
            })
        };
        let is_amount = matches!(self.number, Number::Amount | Number::Resource);
        if is_amount && has(&"total") {
            return Some(("total", false));
        }
        let name = ["average", "maximum", "minimum"].into_iter().find(has)?;
        // If maxima have a series of their own, they replace no average.
        (name == "average" || self.most.is_none()).then_some((name, name != "average"))
    }
}

fn meaning(name: &str, unit: &str) -> Option<Meaning> {
    let small = name.to_lowercase();
    let parts = [
        ("os disk ", Some("OS disk")),
        ("data disk ", Some(DATA_DISKS)),
        ("temp disk ", Some("temp disk")),
        ("composite disk ", None),
    ];
    let part = parts.iter().find_map(|(start, volume)| Some((small.strip_prefix(start)?, *volume)));
    let (volume, known) = match part {
        Some((rest, volume)) => (volume, disk(rest, unit)),
        None => (None, machine(&small).or_else(|| database(&small))),
    };
    let (measure, most, number) = known?;
    Some(Meaning { volume, measure, most, number })
}

type Known = Option<(&'static Metric, Option<&'static Metric>, Number)>;

const PERCENT: Number = Number::Times(0.01);

fn disk(name: &str, unit: &str) -> Known {
    let latency = if unit.eq_ignore_ascii_case("seconds") { 1e9 } else { 1e6 };
    let once = Number::Times(1.0);
    Some(match name {
        "read operations/sec" => (&m::READS_PER_S, None, once),
        "write operations/sec" => (&m::WRITES_PER_S, None, once),
        "read bytes/sec" => (&m::READ_BYTES_PER_S, None, once),
        "write bytes/sec" => (&m::WRITE_BYTES_PER_S, None, once),
        "queue depth" => (&m::QUEUE_DEPTH, None, once),
        "latency" => (&m::LATENCY_NS, None, Number::Times(latency)),
        "iops consumed percentage" => (&m::IOPS_SHARE, Some(&m::IOPS_SHARE_MAX), PERCENT),
        "bandwidth consumed percentage" => (&m::BYTES_SHARE, Some(&m::BYTES_SHARE_MAX), PERCENT),
        "target iops" => (&m::IOPS_LIMIT, None, once),
        "target bandwidth" => (&m::BYTES_PER_S_LIMIT, None, once),
        "max burst iops" => (&m::BURST_IOPS_LIMIT, None, once),
        "max burst bandwidth" => (&m::BURST_BYTES_PER_S_LIMIT, None, once),
        "used burst io credits percentage" => (&m::BURST_BALANCE, None, Number::Rest),
        "used burst bps credits percentage" => (&m::BURST_BYTES_BALANCE, None, Number::Rest),
        _ => return None,
    })
}

fn machine(name: &str) -> Known {
    let once = Number::Times(1.0);
    Some(match name {
        "percentage cpu" => (&m::CPU, None, PERCENT),
        "available memory bytes" => (&m::MEMORY_AVAILABLE_BYTES, None, once),
        "disk read operations/sec" => (&m::READS_PER_S, None, once),
        "disk write operations/sec" => (&m::WRITES_PER_S, None, once),
        "disk read bytes" => (&m::READ_BYTES_PER_S, None, Number::Amount),
        "disk write bytes" => (&m::WRITE_BYTES_PER_S, None, Number::Amount),
        "vm cached iops consumed percentage" => {
            (&m::CACHED_IOPS_SHARE, Some(&m::CACHED_IOPS_SHARE_MAX), PERCENT)
        }
        "vm cached bandwidth consumed percentage" => {
            (&m::CACHED_BYTES_SHARE, Some(&m::CACHED_BYTES_SHARE_MAX), PERCENT)
        }
        "vm uncached iops consumed percentage" => {
            (&m::UNCACHED_IOPS_SHARE, Some(&m::UNCACHED_IOPS_SHARE_MAX), PERCENT)
        }
        "vm uncached bandwidth consumed percentage" => {
            (&m::UNCACHED_BYTES_SHARE, Some(&m::UNCACHED_BYTES_SHARE_MAX), PERCENT)
        }
        _ => return None,
    })
}

/// Returns the meaning of a metric of databases, elastic pools and managed instances.
fn database(name: &str) -> Known {
    let once = Number::Times(1.0);
    Some(match name {
        "cpu_percent" | "avg_cpu_percent" => (&m::CPU, None, PERCENT),
        "physical_data_read_percent" => (&m::DATA_IO_SHARE, None, PERCENT),
        "log_write_percent" => (&m::LOG_WRITE_SHARE, None, PERCENT),
        "dtu_consumption_percent" => (&m::DTU_SHARE, None, PERCENT),
        "sql_instance_memory_percent" | "memory_percent" => (&m::MEMORY_SHARE, None, PERCENT),
        "sessions_count" | "active_connections" => (&m::USERS, None, once),
        "storage" | "storage_used" => (&m::SIZE_ON_DISK_BYTES, None, once),
        "io_requests" => (&m::OPERATIONS_PER_S, None, Number::Resource),
        "io_bytes_read" => (&m::READ_BYTES_PER_S, None, Number::Resource),
        "io_bytes_written" => (&m::WRITE_BYTES_PER_S, None, Number::Resource),
        "read_iops" => (&m::READS_PER_S, None, once),
        "write_iops" => (&m::WRITES_PER_S, None, once),
        "read_throughput" => (&m::READ_BYTES_PER_S, None, once),
        "write_throughput" => (&m::WRITE_BYTES_PER_S, None, once),
        "disk_queue_depth" => (&m::QUEUE_DEPTH, None, once),
        "disk_iops_consumed_percentage" => (&m::IOPS_SHARE, Some(&m::IOPS_SHARE_MAX), PERCENT),
        "disk_bandwidth_consumed_percentage" => {
            (&m::BYTES_SHARE, Some(&m::BYTES_SHARE_MAX), PERCENT)
        }
        _ => return None,
    })
}

/// Splits the identifier of a resource into types and names, outermost first.
fn resource(id: &str) -> Vec<(String, &str)> {
    let mut segments = id.split('/').skip_while(|part| !part.eq_ignore_ascii_case("providers"));
    let (_, namespace) = (segments.next(), segments.next());
    if namespace.is_some_and(|name| name.eq_ignore_ascii_case("microsoft.insights")) {
        return Vec::new();
    }
    let mut pairs = Vec::new();
    while let (Some(kind), Some(name)) = (segments.next(), segments.next()) {
        if kind.eq_ignore_ascii_case("providers") {
            break;
        }
        pairs.push((kind.to_lowercase(), name));
    }
    pairs
}

fn other_kind(kind: &str) -> EntityKind {
    EntityKind::Other(kind.to_owned())
}

fn is_resource(name: &str) -> bool {
    name.to_lowercase().ends_with("resourceid")
}

/// Returns the entity of a metric.
fn entity(sheet: &mut Sheet, metric: &Reported<'_>, volume: Option<&str>) -> EntityId {
    let own = resource(metric.resource);
    // A resource in a dimension is more specific than the queried one.
    let inner = metric.dimensions.iter().find(|(name, _)| is_resource(name));
    let mut pairs = inner.map_or_else(|| own.clone(), |(_, id)| resource(id));
    if let (Some(outer), Some(first)) = (own.first(), pairs.first_mut())
        && outer.1.eq_ignore_ascii_case(first.1)
    {
        first.1 = outer.1;
    }
    let host = |sheet: &mut Sheet| {
        let name = pairs.first().map_or("host", |(_, name)| name);
        sheet.entity(EntityKind::Host, name, None)
    };
    let mut entity = match pairs.as_slice() {
        [(kind, name)] if kind == "disks" => sheet.entity(EntityKind::Volume, name, None),
        [_, .., (kind, name)] => {
            let host = host(sheet);
            let kind = match kind.as_str() {
                "databases" => EntityKind::Database,
                "elasticpools" => other_kind("pool"),
                kind => other_kind(kind),
            };
            sheet.entity(kind, name, Some(host))
        }
        _ => host(sheet),
    };
    let lun = metric.dimensions.iter().find(|(name, _)| name.eq_ignore_ascii_case("lun"));
    match (volume, lun) {
        (Some(_), Some((_, lun))) => {
            entity = sheet.entity(EntityKind::Volume, &format!("LUN {lun}"), Some(entity));
        }
        (Some(volume), None) => {
            entity = sheet.entity(EntityKind::Volume, volume, Some(entity));
            if volume == DATA_DISKS {
                sheet.attribute(entity, weir_observe::attribute::ALL_DISKS, 1);
            }
        }
        _ => {}
    }
    let known = |name: &str| is_resource(name) || name.eq_ignore_ascii_case("lun");
    for (name, value) in metric.dimensions.iter().filter(|(name, _)| !known(name)) {
        entity = sheet.entity(other_kind(&name.to_lowercase()), value, Some(entity));
    }
    entity
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let check = |text: &str, expect: Option<i64>| {
            assert_eq!(duration(text), expect.map(|seconds| seconds * SECOND), "{text}");
        };
        check("PT1M", Some(60));
        check("PT1H30M", Some(5400));
        check("P1D", Some(86_400));
        check("00:05:00", Some(300));
        check("P1M", None);
        check("PT", None);
        check("1m", None);
        check("99999999999999999999:00:00", None);
    }

    #[test]
    fn resources() {
        let id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Sql/servers/a/databases/b\
                  /providers/Microsoft.Insights/metrics/cpu_percent";
        let pairs = resource(id);
        assert_eq!(pairs, [("servers".to_owned(), "a"), ("databases".to_owned(), "b")]);
        assert_eq!(resource("subscriptions/s/providers/Microsoft.Insights/metrics/x"), []);
    }
}
