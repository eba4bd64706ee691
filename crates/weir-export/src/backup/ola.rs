//! A call of DatabaseBackup, Ola Hallengren's procedure.

use super::job::Job;
use crate::error::ExportError;
use crate::quote::sql;
use crate::script::Script;

/// The recommended block size for URLs.
const BLOCK: u32 = 65_536;

pub(super) fn write(script: &mut Script, job: &Job<'_>) -> Result<(), ExportError> {
    let database = job.database()?;
    if database.contains(['%', ',']) {
        let reason = "in this procedure, a % in a name selects several databases, and a comma ends \
                      a name; use --as tsql-backup";
        return Err(job.cannot(format!("database {database:?}"), reason));
    }
    let folders = job.folders()?;
    let distinct = Job::distinct(&folders);
    let (stripes, places) = (folders.len(), distinct.len());
    if !stripes.is_multiple_of(places) {
        let reason = format!(
            "{stripes} stripes on {places} targets: the procedure takes a multiple of the number of \
             directories; describe {} stripes",
            stripes.next_multiple_of(places)
        );
        return Err(job.cannot(job.backup.file.clone(), reason));
    }
    if let Some(folder) = distinct.iter().find(|folder| folder.contains(',')) {
        let reason =
            "the procedure takes a list with commas; mount the target at a path without one";
        return Err(job.cannot(format!("target {folder:?}"), reason));
    }
    let is_url = !job.options.urls.is_empty();
    header(script, job, is_url);
    // A name in brackets is one name, even with commas.
    let name = format!("[{}]", database.replace(']', "]]"));
    let list = distinct.iter().map(|folder| trimmed(folder)).collect::<Vec<_>>().join(",");
    let place = if is_url { "URL" } else { "Directory" };
    let mut all = vec![
        ("Databases", sql(&name)),
        (place, sql(&list)),
        ("BackupType", sql("FULL")),
        ("NumberOfFiles", stripes.to_string()),
        ("MaxTransferSize", job.backup.max_transfer.get().to_string()),
    ];
    if is_url {
        all.push(("BlockSize", BLOCK.to_string()));
    }
    all.extend(job.backup.buffer_count.map(|count| ("BufferCount", count.to_string())));
    all.push(("Compress", sql(if job.backup.is_compressed { "Y" } else { "N" })));
    if job.is_copy_only() {
        all.push(("CopyOnly", sql("Y")));
    }
    let last = [("Checksum", "Y"), ("Verify", "Y"), ("LogToTable", "Y")];
    all.extend(last.map(|(name, value)| (name, sql(value))));
    all.push(("Stats", "5".to_owned()));
    let lines: Vec<String> =
        all.iter().map(|(name, value)| format!("    @{name} = {value}")).collect();
    script.blank();
    script.line(&format!("EXECUTE dbo.DatabaseBackup\n{};", lines.join(",\n")));
    job.note_blocks(script);
    Ok(())
}

/// Removes the trailing separator, except from drives: the procedure expects that.
fn trimmed(folder: &str) -> &str {
    if folder.ends_with(":\\") { folder } else { folder.trim_end_matches(['/', '\\']) }
}

fn header(script: &mut Script, job: &Job<'_>, is_url: bool) {
    let place = match is_url {
        true => "a credential for each container, named after its URL, with a SAS token",
        false => "the directories, which SQL Server may write to",
    };
    let needs = format!(
        "the SQL Server Maintenance Solution of Ola Hallengren in the database that this runs in, and \
         {place}."
    );
    let does = format!(
        "backs up as {} describes it: @NumberOfFiles are spread evenly over the directories. The \
         procedure names the files, and creates a folder for the server and the database.",
        job.backup.file
    );
    script.header(&needs, &does, "delete earlier backups: add @CleanupTime for that, in hours.");
}
