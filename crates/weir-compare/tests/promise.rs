//! The promise of `weir compare`: two runs of the same thing show no difference in at least 95 of 100
//! pairs, and a difference of 10 % is shown in at least 90.

use std::io::Cursor;
use weir_catalog::Catalog;
use weir_compare::{Input, Observed, Options, Request, Side, compare};
use weir_layout::Layout;
use weir_observe::run::Shape;
use weir_observe::{
    Contents, Entity, EntityKind, Header, Reader, Source, SourceKind, Writer, metric,
};
use weir_random::Rng;
use weir_report::comparison::{ComparisonReport, DifferenceOutcome};
use weir_sim::{Simulation, devices};
use weir_units::{Instant, Span};
use weir_workload::{Isolated, fio, place};

const PAIRS: usize = 100;

/// A system under load, and what makes it 10 % worse.
struct System {
    name: &'static str,
    layout: &'static str,
    jobs: &'static str,
    /// Text of the layout or the jobs, and its replacement.
    worse: (&'static str, &'static str),
}

const SYSTEMS: [System; 3] = [
    System {
        name: "closed loop, bound by latency",
        layout: "[[volume]]\nname = \"data\"\nsize = \"100 GiB\"\nlimits = { iops = 5000, throughput = \"200 MB/s\" }\n\
                 latency = { p0 = \"1ms\", p50 = \"4ms\", p99 = \"16ms\", p100 = \"60ms\" }\n",
        jobs: "[a]\nfilename=/mnt/data\nrw=randrw\nbs=8k\ndirect=1\nioengine=libaio\niodepth=2\n\
               time_based\nruntime=60\n",
        worse: (
            "p0 = \"1ms\", p50 = \"4ms\", p99 = \"16ms\", p100 = \"60ms\"",
            "p0 = \"1100us\", p50 = \"4400us\", p99 = \"17600us\", p100 = \"66ms\"",
        ),
    },
    System {
        name: "closed loop, bound by a limit",
        layout: "[[volume]]\nname = \"data\"\nsize = \"100 GiB\"\nlimits = { iops = 500, throughput = \"200 MB/s\" }\n\
                 latency = { p0 = \"1ms\", p50 = \"2ms\", p99 = \"8ms\", p100 = \"30ms\" }\n",
        jobs: "[a]\nfilename=/mnt/data\nrw=randread\nbs=8k\ndirect=1\nioengine=libaio\niodepth=8\n\
               time_based\nruntime=60\n",
        worse: ("iops = 500", "iops = 450"),
    },
    System {
        name: "random arrivals near a limit",
        layout: "[[volume]]\nname = \"data\"\nsize = \"100 GiB\"\nlimits = { iops = 500, throughput = \"200 MB/s\" }\n\
                 latency = { p0 = \"1ms\", p50 = \"2ms\", p99 = \"8ms\", p100 = \"30ms\" }\n",
        jobs: "[a]\nfilename=/mnt/data\nrw=randread\nbs=8k\ndirect=1\nioengine=libaio\niodepth=64\n\
               rate_iops=400\nrate_process=poisson\ntime_based\nruntime=120\n",
        worse: ("rate_iops=400", "rate_iops=360"),
    },
];

impl System {
    /// Runs the system, as it is or worse, and returns its observation.
    fn observe(&self, seed: u64, is_worse: bool) -> Vec<u8> {
        let changed = |text: &str| match is_worse {
            true => text.replace(self.worse.0, self.worse.1),
            false => text.to_owned(),
        };
        let text = format!("seed = {}\n{}", seed >> 1, changed(self.layout));
        let layout = Layout::parse("layout.toml", &text, &Catalog::builtin()).expect("a layout");
        let jobs = fio::parse("jobs.fio", &changed(self.jobs), &Isolated).expect("jobs");
        let placed = place(&jobs, &devices(&layout), &[]).expect("jobs fit");
        let options = weir_sim::Options { seed, ..weir_sim::Options::default() };
        let mut simulation = Simulation::new(&layout, placed, &options).expect("a simulation");
        let shape = simulation.shape();
        let mut writer = Writer::new(Vec::new(), &header(shape.contents())).expect("a writer");
        let (mut due, mut row) = (Instant::ZERO, Vec::new());
        while simulation.run_until(due).expect("a run").is_some() {
            write(&mut writer, &shape, &simulation, due, &mut row);
            due += Span::from_secs(1);
        }
        writer.finish(true).expect("an observation")
    }
}

fn header(contents: Contents) -> Header {
    let (kind, by) = (SourceKind::VirtualRun, "test".to_owned());
    let mut header = Header::new(Source { kind, by, about: std::collections::BTreeMap::new() });
    header.interval_ns = Some(1_000_000_000);
    header.contents = contents;
    header
}

fn write(
    writer: &mut Writer<Vec<u8>>,
    shape: &Shape,
    simulation: &Simulation<'_>,
    at: Instant,
    row: &mut Vec<Option<i64>>,
) {
    shape.row(&simulation.sample(), row);
    writer.sample(at, row).expect("a sample");
}

