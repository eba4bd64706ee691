//! Changes of files, in a safe order.

use super::database::{Database, Tsql, is_log, pages, size};
use crate::change::Fate;
use crate::error::ExportError;
use crate::quote::{sql, sql_name};
use crate::script::Script;
use crate::site::DbFile;
use weir_layout::Role;
use weir_units::Bytes;

impl Tsql<'_> {
    pub(super) fn steps(
        &self,
        script: &mut Script,
        database: &Database<'_>,
    ) -> Result<(), ExportError> {
        if !database.changes() {
            return Ok(());
        }
        script.blank();
        script.comment(&format!("---- {} ----", database.words()));
        self.about(script, database);
        for logs in [false, true] {
            let files = || {
                database
                    .files
                    .iter()
                    .filter(|fate| fate.wanted().is_some_and(|own| is_log(own) == logs))
            };
            for fate in files() {
                self.modify(script, database, *fate)?;
            }
            // A file whose absence stops the script is not added.
            let is_sure = !self.change.is_known() && database.wanted(logs).len() == 1;
            for fate in files().filter(|_| !is_sure) {
                if let Fate::New(file) = *fate {
                    self.add(script, database, file)?;
                }
            }
        }
        for fate in &database.files {
            if let Fate::Gone(file) = fate {
                gone(script, database, file);
            }
        }
        if !database.is_tempdb() && self.may_add_data(database) {
            movement(script, database);
        }
        Ok(())
    }

    /// Writes comments about the files of a database.
    fn about(&self, script: &mut Script, database: &Database<'_>) {
        let data = database.wanted(false);
        if data.iter().any(|file| file.size != data[0].size) {
            let text = format!(
                "{}: its data files have different sizes; the larger ones get more pages and more \
                 of the I/O, since pages go to files by their free space",
                database.words()
            );
            script.comment(&format!("{text}."));
            script.note(&text);
        }
        if database.is_tempdb() && self.is_managed() {
            script.comment(
                "tempdb is on the local disk of the instance: more files help against latch \
                 contention, not against limits. The number, growth and maximum size of its files \
                 survive a restart; sizes do not.",
            );
        } else if database.is_tempdb() {
            script.comment(
                "tempdb is created at each start, so a file moves when SQL Server restarts. Delete \
                 its old file by hand afterwards.",
            );
        }
    }

    /// Writes the changes of an existing file to larger values.
    fn modify(
        &self,
        script: &mut Script,
        database: &Database<'_>,
        fate: Fate<'_, DbFile>,
    ) -> Result<(), ExportError> {
        let (old, file) = match fate {
            Fate::New(file) if !self.change.is_known() => (None, file),
            Fate::Changed(old, file) => (Some(old), file),
            _ => return Ok(()),
        };
        let says = |differs: fn(&DbFile, &DbFile) -> bool| old.is_none_or(|old| differs(old, file));
        script.blank();
        if let Some(old) = old.filter(|old| old.role != file.role) {
            let (old, new) = (old.role.name(), file.role.name());
            script.warn(&format!(
                "{} would change its role from {old} to {new}, which a file cannot do; add a file \
                 under another name.",
                file.name
            ));
            return Ok(());
        }
        script.comment(&format!("{}{}", file.name, self.why(file)));
        // The maximum size must be raised before the size.
        if let Some(most) = file.max_size.filter(|_| says(|a, b| a.max_size != b.max_size)) {
            let text = size(self.change, file, most)?;
            let pages = pages(most);
            let condition = format!("max_size <> {pages} AND size <= {pages}");
            alter(script, database, file, &condition, &format!("MAXSIZE = {text}"));
        }
        match old {
            Some(old) if file.size < old.size => shrinks(script, database, old, file),
            _ if says(|a, b| a.size != b.size) => self.grow(script, database, file)?,
            _ => {}
        }
        if let Some(growth) = file.growth.filter(|_| says(|a, b| a.growth != b.growth)) {
            let text = size(self.change, file, growth)?;
            let condition = format!("(growth <> {} OR is_percent_growth = 1)", pages(growth));
            alter(script, database, file, &condition, &format!("FILEGROWTH = {text}"));
        }
        self.moved(script, database, file, old)
    }

    fn grow(
        &self,
        script: &mut Script,
        database: &Database<'_>,
        file: &DbFile,
    ) -> Result<(), ExportError> {
        let text = size(self.change, file, file.size)?;
        let pages = pages(file.size);
        alter(script, database, file, &format!("size < {pages}"), &format!("SIZE = {text}"));
        let larger = format!(
            "{}: it is larger than in the layout, {}; it is not shrunk, because that moves pages \
             one by one and fragments indexes.",
            database.file_words(file),
            file.size
        );
        script.lines(&format!(
            "IF EXISTS (SELECT 1 {} AND size > {pages})\n    PRINT {};",
            database.row(file),
            sql(&larger)
        ));
        Ok(())
    }

    /// Writes a comment about a file at another place.
    fn moved(
        &self,
        script: &mut Script,
        database: &Database<'_>,
        file: &DbFile,
        old: Option<&DbFile>,
    ) -> Result<(), ExportError> {
        let Some(on) = file.on.as_deref() else { return Ok(()) };
        if old.is_some_and(|old| old.on == file.on) {
            return Ok(());
        }
        let (place, path) = (self.place(on)?, self.path(file, on)?);
        let elsewhere =
            format!("LEFT(physical_name, {}) <> {}", place.encode_utf16().count(), sql(&place));
        if file.role == Role::Tempdb {
            alter(script, database, file, &elsewhere, &format!("FILENAME = {}", sql(&path)));
            script.note(&format!("{}: it moves with a restart", file.name));
            return Ok(());
        }
        let words = format!(
            "{}: it is not on {on}. Moving it takes the database offline: the steps are in the script.",
            database.file_words(file)
        );
        script.lines(&format!(
            "IF EXISTS (SELECT 1 {} AND {elsewhere})\n    PRINT {};",
            database.row(file),
            sql(&words)
        ));
        if old.is_some() {
            let text = format!("{} belongs on {on}, and a file moves only offline", file.name);
            script.warn_with_steps(&text, "");
        }
        let target = database.target();
        script.comment(&format!("To move {}:", file.name));
        script.quiet(&format!(
            "ALTER DATABASE {target} MODIFY FILE (NAME = {}, FILENAME = {});",
            sql(&file.name),
            sql(&path)
        ));
        script.quiet(&format!("ALTER DATABASE {target} SET OFFLINE WITH ROLLBACK IMMEDIATE;"));
        script.quiet("-- copy the file to its new place, with the rights that it has");
        script.quiet(&format!("ALTER DATABASE {target} SET ONLINE;"));
        Ok(())
    }

    fn add(
        &self,
        script: &mut Script,
        database: &Database<'_>,
        file: &DbFile,
    ) -> Result<(), ExportError> {
        let mut keys = format!("NAME = {}", sql(&file.name));
        if let Some(on) = &file.on {
            keys += &format!(", FILENAME = {}", sql(&self.path(file, on)?));
        }
        keys += &format!(", SIZE = {}", size(self.change, file, file.size)?);
        let mut key = |name: &str, bytes: Option<Bytes>| -> Result<(), ExportError> {
            if let Some(bytes) = bytes {
                keys += &format!(", {name} = {}", size(self.change, file, bytes)?);
            }
            Ok(())
        };
        key("MAXSIZE", file.max_size)?;
        key("FILEGROWTH", file.growth)?;
        let target = database.target();
        let statement = if is_log(file) {
            format!("ALTER DATABASE {target} ADD LOG FILE ({keys});")
        } else if database.is_tempdb() {
            format!("ALTER DATABASE {target} ADD FILE ({keys});")
        } else {
            format!("ALTER DATABASE {target} ADD FILE ({keys})\n        TO FILEGROUP [PRIMARY];")
        };
        if self.change.is_known() {
            script.blank();
            script.comment(&format!("{}{}", file.name, self.why(file)));
        }
        if is_log(file) {
            script.comment("A log is written sequentially: another file adds space, but no speed.");
        }
        let words = format!("{}: adding {}", database.file_words(file), file.size);
        script.lines(&format!(
            "IF NOT EXISTS (SELECT 1 {})\nBEGIN\n    PRINT {};\n    {statement}\nEND;",
            database.row(file),
            sql(&words)
        ));
        Ok(())
    }

    fn may_add_data(&self, database: &Database<'_>) -> bool {
        let new = database
            .files
            .iter()
            .filter(|fate: &&Fate<'_, DbFile>| matches!(fate, Fate::New(file) if !is_log(file)))
            .count();
        // At least one possibly new file exists, or the names are wrong.
        new > usize::from(!self.change.is_known())
    }

    /// Returns the reason for a size that buys limits.
    fn why(&self, file: &DbFile) -> String {
        let tier = file.tier.as_ref().filter(|_| self.is_managed());
        let on = file.on.as_ref().map(|on| format!(", on {on}")).unwrap_or_default();
        match tier {
            Some(tier) => {
                format!(": {}, on a blob of its own with the limits of {tier}", file.size)
            }
            None => format!(": {}{on}", file.size),
        }
    }

    /// Returns the folder of a volume's files, with a trailing separator.
    pub(super) fn place(&self, on: &str) -> Result<String, ExportError> {
        let Some(mount) = self.options.mount_of(on) else {
            return Err(ExportError::Option {
                option: "--mount".to_owned(),
                reason: format!(
                    "the mount point of {on} is unknown, so its files have no path; give it with \
                     --mount {on}=PATH, like {on}=/var/opt/mssql/{on} or {on}=F:\\{on}"
                ),
            });
        };
        let is_windows = mount.contains('\\') || mount.chars().nth(1) == Some(':');
        let sign = if is_windows { '\\' } else { '/' };
        Ok(format!("{}{sign}", mount.trim_end_matches(['/', '\\'])))
    }

    fn path(&self, file: &DbFile, on: &str) -> Result<String, ExportError> {
        let end = if is_log(file) { "ldf" } else { "ndf" };
        Ok(format!("{}{}.{end}", self.place(on)?, file.own))
    }
}

