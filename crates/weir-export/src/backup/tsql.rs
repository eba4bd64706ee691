//! `BACKUP DATABASE`, `RESTORE VERIFYONLY` and, as a comment, `RESTORE DATABASE`.

use super::job::{Job, MOST_NAME, container, stem};
use crate::error::ExportError;
use crate::quote::{sql, sql_name};
use crate::script::Script;

/// The recommended block size for URLs.
const BLOCK: u32 = 65_536;
/// The time in file names, with as many characters.
const WHEN: &str = "YYYYMMDD_HHMMSS";

pub(super) fn write(script: &mut Script, job: &Job<'_>) -> Result<(), ExportError> {
    let database = job.database()?;
    let folders = job.folders()?;
    let is_url = !job.options.urls.is_empty();
    let files = files(job, database, &folders)?;
    header(script, job, &folders);
    if is_url {
        credentials(script, &Job::distinct(&folders));
    }
    script.blank();
    script.lines(
        "DECLARE @when nvarchar(15) = CONVERT(nvarchar(8), GETDATE(), 112) + N'_'\n    \
         + REPLACE(CONVERT(nvarchar(8), GETDATE(), 108), N':', N'');",
    );
    for (at, (before, after)) in files.iter().enumerate() {
        script.line(&format!(
            "DECLARE @file{} nvarchar({MOST_NAME}) = {} + @when + {};",
            at + 1,
            sql(before),
            sql(after)
        ));
    }
    let medium = if is_url { "URL" } else { "DISK" };
    let devices: Vec<String> =
        (1..=files.len()).map(|at| format!("    {medium} = @file{at}")).collect();
    let devices = devices.join(",\n");
    script.blank();
    script.line(&format!("BACKUP DATABASE {} TO\n{devices}", sql_name(database)));
    let with = options(job, is_url);
    script.line(&format!("WITH\n    {};", with.join(",\n    ")));
    script.blank();
    let block = block_size(is_url);
    script.line(&format!("RESTORE VERIFYONLY FROM\n{devices}\nWITH CHECKSUM, {block}STATS = 5;"));
    restore(script, job, database, (medium, &files));
    job.note_blocks(script);
    Ok(())
}

/// Returns the path of each stripe, as the parts before and after the time.
fn files(
    job: &Job<'_>,
    database: &str,
    folders: &[String],
) -> Result<Vec<(String, String)>, ExportError> {
    let count = folders.len();
    let mut all = Vec::new();
    for (at, folder) in folders.iter().enumerate() {
        let is_windows = !folder.starts_with("https:")
            && (folder.contains('\\') || folder.chars().nth(1) == Some(':'));
        let sign = match (is_windows, folder.ends_with(['/', '\\'])) {
            (_, true) => "",
            (true, false) => "\\",
            (false, false) => "/",
        };
        let before = format!("{folder}{sign}{}_full_", stem(database));
        let after = format!("_{}of{count}.bak", at + 1);
        let characters = before.encode_utf16().count() + after.len() + WHEN.len();
        if characters > MOST_NAME {
            let reason = format!(
                "its path has {characters} characters, and a device has at most {MOST_NAME}; mount the \
                 target at a shorter path"
            );
            return Err(job.cannot(format!("stripe {}", at + 1), reason));
        }
        all.push((before, after));
    }
    Ok(all)
}

fn header(script: &mut Script, job: &Job<'_>, folders: &[String]) {
    let places = Job::distinct(folders).join(", ");
    let needs = format!(
        "SQL Server, a login that may BACKUP DATABASE and create databases (which RESTORE VERIFYONLY asks \
         for), and {places}."
    );
    let does = format!(
        "backs up to {} stripes as {} describes it, under names with the time in them, and verifies them.",
        folders.len(),
        job.backup.file
    );
    let does_not = "delete earlier backups, nor restore: the statement is at the end, as a comment. All stripes are \
         needed for a restore.";
    script.header(&needs, &does, does_not);
    if job.is_instance() {
        script.comment("");
        script.comment("Users of a managed instance can only make COPY_ONLY backups.");
    }
}

/// Writes a check that stops if the credential of a container is missing, with the statement that
/// creates it.
fn credentials(script: &mut Script, folders: &[&str]) {
    let mut names: Vec<String> = folders.iter().map(|url| container(url)).collect();
    names.dedup();
    for name in names {
        script.blank();
        let missing = format!("create a credential called {name} with a SAS token first");
        script.line(&format!(
            "IF NOT EXISTS (SELECT 1 FROM sys.credentials WHERE name = {})\nBEGIN\n    THROW 50000, {}, \
             1;\nEND;",
            sql(&name),
            sql(&missing)
        ));
        script.comment("With the token of the container, which may read, write and list there:");
        script.quiet(&format!("CREATE CREDENTIAL {}", sql_name(&name)));
        script
            .quiet("WITH IDENTITY = 'SHARED ACCESS SIGNATURE', SECRET = '<the token, without ?>';");
    }
}

/// Returns the option that a restore needs if the block size is not the default (error 3284).
fn block_size(is_url: bool) -> String {
    if is_url { format!("BLOCKSIZE = {BLOCK}, ") } else { String::new() }
}

fn options(job: &Job<'_>, is_url: bool) -> Vec<String> {
    let own = job.backup;
    let mut with = vec!["FORMAT".to_owned(), "INIT".to_owned()];
    if job.is_copy_only() {
        with.push("COPY_ONLY".to_owned());
    }
    with.push(if own.is_compressed { "COMPRESSION" } else { "NO_COMPRESSION" }.to_owned());
    with.push("CHECKSUM".to_owned());
    with.push(format!("MAXTRANSFERSIZE = {}", own.max_transfer.get()));
    if is_url {
        with.push(format!("BLOCKSIZE = {BLOCK}"));
    }
    with.extend(own.buffer_count.map(|count| format!("BUFFERCOUNT = {count}")));
    with.push("STATS = 5".to_owned());
    with
}

fn restore(
    script: &mut Script,
    job: &Job<'_>,
    database: &str,
    (medium, files): (&str, &[(String, String)]),
) {
    script.blank();
    script.comment(&format!(
        "To restore, with the time of the backup for {WHEN}. Add REPLACE to overwrite the database, and \
         MOVE for each file that goes to another path:"
    ));
    script.quiet(&format!("RESTORE DATABASE {} FROM", sql_name(database)));
    for (at, (before, after)) in files.iter().enumerate() {
        let end = if at + 1 == files.len() { "" } else { "," };
        script.quiet(&format!("    {medium} = {}{end}", sql(&format!("{before}{WHEN}{after}"))));
    }
    let transfer = job.backup.max_transfer.get();
    let block = block_size(medium == "URL");
    script.quiet(&format!("WITH CHECKSUM, {block}MAXTRANSFERSIZE = {transfer}, STATS = 5;"));
}
