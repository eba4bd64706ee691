//! The arguments of `weir backup`.

mod internals;
mod kept;
mod plan;
mod run;

pub(crate) use internals::BackupInternalsArgs;
pub(crate) use kept::{
    BackupListArgs, BackupPruneArgs, BackupShowArgs, BackupVerifyArgs, ChosenArgs, DamagedArg,
    KeyArgs, PlaceArgs, RestoreArgs,
};
pub(crate) use plan::BackupPlanArgs;
pub(crate) use run::BackupRunArgs;

use clap::Subcommand;

/// The verbs of `weir backup`.
#[derive(Debug, Subcommand)]
pub(crate) enum BackupCommand {
    /// Back up exports, all as of one instant, into stripes in folders, on raw volumes or in blobs.
    #[command(after_help = "Example:\n  \
                      weir backup run --layout layout.toml --data /var/lib/weir --to /mnt/a /mnt/b --stripes 8\n  \
                      weir backup run data log --to backup1 backup2 --stripes 8 --compress --verify\n  \
                      weir backup run --layout layout.toml oltp.toml --to /backups --differential\n  \
                      weir backup run nbd://host/disk --to /backups --encrypt --key-file backup.key\n\n\
                      Without --data, the exports of the server at --control are frozen at one \
                      instant, without stopping their clients, and are read through the limits of \
                      their tiers. Stripes get their final names when all of them are \
                      complete.\n\n\
                      Exit codes: 0 complete; 1 --verify found damage, or a volume that is not \
                      served is missing; 2 wrong input, or too little space on a target; 3 a source \
                      or target failed; 130 Ctrl-C. docs/BACKUP.md describes the format.")]
    Run(Box<BackupRunArgs>),
    /// Find the cheapest target disks, with the stripes and transfer size, that complete a backup
    /// within its window.
    #[command(after_help = "Example:\n  \
                      weir backup plan --size 4TiB --within 3h --edition azure-now --host D64s_v3\n  \
                      weir backup plan --layout layout.toml --within 3h --out new.toml --out-backup backup.toml\n  \
                      weir backup plan --layout layout.toml --within 3h --beside oltp.toml --max-slowdown 5%\n\n\
                      Each cheaper choice is simulated or ruled out by a lower bound, and the plan \
                      itself is simulated in full. weir export --as tsql-backup, ola, dbatools or \
                      pgbackrest writes it as a script. docs/BACKUP.md describes the search.\n\n\
                      Exit codes: 0 the plan meets the window; 1 no disks do; 2 wrong input.")]
    Plan(Box<BackupPlanArgs>),
    /// Print the readers, buffers and buffer memory that SQL Server logs for a backup under trace flags
    /// 3213, 3014, 3004 and 3605.
    #[command(
        after_help = "Example:\n  weir backup internals layout.toml backup.toml\n  weir backup \
                            internals layout.toml --sources data --readers 4 --stripes 8 --compress"
    )]
    Internals(Box<BackupInternalsArgs>),
    /// List the backups in folders, on raw volumes and in blob containers.
    #[command(after_help = "Example:\n  \
                      weir backup list /backups\n  \
                      weir backup list /mnt/a /mnt/b --output json\n\n\
                      Exit codes: 0 backups were found; 1 none were found; 2 a place does not \
                      exist.")]
    List(BackupListArgs),
    /// Show one backup: its id, sources, stripes and options.
    #[command(after_help = "Example:\n  weir backup show sales --from /backups")]
    Show(BackupShowArgs),
    /// Read a whole backup and report damage, down to the frame. Nothing is written.
    #[command(
        after_help = "Example:\n  weir backup verify sales --from /backups\n  weir backup verify \
                            /backups/sales-0199c1a2-7b3c-01of04.weirbak --key-file backup.key\n\n\
                            A differential is verified together with the full backup that it builds \
                            on. Without its key, only the stored bytes of an encrypted backup are \
                            checked, not the contents.\n\nExit codes: 0 sound; 1 damaged; 2 wrong input or \
                            key; 3 a place failed; 130 Ctrl-C."
    )]
    Verify(BackupVerifyArgs),
    /// Remove the backups that no retention rule keeps.
    #[command(
        after_help = "Example:\n  weir backup prune /backups --keep-daily 7 --keep-weekly 4 \
                            --dry-run\n\nThe rules apply to the backups of each name separately. A full \
                            backup that a kept differential builds on is kept. An incomplete backup is \
                            removed a day after the last write to it, a damaged one only with --damaged.\n\n\
                            Exit codes: 0 pruned, or nothing to prune; 2 wrong input, or a stripe that cannot \
                            be read; 3 a place failed, and the report says what was removed before."
    )]
    Prune(BackupPruneArgs),
    /// Print a new random key for encrypted backups.
    #[command(after_help = "Example:\n  weir backup key > backup.key && chmod 600 backup.key")]
    Key,
}
