//! Result sets of SQL Server and of Azure SQL, as sqlcmd, Management Studio, Azure Data Studio and
//! collectors save them.
//!
//! An input may have several result sets of several kinds, which are recognized by their columns.
//!
//! | module | holds |
//! |---|---|
//! | `files` | files: `sys.dm_io_virtual_file_stats`, `sys.master_files` and similar |
//! | `interval` | `file_stats` of qpi: activity of files in an interval |
//! | `counters` | `sys.dm_os_performance_counters` |
//! | `waits` | `sys.dm_os_wait_stats` and tables of waits by minutes |
//! | `resources` | `sys.dm_db_resource_stats`, `sys.server_resource_stats`, governed limits |
//! | `pivots` | the pivoted tables of telegraf's first `sqlserver` plugin |

/// The T-SQL script that queries a server for these result sets.
pub const SCRIPT: &str = include_str!("../scripts/sqlserver.sql");

mod counters;
mod files;
mod interval;
mod pivots;
mod resources;
mod waits;

use super::kind::{By, Kind};

use super::ImportError;
use super::kind::Bytes;
use super::merge::Options;
use super::results::{ResultSet, Row, heads};
use super::rows::{ReadRows, RowReader, Rows};
use super::sheet::ReadSamples;
use std::collections::HashMap;
use weir_observe::header::{EntityId, EntityKind};

pub(crate) fn recognizes(text: &str) -> bool {
    heads(text).iter().any(|set| plan(set).is_some())
}

pub(crate) fn open(input: Bytes, options: &Options) -> Result<Box<dyn ReadSamples>, ImportError> {
    RowReader::open(input, options, plan)
}

/// Returns the reader of a result set; the most specific first.
pub(crate) fn plan(set: &ResultSet) -> Option<Box<dyn ReadRows>> {
    pivots::plan(set)
        .or_else(|| counters::plan(set))
        .or_else(|| waits::plan(set))
        .or_else(|| interval::plan(set))
        .or_else(|| resources::plan(set))
        .or_else(|| files::plan(set))
}

const SERVER: &[&str] = &["servername", "server", "sqlinstance", "instancename", "machinename"];
const DATABASE: &[&str] = &["databasename", "dbname", "database", "db"];
const DATABASE_ID: &[&str] = &["databaseid", "dbid"];
const FILE: &[&str] = &[
    "filename",
    "logicalfilename",
    "logicalname",
    "filelogicalname",
    "databasefilename",
    "dbfilename",
    "name",
];
const PATH: &[&str] =
    &["physicalname", "physicalfullname", "physicalfilename", "filepath", "physicalpath", "path"];
const FILE_ID: &[&str] = &["fileid"];
const TYPE: &[&str] = &["typedesc", "filetypedesc", "filetype", "type"];

/// Columns that identify the file of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Identity {
    server: Option<usize>,
    database: Option<usize>,
    database_id: Option<usize>,
    file: Option<usize>,
    path: Option<usize>,
    file_id: Option<usize>,
    kind: Option<usize>,
}

/// Numbers of files that have no name, within their database and time.
#[derive(Debug, Default)]
struct Numbers {
    of_database: HashMap<String, u64>,
    time: Option<String>,
}

impl Numbers {
    fn next(&mut self, identity: &Identity, rows: &Rows, row: &Row) -> u64 {
        let time = rows.time_text(row);
        if time != self.time.as_deref() {
            self.time = time.map(str::to_owned);
            self.of_database.clear();
        }
        let number = self.of_database.entry(identity.database_key(row)).or_default();
        *number += 1;
        *number
    }
}

impl Identity {
    fn of(set: &ResultSet) -> Self {
        Self {
            server: set.column(SERVER),
            database: set.column(DATABASE),
            database_id: set.column(DATABASE_ID),
            file: set.column(FILE),
            path: set.column(PATH),
            file_id: set.column(FILE_ID),
            kind: set.column(TYPE),
        }
    }

    fn used(&self) -> impl Iterator<Item = usize> {
        let all = [
            self.server,
            self.database,
            self.database_id,
            self.file,
            self.path,
            self.file_id,
            self.kind,
        ];
        all.into_iter().flatten()
    }

    /// Returns whether rows identify their file, and not only their database.
    fn names_files(&self) -> bool {
        self.file.is_some() || self.path.is_some() || self.file_id.is_some()
    }

