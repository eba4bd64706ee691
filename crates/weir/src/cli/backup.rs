//! The arguments of `weir backup`.

use clap::Subcommand;

/// The verbs of `weir backup`.
#[derive(Debug, Subcommand)]
pub(crate) enum BackupCommand {
    /// Print a new random key for encrypted backups.
    #[command(after_help = "Example:\n  weir backup key > backup.key && chmod 600 backup.key")]
    Key,
}
