//! Campaigns of crashes: random layouts under random load, killed again and again, against an oracle
//! of what was promised.
//!
//! A campaign consists of systems, each with a random layout and an empty data folder. A system lives
//! for some rounds. In a round, clients change what it serves until the server is killed, its hosts
//! crash, or it is stopped. Then the server starts again, and every block must hold the newest
//! promised content or a later one, whole. In some systems, the disk of the data folder loses power when the
//! server is killed.
//!
//! | kind | clients | a promise is |
//! |---|---|---|
//! | `nbd` | write, trim and flush volumes, while the control socket changes these | a flush, or FUA |
//! | `blobs` | put and clear pages, and take snapshots | each answer |
//! | `mount` | write, sync and replace files | a sync |
//! | `full` | as `nbd`, on a disk that is too small | a flush, or FUA |
//! | `failing` | as `nbd` without changes of the volumes, on a disk that fails while they write | a flush, or FUA |
//! | `database` | commit transactions to SQLite and PostgreSQL in a mount | a commit |
//! | `backup` | write, zero and flush volumes, while backups of these are taken and killed | the end of a backup; a flush |
//! | `tuning` | as `nbd`, while tiers, sizes, cache modes and volumes change | the answer to a change; a flush, or FUA |

mod backup;
mod blobs;
mod child;
mod database;
mod disk;
mod failing;
mod full;
mod load;
mod mount;
mod nbd;
mod oracle;
mod report;
mod server;
mod session;
mod system;
mod tuning;
mod writers;

use crate::error::XtaskError;
use crate::interrupt::Interrupt;
use disk::Disk;
pub use report::{Report, Tally};
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_random::Rng;
use weir_units::{Instant, Span};
use weir_wall::Clock;

/// Rounds of a system.
const ROUNDS: u64 = 20;

/// A kind of system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Volumes over NBD.
    Nbd,
    /// Page blobs over REST.
    Blobs,
    /// Files in a mount.
    Mount,
    /// Volumes over NBD on a disk that runs full.
    Full,
    /// Volumes over NBD on a disk that fails.
    Failing,
    /// Databases in a mount.
    Database,
    /// Backups of volumes under load.
    Backup,
    /// Volumes whose settings change under load.
    Tuning,
}

/// A campaign.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The kinds of systems, which take turns; none stands for all that this machine can run.
    pub kinds: Vec<Kind>,
    /// The time after which no round begins, except for the first one of a kind.
    pub time: Span,
    /// Most rounds, if there is a number.
    pub rounds: Option<u64>,
    /// Seed of everything that is random, except for the order in which threads run.
    pub seed: u64,
    /// The program.
    pub weir: PathBuf,
    /// Ends the campaign after the present round.
    pub interrupt: Interrupt,
}

/// The surroundings of a system.
struct Campaign<'a> {
    weir: &'a Path,
    /// A folder that is empty, or has the disk of the data folder.
    folder: &'a Path,
    /// That disk, if it loses power or fails.
    disk: Option<&'a Arc<Disk>>,
    /// Each kind has its first system, and the time has to do for all of them.
    is_first_turn: bool,
    is_over: &'a dyn Fn(&Tally) -> bool,
}

