//! Database files, as T-SQL.
//!
//! The script is one batch without client variables, so that every client can run it. Everything is
//! checked before the first change, and each change is skipped if it is already made. Existing
//! files grow before new ones are added, because new pages go to files by their free space.

mod checks;
mod database;
mod steps;

use crate::change::{Change, Fate};
use crate::error::ExportError;
use crate::options::{Options, refused};
use crate::quote::sql;
use crate::script::Script;
use crate::site::DbFile;
use database::{Database, Tsql, is_log, pages};
use weir_layout::Role;

pub(crate) fn write(
    script: &mut Script,
    change: &Change,
    options: &Options,
) -> Result<(), ExportError> {
    let files = change.files();
    if change.new.files.is_empty() && files.is_empty() {
        return Err(nothing(change, "the layout has no [[file]]; add the files of the database"));
    }
    let is_of_database =
        |fate: &Fate<'_, DbFile>| fate.wanted().is_none_or(|file| file.role != Role::Backup);
    if !files.iter().any(is_of_database) {
        let reason = "its files are backups, not files of a database";
        return Err(nothing(change, reason));
    }
    let databases = Database::all(&files, options)?;
    let tsql = Tsql { change, options, databases };
    tsql.check_mounts()?;
    if files.iter().all(Fate::is_same) {
        script.nothing(change);
        return Ok(());
    }
    tsql.header(script);
    tsql.checks(script)?;
    for database in &tsql.databases {
        tsql.steps(script, database)?;
    }
    backups(script, &files);
    tsql.result(script);
    Ok(())
}

fn nothing(change: &Change, reason: &str) -> ExportError {
    ExportError::Nothing {
        layout: change.new.layout.clone(),
        kind: "tsql",
        reason: reason.to_owned(),
    }
}

/// Writes a note about backup files, which are not part of a database.
fn backups(script: &mut Script, files: &[Fate<'_, DbFile>]) {
    for file in files.iter().filter_map(|fate| fate.wanted()) {
        if file.role == Role::Backup {
            script.blank();
            script.comment(&format!(
                "{}: a backup of {} is not a file of a database; create it with BACKUP DATABASE \
                 ... TO DISK or TO URL.",
                file.own, file.size
            ));
        }
    }
}

impl Tsql<'_> {
    /// Rejects mounts without database files.
    fn check_mounts(&self) -> Result<(), ExportError> {
        for (own, path) in &self.options.mounts {
            let mut files = self.databases.iter().flat_map(|database| &database.files);
            if !files.any(|fate| fate.subject().on.as_ref() == Some(own)) {
                let reason = "it has no file of a database; leave it out".to_owned();
                return Err(refused(format!("--mount {own}={path}"), reason));
            }
        }
        Ok(())
    }

    fn header(&self, script: &mut Script) {
        let rights = if self.is_managed() {
            "a managed instance, and a login that may ALTER ANY DATABASE and VIEW SERVER STATE."
        } else {
            "SQL Server 2017 or newer on the machine, folders at the mounts that it may write to, and a \
             login that may ALTER ANY DATABASE and VIEW SERVER STATE."
        };
        let does = "checks first, and stops before the first change if a check fails; grows \
                    existing data files, adds new ones, grows the log; shows the result. A second \
                    run repeats nothing.";
        let does_not = "shrink, move or remove a file, nor move pages unless @move is 1.";
        script.header(rights, does, does_not);
        if self.databases.iter().any(|own| own.name.is_none()) {
            script.comment("");
            script.comment(
                "The layout names no database, so the script changes the current one. Switch to it \
                 first (or export with --database NAME).",
            );
            script.line("-- USE [your database];");
        }
        script.blank();
        script.lines(
            "SET NOCOUNT ON;\nSET XACT_ABORT ON;\n\n\
             -- 1: also rebuild tables and indexes, so that their pages spread over the files.\n\
             DECLARE @move bit = 0;\n\
             DECLARE @problem nvarchar(2048);\n\
             DECLARE @need bigint;\n\
             DECLARE @free bigint;\n\
             DECLARE @statements nvarchar(max);",
        );
    }

    /// Writes the query that shows the result.
    fn result(&self, script: &mut Script) {
        let row = |database: &Database<'_>, file: &DbFile| {
            format!(
                "({}, {}, {}, CAST({} AS bigint))",
                database.id(),
                u8::from(is_log(file)),
                sql(&file.name),
                pages(file.size)
            )
        };
        let mut rows = Vec::new();
        for database in self.databases.iter().filter(|own| own.changes()) {
            let files = [database.wanted(false), database.wanted(true)].concat();
            rows.extend(files.into_iter().map(|file| row(database, file)));
        }
        if rows.is_empty() {
            return;
        }
        script.blank();
        script.comment("The present files, beside those of the layout.");
        script.lines(&format!(
            "SELECT DB_NAME(w.database_id) AS [database], w.name AS [file],\n    \
             f.size / 128 AS [size MB], w.pages / 128 AS [layout MB],\n    \
             f.growth, f.is_percent_growth, f.max_size, f.physical_name\n\
             FROM (VALUES\n    {}\n) AS w (database_id, type, name, pages)\n\
             LEFT JOIN sys.master_files AS f\n    \
             ON f.database_id = w.database_id AND f.type = w.type\n    \
             AND f.name = w.name COLLATE Latin1_General_100_CI_AS;",
            rows.join(",\n    ")
        ));
    }
}
