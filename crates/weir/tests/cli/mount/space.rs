//! The space of files is counted with concurrent writers and holes, and changes over the control
//! socket take effect in the mount.

use super::{Rig, must, shell};
use crate::common::run;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

const SMALL: &str = "[[volume]]\nname = \"v\"\nsize = \"64 MiB\"\n\
                     limits = { throughput = \"100 MiB/s\" }\n";

fn python(program: &str, dir: &Path) -> Command {
    let mut command = Command::new("python3");
    command.arg("-c").arg(program).arg(dir);
    command
}

fn used(rig: &Rig, name: &str) -> u64 {
    let df = shell("df -B1 --output=used \"$0\" | tail -n 1", &[&rig.path(name)]);
    must(df).trim().parse().expect("a figure")
}

/// Returns the space of the files in the backing folder.
fn taken(rig: &Rig, name: &str) -> u64 {
    let folder = fs::read_dir(rig.place.path("data/files").join(name)).expect("a folder");
    folder.map(|file| file.expect("a file").metadata().expect("a file").blocks() * 512).sum()
}

#[test]
fn writers_side_by_side_into_a_sparse_file_take_what_is_allocated() {
    let Some(mut rig) = Rig::new(SMALL, &[]) else { return };
    // Each time all of them might fill the same holes.
    let program = "
import mmap, os, sys, threading
path = sys.argv[1] + '/sparse'
fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT)
os.ftruncate(fd, 1 << 30)
failed = []
def write():
    page = mmap.mmap(-1, 1 << 20)
    try:
        for _ in range(20): os.pwritev(fd, [page], 512 << 20)
    except OSError as error: failed.append(error)
threads = [threading.Thread(target=write) for _ in range(16)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
assert not failed, failed
";
    must(python(program, &rig.path("v")));
    assert_eq!(used(&rig, "v"), 1 << 20);
    assert_eq!(taken(&rig, "v"), 1 << 20);
    let volume = rig.volume("v").expect("the volume");
    assert_eq!((&volume["allocated_bytes"], &volume["writes"]), (&(1 << 20).into(), &320.into()));
    rig.stop();
}

#[test]
fn a_reserve_behind_the_end_fills_no_hole() {
    let Some(mut rig) = Rig::new(SMALL, &[]) else { return };
    let line = "fallocate -l 20M other && truncate -s 20M keep && \
                fallocate -n -o 20M -l 20M keep";
    must(shell(&format!("cd \"$0\" && {line}"), &[&rig.path("v")]));
    assert_eq!(used(&rig, "v"), 40 << 20);
    // 24 MiB are free, so 20 fit into the hole; nothing of the second hole does.
    let fill = "dd if=/dev/zero of=\"$0/keep\" bs=1M count=20 conv=notrunc oflag=direct";
    must(shell(fill, &[&rig.path("v")]));
    assert_eq!((used(&rig, "v"), taken(&rig, "v")), (60 << 20, 60 << 20));
    must(shell("truncate -s 30M \"$0/more\"", &[&rig.path("v")]));
    let output = shell(&fill.replace("keep", "more"), &[&rig.path("v")]).output().expect("a shell");
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.contains("No space left on device"), "{said}");
    assert_eq!(taken(&rig, "v"), 64 << 20);
    // The reserve is used up first when the file grows.
    let grow = "dd if=/dev/zero of=\"$0/keep\" bs=1M count=20 seek=20 conv=notrunc oflag=direct";
    must(shell(grow, &[&rig.path("v")]));
    fs::remove_file(rig.path("v/keep")).expect("a file");
    assert_eq!(used(&rig, "v"), taken(&rig, "v"));
    rig.stop();
}

#[test]
fn concurrent_changes_are_counted_exactly() {
    let unlimited = "[[volume]]\nname = \"v\"\nsize = \"1 GiB\"\nunlimited = true\n";
    let Some(mut rig) = Rig::new(unlimited, &[]) else { return };
    let program = "
import ctypes, mmap, os, random, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
KEEP, PUNCH = 1, 2
paths = [f'{sys.argv[1]}/{n}' for n in range(4)]
def work(seed):
    rand = random.Random(seed)
    direct = seed % 2 * os.O_DIRECT
    page = mmap.mmap(-1, 1 << 20)
    for _ in range(150):
        fd = os.open(rand.choice(paths), os.O_RDWR | os.O_CREAT | direct)
        at, size = rand.randrange(1 << 12) * 4096, rand.randrange(1, 64) * 4096
        way = rand.randrange(8)
        if way < 4: os.pwritev(fd, [memoryview(page)[:size]], at)
        elif way == 4: os.ftruncate(fd, at)
        elif way == 5: libc.fallocate(fd, PUNCH | KEEP, ctypes.c_long(at), ctypes.c_long(size))
        elif way == 6: libc.fallocate(fd, KEEP, ctypes.c_long(at), ctypes.c_long(size))
        else: os.fsync(fd)
        os.close(fd)
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
";
    must(python(program, &rig.path("v")));
    // While ext4 writes back delayed allocations, `st_blocks` counts some blocks twice; a sync of each
    // file settles its space afterwards.
    must(shell("sync \"$0\"/*", &[&rig.path("v")]));
    assert_eq!(used(&rig, "v"), taken(&rig, "v"));
    rig.stop();
}

