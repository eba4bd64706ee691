//! Profiles of results in JSON: runs of jobs or databases, and labs.

use crate::error::CompareError;
use crate::measured::Measured;
use crate::profile::{
    BATCH_REQUESTS, Data, IOPS, LATENCY, Metric, Profile, RESPONSE, Subject, THROUGHPUT,
    TRANSACTIONS,
};
use crate::sequence::Sequence;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::rc::Rc;
use weir_report::comparison::{Better, MetricUnit};

/// Measures a result.
pub(crate) fn measure(name: &str, text: &str) -> Result<Measured, CompareError> {
    let failed = |reason: String| CompareError::Result { name: name.to_owned(), reason };
    let value: Value = serde_json::from_str(text)
        .map_err(|error| failed(format!("it is not valid JSON: {error}")))?;
    let wrong = |error: serde_json::Error| failed(format!("it is no complete result: {error}"));
    let profile = match Form::recognise(&value) {
        Some(Form::Run) => run(&serde_json::from_value(value).map_err(wrong)?),
        Some(Form::Databases) => databases(&serde_json::from_value(value).map_err(wrong)?),
        Some(Form::Labs) => labs(&serde_json::from_value::<Vec<Lab>>(value).map_err(wrong)?),
        None => {
            return Err(failed(
                "it is not the JSON of weir sim, weir run or weir lab run".to_owned(),
            ));
        }
    };
    let (verdict, price, notes) = (None, None, Vec::new());
    Ok(Measured { name: name.to_owned(), profile, verdict, price, notes })
}

/// Returns whether a text is a result that can be compared.
#[must_use]
pub fn is_result(text: &str) -> bool {
    serde_json::from_str(text).is_ok_and(|value| Form::recognise(&value).is_some())
}

enum Form {
    Run,
    Databases,
    Labs,
}

impl Form {
    fn recognise(value: &Value) -> Option<Self> {
        let has = |key: &str| value.get(key).is_some_and(Value::is_array);
        match () {
            () if value.get("clock").is_some() && has("jobs") => Some(Self::Run),
            () if value.get("clock").is_some() && has("databases") => Some(Self::Databases),
            () if value.get(0)?.get("figures").is_some() => Some(Self::Labs),
            () => None,
        }
    }
}

#[derive(Deserialize)]
struct Run {
    jobs: Vec<Job>,
    volumes: Vec<Volume>,
    #[serde(default)]
    series: Vec<Point>,
    elapsed_s: f64,
}

