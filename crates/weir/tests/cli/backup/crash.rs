//! `kill -9` at random moments of backups, restores and prunes: each backup is complete and sound, or
//! clearly incomplete, and an earlier one is never harmed.

use crate::common::{Place, Server, run};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};
use weir_client::Connection;

const LAYOUT: &str = "[host]\nunlimited = true\n\
    [[volume]]\nname = \"data\"\nsize = \"8 MiB\"\nunlimited = true\n\
    [[volume]]\nname = \"log\"\nsize = \"2 MiB\"\nunlimited = true\n\
    [[volume]]\nname = \"raw\"\nsize = \"64 MiB\"\nunlimited = true\n";
/// Moments at which a program is killed, over all verbs.
const KILLS: usize = 200;
const VERBS: [&str; 5] = [
    "backup run data log --to b --stripes 3 --name sales",
    "backup run data log --to raw --stripes 2 --name sales",
    "backup run data log --to b --from raw --differential --compress --name sales",
    "restore kept --from k --image images",
    "backup prune b --keep-last 2 --incomplete",
];

/// Numbers that differ from run to run of the generator, not of the test.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

struct Rig {
    place: Place,
    _server: Server,
    random: Random,
}

impl Rig {
    fn new() -> Self {
        let place = Place::without_a_disk();
        let server = place.serve(LAYOUT, &["--data", "d"]);
        for folder in ["b", "k"] {
            fs::create_dir(place.path(folder)).expect("a folder");
        }
        let mut rig = Self { place, _server: server, random: Random(26) };
        rig.change(6 << 20);
        rig.good("backup run data log --to k --stripes 2 --name kept --copy-only");
        rig
    }

    fn open(&self, export: &str) -> Connection {
        self.place.open(export)
    }

    /// Writes something new to both volumes.
    fn change(&mut self, length: usize) {
        for (export, length) in [("data", length), ("log", length / 8)] {
            let mut bytes = vec![0; length];
            for part in bytes.chunks_mut(8) {
                let random = self.random.below(u64::MAX).to_le_bytes();
                part.copy_from_slice(&random[..part.len()]);
            }
            self.open(export).write(0, &bytes).expect("a write");
        }
    }

    #[track_caller]
    fn good(&self, args: &str) -> String {
        let (stdout, stderr, code) = run(self.place.weir(&args.split(' ').collect::<Vec<_>>()));
        assert_eq!(code, Some(0), "{args}: {stderr}");
        stdout
    }

    /// The backups in the folder and on the raw volume: those that are complete, and all.
    fn listed(&self) -> (BTreeSet<String>, usize) {
        let list = self.good("backup list b raw -o json");
        let list: Value = serde_json::from_str(&list).expect("JSON");
        let backups = list["backups"].as_array().expect("backups");
        let complete = backups.iter().filter(|own| own["state"] == "complete");
        let id = |own: &Value| own["id"].as_str().expect("an id").to_owned();
        (complete.map(id).collect(), backups.len())
    }

    /// Runs a verb and kills it after a random part of the time that it takes.
    fn kill(&mut self, verb: &str, takes: Duration) -> bool {
        drop(fs::remove_dir_all(self.place.path("images")));
        let mut command = self.place.weir(&verb.split(' ').collect::<Vec<_>>());
        let mut child = command.spawn().expect("a program");
        let nanos = u64::try_from(takes.as_nanos()).expect("short");
        let moment = Duration::from_nanos(self.random.below(nanos * 11 / 10));
        #[expect(clippy::disallowed_methods, reason = "the other process is at work meanwhile")]
        std::thread::sleep(moment);
        let was_running = child.try_wait().expect("a state").is_none();
        drop(child.kill());
        child.wait().expect("an end");
        was_running
    }

    /// Each complete backup is sound, and so is the one that no verb touches.
    fn check(&self, verb: &str, complete: &BTreeSet<String>) {
        for id in complete {
            let verify = format!("backup verify {id} --from b --from raw");
            let (stdout, stderr, code) =
                run(self.place.weir(&verify.split(' ').collect::<Vec<_>>()));
            assert_eq!(code, Some(0), "after {verb}: {stdout}{stderr}");
        }
        self.good("backup verify kept --from k");
    }
}

