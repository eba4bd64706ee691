//! The columns that identify the file of a row, and the entities that they name.

use crate::results::{ResultSet, Row};
use crate::rows::Rows;
use std::collections::HashMap;
use weir_observe::header::{EntityId, EntityKind};

pub(super) const SERVER: &[&str] =
    &["servername", "server", "sqlinstance", "instancename", "machinename"];
pub(super) const DATABASE: &[&str] = &["databasename", "dbname", "database", "db"];
pub(super) const DATABASE_ID: &[&str] = &["databaseid", "dbid"];
pub(super) const FILE: &[&str] = &[
    "filename",
    "logicalfilename",
    "logicalname",
    "filelogicalname",
    "databasefilename",
    "dbfilename",
    "name",
];
pub(super) const PATH: &[&str] =
    &["physicalname", "physicalfullname", "physicalfilename", "filepath", "physicalpath", "path"];
pub(super) const FILE_ID: &[&str] = &["fileid"];
pub(super) const TYPE: &[&str] = &["typedesc", "filetypedesc", "filetype", "type"];

/// Columns that identify the file of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) server: Option<usize>,
    pub(super) database: Option<usize>,
    pub(super) database_id: Option<usize>,
    pub(super) file: Option<usize>,
    pub(super) path: Option<usize>,
    pub(super) file_id: Option<usize>,
    pub(super) kind: Option<usize>,
}

/// Numbers of files that have no name, within their database and time.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    of_database: HashMap<String, u64>,
    time: Option<String>,
}

impl Numbers {
    pub(super) fn next(&mut self, identity: &Identity, rows: &Rows, row: &Row) -> u64 {
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
    pub(super) fn new(set: &ResultSet) -> Self {
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

    pub(super) fn used(&self) -> impl Iterator<Item = usize> {
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
    pub(super) fn names_files(&self) -> bool {
        self.file.is_some() || self.path.is_some() || self.file_id.is_some()
    }

    /// Builds a key that identifies the file of a row.
    pub(super) fn key(&self, row: &Row, key: &mut String) {
        key.clear();
        for at in self.used() {
            key.push_str(row.text(Some(at)).unwrap_or_default());
            key.push('\u{1f}');
        }
    }

    /// Returns the key of the database of a row.
    pub(super) fn database_key(&self, row: &Row) -> String {
        let columns = [self.server, self.database, self.database_id];
        columns.map(|at| row.text(at).unwrap_or_default()).join("\u{1f}")
    }

    pub(super) fn host(&self, rows: &mut Rows, row: &Row) -> EntityId {
        rows.host(row.text(self.server))
    }

    /// Returns the database of a row.
    pub(super) fn database(&self, rows: &mut Rows, row: &Row) -> Option<EntityId> {
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
    pub(super) fn file(&self, rows: &mut Rows, row: &Row, number: u64) -> EntityId {
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
    pub(super) fn role(&self, rows: &Rows, row: &Row, parent: EntityId) -> Option<String> {
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
