//! `sys.dm_os_performance_counters`: raw counters of the server.
//!
//! `cntr_type` defines the meaning of a value: a total for a counter "per second", or one of the
//! two numbers of a ratio. Without types, the names define it.

use super::identity::SERVER;
use crate::error::ImportError;
use crate::results::{ResultSet, Row};
use crate::rows::{ReadRows, Rows};
use crate::window::Stamp;
use weir_observe::header::{EntityId, EntityKind};
use weir_observe::metric::{self as m, Metric};

const KIB: f64 = 1024.0;

/// `PERF_COUNTER_LARGE_RAWCOUNT`: a level.
const LEVEL: &str = "65792";
/// `PERF_COUNTER_BULK_COUNT`, and its 32-bit form: a total.
const SUMS: [&str; 2] = ["272696576", "272696320"];
/// `PERF_LARGE_RAW_FRACTION` and `PERF_LARGE_RAW_BASE`: the two numbers of a ratio.
const RATIO: [&str; 2] = ["537003264", "1073939712"];

/// Object and counter in lower case, the metric, and the factor of values.
type Known = (&'static str, &'static str, &'static Metric, f64);

const COUNTERS: &[Known] = &[
    ("databases", "transactions/sec", &m::TRANSACTIONS, 1.0),
    ("databases", "log bytes flushed/sec", &m::LOG_BYTES, 1.0),
    ("databases", "log flushes/sec", &m::LOG_FLUSHES, 1.0),
    ("databases", "log flush waits/sec", &m::LOG_FLUSH_WAITS, 1.0),
    ("sql statistics", "batch requests/sec", &m::BATCH_REQUESTS, 1.0),
    ("general statistics", "user connections", &m::USERS, 1.0),
    ("buffer manager", "page life expectancy", &m::PAGE_LIFE_EXPECTANCY_S, 1.0),
    ("buffer manager", "page lookups/sec", &m::PAGE_LOOKUPS, 1.0),
    ("buffer manager", "page reads/sec", &m::PAGE_READS, 1.0),
    ("buffer manager", "page writes/sec", &m::PAGE_WRITES, 1.0),
    ("buffer manager", "readahead pages/sec", &m::READAHEAD_PAGES, 1.0),
    ("buffer manager", "checkpoint pages/sec", &m::CHECKPOINT_PAGES, 1.0),
    ("buffer manager", "background writer pages/sec", &m::BACKGROUND_WRITER_PAGES, 1.0),
    ("buffer manager", "lazy writes/sec", &m::LAZY_WRITES, 1.0),
    ("memory manager", "database cache memory (kb)", &m::BUFFER_BYTES, KIB),
    ("memory manager", "total server memory (kb)", &m::SERVER_MEMORY_BYTES, KIB),
    ("memory manager", "target server memory (kb)", &m::SERVER_MEMORY_TARGET_BYTES, KIB),
];

/// The only ratio that is read; its other number has "base" after the name.
const HIT_RATIO: &str = "buffer cache hit ratio";
const HIT_BASE: &str = "buffer cache hit ratio base";

struct Counters {
    object: usize,
    counter: usize,
    instance: Option<usize>,
    value: usize,
    kind: Option<usize>,
    server: Option<usize>,
    /// The two numbers of the hit ratio, as far as they are known.
    hits: [Option<f64>; 2],
    told: bool,
}

pub(super) fn plan(set: &ResultSet) -> Option<Box<dyn ReadRows>> {
    Some(Box::new(Counters {
        object: set.column(&["objectname"])?,
        counter: set.column(&["countername"])?,
        instance: set.column(&["instancename"]),
        value: set.column(&["cntrvalue"])?,
        kind: set.column(&["cntrtype"]),
        // Here, the name of an instance is that of a counter.
        server: set.column(&SERVER.iter().copied().filter(is_of_server).collect::<Vec<_>>()),
        hits: [None; 2],
        told: false,
    }))
}

fn is_of_server(name: &&str) -> bool {
    *name != "instancename"
}

/// Returns whether values of a type fit the metric.
fn fits(measure: &Metric, kind: Option<&str>) -> bool {
    match kind {
        None => true,
        Some(kind) if measure.is_counter => SUMS.contains(&kind),
        Some(kind) => kind == LEVEL,
    }
}

impl Counters {
    /// Returns the entity of a counter: the database, or the server for sums.
    fn entity(&self, rows: &mut Rows, row: &Row, object: &str) -> EntityId {
        let host = rows.host(row.text(self.server));
        match row.text(self.instance) {
            Some(name) if object == "databases" && name != "_Total" => {
                rows.sheet.entity(EntityKind::Database, name, Some(host))
            }
            _ => host,
        }
    }

    /// Takes one number of the hit ratio, and writes the ratio when both are known.
    fn ratio(
        &mut self,
        rows: &mut Rows,
        at: Stamp,
        host: EntityId,
        (place, value): (usize, Option<f64>),
    ) -> Result<(), ImportError> {
        if let Some(own) = self.hits.get_mut(place) {
            *own = value;
        }
        let [Some(hits), Some(base)] = self.hits else { return Ok(()) };
        self.hits = [None; 2];
        let share = (base > 0.0).then(|| hits / base);
        rows.set(at, host, &m::BUFFER_HIT_SHARE, share)
    }
}

impl ReadRows for Counters {
    fn row(&mut self, rows: &mut Rows, set: &ResultSet, row: &Row) -> Result<(), ImportError> {
        if !self.told {
            self.told = true;
            let more = [self.instance, self.kind, self.server].into_iter().flatten();
            let used: Vec<_> = more.chain([self.object, self.counter, self.value]).collect();
            rows.tell_unused(set, &used);
        }
        let text = |at| row.text(Some(at)).unwrap_or_default().to_lowercase();
        let (object, counter) = (text(self.object), text(self.counter));
        let object = object.split_once(':').map_or(object.as_str(), |(_, object)| object);
        let kind = row.text(self.kind);
        let ratio = [HIT_RATIO, HIT_BASE].into_iter().zip(RATIO).position(|(name, of)| {
            object == "buffer manager" && counter == name && kind.is_none_or(|kind| kind == of)
        });
        let known = COUNTERS.iter().find(|(of, name, measure, _)| {
            *of == object && *name == counter && fits(measure, kind)
        });
        if ratio.is_none() && known.is_none() {
            rows.sheet.unused(&format!("the counter {object}: {counter}"));
            return Ok(());
        }
        let entity = self.entity(rows, row, object);
        let at = rows.stamp(row, entity, known.map_or(HIT_RATIO, |(_, name, ..)| name))?;
        let value = row.number(set, Some(self.value))?;
        match (ratio, known) {
            (Some(place), _) => self.ratio(rows, at, entity, (place, value)),
            (None, Some((_, _, measure, by))) => {
                rows.set(at, entity, measure, value.map(|value| value * by))
            }
            (None, None) => Ok(()),
        }
    }

    fn end(&mut self, _rows: &mut Rows, _set: &ResultSet) -> Result<(), ImportError> {
        self.hits = [None; 2];
        Ok(())
    }
}
