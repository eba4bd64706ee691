//! Layouts and options that cannot be exported, and their messages.

use crate::common::{INSTANCE, MACHINE, layout, mounts, pairs, script};
use weir_export::{Kind, Options, Source, export};

#[track_caller]
fn check(kind: Kind, text: &str, options: &Options, expect: &str) {
    match script(kind, text, options) {
        Ok(script) => panic!("{kind} made\n{}", script.text),
        Err(error) => assert!(error.to_string().contains(expect), "{kind}: {error}"),
    }
}

const BARE: &str =
    "[host]\nunlimited = true\n[[volume]]\nname = \"d\"\nunlimited = true\nsize = \"10 GiB\"\n";

#[test]
fn a_kind_without_anything_to_do_says_so() {
    let plain =
        |kind: Kind, text: &str, expect: &str| check(kind, text, &Options::default(), expect);
    plain(Kind::Tsql, BARE, "layout.toml: nothing to export as tsql: the layout has no [[file]]");
    let backup =
        format!("{BARE}[[file]]\nname = \"b\"\nrole = \"backup\"\nsize = \"1 GiB\"\non = \"d\"\n");
    plain(Kind::Tsql, &backup, "its files are backups");
    for kind in [Kind::Az, Kind::Bicep, Kind::Terraform, Kind::Powershell] {
        plain(kind, BARE, "the layout has no edition; add edition");
    }
    let single = MACHINE.split("[[stripe]]").next().expect("the first part").to_owned();
    plain(Kind::Mdadm, &single, "it has no [[stripe]] of remote volumes");
    plain(Kind::StorageSpaces, &single, "it has no [[stripe]] of remote volumes");
    for kind in [Kind::Mdadm, Kind::Lvm, Kind::StorageSpaces, Kind::Fstab] {
        plain(kind, INSTANCE, "nothing to export as");
    }
}

#[test]
fn an_edition_of_others_is_none_of_azure() {
    let mut catalog = weir_catalog::Catalog::builtin();
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../catalog/example.toml"));
    let text = text.expect("the example");
    catalog
        .add(weir_catalog::Edition::from_toml("example.toml", &text).expect("an edition"))
        .expect("new");
    let text = "edition = \"my-cloud\"\nhost = { size = \"m8\" }\n[[volume]]\nname = \"d\"\ntier = \"F1\"\n";
    let own = weir_layout::Layout::parse("l.toml", text, &catalog).expect("a layout");
    let made =
        export(Kind::Bicep, Source { name: "l.toml", layout: &own }, None, &Options::default());
    let error = made.expect_err("no script").to_string();
    assert!(error.contains("bicep scripts are for Azure, not for the edition my-cloud"), "{error}");
    let options =
        Options { device_pattern: Some("/dev/disk/by-id/{name}".into()), ..Options::default() };
    let made = export(Kind::Lvm, Source { name: "l.toml", layout: &own }, None, &options);
    assert!(made.is_ok(), "{made:?}");
}

#[test]
fn missing_properties_of_a_layout_are_requested() {
    let none = Options::default();
    check(Kind::Tsql, MACHINE, &none, "is unknown, so its files have no path; give it with");
    check(Kind::Lvm, BARE, &none, "the device of d is unknown");
    let two = "[[host]]\nname = \"a\"\nunlimited = true\n[[host]]\nname = \"b\"\nunlimited = \
               true\n[[volume]]\nname = \"d\"\nhost = \"a\"\nunlimited = true\n";
    check(
        Kind::Fstab,
        two,
        &none,
        "--host: layout.toml has several hosts, but a script is for one; choose it with --host: a, b",
    );
    let c = Options { host: Some("c".into()), ..Options::default() };
    check(Kind::Fstab, two, &c, "--host c: layout.toml has no such host; there are: a, b");
}

