//! Summary figures of an observation, for each file, volume and database.

use super::backups::Backups;
use std::collections::BTreeMap;
use weir_observe::load::Loads;
use weir_observe::rates::{Spread, Track, Tracker};
use weir_observe::view::{self, DatabaseView, IoView};
use weir_observe::{
    Attribute, Contents, Ending, EntityId, EntityKind, Header, Note, SeriesId, attribute,
};
use weir_report::number::{float, whole};
use weir_report::observe::{
    ObservationReport, ObservedDatabase, ObservedEntity, ObservedIo, ObservedWait, RateReport,
};
use weir_units::{Bytes, Instant};

/// Share of a limit from which a sample counts as near it, as in the script of Microsoft's
/// engineers.
const NEAR: f64 = 0.9;

/// A rate, and the time that it was near its limit.
#[derive(Debug)]
struct Rate {
    spread: Spread,
    limit: Option<u64>,
    /// The series of the limit, if it changes over time, and its previous value.
    limits: Option<SeriesId>,
    before: Option<u64>,
    near_s: f64,
    all_s: f64,
}

impl Rate {
    fn new(limit: Option<u64>, limits: Option<SeriesId>) -> Self {
        let spread = Spread::default();
        Self { spread, limit, limits, before: limit, near_s: 0.0, all_s: 0.0 }
    }
}

/// The rates, in the order in which they were requested.
#[derive(Debug, Default)]
struct Plan {
    rates: Vec<(Track, Option<u64>, Option<SeriesId>)>,
    totals: Vec<Track>,
}

impl Plan {
    fn rate(&mut self, track: Track, limit: Option<u64>, limits: Option<SeriesId>) -> usize {
        self.rates.push((track, limit, limits));
        self.rates.len() - 1
    }

    fn total(&mut self, track: Track) -> usize {
        self.totals.push(track);
        self.totals.len() - 1
    }

    fn total_of(&mut self, series: SeriesId) -> usize {
        self.total(Track(vec![series]))
    }
}

/// The size of a file at the start and at the end.
#[derive(Debug)]
struct Size {
    name: String,
    series: SeriesId,
    first: Option<u64>,
    last: Option<u64>,
    limits_change: bool,
}

impl Size {
    fn new(contents: &Contents, view: &IoView) -> Option<Self> {
        let name = contents.entity(view.entity)?.name.clone();
        let limits_change = view.iops_limits.or(view.bytes_per_s_limits).is_some();
        Some(Self { name, series: view.size?, first: None, last: None, limits_change })
    }

    fn note(&self) -> Option<String> {
        let (first, last) = self.first.zip(self.last).filter(|(first, last)| first != last)?;
        let verb = if last > first { "grew" } else { "shrank" };
        let (first, last) = (Bytes::new(first), Bytes::new(last));
        let limits =
            if self.limits_change { "; the limits shown are those at the end" } else { "" };
        Some(format!("{} {verb} from {first} to {last}{limits}", self.name))
    }
}

/// Indices of the rates and totals of a file or volume.
#[derive(Debug)]
struct IoAt {
    view: IoView,
    operations: usize,
    bytes: usize,
    stall_ms: usize,
    waits: Vec<(String, usize)>,
    medium: Option<usize>,
}

/// Indices of the figures of a database.
#[derive(Debug)]
struct DatabaseAt {
    view: DatabaseView,
    batches: Option<usize>,
    cpu: Option<usize>,
    /// The count, if there is one, and the time of each wait.
    waits: Vec<(Option<usize>, usize)>,
}

/// A single-pass summary of samples. Its memory does not grow with their number.
#[derive(Debug)]
pub(super) struct Figures {
    files: Vec<IoAt>,
    volumes: Vec<IoAt>,
    hosts: Vec<IoAt>,
    databases: Vec<DatabaseAt>,
    rate_tracker: Tracker,
    rates: Vec<Rate>,
    total_tracker: Tracker,
    totals: Vec<f64>,
    sizes: Vec<Size>,
    loads: Loads,
    /// Operations with a known latency, and the sum of these latencies.
    latencies: BTreeMap<EntityId, (f64, f64)>,
    /// The last value of each gauge of a benchmark.
    results: Vec<(SeriesId, Option<i64>)>,
    backups: Backups,
    samples: u64,
    first: Option<Instant>,
    last: Instant,
}

