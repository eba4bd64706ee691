//! Which backups to keep.
//!
//! The backups of one name are a series. A rule keeps the newest backup of each of the newest
//! days, weeks or months that have one. What a kept differential builds on is kept too.

use crate::format::{BackupId, Kind};
use std::collections::BTreeSet;

/// Milliseconds of a day.
const DAY_MS: u64 = 86_400_000;
/// The age below which an incomplete backup may still be being written.
const UNFINISHED_MS: u64 = DAY_MS;

/// The rules. A backup is kept if one of them keeps it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rules {
    /// Keep this number of the newest backups.
    pub last: u32,
    /// Keep the newest of each day (UTC), for this number of days that have one.
    pub daily: u32,
    /// Keep the newest of each week (from Monday), for this number of weeks that have one.
    pub weekly: u32,
    /// Keep the newest of each month, for this number of months that have one.
    pub monthly: u32,
    /// Remove incomplete backups however young they are, and those of which stripes are missing.
    pub is_incomplete_removed: bool,
    /// Remove backups that were complete and are damaged.
    pub is_damaged_removed: bool,
}

impl Rules {
    /// Returns whether no rule keeps anything.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.last == 0 && self.daily == 0 && self.weekly == 0 && self.monthly == 0
    }
}

/// How whole a backup is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wholeness {
    /// All stripes are there.
    Complete,
    /// Stripes are missing; they may be in another place.
    Missing,
    /// It was interrupted, or is being written.
    Incomplete,
    /// It was complete, and a stripe is truncated.
    Damaged,
}

/// A backup, as far as retention goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its id.
    pub id: BackupId,
    /// Its name.
    pub name: String,
    /// Full, differential or copy-only.
    pub kind: Kind,
    /// The full backup that it builds on.
    pub base: Option<BackupId>,
    /// When it began, as Unix time in milliseconds.
    pub created_unix_ms: u64,
    /// When it was written to last, as Unix time in milliseconds, if that is known.
    pub modified_unix_ms: Option<u64>,
    /// How whole it is.
    pub wholeness: Wholeness,
}

/// The fate of a backup, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Kept by a rule, named by its option: `daily`.
    Kept(&'static str),
    /// Kept because this kept differential needs it.
    Needed(BackupId),
    /// Kept because it was written to within a day, so it may still be being written.
    Unfinished,
    /// Kept because it may still be being written, and its place does not tell when it was last.
    Undated,
    /// Kept because stripes of it may be in another place.
    Elsewhere,
    /// Kept because it was complete and is damaged: somebody may still restore a part of it.
    Damaged,
    /// Kept because the full backup of this differential is not here.
    Orphan,
    /// Kept because only backups of other names are pruned.
    NotChosen,
    /// Removed: no rule keeps it.
    Removed,
    /// Removed: it is incomplete.
    RemovedIncomplete,
    /// Removed: it is damaged.
    RemovedDamaged,
}

impl Decision {
    /// Returns whether the backup is removed.
    #[must_use]
    pub const fn is_removal(&self) -> bool {
        matches!(self, Self::Removed | Self::RemovedIncomplete | Self::RemovedDamaged)
    }
}

/// Decides about each backup.
#[must_use]
pub fn decide(backups: &[Candidate], rules: &Rules, now_unix_ms: u64) -> Vec<Decision> {
    decide_about(backups, rules, now_unix_ms, |_| true)
}

