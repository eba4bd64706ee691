//! Single lines of each kind.

use crate::common::{INSTANCE, MACHINE, mounts, pairs, script};
use weir_export::{Filesystem, Kind, Options};

/// Checks that a script of `text` contains a line, at any indentation.
#[track_caller]
fn check(kind: Kind, text: &str, options: &Options, expect: &str) {
    let script = script(kind, text, options).expect("a script").text;
    let found = script.lines().any(|line| line.trim() == expect);
    assert!(found, "{kind} has no line\n{expect}\nin\n{script}");
}

/// Checks a line without options.
#[track_caller]
fn plain(kind: Kind, text: &str, expect: &str) {
    check(kind, text, &Options::default(), expect);
}

const V2: &str = "edition = \"azure-now\"\nhost = { size = \"D8s_v3\" }\n[[volume]]\nname = \"v2\"\nfamily = \
                  \"premium-ssd-v2\"\nsize = \"100 GiB\"\niops = 20000\nthroughput = \"600 MB/s\"\n";

fn disk(keys: &str) -> String {
    format!(
        "edition = \"azure-now\"\nhost = {{ size = \"D8s_v3\" }}\n[[volume]]\nname = \"d\"\n{keys}\n"
    )
}

#[test]
fn tsql_says_sizes_names_and_places() {
    let windows = mounts();
    let machine = |expect: &str| check(Kind::Tsql, MACHINE, &windows, expect);
    machine("ALTER DATABASE [sales] MODIFY FILE (NAME = N'data-1', SIZE = 500GB);");
    machine("ALTER DATABASE [sales] MODIFY FILE (NAME = N'data-1', MAXSIZE = 1024GB);");
    machine("ALTER DATABASE [sales] MODIFY FILE (NAME = N'data-1', FILEGROWTH = 10GB);");
    machine(
        "ALTER DATABASE [sales] ADD FILE (NAME = N'data-2', FILENAME = N'F:\\Data\\data-2.ndf', SIZE = 500GB, \
         FILEGROWTH = 10GB)",
    );
    machine("ALTER DATABASE [sales] MODIFY FILE (NAME = N'sales-log', SIZE = 100GB);");
    machine(
        "ALTER DATABASE [tempdb] MODIFY FILE (NAME = N'tempdev', FILENAME = N'D:\\tempdev.ndf');",
    );
    plain(Kind::Tsql, INSTANCE, "ALTER DATABASE CURRENT ADD FILE (NAME = N'data-2', SIZE = 129GB)");
    let odd = INSTANCE.replace("150 GiB", "150.5 GiB");
    plain(Kind::Tsql, &odd, "ALTER DATABASE CURRENT MODIFY FILE (NAME = N'log', SIZE = 154112MB);");
    let named = Options { database: Some("it's [x]".into()), ..Options::default() };
    check(
        Kind::Tsql,
        INSTANCE,
        &named,
        "ALTER DATABASE [it's [x]]] MODIFY FILE (NAME = N'data', SIZE = 129GB);",
    );
    check(Kind::Tsql, INSTANCE, &named, "IF DB_ID(N'it''s [x]') IS NULL");
    let linux = pairs(&[("pool", "/var/opt/mssql/data/"), ("log", "/log"), ("scratch", "/tmp")]);
    let linux =
        Options { mounts: linux, names: pairs(&[("data-2", "it's")]), ..Options::default() };
    check(
        Kind::Tsql,
        MACHINE,
        &linux,
        "ALTER DATABASE [sales] ADD FILE (NAME = N'it''s', FILENAME = N'/var/opt/mssql/data/data-2.ndf', SIZE \
         = 500GB, FILEGROWTH = 10GB)",
    );
}

/// Checks that existing files grow before others are added, and that the log is last.
#[test]
fn tsql_grows_before_it_adds() {
    let text = script(Kind::Tsql, MACHINE, &mounts()).expect("a script").text;
    let order = [
        "THROW 50000",
        "MODIFY FILE (NAME = N'data-1', SIZE",
        "MODIFY FILE (NAME = N'data-2', SIZE",
        "ADD FILE (NAME = N'data-1'",
        "ADD FILE (NAME = N'data-2'",
        "MODIFY FILE (NAME = N'sales-log', SIZE",
        "REBUILD",
    ];
    let places = order.map(|words: &str| text.find(words).unwrap_or_else(|| panic!("no {words}")));
    assert!(places.is_sorted(), "{places:?}");
    assert!(text.rfind("THROW").expect("a check") < places[1], "a check comes after a change");
}

