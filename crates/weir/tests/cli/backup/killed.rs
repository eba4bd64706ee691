//! `kill -9` of restores to volumes, and of backups to and restores from blobs: a volume is as it was,
//! marked, or whole, and a backup is sound or clearly incomplete.

use super::{Rig, id, pattern};
use crate::blob::Rig as BlobRig;
use crate::common::{Place, run};
use serde_json::Value;
use std::fs;
use std::time::{Duration, Instant};

const LAYOUT: &str = "[host]\nunlimited = true\n[blob]\n\
    [[volume]]\nname = \"data\"\nsize = \"8 MiB\"\nunlimited = true\n\
    [[volume]]\nname = \"copy\"\nsize = \"8 MiB\"\nunlimited = true\n";
/// The start of a volume whose restore did not end.
const MARK: &[u8] = b"WEIR RESTORING 1";
/// Moments at which each verb is killed.
const KILLS: u32 = 12;

/// A server with volumes and a container, and a backup of `data` in a folder and in the container.
struct Far {
    rig: Rig,
    url: String,
    data: Vec<u8>,
}

impl Far {
    fn new() -> Self {
        let blobs = BlobRig::new(Place::without_a_disk(), LAYOUT, &["--data", "d"]);
        blobs.client.container("backups");
        let signed = blobs.client.signed_url();
        let (account, sas) = signed.split_once('?').expect("a signature");
        let url = format!("{account}/backups");
        blobs.place.file("sas", sas);
        let rig = Rig { place: blobs.place, server: Some(blobs.server) };
        for folder in ["b", "c"] {
            fs::create_dir(rig.place.path(folder)).expect("a folder");
        }
        rig.write("data", 0, &pattern(1, 6 << 20));
        let data = rig.contents("data");
        rig.backup("data --to b --stripes 2 --name kept --copy-only");
        rig.backup(&format!("data --to {url} --sas-file sas --stripes 2 --name far --copy-only"));
        Self { rig, url, data }
    }

    /// Kills a verb at a share of the time that it takes.
    fn kill(&self, verb: &str, moment: Duration) {
        let mut child = self.rig.weir(verb).spawn().expect("a program");
        #[expect(clippy::disallowed_methods, reason = "the other process is at work meanwhile")]
        std::thread::sleep(moment);
        drop(child.kill());
        child.wait().expect("an end");
    }

    /// Returns how long a verb takes that is not killed.
    fn takes(&self, verb: &str) -> Duration {
        #[expect(clippy::disallowed_methods, reason = "a kill needs to know when")]
        let start = Instant::now();
        self.rig.good(verb);
        start.elapsed()
    }

    fn listed(&self) -> Vec<(String, String)> {
        let (list, _, _) =
            run(self.rig.weir(&format!("backup list {} --sas-file sas -o json", self.url)));
        let list: Value = serde_json::from_str(&list).expect("JSON");
        let text = |own: &Value, key: &str| own[key].as_str().expect("text").to_owned();
        let all = list["backups"].as_array().expect("backups").iter();
        all.map(|own| (text(own, "id"), text(own, "state"))).collect()
    }
}

#[test]
fn a_killed_restore_to_a_volume_leaves_it_whole_or_marked() {
    let far = Far::new();
    let from_blob = format!("restore far --from {} --sas-file sas", far.url);
    let (mut marked, mut whole) = (0, 0);
    for source in ["restore kept --from b", &from_blob] {
        let verb = format!("{source} --control control.sock --map data=copy --force --quiet");
        let takes = far.takes(&verb);
        for round in 0..KILLS {
            let old = pattern(100 + u64::from(round), 8 << 20);
            far.rig.write("copy", 0, &old);
            // The last rounds come after the end, also if this machine is busier than before.
            far.kill(&verb, takes * round * 2 / (KILLS - 1));
            let now = far.rig.contents("copy");
            let refused = "a restore of backup";
            if now.starts_with(MARK) {
                marked += 1;
                far.rig.refuse("copy --to c --copy-only", 2, refused);
                far.rig.refuse("--to c --copy-only", 2, "copy is not whole");
            } else if now == far.data {
                whole += 1;
            } else {
                assert!(now == old, "round {round}: neither whole nor marked nor as it was");
            }
        }
        far.rig.good(&verb);
        assert!(far.rig.contents("copy") == far.data);
        far.rig.backup("copy --to c --copy-only");
    }
    assert!(marked > 0 && whole > 0, "{marked} marked, {whole} whole");
}

#[test]
fn a_killed_backup_to_blobs_or_restore_from_them_is_whole_or_clearly_incomplete() {
    let far = Far::new();
    let to_images = format!("restore far --from {} --sas-file sas --image images --quiet", far.url);
    let to_blobs = |kind: &str| {
        let url = &far.url;
        format!(
            "backup run data --to {url} --sas-file sas --stripes 2 --copy-only --name new{kind}"
        )
    };
    for verb in [to_blobs(""), to_blobs(" --page-blob"), to_images] {
        let takes = far.takes(&verb);
        for round in 0..KILLS {
            drop(fs::remove_dir_all(far.rig.place.path("images")));
            let before = far.listed();
            far.kill(&verb, takes * round / (KILLS - 1));
            if let Ok(image) = fs::read(far.rig.place.path("images/data.raw")) {
                assert!(image == far.data, "round {round}: an image is not whole");
            }
            let now = far.listed();
            for (id, state) in &now {
                assert!(["complete", "incomplete"].contains(&state.as_str()), "{verb}: {state}");
                let is_new = !before.iter().any(|(own, _)| own == id);
                if state == "complete" && is_new {
                    let url = &far.url;
                    far.rig.good(&format!("backup verify {id} --from {url} --sas-file sas"));
                }
            }
            let harmed = before.iter().any(|own| own.1 == "complete" && !now.contains(own));
            assert!(!harmed, "{verb}: an earlier backup was harmed");
        }
    }
    let prune = format!("backup prune {} --sas-file sas --keep-last 9 --incomplete", far.url);
    far.rig.good(&prune);
    assert!(far.listed().iter().all(|(_, state)| state == "complete"));
}

#[test]
fn a_backup_that_was_killed_on_a_raw_volume_gives_its_room_to_the_next() {
    let rig = Rig::new();
    let kept = rig.backup("log --to backup1 --name kept --copy-only");
    // Compressed, it takes all that is free.
    let slow = "backup run data --to backup1 --compress --limit 64KiB/s --name lost";
    let mut child = rig.weir(slow).spawn().expect("a program");
    let is_there = || {
        let (list, _, _) = run(rig.weir("backup list backup1 -o json"));
        list.contains("lost")
    };
    while !is_there() {
        std::thread::yield_now();
    }
    rig.refuse("data --to backup1 --name early", 2, "is writing to backup1");
    child.kill().expect("it runs");
    child.wait().expect("an end");
    let data = rig.contents("data");
    let next = rig.backup("data --to backup1 --name next --verify");
    rig.restore("next --from backup1", &[("data", &data)]);
    let list = rig.good("backup list backup1 -o json");
    assert!(!list.contains("lost") && list.contains(&id(&kept)) && list.contains(&id(&next)));
    rig.good("backup verify kept --from backup1");
}
