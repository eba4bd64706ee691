//! Machines and instances: disk controllers and the device names that follow from them, licences,
//! networks and credentials.

use crate::common::{INSTANCE, MACHINE, changes, pairs, script};
use crate::fake::{Fake, VARIABLES, check, text};
use crate::tools::has;
use std::fs;
use weir_export::{Export, Filesystem, Kind, OperatingSystem, Options};

/// Returns a machine of a size with a stripe of four disks.
fn sized(size: &str) -> String {
    format!(
        "edition = \"azure-now\"\nhost = {{ size = {size:?} }}\n[[stripe]]\nname = \"pool\"\nunit = \"64 \
         KiB\"\nvolumes = {{ count = 4, tier = \"P30\" }}\n"
    )
}

fn made(kind: Kind, layout: &str) -> Export {
    script(kind, layout, &Options::default()).expect("a script")
}

fn changed(kind: Kind, old: &str, new: &str) -> Export {
    changes(kind, old, new, &Options::default()).expect("a script")
}

fn windows() -> Options {
    Options { os: Some(OperatingSystem::Windows), ..Options::default() }
}

/// Joins the lines of comments.
fn unwrapped(text: &str) -> String {
    text.replace("\n// ", " ").replace("\n# ", " ")
}

#[track_caller]
fn has_words(text: &str, words: &str) {
    assert!(unwrapped(text).contains(words), "no {words} in\n{text}");
}

const POOL: [&str; 9] = [
    "az vm create db1",
    "az disk create pool-0",
    "az vm disk attach pool-0",
    "az disk create pool-1",
    "az vm disk attach pool-1",
    "az disk create pool-2",
    "az vm disk attach pool-2",
    "az disk create pool-3",
    "az vm disk attach pool-3",
];

#[test]
fn a_machine_is_made_with_the_disk_controller_of_its_limits() {
    let controller = |size: &str, expect: &str| {
        let layout = sized(size);
        if has("bash") {
            let fake = Fake::new();
            check(&fake, &text(Kind::Az, &layout), &VARIABLES, &POOL);
            let made = fs::read_to_string(fake.0.path().join("machines/db1")).expect("a machine");
            assert_eq!(made.split('\t').nth(1), Some(expect), "{made}");
        }
        let is_nvme = expect == "NVMe";
        let az = text(Kind::Az, &layout);
        assert_eq!(az.contains(" --disk-controller-type NVMe "), is_nvme, "{az}");
        let bicep = text(Kind::Bicep, &layout);
        let words = "    storageProfile: {\n      diskControllerType: 'NVMe'\n";
        assert_eq!(bicep.contains(words), is_nvme, "{bicep}");
        let terraform = text(Kind::Terraform, &layout);
        let words = "output \"disk_controller_type\" {\n  value = \"NVMe\"\n}";
        assert_eq!(terraform.contains(words), is_nvme, "{terraform}");
        let powershell = text(Kind::Powershell, &layout);
        assert!(powershell.contains(&format!("if ($controller -ne '{expect}')")), "{powershell}");
        for text in [az, bicep, powershell] {
            let words = "The image must be of generation 2 and list NVMe";
            assert_eq!(unwrapped(&text).contains(words), is_nvme, "{text}");
        }
    };
    controller("ebdsv5-nvme/E96bds_v5", "NVMe");
    controller("E112ibds_v5", "NVMe");
    controller("E64ds_v6", "NVMe");
    controller("E64bds_v6", "NVMe");
    controller("M96bds_v3", "NVMe");
    controller("ebdsv5-scsi/E96bds_v5", "SCSI");
    controller("E64ds_v5", "SCSI");
    controller("L8s_v3", "SCSI");
}

/// Checks that an existing machine with another disk controller is reported: its size is right, but
/// its limits differ.
#[test]
fn an_existing_machine_with_another_disk_controller_is_reported() {
    if !has("bash") {
        return;
    }
    let told = |size: &str, there: &str, words: &str| {
        let fake = Fake::new();
        fs::create_dir(fake.0.path().join("machines")).expect("a folder");
        fake.file("machines/db1", &format!("{there}\tNone\n"));
        let (changed, said, fine) = fake.run(&text(Kind::Az, &sized(size)), &VARIABLES);
        assert!(fine, "{said}");
        assert_eq!(changed, POOL[1..], "{said}");
        assert!(said.contains(words), "{said}");
    };
    told(
        "ebdsv5-nvme/E96bds_v5",
        "Standard_E96bds_v5\tSCSI",
        "db1: is Standard_E96bds_v5 SCSI, the layout has Standard_E96bds_v5 NVMe; not changed",
    );
    told(
        "ebdsv5-scsi/E96bds_v5",
        "Standard_E96bds_v5\tNVMe",
        "db1: is Standard_E96bds_v5 NVMe, the layout has Standard_E96bds_v5 SCSI; not changed",
    );
}

