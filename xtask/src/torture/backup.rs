//! Backups of volumes under load, which are killed, or lose their server. Each backup that was complete has the
//! content of one instant, also later, and after an interruption the next one succeeds.

mod moments;
mod tool;
mod writer;

use super::oracle::Block;
use super::server::{Served, lost};
use super::system::{End, System};
use super::writers::{self, Load, Progress};
use super::{Campaign, ROUNDS, Tally};
use crate::error::XtaskError;
use moments::Window;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use tool::{Attempt, Kind, Listed, RAW, Tool};
use weir_random::Rng;
use writer::Writer;

/// Writers of an export, each with its own blocks.
const WRITERS: usize = 2;
/// Backups of a name that a prune keeps. Of the attempts of a round, each has another name.
const KEPT: usize = 2;

/// A system with its backups.
struct Chain<'a> {
    tool: Tool<'a>,
    writers: Vec<Writer>,
    clock: AtomicU64,
    /// Contents of the backups that are complete: of each writer, its blocks.
    kept: BTreeMap<String, Vec<Vec<u64>>>,
    /// Full backups, of which the server has one as the base of differentials.
    bases: BTreeSet<String>,
    rng: Rng,
}

/// The backups of a round.
#[derive(Default)]
struct Taken {
    /// Complete ones, with the times between which they ran.
    complete: Vec<(String, Window)>,
    /// Interrupted ones by name, with the times between which they ran. These may be complete, too.
    interrupted: BTreeMap<String, Window>,
    /// The one that runs when the server is killed.
    running: Option<Attempt>,
}

/// Runs the rounds of a system.
pub(super) fn live(
    rng: &mut Rng,
    campaign: &Campaign<'_>,
    tally: &mut Tally,
) -> Result<String, XtaskError> {
    let system = prepare(rng, campaign.folder)?;
    let names = system.exports.iter().map(|own| own.name.clone()).collect();
    let mut writers = Vec::new();
    for export in &system.exports {
        let each = export.blocks / WRITERS;
        let of = |at: usize| Writer::new(&export.name, at * each, each, rng);
        writers.extend((0..WRITERS).map(of));
    }
    let mut chain = Chain {
        tool: Tool { weir: campaign.weir, folder: campaign.folder, exports: names },
        writers,
        clock: AtomicU64::new(1),
        kept: BTreeMap::new(),
        bases: BTreeSet::new(),
        rng: Rng::new(&[rng.next_u64()]),
    };
    for _ in 0..ROUNDS {
        if (campaign.is_over)(tally) {
            break;
        }
        let end = End::random(&mut chain.rng);
        let mut served = Served::start(campaign)?;
        let taken = chain.load(&mut served, end, tally)?;
        let served = match end {
            // The server lives, and has seen what its host lost.
            End::Crash => served,
            End::Kill => {
                chain.bases.clear();
                Served::start(campaign)?
            }
            End::Stop => {
                served.stop()?;
                Served::start(campaign)?
            }
        };
        tally.ended(end);
        chain.check(&served, taken, end, tally)?;
        served.stop()?;
    }
    Ok(system.words())
}

/// Makes a system with a volume for backups.
fn prepare(rng: &mut Rng, folder: &Path) -> Result<System, XtaskError> {
    let mut system = System::prepare(rng, folder)?;
    system.layout += &format!("[[volume]]\nname = \"{RAW}\"\nsize = \"1 GiB\"\nunlimited = true\n");
    let layout = folder.join("layout.toml");
    fs::write(&layout, &system.layout).map_err(XtaskError::file("writing", &layout))?;
    let place = folder.join("backups");
    fs::create_dir(&place).map_err(XtaskError::file("creating", &place))?;
    Ok(system)
}

