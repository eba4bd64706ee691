//! A call of Backup-DbaDatabase, of the PowerShell module dbatools.

use super::job::Job;
use crate::error::ExportError;
use crate::quote::powershell;
use crate::script::Script;

/// The recommended block size for URLs.
const BLOCK: u32 = 65_536;

pub(super) fn write(script: &mut Script, job: &Job<'_>) -> Result<(), ExportError> {
    let database = job.database()?;
    let folders = job.folders()?;
    let is_url = !job.options.urls.is_empty();
    let needs = match is_url {
        true => {
            "the module dbatools, and on the server a credential for each container, named after \
             its URL, with a SAS token."
        }
        false => "the module dbatools, and folders that SQL Server may write to.",
    };
    let does = format!(
        "backs up as {} describes it and verifies the backup. There is one path for each stripe, \
         because with several paths the module writes one file to each.",
        job.backup.file
    );
    script.header(
        needs,
        &does,
        "delete earlier backups, nor restore: the command is at the end, as a comment.",
    );
    script.blank();
    script.lines(
        "param(\n    [Parameter(Mandatory)]\n    [string] $SqlInstance\n)\n\n$ErrorActionPreference = 'Stop'",
    );
    script.blank();
    let paths: Vec<String> =
        folders.iter().map(|folder| format!("        {}", powershell(folder))).collect();
    let place = if is_url { "AzureBaseUrl" } else { "Path" };
    let own = job.backup;
    let truth = |is: bool| if is { "$true" } else { "$false" };
    script.line("$backup = @{");
    script.line("    SqlInstance = $SqlInstance");
    script.line(&format!("    Database = {}", powershell(database)));
    script.line("    Type = 'Full'");
    script.line(&format!("    {place} = @(\n{}\n    )", paths.join(",\n")));
    script.line(&format!("    FileCount = {}", folders.len()));
    script.line(&format!("    MaxTransferSize = {}", own.max_transfer.get()));
    if is_url {
        script.line(&format!("    BlockSize = {BLOCK}"));
    }
    if let Some(count) = own.buffer_count {
        script.line(&format!("    BufferCount = {count}"));
    }
    script.line(&format!("    CompressBackup = {}", truth(own.is_compressed)));
    if job.is_copy_only() {
        script.line("    CopyOnly = $true");
    }
    script.line("    Checksum = $true");
    script.line("    Verify = $true");
    script.line("    EnableException = $true");
    script.line("}");
    script.line("Backup-DbaDatabase @backup");
    script.blank();
    let list: Vec<String> = Job::distinct(&folders).into_iter().map(powershell).collect();
    script.comment("To restore the newest backup (add -WithReplace to overwrite the database):");
    script.quiet(&format!(
        "Restore-DbaDatabase -SqlInstance $SqlInstance -Path {} -DatabaseName {}",
        list.join(", "),
        powershell(database)
    ));
    job.note_blocks(script);
    Ok(())
}
