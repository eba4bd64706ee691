//! `pg_stat_io`, `pg_stat_database`, `pg_stat_bgwriter`, `pg_stat_checkpointer` and `pg_stat_wal`,
//! of versions 10 to 18: delimited, as psql aligns them, as records of `\x`, watched with
//! `\watch`, or in JSON.
//!
//! Times are 0 with `track_io_timing` off, so a time of 0 means that it was not measured.

use crate::error::ImportError;
use crate::kind::{By, Bytes, Kind, Sign};
use crate::options::Options;
use crate::results::{ResultSet, Row, heads};
use crate::rows::{Columns, Meaning, ReadRows, RowReader, Rows, columns};
use crate::sheet::ReadSamples;
use crate::window::Stamp;
use weir_observe::header::{EntityId, EntityKind};
use weir_observe::metric::{self as m, Metric};

pub(crate) const KIND: Kind = Kind {
    name: "postgres",
    about: "pg_stat_io, pg_stat_database and other statistics of PostgreSQL",
    recognizes: By::Text(recognizes),
    open,
    signs: &[
        &[
            Sign::Word(&["datname"]),
            Sign::Word(&["blks_read"]),
            Sign::Word(&["blks_hit"]),
            Sign::Word(&["xact_commit"]),
        ],
        &[
            Sign::Word(&["backend_type"]),
            Sign::Word(&["object"]),
            Sign::Word(&["context"]),
            Sign::Word(&["reads"]),
        ],
        &[Sign::Word(&["wait_event_type"]), Sign::Word(&["wait_event"]), Sign::Word(&["state"])],
        &[
            Sign::Word(&["checkpoints_timed", "num_timed"]),
            Sign::Word(&["checkpoints_req", "num_requested"]),
            Sign::Word(&["buffers_checkpoint", "buffers_written"]),
        ],
        &[Sign::Word(&["wal_records"]), Sign::Word(&["wal_bytes"]), Sign::Word(&["wal_write"])],
    ],
};

/// The size of a page, which builds rarely change.
const PAGE: f64 = 8192.0;

fn recognizes(text: &str) -> bool {
    heads(text).iter().any(|set| plan(set).is_some())
}

fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    RowReader::open(input, options, plan)
}

const IO: &[Meaning] = &[
    (&["reads"], &m::READS, 1.0),
    (&["readbytes"], &m::READ_BYTES, 1.0),
    (&["writes"], &m::WRITES, 1.0),
    (&["writebytes"], &m::WRITE_BYTES, 1.0),
    (&["extends"], &m::EXTENDS, 1.0),
    (&["extendbytes"], &m::EXTEND_BYTES, 1.0),
    (&["fsyncs"], &m::FLUSHES, 1.0),
    (&["hits"], &m::PAGE_HITS, 1.0),
    (&["evictions"], &m::PAGES_EVICTED, 1.0),
    (&["readtime"], &m::IO_STALL_READ_MS, 1.0),
    (&["writetime"], &m::IO_STALL_WRITE_MS, 1.0),
    (&["extendtime"], &m::EXTEND_TIME_MS, 1.0),
    (&["fsynctime"], &m::FLUSH_TIME_MS, 1.0),
];

const DATABASE: &[Meaning] = &[
    (&["xactcommit"], &m::TRANSACTIONS, 1.0),
    (&["xactrollback"], &m::TRANSACTIONS_ROLLED_BACK, 1.0),
    (&["numbackends"], &m::USERS, 1.0),
    (&["blksread"], &m::PAGE_MISSES, 1.0),
    (&["tempbytes"], &m::TEMP_BYTES, 1.0),
    (&["blkreadtime"], &m::IO_STALL_READ_MS, 1.0),
    (&["blkwritetime"], &m::IO_STALL_WRITE_MS, 1.0),
];