impl Kind {
    const ALL: [Self; 8] = [
        Self::Nbd,
        Self::Blobs,
        Self::Mount,
        Self::Full,
        Self::Database,
        Self::Backup,
        Self::Tuning,
        // At the end, so that a seed of an earlier version still gives the others the same losses of power.
        Self::Failing,
    ];

    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nbd => "nbd",
            Self::Blobs => "blobs",
            Self::Mount => "mount",
            Self::Full => "full",
            Self::Failing => "failing",
            Self::Database => "database",
            Self::Backup => "backup",
            Self::Tuning => "tuning",
        }
    }

    /// Returns what its clients change, and what is checked afterwards.
    const fn counts(self) -> (&'static str, &'static str) {
        match self {
            Self::Nbd | Self::Blobs | Self::Mount | Self::Full | Self::Failing | Self::Backup => {
                ("writes", "blocks")
            }
            Self::Database => ("transactions", "rows"),
            Self::Tuning => ("writes", "blocks and settings"),
        }
    }

    /// Returns whether the disk of a system loses power whenever its server is killed. Turns with and without losses
    /// of power alternate, and every other kind begins with one. The disk of `full` is in memory, and that of
    /// `failing` fails in another way.
    fn loses_power(self, seed: u64, turn: u64) -> bool {
        let at = Self::ALL.iter().position(|kind| *kind == self).unwrap_or(0) as u64;
        !matches!(self, Self::Full | Self::Failing) && (seed ^ turn ^ at) & 1 == 0
    }

    /// Returns what this machine lacks for it.
    fn lacks(self) -> Option<&'static str> {
        match self {
            Self::Nbd | Self::Blobs | Self::Backup | Self::Tuning => None,
            Self::Mount => mount::lacks(),
            Self::Full => full::lacks(),
            Self::Failing => disk::lacks(),
            Self::Database => database::lacks(),
        }
    }

    /// Returns whether CI may leave it out, on a machine with loop devices or without them.
    const fn may_be_left_out(self, has_loop_devices: bool) -> bool {
        match self {
            Self::Full => true,
            Self::Failing => !has_loop_devices,
            _ => false,
        }
    }

    /// Returns what this machine lacks for a part of it.
    fn partly_lacks(self) -> Option<&'static str> {
        match self {
            Self::Database => database::partly_lacks(),
            _ => None,
        }
    }

    /// Lives a system, and describes it.
    fn live(
        self,
        rng: &mut Rng,
        campaign: &Campaign<'_>,
        tally: &mut Tally,
    ) -> Result<String, XtaskError> {
        match self {
            Self::Nbd => nbd::live(rng, campaign, tally),
            Self::Blobs => blobs::live(rng, campaign, tally),
            Self::Mount => mount::live(rng, campaign, tally),
            Self::Full => full::live(rng, campaign, tally),
            Self::Failing => failing::live(rng, campaign, tally),
            Self::Database => database::live(rng, campaign, tally),
            Self::Backup => backup::live(rng, campaign, tally),
            Self::Tuning => tuning::live(rng, campaign, tally),
        }
    }
}

/// Runs a campaign, and prints a line for each system and then one for each kind.
///
/// # Errors
///
/// [`XtaskError::Lost`] if a block does not hold what was promised; its data folder is kept. Other
/// errors if the program cannot be run.
pub fn run(plan: &Plan, out: &mut dyn Write) -> Result<Report, XtaskError> {
    let weir = crate::program(&plan.weir)?;
    let plan = &Plan { weir, kinds: kinds(plan, is_ci(), out)?, ..plan.clone() };
    let mut report = Report::new(&plan.kinds);
    let ran = run_systems(plan, &mut report, out);
    say(out, report.to_string().trim_end())?;
    ran.map(|()| report)
}

/// Returns the kinds that can run, the main one first. With `must`, all programs have to be there.
fn kinds(plan: &Plan, must: bool, out: &mut dyn Write) -> Result<Vec<Kind>, XtaskError> {
    if let Some((kind, lack)) = plan.kinds.iter().find_map(|own| Some((own, own.lacks()?))) {
        return Err(XtaskError::Lost(format!("--kind {}: {lack}", kind.name())));
    }
    let mut kinds: Vec<Kind> = Vec::new();
    for kind in &plan.kinds {
        if !kinds.contains(kind) {
            kinds.push(*kind);
        }
    }
    if kinds.is_empty() {
        for kind in Kind::ALL {
            match kind.lacks() {
                None => kinds.push(kind),
                Some(lack) if must && !kind.may_be_left_out(must_lose_power()) => {
                    return Err(needed(kind, lack));
                }
                Some(lack) => say(out, &format!("{} is skipped: {lack}", kind.name()))?,
            }
        }
    }
    for kind in &kinds {
        if let Some(lack) = kind.partly_lacks() {
            if must {
                return Err(needed(*kind, lack));
            }
            say(out, &format!("{}: {lack}", kind.name()))?;
        }
    }
    kinds.sort_by_key(|kind| *kind != Kind::Nbd);
    Ok(kinds)
}

/// Returns whether CI runs on a machine with loop devices.
fn must_lose_power() -> bool {
    let without = std::env::var("WEIR_TEST_WITHOUT").unwrap_or_default();
    is_ci() && !without.split_whitespace().any(|own| own == "loop-devices")
}

fn is_ci() -> bool {
    std::env::var_os("CI").as_deref() == Some(OsStr::new("true"))
}

