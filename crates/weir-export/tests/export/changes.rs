//! Scripts of changes, which never lose data.

use crate::common::{INSTANCE, MACHINE, changes, mounts, script};
use weir_export::{Export, Kind, Options};

#[track_caller]
fn made(kind: Kind, old: &str, new: &str) -> Export {
    let options = if kind == Kind::Tsql { mounts() } else { Options::default() };
    changes(kind, old, new, &options).expect("a script")
}

/// Returns the lines of a script that change something.
fn acts(export: &Export, sign: &str) -> Vec<String> {
    let words = [
        "ALTER DATABASE",
        "grow ",
        "change ",
        "cache ",
        "az vm resize",
        "disk ",
        "attach ",
        "mdadm --create",
        "lvcreate",
        "lvextend",
        "pvresize",
        "xfs_growfs",
        "LABEL=",
        "az sql mi update",
    ];
    let lines = export.text.lines().map(str::trim).filter(|line| !line.starts_with(sign));
    lines
        .filter(|line| words.iter().any(|word| line.starts_with(word)))
        .map(str::to_owned)
        .collect()
}

#[track_caller]
fn check(kind: Kind, old: &str, new: &str, expect: &[&str], notes: &[&str]) {
    let export = made(kind, old, new);
    let sign = if kind == Kind::Tsql { "--" } else { "#" };
    assert_eq!(acts(&export, sign), expect, "{}", export.text);
    assert_eq!(export.notes.len(), notes.len(), "{:#?}", export.notes);
    for (note, expect) in export.notes.iter().zip(notes) {
        assert!(note.contains(expect), "{note}");
    }
}

#[test]
fn nothing_to_do_is_said() {
    for kind in Kind::ALL.into_iter().filter(|kind| !is_module(*kind) && !kind.is_backup()) {
        let export = made(kind, MACHINE, MACHINE);
        let note = format!("nothing to do: layout.toml and old.toml are the same for {kind}");
        assert_eq!(export.notes, [note]);
        let sign = if kind == Kind::Tsql { "--" } else { "#" };
        assert!(
            export.text.lines().all(|line: &str| line.is_empty() || line.starts_with(sign)),
            "{}",
            export.text
        );
    }
    let same = made(Kind::Az, INSTANCE, INSTANCE);
    assert_eq!(same.notes.len(), 1);
}

fn is_module(kind: Kind) -> bool {
    matches!(kind, Kind::Bicep | Kind::Terraform)
}

/// Returns the module of a new machine with the network of a machine in use, which is a parameter.
fn with_network_in_use(text: &str) -> String {
    let Some((before, rest)) = text.split_once("resource nsg ") else { return text.to_owned() };
    let (_, rest) = rest.split_once("resource machine ").expect("a machine");
    let subnet = "@description('The id of its subnet.')\nparam subnetId string";
    let interfaces = "@description('All of its network interfaces, as az vm show --query \
                      \"networkProfile.networkInterfaces[].{id: id, properties: {primary: primary, \
                      deleteOption: \
                      deleteOption}}\" prints them.')\nparam networkInterfaces array";
    let list = "networkInterfaces: [\n        {\n          id: nic.id\n        }\n      ]";
    let (before, rest) = (
        before.replace(subnet, interfaces),
        rest.replace(list, "networkInterfaces: networkInterfaces"),
    );
    format!("{before}resource machine {rest}")
}

/// Checks that a module without changes is still complete: missing items would be destroyed.
#[test]
fn a_module_is_whole_where_nothing_differs() {
    let aws = "edition = \"aws\"\n[[volume]]\nname = \"d\"\nfamily = \"gp3\"\nsize = \"100 GiB\"\n";
    let google = aws.replace("aws", "gcp").replace("gp3", "pd-ssd");
    let next = INSTANCE.replace("2018", "now").replace("\"gp\"", "\"next-gen-gp\"");
    // Without its comments and the empty lines between them.
    let code = |text: &str, sign: &str| -> Vec<String> {
        text.lines()
            .filter(|line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with(sign))
            .map(str::to_owned)
            .collect()
    };
    let check = |kind: Kind, text: &str| {
        let same = made(kind, text, text);
        let note = format!(
            "no changes: layout.toml and old.toml are the same for {kind}; the module is written \
             anyway, because whatever is missing from it would be detached or destroyed"
        );
        assert_eq!(same.notes, [note]);
        let sign = if kind == Kind::Bicep { "//" } else { "#" };
        assert!(same.text.contains(&format!("{sign} no changes: ")), "{}", same.text);
        let alone = script(kind, text, &Options::default()).expect("a script").text;
        let alone = if kind == Kind::Bicep { with_network_in_use(&alone) } else { alone };
        assert_eq!(code(&same.text, sign), code(&alone, sign));
        assert!(code(&alone, sign).len() > 20, "{alone}");
    };
    for text in [MACHINE, INSTANCE, &next] {
        check(Kind::Bicep, text);
    }
    for text in [MACHINE, INSTANCE, &next, aws, &google] {
        check(Kind::Terraform, text);
    }
}