/// Decides about the backups that are chosen. The others are kept, with what they build on.
#[must_use]
pub fn decide_about(
    backups: &[Candidate],
    rules: &Rules,
    now_unix_ms: u64,
    is_chosen: impl Fn(&Candidate) -> bool,
) -> Vec<Decision> {
    let is_usable = |own: &Candidate| {
        own.wholeness == Wholeness::Complete
            && own.base.is_none_or(|base| {
                backups.iter().any(|full| full.id == base && full.wholeness == Wholeness::Complete)
            })
    };
    let mut decisions: Vec<Decision> = backups
        .iter()
        .map(|own| match own.wholeness {
            Wholeness::Complete if is_usable(own) => Decision::Removed,
            Wholeness::Complete => Decision::Orphan,
            Wholeness::Damaged if rules.is_damaged_removed => Decision::RemovedDamaged,
            Wholeness::Damaged => Decision::Damaged,
            _ if rules.is_incomplete_removed => Decision::RemovedIncomplete,
            Wholeness::Missing => Decision::Elsewhere,
            Wholeness::Incomplete => match own.modified_unix_ms {
                None => Decision::Undated,
                Some(last) if now_unix_ms.saturating_sub(last) < UNFINISHED_MS => {
                    Decision::Unfinished
                }
                Some(_) => Decision::RemovedIncomplete,
            },
        })
        .collect();
    let names: BTreeSet<&str> = backups.iter().map(|own| own.name.as_str()).collect();
    for name in names {
        let mut series: Vec<usize> = (0..backups.len())
            .filter(|index| backups[*index].name == name && is_usable(&backups[*index]))
            .collect();
        series.sort_by_key(|index| {
            let own = &backups[*index];
            std::cmp::Reverse((own.created_unix_ms, own.id))
        });
        let times: Vec<u64> = series.iter().map(|index| backups[*index].created_unix_ms).collect();
        for (rule, count, period) in periods(rules) {
            for place in newest(&times, count, period) {
                let decision = &mut decisions[series[place]];
                if *decision == Decision::Removed {
                    *decision = Decision::Kept(rule);
                }
            }
        }
    }
    for (own, decision) in backups.iter().zip(&mut decisions) {
        if !is_chosen(own) {
            *decision = Decision::NotChosen;
        }
    }
    keep_bases(backups, &mut decisions);
    decisions
}

/// Keeps the full backup of each differential that is kept, also of one that only may be whole.
fn keep_bases(backups: &[Candidate], decisions: &mut [Decision]) {
    for index in 0..backups.len() {
        let Some(base) = backups[index].base.filter(|_| !decisions[index].is_removal()) else {
            continue;
        };
        if let Some(full) = backups.iter().position(|own| own.id == base)
            && decisions[full].is_removal()
        {
            decisions[full] = Decision::Needed(backups[index].id);
        }
    }
}

/// Returns the order in which to remove: a differential before its full backup, the oldest first.
#[must_use]
pub fn order(backups: &[Candidate], decisions: &[Decision]) -> Vec<usize> {
    let mut removed: Vec<usize> =
        (0..backups.len()).filter(|index| decisions[*index].is_removal()).collect();
    removed.sort_by_key(|index| {
        let own = &backups[*index];
        (own.base.is_none(), own.created_unix_ms, own.id)
    });
    removed
}

type Period = fn(u64) -> i64;

