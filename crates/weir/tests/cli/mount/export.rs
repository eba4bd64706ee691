//! The other way to a file system with the limits of a volume: one upon an export.

use super::{must, shell, wait_until};
use crate::common::Place;
use crate::tools::{self, needs};
use rustix::process::geteuid;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const LAYOUT: &str = "[[volume]]\nname = \"v\"\nsize = \"64 MiB\"\nlimits = { iops = 2000 }\n";

/// A server, a mount and their user, stopped in this order, also by a failed test.
#[derive(Default)]
struct Stack {
    mounted: Option<PathBuf>,
    device: Option<String>,
    nbdfuse: Option<(Child, PathBuf)>,
}

impl Stack {
    fn unmount(&mut self) {
        if let Some(dir) = self.mounted.take() {
            must(shell("umount \"$0\"", &[&dir]));
        }
    }

    fn take_down(&mut self) -> Result<(), String> {
        let tried = |line: &str, path: &Path| match shell(line, &[path]).output() {
            Ok(output) if output.status.success() => Ok(()),
            other => Err(format!("{line} {}: {other:?}", path.display())),
        };
        if let Some(dir) = self.mounted.take() {
            tried("umount \"$0\"", &dir)?;
        }
        if let Some(device) = self.device.take() {
            tried("losetup -d \"$0\"", Path::new(&device))?;
        }
        if let Some((mut child, dir)) = self.nbdfuse.take() {
            let unmounted = tried("umount \"$0\"", &dir);
            if unmounted.is_err() {
                let _ = child.kill();
            }
            let _ = child.wait();
            unmounted?;
        }
        Ok(())
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let _ = self.take_down();
    }
}

#[test]
fn a_file_system_on_an_export() {
    needs!("nbdfuse", "losetup", "mkfs.ext4", "fsck.ext4");
    let (place, mut stack) = (Place::new(), Stack::default());
    for dir in ["nbd", "fs"] {
        fs::create_dir(place.path(dir)).expect("a folder");
    }
    fs::write(place.path("probe"), [0; 4096]).expect("a file");
    let probe =
        shell("d=$(losetup --show -f \"$0\") && losetup -d \"$d\"", &[&place.path("probe")]);
    // A container may have none, also where everything else must run.
    if !geteuid().is_root() || !{ probe }.output().is_ok_and(|tried| tried.status.success()) {
        println!("skipped: needs a loop device");
        return;
    }
    let server = place.serve(LAYOUT, &["--data", "data"]);
    let uri = format!("nbd+unix:///v?socket={}", place.path("nbd.sock").display());
    let file = place.path("nbd/disk");
    let mut nbdfuse = Command::new("nbdfuse");
    nbdfuse.arg("-P").arg(place.path("pid")).arg(&file).arg(uri).stdin(Stdio::null());
    stack.nbdfuse = Some((nbdfuse.spawn().expect("nbdfuse"), place.path("nbd")));
    wait_until("nbdfuse serves", || file.exists());
    let device = must(shell("losetup --show -f \"$0\"", &[&file])).trim().to_owned();
    stack.device = Some(device.clone());
    let device = Path::new(&device);
    must(shell("mkfs.ext4 -q \"$0\" && mount \"$0\" \"$1\"", &[device, &place.path("fs")]));
    stack.mounted = Some(place.path("fs"));
    let write = "head -c 8M /dev/urandom > \"$0\" && cp \"$0\" \"$1/file\" && sync -f \"$1/file\"";
    must(shell(write, &[&place.path("copy"), &place.path("fs")]));
    stack.unmount();
    must(shell("fsck.ext4 -fn \"$0\"", &[device]));
    must(shell("mount \"$0\" \"$1\"", &[device, &place.path("fs")]));
    stack.mounted = Some(place.path("fs"));
    must(shell("cmp \"$0\" \"$1/file\"", &[&place.path("copy"), &place.path("fs")]));
    stack.take_down().expect("everything is taken down");
    server.stop();
}