/// Checks that a layout of another cloud is rejected.
#[test]
fn a_layout_of_another_cloud_is_not_what_is_there() {
    let of = |edition: &str, family: &str| {
        format!(
            "edition = {edition:?}\n[[volume]]\nname = \"d\"\nfamily = {family:?}\nsize = \"100 GiB\"\n"
        )
    };
    let aws = of("aws", "gp3");
    let google = of("gcp", "pd-ssd");
    let azure = of("azure-now", "premium-ssd-v2")
        .replace("GiB\"\n", "GiB\"\niops = 3000\nthroughput = \"125 MB/s\"\n");
    let bare = "[[volume]]\nname = \"d\"\nunlimited = true\nsize = \"100 GiB\"\n";
    let check = |kind: Kind, old: &str, new: &str, editions: (&str, &str)| {
        let error = changes(kind, old, new, &Options::default()).expect_err("no script");
        let (is, was) = editions;
        let expect = format!(
            "layout.toml: host \"host\" cannot be exported as {kind}: its edition is {is}, and \
             that of old.toml is {was}; disks of one cloud cannot become disks of another: export \
             without --from"
        );
        assert!(error.to_string().starts_with(&expect), "{error}");
    };
    for kind in [Kind::Az, Kind::Bicep, Kind::Terraform, Kind::Powershell] {
        check(kind, &aws, &azure, ("azure-now", "aws"));
        check(kind, &google, &azure, ("azure-now", "gcp"));
        check(kind, bare, &azure, ("azure-now", "none"));
    }
    check(Kind::Terraform, &azure, &aws, ("aws", "azure-now"));
    check(Kind::Terraform, &azure, &google, ("gcp", "azure-now"));
    check(Kind::Terraform, &aws, &google, ("gcp", "aws"));
}

/// Checks that a module can describe a disk that stays as it is.
#[test]
fn resources_that_stay_in_a_module_can_be_given() {
    let own = MACHINE.replace("tier = \"P20\"", "size = \"512 GiB\"\nlimits = { iops = 5 }");
    for kind in [Kind::Bicep, Kind::Terraform] {
        let error =
            changes(kind, &own, MACHINE, &Options::default()).expect_err("no script").to_string();
        assert!(error.starts_with("old.toml: volume \"log\" cannot be exported"), "{error}");
        let gone = own
            .replace("name = \"log\"", "name = \"redo\"")
            .replace("on = \"log\"", "on = \"redo\"");
        let error =
            changes(kind, &gone, MACHINE, &Options::default()).expect_err("no script").to_string();
        assert!(error.starts_with("old.toml: volume \"redo\" cannot be exported"), "{error}");
    }
}

#[test]
fn a_disk_that_crosses_4_tib_is_asked_for() {
    let of = |size: &str| {
        MACHINE.replace("tier = \"P20\"", &format!("family = \"premium-ssd\"\nsize = {size:?}"))
    };
    let words = "log crosses 4 TiB: the machine is deallocated for that and started again";
    check(Kind::Az, &of("4 TiB"), &of("8 TiB"), &["grow log 8192 stops"], &[words]);
    check(Kind::Az, &of("5 TiB"), &of("8 TiB"), &["grow log 8192 stops"], &[]);
    check(Kind::Az, &of("2 TiB"), &of("4 TiB"), &["grow log 4096"], &[]);
    let bought = "\"\niops = 8000\nthroughput = \"300 MB/s\"\n";
    let v2 = |size: &str| {
        of(size).replace("premium-ssd", "premium-ssd-v2").replacen(
            "TiB\"\n",
            &format!("TiB{bought}"),
            1,
        )
    };
    check(Kind::Az, &v2("2 TiB"), &v2("8 TiB"), &["grow log 8192"], &[]);
    let export = made(Kind::Powershell, &of("4 TiB"), &of("8 TiB"));
    assert_eq!(export.notes.len(), 1, "{:?}", export.notes);
    for words in [
        "[switch] $AllowRestart",
        "NOT DONE: growing past 4 TiB",
        "Update-LayoutDisk -Name 'log' -Config @{ DiskSizeGB = 8192 }",
        "Start-LayoutMachine\nif ($left) { exit 1 }",
    ] {
        assert!(export.text.contains(words), "{}", export.text);
    }
    let text = made(Kind::Powershell, &of("2 TiB"), &of("4 TiB")).text;
    assert!(!text.contains("AllowRestart") && !text.contains("Stop-AzVM"), "{text}");
    assert!(text.contains("$disk.DiskSizeGB -gt $keys['DiskSizeGB']"), "{text}");
}

