//! A bed for the tests of rules: a system in a few lines, what it did, and what is found.
//!
//! ```text
//! Bed::layout(TEXT).disk("data", Does::reads(500.0).kib(8.0).ms(40.0)).found("disk-operations")
//! ```

use crate::case::Case;
use crate::question::{Question, follow};
use crate::rules::Candidate;
use crate::system::Mapping;
use std::collections::BTreeMap;
use weir_catalog::Catalog;
use weir_import::{Input, Options, Sheet, import};
use weir_layout::Layout;
use weir_observe::metric::{self as m, Metric};
use weir_observe::{
    Attribute, Column, Ending, EntityId, EntityKind, Header, Observation, Source, SourceKind,
    attribute,
};
use weir_report::diagnosis::Finding;
use weir_units::{Instant, Span};

/// The load of an entity in each second.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EntityLoad {
    reads: f64,
    writes: f64,
    bytes: f64,
    read_ms: f64,
    write_ms: f64,
    queued: Option<f64>,
    busy: Option<f64>,
    is_untimed: bool,
}

impl EntityLoad {
    /// Returns a load of `n` reads of 8 KiB per second, in 2 ms each.
    pub(crate) fn reads(reads: f64) -> Self {
        Self { reads, bytes: 8192.0, read_ms: 2.0, write_ms: 2.0, ..Self::default() }
    }

    /// Returns a load of `n` writes of 8 KiB per second, in 2 ms each.
    pub(crate) fn writes(writes: f64) -> Self {
        Self { writes, ..Self::reads(0.0) }
    }

    /// Adds writes per second.
    pub(crate) fn and_writes(mut self, writes: f64) -> Self {
        self.writes = writes;
        self
    }

    /// Sets the request size.
    pub(crate) fn kib(mut self, kib: f64) -> Self {
        self.bytes = kib * 1024.0;
        self
    }

    /// Sets the latency of reads and writes.
    pub(crate) fn ms(mut self, ms: f64) -> Self {
        (self.read_ms, self.write_ms) = (ms, ms);
        self
    }

    /// Leaves latencies out.
    pub(crate) fn untimed(mut self) -> Self {
        self.is_untimed = true;
        self
    }

    /// Sets the part of the latency that is queue time of the governor.
    pub(crate) fn queued_ms(mut self, ms: f64) -> Self {
        self.queued = Some(ms);
        self
    }

    /// Sets the busy time of each second.
    pub(crate) fn busy_ms(mut self, ms: f64) -> Self {
        self.busy = Some(ms);
        self
    }
}

type Over = Box<dyn Fn(u64) -> EntityLoad>;
type Gauge = Box<dyn Fn(u64) -> f64>;

/// A system and what it does.
pub(crate) struct TestBed {
    layout: Option<String>,
    edition: Option<&'static str>,
    sheet: Sheet,
    host: EntityId,
    counted: Vec<(EntityId, bool, Over)>,
    gauges: Vec<(EntityId, Metric, Gauge)>,
    counters: Vec<(EntityId, Metric, f64)>,
    attributes: Vec<(EntityId, &'static str, Attribute)>,
    /// Metrics that are left out.
    without: Vec<&'static str>,
    seconds: u64,
    every: u64,
}

impl TestBed {
    /// Returns a bed with a layout.
    pub(crate) fn layout(text: &str) -> Self {
        Self { layout: Some(text.to_owned()), ..Self::bare() }
    }

    /// Returns a bed with the limits of an edition by file size.
    pub(crate) fn edition(name: &'static str) -> Self {
        Self { edition: Some(name), ..Self::bare() }
    }

    /// Returns a bed without limits.
    pub(crate) fn bare() -> Self {
        let mut sheet = Sheet::default();
        let host = sheet.entity(EntityKind::Host, "host", None);
        Self {
            layout: None,
            edition: None,
            sheet,
            host,
            counted: Vec::new(),
            gauges: Vec::new(),
            counters: Vec::new(),
            attributes: Vec::new(),
            without: Vec::new(),
            seconds: 60,
            every: 1,
        }
    }