impl Figures {
    pub(super) fn new(header: &Header) -> Self {
        let contents = &header.contents;
        let mut plan = Plan::default();
        let mut io = |kind| -> Vec<IoAt> {
            let views = view::io(contents, &kind).into_iter();
            views.map(|view| io_at(view, &mut plan)).collect()
        };
        let (files, volumes) = (io(EntityKind::File), io(EntityKind::Volume));
        let hosts = view::hosts(contents).into_iter().map(|view| io_at(view, &mut plan)).collect();
        let databases = view::databases(contents)
            .into_iter()
            .map(|view| database_at(view, &mut plan))
            .collect();
        let tracks: Vec<Track> = plan.rates.iter().map(|(track, ..)| track.clone()).collect();
        let sizes = files.iter().filter_map(|at| Size::new(contents, &at.view)).collect();
        Self {
            files,
            volumes,
            hosts,
            databases,
            sizes,
            rate_tracker: Tracker::new(contents, &tracks),
            rates: plan.rates.iter().map(|(_, limit, limits)| Rate::new(*limit, *limits)).collect(),
            total_tracker: Tracker::new(contents, &plan.totals),
            totals: vec![0.0; plan.totals.len()],
            loads: Loads::new(contents),
            latencies: BTreeMap::new(),
            results: results(contents),
            backups: Backups::new(contents),
            samples: 0,
            first: None,
            last: Instant::ZERO,
        }
    }

    pub(super) fn sample(&mut self, at: Instant, row: &[Option<i64>]) {
        self.samples += 1;
        self.first.get_or_insert(at);
        self.last = at;
        let now = |id: SeriesId| row.get(id.0 as usize).copied().flatten();
        let count = |id: SeriesId| now(id).and_then(|n| u64::try_from(n).ok());
        for rate in &mut self.rates {
            if let Some(limits) = rate.limits {
                // If the limit changed within the interval, the larger value counts.
                (rate.before, rate.limit) = (rate.limit, count(limits));
            }
        }
        for (series, result) in &mut self.results {
            *result = now(*series).or(*result);
        }
        for size in &mut self.sizes {
            let size_now = count(size.series);
            size.first = size.first.or(size_now);
            size.last = size_now.or(size.last);
        }
        self.backups.sample(at, row);
        let rates = &mut self.rates;
        self.rate_tracker.sample(at, row, |index, reading| {
            let rate = &mut rates[index];
            rate.spread.add(&reading);
            let is_near = |limit: u64| reading.rate() >= NEAR * float(limit);
            rate.all_s += reading.seconds();
            let limit = rate.limit.max(rate.before);
            rate.near_s += if limit.is_some_and(is_near) { reading.seconds() } else { 0.0 };
        });
        let latencies = &mut self.latencies;
        self.loads.sample(at, row, |entity, load| {
            if let (Some(operations), Some(ns)) = (load.operations, load.ns) {
                let (all, sum) = latencies.entry(entity).or_default();
                *all += operations;
                *sum += ns;
            }
        });
        let totals = &mut self.totals;
        self.total_tracker.sample(at, row, |index, reading| totals[index] += reading.amount);
    }

    pub(super) fn report(
        &self,
        header: &Header,
        notes: &[Note],
        ending: &Ending,
    ) -> ObservationReport {
        let contents = &header.contents;
        // There are no figures before the first sample.
        let any = self.samples > 0;
        let io =
            |all: &[IoAt]| all.iter().filter(|_| any).map(|at| self.io(contents, at)).collect();
        let databases = self.databases.iter().filter(|_| any).map(|at| self.database(contents, at));
        ObservationReport {
            source: header.source.kind.name().to_owned(),
            by: header.source.by.clone(),
            about: header.source.about.clone(),
            layout: header.layout.as_ref().map(|layout| layout.name.clone()),
            start_unix_ns: header.start_unix_ns,
            interval_s: header.interval_ns.map(|ns| float(ns) / 1e9),
            samples: self.samples,
            from_s: float(self.first.unwrap_or_default().nanos()) / 1e9,
            to_s: float(self.last.nanos()) / 1e9,
            is_complete: *ending == Ending::Complete,
            ending: ending.to_string(),
            databases: databases.filter(has_figures).collect(),
            files: io(&self.files),
            volumes: io(&self.volumes),
            hosts: io(&self.hosts),
            backups: self.backups.report(contents),
            entities: entities(contents, &self.results),
            notes: self.notes(notes),
        }
    }

    fn notes(&self, notes: &[Note]) -> Vec<String> {
        let at = |note: &Note| format!("at {:.3} s: {}", float(note.at_ns) / 1e9, note.text);
        let back = self.rate_tracker.restarts();
        let back = (back > 0).then(|| {
            format!(
                "counters decreased {back} times, as after a restart; the time between two such \
                 values is left out"
            )
        });
        let none = (self.samples == 0).then(|| "it contains no complete sample".to_owned());
        let sizes = self.sizes.iter().filter_map(Size::note);
        none.into_iter().chain(notes.iter().map(at)).chain(back).chain(sizes).collect()
    }

    fn rate(&self, at: usize, scale: f64) -> Option<RateReport> {
        let spread = &self.rates[at].spread;
        Some(RateReport {
            mean: spread.mean()? * scale,
            p50: spread.quantile(0.5) * scale,
            p99: spread.quantile(0.99) * scale,
            max: spread.max() * scale,
        })
    }