#[test]
fn a_file_grows_and_does_not_shrink() {
    let larger = MACHINE.replace("size = \"100 GiB\"", "size = \"128 GiB\"");
    check(
        Kind::Tsql,
        MACHINE,
        &larger,
        &["ALTER DATABASE [sales] MODIFY FILE (NAME = N'sales-log', SIZE = 128GB);"],
        &[],
    );
    check(Kind::Tsql, &larger, MACHINE, &[], &["sales-log would shrink from 128 GiB to 100 GiB"]);
    let back = made(Kind::Tsql, &larger, MACHINE).text;
    assert!(back.contains("--    DBCC SHRINKFILE (N'sales-log', 102400);"), "{back}");
    let growth = MACHINE.replace("growth = \"10 GiB\"\nmax", "growth = \"20 GiB\"\nmax");
    check(
        Kind::Tsql,
        MACHINE,
        &growth,
        &["ALTER DATABASE [sales] MODIFY FILE (NAME = N'data-1', FILEGROWTH = 20GB);"],
        &[],
    );
}

#[test]
fn files_are_added_with_the_movement_of_pages_and_removed_by_hand() {
    let third = "[[file]]\nname = \"data-3\"\ndatabase = \"sales\"\nrole = \"data\"\nsize = \"500 GiB\"\non = \
                 \"pool\"\n";
    let more = format!("{MACHINE}{third}");
    check(
        Kind::Tsql,
        MACHINE,
        &more,
        &[
            "ALTER DATABASE [sales] ADD FILE (NAME = N'data-3', FILENAME = N'F:\\Data\\data-3.ndf', SIZE = 500GB)",
        ],
        &[],
    );
    let text = made(Kind::Tsql, MACHINE, &more).text;
    assert!(text.contains("REBUILD;'"), "{text}");
    assert!(text.contains("DECLARE @move bit = 0;"), "{text}");
    check(Kind::Tsql, &more, MACHINE, &[], &["data-3 is no longer in the layout; it is kept"]);
    let text = made(Kind::Tsql, &more, MACHINE).text;
    for line in
        ["DBCC SHRINKFILE (N'data-3', EMPTYFILE);", "ALTER DATABASE [sales] REMOVE FILE [data-3];"]
    {
        assert!(text.contains(&format!("--    {line}")), "{text}");
    }
    assert!(!text.contains("REBUILD;'"), "{text}");
}

#[test]
fn a_second_log_file_is_added_as_one() {
    let second = "[[file]]\nname = \"log-2\"\ndatabase = \"sales\"\nrole = \"log\"\nsize = \"10 GiB\"\non = \
                  \"log\"\n";
    check(
        Kind::Tsql,
        MACHINE,
        &format!("{MACHINE}{second}"),
        &[
            "ALTER DATABASE [sales] ADD LOG FILE (NAME = N'log-2', FILENAME = N'L:\\log-2.ldf', SIZE = 10GB);",
        ],
        &[],
    );
}

#[test]
fn a_file_that_moves_is_moved_by_hand_and_tempdb_at_a_restart() {
    let moved =
        MACHINE.replace("size = \"100 GiB\"\non = \"log\"", "size = \"100 GiB\"\non = \"pool\"");
    let export = changes(Kind::Tsql, MACHINE, &moved, &mounts());
    // The log disk is unused, so its mount is an error.
    assert!(export.expect_err("no script").to_string().contains("--mount log=L:"));
    let mut options = mounts();
    options.mounts.retain(|(name, _)| name != "log");
    let export = changes(Kind::Tsql, MACHINE, &moved, &options).expect("a script");
    assert_eq!(acts(&export, "--"), Vec::<String>::new(), "{}", export.text);
    assert!(export.text.contains("--    ALTER DATABASE [sales] SET OFFLINE"), "{}", export.text);
    let tempdb = MACHINE.replace("on = \"scratch\"", "on = \"log\"");
    let mut options = mounts();
    options.mounts.retain(|(name, _)| name != "scratch");
    let export = changes(Kind::Tsql, MACHINE, &tempdb, &options).expect("a script");
    let expect =
        "ALTER DATABASE [tempdb] MODIFY FILE (NAME = N'tempdev', FILENAME = N'L:\\tempdev.ndf');";
    assert_eq!(acts(&export, "--"), [expect]);
    assert_eq!(export.notes, ["tempdev: it moves with a restart"]);
}

