//! Observations that no healthy system writes: idle devices, zero latencies, limits of zero, gaps,
//! counters that go back. Whatever they hold, a diagnosis ends and every figure in it is finite.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeMap;
use weir_catalog::Catalog;
use weir_diagnose::question::{Question, follow};
use weir_diagnose::system::Mapping;
use weir_diagnose::{effect, report};
use weir_import::Sheet;
use weir_layout::Layout;
use weir_observe::metric::{self as m, Metric};
use weir_observe::{
    Attribute, Column, Ending, EntityKind, Header, Observation, Source, SourceKind,
};
use weir_report::finite::non_finite;
use weir_report::{Format, Report};
use weir_units::{Instant, Span};

/// Groups of metrics that real systems report together.
const GROUPS: [&[Metric]; 6] = [
    &[
        m::READS_PER_S,
        m::WRITES_PER_S,
        m::READ_BYTES_PER_S,
        m::WRITE_BYTES_PER_S,
        m::READ_LATENCY_NS,
        m::WRITE_LATENCY_NS,
        m::QUEUE_DEPTH,
        m::BUSY,
    ],
    &[m::OPERATIONS_PER_S, m::BYTES_PER_S, m::LATENCY_NS, m::REQUEST_BYTES, m::BUSY],
    &[m::READS, m::WRITES, m::READ_BYTES, m::WRITE_BYTES, m::IO_STALL_MS, m::BUSY_MS],
    &[
        m::NUM_OF_READS,
        m::NUM_OF_WRITES,
        m::NUM_OF_BYTES_READ,
        m::NUM_OF_BYTES_WRITTEN,
        m::IO_STALL_READ_MS,
        m::IO_STALL_WRITE_MS,
        m::IO_STALL_QUEUED_READ_MS,
        m::IO_STALL_QUEUED_WRITE_MS,
    ],
    &[
        m::READS_PER_S,
        m::WRITES_PER_S,
        m::READ_LATENCY_NS,
        m::WRITE_LATENCY_NS,
        m::READ_IO_LATENCY_NS,
        m::WRITE_IO_LATENCY_NS,
    ],
    &[m::IOPS_LIMIT, m::BYTES_PER_S_LIMIT, m::BURST_BALANCE, m::IOPS_SHARE, m::BYTES_SHARE],
];

/// Values at the edges: nothing, the least that is printed, ordinary ones, and absurd ones.
const VALUES: [f64; 12] = [0.0, 0.0, 0.001, 0.01, 1.0, 3.0, 250.0, 5_000.0, 1e6, 1e9, 4e12, 9e17];

const LAYOUTS: [&str; 4] = [
    "edition = \"azure-premium-2015\"\nhost = { size = \"DS3\" }\n[[volume]]\nname = \"v0\"\ntier = \
     \"P10\"\n[[volume]]\nname = \"v1\"\ntier = \"P20\"\ncache = \"read-only\"\n",
    "edition = \"azure-now\"\nhost = { size = \"Standard_D4s_v3\" }\n[[volume]]\nname = \"v0\"\ntier \
     = \"P15\"\n[[volume]]\nname = \"v1\"\ntier = \"P4\"\n",
    "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 8 }\n[[file]]\nname = \
     \"f0\"\nrole = \"data\"\nsize = \"32 GiB\"\n[[file]]\nname = \"f1\"\nrole = \"log\"\nsize = \"32 \
     GiB\"\n",
    "[host]\nunlimited = true\n[[volume]]\nname = \"v0\"\nsize = \"8 GiB\"\nlatency = \
     \"0ms\"\nlimits = { iops = 100, throughput = \"1 MiB/s\" }\n[[volume]]\nname = \
     \"v1\"\nsize = \"8 GiB\"\nlimits = { iops = 1 }\n",
];