    /// Sets the duration of the observation.
    pub(crate) fn seconds(mut self, seconds: u64) -> Self {
        self.seconds = seconds;
        self
    }

    /// Leaves a metric out.
    pub(crate) fn without(mut self, metric: &'static str) -> Self {
        self.without.push(metric);
        self
    }

    /// Sets the sampling interval in seconds.
    pub(crate) fn every(mut self, seconds: u64) -> Self {
        self.every = seconds;
        self
    }

    /// Adds a disk with a constant load and the counters of iostat.
    pub(crate) fn disk(self, name: &str, does: EntityLoad) -> Self {
        self.disk_over(name, move |_| does)
    }

    /// Adds a disk with a load that varies by second.
    pub(crate) fn disk_over(
        mut self,
        name: &str,
        does: impl Fn(u64) -> EntityLoad + 'static,
    ) -> Self {
        let disk = self.sheet.entity(EntityKind::Volume, name, Some(self.host));
        self.counted.push((disk, false, Box::new(does)));
        self
    }

    /// Adds a file with a constant load and the counters of SQL Server.
    pub(crate) fn file(self, database: &str, name: &str, does: EntityLoad) -> Self {
        self.file_over(database, name, move |_| does)
    }

    /// Adds a file with a load that varies by second.
    pub(crate) fn file_over(
        mut self,
        database: &str,
        name: &str,
        does: impl Fn(u64) -> EntityLoad + 'static,
    ) -> Self {
        let database = self.sheet.entity(EntityKind::Database, database, Some(self.host));
        let file = self.sheet.entity(EntityKind::File, name, Some(database));
        self.counted.push((file, true, Box::new(does)));
        self
    }

    /// Adds a job of a benchmark with a queue depth, or 0 if that is unknown. `does` returns reads of
    /// 8 KiB per second and their latency in milliseconds.
    pub(crate) fn job(
        self,
        name: &str,
        target: u64,
        does: impl Fn(u64) -> (f64, f64) + Copy + 'static,
    ) -> Self {
        self.job_of(name, (target, 8192), does)
    }

    /// Adds a job of a benchmark with a queue depth and a request size in bytes.
    pub(crate) fn job_of(
        mut self,
        name: &str,
        (target, size): (u64, u64),
        does: impl Fn(u64) -> (f64, f64) + Copy + 'static,
    ) -> Self {
        let job = self.sheet.entity(EntityKind::Job, name, Some(self.host));
        if target > 0 {
            self.attributes.push((job, attribute::TARGET_QUEUE_DEPTH, target.into()));
        }
        self.gauges.push((job, m::READS_PER_S, Box::new(move |second| does(second).0)));
        self.gauges.push((job, m::WRITES_PER_S, Box::new(|_| 0.0)));
        self.gauges.push((job, m::WRITE_BYTES_PER_S, Box::new(|_| 0.0)));
        let bytes = move |second| does(second).0 * to_f64(size);
        self.gauges.push((job, m::READ_BYTES_PER_S, Box::new(bytes)));
        self.gauges.push((job, m::READ_LATENCY_NS, Box::new(move |second| does(second).1 * 1e6)));
        self
    }

    /// Sets the role and the size in GiB of the file that was added last.
    pub(crate) fn with_role(mut self, role: &str, gib: u64) -> Self {
        let (file, ..) = self.counted.last().expect("a file");
        let file = *file;
        self.attributes.push((file, "role", role.into()));
        self.attributes.push((file, "size_bytes", (gib << 30).into()));
        self
    }

    /// Adds a wait with its milliseconds per second.
    pub(crate) fn wait(self, name: &str, ms: f64) -> Self {
        let host = self.host;
        self.wait_at(host, name, ms)
    }

    /// Adds a gauge of a database.
    pub(crate) fn wait_of(mut self, database: &str, name: &str, ms: f64) -> Self {
        let database = self.sheet.entity(EntityKind::Database, database, Some(self.host));
        self.wait_at(database, name, ms)
    }

    fn wait_at(mut self, whose: EntityId, name: &str, ms: f64) -> Self {
        let wait = self.sheet.entity(EntityKind::Wait, name, Some(whose));
        self.counters.push((wait, m::WAIT_TIME_MS, ms));
        self.counters.push((wait, m::WAITING_TASKS_COUNT, ms));
        self
    }