#[test]
fn a_kill_leaves_complete_backups_or_clearly_incomplete_ones() {
    let mut rig = Rig::new();
    // How long each verb takes here, the slowest of the first rounds.
    let mut takes = VERBS.map(|verb| {
        #[expect(clippy::disallowed_methods, reason = "a kill needs to know when")]
        let start = Instant::now();
        rig.good(verb);
        drop(fs::remove_dir_all(rig.place.path("images")));
        start.elapsed()
    });
    let (mut complete, _) = rig.listed();
    let (mut killed, mut unfinished) = (0, 0);
    // On a fast machine, it may take more kills until one leaves something unfinished.
    for round in 0..4 * KILLS {
        if round >= KILLS && unfinished > 0 {
            break;
        }
        let at = round % VERBS.len();
        let verb = VERBS[at];
        rig.change(64 << 10);
        if rig.kill(verb, takes[at]) {
            killed += 1;
        } else {
            takes[at] = takes[at] * 9 / 10;
        }
        let (now, all) = rig.listed();
        unfinished += all - now.len();
        let lost = complete.difference(&now).count();
        if at < 4 {
            assert_eq!(lost, 0, "{verb} harmed an earlier backup");
        }
        if at == 3 {
            // An image gets its name when it is whole.
            for name in ["data", "log"] {
                let image = rig.place.path("images").join(format!("{name}.raw"));
                assert!(!image.exists() || rig.image_is_whole(name), "{name}.raw is not whole");
            }
        }
        rig.check(verb, &now);
        complete = now;
        if round % 10 == 9 {
            // A prune must see the full backups that differentials elsewhere need.
            rig.good("backup prune b raw --keep-last 2 --incomplete");
            rig.good(VERBS[0]);
            complete = rig.listed().0;
        }
    }
    // The kills came in the middle: most of them, and many left something unfinished.
    assert!(killed > KILLS / 2, "{killed} of {KILLS} were killed");
    assert!(unfinished > 0, "no kill left anything unfinished");
}

impl Rig {
    /// Compares an image with a restore that was not killed.
    fn image_is_whole(&self, name: &str) -> bool {
        let whole = self.place.path("whole");
        if !whole.exists() {
            self.good("restore kept --from k --image whole");
        }
        let read = |folder: &str| {
            fs::read(self.place.path(folder).join(format!("{name}.raw"))).expect("an image")
        };
        read("whole") == read("images")
    }
}

/// The verbs around a differential on the full backup `week`.
const AROUND_A_DIFFERENTIAL: [&str; 3] = [
    "backup run data log --to b --stripes 2 --differential --name day",
    "restore day --from b --image images",
    "backup prune b --keep-last 2 --incomplete",
];
/// Moments at which one of them is killed.
const DIFFERENTIAL_KILLS: usize = 60;

#[test]
fn a_kill_around_a_differential_never_harms_its_full_backup() {
    let mut rig = Rig::new();
    rig.good("backup run data log --to b --stripes 2 --name week");
    let full = rig.listed().0;
    let mut takes = AROUND_A_DIFFERENTIAL.map(|verb| {
        #[expect(clippy::disallowed_methods, reason = "a kill needs to know when")]
        let start = Instant::now();
        rig.good(verb);
        start.elapsed()
    });
    let (mut complete, mut killed, mut unfinished) = (rig.listed().0, 0, 0);
    for round in 0..4 * DIFFERENTIAL_KILLS {
        if round >= DIFFERENTIAL_KILLS && unfinished > 0 {
            break;
        }
        let at = round % AROUND_A_DIFFERENTIAL.len();
        let verb = AROUND_A_DIFFERENTIAL[at];
        rig.change(64 << 10);
        if rig.kill(verb, takes[at]) {
            killed += 1;
        } else {
            takes[at] = takes[at] * 9 / 10;
        }
        let (now, all) = rig.listed();
        unfinished += all - now.len();
        // Ids sort by time. A prune keeps the two newest differentials.
        let differentials: Vec<&String> = complete.difference(&full).collect();
        let newest = differentials.iter().rev().take(2).all(|id| now.contains(*id));
        assert!(now.is_superset(&full) && newest, "round {round}: {verb} removed too much");
        assert!(at == 2 || now.is_superset(&complete), "round {round}: {verb} harmed a backup");
        rig.check(verb, &now);
        if at == 1 {
            rig.check_images(round);
        }
        complete = now;
        if round % 6 == 5 {
            rig.check_differential(round);
            complete = rig.listed().0;
        }
    }
    assert!(killed > DIFFERENTIAL_KILLS / 2, "{killed} of {DIFFERENTIAL_KILLS} were killed");
    assert!(unfinished > 0, "no kill left anything unfinished");
}

impl Rig {
    /// An image that has its name after a kill is that of a restore that was not killed.
    fn check_images(&self, round: usize) {
        self.good("restore day --from b --image again --force");
        for name in ["data.raw", "log.raw"] {
            let image = self.place.path("images").join(name);
            let read = |path| fs::read(path).expect("an image");
            let whole = self.place.path("again").join(name);
            assert!(!image.exists() || read(image) == read(whole), "round {round}: {name}");
        }
    }

    /// A differential that is made after kills has all changes since the full backup.
    fn check_differential(&self, round: usize) {
        self.good(AROUND_A_DIFFERENTIAL[0]);
        self.good("restore day --from b --image again --force");
        for name in ["data", "log"] {
            let mut export = self.open(name);
            let size = usize::try_from(export.size().get()).expect("small");
            let mut contents = vec![0; size];
            export.read(0, &mut contents).expect("a read");
            let image = fs::read(self.place.path("again").join(format!("{name}.raw")));
            assert!(image.expect("an image") == contents, "round {round}: {name} lacks a change");
        }
    }
}
