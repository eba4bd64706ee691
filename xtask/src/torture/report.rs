//! The counts of a campaign.

use super::Kind;
use super::system::End;
use std::fmt;

/// The counts of a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Systems that lived to their end.
    pub systems: u64,
    /// Servers that were killed.
    pub kills: u64,
    /// Servers that were killed by a loss of power, which their disks also had.
    pub power_losses: u64,
    /// Servers whose disk failed under load, and that were killed then.
    pub disk_failures: u64,
    /// Servers whose hosts crashed.
    pub crashes: u64,
    /// Servers that were stopped.
    pub stops: u64,
    /// Changes through the control socket.
    pub changes: u64,
    /// Acknowledged changes of content.
    pub writes: u64,
    /// Acknowledged flushes or syncs.
    pub flushes: u64,
    /// Refused changes for which there was no space.
    pub full: u64,
    /// Requests that failed because their disk did.
    pub failed: u64,
    /// Backups that were restored and compared.
    pub restores: u64,
    /// Blocks, rows or settings with a promise that were read after the end of a server.
    pub promises: u64,
    /// Systems that lost something, or did not work.
    pub lost: u64,
}

impl Tally {
    /// Returns the number of servers that ended.
    #[must_use]
    pub const fn rounds(&self) -> u64 {
        self.kills + self.power_losses + self.disk_failures + self.crashes + self.stops
    }

    pub(super) fn ended(&mut self, end: End) {
        *match end {
            End::Kill => &mut self.kills,
            End::Crash => &mut self.crashes,
            End::Stop => &mut self.stops,
        } += 1;
    }

    fn add(&mut self, other: Self) {
        self.systems += other.systems;
        self.kills += other.kills;
        self.power_losses += other.power_losses;
        self.disk_failures += other.disk_failures;
        self.crashes += other.crashes;
        self.stops += other.stops;
        self.changes += other.changes;
        self.writes += other.writes;
        self.flushes += other.flushes;
        self.full += other.full;
        self.failed += other.failed;
        self.restores += other.restores;
        self.promises += other.promises;
        self.lost += other.lost;
    }
}

/// The counts of a campaign, by kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    kinds: Vec<(Kind, Tally)>,
}

impl Report {
    pub(super) fn new(kinds: &[Kind]) -> Self {
        Self { kinds: kinds.iter().map(|kind| (*kind, Tally::default())).collect() }
    }

    pub(super) fn add(&mut self, kind: Kind, tally: Tally) {
        if let Some((_, own)) = self.kinds.iter_mut().find(|(own, _)| *own == kind) {
            own.add(tally);
        }
    }

    pub(super) fn rounds(&self) -> u64 {
        self.kinds.iter().map(|(_, tally)| tally.rounds()).sum()
    }

    /// Returns whether each kind had a round, promises were checked, and none was broken.
    #[must_use]
    pub fn is_good(&self) -> bool {
        let promises: u64 = self.kinds.iter().map(|(_, tally)| tally.promises).sum();
        let is_good = |tally: &Tally| tally.rounds() > 0 && tally.lost == 0;
        promises > 0 && self.kinds.iter().all(|(_, tally)| is_good(tally))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, own) in &self.kinds {
            let (written, checked) = kind.counts();
            let ends = [
                (own.kills, "kills"),
                (own.power_losses, "losses of power"),
                (own.disk_failures, "disk failures"),
                (own.crashes, "host crashes"),
                (own.stops, "stops"),
            ];
            let counts = [
                (own.changes, "changes under load".to_owned()),
                (own.writes, format!("{written} acknowledged")),
                (own.flushes, "flushes acknowledged".to_owned()),
                (own.full, "changes refused on a full disk".to_owned()),
                (own.failed, "requests failed with EIO".to_owned()),
                (own.restores, "backups restored".to_owned()),
                (own.promises, format!("promised {checked} checked")),
            ];
            write!(f, "{}: {} systems, {} rounds", kind.name(), own.systems, own.rounds())?;
            for (at, (count, name)) in ends.iter().filter(|(count, _)| *count > 0).enumerate() {
                write!(f, "{}{count} {name}", if at == 0 { ": " } else { ", " })?;
            }
            for (count, name) in counts.iter().filter(|(count, _)| *count > 0) {
                write!(f, "; {count} {name}")?;
            }
            writeln!(f, "; {} lost", own.lost)?;
        }
        for (kind, _) in self.kinds.iter().filter(|(_, own)| own.rounds() == 0) {
            writeln!(f, "{}: not one round was run", kind.name())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_without_a_round_is_not_good() {
        let checked = Tally { kills: 1, promises: 5, ..Tally::default() };
        let mut report = Report::new(&[Kind::Nbd, Kind::Mount]);
        report.add(Kind::Nbd, checked);
        assert!(!report.is_good());
        assert!(report.to_string().contains("mount: not one round"), "{report}");
        report.add(Kind::Mount, Tally { stops: 1, ..Tally::default() });
        assert!(report.is_good());
        assert_eq!(
            report.to_string(),
            "nbd: 0 systems, 1 rounds: 1 kills; 5 promised blocks checked; 0 lost\n\
             mount: 0 systems, 1 rounds: 1 stops; 0 lost\n"
        );
        let mut failed = Report::new(&[Kind::Failing]);
        failed.add(
            Kind::Failing,
            Tally { disk_failures: 2, failed: 7, promises: 3, ..Tally::default() },
        );
        let words = "failing: 0 systems, 2 rounds: 2 disk failures; 7 requests failed with EIO; 3 promised blocks checked; 0 lost\n";
        assert_eq!(failed.to_string(), words);
        report.add(Kind::Mount, Tally { lost: 1, ..Tally::default() });
        assert!(!report.is_good());
    }
}