/// Writes `MODIFY FILE` unless the change is already made; one property at a time, as documented.
fn alter(script: &mut Script, database: &Database<'_>, file: &DbFile, condition: &str, key: &str) {
    let words = format!("{}: {key}", database.file_words(file));
    script.lines(&format!(
        "IF EXISTS (SELECT 1 {} AND {condition})\nBEGIN\n    PRINT {};\n    \
         ALTER DATABASE {} MODIFY FILE (NAME = {}, {key});\nEND;",
        database.row(file),
        sql(&words),
        database.target(),
        sql(&file.name)
    ));
}

fn shrinks(script: &mut Script, database: &Database<'_>, old: &DbFile, file: &DbFile) {
    let text = format!(
        "{} would shrink from {} to {}: that moves pages one by one, fragments indexes, and a \
         smaller file may get lower limits",
        file.name, old.size, file.size
    );
    script.warn_with_steps(&text, "To do it anyway:");
    go_there(script, database);
    script.quiet(&format!("DBCC SHRINKFILE ({}, {});", sql(&file.name), file.size.get() >> 20));
}

fn gone(script: &mut Script, database: &Database<'_>, file: &DbFile) {
    script.blank();
    let text = format!("{} is no longer in the layout; it is kept", file.name);
    script.warn_with_steps(&text, "To remove it:");
    go_there(script, database);
    if !is_log(file) {
        script.quiet(&format!("DBCC SHRINKFILE ({}, EMPTYFILE);", sql(&file.name)));
    }
    script.quiet(&format!(
        "ALTER DATABASE {} REMOVE FILE {};",
        database.target(),
        sql_name(&file.name)
    ));
}

