//! Faults of an OLTP description. A message names the position, the value, and the remedy.

use crate::limits::{MAX_MEAN, MAX_USERS, MAX_WORKING_SET, PAGE_SIZE};
use crate::log;
use std::fmt;
use weir_units::Bytes;

/// The part of a log file before the log.
const LOG_START: Bytes = Bytes::new(log::LOG_START);

/// An invalid OLTP description. Printed as `oltp.toml:3:1: users = 0: ...`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {fault}")]
pub struct OltpError {
    /// File, line and column.
    pub place: Box<OltpPlace>,
    /// The fault.
    pub fault: OltpFault,
}

/// A file and, if known, a position in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OltpPlace {
    /// The name that the caller gave.
    pub file: String,
    /// Line and column, both from 1; columns count characters.
    pub at: Option<(usize, usize)>,
}

impl fmt::Display for OltpPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        self.at.map_or(Ok(()), |(line, column)| write!(f, ":{line}:{column}"))
    }
}

/// A fault of an OLTP description.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OltpFault {
    /// Invalid TOML, an unknown key, or a value of the wrong type.
    #[error("{message}")]
    Syntax {
        /// The parser's message.
        message: String,
    },
    /// A number out of range.
    #[error("{key} = {value}: give {allowed}{why}")]
    Range {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// The allowed values.
        allowed: String,
        /// The reason, if it is not obvious.
        why: &'static str,
    },
    /// An unknown mix.
    #[error("there is no mix {name:?}{}; there are: {known}; or write your own [[transaction]]", weir_units::did_you_mean(.near))]
    UnknownMix {
        /// The name.
        name: String,
        /// The closest known name.
        near: Option<String>,
        /// The known names.
        known: String,
    },
    /// Both a mix and `[[transaction]]`.
    #[error("mix = {name:?} and [[transaction]] exclude each other; keep one of them")]
    TwoMixes {
        /// The mix.
        name: String,
    },
    /// Neither a mix nor `[[transaction]]`.
    #[error("users have nothing to do; give mix = \"..\" (one of: {known}), or [[transaction]]")]
    NoMix {
        /// The known names.
        known: String,
    },
    /// All shares are 0.
    #[error("the shares of all transactions are 0; give one of them a share of 1 or more")]
    NoShares,
    /// Hot writes without hot pages.
    #[error(
        "transaction {name:?}: hot_writes = {writes} with hot_pages = 0; state the number of hot \
         pages"
    )]
    NoHotPages {
        /// The transaction.
        name: String,
        /// Its hot writes.
        writes: u32,
    },
    /// More hot pages than the working set has.
    #[error(
        "transaction {name:?}: hot_pages = {pages} are more than the {all} pages of the working set"
    )]
    TooManyHotPages {
        /// The transaction.
        name: String,
        /// Its hot pages.
        pages: u32,
        /// Pages of the working set.
        all: u64,
    },
    /// A working set larger than the database.
    #[error(
        "working_set = {working_set} is more than the size of the database, {size}; change one of \
         them"
    )]
    WorkingSet {
        /// The working set.
        working_set: Bytes,
        /// The known names.
        size: Bytes,
    },
    /// A file that is not in the layout.
    #[error("{key} = {name:?} is not in the layout{}; there are: {known}", weir_units::did_you_mean(.near))]
    NoFile {
        /// `data` or `log`.
        key: &'static str,
        /// The name.
        name: String,
        /// The closest known name.
        near: Option<String>,
        /// The known names.
        known: String,
    },
    /// No data file.
    #[error(
        "data = []: a database needs at least one data file; name volumes or stripes of the layout"
    )]
    NoData,
    /// No file of tempdb.
    #[error("tempdb.data = []: tempdb needs at least one data file; name files of the layout")]
    NoTempdbData,
    /// A transaction that uses a missing tempdb or one that is too small.
    #[error(
        "transaction {name:?}: tempdb = {bytes} {}",
        match size {
            None => "needs a [tempdb] with data = [..] and size".to_owned(),
            Some(size) => format!("is more than tempdb.size = {size}; change one of them"),
        }
    )]
    Tempdb {
        /// The transaction.
        name: String,
        /// Its pages of tempdb, in bytes.
        bytes: Bytes,
        /// The known names.
        size: Option<Bytes>,
    },
    /// A file that is named twice.
    #[error("{name:?} is used twice; each file of the database needs its own volume or stripe")]
    FileTwice {
        /// The name.
        name: String,
    },
    /// A file with another role in the layout.
    #[error("{key} = {name:?}: the layout says role = {is:?}; give a file of role {wanted:?}")]
    Role {
        /// The key.
        key: &'static str,
        /// The name.
        name: String,
        /// The role in the layout.
        is: String,
        /// The required role.
        wanted: &'static str,
    },
    /// Files of two databases.
    #[error(
        "{name:?} belongs to database {is:?} in the layout, but the files before it belong to \
             {of:?}"
    )]
    OtherDatabase {
        /// The file.
        name: String,
        /// The database of the file.
        is: String,
        /// The database of the files before it.
        of: String,
    },
    /// More schedulers than the instance has.
    #[error(
        "vcores = {vcores}{}: the instance of the layout has {instance}",
        if *others > 0 { format!(" beside {others} of other databases") } else { String::new() }
    )]
    Vcores {
        /// The vCores of this database.
        vcores: u32,
        /// The vCores of other databases.
        others: u32,
        /// The vCores of the instance.
        instance: u32,
    },
    /// Both kinds of checkpoints.
    #[error(
        "checkpoint.target_recovery is for indirect checkpoints and checkpoint.every for automatic ones; keep one of them"
    )]
    TwoCheckpoints,
    /// A file of two databases.
    #[error("{name:?} is a file of another database of this run; give each database its own files")]
    Shared {
        /// The name.
        name: String,
    },
    /// A database larger than its files.
    #[error(
        "{key} = {size} is more than the total size of the data files, {files}; enlarge them, or \
         make the database smaller"
    )]
    DataFiles {
        /// `size` or `tempdb.size`.
        key: &'static str,
        /// The size of the database.
        size: Bytes,
        /// The size of the files.
        files: Bytes,
    },
    /// The layout states `used` for some data files only.
    #[error(
        "data file {name:?} has no used in the layout, but another has; give used for all or for \
         none"
    )]
    UsedOfSome {
        /// The file.
        name: String,
    },
    /// The sum of `used` differs from the size of the database.
    #[error(
        "size = {size}, and the layout says that {used} of the data files are in use; change one \
         of them"
    )]
    Used {
        /// The size of the database.
        size: Bytes,
        /// The size of the files.
        used: Bytes,
    },
    /// New pages without room for them.
    #[error(
        "transaction {transaction:?} adds pages, but the data files are full and do not grow; give \
         one of them free space or growth in the layout"
    )]
    NoRoom {
        /// The transaction.
        transaction: String,
    },
    /// A data file that is smaller than its share of whole extents.
    #[error(
        "data file {name:?} of {size} is too small for its share of the working set, {needs}; make it larger"
    )]
    DataFile {
        /// The file.
        name: String,
        /// Its size.
        size: Bytes,
        /// Its share.
        needs: Bytes,
    },
    /// A log write that does not fit into the log file.
    #[error(
        "log_writer.block = {block} does not fit into the log file {name:?} of {size}, of which \
         checkpoints use {LOG_START}; enlarge the file or reduce the block"
    )]
    LogFile {
        /// The largest write.
        block: Bytes,
        /// The file.
        name: String,
        /// Its size.
        size: Bytes,
    },
    /// A transaction that does not fit into the log.
    #[error(
        "transaction {transaction:?} may need {needs} of log, but the log file {name:?} has \
         {size}; enlarge the file, or make the transaction smaller"
    )]
    LogTransaction {
        /// The transaction.
        transaction: String,
        /// The required size of the file.
        needs: Bytes,
        /// The file.
        name: String,
        /// Its size.
        size: Bytes,
    },
}

impl OltpFault {
    pub(crate) fn range(
        key: &'static str,
        value: impl fmt::Display,
        allowed: impl Into<String>,
        why: &'static str,
    ) -> Self {
        Self::Range { key, value: value.to_string(), allowed: allowed.into(), why }
    }

    pub(crate) fn users(users: u32) -> Self {
        let why = if users == 0 { "; a database needs users" } else { "" };
        Self::range("users", users, format!("1 to {MAX_USERS}"), why)
    }

    pub(crate) fn mean(key: &'static str, mean: f64) -> Self {
        Self::range(key, mean, format!("a mean from 0 to {MAX_MEAN}"), "")
    }

    /// Makes the fault of a size that is not between a page and the maximum working set.
    pub(crate) fn pages(key: &'static str, size: Bytes) -> Self {
        Self::range(key, size, format!("{PAGE_SIZE} to {MAX_WORKING_SET}"), "")
    }
}