#[test]
fn disks_grow_get_another_cache_and_stay_when_they_go() {
    let larger = MACHINE.replace("P20", "P30");
    check(Kind::Az, MACHINE, &larger, &["grow log 1024"], &[]);
    check(Kind::Az, &larger, MACHINE, &[], &["log would shrink from 1 TiB to 512 GiB"]);
    let cached = MACHINE.replace("tier = \"P20\"", "tier = \"P20\"\ncache = \"read-only\"");
    check(Kind::Az, MACHINE, &cached, &["cache log ReadOnly"], &[]);
    let raised = MACHINE.replace("tier = \"P20\"", "tier = \"P20\"\nperformance_tier = \"P40\"");
    check(Kind::Az, MACHINE, &raised, &["change log tier P40 --set tier=P40"], &[]);
    check(Kind::Az, &raised, MACHINE, &["change log tier P20 --set tier=P20"], &[]);
    let less = MACHINE.replace("count = 4", "count = 3");
    check(Kind::Az, MACHINE, &less, &[], &["pool-3 is no longer in the layout; it is kept"]);
    let text = made(Kind::Az, MACHINE, &less).text;
    assert!(text.contains("#    az vm disk detach"), "{text}");
    check(
        Kind::Az,
        &less,
        MACHINE,
        &["disk pool-3 1024 --sku Premium_LRS", "attach pool-3 4 ReadOnly"],
        &[],
    );
    let family = MACHINE.replace("tier = \"P20\"", "family = \"standard-ssd\"\nsize = \"512 GiB\"");
    check(Kind::Az, MACHINE, &family, &[], &["log would go from premium-ssd to standard-ssd"]);
}

/// Checks that a new disk takes a free LUN even if it comes first in the layout.
#[test]
fn disks_keep_their_numbers() {
    let first = MACHINE.replacen(
        "[[volume]]",
        "[[volume]]\nname = \"first\"\ntier = \"P10\"\n[[volume]]",
        1,
    );
    check(
        Kind::Az,
        MACHINE,
        &first,
        &["disk first 128 --sku Premium_LRS", "attach first 5 None"],
        &[],
    );
}

/// Checks that LUNs are queried before anything is created: disks of an earlier layout may still be
/// attached.
#[test]
fn a_number_is_asked_for_before_anything_is_made() {
    let more = MACHINE.replace("count = 4", "count = 5");
    let before = |kind: Kind, look: &str, act: &str| {
        for text in [
            made(kind, MACHINE, &more).text,
            script(kind, &more, &Options::default()).expect("a script").text,
        ] {
            let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words} in {text}"));
            assert!(at(look) < at(act), "{text}");
        }
    };
    before(Kind::Az, "\nfree pool-4 5\n", "\ndisk ");
    before(Kind::Powershell, "\nTest-LayoutLun -Name 'pool-4' -Lun 5\n", "\nAdd-LayoutDisk -Name");
    let text = made(Kind::Powershell, MACHINE, &more).text;
    assert!(
        text.contains("throw \"${Name}: NOT DONE: $($other.Name) is attached as LUN $Lun"),
        "{text}"
    );
    let text = script(Kind::Bicep, MACHINE, &Options::default()).expect("a script").text;
    let words = "A disk that is attached to the machine and not in this module is detached";
    assert!(text.replace("\n// ", " ").contains(words), "{text}");
}

/// Returns [`MACHINE`] with LUNs.
fn numbered(log: u32, pool: &str) -> String {
    MACHINE
        .replace("tier = \"P20\"", &format!("tier = \"P20\"\nlun = {log}"))
        .replace("count = 4", &format!("count = 4, luns = {pool}"))
}

