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
use tool::{Attempt, Kind, RAW, Tool};
use weir_random::Rng;
use writer::Writer;

/// Writers of an export, each with its own blocks.
const WRITERS: usize = 2;
/// Backups that a prune keeps.
const KEPT: usize = 3;

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
    /// The times between which interrupted ones ran, together. These may be complete, too.
    interrupted: Option<Window>,
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
        let mut served = Served::start(campaign.weir, campaign.folder)?;
        let taken = chain.load(&mut served, end, tally)?;
        let served = match end {
            // The server lives, and has seen what its host lost.
            End::Crash => served,
            End::Kill => {
                chain.bases.clear();
                Served::start(campaign.weir, campaign.folder)?
            }
            End::Stop => {
                served.stop()?;
                Served::start(campaign.weir, campaign.folder)?
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
            let (id, window) = attempt.finish(&clock)?;
            self.take_in(&mut taken, id.map_err(|_| ()), window);
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
        for _ in 0..self.rng.within(1, 3) {
            let mut attempt = self.begin(clock)?;
            if self.rng.chance(40) {
                load.wait_for(load.answers() + self.rng.below(150))?;
                attempt.kill()?;
                let (id, window) = attempt.finish(clock)?;
                self.take_in(taken, id.map_err(|_| ()), window);
            } else {
                let kind = attempt.kind;
                let (id, window) = attempt.finish(clock)?;
                let id = id.map_err(|what| lost(&what))?;
                if kind == Kind::Full {
                    self.bases = BTreeSet::from([id.clone()]);
                }
                self.take_in(taken, Ok(id), window);
            }
            load.wait_for(load.answers() + self.rng.below(100))?;
        }
        if end == End::Kill && self.rng.chance(70) {
            taken.running = Some(self.begin(clock)?);
            load.wait_for(load.answers() + self.rng.below(150))?;
        }
        Ok(())
    }

    fn begin(&mut self, clock: &AtomicU64) -> Result<Attempt, XtaskError> {
        let kind = match self.rng.below(5) {
            0 => Kind::CopyOnly,
            1..4 if !self.bases.is_empty() => Kind::Differential,
            _ => Kind::Full,
        };
        self.tool.begin(kind, &mut self.rng, clock)
    }

    fn take_in(&mut self, taken: &mut Taken, id: Result<String, ()>, window: Window) {
        match id {
            Ok(id) => taken.complete.push((id, window)),
            Err(()) => {
                let all = taken.interrupted.unwrap_or(window);
                let all = Window { from: all.from.min(window.from), to: all.to.max(window.to) };
                taken.interrupted = Some(all);
            }
        }
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
        let attempt = self.begin(&AtomicU64::new(1))?;
        let kind = attempt.kind;
        let (id, _) = attempt.finish(&AtomicU64::new(1))?;
        let id = id.map_err(|what| lost(&format!("after an end of the server, {what}")))?;
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
        self.prune(&id)
    }

    /// Returns the backups of a round that are complete, whether or not they could say so.
    fn all_complete(&mut self, taken: Taken) -> Result<Vec<(String, Window)>, XtaskError> {
        let listed = self.tool.list()?;
        let mut complete = taken.complete;
        let known = complete.iter().map(|(id, _)| id).chain(self.kept.keys());
        let known: BTreeSet<String> = known.cloned().collect();
        if let Some(gone) = known.iter().find(|id| !listed.contains_key(*id)) {
            return Err(lost(&format!("backup {gone} was complete, and is not listed as that")));
        }
        for (id, is_full) in listed.iter().filter(|(id, _)| !known.contains(*id)) {
            let window = taken.interrupted;
            let window = window.ok_or_else(|| lost(&format!("nobody took backup {id}")))?;
            complete.push((id.clone(), window));
            // The server may know it as the base, or may not.
            if *is_full && !self.bases.is_empty() {
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
    fn prune(&mut self, newest: &str) -> Result<(), XtaskError> {
        self.tool.prune(KEPT)?;
        let listed = self.tool.list()?;
        let least = KEPT.min(self.kept.len());
        if !listed.contains_key(newest) || listed.len() < least {
            return Err(lost(&format!("a prune that keeps {KEPT} backups left {listed:?}")));
        }
        self.kept.retain(|id, _| listed.contains_key(id));
        if !self.bases.iter().all(|id| listed.contains_key(id)) {
            self.bases.clear();
        }
        Ok(())
    }
}

/// Returns the time.
fn now(clock: &AtomicU64) -> u64 {
    clock.load(Ordering::SeqCst)
}
