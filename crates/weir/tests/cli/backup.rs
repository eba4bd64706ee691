//! Backups, made and restored by the real `weir`.

mod crash;
mod dead;
mod killed;
mod memory;
mod observe;
mod places;
mod plan;
mod restore;
mod run;
mod shared;
mod warnings;
mod wrong;

use crate::common::{Place, Server, run};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use weir_client::Connection;

const LAYOUT: &str = "[host]\nunlimited = true\n\
    [[volume]]\nname = \"data\"\nsize = \"24 MiB\"\nunlimited = true\n\
    [[volume]]\nname = \"log\"\nsize = \"4 MiB\"\nunlimited = true\n\
    [[volume]]\nname = \"backup1\"\nsize = \"32 MiB\"\nunlimited = true\n\
    [[volume]]\nname = \"backup2\"\nsize = \"32 MiB\"\nunlimited = true\n";

/// A server with something on its volumes.
struct Rig {
    place: Place,
    server: Option<Server>,
}

/// Bytes that do not repeat, and compress a little.
fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let step = move |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if state >> 62 == 0 { 0 } else { state.to_be_bytes()[0] }
    };
    (0..length).map(step).collect()
}

impl Rig {
    fn new() -> Self {
        let place = Place::without_a_disk();
        let server = Some(place.serve(LAYOUT, &["--data", "d"]));
        let rig = Self { place, server };
        for name in ["b", "c"] {
            fs::create_dir(rig.place.path(name)).expect("a folder");
        }
        rig.write("data", 0, &pattern(1, 5 << 20));
        rig.write("data", 9 << 20, &pattern(2, 3 << 20));
        rig.write("log", 4096, &pattern(3, 1 << 20));
        rig
    }

    fn open(&self, export: &str) -> Connection {
        self.place.open(export)
    }

    fn write(&self, export: &str, offset: u64, bytes: &[u8]) {
        self.open(export).write(offset, bytes).expect("a write");
    }

    fn contents(&self, export: &str) -> Vec<u8> {
        let mut export = self.open(export);
        let mut bytes = vec![0; usize::try_from(export.size().get()).expect("small")];
        for (at, part) in bytes.chunks_mut(1 << 20).enumerate() {
            export.read((at << 20) as u64, part).expect("a read");
        }
        bytes
    }

    fn weir(&self, args: &str) -> Command {
        let mut command = self.place.weir(&args.split(' ').collect::<Vec<_>>());
        command.env_remove("WEIR_BACKUP_KEY");
        command
    }

    /// Backs up; returns the report.
    #[track_caller]
    fn backup(&self, args: &str) -> Value {
        let (stdout, stderr, code) = run(self.weir(&format!("backup run {args} -o json")));
        assert_eq!(code, Some(0), "{stderr}");
        let report: Value = serde_json::from_str(&stdout).expect("JSON");
        assert_eq!(report["is_complete"], true);
        report
    }

    /// Refuses to back up; the message and the exit code.
    #[track_caller]
    fn refuse(&self, args: &str, code: i32, expect: &str) {
        self.bad(&format!("backup run {args}"), code, expect);
    }

    /// Runs a verb that succeeds; returns what it printed.
    #[track_caller]
    fn good(&self, args: &str) -> String {
        let (stdout, stderr, code) = run(self.weir(args));
        assert_eq!(code, Some(0), "{args}: {stdout}{stderr}");
        stdout
    }

    /// Runs a verb that is refused; compares its message and the exit code.
    #[track_caller]
    fn bad(&self, args: &str, code: i32, expect: &str) {
        let (stdout, stderr, got) = run(self.weir(args));
        assert_eq!((stdout.as_str(), got), ("", Some(code)), "{args}: {stderr}");
        assert!(stderr.contains(expect), "{args}: {stderr}");
    }

    /// Restores to images and compares them with what was there.
    #[track_caller]
    fn restore(&self, args: &str, expect: &[(&str, &[u8])]) {
        let images = self.place.path("images");
        drop(fs::remove_dir_all(&images));
        let (_, stderr, code) = run(self.weir(&format!("restore {args} --image images")));
        assert_eq!(code, Some(0), "{stderr}");
        for (name, bytes) in expect {
            let image = fs::read(images.join(format!("{name}.raw"))).expect("an image");
            assert!(image == *bytes, "{name} differs");
        }
    }

    fn files(&self, folder: &str) -> Vec<String> {
        files(&self.place.path(folder))
    }
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let name = |entry: std::io::Result<fs::DirEntry>| {
        entry.expect("an entry").file_name().to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

fn id(report: &Value) -> String {
    report["id"].as_str().expect("an id").to_owned()
}
