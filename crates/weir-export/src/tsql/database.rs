//! Databases and their files, as statements name them.

use crate::change::{Change, Fate};
use crate::error::ExportError;
use crate::options::{Options, refused};
use crate::quote::{sql, sql_name};
use crate::site::DbFile;
use weir_layout::Role;
use weir_units::Bytes;

/// The page size, in which SQL Server counts file sizes.
const PAGE: u64 = 8 << 10;

/// The context of a script.
pub(super) struct Tsql<'a> {
    pub(super) change: &'a Change,
    pub(super) options: &'a Options,
    pub(super) databases: Vec<Database<'a>>,
}

/// A database and its files.
pub(super) struct Database<'a> {
    /// The name; `None` for the database in which the script runs.
    pub(super) name: Option<&'a str>,
    pub(super) files: Vec<Fate<'a, DbFile>>,
}

impl<'a> Database<'a> {
    /// Returns the databases, in the order of their files.
    pub(super) fn all(
        files: &[Fate<'a, DbFile>],
        options: &'a Options,
    ) -> Result<Vec<Self>, ExportError> {
        let mut all: Vec<Self> = Vec::new();
        let mut is_used = false;
        for fate in files {
            let file = fate.subject();
            let name = match file.role {
                Role::Backup => continue,
                Role::Tempdb => Some("tempdb"),
                Role::Data | Role::Log => {
                    is_used |= file.database.is_none();
                    file.database.as_deref().or(options.database.as_deref())
                }
            };
            match all.iter_mut().find(|own| own.name == name) {
                Some(own) => own.files.push(*fate),
                None => all.push(Self { name, files: vec![*fate] }),
            }
        }
        match &options.database {
            Some(name) if !is_used => Err(refused(
                format!("--database {name}"),
                "every file of the layout has its database; leave it out".to_owned(),
            )),
            _ => Ok(all),
        }
    }

    pub(super) fn is_tempdb(&self) -> bool {
        self.name == Some("tempdb")
    }

    /// Returns whether any file changes.
    pub(super) fn changes(&self) -> bool {
        !self.files.iter().all(Fate::is_same)
    }

    /// Returns the expression for the database's id.
    pub(super) fn id(&self) -> String {
        self.name.map_or_else(|| "DB_ID()".to_owned(), |name| format!("DB_ID({})", sql(name)))
    }

    /// Returns the name as `ALTER DATABASE` takes it.
    pub(super) fn target(&self) -> String {
        self.name.map_or_else(|| "CURRENT".to_owned(), sql_name)
    }

    /// Returns the prefix for names of the database's catalog.
    pub(super) fn prefix(&self) -> String {
        self.name.map(|name| format!("{}.", sql_name(name))).unwrap_or_default()
    }

    /// Returns the name for messages.
    pub(super) fn words(&self) -> String {
        self.name.map_or_else(|| "the current database".to_owned(), sql_name)
    }

    /// Returns the name of a file for messages.
    pub(super) fn file_words(&self, file: &DbFile) -> String {
        let name = sql_name(&file.name);
        self.name.map_or_else(|| name.clone(), |own| format!("{}.{name}", sql_name(own)))
    }

    /// Returns the condition that selects a file in the server's catalog.
    pub(super) fn row(&self, file: &DbFile) -> String {
        format!("{} AND name = {}", self.rows(is_log(file)), sql(&file.name))
    }

    pub(super) fn rows(&self, logs: bool) -> String {
        let kind = u8::from(logs);
        format!("FROM sys.master_files WHERE database_id = {} AND type = {kind}", self.id())
    }

    /// Returns the wanted files, either logs or data.
    pub(super) fn wanted(&self, logs: bool) -> Vec<&'a DbFile> {
        let wanted = self.files.iter().filter_map(|fate| fate.wanted());
        wanted.filter(|file| is_log(file) == logs).collect()
    }
}

pub(super) fn is_log(file: &DbFile) -> bool {
    file.role == Role::Log
}

/// Returns a size as `SIZE` and `FILEGROWTH` take it: a whole number of the largest unit.
pub(super) fn size(change: &Change, file: &DbFile, bytes: Bytes) -> Result<String, ExportError> {
    let units = [("GB", 30), ("MB", 20), ("KB", 10)];
    let whole = units.into_iter().find(|(_, shift)| bytes.get().is_multiple_of(1 << shift));
    let number = whole.map(|(unit, shift)| (bytes.get() >> shift, unit));
    match number {
        Some((n, unit)) if i32::try_from(n).is_ok() => Ok(format!("{n}{unit}")),
        _ => Err(ExportError::Cannot {
            layout: change.new.layout.clone(),
            what: format!("file {:?}", file.own),
            kind: "tsql",
            reason: format!(
                "{} is not a whole number of KB; use sizes like 129 GiB",
                bytes.exact()
            ),
        }),
    }
}

/// Returns a size in pages.
pub(super) fn pages(bytes: Bytes) -> u64 {
    bytes.get().div_ceil(PAGE)
}

impl Tsql<'_> {
    pub(super) fn is_managed(&self) -> bool {
        self.change.new.instance.is_some()
    }
}