#[test]
fn the_azure_cli_says_disks_and_instances() {
    plain(Kind::Az, MACHINE, "disk pool-3 1024 --sku Premium_LRS");
    plain(Kind::Az, MACHINE, "attach pool-3 4 ReadOnly");
    plain(Kind::Az, MACHINE, "attach log 0 None");
    plain(
        Kind::Az,
        V2,
        "disk v2 100 --sku PremiumV2_LRS --disk-iops-read-write 20000 --disk-mbps-read-write 600",
    );
    plain(Kind::Az, V2, "ZONE=${ZONE:?set ZONE to the zone of the machine and its disks}");
    plain(Kind::Az, &disk("size = \"540 GiB\""), "disk d 540 --sku Premium_LRS");
    plain(
        Kind::Az,
        &disk("tier = \"P20\"\nperformance_tier = \"P40\""),
        "disk d 512 --sku Premium_LRS --tier P40",
    );
    plain(
        Kind::Az,
        &disk("tier = \"P30\"\non_demand_burst = true"),
        "disk d 1024 --sku Premium_LRS --enable-bursting true",
    );
    plain(
        Kind::Az,
        &disk("tier = \"P40\"\nperformance_plus = true"),
        "disk d 2048 --sku Premium_LRS --performance-plus true",
    );
    let old = MACHINE.replace("azure-now", "azure-premium-2015").replace("D16s_v3", "DS14");
    plain(Kind::Az, &old, "--size Standard_DS14 --image \"$IMAGE\" \\");
    plain(
        Kind::Az,
        INSTANCE,
        "--edition GeneralPurpose --capacity 8 --storage 8192 --license-type LicenseIncluded --family \
         \"$FAMILY\" \\",
    );
    let next = INSTANCE.replace("2018", "now").replace("\"gp\"", "\"next-gen-gp\"");
    let bought = next.replace("8 TiB", "1 TiB").replace("TiB\" }", "TiB\", iops = 6000 }");
    plain(
        Kind::Az,
        &bought,
        "--edition GeneralPurpose --capacity 8 --storage 1024 --license-type LicenseIncluded --gpv2 true --iops \
         6000 --family \"$FAMILY\" \\",
    );
    let critical =
        INSTANCE.replace("2018", "now").replace("\"gp\"", "\"bc\"").replace("8 TiB", "1 TiB");
    plain(
        Kind::Az,
        &critical,
        "--edition BusinessCritical --capacity 8 --storage 1024 --license-type LicenseIncluded --family \
         \"$FAMILY\" \\",
    );
    let given = Options { resource_group: Some("it's $x".into()), ..Options::default() };
    check(Kind::Az, MACHINE, &given, r"RESOURCE_GROUP='it'\''s $x'");
}

#[test]
fn modules_say_the_same() {
    plain(Kind::Bicep, V2, "diskIOPSReadWrite: 20000");
    plain(Kind::Bicep, V2, "diskMBpsReadWrite: 600");
    plain(Kind::Bicep, MACHINE, "caching: 'ReadOnly'");
    plain(Kind::Bicep, INSTANCE, "vCores: 8");
    plain(Kind::Terraform, V2, "iops     = 20000");
    plain(Kind::Terraform, V2, "mbps     = 600");
    plain(Kind::Terraform, MACHINE, "\"pool-3\" = {");
    plain(Kind::Terraform, INSTANCE, "storage_size_in_gb           = 8192");
    plain(
        Kind::Powershell,
        V2,
        "Add-LayoutDisk -Name 'v2' -SizeGB 100 -Lun 0 -Caching 'None' -Config @{ SkuName = 'PremiumV2_LRS'; \
         DiskIOPSReadWrite = 20000; DiskMBpsReadWrite = 600 }",
    );
    plain(
        Kind::Powershell,
        INSTANCE,
        "-Edition GeneralPurpose -VCore 8 -StorageSizeInGB 8192 -LicenseType LicenseIncluded -ComputeGeneration \
         $ComputeGeneration `",
    );
}