    /// Builds a key that identifies the file of a row.
    fn key(&self, row: &Row, key: &mut String) {
        key.clear();
        for at in self.used() {
            key.push_str(row.text(Some(at)).unwrap_or_default());
            key.push('\u{1f}');
        }
    }

    /// Returns the key of the database of a row.
    fn database_key(&self, row: &Row) -> String {
        let columns = [self.server, self.database, self.database_id];
        columns.map(|at| row.text(at).unwrap_or_default()).join("\u{1f}")
    }

    fn host(&self, rows: &mut Rows, row: &Row) -> EntityId {
        rows.host(row.text(self.server))
    }

    /// Returns the database of a row.
    fn database(&self, rows: &mut Rows, row: &Row) -> Option<EntityId> {
        let host = self.host(rows, row);
        let id = row.text(self.database_id);
        let learnt = || rows.names.get(id?).cloned();
        let name = row.text(self.database).map(str::to_owned).or_else(learnt);
        let name = name.or_else(|| {
            let id = id?;
            Some(of_system(id).map_or_else(|| format!("database {id}"), str::to_owned))
        })?;
        Some(rows.sheet.entity(EntityKind::Database, &name, Some(host)))
    }

    /// Returns the file of a row with its attributes; one without a name is called by `number`.
    fn file(&self, rows: &mut Rows, row: &Row, number: u64) -> EntityId {
        let ids = (row.text(self.database_id), row.text(self.file_id));
        let of_ids = match ids {
            (Some(database), Some(file)) => Some(format!("{database}/{file}")),
            _ => None,
        };
        let learnt = of_ids.as_ref().and_then(|ids| rows.names.get(ids).cloned());
        let path = row.text(self.path);
        let known = row.text(self.file).map(str::to_owned).or(learnt);
        if let (Some(ids), Some(name)) = (of_ids, &known) {
            rows.names.insert(ids, name.clone());
        }
        if let (Some(id), Some(name)) = (ids.0, row.text(self.database)) {
            rows.names.insert(id.to_owned(), name.to_owned());
        }
        let of_path = || path.and_then(|path| path.rsplit(['\\', '/']).next()).map(str::to_owned);
        let of_id = || ids.1.map(|id| format!("file {id}"));
        let name =
            known.or_else(of_path).or_else(of_id).unwrap_or_else(|| format!("file {number}"));
        let parent = match self.database(rows, row) {
            Some(database) => database,
            None => self.host(rows, row),
        };
        let file = rows.sheet.entity(EntityKind::File, &name, Some(parent));
        if let Some(role) = self.role(rows, row, parent) {
            rows.sheet.attribute(file, "role", role.as_str());
        }
        if let Some(path) = path {
            rows.sheet.attribute(file, "physical_name", path);
        }
        file
    }

    /// Returns the role of a file by its type, the end of its path, or its number: the second file
    /// of a database is its log.
    fn role(&self, rows: &Rows, row: &Row, parent: EntityId) -> Option<String> {
        let is_temporary = || {
            let parent = rows.sheet.contents.entity(parent);
            parent.is_some_and(|parent| parent.name.eq_ignore_ascii_case("tempdb"))
        };
        let data = || if is_temporary() { "tempdb" } else { "data" };
        let path = row.text(self.path).unwrap_or_default().to_lowercase();
        let role = match row.text(self.kind).map(str::to_lowercase) {
            Some(kind) if kind == "log" || kind == "1" => "log",
            Some(kind) if ["rows", "data", "0", "rows data"].contains(&kind.as_str()) => data(),
            Some(kind) => return Some(kind),
            None if path.ends_with(".ldf") => "log",
            None if path.ends_with(".mdf") || path.ends_with(".ndf") => data(),
            None if row.text(self.file_id) == Some("2") => "log",
            None => return None,
        };
        Some(role.to_owned())
    }
}

/// Returns the name of a database with the same number in every instance.
fn of_system(id: &str) -> Option<&'static str> {
    Some(match id {
        "1" => "master",
        "2" => "tempdb",
        "3" => "model",
        "4" => "msdb",
        "32767" => "mssqlsystemresource",
        _ => return None,
    })
}

/// The kinds, most specific first.
pub(super) const KINDS: &[Kind] = &[Kind {
    name: "sqlserver",
    about: "result sets of SQL Server: files, waits, counters, resources",
    recognizes: By::Text(recognizes),
    open,
}];