/// Columns of `pg_stat_bgwriter`, which had the checkpoints until version 16, and of
/// `pg_stat_checkpointer`, which has them since.
const CHECKPOINTS: &[Meaning] = &[
    (&["checkpointstimed", "numtimed"], &m::CHECKPOINTS_TIMED, 1.0),
    (&["checkpointsreq", "numrequested"], &m::CHECKPOINTS_REQUESTED, 1.0),
    (&["checkpointwritetime", "writetime"], &m::CHECKPOINT_WRITE_TIME_MS, 1.0),
    (&["checkpointsynctime", "synctime"], &m::CHECKPOINT_SYNC_TIME_MS, 1.0),
    (&["bufferscheckpoint", "bufferswritten"], &m::CHECKPOINT_BYTES, PAGE),
    (&["buffersclean"], &m::CLEANED_BYTES, PAGE),
    (&["buffersbackend"], &m::BACKEND_WRITE_BYTES, PAGE),
    (&["buffersalloc"], &m::ALLOCATED_BYTES, PAGE),
];

const WAL: &[Meaning] = &[
    (&["walrecords"], &m::WAL_RECORDS, 1.0),
    (&["walbytes"], &m::WAL_BYTES, 1.0),
    (&["walwrite"], &m::WAL_WRITES, 1.0),
    (&["walsync"], &m::WAL_SYNCS, 1.0),
    (&["walwritetime"], &m::WAL_WRITE_TIME_MS, 1.0),
    (&["walsynctime"], &m::WAL_SYNC_TIME_MS, 1.0),
    (&["walbuffersfull"], &m::WAL_BUFFERS_FULL, 1.0),
];

/// Times, with the counts that show whether they were measured.
const TIMED: &[(&Metric, &Metric)] = &[
    (&m::IO_STALL_READ_MS, &m::READS),
    (&m::IO_STALL_WRITE_MS, &m::WRITES),
    (&m::EXTEND_TIME_MS, &m::EXTENDS),
    (&m::FLUSH_TIME_MS, &m::FLUSHES),
    (&m::WAL_WRITE_TIME_MS, &m::WAL_WRITES),
    (&m::WAL_SYNC_TIME_MS, &m::WAL_SYNCS),
];

/// The subject of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Whose {
    /// Backends of a type, by object and context.
    Backends { kind: usize, object: usize, context: Option<usize>, page: Option<usize> },
    /// A database; shared objects have no database name.
    Database { name: usize, hits: Option<usize> },
    /// A view of the whole server.
    Server,
}

struct Stat {
    whose: Whose,
    values: Columns,
    reset: Option<usize>,
    told: bool,
}

pub(crate) fn plan(set: &ResultSet) -> Option<Box<dyn ReadRows>> {
    let (whose, meanings) = if let (Some(kind), Some(object)) =
        (set.column(&["backendtype"]), set.column(&["object"]))
    {
        let (context, page) = (set.column(&["context"]), set.column(&["opbytes"]));
        (Whose::Backends { kind, object, context, page }, IO)
    } else if let (Some(name), true) =
        (set.column(&["datname"]), set.has(&["blksread", "xactcommit"]))
    {
        (Whose::Database { name, hits: set.column(&["blkshit"]) }, DATABASE)
    } else if set.has(&["bufferscheckpoint", "buffersclean", "numrequested"]) {
        (Whose::Server, CHECKPOINTS)
    } else if set.has(&["walrecords"]) && set.has(&["walbytes"]) && !set.has(&["query", "queryid"])
    {
        (Whose::Server, WAL)
    } else {
        return super::activity::plan(set);
    };
    let values = columns(set, meanings);
    if values.is_empty() {
        return None;
    }
    Some(Box::new(Stat { whose, values, reset: set.column(&["statsreset"]), told: false }))
}

impl Stat {
    fn tell(&mut self, rows: &mut Rows, set: &ResultSet) {
        if self.told {
            return;
        }
        self.told = true;
        let mut used: Vec<_> = self.values.iter().map(|(at, _, _)| *at).collect();
        used.extend(self.reset);
        used.extend(set.column(&["datid"]));
        match &self.whose {
            Whose::Backends { kind, object, context, page } => {
                used.extend([*kind, *object]);
                used.extend(context.iter().chain(page));
            }
            Whose::Database { name, hits } => used.extend([*name].iter().chain(hits)),
            Whose::Server => {}
        }
        rows.tell_unused(set, &used);
        if self.values.iter().any(|(_, _, by)| by.total_cmp(&PAGE).is_eq()) {
            rows.sheet.note("its buffers are assumed to be pages of 8 KiB");
        }
    }

