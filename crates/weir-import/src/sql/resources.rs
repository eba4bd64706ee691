//! Resource use in Azure SQL: `sys.dm_db_resource_stats`, `sys.resource_stats` and
//! `sys.server_resource_stats`, as shares of limits or as counts of an interval, in any order; and
//! the governing limits.

use super::identity::{DATABASE, Identity, SERVER};
use crate::error::ImportError;
use crate::results::{ResultSet, Row};
use crate::rows::{Columns, Meaning, ReadRows, Rows, columns};
use std::collections::HashMap;
use weir_observe::header::{EntityId, EntityKind};
use weir_observe::metric as m;
use weir_observe::moment::Clock;

const MIB: f64 = 1024.0 * 1024.0;
const PERCENT: f64 = 0.01;
/// The interval of `sys.server_resource_stats` and `sys.dm_db_resource_stats`, in seconds.
const INTERVAL: f64 = 15.0;

pub(super) fn plan(set: &ResultSet) -> Option<Box<dyn ReadRows>> {
    server(set).or_else(|| database(set)).or_else(|| limits(set))
}

/// Shares of limits of a database.
const OF_DATABASE: &[Meaning] = &[
    (&["avgcpupercent"], &m::CPU, PERCENT),
    (&["avgdataiopercent"], &m::DATA_IO_SHARE, PERCENT),
    (&["avglogwritepercent"], &m::LOG_WRITE_SHARE, PERCENT),
    (&["avgmemoryusagepercent"], &m::MEMORY_SHARE, PERCENT),
    (&["maxworkerpercent"], &m::WORKER_SHARE, PERCENT),
    (&["maxsessionpercent"], &m::SESSION_SHARE, PERCENT),
    (&["storageinmegabytes", "usedstorageinmegabytes"], &m::SIZE_ON_DISK_BYTES, MIB),
];

/// Shares of limits of its instance.
const OF_INSTANCE: &[Meaning] = &[
    (&["avginstancecpupercent"], &m::CPU, PERCENT),
    (&["avginstancememorypercent"], &m::MEMORY_SHARE, PERCENT),
];

struct Database {
    name: Option<usize>,
    server: Option<usize>,
    own: Columns,
    instance: Columns,
    dtu: Option<usize>,
    vcores: Option<usize>,
    told: bool,
}

fn database(set: &ResultSet) -> Option<Box<dyn ReadRows>> {
    if !set.has(&["avgdataiopercent", "avglogwritepercent"]) {
        return None;
    }
    Some(Box::new(Database {
        name: set.column(DATABASE).or_else(|| set.column(&["elasticpoolname"])),
        server: set.column(SERVER),
        own: columns(set, OF_DATABASE),
        instance: columns(set, OF_INSTANCE),
        dtu: set.column(&["dtulimit"]),
        vcores: set.column(&["cpulimit"]),
        told: false,
    }))
}

impl ReadRows for Database {
    fn row(&mut self, rows: &mut Rows, set: &ResultSet, row: &Row) -> Result<(), ImportError> {
        rows.is_utc();
        if !self.told {
            self.told = true;
            let own = self.own.iter().chain(&self.instance).map(|(at, _, _)| *at);
            let more = [self.name, self.server, self.dtu, self.vcores, set.column(START)];
            let used: Vec<_> = own.chain(more.into_iter().flatten()).collect();
            rows.tell_unused(set, &used);
            if self.name.is_none() {
                rows.sheet.note("it does not name its database: it is called \"database\"");
            }
        }
        let host = rows.host(row.text(self.server));
        let name = row.text(self.name).unwrap_or("database");
        let database = rows.sheet.entity(EntityKind::Database, name, Some(host));
        let positive = |number: Option<f64>| number.filter(|number| *number > 0.0);
        rows.attribute(database, "dtu_limit", positive(row.number(set, self.dtu)?));
        rows.attribute(database, "vcores", positive(row.number(set, self.vcores)?));
        let at = rows.stamp(row, database, "resources")?;
        rows.set_all(at, host, (set, row), &self.instance)?;
        rows.set_all(at, database, (set, row), &self.own)
    }
}

