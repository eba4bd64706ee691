//! A soak: one server under a steady mixed load, whose memory, descriptors, threads, space and latency
//! must stay flat.
//!
//! Clients write, read and trim volumes of all kinds and page blobs, and know the content of each block.
//! Beside them, backups freeze the volumes, volumes are resized and recached, status and live page are
//! polled, and clients leave without a word. A sample is taken every few seconds; [`verdict`] compares
//! the last third of them with the second.
//!
//! | module | holds |
//! |---|---|
//! | `volumes` | clients over NBD |
//! | `blobs` | a client of page blobs over REST |
//! | `upkeep` | backups, changes, polls and clients that break off |
//! | `shared` | the state that the threads share |
//! | `sample` | samples of the server |
//! | [`verdict`] | the comparison |

mod blobs;
mod sample;
mod shared;
mod upkeep;
pub mod verdict;
mod volumes;

use crate::error::XtaskError;
use crate::interrupt::Interrupt;
use crate::suite::running::{Running, free_port};
use sample::Sampler;
use shared::{Shared, pause};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use verdict::{Sample, Verdict};
use weir_random::Rng;
use weir_units::{Instant, Span};
use weir_wall::Clock;

/// The volumes are limited, so that latency is a matter of their limits more than of other programs on
/// the machine, and small, so that all of their blocks are used.
const LAYOUT: &str = r#"
[host]
unlimited = true
cache = { size = "32 MiB", dirty_limit = "4 MiB", writeback_after = "200ms" }

[[volume]]
name = "plain"
size = "32 MiB"
limits = { iops = 200 }

[[volume]]
name = "cached"
size = "64 MiB"
cache = "read-write"
limits = { iops = 200 }

[[volume]]
name = "read-cached"
size = "32 MiB"
cache = "read-only"
limits = { iops = 200 }

[[stripe]]
name = "striped"
unit = "64 KiB"
volumes = { count = 4, size = "16 MiB", limits = { iops = 50 } }

[blob]
iops = 200
"#;

/// The exports, with the blocks that their clients use.
const EXPORTS: [(&str, usize); 4] =
    [("plain", 8192), ("cached", 16_384), ("read-cached", 8192), ("striped", 16_384)];
/// Clients of each export. Each has its own part of the blocks.
const CLIENTS: usize = 2;
/// Samples of the time of a plan. The verdict needs enough of them for a median of a third.
const SAMPLES: u64 = 60;

/// A soak.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Its time, which is doubled if the last third is not flat.
    pub time: Span,
    /// Seed of the load.
    pub seed: u64,
    /// The program.
    pub weir: PathBuf,
    /// Ends the soak early.
    pub interrupt: Interrupt,
}

/// Runs a soak, and prints its samples and the verdict. One that was interrupted has none.
///
/// # Errors
///
/// [`XtaskError::Lost`] if a request fails or returns other bytes than were written; other errors if the
/// program cannot be run.
pub fn run(plan: &Plan, out: &mut dyn Write) -> Result<Option<Verdict>, XtaskError> {
    let weir = crate::program(&plan.weir)?;
    let (web, blob) = (free_port()?, free_port()?);
    let addresses = (format!("127.0.0.1:{web}"), format!("127.0.0.1:{blob}"));
    let args = ["serve", "{}/layout.toml", "--nbd", "unix:{}/nbd"];
    let args = [&args[..], &["--web", &addresses.0, "--blob", &addresses.1]].concat();
    let server = Running::start_apart(&weir, LAYOUT, &args)?;
    let shared = Arc::new(Shared::new(server.path(""), weir, (web, blob)));
    let rng = &mut Rng::new(&[plan.seed]);
    let threads = start(&shared, rng)?;
    let sampled = sample_until(plan, &shared, &server, out);
    shared.end();
    for thread in threads {
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
    let samples = sampled?;
    shared.check()?;
    server.stop()?;
    if plan.interrupt.came() {
        say(out, &format!("\ninterrupted, so nothing is compared\n{}", shared.tally()))?;
        return Ok(None);
    }
    let verdict = Verdict::compare_thirds(&samples);
    say(out, &format!("\n{verdict}\n{}", shared.tally()))?;
    Ok(Some(verdict))
}

/// Starts the clients, and the upkeep beside them.
fn start(shared: &Arc<Shared>, rng: &mut Rng) -> Result<Vec<JoinHandle<()>>, XtaskError> {
    let mut threads = Vec::new();
    for (export, blocks) in EXPORTS {
        for at in 0..CLIENTS {
            let each = blocks / CLIENTS;
            let client = volumes::Client::open(shared, export, (at * each, each), rng)?;
            threads.push(client.start());
        }
    }
    threads.push(blobs::start(shared, rng)?);
    threads.extend(upkeep::start(shared, rng));
    Ok(threads)
}

/// Takes samples until the end or an interruption, and prints every tenth.
///
/// If they are not flat at the end, the soak goes on for as long again. Other programs on the machine can slow
/// the last third of a short run; a leak exceeds the bounds of a run of twice the length as well.
fn sample_until(
    plan: &Plan,
    shared: &Shared,
    server: &Running,
    out: &mut dyn Write,
) -> Result<Vec<Sample>, XtaskError> {
    let sampler = Sampler::new(server.id(), server.path("data"));
    let (clock, every) = (Clock::start(), Span::from_nanos(plan.time.nanos() / SAMPLES));
    let mut samples = Vec::new();
    say(out, Sample::HEAD)?;
    for at in 1..=2 * SAMPLES {
        if at == SAMPLES + 1 {
            let verdict = Verdict::compare_thirds(&samples);
            if !verdict.may_be_noise() {
                break;
            }
            say(
                out,
                &format!("\n{verdict}: the soak goes on for as long again\n\n{}", Sample::HEAD),
            )?;
        }
        let next = Instant::ZERO + Span::from_nanos(every.nanos() * at);
        while clock.now() < next {
            if plan.interrupt.came() {
                return Ok(samples);
            }
            shared.check()?;
            pause(20);
        }
        let sample = sampler.take(clock.now().since(Instant::ZERO), shared.take_latencies())?;
        if at % 10 == 0 {
            say(out, &sample.to_string())?;
        }
        samples.push(sample);
    }
    Ok(samples)
}

fn say(out: &mut dyn Write, line: &str) -> Result<(), XtaskError> {
    writeln!(out, "{line}")
        .map_err(|source| XtaskError::System { doing: "writing the output", source })
}
