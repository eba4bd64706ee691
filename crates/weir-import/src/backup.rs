//! Backups and restores: messages, error logs, history tables and logs of the tools that make them.
//!
//! Each backup that ended is one sample at its end. Its bytes hold for the time before it, which
//! `interval_ns` states where it is known.
//!
//! | module | holds |
//! |---|---|
//! | `ended` | a backup that ended, and how it becomes a sample |
//! | `message` | what SQL Server prints at the end of a backup, and whether its rate is right |
//! | `statement` | targets and options in `BACKUP` and `RESTORE` statements |
//! | `trace` | the buffer configuration that trace flags print |
//! | `client` | what a client of SQL Server shows |
//! | `errorlog` | the error log of SQL Server |
//! | `history` | `msdb.dbo.backupset` and `backupmediafamily` |
//! | `pgbackrest`, `basebackup`, `wal_g` | logs of tools of PostgreSQL |

mod basebackup;
mod client;
mod ended;
mod errorlog;
mod history;
mod message;
mod pgbackrest;
mod statement;
mod trace;
mod wal_g;

pub use history::BackupMedia;
pub(super) use history::with_media;

use super::kind::{By, Kind};

/// The kinds, most specific first.
pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "sqlserver-errorlog",
        about: "the error log of SQL Server, of which backups are read",
        recognizes: By::Text(errorlog::recognizes),
        open: errorlog::open,
    },
    Kind {
        name: "pgbackrest",
        about: "logs of pgBackRest",
        recognizes: By::Text(pgbackrest::recognizes),
        open: pgbackrest::open,
    },
    Kind {
        name: "wal-g",
        about: "logs of WAL-G",
        recognizes: By::Text(wal_g::recognizes),
        open: wal_g::open,
    },
    Kind {
        name: "pg-basebackup",
        about: "what pg_basebackup prints",
        recognizes: By::Text(basebackup::recognizes),
        open: basebackup::open,
    },
    Kind {
        name: "sqlserver-backup",
        about: "messages of BACKUP and RESTORE of SQL Server",
        recognizes: By::Text(client::recognizes),
        open: client::open,
    },
    Kind {
        name: "backup-history",
        about: "msdb.dbo.backupset of SQL Server, alone or joined with backupmediafamily",
        recognizes: By::Text(history::recognizes),
        open: history::open,
    },
    Kind {
        name: "backup-media",
        about: "msdb.dbo.backupmediafamily of SQL Server, beside a history of backups",
        recognizes: By::Text(history::recognizes_media),
        open: history::open_media,
    },
];