#[test]
fn an_option_that_does_nothing_is_refused() {
    let own = |value: &str| Some(value.to_owned());
    let none = Options::default;
    check(
        Kind::Mdadm,
        MACHINE,
        &Options { database: own("x"), ..none() },
        "--database x: mdadm scripts do not use it; leave it out, or use --as tsql",
    );
    check(
        Kind::Tsql,
        MACHINE,
        &Options { database: own("x"), ..mounts() },
        "has its database; leave it out",
    );
    let names = Options { names: pairs(&[("dat", "x")]), ..none() };
    check(
        Kind::Az,
        MACHINE,
        &names,
        "--name dat=x: layout.toml has no \"dat\" that az speaks of; there are: log",
    );
    let twice = Options { names: pairs(&[("log", "x"), ("log", "y")]), ..none() };
    check(Kind::Az, MACHINE, &twice, "--name log=y: log is given twice");
    let mut all = mounts();
    all.mounts.push(("pol".into(), "/x".into()));
    check(Kind::Tsql, MACHINE, &all, "--mount pol=/x: layout.toml has no \"pol\"");
    let pattern = Options { device_pattern: own("/dev/sdc"), ..none() };
    check(Kind::Lvm, MACHINE, &pattern, "this path would be the device of every disk");
    check(
        Kind::Az,
        INSTANCE,
        &Options { zone: own("1"), ..none() },
        "the zone of an instance cannot be chosen",
    );
    check(
        Kind::Bicep,
        MACHINE,
        &Options { resource_group: own("g"), ..none() },
        "az deployment group create",
    );
    let line = Options { machine: own("a\nb"), ..none() };
    check(Kind::Az, MACHINE, &line, "--machine \"a\\nb\": it contains a line break");
}

#[test]
fn a_name_that_the_target_cannot_have_is_refused() {
    let named = |kind: Kind, own: &str, name: &str, expect: &str| {
        let options = Options { names: pairs(&[(own, name)]), ..Options::default() };
        check(kind, MACHINE, &options, expect);
    };
    for name in ["it's", "a b", "$(id)", "`id`", "a]b", "-a", "a-", "", &"x".repeat(81)] {
        for kind in [Kind::Az, Kind::Bicep, Kind::Terraform, Kind::Powershell] {
            let expect = if name.is_empty() {
                "it is empty"
            } else {
                "is not a valid name: 1 to 80 letters"
            };
            named(kind, "log", name, expect);
        }
    }
    named(Kind::Az, "log", "POOL-0", "\"log\" and \"pool-0\" would both be called \"pool-0\"");
    named(Kind::Mdadm, "log", "pool", "\"log\" and \"pool\" would both be called \"pool\"");
    named(Kind::StorageSpaces, "log", "Pool", "would both be called \"pool\"");
    let both = Options { names: pairs(&[("data-1", "DATA-2")]), ..mounts() };
    check(Kind::Tsql, MACHINE, &both, "\"data-1\" and \"data-2\" would both be called \"data-2\"");
    for name in ["it's", "a b", "$(id)", "127", ".x", &"x".repeat(33)] {
        named(Kind::Mdadm, "pool", name, "is not a valid name: 1 to 32 letters");
    }
    for name in ["a b", "$(id)", "x_tdata", &"x".repeat(57)] {
        named(Kind::Lvm, "pool", name, "is not a valid name: 1 to 56 letters");
    }
    named(Kind::Fstab, "pool", "more-than-a-label", "the label of an XFS has at most 12");
    named(Kind::StorageSpaces, "pool", "a:b", "is not a valid name: 1 to 32 characters");
    let upper = Options { machine: Some("Sales".into()), ..Options::default() };
    check(Kind::Az, INSTANCE, &upper, "1 to 63 lower-case letters");
    let database = INSTANCE.replace("role = \"log\"", "database = \"a\\nb\", role = \"log\"");
    check(Kind::Tsql, &database, &Options::default(), "its database \"a\\nb\" is not a valid name");
}