fn side(name: &str, bytes: Vec<u8>) -> Side {
    let mut reader = Reader::open(Cursor::new(bytes)).expect("an observation");
    let header = reader.header().clone();
    let chunks = Box::new(move || reader.next_chunk());
    let observed = Observed { header, chunks, layout: None, notes: Vec::new() };
    Side { name: name.to_owned(), inputs: vec![Input::Observation(Box::new(observed))] }
}

fn compared(one: Vec<u8>, other: Vec<u8>) -> ComparisonReport {
    let (catalog, options) = (Catalog::builtin(), Options::default());
    let request = Request { catalog: &catalog, workload: None, options: &options };
    compare(vec![side("a", one), side("b", other)], &request).expect("a comparison")
}

/// Returns whether any of the metrics that are shown differs.
fn differs(report: &ComparisonReport) -> bool {
    let metrics = report.comparisons.iter().flat_map(|pair| &pair.metrics);
    metrics.clone().any(|own| own.outcome.is_difference())
}

fn is_worse(report: &ComparisonReport) -> bool {
    let metrics = report.comparisons.iter().flat_map(|pair| &pair.metrics);
    metrics.clone().any(|own| own.decides && own.outcome == DifferenceOutcome::Worse)
}

#[test]
fn runs_of_the_same_thing_do_not_differ_and_ten_percent_do() {
    let mut seeds = Rng::new(&[25]);
    for system in &SYSTEMS {
        let (mut false_alarms, mut found, mut metrics) = (0, 0, 0);
        for _ in 0..PAIRS {
            let mut observe = |is_worse| system.observe(seeds.next_u64() >> 2, is_worse);
            let (one, other, worse) = (observe(false), observe(false), observe(true));
            let same = compared(one.clone(), other);
            metrics = same.tested;
            false_alarms += usize::from(differs(&same));
            found += usize::from(is_worse(&compared(one, worse)));
        }
        println!(
            "{}: {PAIRS} pairs of {metrics} tested metrics: of the same thing {false_alarms} differ, of \
             10 % difference {found} do",
            system.name
        );
        assert!(metrics >= 3, "{}: {metrics} metrics", system.name);
        assert!(false_alarms <= PAIRS * 5 / 100, "{}: {false_alarms} false alarms", system.name);
        assert!(found >= PAIRS * 90 / 100, "{}: only {found} differences found", system.name);
    }
}

/// Returns an observation of several disks whose rates and latencies depend on their past.
fn dependent(rng: &mut Rng, samples: u64, memory: f64) -> Vec<u8> {
    const DISKS: usize = 4;
    let measures = [metric::OPERATIONS_PER_S, metric::BYTES_PER_S, metric::LATENCY_NS];
    let mut contents = Contents::default();
    for disk in 0..DISKS {
        let name = format!("sd{disk}");
        let entity = contents.add_entity(Entity::new(EntityKind::Volume, &name, None));
        for measure in &measures {
            contents.add_series(measure.series(entity));
        }
    }
    let mut writer = Writer::new(Vec::new(), &header(contents)).expect("a writer");
    let mut normal = || {
        let uniform = (rng.unit().max(1e-12), rng.unit());
        (-2.0 * uniform.0.ln()).sqrt() * (std::f64::consts::TAU * uniform.1).cos()
    };
    let mut states = [[0.0_f64; 3]; DISKS];
    states.iter_mut().flatten().for_each(|own| *own = normal());
    for second in 0..=samples {
        let mut row = Vec::new();
        for state in &mut states {
            for (own, (measure, scale)) in
                state.iter_mut().zip(measures.iter().zip([1000.0, 8.192e6, 3e6]))
            {
                *own = memory * *own + (1.0 - memory * memory).sqrt() * normal();
                row.push(measure.stored(scale * (0.3 * *own).exp()));
            }
        }
        writer.sample(Instant::ZERO + Span::from_secs(second), &row).expect("a sample");
    }
    writer.finish(true).expect("an observation")
}

#[test]
fn samples_that_depend_on_their_past_raise_no_false_alarms() {
    let mut rng = Rng::new(&[26]);
    for (samples, memory) in [(60, 0.0), (60, 0.5), (120, 0.7), (300, 0.8), (600, 0.9)] {
        let (mut false_alarms, mut refused) = (0, 0);
        for _ in 0..PAIRS {
            let mut observe = || dependent(&mut rng, samples, memory);
            let (catalog, options) = (Catalog::builtin(), Options::default());
            let request = Request { catalog: &catalog, workload: None, options: &options };
            let sides = vec![side("a", observe()), side("b", observe())];
            match compare(sides, &request) {
                Ok(report) => false_alarms += usize::from(differs(&report)),
                Err(_) => refused += 1,
            }
        }
        println!(
            "{samples} samples with a correlation of {memory}: of {PAIRS} pairs of the same thing \
             {false_alarms} differ, {refused} are refused"
        );
        assert!(false_alarms <= PAIRS * 5 / 100, "{samples}, {memory}: {false_alarms}");
        assert!(refused <= PAIRS / 10, "{samples}, {memory}: {refused} refused");
    }
}
