//! Weir's own runs as ground truth: random layouts and loads, whose waits at each cap are known,
//! are sampled as a real system is, without them, and diagnosed. The diagnosis must name the cap
//! at which most was waited, and nothing where nothing waits.

mod rng;
mod tally;
mod world;

use rng::Rng;
use tally::{Matrix, Truth};
use weir_units::Span;
use world::World;

/// How many layouts.
const WORLDS: u64 = 520;

/// The seed of the first. What the diagnosis goes by was found on others.
const FIRST: u64 = 80_001;

const DOCS: &str = include_str!("../../../../docs/DIAGNOSIS.md");

/// How they are sampled: every so many seconds, and whether it is said how long disks were busy.
const SAMPLED: [(u64, bool); 4] = [(1, true), (15, true), (60, true), (1, false)];

/// What the worlds' media take, beside what the edition says: real ones are not what is published.
const MEDIA: [f64; 6] = [0.4, 0.7, 1.5, 2.5, 4.0, 8.0];

#[test]
fn the_cap_that_waited_most_is_named() {
    let matrices = diagnosed(|_| 1.0);
    // The goal is 0.95; the documentation says what is missing. Less than now is a step back.
    check(&matrices[0], 0.95, 0.02);
    check(&matrices[1], 0.95, 0.02);
    check(&matrices[2], 0.94, 0.02);
    check(&matrices[3], 0.92, 0.02);
    // Most of it is not only suspected.
    assert!(matrices[0].held_share() >= 0.89, "{:.3}", matrices[0].held_share());
}

#[test]
fn a_medium_that_is_not_the_editions_is_seldom_taken_for_a_cap() {
    let matrices = diagnosed(|seed| *Rng(seed).one(&MEDIA));
    check(&matrices[0], 0.9, 0.02);
    // The longer the samples, the more a slow medium looks like bursts.
    check(&matrices[1], 0.89, 0.02);
    check(&matrices[2], 0.88, 0.03);
    // Who does not say how long disks were busy can suspect, and hardly more.
    check(&matrices[3], 0.8, 0.02);
}

/// What is named, and what is called held back and is not, stay within these.
fn check(matrix: &Matrix, least_named: f64, most_alarms: f64) {
    let (named, alarms) = (matrix.named_share(), matrix.false_alarms());
    assert!(named >= least_named, "{named:.3} of the caps are named");
    assert!(alarms < most_alarms, "{alarms:.3} false alarms");
    // Both sides are there in numbers, or the shares would say nothing.
    assert!(matrix.throttled() >= 150 && matrix.healthy() >= 100, "\n{matrix}");
}

/// Worlds whose media take `media` times what the edition says, by seed, are run, sampled and
/// diagnosed by the edition.
#[expect(clippy::print_stdout, reason = "what is wrong is for whoever runs the test")]
fn diagnosed(media: impl Fn(u64) -> f64) -> [Matrix; SAMPLED.len()] {
    let mut matrices = SAMPLED.map(|_| Matrix::default());
    for seed in FIRST..FIRST + WORLDS {
        let world = World::random(seed);
        let run = world.run(seed, media(seed));
        let truth = Truth::of(&run);
        for ((every, says_busy), matrix) in SAMPLED.into_iter().zip(&mut matrices) {
            let said = world.diagnose(&run, Span::from_secs(every), says_busy);
            if every == 1 && says_busy && !truth.agrees(&said) {
                println!("seed {seed}, media {}: {truth:?}\n  said {said:?}\n{world}", media(seed));
            }
            matrix.count(&truth, &said);
        }
    }
    for ((every, says_busy), matrix) in SAMPLED.into_iter().zip(&matrices) {
        println!("sampled every {every} s, busy {says_busy}\n{matrix}");
    }
    for matrix in &matrices {
        let table = matrix.to_string();
        assert!(DOCS.contains(table.trim()), "docs/DIAGNOSIS.md has another matrix than\n{table}");
    }
    matrices
}