#[test]
fn disks_have_the_numbers_that_the_layout_says() {
    let own = numbered(9, "[3, 2, 63, 0]");
    let options = Options::default();
    let has = |kind: Kind, words: &str| {
        let text = script(kind, &own, &options).expect("a script").text;
        assert!(text.contains(words), "{kind}: {text}");
    };
    has(Kind::Az, "attach pool-2 63 ReadOnly");
    has(Kind::Bicep, "lun: 63");
    has(Kind::Terraform, "lun      = 63");
    has(Kind::Powershell, "-Name 'pool-2' -SizeGB 1024 -Lun 63");
    has(Kind::Mdadm, "check /dev/disk/azure/scsi1/lun63 1099511627776");
    has(Kind::StorageSpaces, "-Lun 63 -Size 1099511627776 # pool-2");
    // Stated LUNs are reserved.
    let one = MACHINE.replace("count = 4", "count = 4, luns = [0, 1, 2, 3]");
    let text = script(Kind::Az, &one, &options).expect("a script").text;
    assert!(text.contains("attach log 4 None"), "{text}");
    // Stating the present LUNs changes nothing.
    let same = made(Kind::Az, MACHINE, &numbered(0, "[1, 2, 3, 4]"));
    assert_eq!(same.notes, ["nothing to do: layout.toml and old.toml are the same for az"]);
    // LUNs of --from apply to disks in use, and a new disk takes a free one.
    let more = "[[volume]]\nname = \"more\"\ntier = \"P10\"\n";
    let more = MACHINE.replacen("[[volume]]", &format!("{more}lun = 7\n[[volume]]"), 1);
    check(Kind::Az, &own, &more, &["disk more 128 --sku Premium_LRS", "attach more 7 None"], &[]);
    let plain = more.replace("lun = 7\n", "");
    let text = changes(Kind::Terraform, &own, &plain, &options).expect("a script").text;
    for row in ["lun      = 1\n", "lun      = 9\n", "lun      = 63\n"] {
        assert!(text.contains(row), "{text}");
    }
}

#[test]
fn a_number_that_would_move_a_disk_is_refused() {
    let refused = |old: &str, new: &str, expect: &str| {
        for kind in [Kind::Az, Kind::Terraform, Kind::Mdadm] {
            let error = changes(kind, old, new, &Options::default()).expect_err("no script");
            assert!(error.to_string().contains(expect), "{kind}: {error}");
        }
    };
    let moved = "volume \"log\" cannot be exported as a script: it has LUN 5 here and 0 in old.toml, and \
                 a disk in use is not reattached; set lun = 0 here, or lun = 5 in old.toml if the machine \
                 has that";
    refused(MACHINE, &numbered(5, "[1, 2, 3, 4]"), moved);
    refused(&numbered(0, "[1, 2, 3, 4]"), &numbered(5, "[1, 2, 3, 4]"), moved);
    // A disk that goes is still attached.
    let gone = MACHINE
        .replace("name = \"log\"\n", "name = \"redo\"\nlun = 0\n")
        .replace("on = \"log\"", "on = \"redo\"");
    let taken = "volume \"redo\" cannot be exported as a script: it would have LUN 0, which \"log\" of \
                 old.toml has; give it a free lun, or none";
    refused(MACHINE, &gone, taken);
}

#[test]
fn a_machine_is_resized_when_that_is_allowed() {
    let larger = MACHINE.replace("D16s_v3", "D32s_v3");
    let resize = "az vm resize --resource-group \"$RESOURCE_GROUP\" --name \"$MACHINE\" --size \"$wanted\" \
                  --output none";
    check(Kind::Az, MACHINE, &larger, &[resize], &["that restarts the machine"]);
    let text = made(Kind::Az, MACHINE, &larger).text;
    assert!(text.contains("\nwanted=Standard_D32s_v3\n"), "{text}");
    assert!(text.contains("if [[ ${RESTART:-no} != yes ]]; then"), "{text}");
    let text = made(Kind::Powershell, MACHINE, &larger).text;
    assert!(text.contains("[switch] $AllowRestart"), "{text}");
}

#[test]
fn a_machine_that_the_cloud_cannot_resize_is_left_alone() {
    let machine = |size: &str| {
        format!(
            "edition = \"azure-now\"\n[host]\nsize = \"{size}\"\n[[volume]]\nname = \"log\"\ntier = \"P20\"\n"
        )
    };
    let no_disk =
        "it does not have a local temporary disk: create a new machine and move the disks to it";
    for (size, why) in [
        ("D16as_v5", no_disk),
        ("D16ps_v5", "Arm processors, so the operating system must be reinstalled"),
    ] {
        let (old, other) = (machine("D16s_v3"), machine(size));
        for kind in [Kind::Az, Kind::Powershell] {
            let own = made(kind, &old, &other);
            assert!(own.notes.iter().any(|note| note.contains(why)), "{kind:?}: {:?}", own.notes);
            assert!(own.text.contains("NOT DONE: is $"), "{kind:?}: {}", own.text);
            for resize in ["az vm resize", "HardwareProfile.VmSize = ", "RESTART", "AllowRestart"] {
                assert!(!own.text.contains(resize), "{kind:?}: {}", own.text);
            }
        }
        for kind in [Kind::Bicep, Kind::Terraform] {
            let own = made(kind, &old, &other);
            assert!(own.notes.iter().any(|note| note.contains(why)), "{kind:?}: {:?}", own.notes);
        }
    }
}

