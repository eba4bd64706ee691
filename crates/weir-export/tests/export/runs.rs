//! Shell scripts, run against fake commands with a memory: the first run builds everything, the
//! second does nothing.

use crate::common::{INSTANCE, MACHINE, changes};
use crate::fake::{Fake, VARIABLES, check, text};
use crate::tools::has;
use std::fs;
use weir_export::{Kind, Options};

#[test]
fn the_azure_cli_makes_what_is_missing_and_nothing_twice() {
    if !has("bash") {
        return;
    }
    let expect = [
        "az vm create db1",
        "az disk create log",
        "az vm disk attach log",
        "az disk create pool-0",
        "az vm disk attach pool-0",
        "az disk create pool-1",
        "az vm disk attach pool-1",
        "az disk create pool-2",
        "az vm disk attach pool-2",
        "az disk create pool-3",
        "az vm disk attach pool-3",
    ];
    check(&Fake::new(), &text(Kind::Az, MACHINE), &VARIABLES, &expect);
    check(&Fake::new(), &text(Kind::Az, INSTANCE), &VARIABLES, &["az sql mi create sales"]);
    let next = INSTANCE.replace("2018", "now").replace("\"gp\"", "\"next-gen-gp\"");
    check(&Fake::new(), &text(Kind::Az, &next), &VARIABLES, &["az sql mi create sales"]);
    let all = MACHINE.replace(
        "tier = \"P20\"",
        "family = \"premium-ssd-v2\"\nsize = \"200 GiB\"\niops = 8000\nthroughput = \"300 MB/s\"",
    ).replace("cache = \"read-only\"", "on_demand_burst = true");
    check(&Fake::new(), &text(Kind::Az, &all), &VARIABLES, &expect);
    // A script that lacks a variable stops before any change.
    let (changed, said, fine) = Fake::new().run(&text(Kind::Az, MACHINE), &VARIABLES[..2]);
    assert!(
        changed.is_empty() && !fine && said.contains("set MACHINE to the name of the machine"),
        "{said}"
    );
}

#[test]
fn the_azure_cli_changes_what_differs() {
    if !has("bash") {
        return;
    }
    let fake = Fake::new();
    let (_, said, fine) = fake.run(&text(Kind::Az, MACHINE), &VARIABLES);
    assert!(fine, "{said}");
    let larger = MACHINE
        .replace("P20", "P30")
        .replace("cache = \"read-only\"", "cache = \"none\"")
        .replace("D16s_v3", "D32s_v3")
        .replace("count = 4", "count = 5");
    // Without the layout in use, a difference is reported and left alone.
    let (changed, said, fine) = fake.run(&text(Kind::Az, &larger), &VARIABLES);
    assert!(fine, "{said}");
    assert_eq!(changed, ["az disk create pool-4", "az vm disk attach pool-4"], "{said}");
    for words in ["log: exists with 512 GiB, the layout has 1024", "pool-0: has cache ReadOnly"] {
        assert!(said.contains(words), "{said}");
    }
    let script = changes(Kind::Az, MACHINE, &larger, &Options::default()).expect("a script").text;
    let (changed, said, fine) = fake.run(&script, &VARIABLES);
    assert!(!fine && changed.is_empty() && said.contains("set RESTART=yes"), "{said}");
    let allowed = [&VARIABLES[..], &[("RESTART", "yes")]].concat();
    let (changed, said, fine) = fake.run(&script, &allowed);
    assert!(fine, "{said}");
    let expect = [
        "az vm resize db1",
        "az disk update log",
        "az vm update db1",
        "az vm update db1",
        "az vm update db1",
        "az vm update db1",
    ];
    assert_eq!(changed, expect, "{said}");
    let caching = fs::read_to_string(fake.0.path().join("caching")).expect("what was set");
    assert_eq!(caching, "1=None\n2=None\n3=None\n4=None\n");
}