    fn near(&self, at: usize) -> Option<f64> {
        let rate = &self.rates[at];
        (rate.limit.is_some() && rate.all_s > 0.0).then(|| rate.near_s / rate.all_s)
    }

    fn io(&self, contents: &Contents, at: &IoAt) -> ObservedIo {
        let entity = contents.entity(at.view.entity);
        let text = |name| entity.and_then(|entity| entity.text(name)).map(str::to_owned);
        let waits: Vec<(String, u64)> =
            at.waits.iter().map(|(cap, total)| (cap.clone(), whole(self.totals[*total]))).collect();
        let medium_ns = at.medium.map(|total| whole(self.totals[total]));
        let operations = self.rates[at.operations].spread.total();
        // The counters of files; those of volumes are sums of parts.
        let latency = match at.view.stall_ms.0.is_empty() {
            false => Some(self.totals[at.stall_ms] * 1e6),
            true => medium_ns.map(|ns| float(waits.iter().map(|(_, ns)| ns).sum::<u64>() + ns)),
        };
        let mean = match latency {
            Some(ns) => (operations > 0.0).then(|| ns / operations),
            None => {
                let told = self.latencies.get(&at.view.entity).filter(|(all, _)| *all > 0.0);
                told.map(|(all, ns)| ns / all)
            }
        };
        ObservedIo {
            name: entity.map(|entity| entity.name.clone()).unwrap_or_default(),
            parent: parent(contents, at.view.entity),
            role: text(attribute::ROLE),
            tier: text(attribute::TIER),
            iops: self.rate(at.operations, 1.0),
            iops_limit: self.rates[at.operations].limit,
            near_iops_limit_share: self.near(at.operations),
            bytes_per_s: self.rate(at.bytes, 1.0),
            bytes_per_s_limit: self.rates[at.bytes].limit,
            near_bytes_limit_share: self.near(at.bytes),
            latency_mean_ns: mean,
            waits_ns: waits.into_iter().filter(|(_, ns)| *ns > 0).collect(),
            medium_ns,
        }
    }

    fn database(&self, contents: &Contents, at: &DatabaseAt) -> ObservedDatabase {
        let entity = contents.entity(at.view.entity);
        let vcores = entity.and_then(|entity| entity.number(attribute::VCORES));
        let cpu = at.cpu.zip(vcores.filter(|vcores| *vcores > 0));
        let all: f64 = at.waits.iter().map(|(_, time)| self.totals[*time]).sum();
        let wait = |(view, (count, time)): (&view::WaitView, &(Option<usize>, usize))| {
            let time_ms = self.totals[*time];
            ObservedWait {
                wait: view.name.clone(),
                count: count.map(|count| whole(self.totals[count])),
                time_ms,
                share: if all > 0.0 { time_ms / all } else { 0.0 },
            }
        };
        let mut waits: Vec<ObservedWait> = at.view.waits.iter().zip(&at.waits).map(wait).collect();
        waits.retain(|wait| wait.time_ms > 0.0 || wait.count > Some(0));
        waits.sort_by(|one, other| other.time_ms.total_cmp(&one.time_ms));
        ObservedDatabase {
            database: entity.map(|entity| entity.name.clone()).unwrap_or_default(),
            batches_per_s: at.batches.and_then(|rate| self.rate(rate, 1.0)),
            cpu_share: cpu.and_then(|(rate, vcores)| self.rate(rate, 1e-9 / float(vcores))),
            waits,
        }
    }
}

fn io_at(view: IoView, plan: &mut Plan) -> IoAt {
    let waits = view.waits.iter().map(|(cap, id)| (cap.clone(), plan.total_of(*id))).collect();
    IoAt {
        operations: plan.rate(view.operations.clone(), view.iops_limit, view.iops_limits),
        bytes: plan.rate(view.bytes.clone(), view.bytes_per_s_limit, view.bytes_per_s_limits),
        stall_ms: plan.total(view.stall_ms.clone()),
        waits,
        medium: view.medium.map(|id| plan.total_of(id)),
        view,
    }
}

fn database_at(view: DatabaseView, plan: &mut Plan) -> DatabaseAt {
    let rate =
        |id: Option<SeriesId>, plan: &mut Plan| id.map(|id| plan.rate(Track(vec![id]), None, None));
    let (batches, cpu) = (rate(view.batches, plan), rate(view.cpu, plan));
    let wait = |wait: &view::WaitView| {
        (wait.count.map(|id| plan.total_of(id)), plan.total_of(wait.time_ms))
    };
    let waits = view.waits.iter().map(wait).collect();
    DatabaseAt { batches, cpu, waits, view }
}

