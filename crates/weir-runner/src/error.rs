//! Errors of runs against a server.

use std::io;
use std::path::PathBuf;
use weir_client::ClientError;
use weir_proto::Errno;
use weir_report::run::RunReport;
use weir_units::Bytes;
use weir_workload::{FioError, Op};

/// An error that ends a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunnerError {
    /// The connection failed, or a request on it.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// More data files than a checkpoint has room for.
    #[error("{files} data files: a database in wall time has {most} at most")]
    DataFiles {
        /// Data files of the description.
        files: usize,
        /// Data files that fit.
        most: usize,
    },
    /// A job that does not fit its region.
    #[error("{0}")]
    Workload(#[from] FioError),
    /// A trace that cannot be replayed.
    #[error("{0}")]
    Replay(#[from] weir_workload::replay::ReplayError),
    /// A job whose region ends beyond the export.
    #[error(
        "job {job:?} needs {export:?} to have {needed}, and the server says {size}; \
         does it serve another layout?"
    )]
    TooSmall {
        /// The job.
        job: String,
        /// The export.
        export: String,
        /// Its size.
        size: Bytes,
        /// The end of the job's region.
        needed: Bytes,
    },
    /// A request of a job that the export cannot take.
    #[error("job {job:?}: {source}")]
    Job {
        /// The job.
        job: String,
        /// The reason.
        source: Box<RunnerError>,
    },
    /// A request of a job failed. The run ends with it.
    #[error(
        "job {job:?}: {what} at offset {offset} of {export:?} failed: {errno}{hint}",
        what = What(*.op, *.length),
        hint = hint(*.errno)
    )]
    Io {
        /// The job.
        job: String,
        /// The export.
        export: String,
        /// The operation.
        op: Op,
        /// The offset in the export, in bytes.
        offset: u64,
        /// Its length in bytes.
        length: u32,
        /// The server's answer.
        errno: Errno,
    },
    /// The run was interrupted, with its results until then.
    #[error("interrupted after {:.1} s", .0.elapsed_s)]
    Interrupted(Box<RunReport>),
    /// A database file that the server does not serve.
    #[error("database file {file:?} is not served: {reason}")]
    NotServed {
        /// The file.
        file: String,
        /// The reason.
        reason: String,
    },
    /// A read or write of a database failed. The run ends with it.
    #[error(
        "database file {file:?}: a {op} of {length} bytes at offset {offset} failed: {errno}{hint}",
        hint = hint(*.errno)
    )]
    FileIo {
        /// The file.
        file: String,
        /// read or write.
        op: &'static str,
        /// The offset in the file, in bytes.
        offset: u64,
        /// Its length in bytes.
        length: u64,
        /// The server's answer.
        errno: Errno,
    },
    /// A page differs from its last write: the storage has lost or changed it.
    #[error("database file {file:?}: page {page}, at offset {offset}: {what}")]
    Page {
        /// The file.
        file: String,
        /// The page of the file.
        page: u64,
        /// The offset in the file, in bytes.
        offset: u64,
        /// The difference from the page that was written.
        what: String,
    },
    /// The log cannot be followed.
    #[error("database file {file:?}: the log at {lsn} (offset {offset}): {what}")]
    Log {
        /// The file.
        file: String,
        /// The LSN of the block.
        lsn: u64,
        /// The offset in the file, in bytes.
        offset: u64,
        /// The defect.
        what: String,
    },
    /// Acknowledged transactions are lost.
    #[error(
        "acknowledged transactions are lost: the log ends at transaction {recovered}, but all \
         transactions up to {acknowledged} were acknowledged"
    )]
    Lost {
        /// The newest acknowledged transaction.
        acknowledged: u64,
        /// The newest recovered transaction.
        recovered: u64,
    },
    /// The data files contradict the log.
    #[error(
        "the pages record {found} changes, but transaction {commit} recorded {expect}: page writes \
         are lost"
    )]
    Changes {
        /// The newest recovered transaction.
        commit: u64,
        /// Changes up to it.
        expect: u64,
        /// Changes found in the pages.
        found: u64,
    },
    /// The recovery was interrupted. The next one starts from the same state.
    #[error("interrupted during recovery; nothing is lost, and the next start repeats it")]
    RecoveryInterrupted,
    /// The files belong to another database.
    #[error(
        "database file {file:?} belongs to another description: the data files or their sizes, \
         working_set or the size of the log differ; use the description with which it was created, \
         or another folder"
    )]
    OtherDatabase {
        /// The log file.
        file: String,
    },
    /// The file with the newest acknowledged transaction.
    #[error("{}: {text:?} is not a transaction number; the file was not written by weir run", .path.display())]
    Acknowledged {
        /// The file.
        path: PathBuf,
        /// Its contents.
        text: String,
    },
    /// A system call failed.
    #[error("{context}: {source}")]
    System {
        /// The operation.
        context: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// fio is missing.
    #[error(
        "{} was not found; install fio (on Debian and Ubuntu: apt install fio), or run the jobs \
         without it",
        .program.display()
    )]
    NoFio {
        /// The program.
        program: PathBuf,
    },
    /// A job that fio's nbd engine cannot run, or runs differently.
    #[error("job {job:?}: {what}; run the jobs without fio")]
    NotWithFio {
        /// The job.
        job: String,
        /// The option and the reason.
        what: &'static str,
    },
    /// fio failed.
    #[error("fio failed ({status}): {said}")]
    FioFailed {
        /// Its exit status.
        status: String,
        /// Its last messages.
        said: String,
    },
    /// fio's report cannot be read.
    #[error("cannot read fio's report: {source}; fio 3.33 is known to work")]
    FioReport {
        /// The parser's error.
        source: serde_json::Error,
    },
}

impl RunnerError {
    pub(crate) fn system(context: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::System { context, source }
    }

    /// Returns whether the error means that the storage has lost acknowledged data.
    #[must_use]
    pub const fn is_verdict(&self) -> bool {
        matches!(self, Self::Lost { .. } | Self::Changes { .. } | Self::Log { .. })
    }

    /// Returns whether the caller's input is wrong, rather than the storage or the server.
    #[must_use]
    pub const fn is_input(&self) -> bool {
        matches!(
            self,
            Self::OtherDatabase { .. }
                | Self::Acknowledged { .. }
                | Self::TooSmall { .. }
                | Self::DataFiles { .. }
                | Self::Replay(_)
        )
    }

    pub(crate) fn for_job(self, job: &str) -> Self {
        Self::Job { job: job.to_owned(), source: Box::new(self) }
    }
}

/// A request as a noun.
struct What(Op, u32);

impl std::fmt::Display for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(op, length) = self;
        match op {
            Op::Read => write!(f, "a read of {length} bytes"),
            Op::Write => write!(f, "a write of {length} bytes"),
            Op::Trim => write!(f, "a trim of {length} bytes"),
            Op::Flush => write!(f, "a flush"),
        }
    }
}

/// Suggests a remedy for a server's answer.
fn hint(errno: Errno) -> &'static str {
    match errno {
        Errno::NoSpc => "; free space where the server keeps its data",
        Errno::Perm => "; is the export read-only?",
        Errno::Shutdown => "; the server is stopping",
        Errno::Io => "; the server's log may say why",
        _ => "",
    }
}
