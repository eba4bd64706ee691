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
pub(crate) mod history;
mod message;
mod pgbackrest;
mod statement;
mod trace;
mod wal_g;

use crate::kind::Kind;

/// The kinds, most specific first.
pub(crate) const KINDS: &[Kind] = &[
    errorlog::KIND,
    pgbackrest::KIND,
    wal_g::KIND,
    basebackup::KIND,
    client::KIND,
    history::KIND,
    history::MEDIA_KIND,
];
