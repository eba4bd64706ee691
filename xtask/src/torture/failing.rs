//! Volumes over NBD on a disk that fails while clients write.
//!
//! From some moment on, each access to the data folder is an I/O error, and what the disk has not received is
//! lost. The server must go on and pass the errors on, and must not acknowledge a flush or a FUA write that the
//! disk has not received. Then it is killed, and the disk is mounted again.
//!
//! No client waits for a sync at that moment: the kernel may report success for one that is under way, and lose
//! its data.

use super::nbd::check;
use super::server::{Served, lost, wait_for_answers};
use super::system::{End, System};
use super::{Campaign, ROUNDS, Tally, load};
use crate::error::XtaskError;
use weir_random::Rng;

/// Runs the rounds of a system.
pub(super) fn live(
    rng: &mut Rng,
    campaign: &Campaign<'_>,
    tally: &mut Tally,
) -> Result<String, XtaskError> {
    let system = System::prepare(rng, campaign.folder)?;
    let mut known = system.unwritten();
    for _ in 0..ROUNDS {
        if (campaign.is_over)(tally) {
            break;
        }
        let mut served = Served::start(campaign)?;
        let loads = load::start(&served, &system, &known, rng)?;
        let (answers, failures) = (20 + rng.below(2_000), 1 + rng.below(300));
        wait_for_answers(
            || loads.answers(),
            || loads.sound().is_err() || loads.answers() >= answers,
        )?;
        loads.sound()?;
        loads.pause_syncs()?;
        served.fail_disk()?;
        loads.resume_syncs();
        let has_odd = || loads.odd_on_failed_disk().is_some();
        wait_for_answers(|| loads.failed(), || has_odd() || loads.failed() >= failures)?;
        served.check_alive()?;
        if let Some(what) = loads.odd_on_failed_disk() {
            return Err(lost(&what));
        }
        // It still answers who asks.
        for export in &system.exports {
            served.open(&export.name)?;
        }
        served.kill()?;
        known = loads.take(tally);
        tally.disk_failures += 1;
        let served = Served::start(campaign)?;
        check(&served, &system, &mut known, End::Kill, tally)?;
        served.stop()?;
    }
    Ok(system.words())
}
