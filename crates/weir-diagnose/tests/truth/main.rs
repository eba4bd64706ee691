//! Weir's own runs as ground truth: random layouts and loads, whose waits at each cap are known,
//! are sampled as a real system is, without them, and diagnosed. The diagnosis must name the cap
//! at which most was waited, and nothing where nothing waits.

mod rng;
mod tally;
mod world;

use tally::{Matrix, Truth};
use weir_units::Span;
use world::World;

/// How many layouts.
const WORLDS: u64 = 520;

/// The seed of the first. What the diagnosis goes by was found on others.
const FIRST: u64 = 40_001;

const DOCS: &str = include_str!("../../../../docs/DIAGNOSIS.md");

/// How often they are sampled, in seconds.
const EVERY: [u64; 3] = [1, 15, 60];

#[test]
fn the_cap_that_waited_most_is_named() {
    let mut matrices = EVERY.map(|_| Matrix::default());
    for seed in FIRST..FIRST + WORLDS {
        let world = World::random(seed);
        let run = world.run(seed);
        let truth = Truth::of(&run);
        for (every, matrix) in EVERY.into_iter().zip(&mut matrices) {
            let said = world.diagnose(&run, Span::from_secs(every));
            if every == 1 && !truth.agrees(&said) {
                println!("seed {seed}: {truth:?}\n  said {said:?}\n{world}");
            }
            matrix.count(&truth, &said);
        }
    }
    for (every, matrix) in EVERY.into_iter().zip(&matrices) {
        println!("sampled every {every} s\n{matrix}");
    }
    for matrix in &matrices {
        let table = matrix.to_string();
        assert!(DOCS.contains(table.trim()), "docs/DIAGNOSIS.md has another matrix than\n{table}");
    }
    let finest = &matrices[0];
    assert!(finest.named_share() >= 0.95, "{:.3} of the caps are named", finest.named_share());
    assert!(finest.false_alarms() < 0.02, "{:.3} false alarms", finest.false_alarms());
    // Both sides are there in numbers, or the shares would say nothing.
    assert!(finest.throttled() >= 150 && finest.healthy() >= 100, "\n{finest}");
}