#[test]
fn layouts_that_a_tool_cannot_build_are_refused() {
    let none = Options::default();
    let unit = |unit: &str| MACHINE.replace("64 KiB", unit);
    check(Kind::Mdadm, &unit("6 KiB"), &none, "a multiple of 4 KiB, not 6 KiB");
    check(Kind::Lvm, &unit("96 KiB"), &none, "a power of two from 4 KiB to 4 MiB, not 96 KiB");
    check(Kind::StorageSpaces, &unit("8 KiB"), &none, "a power of two from 16 KiB up, not 8 KiB");
    let own = MACHINE.replace("tier = \"P20\"", "limits = { iops = 5 }");
    check(Kind::Az, &own, &none, "its limits are stated in the layout");
    let odd = INSTANCE.replace("150 GiB", "153600000512 B");
    check(Kind::Tsql, &odd, &none, "is not a whole number of KB; use sizes");
    let other = layout(INSTANCE);
    let new = layout(MACHINE);
    let old = Source { name: "old.toml", layout: &other };
    let made = export(Kind::Az, Source { name: "new.toml", layout: &new }, Some(old), &none);
    let error = made.expect_err("no script").to_string();
    assert!(error.contains("can become the other in place"), "{error}");
}

#[test]
fn a_place_that_holds_something_else_is_refused() {
    let none = Options::default;
    let mount = |kind: Kind, path: &str, expect: &str| {
        let options = Options { mounts: pairs(&[("pool", path)]), ..none() };
        check(kind, MACHINE, &options, &format!("--mount pool={path}: {expect}"));
    };
    for kind in [Kind::Tsql, Kind::Fstab] {
        for root in ["/", "//", "/./"] {
            mount(kind, root, "this is the root, which contains the system; give a folder");
        }
        for up in ["/mnt/../etc", "/..", "/mnt/x/..", r"F:\Data\.."] {
            mount(kind, up, "a mount point cannot contain ..; write the resulting path");
        }
    }
    let system = "this is a folder of the system, which a mount would hide; give another one";
    for kind in [Kind::Tsql, Kind::Fstab] {
        for path in
            ["/etc", "/usr", "/bin", "/boot", "/dev", "/proc", "/sys", "/run", "/lib", "/sbin"]
        {
            mount(kind, path, system);
            mount(kind, &format!("/.{path}/"), system);
            mount(kind, &format!("{path}/data"), system);
        }
        mount(kind, "/usr/local", system);
    }
    for path in
        ["/usr/local/data", "/run/media/data", "/etcetera", "/srv/etc", "/var/opt/mssql/data"]
    {
        let fine = Options { mounts: pairs(&[("pool", path)]), ..none() };
        assert!(script(Kind::Fstab, MACHINE, &fine).is_ok(), "{path}");
    }
    let windows = "C: is the drive of Windows; give another letter, like F:";
    for path in ["C:", "c:", "C:\\", "C:/"] {
        mount(Kind::StorageSpaces, path, windows);
        mount(Kind::Tsql, path, windows);
    }
    mount(Kind::StorageSpaces, r"C:\Data", windows);
    let mut folder = mounts();
    folder.mounts[0].1 = r"C:\Data".to_owned();
    assert!(script(Kind::Tsql, MACHINE, &folder).is_ok());
    let fine = Options { mounts: pairs(&[("pool", "/mnt/..data/x.")]), ..none() };
    assert!(script(Kind::Fstab, MACHINE, &fine).is_ok());
    for kind in [Kind::Mdadm, Kind::Lvm] {
        let twice = pairs(&[("pool-0", "/dev/sdc"), ("pool-1", "/dev/sdc")]);
        check(
            kind,
            MACHINE,
            &Options { devices: twice, ..none() },
            "--device pool-1=/dev/sdc: it is the device of pool-0 already; each volume has one of its own",
        );
        // A device found by LUN cannot be given to another volume.
        let taken = pairs(&[("pool-0", "/dev/disk/azure/scsi1/lun0")]);
        check(
            kind,
            MACHINE,
            &Options { devices: taken, ..none() },
            "--device pool-0=/dev/disk/azure/scsi1/lun0: it is the device of log already",
        );
    }
}