#[test]
fn stripes_have_a_column_for_each_disk_and_the_unit() {
    plain(
        Kind::Mdadm,
        MACHINE,
        "mdadm --create /dev/md/pool --level=0 --raid-devices=4 --chunk=64 --metadata=1.2 \\",
    );
    plain(Kind::Mdadm, MACHINE, "mkfs.xfs -q -d su=64k,sw=4 -L pool /dev/md/pool");
    plain(Kind::Mdadm, MACHINE, "check /dev/disk/azure/scsi1/lun4 1099511627776");
    let ext4 = Options { filesystem: Some(Filesystem::Ext4), ..Options::default() };
    let wide = MACHINE.replace("64 KiB", "256 KiB");
    let lines = "mkfs.ext4 -q -b 4096 -E stride=64,stripe-width=256 -L pool /dev/md/pool";
    check(Kind::Mdadm, &wide, &ext4, lines);
    plain(
        Kind::Lvm,
        MACHINE,
        "lvcreate --yes --wipesignatures n --stripes 4 --stripesize 64k --extents 100%FREE --name lv_pool \
         vg_pool",
    );
    plain(
        Kind::Lvm,
        MACHINE,
        "lvcreate --yes --wipesignatures n --extents 100%FREE --name lv_log vg_log",
    );
    plain(
        Kind::StorageSpaces,
        MACHINE,
        "-ProvisioningType Fixed -NumberOfColumns 4 -Interleave 65536 -UseMaximumSize",
    );
    let letter = Options { mounts: pairs(&[("pool", r"f:\Data")]), ..Options::default() };
    check(
        Kind::StorageSpaces,
        MACHINE,
        &letter,
        "New-LayoutVolume -Disk ($virtual | Get-Disk) -Label 'pool' -DriveLetter 'F'",
    );
    let by_name = Options {
        device_pattern: Some("/dev/disk/by-id/x-{name}".into()),
        devices: pairs(&[("pool-0", "/dev/nvme1n1")]),
        ..Options::default()
    };
    check(Kind::Lvm, MACHINE, &by_name, "check /dev/nvme1n1 1099511627776");
    check(Kind::Lvm, MACHINE, &by_name, "check /dev/disk/by-id/x-pool-1 1099511627776");
}

#[test]
fn mounts_are_lines_of_six_fields() {
    plain(Kind::Fstab, MACHINE, "LABEL=pool /mnt/pool xfs defaults,noatime,nofail 0 0");
    let own = Options {
        mounts: pairs(&[("pool", "/srv/my data")]),
        filesystem: Some(Filesystem::Ext4),
        ..Options::default()
    };
    check(
        Kind::Fstab,
        MACHINE,
        &own,
        r"LABEL=pool /srv/my\040data ext4 defaults,noatime,nofail 0 2",
    );
}

/// Checks that rounding to Azure's units is reported.
#[test]
fn rounding_is_reported() {
    let text = V2.replace("600 MB/s", "600 MiB/s");
    let export = script(Kind::Az, &text, &Options::default()).expect("a script");
    assert!(export.text.contains("--disk-mbps-read-write 630"), "{}", export.text);
    assert_eq!(
        export.notes,
        ["v2: 629145600 B/s is rounded to 630 MB/s, because Azure sells whole MB/s"]
    );
}

/// Returns a disk of AWS or Google Cloud.
fn disk_of(edition: &str, keys: &str) -> String {
    format!("edition = {edition:?}\n[[volume]]\nname = \"d\"\n{keys}\n")
}

#[test]
fn modules_of_other_clouds_say_types_sizes_and_rates() {
    let has = |edition: &str, keys: &str, rows: &[&str]| {
        let export = script(Kind::Terraform, &disk_of(edition, keys), &Options::default())
            .expect("a script");
        let rows = rows.join("\n      ");
        assert!(export.text.contains(&rows), "no\n{rows}\nin\n{}", export.text);
        export.notes
    };
    let none: [String; 0] = [];
    let gp3 =
        "family = \"gp3\"\nsize = \"1 TiB\"\niops = 4000\nthroughput = \"200 MiB/s\"\nlun = 2";
    let rows = [
        "type   = \"gp3\"",
        "gib    = 1024",
        "iops   = 4000",
        "mibps  = 200",
        "device = \"/dev/sdh\"",
    ];
    assert_eq!(has("aws", gp3, &rows), none);
    let io2 = "family = \"io2\"\nsize = \"101 GiB\"\niops = 5000\nlun = 21";
    let rows = [
        "type   = \"io2\"",
        "gib    = 101",
        "iops   = 5000",
        "mibps  = null",
        "device = \"/dev/xvdba\"",
    ];
    assert_eq!(has("aws", io2, &rows), none);
    let pd = ["type  = \"pd-ssd\"", "gib   = 200", "iops  = null", "mibps = null"];
    assert_eq!(has("gcp", "family = \"pd-ssd\"\nsize = \"200 GiB\"", &pd), none);
    let balanced = "family = \"hyperdisk-balanced\"\nsize = \"100 GiB\"\niops = 5000\nthroughput = \"300 MiB/s\"";
    let rows = ["type  = \"hyperdisk-balanced\"", "gib   = 100", "iops  = 5000", "mibps = 300"];
    assert_eq!(has("gcp", balanced, &rows), none);
    let extreme = "family = \"hyperdisk-extreme\"\nsize = \"100 GiB\"\niops = 5000";
    let rows = ["type  = \"hyperdisk-extreme\"", "gib   = 100", "iops  = 5000", "mibps = null"];
    assert_eq!(has("gcp", extreme, &rows), none);
}