/// Checks that only differences are applied, and only if they are still pending.
#[test]
#[expect(clippy::too_many_lines, reason = "one case after the other, in one list")]
fn an_instance_is_updated() {
    let differ = |old: &str, new: &str, az: &[&str], powershell: &[&str]| {
        let text = made(Kind::Az, old, new).text;
        assert_eq!(
            text.lines()
                .filter(|line: &&str| {
                    ["differs ", "grows "].iter().any(|word| line.starts_with(word))
                        && !line.contains("()")
                })
                .collect::<Vec<_>>(),
            az,
            "{text}"
        );
        let update = "    az sql mi update --resource-group \"$RESOURCE_GROUP\" --name \"$INSTANCE\" \
                      \"${keys[@]}\" --output none";
        assert!(
            text.contains(&format!(
                "if ((${{#keys[@]}} > 0)); then\n    echo \"$INSTANCE: changing it\"\n{update}"
            )),
            "{text}"
        );
        let text = made(Kind::Powershell, old, new).text;
        assert_eq!(
            text.lines()
                .filter(|line: &&str| line.starts_with("if (") && line.ends_with('}'))
                .collect::<Vec<_>>(),
            powershell,
            "{text}"
        );
        let look = text.find("$instance = Get-AzSqlInstance").expect("it looks");
        let act = text.find("if ($keys.Count -gt 0) {\n    Write-Output").expect("it asks");
        assert!(look < act && act < text.find("    Set-AzSqlInstance").expect("it acts"), "{text}");
        assert!(text.contains("-Name $InstanceName @keys -Force"), "{text}");
    };
    let now = INSTANCE.replace("2018", "now").replace("8 TiB", "1 TiB");
    let next = now.replace("\"gp\"", "\"next-gen-gp\"").replace("TiB\" }", "TiB\", iops = 6000 }");
    differ(
        &now,
        &now.replace("vcores = 8", "vcores = 16"),
        &["differs vCores vCores 16 --capacity 16"],
        &["if ($instance.VCores -ne 16) { $keys['VCore'] = 16 }"],
    );
    differ(
        &now,
        &now.replace("1 TiB", "2 TiB"),
        &["grows 2048"],
        &["if ($instance.StorageSizeInGB -ne 2048) { $keys['StorageSizeInGB'] = 2048 }"],
    );
    differ(
        &now.replace("1 TiB", "2 TiB"),
        &now,
        &["differs GB 'storageSizeInGB || storageSizeInGb' 1024 --storage 1024"],
        &["if ($instance.StorageSizeInGB -ne 1024) { $keys['StorageSizeInGB'] = 1024 }"],
    );
    differ(
        &next,
        &next.replace("6000", "7000"),
        &["differs IOPS 'storageIOps || storageIops' 7000 --iops 7000"],
        &["if ($instance.StorageIOps -ne 7000) { $keys['StorageIOps'] = 7000 }"],
    );
    differ(
        &next,
        &now.replace("\"gp\"", "\"bc\""),
        &[
            "differs edition sku.tier BusinessCritical --edition BusinessCritical",
            "differs 'next generation' 'isGeneralPurposeV2 && `true` || `false`' false --gpv2 false",
        ],
        &[
            "if ($instance.Sku.Tier -ne 'BusinessCritical') { $keys['Edition'] = 'BusinessCritical' }",
            "if ([bool] $instance.IsGeneralPurposeV2 -ne $false) { $keys['IsGeneralPurposeV2'] = $false }",
            "if ($keys.ContainsKey('Edition') -and -not $keys.ContainsKey('VCore')) { $keys['VCore'] = \
             $instance.VCores }",
        ],
    );
    let larger = INSTANCE.replace("vcores = 8", "vcores = 16");
    check(
        Kind::Az,
        INSTANCE,
        &larger,
        &[
            "az sql mi update --resource-group \"$RESOURCE_GROUP\" --name \"$INSTANCE\" \"${keys[@]}\" --output none",
        ],
        &["ends with a failover"],
    );
}