/// The report of an entity: its group of metrics, its attributes, and a value of each metric at
/// each sample, as an index into [`VALUES`] or `None`.
#[derive(Debug, Clone)]
struct Reported {
    is_file: bool,
    group: usize,
    attributes: Vec<(&'static str, u64)>,
    rows: Vec<Vec<Option<usize>>>,
}

const ATTRIBUTES: [&str; 6] = [
    "iops_limit",
    "bytes_per_s_limit",
    "burst_iops_limit",
    "burst_bytes_per_s_limit",
    "size_bytes",
    "io_unit_bytes",
];

fn reported(samples: usize) -> impl Strategy<Value = Reported> {
    let attribute = (select(&ATTRIBUTES[..]), select(&[0, 1, 500, 1 << 20, 1 << 40, u64::MAX][..]));
    let value = prop_oneof![1 => Just(None), 6 => (0..VALUES.len()).prop_map(Some)];
    let rows = vec(vec(value, 8), samples);
    (any::<bool>(), 0..GROUPS.len(), vec(attribute, 0..4), rows).prop_map(
        |(is_file, group, attributes, rows)| Reported { is_file, group, attributes, rows },
    )
}

/// Sampling intervals in milliseconds.
const STEPS: [u64; 4] = [1, 1_000, 60_000, 86_400_000];

#[derive(Debug, Clone)]
struct Case {
    layout: Option<usize>,
    edition: Option<&'static str>,
    steps: Vec<u64>,
    entities: Vec<Reported>,
}

fn case() -> impl Strategy<Value = Case> {
    (1_usize..40).prop_flat_map(|samples| {
        (
            prop::option::of(0..LAYOUTS.len()),
            prop::option::of(select(&["azure-mi-2018", "azure-now", "aws"][..])),
            vec(select(&STEPS[..]), samples),
            vec(reported(samples), 1..3),
        )
            .prop_map(|(layout, edition, steps, entities)| Case {
                layout,
                edition,
                steps,
                entities,
            })
    })
}

fn observation(case: &Case) -> Observation {
    let mut sheet = Sheet::default();
    let host = sheet.entity(EntityKind::Host, "host", None);
    let mut columns: BTreeMap<u32, Column> = BTreeMap::new();
    let mut attributes = Vec::new();
    for (index, reported) in case.entities.iter().enumerate() {
        let entity = if reported.is_file {
            let database = sheet.entity(EntityKind::Database, "db", Some(host));
            sheet.entity(EntityKind::File, &format!("f{index}"), Some(database))
        } else {
            sheet.entity(EntityKind::Volume, &format!("v{index}"), Some(host))
        };
        attributes.extend(reported.attributes.iter().map(|(name, value)| (entity, *name, *value)));
        for (place, measure) in GROUPS[reported.group].iter().enumerate() {
            let series = sheet.series(entity, measure);
            let column = columns.entry(series.0).or_default();
            for row in &reported.rows {
                column.push(row[place].and_then(|value| measure.stored(VALUES[value])));
            }
        }
    }
    let mut at = Instant::ZERO;
    let mut times = Vec::new();
    for step in &case.steps {
        at += Span::from_millis(*step);
        times.push(at);
    }
    let kind = SourceKind::Other("test".to_owned());
    let mut header =
        Header::new(Source { kind, by: "test".to_owned(), about: BTreeMap::default() });
    header.contents = sheet.contents().clone();
    for (entity, name, value) in attributes {
        let own = &mut header.contents.entities[entity.0 as usize].attributes;
        own.insert(name.to_owned(), Attribute::Number(value));
    }
    let columns = columns.into_values().collect();
    Observation { header, times, columns, notes: Vec::new(), ending: Ending::Complete }
}

/// Diagnoses a case and returns what is wrong with the report, if anything is.
fn flaws(case: &Case) -> Vec<String> {
    let catalog = Catalog::builtin();
    let layout = case.layout.map(|index| {
        let layout = Layout::parse("layout.toml", LAYOUTS[index], &catalog);
        layout.unwrap_or_else(|error| panic!("{error}"))
    });
    let name = case.edition.or(layout.as_ref().and_then(|layout| layout.edition.as_deref()));
    let edition = name.map(|name| catalog.edition(name).expect("an edition"));
    let mapping = Mapping::new();
    let question =
        Question { layout: layout.as_ref(), edition, catalog: &catalog, mapping: &mapping };
    let observation = observation(case);
    // Names that the layout does not have are an error of their own.
    let Ok((system, _)) = question.system(observation.contents()) else { return Vec::new() };
    let facts = follow(&system, &observation);
    let text = case.layout.map(|index| LAYOUTS[index]);
    let mut notes = Vec::new();
    let report = question.answer(observation.contents(), &system, &facts, |case, mut found| {
        if let Some(text) = text {
            notes = effect::estimate(case, text, &mut found);
        }
        report::report(case, found)
    });
    let mut flaws = non_finite(&report).expect("a report that serializes");
    flaws.extend(notes.into_iter().filter(|note| has_non_number(note)));
    for format in [Format::Text, Format::Csv, Format::Markdown] {
        let text = report.render(format);
        flaws.extend(text.lines().filter(|line| has_non_number(line)).map(str::to_owned));
    }
    flaws
}

/// Returns whether a line contains NaN or an infinity.
fn has_non_number(line: &str) -> bool {
    let mut words = line.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| word == "NaN" || word == "inf")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn every_figure_is_finite(case in case()) {
        prop_assert_eq!(flaws(&case), Vec::<String>::new());
    }
}

/// iostat of a device that wrote a little in no time: `w/s 3.00 w_await 0.00 %util 0.10`.
#[test]
fn writes_that_take_no_time_wait_for_nothing() {
    let row = |writes, latency, busy| {
        let mut row = vec![Some(0); 8];
        (row[1], row[5], row[7]) = (Some(writes), Some(latency), Some(busy));
        row
    };
    let rows = vec![vec![None; 8], row(5, 0, 2), row(5, 0, 2)];
    let entities = vec![Reported { is_file: false, group: 0, attributes: Vec::new(), rows }];
    let case = Case { layout: None, edition: None, steps: vec![1_000; 3], entities };
    assert_eq!(flaws(&case), Vec::<String>::new());
}