/// Checks that an up-to-date or larger disk stays, and that the second run does nothing.
#[test]
fn the_azure_cli_looks_before_it_changes_a_disk() {
    if !has("bash") {
        return;
    }
    let make = || {
        let fake = Fake::new();
        let (_, said, fine) = fake.run(&text(Kind::Az, MACHINE), &VARIABLES);
        assert!(fine, "{said}");
        fake
    };
    let made = |old: &str, new: &str| {
        changes(Kind::Az, old, new, &Options::default()).expect("a script").text
    };
    let larger = made(MACHINE, &MACHINE.replace("P20", "P30"));
    check(&make(), &larger, &VARIABLES, &["az disk update log"]);
    let fake = make();
    fake.file("disks/log", "2048\n");
    let (changed, said, fine) = fake.run(&larger, &VARIABLES);
    assert!(fine && changed.is_empty(), "{said}");
    let words = "log: already has 2048 GiB, the layout 1024; not changed";
    assert!(said.contains(words), "{said}");
    let raised = MACHINE.replace("tier = \"P20\"", "tier = \"P20\"\nperformance_tier = \"P40\"");
    check(&make(), &made(MACHINE, &raised), &VARIABLES, &["az disk update log"]);
    let cached = MACHINE.replace("tier = \"P20\"", "tier = \"P20\"\ncache = \"read-only\"");
    check(&make(), &made(MACHINE, &cached), &VARIABLES, &["az vm update db1"]);
    let bursts = MACHINE
        .replace("count = 4, tier = \"P30\"", "count = 4, tier = \"P30\", on_demand_burst = true");
    let pool = [
        "az disk update pool-0",
        "az disk update pool-1",
        "az disk update pool-2",
        "az disk update pool-3",
    ];
    check(&make(), &made(MACHINE, &bursts), &VARIABLES, &pool);
    let bought = |iops: u32| {
        let own = format!(
            "family = \"premium-ssd-v2\"\nsize = \"200 GiB\"\niops = {iops}\nthroughput = \"300 MB/s\""
        );
        MACHINE.replace("tier = \"P20\"", &own)
    };
    check(&make(), &made(&bought(8000), &bought(9000)), &VARIABLES, &["az disk update log"]);
}

/// Checks that an instance is changed once, in its differences only.
#[test]
fn the_azure_cli_looks_before_it_changes_an_instance() {
    if !has("bash") {
        return;
    }
    let gp = INSTANCE.replace("2018", "now").replace("8 TiB", "1 TiB");
    let next = gp.replace("\"gp\"", "\"next-gen-gp\"").replace("TiB\" }", "TiB\", iops = 6000 }");
    let make = |layout: &str| {
        let fake = Fake::new();
        let (_, said, fine) = fake.run(&text(Kind::Az, layout), &VARIABLES);
        assert!(fine, "{said}");
        fake
    };
    let made = |old: &str, new: &str| {
        changes(Kind::Az, old, new, &Options::default()).expect("a script").text
    };
    let updated = |fake: &Fake| {
        let all = fs::read_to_string(fake.0.path().join("updated")).expect("what was set");
        all.lines().filter(|line| line.starts_with("sql mi update")).map(str::to_owned).collect()
    };
    let once = |old: &str, new: &str, keys: &str| {
        let fake = make(old);
        check(&fake, &made(old, new), &VARIABLES, &["az sql mi update sales"]);
        let all: Vec<String> = updated(&fake);
        assert_eq!(all, [format!("sql mi update: {keys}")]);
    };
    let larger = gp.replace("vcores = 8", "vcores = 16").replace("1 TiB", "2 TiB");
    once(&gp, &larger, "capacity=16 storage=2048");
    once(&larger, &gp, "capacity=8 storage=1024");
    once(&gp, &next, "gpv2=true iops=6000");
    once(&next, &next.replace("6000", "7000"), "iops=7000");
    once(&next, &gp, "gpv2=false");
    once(&gp, &gp.replace("\"gp\"", "\"bc\""), "edition=BusinessCritical");
    // Up-to-date settings are not sent again, and larger storage stays.
    let fake = make(&gp);
    fake.file("set/sales.capacity", "16\n");
    check(&fake, &made(&gp, &larger), &VARIABLES, &["az sql mi update sales"]);
    let all: Vec<String> = updated(&fake);
    assert_eq!(all, ["sql mi update: storage=2048"]);
    fake.file("set/sales.storage", "4096\n");
    let (changed, said, fine) = fake.run(&made(&gp, &larger), &VARIABLES);
    assert!(fine && changed.is_empty(), "{said}");
    let words = "sales: already has 4096 GB, the layout 2048; its storage stays";
    assert!(said.contains(words), "{said}");
    // A missing instance is not changed.
    let (changed, said, fine) = Fake::new().run(&made(&gp, &larger), &VARIABLES);
    assert!(!fine && changed.is_empty(), "{said}");
}

