//! The other way to a file system with the limits of a volume: one upon an export.

use super::{must, shell};
use crate::common::Place;
use crate::stack::{Stack, can_loop};
use crate::tools::{self, needs};

const LAYOUT: &str = "[[volume]]\nname = \"v\"\nsize = \"64 MiB\"\nlimits = { iops = 2000 }\n";

#[test]
fn a_file_system_on_an_export() {
    needs!("nbdfuse", "losetup", "mkfs.ext4", "fsck.ext4");
    let place = Place::new();
    if !can_loop(&place) {
        return;
    }
    let server = place.serve(LAYOUT, &["--data", "data"]);
    let mut stack = Stack::up(&place, "v");
    let device = stack.device();
    must(shell("mkfs.ext4 -q \"$0\"", &[&device]));
    stack.mount(&place);
    let write = "head -c 8M /dev/urandom > \"$0\" && cp \"$0\" \"$1/file\" && sync -f \"$1/file\"";
    must(shell(write, &[&place.path("copy"), &place.path("fs")]));
    stack.unmount();
    must(shell("fsck.ext4 -fn \"$0\"", &[&device]));
    stack.mount(&place);
    must(shell("cmp \"$0\" \"$1/file\"", &[&place.path("copy"), &place.path("fs")]));
    stack.take_down().expect("everything is taken down");
    server.stop();
}