/// Checks the steps for a conversion of the disk controller: sizes with both controllers have
/// different limits.
#[test]
fn a_machine_that_goes_to_another_disk_controller_is_converted_by_hand() {
    let scsi = sized("ebdsv5-scsi/E96bds_v5");
    let nvme = sized("ebdsv5-nvme/E96bds_v5").replace("count = 4", "count = 5");
    let words = "the disk controller changes from SCSI to NVMe (Standard_E96bds_v5). Prepare the operating \
                 system first";
    for kind in [Kind::Az, Kind::Powershell, Kind::Bicep, Kind::Terraform] {
        let export = changed(kind, &scsi, &nvme);
        assert!(export.notes[0].starts_with(words), "{kind}: {:?}", export.notes);
        has_words(&export.text, words);
        assert!(!export.text.contains("AllowRestart"), "{}", export.text);
    }
    let powershell = changed(Kind::Powershell, &scsi, &nvme).text;
    assert!(powershell.contains("throw \"${MachineName}: NOT DONE: is "), "{powershell}");
    let larger = changed(Kind::Az, &sized("E64ds_v5"), &nvme);
    assert!(!larger.text.contains("az vm resize"), "{}", larger.text);
    if !has("bash") {
        return;
    }
    let fake = Fake::new();
    check(&fake, &text(Kind::Az, &scsi), &VARIABLES, &POOL);
    let script = changed(Kind::Az, &scsi, &nvme).text;
    let (changed, said, fine) = fake.run(&script, &VARIABLES);
    assert!(!fine && changed.is_empty(), "{said}");
    let words = "db1: NOT DONE: is Standard_E96bds_v5 SCSI, the layout has Standard_E96bds_v5 NVMe";
    assert!(said.contains(words), "{said}");
    // After the conversion, the script makes the other changes.
    fake.file("machines/db1", "Standard_E96bds_v5\tNVMe\tNone\n");
    check(&fake, &script, &VARIABLES, &["az disk create pool-4", "az vm disk attach pool-4"]);
}

#[test]
fn disks_are_found_where_the_disk_controller_puts_them() {
    let device = |layout: &str, path: &str| {
        for kind in [Kind::Mdadm, Kind::Lvm] {
            let export = made(kind, layout);
            let line = format!("    check {path} 1099511627776\n");
            assert!(export.text.contains(&line), "no {line} in\n{}", export.text);
        }
    };
    device(&sized("E64ds_v5"), "/dev/disk/azure/scsi1/lun3");
    device(&sized("ebdsv5-scsi/E96bds_v5"), "/dev/disk/azure/scsi1/lun3");
    device(&sized("ebdsv5-nvme/E96bds_v5"), "/dev/disk/azure/data/by-lun/3");
    device(&sized("E64bds_v6"), "/dev/disk/azure/data/by-lun/3");
    let google = "edition = \"gcp\"\nhost = { size = \"n2-standard-8\" }\n[[stripe]]\nname = \"pool\"\nunit = \
                  \"64 KiB\"\nvolumes = { count = 4, family = \"pd-ssd\", size = \"1 TiB\" }\n";
    device(google, "/dev/disk/by-id/google-pool-3");
    let nvme = made(Kind::Lvm, &sized("E64bds_v6")).text;
    has_words(&nvme, "Disks are found by the links of the package azure-vm-utils");
    has_words(&nvme, "$1: does not exist; is it attached, and is azure-vm-utils installed?");
    // --device has priority.
    let pattern = Some("/dev/disk/azure/scsi1/lun{lun}".to_owned());
    let options = Options { device_pattern: pattern, ..Options::default() };
    let export = script(Kind::Mdadm, &sized("E64bds_v6"), &options).expect("a script");
    assert!(export.text.contains("check /dev/disk/azure/scsi1/lun3 "), "{}", export.text);
}

