//! Waits: `sys.dm_os_wait_stats` and similar views, and tables of waits per minute.
//!
//! Lists are usually cut to the longest waits. A type that is in only one of two lists has no
//! value in the other. If the first list goes down to 1 % of the type's time in the second, rates
//! count it from zero.

use super::identity::{DATABASE, SERVER};
use crate::error::ImportError;
use crate::results::{ResultSet, Row};
use crate::rows::{Columns, Meaning, ReadRows, Rows, columns};
use std::collections::HashMap;
use weir_observe::header::{EntityId, EntityKind};
use weir_observe::metric as m;

const SECOND: f64 = 1000.0;

const NAME: &[&str] = &["waittype", "waitname", "wait"];

const COUNTERS: &[Meaning] = &[
    (
        &["waitingtaskscount", "waitingtasks", "waitcount", "waitingtaskcount", "numberofwaits"],
        &m::WAITING_TASKS_COUNT,
        1.0,
    ),
    (&["waittimems", "waitms", "totalwaitms", "totalwaittimems"], &m::WAIT_TIME_MS, 1.0),
    (
        &["waits", "waittimes", "waittimesec", "waitsec", "waitseconds", "waittimeseconds"],
        &m::WAIT_TIME_MS,
        SECOND,
    ),
    (&["signalwaittimems", "signalms", "signalwaitms"], &m::SIGNAL_WAIT_TIME_MS, 1.0),
    (
        &["signals", "signalwaits", "signalwaittimes", "signalwaittimesec"],
        &m::SIGNAL_WAIT_TIME_MS,
        SECOND,
    ),
    (&["maxwaittimems", "maxwaitms"], &m::MAX_WAIT_TIME_MS, 1.0),
    (&["maxwaits", "maxwaittimes"], &m::MAX_WAIT_TIME_MS, SECOND),
];

/// Minutes waited per minute are seconds waited per second.
const RATES: &[Meaning] = &[(
    &["waittimesperminute", "waittimeminutesperminute", "waitminutesperminute"],
    &m::WAIT_MS_PER_S,
    SECOND,
)];

struct Waits {
    name: usize,
    server: Option<usize>,
    database: Option<usize>,
    values: Columns,
    waits: HashMap<String, EntityId>,
    key: String,
    told: bool,
}

pub(super) fn plan(set: &ResultSet) -> Option<Box<dyn ReadRows>> {
    let name = set.column(NAME)?;
    // Waits of single sessions or statements are only a part of all waits.
    if set.has(&["sessionid", "spid", "queryid", "planid", "execcontextid"]) {
        return None;
    }
    let rates = columns(set, RATES);
    let is_rate = !rates.is_empty();
    let values = if is_rate { rates } else { columns(set, COUNTERS) };
    let is_time = |(_, measure, _): &(usize, &m::Metric, f64)| {
        **measure == m::WAIT_TIME_MS || **measure == m::WAIT_MS_PER_S
    };
    if !values.iter().any(is_time) {
        return None;
    }
    Some(Box::new(Waits {
        name,
        server: set.column(SERVER),
        database: set.column(DATABASE),
        values,
        waits: HashMap::new(),
        key: String::new(),
        told: false,
    }))
}

impl Waits {
    fn wait(&mut self, rows: &mut Rows, row: &Row) -> Option<EntityId> {
        let name = row.text(Some(self.name))?;
        self.key.clear();
        for text in [row.text(self.server), row.text(self.database), Some(name)] {
            self.key.push_str(text.unwrap_or_default());
            self.key.push('\u{1f}');
        }
        if let Some(wait) = self.waits.get(&self.key) {
            return Some(*wait);
        }
        let mut parent = rows.host(row.text(self.server));
        if let Some(database) = row.text(self.database) {
            parent = rows.sheet.entity(EntityKind::Database, database, Some(parent));
        }
        let wait = rows.sheet.entity(EntityKind::Wait, name, Some(parent));
        self.waits.insert(self.key.clone(), wait);
        Some(wait)
    }
}

impl ReadRows for Waits {
    fn row(&mut self, rows: &mut Rows, set: &ResultSet, row: &Row) -> Result<(), ImportError> {
        if !self.told {
            self.told = true;
            let own = self.values.iter().map(|(at, _, _)| *at);
            let used: Vec<_> =
                own.chain([self.name]).chain(self.server).chain(self.database).collect();
            rows.tell_unused(set, &used);
        }
        let Some(wait) = self.wait(rows, row) else {
            rows.sheet.unused("waits without a type");
            return Ok(());
        };
        let at = rows.stamp(row, wait, "waits")?;
        rows.set_all(at, wait, (set, row), &self.values)
    }
}