fn parent(contents: &Contents, id: EntityId) -> Option<String> {
    let parent = contents.entity(contents.entity(id)?.parent?)?;
    Some(parent.name.clone())
}

/// Lists the gauges of benchmarks, which have a single value: the result of the job.
fn results(contents: &Contents) -> Vec<(SeriesId, Option<i64>)> {
    let is_result = |series: &weir_observe::Series| {
        let of_job = contents.entity(series.entity).is_some_and(|own| own.kind == EntityKind::Job);
        of_job && series.counting != weir_observe::Counting::Cumulative
    };
    let all = contents.series.iter().zip(0..);
    all.filter(|(series, _)| is_result(series)).map(|(_, id)| (SeriesId(id), None)).collect()
}

/// Returns the results of an entity by metric.
fn results_of(
    contents: &Contents,
    id: EntityId,
    results: &[(SeriesId, Option<i64>)],
) -> Vec<(String, String)> {
    let known = results.iter().filter_map(|(series, value)| {
        let series = contents.series.get(series.0 as usize)?;
        // With the decimals of the input.
        #[expect(clippy::cast_precision_loss, reason = "for people, 53 bits are enough")]
        let value = (*value)? as f64 * 10_f64.powi(i32::from(series.scale));
        let decimals = usize::from(series.scale.min(0).unsigned_abs());
        (series.entity == id).then(|| (series.metric.clone(), format!("{value:.decimals$}")))
    });
    known.collect()
}

fn has_figures(of: &ObservedDatabase) -> bool {
    of.batches_per_s.or(of.cpu_share).is_some() || !of.waits.is_empty()
}

fn attribute_text(value: &Attribute) -> String {
    match value {
        Attribute::Number(number) => number.to_string(),
        Attribute::Text(text) => text.clone(),
    }
}

fn entities(contents: &Contents, results: &[(SeriesId, Option<i64>)]) -> Vec<ObservedEntity> {
    let all = contents.entities.iter().zip(0..);
    let observed = |(entity, id): (&weir_observe::Entity, u32)| ObservedEntity {
        kind: entity.kind.name().to_owned(),
        name: entity.name.clone(),
        parent: parent(contents, EntityId(id)),
        attributes: entity
            .attributes
            .iter()
            .map(|(name, known)| (name.clone(), attribute_text(known)))
            .chain(results_of(contents, EntityId(id), results))
            .collect::<BTreeMap<_, _>>(),
    };
    all.map(observed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_observe::run::{FileShape, Shape};
    use weir_observe::{Source, SourceKind, metric};
    use weir_units::Span;

    #[test]
    fn a_database_without_figures_is_left_out() {
        let source = Source {
            kind: SourceKind::Other("import".to_owned()),
            by: "weir".to_owned(),
            about: BTreeMap::new(),
        };
        let mut header = Header::new(source);
        let mut contents = Contents::default();
        let [quiet, busy] = ["quiet", "busy"].map(|name| {
            contents.add_entity(weir_observe::Entity {
                kind: EntityKind::Database,
                name: name.to_owned(),
                parent: None,
                attributes: BTreeMap::new(),
            })
        });
        for (entity, metric) in [(quiet, "page_lookups"), (busy, metric::name::BATCH_REQUESTS)] {
            contents.add_series(weir_observe::Series {
                entity,
                metric: metric.to_owned(),
                unit: weir_observe::Unit::Count,
                counting: weir_observe::Counting::Cumulative,
                scale: 0,
            });
        }
        header.contents = contents;
        let mut figures = Figures::new(&header);
        // A single snapshot of a counter has no rate.
        figures.sample(Instant::ZERO, &[Some(0), Some(0)]);
        figures.sample(Instant::ZERO + Span::from_secs(1), &[Some(0), Some(0)]);
        let report = figures.report(&header, &[], &Ending::Complete);
        let names: Vec<_> = report.databases.iter().map(|of| of.database.as_str()).collect();
        assert_eq!((names, report.entities.len()), (vec!["busy"], 2));
    }

    #[test]
    fn before_the_first_sample_there_are_no_figures() {
        let about = BTreeMap::new();
        let source = Source { kind: SourceKind::WallRun, by: "weir".to_owned(), about };
        let mut header = Header::new(source);
        let file = FileShape { name: "d1".to_owned(), ..FileShape::default() };
        header.contents = Shape { files: vec![file], ..Shape::default() }.contents();
        let mut figures = Figures::new(&header);
        let report = figures.report(&header, &[], &Ending::Cut { left_over: 0 });
        assert_eq!((report.files.len(), report.entities.len()), (0, 1));
        assert_eq!(report.notes, ["it contains no complete sample"]);
        figures.sample(Instant::ZERO, &vec![Some(0); header.contents.series.len()]);
        let report = figures.report(&header, &[], &Ending::Complete);
        assert_eq!((report.files.len(), report.notes.len()), (1, 0));
    }
}
