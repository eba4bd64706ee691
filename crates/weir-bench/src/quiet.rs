//! The processor time of other programs, which disturb a measurement.

use crate::Failure;
use crate::peer::{Peer, cpu_seconds};
use std::time::{Duration, Instant};

/// The share of a core that other programs may use during a measurement.
const MOST: f64 = 0.1;

/// The longest time that a measurement waits for others to finish.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Measures while other programs use less than a tenth of a core: waits for that, and measures
/// again if it was otherwise meanwhile. `peers` are no others.
///
/// # Errors
///
/// The error of `measure`, or that others have not finished for half an hour.
#[expect(clippy::disallowed_methods, reason = "it measures other programs by the clock")]
pub fn quietly<T>(
    peers: &[&Peer],
    mut measure: impl FnMut() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let (before, from) = (others(peers)?, Instant::now());
        std::thread::sleep(Duration::from_millis(100));
        let is_quiet = |before, from: Instant| -> Result<bool, Failure> {
            Ok(others(peers)? - before <= MOST * from.elapsed().as_secs_f64())
        };
        if !is_quiet(before, from)? {
            continue;
        }
        let (before, from) = (others(peers)?, Instant::now());
        let measured = measure()?;
        if is_quiet(before, from)? {
            return Ok(measured);
        }
    }
    Err("other programs have used the processors for half an hour".into())
}

/// Returns the processor seconds of all programs but this one, its children and `peers`. What the
/// hypervisor took counts, too.
fn others(peers: &[&Peer]) -> Result<f64, Failure> {
    let stat = std::fs::read_to_string("/proc/stat")?;
    let all: Vec<f64> =
        stat.split_whitespace().skip(1).take(8).map(str::parse).collect::<Result<_, _>>()?;
    let [user, nice, system, _idle, _iowait, irq, softirq, steal] = all[..] else {
        return Err("a short /proc/stat".into());
    };
    let busy = (user + nice + system + irq + softirq + steal) / 100.0;
    let own = cpu_seconds("self", 11..15)?;
    let peers = peers.iter().map(|peer| peer.cpu_seconds()).sum::<Result<f64, _>>()?;
    Ok(busy - own - peers)
}
