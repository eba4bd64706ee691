//! The arguments of the verbs that read backups: list, show, verify, prune, restore.

use crate::cli::number::count;
use crate::cli::{ControlArgs, OutputArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Where the key of an encrypted backup is.
#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// File with the key of an encrypted backup. Otherwise the key is the value of WEIR_BACKUP_KEY.
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
}

/// The server of places that are named by their export.
#[derive(Debug, Args)]
pub(crate) struct PlaceArgs {
    /// Layout file, for places that are exports of a layout that no server has open. Needs --data.
    #[arg(long, value_name = "FILE", requires = "data")]
    pub(crate) layout: Option<PathBuf>,
    /// Data folder of --layout, or of the layout among the places. Without it, exports are those of the
    /// server at --control.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
    /// File with the shared access signature of the https:// places. Otherwise the signature is part of
    /// the URL, or the value of AZURE_STORAGE_SAS_TOKEN.
    #[arg(long, value_name = "FILE")]
    pub(crate) sas_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct BackupListArgs {
    /// Place with backups: a folder, the export of a raw volume, the https:// URL of a blob container,
    /// or a layout file (FILE.toml) for all of its volumes for backups.
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
    /// Backup: its id, at least the first 4 characters of its id, its name (the newest complete backup
    /// of that name), the path of a stripe, or a folder (its newest complete backup).
    #[arg(value_name = "BACKUP")]
    pub(crate) backup: String,
    /// Place that holds stripes: a folder, the export of a raw volume, the https:// URL of a blob
    /// container, or a layout file (FILE.toml) for all of its volumes for backups. May be repeated. Not needed if BACKUP is a path and all stripes are in its folder.
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
    /// Hide the progress bar, which is shown on stderr if that is a terminal.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) server: PlaceArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BackupPruneArgs {
    /// Place with backups: a folder, the export of a raw volume, the https:// URL of a blob container,
    /// or a layout file (FILE.toml) for all of its volumes for backups. Name every place that holds stripes of these backups or differentials on them.
    #[arg(required = true, value_name = "PLACE")]
    pub(crate) places: Vec<String>,
    /// Number of backups of each name to keep, the newest first.
    #[arg(long, value_name = "N", default_value_t = 0,
        value_parser = count::<u32>)]
    pub(crate) keep_last: u32,
    /// Number of days (UTC) of which to keep the newest backup. Days without a backup do not count.
    #[arg(long, value_name = "N", default_value_t = 0,
        value_parser = count::<u32>)]
    pub(crate) keep_daily: u32,
    /// Number of weeks (from Monday) of which to keep the newest backup.
    #[arg(long, value_name = "N", default_value_t = 0,
        value_parser = count::<u32>)]
    pub(crate) keep_weekly: u32,
    /// Number of months of which to keep the newest backup.
    #[arg(long, value_name = "N", default_value_t = 0,
        value_parser = count::<u32>)]
    pub(crate) keep_monthly: u32,
    /// Prune backups of this name only. May be repeated [default: all names, each on its own].
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Vec<String>,
    /// Remove incomplete backups that are younger than a day too, and backups with missing stripes.
    /// Do not use it while a backup to these places is running.
    #[arg(long)]
    pub(crate) incomplete: bool,
    /// Remove damaged backups: they were complete, and a stripe is truncated.
    #[arg(long)]
    pub(crate) damaged: bool,
    /// Print the decisions and remove nothing.
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
    /// Restore nothing from a damaged backup.
    #[default]
    Refuse,
    /// Restore what is sound, list what is lost, and end with exit code 1.
    Skip,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    pub(crate) chosen: ChosenArgs,
    /// Layout file whose volumes are restored, together with --data; or, for one source, the address
    /// of an export: nbd://HOST/NAME or nbd+unix:///NAME?socket=PATH.
    #[arg(long, visible_alias = "layout", value_name = "LAYOUT|URI",
        conflicts_with_all = ["control", "image"])]
    pub(crate) to: Option<String>,
    /// Data folder of the layout of --to. It is made if it does not exist; no server may have it open.
    #[arg(long, value_name = "DIR", requires = "to")]
    pub(crate) data: Option<PathBuf>,
    /// Control socket of a running server whose exports are restored.
    #[arg(long, value_name = "PATH", conflicts_with = "image")]
    pub(crate) control: Option<PathBuf>,
    /// Control socket of the server whose exports --from names, if it is not the server that is
    /// restored to [default: the server of --control or --to, then WEIR_CONTROL, then the default
    /// socket].
    #[arg(long, value_name = "PATH", requires = "from")]
    pub(crate) from_control: Option<PathBuf>,
    /// File with the shared access signature of the https:// places of --from. Otherwise the signature
    /// is part of the URL, or the value of AZURE_STORAGE_SAS_TOKEN.
    #[arg(long, value_name = "FILE")]
    pub(crate) sas_file: Option<PathBuf>,
    /// Folder for raw images: each source becomes a sparse file NAME.raw.
    #[arg(long, value_name = "DIR")]
    pub(crate) image: Option<PathBuf>,
    /// Restore a source to a target of another name, for example data=data2. May be repeated
    /// [default: the target of the source's own name].
    #[arg(long, value_name = "SOURCE=TARGET", value_parser = renaming)]
    pub(crate) map: Vec<(String, String)>,
    /// Restore this source only. May be repeated [default: all sources].
    #[arg(long, value_name = "SOURCE")]
    pub(crate) only: Vec<String>,
    /// Overwrite targets that are not empty. A target is zeroed first.
    #[arg(long)]
    pub(crate) force: bool,
    /// What to do with a damaged backup.
    #[arg(long, value_enum, default_value_t = DamagedArg::Refuse)]
    pub(crate) damaged: DamagedArg,
    /// Read everything back and compare it with the backup. Without a target, the backup is restored
    /// to scratch volumes, which are removed at the end: a test of the backup.
    #[arg(long)]
    pub(crate) prove: bool,
    /// With --prove: OLTP description of the database to recover from the restored volumes. The
    /// recovery checks every page and every transaction in the log.
    #[arg(long, value_name = "OLTP", requires = "prove")]
    pub(crate) oltp: Option<PathBuf>,
    /// With --oltp: file with the number of the newest acknowledged transaction. The proof fails if the
    /// recovery does not find all up to it.
    #[arg(long, value_name = "FILE", requires = "oltp")]
    pub(crate) acknowledged: Option<PathBuf>,
    /// With --prove: folder for scratch volumes [default: the system's temporary folder].
    #[arg(long, value_name = "DIR", requires = "prove")]
    pub(crate) scratch: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) key: KeyArgs,
    /// Hide the progress bar, which is shown on stderr if that is a terminal.
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
        _ => Err("write SOURCE=TARGET, for example data=data2".to_owned()),
    }
}
