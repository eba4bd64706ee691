//! Volumes whose tiers, sizes and cache modes change under load, and that are created and deleted. Each answer
//! is a promise: after a restart a setting is the one that was answered last, or one that was asked for and not
//! answered.

mod volume;

use super::load::{self, Loads};
use super::oracle::Block;
use super::server::{Served, lost, wait_until};
use super::system::{End, Export, System};
use super::{Campaign, ROUNDS, Tally, nbd};
use crate::error::XtaskError;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use volume::{Catalogue, Volume};
use weir_random::Rng;
use weir_report::status::{Status, VolumeStatus};
use weir_server::ServerError;
use weir_server::control::{Request, ask};
use weir_units::{CacheMode, Share};

/// Volumes that may be created.
const MADE: u64 = 3;

/// The volumes, and who changes them.
struct Tuner {
    control: PathBuf,
    catalogue: Catalogue,
    volumes: Vec<Volume>,
    rng: Rng,
    /// Answered changes.
    changes: u64,
}

/// Runs the rounds of a system.
pub(super) fn live(
    rng: &mut Rng,
    campaign: &Campaign<'_>,
    tally: &mut Tally,
) -> Result<String, XtaskError> {
    let mut tuner = Tuner::prepare(rng, campaign.folder)?;
    let of_layout = tuner.volumes.iter().filter(|own| own.exists).count();
    for _ in 0..ROUNDS {
        if (campaign.is_over)(tally) {
            break;
        }
        let end = End::random(rng);
        let mut served = Served::start(campaign)?;
        // Those without clients may be deleted.
        for (at, volume) in tuner.volumes.iter_mut().enumerate() {
            volume.has_client = volume.exists && (at < of_layout || rng.chance(60));
        }
        let (system, mut known) = tuner.served();
        let loads = load::start(&served, &system, &known, rng)?;
        let least = (20 + rng.below(800), 1 + rng.below(30));
        tuner.run(&mut served, &loads, least, end)?;
        known = loads.end(served, end, tally)?;
        tally.changes += std::mem::take(&mut tuner.changes);
        tuner.keep(known);
        let served = Served::start(campaign)?;
        tally.promises += tuner.settle()?;
        let volumes = tuner.volumes.iter_mut();
        volumes.for_each(|volume| volume.has_client = volume.exists);
        let (system, mut known) = tuner.served();
        nbd::check(&served, &system, &mut known, end, tally)?;
        tuner.keep(known);
        served.stop()?;
    }
    Ok(format!("{of_layout} volumes of the layout, and up to {MADE} others"))
}

impl Tuner {
    fn prepare(rng: &mut Rng, folder: &Path) -> Result<Self, XtaskError> {
        let catalogue = Catalogue::load()?;
        let mut volumes: Vec<Volume> =
            (0..rng.within(1, 3)).map(|at| Volume::of_layout(at, &catalogue, rng)).collect();
        let (dirty, after) = (64 << rng.below(6), rng.within(1, 200));
        let mut text = format!(
            "edition = \"{}\"\n[host]\nunlimited = true\ncache = {{ size = \"64 MiB\", dirty_limit = \"{dirty} \
             KiB\", writeback_after = \"{after}ms\" }}\n",
            catalogue.edition()
        );
        text.extend(volumes.iter().map(Volume::text));
        volumes.extend((0..MADE).map(Volume::not_there));
        let layout = folder.join("layout.toml");
        fs::write(&layout, text).map_err(XtaskError::file("writing", &layout))?;
        let control = folder.join("control");
        Ok(Self { control, catalogue, volumes, rng: Rng::new(&[rng.next_u64()]), changes: 0 })
    }

    /// Returns the volumes that have clients, and their contents.
    fn served(&self) -> (System, Vec<Vec<Block>>) {
        let with = || self.volumes.iter().filter(|own| own.has_client);
        let export = |own: &Volume| Export {
            name: own.name.clone(),
            blocks: own.blocks.len(),
            size: None,
            is_cached: own.cache != CacheMode::None,
        };
        let exports = with().map(export).collect();
        (System { layout: String::new(), exports }, with().map(|own| own.blocks.clone()).collect())
    }

    /// Keeps what the clients know.
    fn keep(&mut self, known: Vec<Vec<Block>>) {
        let with = self.volumes.iter_mut().filter(|own| own.has_client);
        with.zip(known).for_each(|(own, blocks)| own.blocks = blocks);
    }

