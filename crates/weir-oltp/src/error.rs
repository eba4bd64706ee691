//! Everything that can be wrong with an OLTP description. A message says where,
//! which value, and what to do.

use crate::description::{MAX_MEAN, MAX_USERS, MAX_WORKING_SET, PAGE_SIZE};
use crate::log;
use std::fmt;
use weir_units::Bytes;

/// What of a log file is no log.
const LOG_START: Bytes = Bytes::new(log::LOG_START);

/// Why an OLTP description cannot be used. Printed as `oltp.toml:3:1: users = 0: ...`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {fault}")]
pub struct OltpError {
    /// File, line and column.
    pub place: Box<OltpPlace>,
    /// What is wrong.
    pub fault: OltpFault,
}

/// A file and, where it is known, a place in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OltpPlace {
    /// The file as the caller named it.
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

/// What is wrong with an OLTP description.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OltpFault {
    /// Not TOML, an unknown key, or a value of another kind.
    #[error("{message}")]
    Syntax {
        /// What the reader says.
        message: String,
    },
    /// A number that cannot be.
    #[error("{key} = {value}: give {allowed}{why}")]
    Range {
        /// The key.
        key: &'static str,
        /// What it has.
        value: String,
        /// What it may have.
        allowed: String,
        /// What would happen, where that is not plain.
        why: &'static str,
    },
    /// A mix that Weir does not have.
    #[error("there is no mix {name:?}{}; there are: {known}; or write your own [[transaction]]", weir_units::did_you_mean(.near))]
    UnknownMix {
        /// The name.
        name: String,
        /// The closest name that there is.
        near: Option<String>,
        /// What there is.
        known: String,
    },
    /// A mix and transactions of one's own.
    #[error("mix = {name:?} and [[transaction]] exclude each other; keep one of them")]
    TwoMixes {
        /// The mix.
        name: String,
    },
    /// Nothing to do.
    #[error("users have nothing to do; give mix = \"..\" (one of: {known}), or [[transaction]]")]
    NoMix {
        /// What there is.
        known: String,
    },
    /// Nobody ever picks a transaction.
    #[error("the shares of all transactions are 0; give one of them a share of 1 or more")]
    NoShares,
    /// Pages that are changed, out of none.
    #[error(
        "transaction {name:?}: hot_writes = {writes}, of hot_pages = 0; say how many hot pages there are"
    )]
    NoHotPages {
        /// The transaction.
        name: String,
        /// How many it changes.
        writes: u32,
    },
    /// More hot pages than pages.
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
    /// More is touched than there is.
    #[error(
        "working_set = {working_set} is more than the database has, size = {size}; make one fit the other"
    )]
    WorkingSet {
        /// What is touched.
        working_set: Bytes,
        /// What there is.
        size: Bytes,
    },
    /// A file that is not in the layout.
    #[error("{key} = {name:?} is not in the layout{}; there are: {known}", weir_units::did_you_mean(.near))]
    NoFile {
        /// `data` or `log`.
        key: &'static str,
        /// The name.
        name: String,
        /// The closest name that there is.
        near: Option<String>,
        /// What there is.
        known: String,
    },
    /// No data file.
    #[error(
        "data = []: a database has one data file or more; name volumes or stripes of the layout"
    )]
    NoData,
    /// No file of tempdb.
    #[error("tempdb.data = []: tempdb has one data file or more; name files of the layout")]
    NoTempdbData,
    /// A transaction that uses a tempdb that is not there or too small.
    #[error(
        "transaction {name:?}: tempdb = {bytes} {}",
        match size {
            None => "needs a [tempdb] with data = [..] and size".to_owned(),
            Some(size) => format!("is more than tempdb.size = {size}; make one fit the other"),
        }
    )]
    Tempdb {
        /// The transaction.
        name: String,
        /// What it wants.
        bytes: Bytes,
        /// What there is.
        size: Option<Bytes>,
    },
    /// One file for two things.
    #[error(
        "{name:?} is used twice; each file of the database needs a volume or stripe of its own"
    )]
    FileTwice {
        /// The name.
        name: String,
    },
    /// A file that the layout has for something else.
    #[error("{key} = {name:?}: the layout says role = {is:?}; give a file of role {wanted:?}")]
    Role {
        /// The key that names it.
        key: &'static str,
        /// The name.
        name: String,
        /// What the layout says.
        is: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// Files of two databases.
    #[error("{name:?} is of database {is:?} in the layout, and the files before it of {of:?}")]
    OtherDatabase {
        /// The file.
        name: String,
        /// Its database.
        is: String,
        /// That of the others.
        of: String,
    },
    /// More schedulers than the instance has.
    #[error(
        "vcores = {vcores}{}: the instance of the layout has {instance}",
        if *others > 0 { format!(" beside {others} of other databases") } else { String::new() }
    )]
    Vcores {
        /// Its own.
        vcores: u32,
        /// Those of other databases.
        others: u32,
        /// Those of the instance.
        instance: u32,
    },
    /// Checkpoints of both kinds.
    #[error(
        "checkpoint.target_recovery is for indirect checkpoints and checkpoint.every for automatic ones; keep one of them"
    )]
    TwoCheckpoints,
    /// One file for two databases.
    #[error("{name:?} is a file of another database of this run; give each files of its own")]
    Shared {
        /// The name.
        name: String,
    },
    /// More data than the files hold.
    #[error(
        "{key} = {size} is more than the data files hold together, {files}; make them larger or the database smaller"
    )]
    DataFiles {
        /// `size` or `tempdb.size`.
        key: &'static str,
        /// Of the database.
        size: Bytes,
        /// Of the files.
        files: Bytes,
    },
    /// The layout says of some data files what is in use.
    #[error(
        "data file {name:?} has no used in the layout, and another has; give it for all or none"
    )]
    UsedOfSome {
        /// The file.
        name: String,
    },
    /// What is in use is not what the database has.
    #[error(
        "size = {size}, and the layout says that {used} of the data files are in use; make one fit the other"
    )]
    Used {
        /// Of the database.
        size: Bytes,
        /// Of the files.
        used: Bytes,
    },
    /// New pages, and nowhere to put them.
    #[error(
        "transaction {transaction:?} adds pages, and the data files are full and do not grow; make one larger than what is in it, or give it growth in the layout"
    )]
    NoRoom {
        /// The transaction.
        transaction: String,
    },
    /// A data file that gets more than it holds, of extents that are not divided.
    #[error(
        "data file {name:?} of {size} is too small for its share of the working set, {needs}; make it larger"
    )]
    DataFile {
        /// The file.
        name: String,
        /// Its size.
        size: Bytes,
        /// What it would get.
        needs: Bytes,
    },
    /// A log write that does not fit.
    #[error(
        "log_writer.block = {block} is more than the log file {name:?} of {size} holds, {LOG_START} of which are the checkpoints'; make the file larger or the block smaller"
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
        "transaction {transaction:?} may need {needs} of log, and the log file {name:?} has {size}; make the file larger or the transaction smaller"
    )]
    LogTransaction {
        /// The transaction.
        transaction: String,
        /// The size of a file that would do.
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
        let why = if users == 0 { "; without users nothing happens" } else { "" };
        Self::range("users", users, format!("1 to {MAX_USERS}"), why)
    }

    pub(crate) fn mean(key: &'static str, mean: f64) -> Self {
        Self::range(key, mean, format!("a mean from 0 to {MAX_MEAN}"), "")
    }

    /// A size that must be between a page and the most that is kept track of.
    pub(crate) fn pages(key: &'static str, size: Bytes) -> Self {
        Self::range(key, size, format!("{PAGE_SIZE} to {MAX_WORKING_SET}"), "")
    }
}