/// Checks that the LUN of an unknown attached disk is not reused.
#[test]
fn the_azure_cli_takes_no_number_of_a_disk_that_it_does_not_know() {
    if !has("bash") {
        return;
    }
    let fake = Fake::new();
    let (_, said, fine) = fake.run(&text(Kind::Az, MACHINE), &VARIABLES);
    assert!(fine, "{said}");
    let less = MACHINE.replace("count = 4", "count = 3");
    let larger = less.replace("P20", "P30").replace("D16s_v3", "D32s_v3");
    let more =
        larger.replace("[[stripe]]", "[[volume]]\nname = \"more\"\ntier = \"P10\"\n[[stripe]]");
    let made =
        |new: &str| changes(Kind::Az, &less, new, &Options::default()).expect("a script").text;
    let allowed = [&VARIABLES[..], &[("RESTART", "yes")]].concat();
    for script in [
        made(&more),
        text(
            Kind::Az,
            &more.replace("[[volume]]\nname = \"log\"", "[[volume]]\nlun = 9\nname = \"log\""),
        ),
    ] {
        let (changed, said, fine) = fake.run(&script, &allowed);
        assert!(!fine && changed.is_empty(), "{changed:?} {said}");
        assert!(said.contains("more: NOT DONE: "), "{said}");
    }
    let words = "more: NOT DONE: pool-3 is attached as LUN 4; detach it once it is unused, or";
    let (_, said, _) = fake.run(&made(&more), &allowed);
    assert!(said.contains(words), "{said}");
    // An attached disk needs no LUN and stays.
    let swapped = MACHINE.replace("count = 4", "count = 4, luns = [2, 1, 3, 4]");
    let (changed, said, fine) = fake.run(&text(Kind::Az, &swapped), &VARIABLES);
    assert!(fine && changed.is_empty(), "{said}");
    assert!(said.contains("pool-0: has LUN 1, the layout 2; not changed"), "{said}");
    // A detached disk has no LUN.
    fs::remove_file(fake.0.path().join("attached/pool-3")).expect("a disk");
    let expect =
        ["az vm resize db1", "az disk update log", "az disk create more", "az vm disk attach more"];
    check(&fake, &made(&more), &allowed, &expect);
}

/// Checks that a disk that crosses 4 TiB waits until the machine may stop, and that the others do
/// not wait.
#[test]
fn the_azure_cli_stops_the_machine_only_where_it_may() {
    if !has("bash") {
        return;
    }
    let of = |size: &str, tier: &str| {
        MACHINE
            .replace("tier = \"P20\"", &format!("family = \"premium-ssd\"\nsize = {size:?}"))
            .replace("P30", tier)
    };
    let fake = Fake::new();
    let (_, said, fine) = fake.run(&text(Kind::Az, &of("4 TiB", "P30")), &VARIABLES);
    assert!(fine, "{said}");
    let script = changes(Kind::Az, &of("4 TiB", "P30"), &of("8 TiB", "P40"), &Options::default());
    let script = script.expect("a script").text;
    let (changed, said, fine) = fake.run(&script, &VARIABLES);
    assert!(!fine && said.contains("log: NOT DONE: growing past 4 TiB"), "{said}");
    assert!(said.contains("allow it with RESTART=yes"), "{said}");
    let pool = (0..4).map(|at| format!("az disk update pool-{at}")).collect::<Vec<_>>();
    assert_eq!(changed, pool, "{said}");
    let allowed = [&VARIABLES[..], &[("RESTART", "yes")]].concat();
    let expect = ["az vm deallocate db1", "az disk update log", "az vm start db1"];
    check(&fake, &script, &allowed, &expect);
    // Several of them stop it once; disks of that size are not cached.
    let plain = |size: &str, tier: &str| of(size, tier).replace(", cache = \"read-only\"", "");
    let fake = Fake::new();
    let (_, said, fine) = fake.run(&text(Kind::Az, &plain("4 TiB", "P50")), &VARIABLES);
    assert!(fine, "{said}");
    let script =
        changes(Kind::Az, &plain("4 TiB", "P50"), &plain("8 TiB", "P60"), &Options::default());
    let script = script.expect("a script").text;
    let (changed, said, fine) = fake.run(&script, &allowed);
    assert!(fine, "{said}");
    assert_eq!(changed.len(), 7, "{changed:?}");
    let of = |name: &str| changed.iter().filter(|line| line.contains(name)).count();
    assert_eq!((of("vm deallocate"), of("vm start"), of("disk update")), (1, 1, 5), "{changed:?}");
}