fn go_there(script: &mut Script, database: &Database<'_>) {
    if let Some(name) = database.name {
        script.quiet(&format!("USE {};", sql_name(name)));
    }
}

/// Writes a note about the distribution of pages after files were added.
fn movement(script: &mut Script, database: &Database<'_>) {
    let prefix = database.prefix();
    script.blank();
    script.comment("Data movement.");
    script.comment(
        "New files are empty: existing pages stay in the old files, with their I/O, until they are \
         rewritten. A rebuild of every table and index rewrites them. It needs extra room for the \
         largest of them, locks them unless it runs ONLINE, fills the log, and enables disabled \
         indexes; the files become about even, not exactly. If that is too much at once, create a \
         filegroup with the new files and move the indexes one by one: CREATE INDEX ... WITH \
         (DROP_EXISTING = ON, ONLINE = ON) ON [filegroup].",
    );
    script.lines(&format!(
        "SET @statements = (\n    SELECT STRING_AGG(CAST(\n            \
         CASE WHEN i.type = 0 THEN N'ALTER TABLE ' ELSE N'ALTER INDEX ALL ON ' END\n            \
         + QUOTENAME(s.name) + N'.' + QUOTENAME(t.name) + N' REBUILD;' AS nvarchar(max)\n        \
         ), NCHAR(10))\n    FROM {prefix}sys.tables AS t\n    \
         JOIN {prefix}sys.schemas AS s ON s.schema_id = t.schema_id\n    \
         JOIN {prefix}sys.indexes AS i ON i.object_id = t.object_id AND i.index_id IN (0, 1)\n    \
         WHERE t.is_memory_optimized = 0 AND t.is_external = 0\n);\n\
         IF @move = 1\n    EXEC {prefix}sys.sp_executesql @statements;\n\
         ELSE\n    SELECT @statements AS [run these, or set @move to 1, to spread the pages];"
    ));
}