    /// Adds the utilisation of the host's processors.
    pub(crate) fn cpu(self, share: f64) -> Self {
        self.host_gauge(m::CPU, share)
    }

    /// Adds a gauge of the host.
    pub(crate) fn host_gauge(mut self, measure: Metric, value: f64) -> Self {
        self.gauges.push((self.host, measure, Box::new(move |_| value)));
        self
    }

    /// Adds a gauge of a disk, and the disk if it is new.
    pub(crate) fn disk_gauge(self, name: &str, measure: Metric, value: f64) -> Self {
        self.disk_gauge_over(name, measure, move |_| value)
    }

    /// Makes a disk stand for all data disks of its machine.
    pub(crate) fn all_disks(mut self, name: &str) -> Self {
        let disk = self.sheet.entity(EntityKind::Volume, name, Some(self.host));
        self.attributes.push((disk, attribute::ALL_DISKS, 1.into()));
        self
    }

    /// Adds a gauge of a disk that varies by second.
    pub(crate) fn disk_gauge_over(
        mut self,
        name: &str,
        measure: Metric,
        value: impl Fn(u64) -> f64 + 'static,
    ) -> Self {
        let disk = self.sheet.entity(EntityKind::Volume, name, Some(self.host));
        self.gauges.push((disk, measure, Box::new(value)));
        self
    }

    /// Returns all findings.
    pub(crate) fn findings(self) -> Vec<Candidate> {
        with_case(self, |_, found| found)
    }

    /// Returns the observation.
    fn observation(mut self) -> Observation {
        let mut columns: BTreeMap<u32, Column> = BTreeMap::new();
        for second in self.times() {
            let mut row: Vec<(Metric, EntityId, f64)> = Vec::new();
            for (entity, is_file, does) in &self.counted {
                row.extend(counters(*entity, *is_file, second, does));
            }
            for (entity, measure, rate) in &self.counters {
                row.push((*measure, *entity, rate * to_f64(second)));
            }
            for (entity, measure, value) in &self.gauges {
                row.push((*measure, *entity, value(second)));
            }
            row.retain(|(measure, ..)| !self.without.contains(&measure.name));
            for (measure, entity, value) in row {
                let series = self.sheet.series(entity, &measure);
                columns.entry(series.0).or_default().push(measure.stored(value));
            }
        }
        let times = self.times().map(|second| Instant::ZERO + Span::from_secs(second)).collect();
        let mut contents = self.sheet.contents().clone();
        for (entity, name, value) in self.attributes {
            let own = &mut contents.entities[entity.0 as usize];
            own.attributes.insert(name.to_owned(), value);
        }
        let about = BTreeMap::new();
        let kind = SourceKind::Other("test".to_owned());
        let mut header = Header::new(Source { kind, by: "test".to_owned(), about });
        header.contents = contents;
        let columns = columns.into_values().collect();
        let (notes, ending) = (Vec::new(), Ending::Complete);
        Observation { header, times, columns, notes, ending }
    }

    fn times(&self) -> impl Iterator<Item = u64> + use<> {
        let every = self.every;
        (0..=self.seconds / every).map(move |sample| sample * every)
    }

    /// Returns the findings of a rule.
    pub(crate) fn found(self, rule: &str) -> Vec<Finding> {
        assert!(crate::rules::RULES.iter().any(|own| own.name == rule), "there is no rule {rule}");
        let all = self.findings().into_iter().map(|found| found.finding);
        all.filter(|finding| finding.rule == rule).collect()
    }