#[test]
fn a_volume_is_resized_under_its_files() {
    let layout = "edition = \"azure-premium-2015\"\n\
                  [[volume]]\nname = \"v\"\nsize = \"100 GiB\"\n";
    let Some(mut rig) = Rig::new(layout, &[]) else { return };
    must(rig.place.weir(&["volume", "resize", "v", "1TiB"]));
    let df = shell("df -BG --output=size \"$0\" | tail -n 1", &[&rig.path("v")]);
    assert_eq!(must(df).trim(), "1024G");
    assert_eq!(rig.volume("v").expect("the volume")["tier"], "P30");
    let refused = |args: &[&str], expect: &str| {
        let (_, said, code) = run(rig.place.weir(args));
        assert_eq!((said.as_str(), code), (expect, Some(2)));
    };
    std::fs::write(rig.path("v").join("a"), vec![1; 3 << 20]).expect("a file");
    must(shell("sync \"$0\"/a", &[&rig.path("v")]));
    let (_, said, code) = run(rig.place.weir(&["volume", "resize", "v", "2MiB"]));
    let expect =
        "weir: volume \"v\": the files of v hold 3 MiB, more than 2 MiB; delete some first\n";
    assert_eq!((said.as_str(), code), (expect, Some(2)));
    refused(
        &["volume", "create", "other", "--size", "1GiB"],
        "weir: volume \"other\": the volumes of a mount are those of its layout; unmount, and add \
         the volume to the layout\n",
    );
    refused(
        &["volume", "delete", "v", "--yes"],
        "weir: volume \"v\": it is mounted; unmount it first\n",
    );
    rig.stop();
}

#[test]
fn the_volume_of_a_file_is_the_files() {
    let layout = "edition = \"azure-mi-2018\"\n\
                  host = { managed_instance = \"gp\", vcores = 8, storage = \"1 TiB\" }\n\
                  [[file]]\nname = \"crm-data\"\ndatabase = \"crm\"\nrole = \"data\"\n\
                  size = \"10 GiB\"\n";
    let Some(mut rig) = Rig::new(layout, &["--database", "sales"]) else { return };
    must(shell("truncate -s 200G \"$0\"", &[&rig.path("sales/live")]));
    let expect = "weir: volume \"sales.live\": it is a file of a mount: it is resized and deleted \
                  together with the file\n";
    for args in [
        &["volume", "resize", "sales.live", "1GiB"][..],
        &["volume", "delete", "sales.live", "--yes"],
    ] {
        let (_, said, code) = run(rig.place.weir(args));
        assert_eq!((said.as_str(), code), (expect, Some(2)));
    }
    // A file of the layout is the one that is called that, at the top.
    must(shell("mkdir \"$0/sub\" && echo > \"$0/sub/crm-data\"", &[&rig.path("crm")]));
    assert!(rig.volume("crm.sub-crm-data").is_some());
    fs::write(rig.path("crm/crm-data"), "rows").expect("a file");
    assert_eq!(rig.volume("crm-data").expect("the volume")["allocated_bytes"], 4096);
    // 280 files, less the four that are there.
    let line = "df --output=itotal,iavail \"$0\" | tail -n 1";
    let files = must(shell(line, &[&rig.path("sales")]));
    assert_eq!(files.split_whitespace().collect::<Vec<_>>(), ["280", "277"]);
    // Where the layout gives less now, nothing goes on without a limit.
    rig.stop();
    let less = layout.replace("1 TiB", "64 GiB");
    rig.place.file("less.toml", &less);
    let mount = ["mount", "less.toml", "mnt", "--data", "data", "--database", "sales"];
    let (_, said, code) = run(rig.place.weir(&mount));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("data/files/sales/live: it is 200 GiB: "), "{said}");
    assert!(said.ends_with("give it more in the layout, or move the file elsewhere\n"), "{said}");
    assert_eq!(super::mounts_at(rig.place.dir()), [""; 0]);
}

#[test]
fn files_of_one_name_in_many_folders_come_at_once() {
    let layout = "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 8 }\n";
    let Some(mut rig) = Rig::new(layout, &["--database", "sales"]) else { return };
    let program = "
import os, sys, threading
failed = []
def make(n):
    try:
        os.mkdir(f'{sys.argv[1]}/d{n}')
        for k in range(10):
            os.close(os.open(f'{sys.argv[1]}/d{n}/f.{k}', os.O_CREAT | os.O_EXCL))
            os.rename(f'{sys.argv[1]}/d{n}/f.{k}', f'{sys.argv[1]}/d{n}/g{k}')
    except OSError as error: failed.append(error)
threads = [threading.Thread(target=make, args=(n,)) for n in range(8)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
assert not failed, failed
";
    must(python(program, &rig.path("sales")));
    let status = rig.status();
    assert_eq!(status["hosts"][0]["volumes"].as_array().map(Vec::len), Some(80));
    rig.stop();
}