/// Checks that disks beyond Azure's LUNs 0 to 63 are rejected.
#[test]
fn a_disk_without_a_number_that_azure_has_is_refused() {
    let many = |count: u32| {
        format!(
            "edition = \"azure-now\"\n[[stripe]]\nname = \"pool\"\nunit = \"64 KiB\"\nvolumes = {{ count = \
             {count}, tier = \"P30\" }}\n"
        )
    };
    let kinds = [
        Kind::Az,
        Kind::Bicep,
        Kind::Terraform,
        Kind::Powershell,
        Kind::Mdadm,
        Kind::Lvm,
        Kind::StorageSpaces,
    ];
    for kind in kinds {
        let expect = format!(
            "layout.toml: volume \"pool-64\" cannot be exported as {kind}: it would be disk 64 of 70, but \
             LUNs of an Azure machine go from 0 to 63; use fewer disks"
        );
        check(kind, &many(70), &Options::default(), &expect);
        assert!(script(kind, &many(64), &Options::default()).is_ok(), "{kind}");
    }
}

#[test]
fn a_database_of_the_server_itself_is_refused() {
    for name in ["master", "model", "msdb", "tempdb", "Master"] {
        let options = Options { database: Some(name.to_owned()), ..Options::default() };
        let expect =
            format!("--database {name}: this is a system database of SQL Server; give another one");
        check(Kind::Tsql, INSTANCE, &options, &expect);
    }
    let options = Options { database: Some("masters".into()), ..Options::default() };
    assert!(script(Kind::Tsql, INSTANCE, &options).is_ok());
}

#[test]
fn a_name_of_a_machine_that_is_too_long_is_refused() {
    let named = |count: usize| Options { machine: Some("m".repeat(count)), ..Options::default() };
    for kind in [Kind::Az, Kind::Bicep, Kind::Terraform, Kind::Powershell] {
        check(
            kind,
            MACHINE,
            &named(65),
            "it has 65 characters, above Azure's maximum of 64 for a machine",
        );
        assert!(script(kind, MACHINE, &named(64)).is_ok());
    }
}

/// Checks that impossible zones and locations are rejected; Azure also writes locations with
/// spaces.
#[test]
fn a_place_that_no_cloud_has_is_refused() {
    let zone = |zone: &str| Options { zone: Some(zone.to_owned()), ..Options::default() };
    let location = |place: &str| Options { location: Some(place.to_owned()), ..Options::default() };
    let long = "x".repeat(65);
    let too_long = format!(
        "{long}: it has 65 characters, more than the 64 of any cloud's location \
                            or zone"
    );
    for kind in [Kind::Az, Kind::Bicep, Kind::Terraform, Kind::Powershell] {
        check(kind, MACHINE, &zone(""), "--zone: it is empty; give it a value");
        check(kind, MACHINE, &location(""), "--location: it is empty; give it a value");
        check(kind, MACHINE, &zone("1 2"), "--zone 1 2: it contains a space, which no zone does");
        check(kind, MACHINE, &zone("1\u{a0}2"), "it contains a space, which no zone does");
        for blank in [" ", " 1", "1 "] {
            let words = format!("--zone {blank}: it starts or ends with a space; remove the space");
            check(kind, MACHINE, &zone(blank), &words);
            let words = format!("--location {blank}: it starts or ends with a space");
            check(kind, MACHINE, &location(blank), &words);
        }
        let words = "it contains a line break or another control character, which a script cannot \
                     contain";
        check(kind, MACHINE, &zone("1\n2"), words);
        check(kind, MACHINE, &location("West\tEurope"), words);
        check(kind, MACHINE, &zone(&long), &format!("--zone {too_long}"));
        check(kind, MACHINE, &location(&long), &format!("--location {too_long}"));
        for fine in [zone("1"), zone(&long[1..]), location("West Europe"), location(&long[1..])] {
            assert!(script(kind, MACHINE, &fine).is_ok(), "{kind}: {fine:?}");
        }
    }
}

