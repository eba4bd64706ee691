//! The limits of a volume apply to its directory, and to no other.

use super::{Rig, must, shell};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn direct_writes_go_at_the_rate_of_the_volume_and_are_counted() {
    let layout = "[[volume]]\nname = \"v\"\nsize = \"1 GiB\"\nlimits = { iops = 500 }\n";
    let Some(mut rig) = Rig::new(layout, &[]) else { return };
    let file = rig.path("v/file");
    let clock = weir_wall::Clock::start();
    let write = "dd if=/dev/zero of=\"$0\" bs=8k count=400 oflag=direct status=none";
    must(shell(write, &[&file]));
    // The first goes at once.
    let least = 399 * 1_000_000_000 / 500;
    assert!(clock.now().nanos() >= least, "{:?}", clock.now());
    let volume = rig.volume("v").expect("the volume");
    assert_eq!((&volume["writes"], &volume["reads"]), (&400.into(), &0.into()));
    assert_eq!(volume["write_bytes"], 400 * 8192);
    let waits = volume["waits_ns"].as_object().expect("waits");
    assert!(waits["disk_iops"].as_u64() > Some(400_000_000), "{waits:?}");
    assert_eq!(waits.keys().collect::<Vec<_>>(), ["disk_iops"]);

    let clock = weir_wall::Clock::start();
    let read = "dd if=\"$0\" of=/dev/null bs=8k iflag=direct status=none";
    must(shell(read, &[&file]));
    assert!(clock.now().nanos() >= least, "{:?}", clock.now());
    // The kernel may ask once more, for what is behind the end.
    let reads = rig.volume("v").expect("the volume")["reads"].as_u64();
    assert!((Some(400)..=Some(401)).contains(&reads), "{reads:?}");
    rig.stop();
}

#[test]
fn bytes_have_a_limit_too() {
    let layout =
        "[[volume]]\nname = \"v\"\nsize = \"1 GiB\"\nlimits = { throughput = \"16 MiB/s\" }\n";
    let Some(mut rig) = Rig::new(layout, &[]) else { return };
    let clock = weir_wall::Clock::start();
    // The kernel gathers it into an unknown number of I/Os.
    let write = "dd if=/dev/zero of=\"$0\" bs=64k count=256 conv=fsync status=none";
    must(shell(write, &[&rig.path("v/file")]));
    // At most the largest I/O of the 16 MiB is admitted at once.
    assert!(clock.now().nanos() >= 900_000_000, "{:?}", clock.now());
    let volume = rig.volume("v").expect("the volume");
    assert_eq!(volume["write_bytes"], 16 << 20);
    assert!(volume["waits_ns"]["disk_bytes"].as_u64() > Some(500_000_000), "{volume}");
    rig.stop();
}

#[test]
fn one_directory_does_not_hold_another_back() {
    let layout = "[[volume]]\nname = \"slow\"\nsize = \"1 GiB\"\nlimits = { iops = 5 }\n\
                  [[volume]]\nname = \"fast\"\nsize = \"1 GiB\"\nlimits = { iops = 50000 }\n";
    let Some(mut rig) = Rig::new(layout, &[]) else { return };
    // Direct writes, and many that the kernel has gathered and waits to write.
    let hold = "echo go; dd if=/dev/zero of=\"$0/direct\" bs=8k count=1000 oflag=direct & \
                dd if=/dev/zero of=\"$0/gathered\" bs=1M count=64 conv=fsync & wait";
    let mut held = shell(&format!("trap 'kill 0' TERM; {hold}"), &[&rig.path("slow")]);
    std::os::unix::process::CommandExt::process_group(&mut held, 0);
    held.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut held = held.spawn().expect("a shell");
    let mut told = String::new();
    let stdout = held.stdout.take().expect("a pipe");
    BufReader::new(stdout).read_line(&mut told).expect("text");
    let use_it = "dd if=/dev/zero of=\"$0/direct\" bs=8k count=200 oflag=direct status=none && \
                  dd if=/dev/zero of=\"$0/gathered\" bs=1M count=64 conv=fsync status=none && \
                  cat \"$0/gathered\" > /dev/null && rm \"$0/direct\" \"$0/gathered\"";
    must(shell(use_it, &[&rig.path("fast")]));
    assert!(held.try_wait().expect("a process").is_none(), "the slow one was not slow");
    // A wait counts when it is over: the second request's after a fifth of a second.
    let waited = |slow: &serde_json::Value| slow["waits_ns"]["disk_iops"].as_u64() > Some(0);
    let clock = weir_wall::Clock::start();
    while !waited(&rig.volume("slow").expect("the volume")) {
        assert!(clock.now().nanos() < 60_000_000_000, "the slow one does not wait");
    }
    let group = i32::try_from(held.id()).ok().and_then(rustix::process::Pid::from_raw);
    let group = group.expect("a process");
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).expect("running");
    held.wait().expect("an end");
    // Writing 64 MiB would take a while, and no process waits for it any more.
    rig.kill();
}

