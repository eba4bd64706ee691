//! Invariants of an input of any kind: it is read, or rejected with a message. Its observation can
//! be written, read, diagnosed and planned for, and no figure is NaN or infinite.

use std::io::{BufReader, Cursor};
use std::sync::OnceLock;
use weir_catalog::{Catalog, Edition};
use weir_diagnose::demand::estimate;
use weir_diagnose::system::Mapping;
use weir_diagnose::{Question, question, report};
use weir_import::{Input, Kind, Options, import, kinds};
use weir_observe::Observation;
use weir_observe::load::Loads;
use weir_observe::sizing::{Roles, Sizer};
use weir_plan::need::NeedFile;
use weir_report::finite::non_finite;
use weir_report::{Format, Report};

/// An edition with one machine and two disk sizes, for which plans take microseconds.
const SMALL: &str = include_str!("../../../catalog/example.toml");

/// Reads `data` as the kind that it looks like, and as the kind that its first byte selects.
pub(super) fn run(data: &[u8]) {
    read(data, None);
    let kinds: Vec<_> = kinds().collect();
    if let Some((first, rest)) = data.split_first() {
        read(rest, Some(kinds[usize::from(*first) % kinds.len()]));
    }
}

fn read(data: &[u8], kind: Option<Kind>) {
    let bytes = Box::new(BufReader::with_capacity(512, Cursor::new(data.to_vec())));
    let input = Input { name: "fuzz".to_owned(), bytes, kind };
    match import(vec![input], &Options::default(), Vec::new()) {
        Err((_, error)) => assert!(!error.to_string().trim().is_empty(), "{error:?} says nothing"),
        Ok((bytes, summary)) => {
            let read = Observation::read(&bytes[..]);
            let observation = read.unwrap_or_else(|error| panic!("what was written: {error}"));
            assert_eq!(observation.contents().series.len(), summary.series);
            let mut loads = Loads::new(observation.contents());
            let mut row = Vec::new();
            for (sample, at) in observation.times.iter().enumerate() {
                row.clear();
                row.extend(observation.columns.iter().map(|column| column.get(sample)));
                loads.sample(*at, &row, |_, load| assert!(load.seconds() > 0.0, "{load:?}"));
            }
            diagnose(&observation, None);
            diagnose(&observation, catalog().edition("azure-mi-2018").ok());
            plan(&observation);
        }
    }
}

fn catalog() -> &'static Catalog {
    static CATALOG: OnceLock<Catalog> = OnceLock::new();
    CATALOG.get_or_init(Catalog::builtin)
}

fn small() -> &'static Edition {
    static EDITION: OnceLock<Edition> = OnceLock::new();
    EDITION.get_or_init(|| {
        Edition::from_toml("example.toml", SMALL).unwrap_or_else(|error| panic!("{error}"))
    })
}

/// Diagnoses an observation and visits every figure of the report.
fn diagnose(observation: &Observation, edition: Option<&Edition>) {
    let mapping = Mapping::new();
    let question = Question { layout: None, edition, catalog: catalog(), mapping: &mapping };
    let system = match question.system(observation.contents()) {
        Ok((system, _)) => system,
        Err(error) => {
            assert!(!error.to_string().trim().is_empty(), "{error:?} says nothing");
            return;
        }
    };
    let facts = question::follow(&system, observation);
    let report = question.answer(observation.contents(), &system, &facts, |case, found| {
        for demand in estimate(case, &found, edition) {
            let iops = demand.estimate.map_or(demand.iops, |estimate| estimate.iops);
            assert!(iops.is_finite() && iops >= 0.0, "{demand:?}");
        }
        report::report(case, found)
    });
    let flaws = non_finite(&report).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(flaws, Vec::<String>::new(), "floats that are no numbers");
    for format in [Format::Text, Format::Json, Format::Csv, Format::Markdown] {
        assert!(!report.render(format).is_empty());
    }
}

/// Plans for an observed load.
fn plan(observation: &Observation) {
    let contents = observation.contents();
    let Ok(mut sizer) = Sizer::new(contents, &Roles::default()) else { return };
    let mut row = Vec::new();
    for (sample, at) in observation.times.iter().enumerate() {
        row.clear();
        row.extend(observation.columns.iter().map(|column| column.get(sample)));
        sizer.sample(*at, &row);
    }
    let mut file = NeedFile::default();
    for own in sizer.finish(contents, 0.99) {
        let figures = [Some(own.iops), own.bytes, own.request, own.reads, own.waited];
        assert!(figures.iter().flatten().all(|figure| figure.is_finite()), "{own:?}");
        let keys = match own.role.as_str() {
            "data" => &mut file.data,
            "log" => &mut file.log,
            "tempdb" => &mut file.tempdb,
            _ => &mut file.backup,
        };
        let keys = keys.get_or_insert_default();
        keys.size = Some(weir_units::Bytes::gib(1));
        if let Err(error) = keys.take_observed(&own, 0, "fuzz") {
            assert!(!error.to_string().trim().is_empty(), "{error:?} says nothing");
        }
    }
    let Ok((need, _)) = file.need() else { return };
    let wishes = file.wishes();
    let (catalog, edition) = (catalog(), small());
    let question =
        weir_plan::Question { catalog, edition, prices: None, need: &need, wishes: &wishes };
    if let Err(error) = weir_plan::plan(&question) {
        assert!(!error.to_string().trim().is_empty(), "{error:?} says nothing");
    }
}