/// Checks that the name of a file system does not rename the disk, which is attached under the
/// layout's name.
#[test]
fn a_name_of_a_file_system_renames_no_disk() {
    let google = "edition = \"gcp\"\nhost = { size = \"n2-standard-8\" }\n[[volume]]\nname = \"data\"\nfamily = \
                  \"pd-ssd\"\nsize = \"1 TiB\"\n[[stripe]]\nname = \"pool\"\nunit = \"64 KiB\"\nvolumes = { \
                  count = 2, family = \"pd-ssd\", size = \"1 TiB\" }\n";
    let names = pairs(&[("data", "sales"), ("pool-1", "second")]);
    let options = Options { names, ..Options::default() };
    for kind in [Kind::Mdadm, Kind::Lvm] {
        let text = script(kind, google, &options).expect("a script").text;
        for name in ["data", "pool-0", "second"] {
            let line = format!("    check /dev/disk/by-id/google-{name} 1099511627776\n");
            assert!(text.contains(&line), "no {line} in\n{text}");
        }
        assert!(text.contains("sales") && !text.contains("google-sales"), "{text}");
    }
}

#[test]
fn the_file_system_of_the_layout_is_made() {
    let of = |own: &str| MACHINE.replace("[host]\n", &format!("[host]\nfilesystem = {own:?}\n"));
    for (kind, words) in [
        (Kind::Mdadm, "mkfs.ext4 -q"),
        (Kind::Lvm, "mkfs.ext4 -q"),
        (Kind::Fstab, "LABEL=pool /mnt/pool ext4 "),
    ] {
        let text = script(kind, &of("ext4"), &Options::default()).expect("a script").text;
        assert!(text.contains(words) && !text.contains("xfs"), "{kind}: {text}");
    }
    let refused = |kind: Kind, own: &str, options: &Options, words: &str| {
        let error = script(kind, &of(own), options).expect_err("no script").to_string();
        assert!(error.contains(words), "{kind}: {error}");
    };
    let none = Options::default();
    refused(Kind::Mdadm, "ntfs", &none, "is ntfs, of Windows; export as storage-spaces");
    refused(Kind::StorageSpaces, "xfs", &none, "is xfs, which Windows lacks");
    refused(
        Kind::Az,
        "ntfs",
        &none,
        "is ntfs, but the machine runs linux; export with --os windows",
    );
    refused(Kind::Bicep, "xfs", &windows(), "is xfs, but the machine runs windows");
    let other = Options { filesystem: Some(Filesystem::Xfs), ..Options::default() };
    refused(Kind::Lvm, "ext4", &other, "--filesystem xfs: the file system of its disks is ext4");
}

/// A guess is reported as a note and in the script.
#[test]
fn an_unknown_disk_controller_is_reported() {
    let told = |layout: &str, reason: &str| {
        let export = made(Kind::Mdadm, layout);
        let words = format!(
            "{reason}, so the script expects a SCSI disk controller; for NVMe, export with --device \
             '/dev/disk/azure/data/by-lun/{{lun}}'"
        );
        assert_eq!(export.notes, std::slice::from_ref(&words));
        has_words(&export.text, &words);
        assert!(export.text.contains("check /dev/disk/azure/scsi1/lun3 "), "{}", export.text);
    };
    told(
        &sized("M96ds_1_v3"),
        "the edition does not state the interface of remote disks for Standard_M96ds_1_v3",
    );
    let none = sized("D8s_v3").replace("host = { size = \"D8s_v3\" }\n", "");
    told(&none, "the layout has no machine size");
}