const START: &[&str] = &["starttime"];
const OF_SERVER: &[Meaning] = &[
    (&["avgcpupercent"], &m::CPU, PERCENT),
    (&["storagespaceusedmb"], &m::SIZE_ON_DISK_BYTES, MIB),
];
/// Counts of an interval, read as rates.
const COUNTS: &[Meaning] = &[
    (&["iorequests"], &m::OPERATIONS_PER_S, 1.0),
    (&["iobytesread"], &m::READ_BYTES_PER_S, 1.0),
    (&["iobyteswritten"], &m::WRITE_BYTES_PER_S, 1.0),
];

struct Server {
    name: Option<usize>,
    start: Option<usize>,
    end: Option<usize>,
    sku: Option<usize>,
    vcores: Option<usize>,
    storage: Option<usize>,
    own: Columns,
    counts: Columns,
    told: bool,
}

fn server(set: &ResultSet) -> Option<Box<dyn ReadRows>> {
    let counts = columns(set, COUNTS);
    if !set.has(&["iorequests"]) || counts.len() < 2 {
        return None;
    }
    Some(Box::new(Server {
        name: set.column(&["resourcename", "servername"]),
        start: set.column(START),
        end: set.column(&["endtime"]),
        sku: set.column(&["sku"]),
        vcores: set.column(&["virtualcorecount"]),
        storage: set.column(&["reservedstoragemb"]),
        own: columns(set, OF_SERVER),
        counts,
        told: false,
    }))
}

impl Server {
    /// Returns the interval of a row, in seconds.
    fn seconds(&self, rows: &mut Rows, row: &Row) -> f64 {
        let clock = Clock::default();
        let moment = |at| clock.moment(row.text(at)?);
        let told = || moment(self.end)?.checked_sub(moment(self.start)?);
        match told().filter(|nanos| *nanos > 0) {
            #[expect(clippy::cast_precision_loss, reason = "seconds")]
            Some(nanos) => nanos as f64 / 1e9,
            None => {
                rows.sheet.unused("starts of intervals that are missing: taken for 15 s each");
                INTERVAL
            }
        }
    }

    fn describe(
        &self,
        rows: &mut Rows,
        set: &ResultSet,
        row: &Row,
    ) -> Result<EntityId, ImportError> {
        let host = rows.host(row.text(self.name));
        if let Some(sku) = row.text(self.sku) {
            let tier = match sku {
                "GeneralPurpose" => "gp",
                "BusinessCritical" => "bc",
                other => other,
            };
            rows.sheet.attribute(host, "managed_instance", tier);
        }
        rows.attribute(host, "vcores", row.number(set, self.vcores)?);
        let storage = row.number(set, self.storage)?;
        rows.attribute(host, "storage_bytes", storage.map(|storage| storage * MIB));
        Ok(host)
    }
}

impl ReadRows for Server {
    fn row(&mut self, rows: &mut Rows, set: &ResultSet, row: &Row) -> Result<(), ImportError> {
        rows.is_utc();
        if !self.told {
            self.told = true;
            let own = self.own.iter().chain(&self.counts).map(|(at, _, _)| *at);
            let more = [self.name, self.start, self.end, self.sku, self.vcores, self.storage];
            let used: Vec<_> = own.chain(more.into_iter().flatten()).collect();
            rows.tell_unused(set, &used);
        }
        let host = self.describe(rows, set, row)?;
        let at = rows.stamp(row, host, "resources")?;
        rows.set_all(at, host, (set, row), &self.own)?;
        let seconds = self.seconds(rows, row);
        for (column, measure, by) in &self.counts {
            let count = row.number(set, Some(*column))?;
            rows.set(at, host, measure, count.map(|count| count * by / seconds))?;
        }
        Ok(())
    }
}

/// The owner of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    Database,
    Host,
}

