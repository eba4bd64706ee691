//! The aggregated counters of a SKU assessment of SQL Server
//! (`_PerformanceAggregated_Counters.csv`): the mean, maximum and variance of each counter over
//! about twenty queries.
//!
//! Microsoft does not say whether a file's counts are per second or per query, so the user has to.

use super::identity::Identity;
use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::{FileCounts, Options};
use crate::results::{ResultSet, Row, heads};
use crate::rows::{ReadRows, RowReader, Rows};
use crate::sheet::ReadSamples;
use std::time::Duration;
use weir_observe::header::EntityId;
use weir_observe::metric::{self as m, Metric};

const MIB: f64 = 1024.0 * 1024.0;
const PERCENT: f64 = 0.01;

pub(crate) const KIND: Kind = Kind {
    name: "sku-counters",
    about: "aggregated counters of a SKU assessment of SQL Server",
    recognizes: By::Text(recognizes),
    open,
    signs: &[&[
        Sign::Word(&["CounterName"]),
        Sign::Word(&["AggregatorType"]),
        Sign::Word(&["DatabaseFileName"]),
        Sign::Word(&["TimeDataCollected"]),
    ]],
};

/// Counters of a file, with the factor to operations or bytes.
const COUNTS: [(&str, &Metric, f64); 4] = [
    ("FNR", &m::READS_PER_S, 1.0),
    ("FNW", &m::WRITES_PER_S, 1.0),
    ("FRM", &m::READ_BYTES_PER_S, MIB),
    ("FWM", &m::WRITE_BYTES_PER_S, MIB),
];

/// The queries of which each value is the mean, by default.
const QUERIES: f64 = 20.0;

/// The processor time of the instance, in percent.
const CPU: &str = "ICP";

fn recognizes(text: &str) -> bool {
    heads(text).iter().any(|set| Assessment::find(set, 1.0, None).is_some())
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    let every = options.every.map(|every| Duration::from_nanos(every.nanos()).as_secs_f64());
    let seconds = match (options.file_counts, every) {
        (Some(FileCounts::PerSecond), _) => 1.0,
        (Some(FileCounts::PerQuery), Some(every)) if every > 0.0 => every,
        (Some(FileCounts::PerQuery), _) => {
            return Err(ImportError::whole(
                "--file-counts per-query needs the interval of the queries: give it with --every; the \
                 default of the assessment is 30s",
            ));
        }
        (None, _) => {
            return Err(ImportError::whole(
                "the counters of files (FNR, FNW, FRM, FWM) are per second or per query, and the format \
                 does not say which: give --file-counts per-second, or --file-counts per-query \
                 --every 30s (the interval of the queries). To find out, compare FNR of a busy file \
                 with its reads per second in PerfMon",
            ));
        }
    };
    RowReader::open(input, options, move |set| {
        Assessment::find(set, seconds, every).map(|own| Box::new(own) as Box<dyn ReadRows>)
    })
}

struct Assessment {
    identity: Identity,
    counter: usize,
    aggregator: usize,
    value: usize,
    /// Divisor of counts.
    seconds: f64,
    /// The interval of the queries, in seconds.
    every: Option<f64>,
    told: bool,
}

impl Assessment {
    fn find(set: &ResultSet, seconds: f64, every: Option<f64>) -> Option<Self> {
        let all = Identity::new(set);
        // A file is named by its path.
        let identity =
            Identity { path: Some(set.column(&["databasefilename"])?), file: None, ..all };
        Some(Self {
            identity,
            counter: set.column(&["countername"])?,
            aggregator: set.column(&["aggregatortype"])?,
            value: set.column(&["value"])?,
            seconds,
            every,
            told: false,
        })
    }

    fn put(
        &self,
        rows: &mut Rows,
        (set, row): (&ResultSet, &Row),
        (entity, metric, by): (EntityId, &'static Metric, f64),
    ) -> Result<(), ImportError> {
        let at = rows.stamp(row, entity, metric.name)?;
        let value = row.number(set, Some(self.value))?;
        rows.set(at, entity, metric, value.map(|value| value * by))
    }
}

impl ReadRows for Assessment {
    fn row(&mut self, rows: &mut Rows, set: &ResultSet, row: &Row) -> Result<(), ImportError> {
        if !self.told {
            self.told = true;
            let own = [self.counter, self.aggregator, self.value];
            rows.tell_unused(set, &self.identity.used().chain(own).collect::<Vec<_>>());
            if let Some(every) = self.every {
                #[expect(clippy::cast_possible_truncation, reason = "it saturates")]
                let held = (every * QUERIES * 1e9) as i64;
                rows.sheet.held.get_or_insert(held);
            }
            rows.sheet
                .note("its values are means of about twenty queries, so that peaks are not seen");
        }
        if row.text(Some(self.aggregator)) != Some("Mean") {
            return Ok(());
        }
        let counter = row.text(Some(self.counter)).unwrap_or_default();
        let count = COUNTS.iter().find(|(name, ..)| *name == counter);
        match count {
            Some((_, metric, by)) if row.text(self.identity.path).is_some() => {
                let file = self.identity.file(rows, row, 0);
                self.put(rows, (set, row), (file, metric, by / self.seconds))
            }
            None if counter == CPU => {
                let host = self.identity.host(rows, row);
                self.put(rows, (set, row), (host, &m::CPU, PERCENT))
            }
            _ => {
                rows.sheet.unused(&format!("the counter {counter}, whose unit is not published"));
                Ok(())
            }
        }
    }
}
