//! The files that a package has besides the binary.

use crate::common::{Place, run};
use crate::tools::{self, needs};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The unit is valid, its options are those of `weir serve`, and its exposure is rated below 3 of 10.
/// It was not started: that needs a machine that systemd runs.
#[test]
fn the_unit_of_systemd_is_valid_and_hardened() {
    needs!("systemd-analyze");
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/weir.service");
    let text = fs::read_to_string(&unit).expect("the unit");
    let place = Place::new();
    // No weir is installed here.
    place.file("weir.service", &text.replace("/usr/bin/weir", env!("CARGO_BIN_EXE_weir")));
    let analyze = |args: &[&str]| {
        let mut command = Command::new("systemd-analyze");
        command.args(args).current_dir(place.dir());
        run(command)
    };
    let (stdout, stderr, code) = analyze(&["verify", "./weir.service"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    let rated = ["security", "--offline=true", "--threshold=30", "weir.service"];
    let (stdout, stderr, code) = analyze(&rated);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("Overall exposure level"), "{stdout}");

    let line = text.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/weir serve "));
    let (help, _, _) = run(place.weir(&["serve", "--help"]));
    let options = line.expect("a command").split(' ').filter(|word| word.starts_with("--"));
    assert_eq!(options.filter(|option| help.contains(option)).count(), 3, "{text}");
}
