//! Simulated backups as ground truth: what limits a random backup is known from what makes it faster,
//! and the diagnosis must name it.

mod article;
mod tools;
mod world;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::thread;
use tools::{Tool, named};
use weir_catalog::Catalog;
use world::{Change, World};

/// Number of backups that are compared with the truth.
const BACKUPS: usize = 100;

/// The seed of the first. These seeds were never run while the rule was written. Once it changes with
/// results of these in view, take others.
const FIRST: u64 = 8_000_001;

const DOCS: &str = include_str!("../../../../docs/DIAGNOSIS.md");

/// A backup whose limit is known, and what it was called.
struct Judged {
    seed: u64,
    world: World,
    limits: Option<Vec<Change>>,
    named: Vec<(Tool, Vec<Change>, String)>,
}

impl Judged {
    fn new(seed: u64, catalog: &Catalog) -> Self {
        let world = World::random(seed);
        let run = world.run();
        let limits = world.limits(&run);
        let named = Tool::ALL.map(|tool| {
            let report = tool.diagnose(&world, &run, catalog);
            let known = report.findings.iter().find(|own| own.rule == "backup-limit");
            let evidence = known.map(|own| own.evidence.join("; ")).unwrap_or_default();
            (tool, named(&report), format!("{}\n  {evidence}", report.summary))
        });
        Self { seed, world, limits, named: named.into() }
    }

    fn is_right(&self, at: usize) -> bool {
        let limits = self.limits.as_deref().unwrap_or_default();
        self.named[at].1.iter().any(|own| limits.contains(own))
    }
}

/// Judges backups until the wanted number of them has a limit.
fn judged(first: u64, wanted: usize) -> Vec<Judged> {
    let catalog = Catalog::builtin();
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get) as u64;
    let mut all: Vec<Judged> = Vec::new();
    let mut next = first;
    while all.iter().filter(|own| own.limits.is_some()).count() < wanted {
        let own = |thread: u64| {
            let seeds = (next + thread..next + 32).step_by(usize::try_from(threads).expect("few"));
            seeds.map(|seed| Judged::new(seed, &catalog)).collect::<Vec<_>>()
        };
        let mut batch: Vec<Judged> = thread::scope(|scope| {
            let running: Vec<_> =
                (0..threads).map(|thread| scope.spawn(move || own(thread))).collect();
            running.into_iter().flat_map(|own| own.join().expect("no panic")).collect()
        });
        batch.sort_by_key(|own| own.seed);
        all.extend(batch);
        next += 32;
    }
    let last = all.iter().filter(|own| own.limits.is_some()).nth(wanted - 1).map(|own| own.seed);
    all.retain(|own| Some(own.seed) <= last);
    all
}

#[expect(clippy::print_stdout, reason = "errors are printed for the developer")]
fn score(first: u64) -> Vec<(Tool, usize)> {
    let all = judged(first, BACKUPS);
    let mut scores = Vec::new();
    for (at, tool) in Tool::ALL.into_iter().enumerate() {
        let known = all.iter().filter(|own| own.limits.is_some());
        let (right, wrong): (Vec<&Judged>, Vec<&Judged>) = known.partition(|own| own.is_right(at));
        for own in wrong {
            let (_, named, summary) = &own.named[at];
            println!(
                "seed {}, {}: {:?}\n  named {named:?}: {summary}\n{}",
                own.seed,
                tool.name(),
                own.limits,
                own.world
            );
        }
        scores.push((tool, right.len()));
    }
    println!("{} of {} backups have no single limit", all.len() - BACKUPS, all.len());
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for limits in all.iter().filter_map(|own| own.limits.as_ref()) {
        *kinds.entry(format!("{limits:?}")).or_default() += 1;
    }
    println!("{kinds:#?}");
    scores
}

#[test]
fn the_limit_of_a_backup_is_named() {
    let scores = score(FIRST);
    let mut table =
        "| observed by | backups with a limit | named right |\n|---|--:|--:|\n".to_owned();
    for (tool, right) in &scores {
        table += &format!("| {} | {BACKUPS} | {right} |\n", tool.name());
    }
    assert!(scores.iter().all(|(_, right)| *right >= 95), "\n{table}");
    assert!(DOCS.contains(&table), "docs/DIAGNOSIS.md has another table than\n{table}");
}
