//! Volumes over NBD, which the control socket changes under load.

use super::oracle::{self, Block};
use super::server::Served;
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
        let end = End::random(rng);
        let answers = 20 + rng.below(3_000);
        tally.changes += served.disturb(&system, &loads, answers, rng)?;
        match end {
            End::Kill => served.kill()?,
            End::Crash => served.crash()?,
            End::Stop => loads.hurry(),
        }
        known = loads.end(served, end, tally)?;
        let served = Served::start(campaign)?;
        check(&served, &system, &mut known, end, tally)?;
        served.stop()?;
    }
    Ok(system.words())
}

/// Checks all exports.
pub(super) fn check(
    served: &Served,
    system: &System,
    known: &mut [Vec<Block>],
    end: End,
    tally: &mut Tally,
) -> Result<(), XtaskError> {
    for (export, blocks) in system.exports.iter().zip(known) {
        tally.promises += oracle::check_export(&mut served.open(&export.name)?, blocks, end)
            .map_err(|what| XtaskError::Lost(format!("{}: {what}", export.name)))?;
    }
    Ok(())
}