/// Checks that an EBS volume is found by the device name under which Terraform attaches it.
#[test]
fn volumes_of_aws_are_found_by_their_device_names() {
    let aws = "edition = \"aws\"\nhost = { size = \"m5.4xlarge\" }\n[[stripe]]\nname = \"pool\"\nunit = \"64 \
               KiB\"\nvolumes = { count = 2, family = \"gp3\", size = \"1 TiB\", iops = 4000, throughput = \"200 \
               MiB/s\" }\n[[volume]]\nname = \"log\"\nfamily = \"gp3\"\nsize = \"512 GiB\"\n";
    let terraform = made(Kind::Terraform, aws).text;
    for device in ["/dev/sdf", "/dev/sdg", "/dev/sdh"] {
        assert!(terraform.contains(&format!("device = \"{device}\"")), "{terraform}");
    }
    let words = "name => \"/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_${replace(volume.id, \"-\", \"\")}\"";
    assert!(terraform.contains(words), "{terraform}");
    if !has("bash") {
        return;
    }
    let fake = Fake::new();
    // The kernel numbers devices in any order, and device names have two forms.
    let nvme = "nvme0n1 vol0root /dev/xvda\nnvme1n1 AWS0local none\nnvme2n1 vol0c sdh\nnvme3n1 vol0a \
                /dev/sdf\nnvme4n1 vol0b sdg\n";
    fake.file("nvme", nvme);
    let id = |volume: &str| format!("/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_{volume}");
    let sizes: [(&str, u64); 3] = [("vol0a", 1 << 40), ("vol0b", 1 << 40), ("vol0c", 512 << 30)];
    for (volume, size) in sizes {
        fake.file(&format!("disks/{}", id(volume).replace('/', "_")), &format!(" {size}\n"));
    }
    let (a, b, c) = (id("vol0a"), id("vol0b"), id("vol0c"));
    let numbered = aws
        .replace("count = 2", "count = 2, luns = [0, 1]")
        .replace("name = \"log\"", "name = \"log\"\nlun = 2");
    let script = text(Kind::Mdadm, &numbered);
    let create = format!(
        "mdadm --create /dev/md/pool --level=0 --raid-devices=2 --chunk=64 --metadata=1.2 --name=pool {a} {b}"
    );
    let expect = [
        &format!("mkfs.xfs -q -L log {c}"),
        &create,
        "mkfs.xfs -q -d su=64k,sw=2 -L pool /dev/md/pool",
        "update-initramfs -u",
    ];
    check(&fake, &script, &[], &expect);
    // A volume that is not attached stops the script.
    fake.file("nvme", "nvme0n1 vol0root /dev/xvda\n");
    let (changed, said, fine) = fake.run(&script, &[]);
    assert!(!fine && changed.is_empty(), "{said}");
    assert!(said.contains("no volume is attached under this device name"), "{said}");
}

/// Windows numbers logical units of an NVMe controller from 1.
#[test]
fn storage_spaces_finds_disks_of_an_nvme_controller() {
    let scsi = made(Kind::StorageSpaces, &sized("E64ds_v5")).text;
    assert!(scsi.contains("$_.PhysicalLocation -match \"LUN $Lun$\""), "{scsi}");
    let nvme = made(Kind::StorageSpaces, &sized("E64bds_v6")).text;
    assert!(nvme.contains("$_.SCSILogicalUnit -eq $Lun + 1"), "{nvme}");
    assert!(!nvme.contains("PhysicalLocation"), "{nvme}");
}

/// Returns [`INSTANCE`] with an owned licence.
fn owned() -> String {
    INSTANCE.replace("storage = \"8 TiB\"", "storage = \"8 TiB\", licence_owned = true")
}

#[test]
fn an_owned_sql_server_licence_reaches_every_script() {
    for (kind, rented, is_owned) in [
        (Kind::Az, "--license-type LicenseIncluded", "--license-type BasePrice"),
        (Kind::Bicep, "licenseType: 'LicenseIncluded'", "licenseType: 'BasePrice'"),
        (
            Kind::Terraform,
            "license_type                 = \"LicenseIncluded\"",
            "license_type                 = \"BasePrice\"",
        ),
        (Kind::Powershell, "-LicenseType LicenseIncluded", "-LicenseType BasePrice"),
    ] {
        assert!(text(kind, INSTANCE).contains(rented), "{}", text(kind, INSTANCE));
        assert!(text(kind, &owned()).contains(is_owned), "{}", text(kind, &owned()));
        has_words(&text(kind, &owned()), "the SQL Server licence is owned");
    }
    let powershell = changed(Kind::Powershell, INSTANCE, &owned()).text;
    let line = "if ($instance.LicenseType -ne 'BasePrice') { $keys['LicenseType'] = 'BasePrice' }";
    assert!(powershell.contains(line), "{powershell}");
    if !has("bash") {
        return;
    }
    let fake = Fake::new();
    check(&fake, &text(Kind::Az, INSTANCE), &VARIABLES, &["az sql mi create sales"]);
    let (changed, said, fine) = fake.run(&text(Kind::Az, &owned()), &VARIABLES);
    assert!(fine && changed.is_empty(), "{said}");
    let words =
        "sales: has 8 vCores, 8192 GB, LicenseIncluded, the layout 8 vCores, 8192 GB, BasePrice";
    assert!(said.contains(words), "{said}");
    let update = self::changed(Kind::Az, INSTANCE, &owned()).text;
    check(&fake, &update, &VARIABLES, &["az sql mi update sales"]);
    let back = self::changed(Kind::Az, &owned(), INSTANCE).text;
    check(&fake, &back, &VARIABLES, &["az sql mi update sales"]);
}