    /// Changes volumes until there are some answers and changes, and ends the server while this goes on.
    fn run(
        &mut self,
        served: &mut Served,
        loads: &Loads,
        (answers, least): (u64, u64),
        end: End,
    ) -> Result<(), XtaskError> {
        let (is_over, changes) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let tuning = scope.spawn(|| self.change_all(&is_over, &changes));
            let waited = wait_until("the clients get no answers", || {
                loads.sound()?;
                let has_changed = changes.load(Ordering::Relaxed) >= least;
                Ok(tuning.is_finished() || (has_changed && loads.answers() >= answers))
            });
            // Without the server, the next request fails.
            let is_early = tuning.is_finished();
            let ended = match (&waited, end) {
                (Ok(()), End::Stop) => Ok(()),
                (Ok(()), End::Crash) => served.crash(),
                _ => served.kill(),
            };
            is_over.store(true, Ordering::Relaxed);
            loads.hurry();
            let tuned = tuning.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            waited.and(ended)?;
            match tuned {
                Err(ServerError::Control { .. }) if end == End::Kill && !is_early => Ok(()),
                other => other.map_err(|error| lost(&error.to_string())),
            }
        })
    }

    fn change_all(&mut self, is_over: &AtomicBool, changes: &AtomicU64) -> Result<(), ServerError> {
        while !is_over.load(Ordering::Relaxed) {
            if self.rng.chance(15) {
                self.compare()?;
            } else if self.rng.chance(15) {
                self.pass()?;
            } else {
                self.change()?;
            }
            changes.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Changes a volume.
    fn change(&mut self) -> Result<(), ServerError> {
        let at = self.rng.index(self.volumes.len());
        let volume = &mut self.volumes[at];
        let change = volume.random_change(&self.catalogue, &mut self.rng);
        let request = change.request(volume);
        volume.asked = Some(change);
        let answer = ask(&self.control, &request)?;
        volume.answered();
        self.changes += 1;
        let tier = answer["tier"].as_str();
        if tier.is_some_and(|tier| tier != volume.tier) {
            return Err(wrong(volume, &format!("{request:?} was answered with tier {tier:?}")));
        }
        Ok(())
    }

    /// Changes something that no restart keeps: credits, and the content of the cache.
    fn pass(&mut self) -> Result<(), ServerError> {
        let at = self.rng.index(self.volumes.len());
        let volume = &self.volumes[at];
        let name = volume.name.clone();
        let has_credits =
            statuses(&self.status()?).any(|own| own.name == name && own.full_operations.is_some());
        let request = if has_credits && self.rng.flip() {
            let credits = Share::from_part(self.rng.below(101), 100);
            Request::SetCredits { volume: name, credits }
        } else if volume.exists && volume.cache != CacheMode::None {
            Request::Warm { export: name, offset: self.rng.below(200) << 12, len: 1 << 16 }
        } else {
            Request::Status
        };
        let is_change = request != Request::Status;
        ask(&self.control, &request).map(|_| self.changes += u64::from(is_change))
    }

    fn status(&self) -> Result<Status, ServerError> {
        let status = ask(&self.control, &Request::Status)?;
        serde_json::from_value(status)
            .map_err(|error| ServerError::Failed(format!("a status is not one: {error}")))
    }

    /// Compares the volumes with what was answered.
    fn compare(&mut self) -> Result<(), ServerError> {
        let status = self.status()?;
        for volume in &self.volumes {
            let found = statuses(&status).find(|own| own.name == volume.name);
            volume.compare(found, &self.catalogue).map_err(|what| wrong(volume, &what))?;
        }
        Ok(())
    }

    /// Takes the settings after a restart, which must be those that were answered, or asked for. Returns the
    /// number of settings.
    fn settle(&mut self) -> Result<u64, XtaskError> {
        let status = self.status().map_err(|error| lost(&error.to_string()))?;
        if let Some(refused) = status.refused.first() {
            return Err(lost(&format!("{} is not served: {}", refused.name, refused.reason)));
        }
        let mut settings = 0;
        for volume in &mut self.volumes {
            let found = statuses(&status).find(|own| own.name == volume.name);
            let settled = volume.settle(found, &self.catalogue);
            settings += settled.map_err(|what| lost(&format!("{}: {what}", volume.name)))?;
        }
        Ok(settings)
    }
}

fn statuses(status: &Status) -> impl Iterator<Item = &VolumeStatus> {
    status.hosts.iter().flat_map(|host| &host.volumes)
}

fn wrong(volume: &Volume, what: &str) -> ServerError {
    ServerError::Failed(format!("{}: {what}", volume.name))
}