#[test]
fn a_stripe_takes_no_column_and_is_said_what_to_copy() {
    let more = MACHINE.replace("count = 4", "count = 5");
    check(
        Kind::Mdadm,
        MACHINE,
        &more,
        &[],
        &["cannot take a column in place, so all of its data must be copied"],
    );
    check(Kind::Lvm, MACHINE, &more, &[], &["existing data keeps its stripes"]);
    let spaces = made(Kind::StorageSpaces, MACHINE, &more);
    assert!(spaces.notes[0].contains("keeps its columns"), "{:?}", spaces.notes);
    let larger = MACHINE.replace("P30", "P40");
    check(
        Kind::Mdadm,
        MACHINE,
        &larger,
        &[],
        &[
            "The stripe gets their higher limits, but a stripe of mdadm cannot use the additional space",
        ],
    );
    check(
        Kind::Lvm,
        MACHINE,
        &larger,
        &[
            "pvresize /dev/disk/azure/scsi1/lun1 /dev/disk/azure/scsi1/lun2 /dev/disk/azure/scsi1/lun3 \
             /dev/disk/azure/scsi1/lun4",
            "lvextend --resizefs --extents +100%FREE /dev/vg_pool/lv_pool",
        ],
        &[],
    );
    for kind in [Kind::Mdadm, Kind::Lvm] {
        let less = "log: it has 512 GiB and would have 256 GiB. Nothing shrinks in place";
        check(kind, MACHINE, &MACHINE.replace("P20", "P15"), &[], &[less]);
    }
    let spaces = made(Kind::StorageSpaces, MACHINE, &MACHINE.replace("P20", "P15"));
    assert!(spaces.notes[0].contains("Nothing shrinks in place"), "{:?}", spaces.notes);
    let single = MACHINE.replace("P20", "P30");
    check(
        Kind::Mdadm,
        MACHINE,
        &single,
        &["xfs_growfs \"$place\" || resize2fs \"$(findfs 'LABEL=log')\""],
        &[],
    );
}

#[test]
fn a_mount_that_goes_is_told_and_a_new_one_is_a_line() {
    let disk = "[[volume]]\nname = \"more\"\ntier = \"P10\"\n";
    let more = format!("{MACHINE}{disk}");
    check(
        Kind::Fstab,
        MACHINE,
        &more,
        &["LABEL=more /mnt/more xfs defaults,noatime,nofail 0 0"],
        &[],
    );
    check(Kind::Fstab, &more, MACHINE, &[], &["more is no longer in the layout: remove its line"]);
}

/// Checks that a module is complete and keeps disks that would be destroyed.
#[test]
fn a_module_keeps_what_goes_and_what_would_shrink() {
    let less = MACHINE.replace("count = 4", "count = 3").replace("P20", "P15");
    let export = made(Kind::Terraform, MACHINE, &less);
    for words in ["\"pool-3\" = {", "gib      = 512", "prevent_destroy = true"] {
        assert!(export.text.contains(words), "{}", export.text);
    }
    assert_eq!(export.notes.len(), 2, "{:#?}", export.notes);
    // Other changes of a disk that would shrink are made.
    let cached = less.replace("tier = \"P15\"", "tier = \"P15\"\ncache = \"read-only\"");
    let text = made(Kind::Terraform, MACHINE, &cached).text;
    let row = "gib      = 512\n      lun      = 0\n      caching  = \"ReadOnly\"";
    assert!(text.contains(row), "{text}");
    let bicep = made(Kind::Bicep, MACHINE, &less);
    for words in ["name: 'pool-3'", "diskSizeGB: 512"] {
        assert!(bicep.text.contains(words), "{}", bicep.text);
    }
}

/// Checks that a deployment does not replace the network of a machine in use.
#[test]
fn a_module_of_a_machine_in_use_leaves_its_network_alone() {
    let more = MACHINE.replace("count = 4", "count = 5");
    let new = script(Kind::Bicep, &more, &Options::default()).expect("a script").text;
    for words in ["networkSecurityGroups@", "networkInterfaces@", "param subnetId", "id: nic.id"] {
        assert!(new.contains(words), "{new}");
    }
    for layout in [MACHINE, &more] {
        let text = made(Kind::Bicep, MACHINE, layout).text;
        for words in ["Microsoft.Network", "subnetId", "nic.id"] {
            assert!(!text.contains(words), "{text}");
        }
        assert!(text.contains("\nparam networkInterfaces array\n"), "{text}");
        assert!(text.contains("\n      networkInterfaces: networkInterfaces\n"), "{text}");
    }
}

#[test]
fn another_file_system_on_disks_in_use_is_refused() {
    let stated =
        |own: &str| MACHINE.replace("[host]\n", &format!("[host]\nfilesystem = {own:?}\n"));
    for kind in [Kind::Mdadm, Kind::Fstab] {
        let refused = changes(kind, &stated("xfs"), &stated("ext4"), &Options::default());
        let error = refused.expect_err("no script").to_string();
        assert!(error.contains("would erase the disks in use"), "{kind}: {error}");
        assert!(changes(kind, &stated("ext4"), &stated("ext4"), &Options::default()).is_ok());
    }
}

