//! Settings of pgBackRest.
//!
//! pgBackRest has no stripes: each of its processes copies one file at a time into a single
//! repository. The targets must therefore be one path, and the number of processes equals that of
//! stripes.

use super::job::{Job, container};
use crate::error::ExportError;
use crate::options::refused;
use crate::script::Script;
use weir_units::Bytes;

/// Maximum number of processes.
const MOST_PROCESSES: usize = 999;
/// Maximum buffer size.
const MOST_BUFFER: Bytes = Bytes::mib(16);

pub(super) fn write(script: &mut Script, job: &Job<'_>) -> Result<(), ExportError> {
    if let Some(count) = job.backup.buffer_count {
        let reason = format!("pgBackRest does not use buffer_count = {count}; leave it out");
        return Err(job.cannot(job.backup.file.clone(), reason));
    }
    let targets = if job.options.urls.is_empty() { job.targets().len() } else { 1 };
    if let Some(reason) = one_repository(targets) {
        return Err(job.cannot(job.backup.file.clone(), reason));
    }
    let folders = job.folders()?;
    let distinct = Job::distinct(&folders);
    let [repository] = distinct[..] else {
        let reason = one_repository(distinct.len()).unwrap_or_default();
        return Err(job.cannot(job.backup.file.clone(), reason));
    };
    let stanza = stanza(job)?;
    let cluster = cluster(job)?;
    let processes = folders.len().max(job.backup.encoders as usize).min(MOST_PROCESSES);
    header(script, job, stanza);
    script.blank();
    script.line("[global]");
    let is_url = !job.options.urls.is_empty();
    for line in
        if is_url { azure(job, repository)? } else { vec![format!("repo1-path={repository}")] }
    {
        script.line(&line);
    }
    script.line("repo1-retention-full=2");
    script.line(&format!("process-max={processes}"));
    let buffer = job.backup.max_transfer.min(MOST_BUFFER);
    // The buffer size must be a power of two.
    let buffer = buffer.get().checked_ilog2().map_or(1 << 20, |bits| 1_u64 << bits);
    script.line(&format!("buffer-size={}KiB", buffer >> 10));
    match job.backup.is_compressed {
        true => script.lines("compress-type=zst\ncompress-level=1"),
        false => script.line("compress-type=none"),
    }
    script.line("start-fast=y");
    script.blank();
    script.line(&format!("[{stanza}]"));
    script.line(&format!("pg1-path={cluster}"));
    script.blank();
    script.comment("As the user of PostgreSQL, which needs this archive_command:");
    script.quiet(&format!("archive_command = 'pgbackrest --stanza={stanza} archive-push %p'"));
    for command in ["stanza-create", "--type=full backup", "verify", "restore"] {
        script.quiet(&format!("pgbackrest --stanza={stanza} {command}"));
    }
    script.note(
        "pgBackRest reads and writes with one request in flight for each process, where SQL Server has \
         several: on disks with a high latency it is slower than the plan",
    );
    Ok(())
}

/// Returns the reason why pgBackRest cannot write to this number of targets. Its other repositories
/// are for further copies: a backup is never split among several.
pub(super) fn one_repository(targets: usize) -> Option<String> {
    (targets != 1).then(|| {
        format!(
            "it has {targets} targets, and pgBackRest writes a backup to one repository: plan it with \
             weir backup plan --max-disks 1, or make one stripe of the disks in the layout and name \
             it in `to`"
        )
    })
}

/// Returns the stanza, the name of the cluster in pgBackRest.
fn stanza<'j>(job: &'j Job<'_>) -> Result<&'j str, ExportError> {
    let name = job.database()?;
    if name.is_empty()
        || !name.chars().all(|c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
    {
        let reason = "a stanza has letters, digits, - and _; give one with --database, and a \
                      layout whose files name no database";
        return Err(job.cannot(format!("stanza {name:?}"), reason));
    }
    Ok(name)
}

/// Returns the folder of the cluster.
fn cluster(job: &Job<'_>) -> Result<String, ExportError> {
    if !job.options.urls.is_empty() {
        // A mount point cannot be combined with a URL.
        return Ok("/var/lib/postgresql/CHANGE-ME/main".to_owned());
    }
    let mounted = job.backup.sources.iter().find_map(|place| {
        let device = job.device(place);
        job.options.mount_of(device)
    });
    mounted.map(str::to_owned).ok_or_else(|| {
        let source = job.backup.sources.first().map_or("data", |place| job.device(place));
        job.cannot(
            job.backup.file.clone(),
            format!(
                "the folder of the cluster is unknown; give it with --mount {source}=PATH, like \
                 {source}=/var/lib/postgresql/17/main"
            ),
        )
    })
}

/// Returns the settings of a container.
fn azure(job: &Job<'_>, url: &str) -> Result<Vec<String>, ExportError> {
    let container = container(url);
    let path =
        url.strip_prefix(&container).filter(|path| !path.is_empty()).unwrap_or("/pgbackrest");
    let parts: Vec<&str> = container.split('/').collect();
    let host = parts.get(2).copied().unwrap_or_default();
    let Some((account, endpoint)) = host.split_once(".blob.") else {
        let first = job.options.urls.first().map(String::as_str).unwrap_or_default();
        let reason = "pgBackRest takes ACCOUNT.blob.ENDPOINT; write \
                      https://ACCOUNT.blob.core.windows.net/CONTAINER";
        return Err(refused(format!("--url {first}"), reason.to_owned()));
    };
    Ok(vec![
        "repo1-type=azure".to_owned(),
        format!("repo1-azure-account={account}"),
        format!("repo1-azure-container={}", parts.get(3).copied().unwrap_or_default()),
        format!("repo1-azure-endpoint=blob.{endpoint}"),
        "repo1-azure-key-type=sas".to_owned(),
        format!("repo1-path={path}"),
    ])
}

fn header(script: &mut Script, job: &Job<'_>, stanza: &str) {
    let key = match job.options.urls.is_empty() {
        true => "",
        false => {
            " The SAS token is in the environment, as PGBACKREST_REPO1_AZURE_KEY; set pg1-path."
        }
    };
    let needs = format!(
        "pgBackRest, and the user of PostgreSQL as owner of the repository. This is \
         /etc/pgbackrest/pgbackrest.conf.{key}"
    );
    let does = format!(
        "has the parallelism and transfers of {} for the cluster {stanza}: one process per \
         stripe.",
        job.backup.file
    );
    script.header(&needs, &does, "contain a secret or encrypt the repository (repo1-cipher-type).");
}