#[test]
fn df_shows_the_capacity_and_beyond_it_is_no_space() {
    let layout = "[[volume]]\nname = \"small\"\nsize = \"64 MiB\"\nunlimited = true\n\
                  [[volume]]\nname = \"other\"\nsize = \"1 GiB\"\nunlimited = true\n";
    let Some(mut rig) = Rig::new(layout, &[]) else { return };
    let df = |rig: &Rig, name: &str| {
        let text = must(shell("df -B1 --output=size,avail \"$0\" | tail -n 1", &[&rig.path(name)]));
        let figures = text.split_whitespace().map(|figure| figure.parse().expect("a figure"));
        <[u64; 2]>::try_from(figures.collect::<Vec<_>>()).expect("two figures")
    };
    assert_eq!(df(&rig, "small"), [64 << 20, 64 << 20]);
    assert_eq!(df(&rig, "other"), [1 << 30, 1 << 30]);
    let refused = |line: &str, rig: &Rig| {
        let output = shell(line, &[&rig.path("small/f")]).output().expect("a shell");
        let said = String::from_utf8(output.stderr).expect("text");
        assert!(!output.status.success() && said.contains("No space left on device"), "{said}");
    };
    refused("dd if=/dev/zero of=\"$0\" bs=1M count=65 oflag=direct status=none", &rig);
    let kept = fs::metadata(rig.path("small/f")).expect("a file").len();
    assert_eq!(kept, 64 << 20);
    assert_eq!(df(&rig, "small"), [64 << 20, 0]);
    refused("dd if=/dev/zero of=\"$0-more\" bs=8k count=1 oflag=direct status=none", &rig);
    fs::remove_file(rig.path("small/f")).expect("a file");
    // Gathered writes fail at the sync.
    refused("dd if=/dev/zero of=\"$0\" bs=1M count=80 conv=fsync status=none", &rig);
    refused("fallocate -l 80M \"$0-reserved\"", &rig);
    must(shell("rm \"$0\" \"$0\"-*", &[&rig.path("small/f")]));
    assert_eq!(df(&rig, "small"), [64 << 20, 64 << 20]);
    must(shell("head -c 10000000 /dev/urandom > \"$0\" && sync \"$0\"", &[&rig.path("small/f")]));
    let before = df(&rig, "small");
    rig.stop();
    rig.mount(layout, &[]);
    assert_eq!(df(&rig, "small"), before, "what is used is known after a restart");
    rig.stop();
}

#[test]
fn a_striped_volume_is_a_directory_whose_files_are_on_all_members() {
    let layout = "[[stripe]]\nname = \"wide\"\nunit = \"64 KiB\"\n\
                  volumes = { count = 4, size = \"64 MiB\", limits = { iops = 2000 } }\n";
    let Some(mut rig) = Rig::new(layout, &[]) else { return };
    let write = "head -c 16M /dev/urandom > \"$1\" && \
                 dd if=\"$1\" of=\"$0\" bs=256k oflag=direct status=none && cmp \"$0\" \"$1\"";
    let (file, copy) = (rig.path("wide/file"), rig.place.path("copy"));
    must(shell(write, &[&file, &copy]));
    let status = rig.status();
    let volumes = status["hosts"][0]["volumes"].as_array().expect("volumes");
    assert_eq!(volumes.len(), 4);
    for volume in volumes {
        // A quarter of the stripe units each; an I/O of four units is one of each member.
        assert_eq!(volume["write_bytes"], 4 << 20, "{volume}");
        assert_eq!(volume["writes"], 64, "{volume}");
    }
    rig.stop();
    rig.mount(layout, &[]);
    must(shell("cmp \"$0\" \"$1\"", &[&file, &copy]));
    rig.stop();
}