fn needed(kind: Kind, lack: &str) -> XtaskError {
    XtaskError::Lost(format!("CI=true, and all programs have to be there; {}: {lack}", kind.name()))
}

fn run_systems(plan: &Plan, report: &mut Report, out: &mut dyn Write) -> Result<(), XtaskError> {
    let lack = disk::lacks();
    if let Some(lack) = lack {
        if must_lose_power() {
            let words = format!("CI=true, and disks have to lose power; {lack}");
            return Err(XtaskError::Lost(words));
        }
        say(out, &format!("no disk loses power: {lack}"))?;
    }
    let (clock, end) = (Clock::start(), Instant::ZERO + plan.time);
    for number in 0.. {
        let before = report.rounds();
        let has_time = || clock.now() < end;
        let has_rounds = |rounds: u64| plan.rounds.is_none_or(|most| rounds < most);
        let count = plan.kinds.len() as u64;
        let is_first_turn = number < count;
        if plan.interrupt.came() || !has_rounds(before) || !(has_time() || is_first_turn) {
            break;
        }
        let turn_ends = turn_ends(clock.now(), end, number, count);
        let folder = tempfile::tempdir()
            .map_err(|source| XtaskError::System { doing: "making a folder", source })?;
        let start = if is_first_turn { 0 } else { plan.seed };
        let turn = usize::try_from(start.wrapping_add(number) % count);
        let kind = plan.kinds[turn.unwrap_or(0)];
        let mut tally = Tally::default();
        let loses_power = lack.is_none() && kind.loses_power(plan.seed, number / count);
        let has_disk = loses_power || kind == Kind::Failing;
        let disk = has_disk.then(|| Disk::new(folder.path()).map(Arc::new)).transpose()?;
        let lived = kind.live(
            &mut Rng::new(&[plan.seed, number]),
            &Campaign {
                weir: &plan.weir,
                folder: folder.path(),
                disk: disk.as_ref(),
                is_first_turn,
                is_over: &|own| {
                    // A kind without a round would not be tested at all.
                    let is_needed = is_first_turn && own.rounds() == 0;
                    let is_late = !is_needed && clock.now() >= turn_ends;
                    plan.interrupt.came() || is_late || !has_rounds(before + own.rounds())
                },
            },
            &mut tally,
        );
        drop(disk);
        if loses_power {
            tally.power_losses = std::mem::take(&mut tally.kills);
        }
        let lived = match lived {
            Err(error) => {
                tally.lost += 1;
                report.add(kind, tally);
                // The data folder and its layout are the evidence.
                let kept = folder.keep();
                return Err(XtaskError::Lost(format!(
                    "seed {}, system {number} ({}): {error}\nlayout and data are kept in {}{}",
                    plan.seed,
                    kind.name(),
                    kept.display(),
                    if has_disk { "; mount -o loop disk.img data shows the data" } else { "" }
                )));
            }
            Ok(words) => words,
        };
        tally.systems += 1;
        report.add(kind, tally);
        say(
            out,
            &format!(
                "system {number}: {}{}: {} rounds, {} {} acknowledged, {} promised {}: {lived}",
                kind.name(),
                if loses_power { " with losses of power" } else { "" },
                tally.rounds(),
                tally.writes,
                kind.counts().0,
                tally.promises,
                kind.counts().1,
            ),
        )?;
    }
    Ok(())
}

/// Returns the time until which a system may live. In the first turn of the kinds, each gets an equal part of
/// the time that is left, so that a short campaign has all of them.
fn turn_ends(now: Instant, end: Instant, number: u64, kinds: u64) -> Instant {
    match kinds.saturating_sub(number) {
        0 => end,
        left => now + Span::from_nanos(end.nanos().saturating_sub(now.nanos()) / left),
    }
}

fn say(out: &mut dyn Write, line: &str) -> Result<(), XtaskError> {
    writeln!(out, "{line}")
        .map_err(|source| XtaskError::System { doing: "writing the output", source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ci_leaves_out_what_a_machine_cannot_have() {
        let left_out = |has_loop_devices: bool| {
            let kinds = Kind::ALL.into_iter();
            kinds.filter(|own| own.may_be_left_out(has_loop_devices)).collect::<Vec<_>>()
        };
        assert_eq!(left_out(true), [Kind::Full]);
        assert_eq!(left_out(false), [Kind::Full, Kind::Failing]);
    }
}