impl Chain<'_> {
    /// Writes and takes backups, and ends the server or crashes its host.
    fn load(
        &mut self,
        served: &mut Served,
        end: End,
        tally: &mut Tally,
    ) -> Result<Taken, XtaskError> {
        let mut writers = std::mem::take(&mut self.writers);
        for writer in &mut writers {
            writer.begin(served.open(&writer.export)?);
        }
        let (mut taken, clock) = (Taken::default(), std::mem::take(&mut self.clock));
        let write = |writer: &mut Writer, progress: &Progress| writer.write(&clock, progress);
        let ended = writers::run_while(served, writers, end, write, |load| {
            self.back_up(load, &clock, end, &mut taken)
        })?;
        if let Some(attempt) = taken.running.take() {
            // It may fail by itself, without its server.
            let (kind, name) = (attempt.kind, attempt.name.clone());
            let ended = attempt.finish(&clock)?;
            self.take_in(&mut taken, (kind, name), ended.id.ok(), ended.window);
        }
        self.clock = clock;
        for (mut writer, wrote) in ended.writers {
            if let Err(what) = wrote
                && (ended.is_early || end == End::Stop)
            {
                return Err(lost(&format!("writing {}: {what}", writer.export)));
            }
            tally.writes += std::mem::take(&mut writer.writes);
            tally.flushes += std::mem::take(&mut writer.flushes);
            self.writers.push(writer);
        }
        Ok(taken)
    }

    /// Takes some backups, of which some are killed.
    fn back_up(
        &mut self,
        load: &Load<'_>,
        clock: &AtomicU64,
        end: End,
        taken: &mut Taken,
    ) -> Result<(), XtaskError> {
        load.wait_for(self.rng.below(300))?;
        for number in 0..self.rng.within(1, 3) {
            let mut attempt = self.begin(&format!("attempt-{number}"), clock)?;
            let (kind, name) = (attempt.kind, attempt.name.clone());
            let is_killed = self.rng.chance(40);
            if is_killed {
                load.wait_for(load.answers() + self.rng.below(150))?;
                attempt.kill()?;
            }
            let ended = attempt.finish(clock)?;
            let window = ended.window;
            let id = match is_killed {
                true => ended.of_killed()?,
                false => Some(ended.id.map_err(|what| lost(&what))?),
            };
            self.take_in(taken, (kind, name), id, window);
            load.wait_for(load.answers() + self.rng.below(100))?;
        }
        if end == End::Kill && self.rng.chance(70) {
            taken.running = Some(self.begin("running", clock)?);
            load.wait_for(load.answers() + self.rng.below(150))?;
        }
        Ok(())
    }

    fn begin(&mut self, name: &str, clock: &AtomicU64) -> Result<Attempt, XtaskError> {
        let kind = match self.rng.below(5) {
            0 => Kind::CopyOnly,
            1..4 if !self.bases.is_empty() => Kind::Differential,
            _ => Kind::Full,
        };
        self.tool.begin(kind, name.to_owned(), &mut self.rng, clock)
    }

    /// Takes in an attempt, which has no id if it was interrupted.
    fn take_in(
        &mut self,
        taken: &mut Taken,
        (kind, name): (Kind, String),
        id: Option<String>,
        window: Window,
    ) {
        let Some(id) = id else {
            taken.interrupted.insert(name, window);
            return;
        };
        if kind == Kind::Full {
            self.bases = BTreeSet::from([id.clone()]);
        }
        taken.complete.push((id, window));
    }

    /// Checks backups and exports, and takes another backup, which must succeed.
    fn check(
        &mut self,
        served: &Served,
        taken: Taken,
        end: End,
        tally: &mut Tally,
    ) -> Result<(), XtaskError> {
        for (id, window) in self.all_complete(taken)? {
            let found = self.restore(&id, tally)?;
            let all = self.writers.iter().zip(&found);
            let all = all.flat_map(|(own, found)| own.moments.iter().zip(found.iter().copied()));
            let narrowed = window.narrow(all);
            narrowed.map_err(|what| lost(&format!("backup {id}: {what}")))?;
            self.kept.insert(id, found);
        }
        for writer in &mut self.writers {
            let checked = writer.check(&mut served.open(&writer.export)?, end);
            tally.promises += checked.map_err(|what| lost(&what))?;
        }
        let attempt = self.begin("at-the-end", &AtomicU64::new(1))?;
        let kind = attempt.kind;
        let ended = attempt.finish(&AtomicU64::new(1))?;
        let id = ended.id.map_err(|what| lost(&format!("after an end of the server, {what}")))?;
        let now: Vec<Vec<u64>> =
            self.writers.iter().map(|own| own.blocks.iter().map(Block::newest).collect()).collect();
        self.same(&id, &now, tally)?;
        self.kept.insert(id.clone(), now);
        if kind == Kind::Full {
            self.bases = BTreeSet::from([id.clone()]);
        }
        let ids: Vec<String> = self.kept.keys().cloned().collect();
        let old = self.rng.one(&ids).clone();
        self.same(&old, &self.kept[&old], tally)?;
        self.prune()
    }

    /// Returns the backups of a round that are complete, whether or not they could say so.
    fn all_complete(&mut self, mut taken: Taken) -> Result<Vec<(String, Window)>, XtaskError> {
        let mut listed = self.tool.list()?;
        listed.retain(|_, own| own.is_complete);
        let mut complete = taken.complete;
        let known = complete.iter().map(|(id, _)| id).chain(self.kept.keys());
        let known: BTreeSet<String> = known.cloned().collect();
        if let Some(gone) = known.iter().find(|id| !listed.contains_key(*id)) {
            return Err(lost(&format!("backup {gone} was complete, and is not listed as that")));
        }
        for (id, own) in listed.iter().filter(|(id, _)| !known.contains(*id)) {
            let window = taken.interrupted.remove(&own.name);
            let window =
                window.ok_or_else(|| lost(&format!("nobody took backup {id}: {own:?}")))?;
            complete.push((id.clone(), window));
            // The server may know it as the base, or may not.
            if own.is_full && !self.bases.is_empty() {
                self.bases.insert(id.clone());
            }
        }
        Ok(complete)
    }

    fn restore(&self, id: &str, tally: &mut Tally) -> Result<Vec<Vec<u64>>, XtaskError> {
        let images = self.tool.restore(id)?;
        let stamps = self.writers.iter().map(|own| {
            let read = images.stamps(&own.export, own.first, own.blocks.len());
            read.map_err(|what| lost(&format!("backup {id}: {}: {what}", own.export)))
        });
        let stamps = stamps.collect::<Result<Vec<_>, _>>()?;
        tally.restores += 1;
        tally.promises += stamps.iter().map(|own| own.len() as u64).sum::<u64>();
        Ok(stamps)
    }

    /// Compares a backup with the content that it has to have.
    fn same(&self, id: &str, expect: &[Vec<u64>], tally: &mut Tally) -> Result<(), XtaskError> {
        let found = self.restore(id, tally)?;
        for ((writer, expect), found) in self.writers.iter().zip(expect).zip(&found) {
            let differs = expect.iter().zip(found).position(|(expect, found)| expect != found);
            if let Some(at) = differs {
                let (export, block) = (&writer.export, writer.first + at);
                return Err(lost(&format!(
                    "backup {id}: block {block} of {export} has content {}, and not {}",
                    found[at], expect[at]
                )));
            }
        }
        Ok(())
    }

    /// Removes old backups and what interrupted ones left.
    fn prune(&mut self) -> Result<(), XtaskError> {
        let before = self.tool.list()?;
        self.tool.prune(KEPT)?;
        let listed = self.tool.list()?;
        let (left, expect) = (listed.keys().cloned().collect(), retained(&before));
        if expect != left {
            return Err(lost(&format!(
                "a prune that keeps {KEPT} backups of each name left {left:?}, and not {expect:?}, of {before:?}"
            )));
        }
        self.kept.retain(|id, _| listed.contains_key(id));
        if !self.bases.iter().all(|id| listed.contains_key(id)) {
            self.bases.clear();
        }
        Ok(())
    }
}