fn periods(rules: &Rules) -> [(&'static str, u32, Option<Period>); 4] {
    [
        ("last", rules.last, None),
        ("daily", rules.daily, Some(day)),
        ("weekly", rules.weekly, Some(week)),
        ("monthly", rules.monthly, Some(month)),
    ]
}

/// Returns the places of the newest backup of each of the newest `count` periods. `times` begins
/// with the newest.
fn newest(times: &[u64], count: u32, period: Option<Period>) -> Vec<usize> {
    let mut kept = Vec::new();
    let mut last = None;
    for (place, time) in times.iter().enumerate() {
        let own = period.map(|period| period(*time));
        if kept.len() == count as usize {
            break;
        }
        if own.is_none() || own != last {
            kept.push(place);
            last = own;
        }
    }
    kept
}

/// Returns the number of the day since 1970.
fn day(unix_ms: u64) -> i64 {
    i64::try_from(unix_ms / DAY_MS).unwrap_or(i64::MAX)
}

/// Returns the number of the week, which begins on Monday: 1 January 1970 was a Thursday.
fn week(unix_ms: u64) -> i64 {
    (day(unix_ms) + 3) / 7
}

/// Returns the number of the month since year 0, by the days of the Gregorian calendar.
fn month(unix_ms: u64) -> i64 {
    // Howard Hinnant, chrono-compatible low-level date algorithms: years begin in March.
    let days = day(unix_ms).saturating_add(719_468);
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    (era * 400 + year) * 12 + from_march
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn periods_begin_when_the_calendar_says() {
        // 2024-02-29 was a Thursday.
        let leap = 1_709_164_800_000;
        #[track_caller]
        fn check(period: Period, first: u64, second: u64, expect: i64) {
            assert_eq!(period(second) - period(first), expect);
        }
        check(day, leap, leap + DAY_MS - 1, 0);
        check(day, leap, leap + DAY_MS, 1);
        check(week, leap, leap + 4 * DAY_MS - 1, 0);
        check(week, leap, leap + 4 * DAY_MS, 1);
        check(month, leap, leap + DAY_MS - 1, 0);
        check(month, leap, leap + DAY_MS, 1);
        check(month, leap - 28 * DAY_MS, leap, 0);
        check(month, leap - 29 * DAY_MS, leap, 1);
        check(month, leap, leap + 365 * DAY_MS, 12);
        check(month, leap, leap + 366 * DAY_MS, 13);
        check(month, 0, 31 * DAY_MS, 1);
    }

    fn candidate(id: u8, name: u8, created: u64, wholeness: Wholeness) -> Candidate {
        Candidate {
            id: BackupId::from_bytes([id; 16]),
            name: format!("n{name}"),
            kind: Kind::Full,
            base: None,
            created_unix_ms: created,
            modified_unix_ms: Some(created),
            wholeness,
        }
    }

    fn differential(base: u8, own: Candidate) -> Candidate {
        let base = Some(BackupId::from_bytes([base; 16]));
        Candidate { kind: Kind::Differential, base, ..own }
    }

    #[test]
    fn a_full_that_a_kept_differential_needs_is_kept() {
        let complete = Wholeness::Complete;
        let backups = [
            candidate(1, 0, DAY_MS, complete),
            candidate(2, 0, 2 * DAY_MS, complete),
            differential(1, candidate(3, 0, 3 * DAY_MS, complete)),
            differential(1, candidate(4, 0, 4 * DAY_MS, complete)),
        ];
        let rules = Rules { last: 1, ..Rules::default() };
        let decisions = decide(&backups, &rules, 9 * DAY_MS);
        let needed = Decision::Needed(backups[3].id);
        let kept = Decision::Kept("last");
        assert_eq!(decisions, [needed, Decision::Removed, Decision::Removed, kept]);
        // The differential goes first.
        assert_eq!(order(&backups, &decisions), [2, 1]);
    }

    #[test]
    fn backups_that_are_not_whole_are_removed_with_care() {
        let backups = [
            candidate(1, 0, 0, Wholeness::Incomplete),
            candidate(2, 0, 5 * DAY_MS, Wholeness::Incomplete),
            candidate(3, 0, 0, Wholeness::Missing),
            differential(3, candidate(4, 0, DAY_MS, Wholeness::Complete)),
        ];
        let mut rules = Rules { last: 3, ..Rules::default() };
        let now = 6 * DAY_MS - 1;
        let decisions = decide(&backups, &rules, now);
        let expect = [
            Decision::RemovedIncomplete,
            Decision::Unfinished,
            Decision::Elsewhere,
            Decision::Orphan,
        ];
        assert_eq!(decisions, expect);
        rules.is_incomplete_removed = true;
        let decisions = decide(&backups, &rules, now);
        let removed = Decision::RemovedIncomplete;
        let needed = Decision::Needed(backups[3].id);
        assert_eq!(decisions, [removed.clone(), removed, needed, Decision::Orphan]);
    }

    #[test]
    fn a_backup_that_runs_for_days_is_not_removed() {
        let written = |last| Candidate {
            modified_unix_ms: last,
            ..candidate(1, 0, DAY_MS, Wholeness::Incomplete)
        };
        let rules = Rules { last: 1, ..Rules::default() };
        let decide = |last, rules: &Rules| decide(&[written(last)], rules, 9 * DAY_MS).remove(0);
        // It began eight days ago and was written to an hour ago.
        assert_eq!(decide(Some(9 * DAY_MS - 3_600_000), &rules), Decision::Unfinished);
        assert_eq!(decide(Some(8 * DAY_MS), &rules), Decision::RemovedIncomplete);
        // Without a time of the last write, only an option removes it.
        assert_eq!(decide(None, &rules), Decision::Undated);
        let rules = Rules { is_incomplete_removed: true, ..rules };
        assert_eq!(decide(None, &rules), Decision::RemovedIncomplete);
    }

    #[test]
    fn a_damaged_backup_is_removed_only_if_that_is_asked_for() {
        let backups =
            [candidate(1, 0, 0, Wholeness::Damaged), candidate(2, 0, DAY_MS, Wholeness::Complete)];
        let rules = Rules { last: 1, is_incomplete_removed: true, ..Rules::default() };
        let kept = Decision::Kept("last");
        assert_eq!(decide(&backups, &rules, 9 * DAY_MS), [Decision::Damaged, kept.clone()]);
        let rules = Rules { is_damaged_removed: true, ..rules };
        assert_eq!(decide(&backups, &rules, 9 * DAY_MS), [Decision::RemovedDamaged, kept]);
    }

    #[test]
    fn a_full_on_which_a_differential_is_being_built_is_kept() {
        let backups = [
            candidate(1, 0, DAY_MS, Wholeness::Complete),
            candidate(2, 0, 2 * DAY_MS, Wholeness::Complete),
            differential(1, candidate(3, 0, 3 * DAY_MS, Wholeness::Incomplete)),
        ];
        let rules = Rules { last: 1, ..Rules::default() };
        let decisions = decide(&backups, &rules, 3 * DAY_MS + 1);
        let needed = Decision::Needed(backups[2].id);
        assert_eq!(decisions, [needed, Decision::Kept("last"), Decision::Unfinished]);
    }

    fn any_backups() -> impl Strategy<Value = Vec<Candidate>> {
        let one = (0..3_u8, 0..90_u64, 0..24_u64, 0..8_u8, any::<prop::sample::Index>());
        prop::collection::vec(one, 0..24).prop_map(|all| {
            let mut backups: Vec<Candidate> = Vec::new();
            for (id, (name, days, hours, kind, base)) in (1..).zip(all) {
                let created = (days * 24 + hours) * 3_600_000;
                let wholeness = match kind {
                    0 => Wholeness::Incomplete,
                    1 => Wholeness::Missing,
                    _ => Wholeness::Complete,
                };
                let own = candidate(id, name, created, wholeness);
                let fulls: Vec<&Candidate> =
                    backups.iter().filter(|full| full.base.is_none()).collect();
                let own = match kind >= 5 && !fulls.is_empty() {
                    true => Candidate {
                        kind: Kind::Differential,
                        base: Some(base.get(&fulls).id),
                        ..own
                    },
                    false => own,
                };
                backups.push(own);
            }
            backups
        })
    }

    /// Returns whether a rule keeps a backup, by its definition.
    fn is_kept(backups: &[Candidate], own: &Candidate, count: u32, period: Option<Period>) -> bool {
        let usable = |one: &&Candidate| {
            let full = |base| backups.iter().find(|full| Some(full.id) == base);
            one.name == own.name
                && one.wholeness == Wholeness::Complete
                && (one.base.is_none()
                    || full(one.base).is_some_and(|full| full.wholeness == Wholeness::Complete))
        };
        let age = |one: &Candidate| (one.created_unix_ms, one.id);
        let number = |one: &Candidate| period.map(|period| period(one.created_unix_ms));
        let later: Vec<&Candidate> =
            backups.iter().filter(usable).filter(|one| age(one) > age(own)).collect();
        let periods = match period {
            None => later.len(),
            Some(_) if later.iter().any(|one| number(one) == number(own)) => return false,
            Some(_) => later.iter().map(|one| number(one)).collect::<BTreeSet<_>>().len(),
        };
        usable(&own) && periods < count as usize
    }

    proptest! {
        #[test]
        fn retention_keeps_what_its_definition_says(
            backups in any_backups(),
            counts in [0..4_u32, 0..6, 0..4, 0..3],
            is_incomplete_removed: bool,
            now in 0..100_u64,
        ) {
            let [last, daily, weekly, monthly] = counts;
            let is_damaged_removed = false;
            let rules = Rules {
                last,
                daily,
                weekly,
                monthly,
                is_incomplete_removed,
                is_damaged_removed,
            };
            let decisions = decide(&backups, &rules, now * DAY_MS);
            for (own, decision) in backups.iter().zip(&decisions) {
                let by_rule = is_kept(&backups, own, last, None)
                    || is_kept(&backups, own, daily, Some(day))
                    || is_kept(&backups, own, weekly, Some(week))
                    || is_kept(&backups, own, monthly, Some(month));
                prop_assert_eq!(matches!(decision, Decision::Kept(_)), by_rule);
                let needs = backups.iter().zip(&decisions).any(|(other, decision)| {
                    other.base == Some(own.id) && !decision.is_removal()
                });
                prop_assert!(!(needs && decision.is_removal()), "{own:?} is needed");
                if decision.is_removal() && own.wholeness != Wholeness::Complete {
                    let modified = own.modified_unix_ms.expect("it is known here");
                    let age = (now * DAY_MS).saturating_sub(modified);
                    prop_assert!(is_incomplete_removed
                        || own.wholeness == Wholeness::Incomplete && age >= DAY_MS);
                }
            }
            // At no moment of the removal is there a differential without its full backup.
            let mut left: BTreeSet<usize> = (0..backups.len()).collect();
            for index in order(&backups, &decisions) {
                left.remove(&index);
                let needs = left.iter().any(|own| backups[*own].base == Some(backups[index].id));
                prop_assert!(!needs);
            }
        }
    }
}