#[test]
fn an_owned_windows_server_licence_reaches_every_script() {
    let rented = sized("D16s_v3");
    let owned = rented.replace("\"D16s_v3\" }", "\"D16s_v3\", licence_owned = true }");
    for kind in [Kind::Az, Kind::Bicep] {
        let made = |layout: &str| script(kind, layout, &windows()).expect("a script").text;
        let (without, with) = (made(&rented), made(&owned));
        assert!(!without.contains("Windows_Server"), "{without}");
        assert!(with.contains("Windows_Server"), "{with}");
        let error = script(kind, &owned, &Options::default()).expect_err("no script").to_string();
        let words = "licence_owned stands for a Windows Server licence, but the machine runs Linux; export with --os \
                     windows, or remove licence_owned";
        assert!(error.contains(words), "{error}");
    }
    let powershell = text(Kind::Powershell, &owned);
    assert!(powershell.contains("$machine.LicenseType -ne 'Windows_Server'"), "{powershell}");
    let terraform = text(Kind::Terraform, &owned);
    let output = "output \"license_type\" {\n  value = \"Windows_Server\"\n}";
    assert!(terraform.contains(output), "{terraform}");
    let powershell = changed(Kind::Powershell, &owned, &rented).text;
    assert!(powershell.contains("$machine.LicenseType = 'None'"), "{powershell}");
    if !has("bash") {
        return;
    }
    let fake = Fake::new();
    let new = script(Kind::Az, &owned, &windows()).expect("a script").text;
    check(&fake, &new, &VARIABLES, &POOL);
    let machine = || fs::read_to_string(fake.0.path().join("machines/db1")).expect("a machine");
    assert_eq!(machine(), "Standard_D16s_v3\tSCSI\tWindows_Server\n");
    let back = changed(Kind::Az, &owned, &rented).text;
    check(&fake, &back, &VARIABLES, &["az vm update db1"]);
    assert_eq!(machine(), "Standard_D16s_v3\tSCSI\tNone\n");
    let (changed, said, fine) = fake.run(&new, &VARIABLES);
    assert!(fine && changed.is_empty(), "{said}");
    let words =
        "db1: is Standard_D16s_v3 SCSI None, the layout has Standard_D16s_v3 SCSI Windows_Server";
    assert!(said.contains(words), "{said}");
}

/// Checks that one message names all missing variables.
#[test]
fn a_missing_variable_stops_the_script_before_any_change() {
    if !has("bash") {
        return;
    }
    let without = |layout: &str, missing: &[&str], words: &str| {
        let variables: Vec<_> =
            VARIABLES.into_iter().filter(|(name, _)| !missing.contains(name)).collect();
        let (changed, said, fine) = Fake::new().run(&text(Kind::Az, layout), &variables);
        assert!(!fine && changed.is_empty(), "{said}");
        assert!(said.contains(words), "{said}");
    };
    let rest = "The top of this script describes them; nothing has changed";
    let words = format!("these variables are not set: SSH_KEY SUBNET. {rest}");
    without(MACHINE, &["SSH_KEY", "SUBNET"], &words);
    let words = format!("these variables are not set: IMAGE ADMIN. {rest}");
    without(MACHINE, &["IMAGE", "ADMIN"], &words);
    without(MACHINE, &["LOCATION"], "LOCATION: set LOCATION to a location");
    let words = format!("these variables are not set: SUBNET ADMIN_ID. {rest}");
    without(INSTANCE, &["SUBNET", "ADMIN_ID"], &words);
    // With a name, az would create a network.
    let named: Vec<_> = VARIABLES
        .into_iter()
        .map(|(name, value)| (name, if name == "SUBNET" { "default" } else { value }))
        .collect();
    for layout in [MACHINE, INSTANCE] {
        let (changed, said, fine) = Fake::new().run(&text(Kind::Az, layout), &named);
        assert!(!fine && changed.is_empty(), "{said}");
        assert!(said.contains("SUBNET=default is not the id of a subnet"), "{said}");
    }
    // An existing machine needs none of them.
    let fake = Fake::new();
    check(&fake, &text(Kind::Az, &sized("D16s_v3")), &VARIABLES, &POOL);
    check(&fake, &text(Kind::Az, &sized("D16s_v3")), &VARIABLES[..3], &[]);
}

