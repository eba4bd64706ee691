//! Fake commands that record what they are asked, and the check that no argument is a password.

use crate::common::script;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use weir_export::{Kind, Options};

const LINUX: [&str; 14] = [
    "lsblk",
    "wipefs",
    "blkid",
    "mkfs.xfs",
    "mdadm",
    "update-initramfs",
    "udevadm",
    "pvs",
    "vgs",
    "pvcreate",
    "vgcreate",
    "lvs",
    "lvcreate",
    "ebsnvme-id",
];

/// A folder with fake commands and their state.
pub(crate) struct Fake(pub(crate) tempfile::TempDir);

impl Fake {
    pub(crate) fn new() -> Self {
        let fake = Self(tempfile::tempdir().expect("a folder"));
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/export/fakes");
        let bin = fake.0.path().join("bin");
        fs::create_dir_all(fake.0.path().join("disks")).expect("a folder");
        fs::create_dir_all(fake.0.path().join("on")).expect("a folder");
        fs::create_dir(&bin).expect("a folder");
        symlink(own.join("az"), bin.join("az")).expect("a link");
        for name in LINUX {
            symlink(own.join("linux"), bin.join(name)).expect("a link");
        }
        fake
    }

    pub(crate) fn file(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).expect("a file");
    }

    /// Adds the disks of the machine: one of 512 GiB, and four of 1 TiB.
    pub(crate) fn with_disks(self) -> Self {
        for lun in 0..5_u64 {
            let size: u64 = if lun == 0 { 512 << 30 } else { 1 << 40 };
            self.file(&format!("disks/_dev_disk_azure_scsi1_lun{lun}"), &format!(" {size}\n"));
        }
        self
    }

    /// Runs a script; returns the changes, the output, and whether it succeeded.
    pub(crate) fn run(
        &self,
        script: &str,
        variables: &[(&str, &str)],
    ) -> (Vec<String>, String, bool) {
        let root = self.0.path();
        let path =
            format!("{}:{}", root.join("bin").display(), std::env::var("PATH").expect("a path"));
        self.file("script", script);
        let mut command = Command::new("bash");
        command.arg(root.join("script")).env("PATH", path).env("FAKE", root);
        command.env("MDADM_CONF", root.join("mdadm.conf")).envs(variables.iter().copied());
        for name in ["ADMIN_PASSWORD", "PASSWORD", "SQLCMDPASSWORD", "AZURE_PASSWORD"] {
            command.env(name, PASSWORD);
        }
        let output = command.output().expect("bash");
        let changed = fs::read_to_string(root.join("changes")).unwrap_or_default();
        drop(fs::remove_file(root.join("changes")));
        let arguments = fs::read_to_string(root.join("arguments")).unwrap_or_default();
        arguments.lines().for_each(|argument| check_argument(argument));
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (changed.lines().map(str::to_owned).collect(), said, output.status.success())
    }
}

/// A password in the environment, which no script may pass on.
const PASSWORD: &str = "it's $ecret";

/// The variables that scripts read.
pub(crate) const VARIABLES: [(&str, &str); 10] = [
    ("RESOURCE_GROUP", "my group"),
    ("LOCATION", "westeurope"),
    ("MACHINE", "db1"),
    ("IMAGE", "Ubuntu2204"),
    ("ADMIN", "me"),
    ("ZONE", "1"),
    ("INSTANCE", "sales"),
    (
        "SUBNET",
        "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets/s",
    ),
    ("SSH_KEY", "ssh-ed25519 AAAA me"),
    ("ADMIN_ID", "c5e964e2-6bb2-2222-1111-3b16ec0e1234"),
];

/// Panics if an argument is a password or announces one: all users can read the arguments of a
/// process.
#[track_caller]
fn check_argument(argument: &str) {
    assert!(!argument.contains(PASSWORD), "a password is an argument: {argument}");
    let is_option = argument.starts_with("--") && argument.contains("password");
    assert!(!is_option && !["-p", "-P"].contains(&argument), "a password would follow {argument}");
}

/// Checks that the first run makes these changes, and the second none.
#[track_caller]
pub(crate) fn check(fake: &Fake, script: &str, variables: &[(&str, &str)], expect: &[&str]) {
    let (changed, said, fine) = fake.run(script, variables);
    assert!(fine, "{said}\n{script}");
    assert_eq!(changed, expect, "{said}");
    let (again, said, fine) = fake.run(script, variables);
    assert!(fine, "{said}");
    assert_eq!(again, Vec::<String>::new(), "{said}");
}

/// Returns a script of a layout.
pub(crate) fn text(kind: Kind, layout: &str) -> String {
    script(kind, layout, &Options::default()).expect("a script").text
}
