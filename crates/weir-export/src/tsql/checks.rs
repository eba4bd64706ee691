//! Checks before the first change.

use super::database::{Database, Tsql, pages};
use crate::change::Fate;
use crate::error::ExportError;
use crate::quote::sql;
use crate::script::Script;
use crate::site::DbFile;

impl Tsql<'_> {
    pub(super) fn checks(&self, script: &mut Script) -> Result<(), ExportError> {
        script.blank();
        script.comment("Checks. If one of them stops the script, nothing has changed.");
        for database in self.databases.iter().filter(|own| own.changes()) {
            is_there(script, database);
            let kinds = database
                .files
                .iter()
                .filter(|fate: &&Fate<'_, DbFile>| !fate.is_same())
                .map(|fate| super::is_log(fate.subject()));
            let kinds: Vec<bool> = kinds.collect();
            for logs in [false, true].into_iter().filter(|logs| kinds.contains(logs)) {
                has_names(script, database, logs, self.change.is_known());
            }
        }
        if self.is_managed() { self.room_of_instance(script) } else { self.room_of_volumes(script) }
    }

    /// Writes the check that the reserved storage of an instance is large enough.
    fn room_of_instance(&self, script: &mut Script) -> Result<(), ExportError> {
        script.blank();
        script.comment(
            "The storage of the instance must hold the additions; tempdb is on a disk of its own.",
        );
        script.line("SET @need = 0;");
        let databases = self.databases.iter().filter(|own| !own.is_tempdb());
        databases
            .for_each(|database| database.growing().for_each(|file| need(script, database, file)));
        script.lines(
            "SET @free = (\n    \
             SELECT TOP (1) reserved_storage_mb FROM master.sys.server_resource_stats\n    \
             ORDER BY start_time DESC\n) * 128;\n\
             SET @free = @free - (\n    \
             SELECT SUM(CAST(size AS bigint)) FROM sys.master_files WHERE database_id <> 2\n);",
        );
        lacks(script, "the storage of the instance", "reserve more storage first");
        Ok(())
    }

    /// Writes the check that each volume has enough free space.
    fn room_of_volumes(&self, script: &mut Script) -> Result<(), ExportError> {
        for space in &self.change.new.spaces {
            let mut growing = Vec::new();
            for database in &self.databases {
                growing.extend(
                    database
                        .growing()
                        .filter(|file: &&DbFile| file.on.as_deref() == Some(space.own.as_str()))
                        .map(|file| (database, file)),
                );
            }
            if growing.is_empty() {
                continue;
            }
            let place = self.place(&space.own)?;
            script.blank();
            script.comment(&format!("{} must have room for the additions.", space.own));
            script.line("SET @need = 0;");
            growing.iter().for_each(|(database, file)| need(script, database, file));
            script.lines(&format!(
                "SET @free = (\n    SELECT MAX(v.available_bytes) / 8192 FROM sys.master_files AS f\n    \
                 CROSS APPLY sys.dm_os_volume_stats(f.database_id, f.file_id) AS v\n    \
                 WHERE LEFT(f.physical_name, {}) = {}\n);",
                place.encode_utf16().count(),
                sql(&place)
            ));
            lacks(script, &space.own, "make it larger first");
        }
        Ok(())
    }
}

impl<'a> Database<'a> {
    /// Returns the files that may grow or be added.
    fn growing(&self) -> impl Iterator<Item = &'a DbFile> {
        self.files.iter().filter_map(|fate| match *fate {
            Fate::New(file) => Some(file),
            Fate::Changed(old, file) => (file.size > old.size).then_some(file),
            Fate::Same(_) | Fate::Gone(_) => None,
        })
    }
}

fn is_there(script: &mut Script, database: &Database<'_>) {
    let (condition, problem) = match database.name {
        Some(name) => (
            format!("DB_ID({}) IS NULL", sql(name)),
            format!("There is no database {} here; make or restore it first.", database.words()),
        ),
        None => (
            "DB_ID() <= 4".to_owned(),
            "This is a database of the system; USE the one whose files these are.".to_owned(),
        ),
    };
    stop_if(script, &condition, &sql(&problem));
}

/// Writes the check that at least one known file exists. Otherwise the script would add files
/// beside the intended ones.
fn has_names(script: &mut Script, database: &Database<'_>, logs: bool, is_known: bool) {
    let fates = database
        .files
        .iter()
        .filter(|fate: &&Fate<'_, DbFile>| !is_known || !matches!(fate, Fate::New(_)))
        .filter_map(|fate| fate.wanted());
    let names: Vec<String> =
        fates.filter(|file| super::is_log(file) == logs).map(|file| sql(&file.name)).collect();
    if names.is_empty() {
        return;
    }
    let rows = database.rows(logs);
    let kind = if logs { "log" } else { "data" };
    let condition = format!("NOT EXISTS (SELECT 1 {rows} AND name IN ({}))", names.join(", "));
    let head = format!("{} has none of the {kind} files of the layout. It has: ", database.words());
    let tail = ". Map names with weir export --name LAYOUT=LOGICAL.";
    let problem = format!(
        "{}\n        + ISNULL((SELECT STRING_AGG(CAST(name AS nvarchar(max)), N', ') {rows}), N'none')\n        + {}",
        sql(&head),
        sql(tail)
    );
    stop_if(script, &condition, &problem);
}

fn need(script: &mut Script, database: &Database<'_>, file: &DbFile) {
    let pages = pages(file.size);
    script.lines(&format!(
        "SET @need = @need + ISNULL((\n    \
         SELECT CASE WHEN size < {pages} THEN {pages} - size ELSE 0 END\n    {}\n), {pages});",
        database.row(file)
    ));
}

fn lacks(script: &mut Script, what: &str, then: &str) {
    let problem = format!(
        "{} + CAST(@need / 128 AS nvarchar(20)) + {} + CAST(@free / 128 AS nvarchar(20)) + {}",
        sql(&format!("{what}: ")),
        sql(" MB come to it, and "),
        sql(&format!(" MB are free; {then}."))
    );
    script.lines(&format!(
        "IF @free IS NULL\n    PRINT {};",
        sql(&format!("{what}: the free space is unknown; check it yourself."))
    ));
    stop_if(script, "@free < @need", &problem);
}

fn stop_if(script: &mut Script, condition: &str, problem: &str) {
    script.lines(&format!(
        "IF {condition}\nBEGIN\n    SET @problem = {problem};\n    THROW 50000, @problem, 1;\nEND;"
    ));
}