    fn entity(&self, rows: &mut Rows, row: &Row) -> EntityId {
        let host = rows.host(None);
        match &self.whose {
            Whose::Server => host,
            Whose::Database { name, .. } => {
                let name = row.text(Some(*name)).unwrap_or("shared objects");
                rows.sheet.entity(EntityKind::Database, name, Some(host))
            }
            Whose::Backends { kind, object, context, .. } => {
                let parts = [Some(*kind), Some(*object), *context];
                let words: Vec<_> = parts.iter().filter_map(|at| row.text(*at)).collect();
                let kind = EntityKind::Other("io".to_owned());
                rows.sheet.entity(kind, &words.join(" / "), Some(host))
            }
        }
    }

    /// Notes the time of the last reset.
    fn tell_reset(&self, rows: &mut Rows, row: &Row) {
        if let Some(reset) = row.text(self.reset) {
            rows.sheet.about("counted since", reset);
        }
    }

    /// Returns the value of a metric.
    fn value(
        &self,
        set: &ResultSet,
        row: &Row,
        wanted: &Metric,
    ) -> Result<Option<f64>, ImportError> {
        let column = self.values.iter().find(|(_, measure, _)| *measure == wanted);
        row.number(set, column.map(|(at, _, _)| *at))
    }

    /// Returns whether a time is 0 because it was not measured.
    fn is_untimed(
        &self,
        (set, row): (&ResultSet, &Row),
        measure: &Metric,
        value: f64,
    ) -> Result<bool, ImportError> {
        if value > 0.0 {
            return Ok(false);
        }
        let is_some = |measure: &Metric| -> Result<bool, ImportError> {
            Ok(self.value(set, row, measure)?.is_some_and(|value| value > 0.0))
        };
        if matches!(self.whose, Whose::Database { .. }) {
            let reads = [&m::IO_STALL_READ_MS, &m::IO_STALL_WRITE_MS];
            let is_time = reads.contains(&measure);
            return Ok(is_time && is_some(&m::PAGE_MISSES)? && !is_some(&m::IO_STALL_READ_MS)?);
        }
        for (_, count) in TIMED.iter().filter(|(time, _)| *time == measure) {
            if is_some(count)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes counters computed from several columns.
    fn put_counted(
        &self,
        rows: &mut Rows,
        (set, row): (&ResultSet, &Row),
        at: Stamp,
        entity: EntityId,
    ) -> Result<(), ImportError> {
        match &self.whose {
            Whose::Database { hits, .. } => {
                let misses = self.value(set, row, &m::PAGE_MISSES)?;
                let hits = row.number(set, *hits)?;
                let lookups = hits.and_then(|hits| Some(hits + misses?));
                rows.set(at, entity, &m::PAGE_LOOKUPS, lookups)
            }
            Whose::Backends { page: Some(page), .. } => {
                // Until version 17, bytes are counts of pages, with the page size in the row.
                let page = row.number(set, Some(*page))?;
                for (count, bytes) in [
                    (&m::READS, &m::READ_BYTES),
                    (&m::WRITES, &m::WRITE_BYTES),
                    (&m::EXTENDS, &m::EXTEND_BYTES),
                ] {
                    let count = self.value(set, row, count)?;
                    rows.set(at, entity, bytes, count.and_then(|count| Some(count * page?)))?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl ReadRows for Stat {
    fn row(&mut self, rows: &mut Rows, set: &ResultSet, row: &Row) -> Result<(), ImportError> {
        self.tell(rows, set);
        let entity = self.entity(rows, row);
        self.tell_reset(rows, row);
        let what = self.values.first().map_or("", |(_, measure, _)| measure.name);
        let at = rows.stamp(row, entity, what)?;
        for (column, measure, by) in &self.values {
            let Some(value) = row.number(set, Some(*column))? else { continue };
            if self.is_untimed((set, row), measure, value)? {
                rows.sheet.unused("times of 0 of what was done: it was not timed");
                continue;
            }
            rows.set(at, entity, measure, Some(value * by))?;
        }
        self.put_counted(rows, (set, row), at, entity)
    }
}