/// Checks the notes about mixing modules, and the providers' versions.
#[test]
fn modules_of_other_clouds_say_what_they_need() {
    let has = |edition: &str, keys: &str, words: &[&str]| {
        let export = script(Kind::Terraform, &disk_of(edition, keys), &Options::default());
        let text = export.expect("a script").text.replace("\n# ", " ");
        for words in words {
            assert!(text.contains(words), "no {words} in\n{text}");
        }
    };
    let aws = [
        "the provider aws 5 with a region",
        "If that is an aws_instance, it must have no ebs_block_device: with such blocks the \
         provider manages all volumes of the instance",
        "version = \">= 5.0\"",
    ];
    has("aws", "family = \"gp3\"\nsize = \"100 GiB\"", &aws);
    let google = [
        "the provider google 6 with a project",
        "it needs ignore_changes = [attached_disk]",
        "version = \">= 6.0\"",
    ];
    has("gcp", "family = \"pd-ssd\"\nsize = \"100 GiB\"", &google);
}

/// Checks that a disk is rejected if the provider would recreate it for other IOPS; a custom
/// edition may have it.
#[test]
fn a_disk_that_the_provider_would_make_anew_is_refused() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../catalog/gcp.toml");
    let text = std::fs::read_to_string(path).expect("the edition of Google Cloud");
    let own = text
        .replacen("\"gcp\"", "\"gcp-own\"", 1)
        .replace("hyperdisk-extreme", "pd-extreme")
        .replace("pd-extreme is left out: ", "");
    let mut catalog = weir_catalog::Catalog::builtin();
    let edition = weir_catalog::Edition::from_toml("own.toml", &own).expect("an edition");
    catalog.add(edition).expect("new");
    let keys = "family = \"pd-extreme\"\nsize = \"100 GiB\"\niops = 5000";
    let layout = weir_layout::Layout::parse("l.toml", &disk_of("gcp-own", keys), &catalog);
    let layout = layout.expect("a layout");
    let source = weir_export::Source { name: "l.toml", layout: &layout };
    let made = weir_export::export(Kind::Terraform, source, None, &Options::default());
    let error = made.expect_err("no script").to_string();
    assert!(
        error.contains("Google Cloud has no disks of the family pd-extreme; use one of pd-ssd"),
        "{error}"
    );
}

/// Checks that sizes of a custom edition that AWS does not sell are reported.
#[test]
fn fractions_that_aws_does_not_support_are_reported() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../catalog/aws.toml");
    let text = std::fs::read_to_string(path).expect("the edition of AWS");
    let own = text.lines().filter(|line| !line.starts_with("throughput_step"));
    let own = own.collect::<Vec<_>>().join("\n").replacen("\"aws\"", "\"aws-own\"", 1);
    let mut catalog = weir_catalog::Catalog::builtin();
    let edition = weir_catalog::Edition::from_toml("own.toml", &own).expect("an edition");
    catalog.add(edition).expect("new");
    let keys = "family = \"gp3\"\nsize = \"1 TiB\"\niops = 4000\nthroughput = \"200 MB/s\"";
    let layout = weir_layout::Layout::parse("l.toml", &disk_of("aws-own", keys), &catalog);
    let layout = layout.expect("a layout");
    let source = weir_export::Source { name: "l.toml", layout: &layout };
    let made =
        weir_export::export(Kind::Terraform, source, None, &Options::default()).expect("a script");
    assert!(made.text.contains("mibps  = 191"), "{}", made.text);
    assert_eq!(
        made.notes,
        ["d: 200000000 B/s is rounded to 191 MiB/s, because AWS sells whole MiB/s"]
    );
}

/// Checks that a machine name of the documentation, which is no machine type, is not written.
#[test]
fn an_unknown_machine_type_is_not_exported() {
    let of = |size: &str| {
        let text = format!(
            "edition = \"gcp\"\nhost = {{ size = {size:?} }}\n[[volume]]\nname = \"d\"\nfamily = \
             \"pd-ssd\"\nsize = \"100 GiB\"\n"
        );
        script(Kind::Terraform, &text, &Options::default()).expect("a script").text
    };
    let text = of("n2-standard-8");
    assert!(text.contains("output \"machine_size\" {\n  value = \"n2-standard-8\"\n}"), "{text}");
    let text = of("n2-8vcpu");
    assert!(!text.contains("output") && !text.contains("\"n2-8vcpu\""), "{text}");
    let words = text.replace("\n# ", " ");
    let expect =
        "n2-8vcpu is not a machine type: any of n2 with 8 vCPUs, or with more vCPUs, up to";
    assert!(words.contains(expect), "{text}");
}
