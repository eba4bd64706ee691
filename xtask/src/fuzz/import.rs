//! Invariants of an input of any kind: it is read, or rejected with a message. Its observation can
//! be written, read, diagnosed and planned for, and no figure is NaN or infinite.

use super::plans::{self, catalog};
use std::io::{BufReader, Cursor};
use weir_catalog::Edition;
use weir_diagnose::demand::estimate;
use weir_diagnose::system::Mapping;
use weir_diagnose::{Question, question, report};
use weir_import::{Input, Kind, Options, import, kinds};
use weir_observe::load::Loads;
use weir_observe::{Header, Observation};
use weir_plan::PlanError;
use weir_plan::measure::{self, Measure, Samples};
use weir_plan::need::NeedFile;
use weir_report::finite::non_finite;
use weir_report::{Format, Report};
use weir_units::{Bytes, Instant};

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
    let mut file = NeedFile::default();
    let (samples, measure) = (&All(observation), &Measure::default());
    if let Err(error) = measure::fill(&mut file, ("fuzz", samples), measure, (None, catalog())) {
        return assert!(!error.to_string().trim().is_empty(), "{error:?} says nothing");
    }
    let roles = [&mut file.data, &mut file.log, &mut file.tempdb, &mut file.backup];
    for keys in roles.into_iter().flatten() {
        keys.size = Some(Bytes::gib(1));
    }
    plans::plan(&file);
}

/// The samples of an observation in memory.
struct All<'a>(&'a Observation);

impl Samples for All<'_> {
    type Error = PlanError;

    fn header(&self) -> Result<Header, PlanError> {
        Ok(self.0.header.clone())
    }

    fn each(&self, take: &mut dyn FnMut(Instant, &[Option<i64>])) -> Result<(), PlanError> {
        let mut row = Vec::new();
        for (sample, at) in self.0.times.iter().enumerate() {
            row.clear();
            row.extend(self.0.columns.iter().map(|column| column.get(sample)));
            take(*at, &row);
        }
        Ok(())
    }
}
