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
    /// Back up exports, all of one instant, into stripes on folders, raw volumes or blobs.
    #[command(
        after_help = "Example:\n  weir backup run --layout layout.toml --data /var/lib/weir --to \
                            /mnt/a /mnt/b --stripes 8\n  weir backup run data log --to backup1 backup2 \
                            --stripes 8 --compress --verify\n  weir backup run --layout layout.toml \
                            oltp.toml --to /backups --differential\n  weir backup run \
                            nbd://host/disk --to /backups --encrypt --key-file backup.key\n\n\
                            Without --data the server at --control is asked: its exports are frozen at \
                            one instant while clients go on, and read through its limits. A stripe has its \
                            name only when all stripes are complete. Exit code 1: --verify found damage, \
                            2: the input is wrong or there is no room, 130: Ctrl-C. docs/BACKUP.md explains \
                            the format."
    )]
    Run(Box<BackupRunArgs>),
    /// Find the cheapest target disks, stripes and transfers with which a backup meets its window.
    /// Exit code 1 if none do.
    #[command(
        after_help = "Example:\n  weir backup plan --size 4TiB --within 2h --edition azure-now \
                            --host D64s_v3\n  weir backup plan --layout layout.toml --within 3h --out \
                            new.toml --out-backup backup.toml\n  weir backup plan --layout layout.toml \
                            --within 3h --beside oltp.toml --max-slowdown 5%\n\n\
                            Every choice that could be cheaper is excluded by a lower bound or simulated, and \
                            the plan is simulated as a whole. weir export --as tsql-backup, ola, dbatools or \
                            pgbackrest writes it as a script. docs/BACKUP.md explains the search."
    )]
    Plan(Box<BackupPlanArgs>),
    /// Print what SQL Server logs of a backup under trace flags 3213, 3014, 3004 and 3605: readers,
    /// buffers and their memory.
    #[command(
        after_help = "Example:\n  weir backup internals layout.toml backup.toml\n  weir backup \
                            internals layout.toml --sources data --readers 4 --stripes 8 --compress"
    )]
    Internals(Box<BackupInternalsArgs>),
    /// List the backups in folders, raw volumes and containers.
    #[command(
        after_help = "Example:\n  weir backup list /backups\n  weir backup list /mnt/a /mnt/b \
                            --output json"
    )]
    List(BackupListArgs),
    /// Show one backup: its sources, its stripes, and how it was made.
    #[command(after_help = "Example:\n  weir backup show sales --from /backups")]
    Show(BackupShowArgs),
    /// Read a whole backup and name whatever is damaged, to the frame. Nothing is written. Exit code
    /// 1 if anything is damaged.
    #[command(
        after_help = "Example:\n  weir backup verify sales --from /backups\n  weir backup verify \
                            /backups/sales-0199c1a2-7b3c-01of04.weirbak --key-file backup.key\n\n\
                            A differential is verified together with the full backup that it builds \
                            on. Without the key, the stored bytes of an encrypted backup are checked."
    )]
    Verify(BackupVerifyArgs),
    /// Remove the backups that no rule keeps. A full backup that a kept differential needs is kept.
    #[command(
        after_help = "Example:\n  weir backup prune /backups --keep-daily 7 --keep-weekly 4 \
                            --dry-run\n\nThe backups of one name are a series with days, weeks and \
                            months of its own. An incomplete backup is removed when it is older than \
                            a day."
    )]
    Prune(BackupPruneArgs),
    /// Print a new random key for encrypted backups.
    #[command(after_help = "Example:\n  weir backup key > backup.key && chmod 600 backup.key")]
    Key,
}