#[derive(Deserialize)]
struct Job {
    name: String,
    measured_s: f64,
    read: Side,
    write: Side,
    #[serde(default)]
    waits_ns: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
struct Side {
    ios: f64,
    iops: f64,
    bytes_per_s: f64,
    latency: Latency,
}

#[derive(Deserialize)]
struct Latency {
    mean_ns: f64,
    p50_ns: f64,
    p95_ns: f64,
    p99_ns: f64,
    p99_9_ns: f64,
}

#[derive(Deserialize)]
struct Volume {
    name: String,
    iops: f64,
    bytes_per_s: f64,
    #[serde(default)]
    waits_ns: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
struct Point {
    length_s: f64,
    read_bytes_per_s: f64,
    write_bytes_per_s: f64,
    read_iops: f64,
    write_iops: f64,
}

const fn one(value: f64) -> Data {
    Data::One(value, None)
}

/// Returns the metric of a latency figure of one direction.
fn latency_metric(direction: &str, figure: &str) -> Metric {
    Metric {
        name: format!("{direction} {figure}").into(),
        unit: MetricUnit::Nanoseconds,
        better: Better::Lower,
        decides: true,
    }
}

fn run(run: &Run) -> Profile {
    let mut profile = Profile { samples: 1, seconds: Some(run.elapsed_s), ..Profile::default() };
    let (mut iops, mut bytes) = (Sequence::default(), Sequence::default());
    for point in &run.series {
        let seconds = point.length_s;
        iops.push((point.read_iops + point.write_iops) * seconds, seconds);
        bytes.push((point.read_bytes_per_s + point.write_bytes_per_s) * seconds, seconds);
    }
    if iops.samples() > 0 {
        profile.samples = iops.samples();
        profile.add(&Subject::sum("job"), IOPS, Data::Over(Rc::new(iops)));
        profile.add(&Subject::sum("job"), THROUGHPUT, Data::Over(Rc::new(bytes)));
    }
    for job in &run.jobs {
        let subject = Subject::new("job", &job.name);
        let sides = [("read", &job.read), ("write", &job.write)];
        profile.add(&subject, IOPS, one(sides.iter().map(|(_, own)| own.iops).sum()));
        let bytes = sides.iter().map(|(_, own)| own.bytes_per_s).sum();
        profile.add(&subject, THROUGHPUT, one(bytes));
        for (direction, side) in sides.into_iter().filter(|(_, own)| own.ios > 0.0) {
            let own = &side.latency;
            let figures = [
                ("latency", own.mean_ns),
                ("p50", own.p50_ns),
                ("p95", own.p95_ns),
                ("p99", own.p99_ns),
                ("p99.9", own.p99_9_ns),
            ];
            for (figure, value) in figures {
                profile.add(&subject, latency_metric(direction, figure), one(value));
            }
        }
        waits(&mut profile, &subject, &job.waits_ns, job.measured_s);
    }
    // With one job per volume, both say the same.
    for volume in run.volumes.iter().filter(|_| run.jobs.is_empty()) {
        let subject = Subject::new("volume", &volume.name);
        profile.add(&subject, IOPS, one(volume.iops));
        profile.add(&subject, THROUGHPUT, one(volume.bytes_per_s));
        waits(&mut profile, &subject, &volume.waits_ns, run.elapsed_s);
    }
    profile
}

/// Adds the mean number of requests that wait at each cap.
fn waits(profile: &mut Profile, subject: &Subject, all: &BTreeMap<String, f64>, seconds: f64) {
    for (cap, ns) in all.iter().filter(|_| seconds > 0.0) {
        profile.add(subject, Metric::waiting(cap), one(ns / 1e9 / seconds));
    }
}

#[derive(Deserialize)]
struct Databases {
    databases: Vec<Database>,
    #[serde(default)]
    backups: Vec<Backup>,
}

#[derive(Deserialize)]
struct Database {
    database: String,
    elapsed_s: f64,
    load: Load,
    waits: Vec<Wait>,
    files: Vec<File>,
    #[serde(default)]
    series: Vec<LoadPoint>,
}

#[derive(Deserialize)]
struct Load {
    batches_per_s: f64,
    transactions_per_min: f64,
    response_mean_ns: f64,
}

#[derive(Deserialize)]
struct Wait {
    wait: String,
    time_ns: f64,
}

#[derive(Deserialize)]
struct File {
    file: String,
    num_of_reads: f64,
    num_of_writes: f64,
    read_mean_ns: f64,
    write_mean_ns: f64,
    waits_ns: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
struct LoadPoint {
    length_s: f64,
    batches_per_s: f64,
    transactions_per_min: f64,
}

#[derive(Deserialize)]
struct Backup {
    backup: String,
    elapsed_s: f64,
    mib_per_s: Option<f64>,
}

fn databases(run: &Databases) -> Profile {
    let mut profile = Profile { samples: 1, ..Profile::default() };
    for own in &run.databases {
        profile.seconds = Some(own.elapsed_s);
        database(&mut profile, own);
    }
    for own in &run.backups {
        let subject = Subject::new("backup", &own.backup);
        let duration = Metric::deciding("duration", MetricUnit::Nanoseconds, Better::Lower);
        profile.add(&subject, duration, one(own.elapsed_s * 1e9));
        if let Some(mib) = own.mib_per_s {
            profile.add(&subject, THROUGHPUT, one(mib * f64::from(1 << 20)));
        }
    }
    profile
}

fn database(profile: &mut Profile, own: &Database) {
    let subject = Subject::new("database", &own.database);
    let (mut batches, mut transactions) = (Sequence::default(), Sequence::default());
    for point in &own.series {
        batches.push(point.batches_per_s * point.length_s, point.length_s);
        transactions.push(point.transactions_per_min / 60.0 * point.length_s, point.length_s);
    }
    if batches.samples() > 0 {
        profile.samples = batches.samples();
        profile.add(&subject, BATCH_REQUESTS, Data::Over(Rc::new(batches)));
        profile.add(&subject, TRANSACTIONS, Data::Over(Rc::new(transactions)));
    } else {
        profile.add(&subject, BATCH_REQUESTS, one(own.load.batches_per_s));
        profile.add(&subject, TRANSACTIONS, one(own.load.transactions_per_min / 60.0));
    }
    profile.add(&subject, RESPONSE, one(own.load.response_mean_ns));
    for wait in own.waits.iter().filter(|_| own.elapsed_s > 0.0) {
        let name = format!("waiting for {}", wait.wait);
        let metric = Metric::explaining(name, MetricUnit::Requests, Better::Lower);
        profile.add(&subject, metric, one(wait.time_ns / 1e9 / own.elapsed_s));
    }
    for file in &own.files {
        let subject = Subject::new("file", &file.file);
        let (reads, writes) = (file.num_of_reads, file.num_of_writes);
        let operations = reads + writes;
        profile.add(&subject, IOPS, one(operations / own.elapsed_s));
        let ns = file.read_mean_ns * reads + file.write_mean_ns * writes;
        profile.add(&subject, LATENCY, one(ns / operations));
        waits(profile, &subject, &file.waits_ns, own.elapsed_s);
    }
}

#[derive(Deserialize)]
struct Lab {
    lab: String,
    figures: Vec<Figure>,
}

#[derive(Deserialize)]
struct Figure {
    id: String,
    unit: String,
    #[serde(rename = "virtual")]
    virtual_time: Option<Value>,
    wall: Option<Value>,
    tolerance: weir_report::lab::Tolerance,
}

fn labs(labs: &[Lab]) -> Profile {
    let mut profile = Profile { samples: 1, ..Profile::default() };
    for lab in labs {
        let subject = Subject::new("lab", &lab.lab);
        for figure in &lab.figures {
            let clocks = [("virtual", &figure.virtual_time), ("wall", &figure.wall)];
            for (clock, value) in clocks {
                let Some(value) = value.as_ref().and_then(Value::as_f64) else { continue };
                let allowed = figure.tolerance.share_of(value);
                let metric = Metric {
                    name: format!("{} in {}, {clock}", figure.id, figure.unit).into(),
                    unit: MetricUnit::Number,
                    better: Better::Neither,
                    decides: true,
                };
                profile.add(&subject, metric, Data::One(value, Some(allowed)));
            }
        }
    }
    profile
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_no_result_is_named() {
        let check = |text: &str, expect: &str| {
            assert!(!is_result(text), "{text}");
            let error = measure("a.json", text).expect_err("no result").to_string();
            assert!(error.starts_with("a.json: ") && error.contains(expect), "{error}");
        };
        check("{", "not valid JSON");
        check("{\"clock\":\"wall\"}", "weir lab run");
        check("[1]", "weir lab run");
        check("[]", "weir lab run");
        let cut = "{\"clock\":\"wall\",\"jobs\":[{\"name\":\"a\"}]}";
        let error = measure("a.json", cut).expect_err("cut").to_string();
        assert!(error.contains("missing field"), "{error}");
    }

    #[test]
    fn figures_of_labs_have_their_own_tolerance() {
        let text = "[{\"lab\":\"cache\",\"figures\":[{\"id\":\"f\",\"unit\":\"IOPS\",\"virtual\":100,\
                    \"wall\":null,\"tolerance\":{\"virtual\":0.02,\"wall\":0.05}},{\"id\":\"name\",\
                    \"unit\":\"\",\"virtual\":\"P30\",\"wall\":null,\"tolerance\":{\"points\":1}}]}]";
        assert!(is_result(text));
        let own = measure("a.json", text).expect("a result").profile;
        assert_eq!(own.rows.len(), 1);
        assert_eq!(own.rows[0].data, Data::One(100.0, Some(0.05)));
        assert_eq!(own.rows[0].metric.name, "f in IOPS, virtual");
    }
}