/// Returns a layout of AWS or of Google Cloud.
fn disk_of(edition: &str, keys: &str) -> String {
    format!("edition = {edition:?}\n[[volume]]\nname = \"d\"\n{keys}\n")
}

#[test]
fn properties_that_other_clouds_lack_are_refused() {
    let none = Options::default;
    let own = |value: &str| Some(value.to_owned());
    let aws = disk_of("aws", "family = \"gp3\"\nsize = \"100 GiB\"");
    let google = disk_of("gcp", "family = \"pd-ssd\"\nsize = \"100 GiB\"");
    for kind in [Kind::Az, Kind::Bicep, Kind::Powershell] {
        for (edition, text) in [("aws", &aws), ("gcp", &google)] {
            let expect = format!("not for the edition {edition}; --as terraform creates its disks");
            check(kind, text, &none(), &expect);
        }
    }
    let refused =
        |text: &str, options: Options, expect: &str| check(Kind::Terraform, text, &options, expect);
    for text in [&aws, &google] {
        let group = Options { resource_group: own("g"), ..none() };
        refused(text, group, "--resource-group g: only Azure has resource groups; leave it out");
    }
    let place = Options { location: own("eu-west-1"), ..none() };
    refused(&aws, place, "--location eu-west-1: the region is the provider's");
    let zone = Options { zone: own("eu-west-1a"), ..none() };
    refused(&aws, zone, "--zone eu-west-1a: volumes are created in the zone of the instance");
    refused(&google, Options { location: own("x"), ..none() }, "--location x: the zone determines");
    for id in ["db1", "i-", "i-xyz"] {
        let machine = Options { machine: own(id), ..none() };
        refused(&aws, machine, "an AWS instance needs its id: i- and hexadecimal digits");
    }
    let machine = Options { machine: own("DB1"), ..none() };
    refused(&google, machine, "--machine DB1: the name of an instance of Google Cloud has 1 to 63");
    for name in ["Upper", "a_b", "a.b", "1a", "a-", &"x".repeat(64)] {
        let named = Options { names: pairs(&[("d", name)]), ..none() };
        refused(&google, named, "is not a valid name: 1 to 63 lower-case letters");
    }
    for name in ["it's", "aws:x", "$(id)", &"x".repeat(256)] {
        let named = Options { names: pairs(&[("d", name)]), ..none() };
        refused(&aws, named, "is not a valid name: 1 to 255 letters");
    }
    for edition in ["aws", "gcp"] {
        let free = disk_of(edition, "unlimited = true\nsize = \"10 GiB\"");
        refused(&free, none(), "its limits are stated in the layout");
        let local = disk_of(edition, "place = \"local\"\nsize = \"10 GiB\"\nunlimited = true");
        refused(&local, none(), "nothing to export as terraform: the layout has no remote volume");
    }
    let cached = format!(
        "edition = \"aws\"\n[host]\nunlimited = true\ncache = {{ size = \"10 GiB\" }}\n{}",
        aws.lines().skip(1).collect::<Vec<_>>().join("\n")
    );
    refused(&(cached + "\ncache = \"read-only\"\n"), none(), "machines of AWS have no host cache");
    let many = aws
        .replace("name = \"d\"\n", "")
        .replace("[[volume]]\n", "")
        .replace('\n', ", ")
        .trim_end_matches(", ")
        .replacen("edition = \"aws\", ", "", 1);
    let many = format!(
        "edition = \"aws\"\n[[stripe]]\nname = \"s\"\nunit = \"64 KiB\"\nvolumes = {{ count = 70, {many} \
         }}\n"
    );
    refused(&many, none(), "AWS has no device name for disk 69; they end at /dev/xvdcx");
}