/// Checks that the fake `az` rejects forbidden machines and instances, so that the other tests can
/// fail.
#[test]
fn the_fake_azure_cli_rejects_what_no_script_may_create() {
    if !has("bash") {
        return;
    }
    let machine = text(Kind::Az, &sized("E64bds_v6"));
    let instance = text(Kind::Az, INSTANCE);
    for (script, from, to, words) in [
        (&machine, " --public-ip-address ''", "", "it would get a public IP address"),
        (&machine, " --public-ip-address ''", " --public-ip-address ip", "a public IP address"),
        (&machine, " --nsg-rule NONE", "", "it would get an open port"),
        (&machine, " --nsg-rule NONE", " --nsg-rule SSH", "it would get an open port"),
        (&machine, " --disk-controller-type NVMe", "", "Standard_E64bds_v6 boots with NVMe alone"),
        (&machine, " --subnet \"$SUBNET\"", "", "no subnet"),
        (&machine, " --ssh-key-values \"$SSH_KEY\"", "", "no SSH key"),
        (&instance, " --public-data-endpoint-enabled false", "", "a public endpoint"),
        (&instance, "--enable-ad-only-auth", "", "no administrator in Microsoft Entra ID"),
        (&instance, " --license-type LicenseIncluded", "", "no licence"),
    ] {
        assert!(script.contains(from), "no {from} in\n{script}");
        let (changed, said, fine) = Fake::new().run(&script.replace(from, to), &VARIABLES);
        assert!(!fine && said.contains(words), "{said}");
        assert!(changed.is_empty(), "{changed:?}");
    }
}

/// Checks that passwords among the arguments are found: by option and by value.
#[test]
fn a_password_among_the_arguments_is_noticed() {
    if !has("bash") {
        return;
    }
    let noticed = |arguments: &str, words: &str| {
        let script = text(Kind::Az, &sized("D16s_v3"));
        let from = "--ssh-key-values \"$SSH_KEY\"";
        assert!(script.contains(from), "{script}");
        let script = script.replace(from, arguments);
        let run = std::panic::catch_unwind(|| drop(Fake::new().run(&script, &VARIABLES)));
        let panic = run.expect_err("a panic");
        let message = panic.downcast_ref::<String>().expect("a message");
        assert!(message.contains(words), "{message}");
    };
    noticed("--admin-password x", "a password would follow --admin-password");
    let value = "--ssh-key-values \"$ADMIN_PASSWORD\"";
    noticed(value, "a password is an argument: it's $ecret");
}

/// Checks that only Windows machines have a password: a secure parameter of Bicep, or a prompt of
/// az.
#[test]
fn no_script_takes_a_password() {
    let next = INSTANCE.replace("2018", "now").replace("\"gp\"", "\"next-gen-gp\"");
    for kind in [Kind::Az, Kind::Bicep, Kind::Terraform, Kind::Powershell] {
        for layout in [MACHINE, INSTANCE, &next] {
            let text = text(kind, layout);
            let code: Vec<&str> = text
                .lines()
                .filter(|line| !line.starts_with(['#', '/']))
                .filter(|line| line.to_lowercase().contains("password"))
                .collect();
            let allowed: &[&str] = match (kind, layout == MACHINE) {
                (Kind::Bicep, true) => &["        disablePasswordAuthentication: true"],
                _ => &[],
            };
            assert_eq!(code, allowed, "{kind}: {text}");
        }
    }
    let bicep = script(Kind::Bicep, MACHINE, &windows()).expect("a script").text;
    assert!(bicep.contains("@secure()\nparam adminPassword string\n"), "{bicep}");
    assert_eq!(bicep.matches("param adminPassword").count(), 1, "{bicep}");
    let az = script(Kind::Az, MACHINE, &windows()).expect("a script").text;
    assert!(az.contains(" --authentication-type password "), "{az}");
    assert!(!az.contains("--admin-password"), "{az}");
}