#[test]
fn mdadm_makes_stripes_once() {
    if !has("bash") {
        return;
    }
    let fake = Fake::new().with_disks();
    let script = text(Kind::Mdadm, MACHINE);
    check(
        &fake,
        &script,
        &[],
        &[
            "mkfs.xfs -q -L log /dev/disk/azure/scsi1/lun0",
            "mdadm --create /dev/md/pool --level=0 --raid-devices=4 --chunk=64 --metadata=1.2 --name=pool \
         /dev/disk/azure/scsi1/lun1 /dev/disk/azure/scsi1/lun2 /dev/disk/azure/scsi1/lun3 \
         /dev/disk/azure/scsi1/lun4",
            "mkfs.xfs -q -d su=64k,sw=4 -L pool /dev/md/pool",
            "update-initramfs -u",
        ],
    );
    let conf = fs::read_to_string(fake.0.path().join("mdadm.conf")).expect("the stripes");
    assert_eq!(conf, "ARRAY /dev/md/pool UUID=1\n");
    // An existing device of another form is left alone.
    for (from, to, words) in [
        ("count = 4", "count = 5", "does not have 5 columns; they cannot change in place"),
        ("64 KiB", "128 KiB", "does not have a unit of 128 KiB; it cannot change in place"),
    ] {
        let (changed, said, fine) = fake.run(&text(Kind::Mdadm, &MACHINE.replace(from, to)), &[]);
        assert!(!fine && changed.is_empty() && said.contains(words), "{said}");
    }
}

#[test]
fn lvm_makes_volumes_once() {
    if !has("bash") {
        return;
    }
    let disks = "/dev/disk/azure/scsi1/lun1 /dev/disk/azure/scsi1/lun2 /dev/disk/azure/scsi1/lun3 \
                 /dev/disk/azure/scsi1/lun4";
    let fake = Fake::new().with_disks();
    check(
        &fake,
        &text(Kind::Lvm, MACHINE),
        &[],
        &[
            "pvcreate /dev/disk/azure/scsi1/lun0",
            "vgcreate vg_log /dev/disk/azure/scsi1/lun0",
            "lvcreate --yes --wipesignatures n --extents 100%FREE --name lv_log vg_log",
            "mkfs.xfs -q -L log /dev/vg_log/lv_log",
            &format!("pvcreate {disks}"),
            &format!("vgcreate vg_pool {disks}"),
            "lvcreate --yes --wipesignatures n --stripes 4 --stripesize 64k --extents 100%FREE --name lv_pool \
         vg_pool",
            "mkfs.xfs -q -d su=64k,sw=4 -L pool /dev/vg_pool/lv_pool",
        ],
    );
    // An existing device of another form is left alone.
    for (from, to, words) in [
        ("count = 4", "count = 3", "it has 4 stripes of 64 KiB, the layout 3 of 64 KiB"),
        ("count = 4", "count = 5", "it has 4 stripes of 64 KiB, the layout 5 of 64 KiB"),
        ("64 KiB", "128 KiB", "it has 4 stripes of 64 KiB, the layout 4 of 128 KiB"),
    ] {
        let (changed, said, fine) = fake.run(&text(Kind::Lvm, &MACHINE.replace(from, to)), &[]);
        let words = format!("pool: NOT DONE: {words}; that is not changed in place");
        assert!(!fine && changed.is_empty() && said.contains(&words), "{said}");
    }
    let alone = "[[volume]]\nname = \"pool\"\ntier = \"P30\"\nlun = 1\n";
    let alone = format!("edition = \"azure-now\"\nhost = {{ size = \"D8s_v3\" }}\n{alone}");
    let (changed, said, fine) = fake.run(&text(Kind::Lvm, &alone), &[]);
    let words = "NOT DONE: it has 4 stripes of 64 KiB, the layout a single disk";
    assert!(!fine && changed.is_empty() && said.contains(words), "{said}");
}

/// Checks that a disk with data is never touched, and that the script then creates nothing.
#[test]
fn a_disk_that_is_not_empty_stops_the_script() {
    if !has("bash") {
        return;
    }
    for kind in [Kind::Mdadm, Kind::Lvm] {
        let fake = Fake::new().with_disks();
        fake.file("on/_dev_disk_azure_scsi1_lun3", "ext4\n");
        let (changed, said, fine) = fake.run(&text(kind, MACHINE), &[]);
        assert!(!fine && said.contains("lun3: is not empty and is left alone: ext4"), "{said}");
        assert!(changed.iter().all(|line| !line.contains("lun1")), "{changed:?}");
        let fake = Fake::new().with_disks();
        fake.file("disks/_dev_disk_azure_scsi1_lun2", "549755813888\n");
        let (_, said, fine) = fake.run(&text(kind, MACHINE), &[]);
        assert!(
            !fine && said.contains("has 549755813888 bytes, the layout 1099511627776"),
            "{said}"
        );
    }
}