    /// Returns whether a rule fires.
    pub(crate) fn finds(self, rule: &str) -> bool {
        !self.found(rule).is_empty()
    }
}

fn to_f64(second: u64) -> f64 {
    weir_report::number::float(second)
}

/// Returns the counters after some seconds.
fn counters(
    entity: EntityId,
    is_file: bool,
    second: u64,
    does: &Over,
) -> Vec<(Metric, EntityId, f64)> {
    let (mut reads, mut writes, mut read, mut written) = (0.0, 0.0, 0.0, 0.0);
    let (mut read_ms, mut write_ms, mut queued, mut busy) = (0.0, 0.0, None, None);
    for earlier in 0..second {
        let does = does(earlier);
        reads += does.reads;
        writes += does.writes;
        read += does.reads * does.bytes;
        written += does.writes * does.bytes;
        read_ms += does.reads * does.read_ms;
        write_ms += does.writes * does.write_ms;
        busy = does.busy.map(|ms| ms + busy.unwrap_or(0.0));
        if let Some(ms) = does.queued {
            let (of_reads, of_writes) = queued.unwrap_or((0.0, 0.0));
            queued = Some((of_reads + ms * does.reads, of_writes + ms * does.writes));
        }
    }
    let names = if is_file {
        [m::NUM_OF_READS, m::NUM_OF_WRITES, m::NUM_OF_BYTES_READ, m::NUM_OF_BYTES_WRITTEN]
    } else {
        [m::READS, m::WRITES, m::READ_BYTES, m::WRITE_BYTES]
    };
    let values = [reads, writes, read, written];
    let mut row: Vec<_> =
        names.into_iter().zip(values).map(|(measure, value)| (measure, entity, value)).collect();
    if !does(0).is_untimed {
        row.push((m::IO_STALL_READ_MS, entity, read_ms));
        row.push((m::IO_STALL_WRITE_MS, entity, write_ms));
    }
    if let Some(busy) = busy.or(does(0).busy.and(Some(0.0))) {
        row.push((m::BUSY_MS, entity, busy));
    }
    let has_queue_times = does(0).queued.is_some();
    if let Some((of_reads, of_writes)) = queued.or(has_queue_times.then_some((0.0, 0.0))) {
        row.push((m::IO_STALL_QUEUED_READ_MS, entity, of_reads));
        row.push((m::IO_STALL_QUEUED_WRITE_MS, entity, of_writes));
    }
    row
}

/// Returns the findings of a rule in a sample of a real system, if the samples are there.
pub(crate) fn found_in_sample(
    path: &str,
    edition: Option<&str>,
    rule: &str,
) -> Option<Vec<Finding>> {
    let bytes = std::fs::read(weir_needs::shared("samples")?.join(path)).expect(path);
    let bytes = Box::new(std::io::Cursor::new(bytes));
    let input = Input { name: path.to_owned(), bytes, kind: None };
    let imported = import(vec![input], &Options::default(), Vec::new());
    let (bytes, _) = imported.map_err(|(_, error)| error).expect("a sample that can be read");
    let observation = Observation::read(&bytes[..]).expect("an observation");
    let all = answer(None, edition, &observation, |_, found| found);
    let all = all.into_iter().map(|found| found.finding);
    Some(all.filter(|finding| rule.is_empty() || finding.rule == rule).collect())
}

/// Diagnoses a bed, and asks something of the case and what was found.
pub(crate) fn with_case<T>(bed: TestBed, then: impl FnOnce(&Case<'_>, Vec<Candidate>) -> T) -> T {
    let (layout, edition) = (bed.layout.clone(), bed.edition);
    answer(layout.as_deref(), edition, &bed.observation(), then)
}

fn answer<T>(
    layout: Option<&str>,
    edition: Option<&str>,
    observation: &Observation,
    then: impl FnOnce(&Case<'_>, Vec<Candidate>) -> T,
) -> T {
    let catalog = Catalog::builtin();
    let layout = layout.map(|text| {
        let layout = Layout::parse("layout.toml", text, &catalog);
        layout.unwrap_or_else(|error| panic!("{error}\n{text}"))
    });
    let name = edition.or(layout.as_ref().and_then(|layout| layout.edition.as_deref()));
    let edition = name.map(|name| catalog.edition(name).expect("an edition"));
    let mapping = Mapping::new();
    let question =
        Question { layout: layout.as_ref(), edition, catalog: &catalog, mapping: &mapping };
    let (system, unmatched) = question.system(observation.contents()).expect("a system");
    assert_eq!(unmatched, [], "names of the layout");
    let facts = follow(&system, observation);
    question.answer(observation.contents(), &system, &facts, then)
}