#[test]
fn machines_and_instances_have_no_public_endpoint() {
    let bicep = text(Kind::Bicep, MACHINE);
    assert!(bicep.contains("securityRules: []"), "{bicep}");
    assert!(!bicep.contains("publicIP"), "{bicep}");
    assert!(bicep.contains("disablePasswordAuthentication: true"), "{bicep}");
    for (kind, words) in [
        (Kind::Az, "--public-data-endpoint-enabled false"),
        (Kind::Bicep, "publicDataEndpointEnabled: false"),
        (Kind::Terraform, "public_data_endpoint_enabled = false"),
    ] {
        assert!(text(kind, INSTANCE).contains(words), "{}", text(kind, INSTANCE));
    }
    // This switch is off by default.
    assert!(!text(Kind::Powershell, INSTANCE).contains("-PublicDataEndpointEnabled"));
    for (kind, words) in [
        (Kind::Az, "--enable-ad-only-auth"),
        (Kind::Bicep, "azureADOnlyAuthentication: true"),
        (Kind::Terraform, "azuread_authentication_only_enabled = true"),
        (Kind::Powershell, "-EnableActiveDirectoryOnlyAuthentication"),
    ] {
        assert!(text(kind, INSTANCE).contains(words), "{}", text(kind, INSTANCE));
    }
}

#[test]
fn an_operating_system_is_for_scripts_that_create_a_machine() {
    let refused = |kind: Kind, layout: &str, words: &str| {
        let error = script(kind, layout, &windows()).expect_err("no script").to_string();
        assert!(error.contains(words), "{kind}: {error}");
    };
    for kind in [Kind::Terraform, Kind::Powershell, Kind::Mdadm, Kind::Tsql] {
        let words = format!("--os windows: {kind} scripts do not use it");
        refused(kind, MACHINE, &words);
    }
    refused(Kind::Az, INSTANCE, "--os windows: this script creates no machine; leave it out");
    refused(Kind::Bicep, INSTANCE, "--os windows: this script creates no machine; leave it out");
    let larger = MACHINE.replace("P20", "P30");
    let error = changes(Kind::Az, MACHINE, &larger, &windows()).expect_err("no script").to_string();
    assert!(error.contains("--os windows: this script creates no machine"), "{error}");
    assert!(changes(Kind::Bicep, MACHINE, &larger, &windows()).is_ok());
}

/// Checks that the name of a size is quoted: a custom edition may contain anything.
#[test]
fn the_name_of_a_size_is_quoted() {
    if !has("bash") {
        return;
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../catalog/azure-now.toml");
    let text = fs::read_to_string(path).expect("the edition of Azure");
    let own = text.replacen("\"azure-now\"", "\"azure-own\"", 1).replace(
        "\"Standard_D16s_v3\"",
        "\"Standard_$(cd $FAKE; touch ran)`cd $FAKE; touch ran`\"",
    );
    let mut catalog = weir_catalog::Catalog::builtin();
    let edition = weir_catalog::Edition::from_toml("own.toml", &own).expect("an edition");
    catalog.add(edition).expect("new");
    let parse = |size: &str| {
        let text = sized(size).replace("azure-now", "azure-own");
        weir_layout::Layout::parse("l.toml", &text, &catalog).expect("a layout")
    };
    let (old, new) = (parse("D8s_v3"), parse("$(cd $FAKE; touch ran)`cd $FAKE; touch ran`"));
    let source = |layout| weir_export::Source { name: "l.toml", layout };
    let whole = weir_export::export(Kind::Az, source(&new), None, &Options::default());
    let change =
        weir_export::export(Kind::Az, source(&new), Some(source(&old)), &Options::default());
    for script in [whole, change] {
        let script = script.expect("a script").text;
        let fake = Fake::new();
        fs::create_dir(fake.0.path().join("machines")).expect("a folder");
        fake.file("machines/db1", "Standard_D8s_v3\tSCSI\tNone\n");
        let (_, said, _) = fake.run(&script, &VARIABLES);
        assert!(said.contains("$(cd $FAKE; touch ran)"), "{said}");
        assert!(!fake.0.path().join("ran").exists(), "{script}");
    }
}
