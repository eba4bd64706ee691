//! The arguments of the verbs that read backups: list, show, verify, prune, restore.

use crate::cli::{ControlArgs, OutputArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Where the key of an encrypted backup is.
#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// Read the key of an encrypted backup from this file; otherwise it is taken from the
    /// environment variable WEIR_BACKUP_KEY.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
}

/// The server of places that are named by their export.
#[derive(Debug, Args)]
pub(crate) struct PlaceArgs {
    /// With --data: the layout of places that are named by their export.
    #[arg(long, value_name = "FILE", requires = "data")]
    pub(crate) layout: Option<PathBuf>,
    /// With --layout: its data folder, which no server has open. Without both, the running server
    /// is asked.
    #[arg(long, value_name = "DIR", requires = "layout")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BackupListArgs {
    /// Folders, exports of raw volumes or blob containers that hold backups.
    #[arg(required = true, value_name = "PLACE")]
    pub(crate) places: Vec<String>,
    #[command(flatten)]
    pub(crate) server: PlaceArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// A backup, and the places to find it in.
#[derive(Debug, Args)]
pub(crate) struct ChosenArgs {
    /// The backup: its id or the beginning of it, its name (the newest complete one is taken), or
    /// the path of one of its stripes.
    #[arg(value_name = "BACKUP")]
    pub(crate) backup: String,
    /// Look for stripes here: a folder, the export of a raw volume, or a blob container. May be
    /// repeated. Not needed if BACKUP is a path and all stripes are in its folder.
    #[arg(long, value_name = "PLACE")]
    pub(crate) from: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct BackupShowArgs {
    #[command(flatten)]
    pub(crate) chosen: ChosenArgs,
    #[command(flatten)]
    pub(crate) server: PlaceArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BackupVerifyArgs {
    #[command(flatten)]
    pub(crate) chosen: ChosenArgs,
    #[command(flatten)]
    pub(crate) key: KeyArgs,
    /// Show no progress. It is shown on stderr, if that is a terminal.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) server: PlaceArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BackupPruneArgs {
    /// Folders, exports of raw volumes or blob containers that hold backups. Name all that hold
    /// stripes of the same backups.
    #[arg(required = true, value_name = "PLACE")]
    pub(crate) places: Vec<String>,
    /// Keep the newest backups of each name, so many.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) keep_last: u32,
    /// Keep the newest backup of each day (UTC), for so many days that have one.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) keep_daily: u32,
    /// Keep the newest backup of each week, for so many weeks that have one.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) keep_weekly: u32,
    /// Keep the newest backup of each month, for so many months that have one.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) keep_monthly: u32,
    /// Act on backups with this name only. May be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Vec<String>,
    /// Remove incomplete backups younger than a day, and backups of which stripes are missing.
    #[arg(long)]
    pub(crate) incomplete: bool,
    /// Say what would be removed, and remove nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) server: PlaceArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What to do with damage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DamagedArg {
    /// Restore nothing that is not whole.
    #[default]
    Refuse,
    /// Restore what is sound, and list what is lost. The exit code is 1.
    Skip,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    pub(crate) chosen: ChosenArgs,
    /// Restore to the volumes of this layout file, with --data; or to this export: nbd://HOST/NAME
    /// or nbd+unix:///NAME?socket=PATH, for a backup of one source.
    #[arg(long, visible_alias = "layout", value_name = "LAYOUT|URI",
        conflicts_with_all = ["control", "image"])]
    pub(crate) to: Option<String>,
    /// The data folder of the layout of --to, which is made if it is not there. No server may have
    /// it open.
    #[arg(long, value_name = "DIR", requires = "to")]
    pub(crate) data: Option<PathBuf>,
    /// Restore to the exports of the server with this control socket, while it runs.
    #[arg(long, value_name = "PATH", conflicts_with = "image")]
    pub(crate) control: Option<PathBuf>,
    /// Restore to raw images in this folder: NAME.raw, sparse.
    #[arg(long, value_name = "DIR")]
    pub(crate) image: Option<PathBuf>,
    /// Restore a source to the target of this name, for example data=data2. May be repeated.
    /// Otherwise a source goes to the target of its own name.
    #[arg(long, value_name = "SOURCE=TARGET", value_parser = renaming)]
    pub(crate) map: Vec<(String, String)>,
    /// Restore this source only. May be repeated.
    #[arg(long, value_name = "SOURCE")]
    pub(crate) only: Vec<String>,
    /// Replace what is on the targets. Without it, a target that holds anything is refused.
    #[arg(long)]
    pub(crate) force: bool,
    /// Decide about a damaged backup.
    #[arg(long, value_enum, default_value_t = DamagedArg::Refuse)]
    pub(crate) damaged: DamagedArg,
    /// Read everything back and compare it with the backup. Without a target it goes to scratch
    /// volumes, which are removed: a test of the restore.
    #[arg(long)]
    pub(crate) prove: bool,
    /// With --prove: recover this database from the restored volumes, and check every transaction.
    #[arg(long, value_name = "OLTP", requires = "prove")]
    pub(crate) oltp: Option<PathBuf>,
    /// With --oltp: the file with the number of the newest acknowledged transaction, which the
    /// recovery is held to.
    #[arg(long, value_name = "FILE", requires = "oltp")]
    pub(crate) acknowledged: Option<PathBuf>,
    /// With --prove: the folder for scratch volumes, instead of the system's temporary folder.
    #[arg(long, value_name = "DIR", requires = "prove")]
    pub(crate) scratch: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) key: KeyArgs,
    /// Show no progress. It is shown on stderr, if that is a terminal.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

fn renaming(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((source, target)) if !source.is_empty() && !target.is_empty() => {
            Ok((source.to_owned(), target.to_owned()))
        }
        _ => Err("write SOURCE=TARGET, like data=data2".to_owned()),
    }
}
