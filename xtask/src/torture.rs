//! Campaigns of crashes: random layouts under random load, killed again and again, against an oracle
//! of what was promised.
//!
//! A campaign consists of systems, each with a random layout and an empty data folder. A system lives
//! for some rounds. In a round, clients write, trim and flush while the layout changes through the
//! control socket, until the server is killed, its hosts crash, or it is stopped. Then the server
//! starts again, and every block must hold the newest promised content or a later one, whole.

mod load;
mod oracle;
mod server;
mod system;

use crate::error::XtaskError;
use oracle::Block;
use server::Served;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use system::{End, System};
use weir_random::Rng;
use weir_units::{Instant, Span};
use weir_wall::Clock;

/// Rounds of a system.
const ROUNDS: u64 = 20;

/// A campaign.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The longest time.
    pub time: Span,
    /// Most rounds, if there is a number.
    pub rounds: Option<u64>,
    /// Seed of everything that is random, except for the order in which threads run.
    pub seed: u64,
    /// The program.
    pub weir: PathBuf,
}

/// The counts of a campaign.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Systems.
    pub systems: u64,
    /// Servers that were killed.
    pub kills: u64,
    /// Servers whose hosts crashed.
    pub crashes: u64,
    /// Servers that were stopped.
    pub stops: u64,
    /// Changes through the control socket.
    pub changes: u64,
    /// Acknowledged writes and trims.
    pub writes: u64,
    /// Acknowledged flushes.
    pub flushes: u64,
    /// Blocks with a promise that were read after the end of a server.
    pub promises: u64,
}

/// Runs a campaign, and prints a line for each system.
///
/// # Errors
///
/// [`XtaskError::Lost`] if a block does not hold what was promised; its data folder is kept. Other
/// errors if the program cannot be run.
pub fn run(plan: &Plan, out: &mut dyn Write) -> Result<Tally, XtaskError> {
    let weir = crate::program(&plan.weir)?;
    let plan = &Plan { weir, ..plan.clone() };
    let (clock, end) = (Clock::start(), Instant::ZERO + plan.time);
    let mut tally = Tally::default();
    let rounds = |tally: &Tally| tally.kills + tally.crashes + tally.stops;
    let is_over =
        |tally: &Tally| clock.now() >= end || plan.rounds.is_some_and(|most| rounds(tally) >= most);
    while !is_over(&tally) {
        let folder = tempfile::tempdir()
            .map_err(|source| XtaskError::System { doing: "making a folder", source })?;
        let seed = tally.systems;
        let mut rng = Rng::new(&[plan.seed, seed]);
        let system = System::random(&mut rng);
        let before = tally;
        let lived = live(&system, &mut rng, (plan, folder.path()), &mut tally, &is_over);
        if let Err(error) = lived {
            // The data folder and its layout are the evidence.
            let kept = folder.keep();
            return Err(XtaskError::Lost(format!(
                "seed {}, system {seed}: {error}\nlayout and data are kept in {}",
                plan.seed,
                kept.display()
            )));
        }
        tally.systems += 1;
        writeln!(
            out,
            "system {seed}: {} rounds, {} writes, {} promised blocks: {}",
            rounds(&tally) - rounds(&before),
            tally.writes - before.writes,
            tally.promises - before.promises,
            system.words()
        )
        .map_err(|source| XtaskError::System { doing: "writing the output", source })?;
    }
    Ok(tally)
}

/// Runs the rounds of a system.
fn live(
    system: &System,
    rng: &mut Rng,
    (plan, folder): (&Plan, &Path),
    tally: &mut Tally,
    is_over: &dyn Fn(&Tally) -> bool,
) -> Result<(), XtaskError> {
    let layout = folder.join("layout.toml");
    fs::write(&layout, &system.layout).map_err(XtaskError::file("writing", &layout))?;
    let mut known: Vec<Vec<Block>> =
        system.exports.iter().map(|own| vec![Block::default(); own.blocks]).collect();
    for _ in 0..ROUNDS {
        if is_over(tally) {
            break;
        }
        let mut served = Served::start(&plan.weir, folder)?;
        let loads = load::start(&served, system, &known, rng)?;
        let end = End::random(rng);
        let answers = 20 + rng.below(3_000);
        tally.changes += served.disturb(system, &loads, answers, rng)?;
        match end {
            End::Kill => served.kill()?,
            End::Crash => served.crash()?,
            End::Stop => {}
        }
        let mut ended = Vec::new();
        if end == End::Stop {
            loads.hurry();
        }
        for load in loads.join() {
            tally.writes += load.writes;
            tally.flushes += load.flushes;
            ended.push(load.blocks);
        }
        if end != End::Kill {
            served.stop()?;
        }
        known = ended;
        *match end {
            End::Kill => &mut tally.kills,
            End::Crash => &mut tally.crashes,
            End::Stop => &mut tally.stops,
        } += 1;
        let served = Served::start(&plan.weir, folder)?;
        for (export, blocks) in system.exports.iter().zip(&mut known) {
            tally.promises += oracle::check(&mut served.open(&export.name)?, blocks, end)
                .map_err(|what| XtaskError::Lost(format!("{}: {what}", export.name)))?;
        }
        served.stop()?;
    }
    Ok(())
}
