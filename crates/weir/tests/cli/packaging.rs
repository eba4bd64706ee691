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

/// The unit that serves RBD images is valid, and names what the script can do.
#[test]
fn the_unit_and_the_script_for_rbd_images_are_valid() {
    needs!("systemd-analyze", "shellcheck");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/ceph");
    let mut lint = Command::new("shellcheck");
    lint.arg(folder.join("weir-rbd"));
    let (said, _, code) = run(lint);
    assert_eq!(code, Some(0), "{said}");

    let text = fs::read_to_string(folder.join("weir-rbd@.service")).expect("the unit");
    let script = fs::read_to_string(folder.join("weir-rbd")).expect("the script");
    for command in ["hold", "publish"] {
        assert!(text.contains(&format!("/usr/lib/weir/weir-rbd {command} ")), "{text}");
        assert!(script.contains(&format!("\n    {command})")), "{script}");
    }
    let place = Place::new();
    // Neither is installed here.
    let text = text.replace("/usr/lib/weir/weir-rbd", "/bin/true");
    place.file("weir-rbd@.service", &text.replace("/usr/bin/qemu-storage-daemon", "/bin/true"));
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "./weir-rbd@data.service"]).current_dir(place.dir());
    let (stdout, stderr, code) = run(verify);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
}