/// Returns the backups that a prune has to leave: of each name the newest complete ones, and the full backups on
/// which they build.
fn retained(all: &BTreeMap<String, Listed>) -> BTreeSet<String> {
    let is_complete = |id: &String| all.get(id).is_some_and(|own| own.is_complete);
    let mut series: BTreeMap<&str, Vec<(u64, &String)>> = BTreeMap::new();
    for (id, own) in all {
        if own.is_complete && own.base.iter().all(is_complete) {
            series.entry(&own.name).or_default().push((own.created, id));
        }
    }
    let mut left = BTreeSet::new();
    for of_name in series.values_mut() {
        of_name.sort_unstable();
        for (_, id) in of_name.iter().rev().take(KEPT) {
            left.extend(all[*id].base.iter().chain([*id]).cloned());
        }
    }
    left
}

/// Returns the time.
fn now(clock: &AtomicU64) -> u64 {
    clock.load(Ordering::SeqCst)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prune_leaves_the_newest_of_each_name_and_what_these_build_on() {
        let full = |name: &str, created| Listed {
            name: name.to_owned(),
            is_complete: true,
            is_full: true,
            base: None,
            created,
        };
        let differential = |created, base: &str| Listed {
            is_full: false,
            base: Some(base.to_owned()),
            ..full("one", created)
        };
        let all = [
            ("9", full("one", 1)),
            ("8", full("one", 2)),
            ("7", full("one", 3)),
            ("6", differential(4, "9")),
            ("5", Listed { is_complete: false, ..full("one", 6) }),
            ("4", differential(5, "8")),
            ("3", differential(7, "5")),
            ("2", full("two", 0)),
        ];
        let all = all.map(|(id, own)| (id.to_owned(), own)).into();
        let expect = ["2", "4", "6", "8", "9"].map(str::to_owned);
        assert_eq!(retained(&all), expect.into());
    }
}