/// Checks the same for AWS and Google Cloud. AWS changes the type of a volume in place, Google
/// Cloud does not.
#[test]
fn modules_of_other_clouds_keep_what_goes_and_what_would_shrink() {
    let layout = |edition: &str, log: &str, count: u32, size: &str, type_: &str| {
        format!(
            "edition = {edition:?}\n[[volume]]\nname = \"log\"\n{log}\n[[stripe]]\nname = \"pool\"\nunit = \"64 \
             KiB\"\nvolumes = {{ count = {count}, family = {type_:?}, size = {size:?}, iops = 4000, throughput = \
             \"200 MiB/s\" }}\n"
        )
    };
    let check = |old: &str, new: &str, rows: &[&str], notes: &[&str]| {
        let export = made(Kind::Terraform, old, new);
        for row in rows {
            assert!(export.text.contains(row), "no\n{row}\nin\n{}", export.text);
        }
        assert_eq!(export.notes.len(), notes.len(), "{:#?}", export.notes);
        for (note, expect) in export.notes.iter().zip(notes) {
            assert!(note.contains(expect), "{note}");
        }
        assert_eq!(export.text.matches("prevent_destroy = true").count(), 1, "{}", export.text);
    };
    let (io1, io2) = ["io1", "io2"]
        .map(|own| format!("family = {own:?}\nsize = \"100 GiB\"\niops = 5000"))
        .into();
    let old = layout("aws", &io1, 3, "1 TiB", "gp3");
    let kept = "iops   = 4000\n      mibps  = 200\n      device = \"/dev/sdi\"";
    check(
        &old,
        &layout("aws", &io2, 2, "512 GiB", "gp3"),
        &["type   = \"io2\"", "\"pool-0\" = {\n      type   = \"gp3\"\n      gib    = 1024", kept],
        &[
            "pool-0 would shrink from 1 TiB to 512 GiB. AWS cannot do that to a disk with data",
            "pool-1 would shrink",
            "pool-2 is no longer in the layout; it is kept with its data",
        ],
    );
    check(
        &old,
        &layout("aws", &io1, 4, "2 TiB", "gp3"),
        &["gib    = 2048", "device = \"/dev/sdj\"", "# It can grow while the machine runs."],
        &[],
    );
    let extreme = "family = \"hyperdisk-extreme\"\nsize = \"100 GiB\"\niops = 5000";
    let balanced = "family = \"hyperdisk-balanced\"\nsize = \"200 GiB\"\niops = 5000\nthroughput = \"300 MiB/s\"";
    let pool = "hyperdisk-balanced";
    let old = layout("gcp", extreme, 3, "1 TiB", pool);
    check(
        &old,
        &layout("gcp", balanced, 2, "512 GiB", pool),
        &[
            "\"log\" = {\n      type  = \"hyperdisk-extreme\"\n      gib   = 100\n      iops  = 5000\n      mibps = null",
            "\"pool-0\" = {\n      type  = \"hyperdisk-balanced\"\n      gib   = 1024",
            "\"pool-2\" = {",
        ],
        &[
            "log would go from hyperdisk-extreme to hyperdisk-balanced. Google Cloud cannot do that",
            "pool-0 would shrink",
            "pool-1 would shrink",
            "pool-2 is no longer in the layout",
        ],
    );
    for (edition, log) in [("aws", io1.as_str()), ("gcp", extreme)] {
        let type_ = if edition == "aws" { "gp3" } else { pool };
        let own = layout(edition, log, 2, "1 TiB", type_);
        let same = made(Kind::Terraform, &own, &own);
        assert!(same.notes[0].starts_with("no changes: "), "{:?}", same.notes);
        assert!(same.text.contains("\"pool-1\" = {"), "{}", same.text);
    }
    let machine =
        |size: &str| format!("{}[host]\nsize = {size:?}\n", layout("aws", &io1, 2, "1 TiB", "gp3"));
    let resized = made(Kind::Terraform, &machine("m5.4xlarge"), &machine("m5.8xlarge"));
    assert_eq!(
        resized.notes,
        [
            "m5.4xlarge becomes m5.8xlarge: that restarts the machine, and its local disk loses its data"
        ]
    );
    assert!(resized.text.contains("value = \"m5.8xlarge\""), "{}", resized.text);
    let arm = made(Kind::Terraform, &machine("m5.4xlarge"), &machine("m6g.4xlarge"));
    let words = "m5.4xlarge becomes m6g.4xlarge: m6g.4xlarge has Arm processors, so the operating system must \
                 be reinstalled";
    assert_eq!(arm.notes, [words]);
}