/// Columns of `sys.dm_user_db_resource_governance` and `sys.dm_instance_resource_governance`, and
/// their attributes. Log rates are in bytes per second.
const LIMITS: &[(&str, Whose, &str, f64)] = &[
    ("primarygroupmaxio", Whose::Database, "iops_limit", 1.0),
    ("primarymaxlograte", Whose::Database, "log_bytes_per_s_limit", 1.0),
    ("cpulimit", Whose::Database, "vcores", 1.0),
    ("dtulimit", Whose::Database, "dtu_limit", 1.0),
    ("maxdbmaxsizeinmb", Whose::Database, "max_size_bytes", MIB),
    ("instancemaxlograte", Whose::Host, "log_bytes_per_s_limit", 1.0),
    ("instancemaxworkerthreads", Whose::Host, "worker_limit", 1.0),
    ("poolmaxio", Whose::Host, "pool_iops_limit", 1.0),
    ("volumelocaliops", Whose::Host, "volume_local_iops_limit", 1.0),
    ("volumemanagedxstoreiops", Whose::Host, "volume_managed_xstore_iops_limit", 1.0),
    ("volumeexternalxstoreiops", Whose::Host, "volume_external_xstore_iops_limit", 1.0),
    ("volumetypelocaliops", Whose::Host, "volume_type_local_iops_limit", 1.0),
    ("volumetypemanagedxstoreiops", Whose::Host, "volume_type_managed_xstore_iops_limit", 1.0),
    ("volumetypeexternalxstoreiops", Whose::Host, "volume_type_external_xstore_iops_limit", 1.0),
    ("volumepfsiops", Whose::Host, "volume_pfs_iops_limit", 1.0),
    ("volumetypepfsiops", Whose::Host, "volume_type_pfs_iops_limit", 1.0),
    ("userdatadirectoryspacequotamb", Whose::Host, "local_storage_bytes", MIB),
];

/// Columns that only a set of limits has.
const GOVERNED: &[&str] =
    &["instancemaxlograte", "primarymaxlograte", "primarygroupmaxio", "volumelocaliops"];

struct Limits {
    identity: Identity,
    objective: Option<usize>,
    /// First values of limits, and whether they have changed since.
    first: HashMap<(EntityId, &'static str), (f64, bool)>,
    told: bool,
}

fn limits(set: &ResultSet) -> Option<Box<dyn ReadRows>> {
    if !set.has(GOVERNED) {
        return None;
    }
    let (identity, objective) = (Identity::new(set), set.column(&["sloname"]));
    Some(Box::new(Limits { identity, objective, first: HashMap::new(), told: false }))
}

impl Limits {
    /// Records a limit. Once it changes, it becomes a gauge with the name of its attribute.
    fn follow(
        &mut self,
        rows: &mut Rows,
        row: &Row,
        whose: (EntityId, &'static str),
        limit: f64,
    ) -> Result<(), ImportError> {
        let (first, has_changed) = self.first.entry(whose).or_insert((limit, false));
        *has_changed |= first.total_cmp(&limit).is_ne();
        if !*has_changed {
            return Ok(());
        }
        let (entity, attribute) = whose;
        match m::named(attribute).filter(|_| rows.is_dated()) {
            Some(measure) => {
                let at = rows.stamp(row, entity, attribute)?;
                rows.set(at, entity, measure, Some(limit))
            }
            None => {
                rows.sheet.unused(&format!("{attribute} that changes on the way"));
                Ok(())
            }
        }
    }
}

impl ReadRows for Limits {
    fn row(&mut self, rows: &mut Rows, set: &ResultSet, row: &Row) -> Result<(), ImportError> {
        if !self.told {
            self.told = true;
            let limits = LIMITS.iter().filter_map(|(name, ..)| set.column(&[name]));
            let used: Vec<_> = limits.chain(self.identity.used()).chain(self.objective).collect();
            rows.tell_unused(set, &used);
        }
        let host = self.identity.host(rows, row);
        let database = self.identity.database(rows, row);
        for (name, whose, attribute, by) in LIMITS {
            // 0 is no limit.
            let limit = row.number(set, set.column(&[name]))?.filter(|limit| *limit > 0.0);
            let entity = match (whose, database) {
                (Whose::Database, Some(database)) => database,
                _ => host,
            };
            let limit = limit.map(|limit| limit * by);
            rows.attribute(entity, attribute, limit);
            if let Some(limit) = limit {
                self.follow(rows, row, (entity, attribute), limit)?;
            }
        }
        if let Some(objective) = row.text(self.objective) {
            rows.sheet.attribute(database.unwrap_or(host), "size", objective);
        }
        if rows.is_dated() {
            return rows.stamp(row, host, "limits").map(drop);
        }
        rows.without_time()
    }
}
