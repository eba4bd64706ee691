//! Parsers of each language read all scripts, and reject broken ones.

use crate::common::{INSTANCE, MACHINE, changes, layout, mounts, options_for, pairs, script};
use crate::tools::{feed, has, is_there};
use hcl_edit::structure::{Block, Body, Structure};
use tree_sitter::{Language, Node, Parser};
use weir_export::{Kind, Options};

/// The error of each text, if any.
pub(crate) type Wrong = Vec<Option<String>>;

/// Names with special characters of the languages.
pub(crate) const HOSTILE: [&str; 7] = [
    "it's ] -- x",
    "a]]b\"c",
    "$(touch /tmp/x) `id`",
    "${x} %{y} #{z}",
    "a\\b\\'; DROP TABLE t; --",
    "\u{2019}; Remove-Item x; \u{2019}",
    "{{ jinja }} 日本 */ /*",
];

/// Returns scripts of one kind, for layouts and options of all forms.
fn scripts(kind: Kind) -> Vec<String> {
    let bought = MACHINE.replace(
        "tier = \"P20\"",
        "family = \"premium-ssd-v2\"\nsize = \"200 GiB\"\niops = 8000\nthroughput = \"300 MB/s\"",
    );
    let tuned = MACHINE
        .replace("tier = \"P20\"", "tier = \"P40\"\nperformance_plus = true")
        .replace("count = 4, tier = \"P30\"", "count = 3, tier = \"P30\", on_demand_burst = true");
    let raised = MACHINE.replace("tier = \"P20\"", "tier = \"P20\"\nperformance_tier = \"P40\"");
    let next = "edition = \"azure-mi-now\"\nhost = { managed_instance = \"next-gen-gp\", vcores = 8, \
                storage = \"1 TiB\", iops = 6000 }\n[[file]]\nname = \"data\"\nrole = \"data\"\nsize = \
                \"500 GiB\"\n";
    let smaller = MACHINE
        .replace("P20", "P15")
        .replace("count = 4", "count = 2")
        .replace("name = \"data-2\"", "name = \"data-9\"");
    let mut all = Vec::new();
    let mut push = |script: Result<weir_export::Export, weir_export::ExportError>| {
        if let Ok(script) = script {
            all.push(script.text);
        }
    };
    let owned = INSTANCE.replace("vcores = 8", "vcores = 8, licence_owned = true");
    let nvme = MACHINE.replace("D16s_v3", "E16ds_v6").replace(", cache = \"read-only\"", "");
    if let Some(own) = crate::backups::scripts(kind) {
        return own;
    }
    for text in [MACHINE, INSTANCE, &bought, &tuned, &raised, next, &owned, &nvme, AWS, GOOGLE] {
        push(script(kind, text, &options_for(kind, &layout(text))));
    }
    let windows = Options {
        os: Some(weir_export::OperatingSystem::Windows),
        ..options_for(kind, &layout(MACHINE))
    };
    let licensed = nvme.replace("\"E16ds_v6\"", "\"E16ds_v6\"\nlicence_owned = true");
    push(script(kind, &licensed, &windows));
    let options = options_for(kind, &layout(MACHINE));
    for (old, new) in [
        (&smaller[..], MACHINE),
        (MACHINE, &smaller),
        (MACHINE, &bought),
        (MACHINE, MACHINE),
        (MACHINE, &nvme),
        (&nvme, &licensed),
        (INSTANCE, &owned),
    ] {
        push(changes(kind, old, new, &options));
    }
    for (old, new) in updates() {
        push(changes(kind, &old, &new, &options));
    }
    push(script(kind, MACHINE, &mounts()));
    push(changes(
        kind,
        INSTANCE,
        &INSTANCE.replace("vcores = 8", "vcores = 16"),
        &Options::default(),
    ));
    let gp = INSTANCE.replace("2018", "now").replace("8 TiB", "1 TiB");
    let bc = gp.replace("\"gp\"", "\"bc\"").replace("vcores = 8", "vcores = 16");
    for (old, new) in [(&gp[..], next), (next, &bc), (&bc, &gp)] {
        push(changes(kind, old, new, &Options::default()));
    }
    for name in HOSTILE {
        for options in hostile(kind, name) {
            let text = if options.database.is_some() { INSTANCE } else { MACHINE };
            push(script(kind, text, &options));
        }
    }
    all
}

/// Returns changes of disks in use: each alone, and all together.
fn updates() -> Vec<(String, String)> {
    let log = |keys: &str| MACHINE.replace("tier = \"P20\"", keys);
    let bought = |iops: u32| {
        log(&format!(
            "family = \"premium-ssd-v2\"\nsize = \"200 GiB\"\niops = {iops}\nthroughput = \"300 MB/s\""
        ))
    };
    let old = MACHINE.to_owned();
    let all = log("tier = \"P60\"\nperformance_tier = \"P70\"")
        .replace("read-only", "none")
        .replace("tier = \"P30\"", "tier = \"P30\", on_demand_burst = true");
    vec![
        (bought(8000), bought(9000)),
        (old.clone(), log("tier = \"P20\"\nperformance_tier = \"P40\"")),
        (old.clone(), log("tier = \"P20\"\ncache = \"read-only\"")),
        (old.clone(), log("tier = \"P60\"")),
        (old, all),
    ]
}

/// Returns options with a hostile name.
fn hostile(kind: Kind, name: &str) -> Vec<Options> {
    let own = |value: &str| Some(value.to_owned());
    let none = Options::default;
    let pool = |path: String| pairs(&[("pool", &path), ("log", "/l"), ("scratch", "/s")]);
    match kind {
        Kind::Tsql => vec![
            Options { database: own(name), ..none() },
            Options {
                names: pairs(&[("data-1", name)]),
                mounts: pool(format!("/{name}")),
                ..none()
            },
        ],
        Kind::Az | Kind::Bicep | Kind::Terraform | Kind::Powershell => vec![
            // A zone cannot contain spaces.
            Options {
                machine: own(name),
                location: own(name),
                zone: own(&name.replace(' ', "")),
                ..none()
            },
            Options { resource_group: own(name), ..none() },
        ],
        Kind::Mdadm | Kind::Lvm => {
            vec![Options { device_pattern: Some(format!("/dev/{name}{{lun}}")), ..none() }]
        }
        Kind::StorageSpaces => vec![Options { names: pairs(&[("pool", name)]), ..none() }],
        Kind::Fstab => vec![Options { mounts: pairs(&[("pool", &format!("/{name}"))]), ..none() }],
        Kind::TsqlBackup | Kind::Ola | Kind::Dbatools | Kind::Pgbackrest => {
            vec![crate::backups::options(kind, name)]
        }
    }
}

/// Checks that all scripts of a kind are valid, and the broken ones are not.
pub(crate) fn check(
    kind: Kind,
    least: usize,
    wrong: fn(&[String]) -> Wrong,
    broken: &[(&str, &str)],
) {
    check_scripts(kind, &scripts(kind), least, wrong, broken);
}

fn check_scripts(
    kind: Kind,
    scripts: &[String],
    least: usize,
    wrong: fn(&[String]) -> Wrong,
    broken: &[(&str, &str)],
) {
    assert!(scripts.len() >= least, "{kind}: only {} scripts", scripts.len());
    let all = wrong(scripts);
    assert_eq!(all.len(), scripts.len(), "{kind}: not every script was read");
    for (script, what) in scripts.iter().zip(all) {
        if let Some(what) = what {
            panic!("{kind}: {what}\n{script}");
        }
    }
    let broken_scripts: Vec<String> = broken
        .iter()
        .map(|(from, to): &(&str, &str)| {
            let script = scripts.iter().find(|script| script.contains(from));
            script.unwrap_or_else(|| panic!("{kind}: no {from}")).replacen(from, to, 1)
        })
        .collect();
    for ((from, to), what) in broken.iter().zip(wrong(&broken_scripts)) {
        assert!(what.is_some(), "{kind}: {to} passed for {from}");
    }
}

pub(crate) fn each(texts: &[String], wrong: fn(&str) -> Option<String>) -> Wrong {
    texts.iter().map(|text| wrong(text)).collect()
}

/// Returns the Python with sqlfluff: `WEIR_TEST_PYTHON` or the default one.
pub(crate) fn sqlfluff() -> Option<String> {
    let python = std::env::var("WEIR_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let (_, found) = feed(&python, &["-c", "import sqlfluff"], "");
    is_there(found, "sqlfluff for Python").then_some(python)
}

/// All texts in one run, because starting takes longer than parsing.
const SQLFLUFF: &str = r#"
import sys
from sqlfluff.core import FluffConfig, Linter
linter = Linter(config=FluffConfig(overrides={"dialect": "tsql", "templater": "raw"}))
for text in sys.stdin.read().split("\0"):
    parsed = linter.parse_string(text)
    problems = [str(one) for one in parsed.violations]
    if parsed.tree is None or "unparsable" in parsed.tree.type_set():
        problems.append("unparsable")
    sys.stdout.write(" ".join(problems).replace("\0", "") + "\0")
"#;

pub(crate) fn wrong_tsql(texts: &[String]) -> Wrong {
    let python = sqlfluff().expect("it is there");
    // The dialect lacks ADD LOG FILE, whose keys are those of ADD FILE, and ]] in brackets.
    let texts: Vec<String> = texts
        .iter()
        .map(|text: &String| text.replace(" ADD LOG FILE (", " ADD FILE (").replace("]]", ""))
        .collect();
    let (said, fine) = feed(&python, &["-c", SQLFLUFF], &texts.join("\0"));
    assert!(fine, "{said}");
    let all = said.split('\0').take(texts.len());
    all.map(|problem| (!problem.is_empty()).then(|| problem.to_owned())).collect()
}

#[test]
fn tsql_is_read_by_sqlfluff() {
    if sqlfluff().is_none() {
        return;
    }
    check(
        Kind::Tsql,
        18,
        wrong_tsql,
        &[
            ("SIZE = 500GB)", "SIZE = 500 GBB)"),
            ("(NAME = N'data-1', SIZE", "(NAME = N'data-1' SIZE"),
            (" ADD FILE (", " ADD FILE "),
            ("\\data-2.ndf', SIZE", "\\da'ta-2.ndf', SIZE"),
            ("[sales] MODIFY", "[sa]les] MODIFY"),
            ("END;", "END END;"),
            ("IF NOT EXISTS (SELECT 1", "IF NOT EXISTS SELECT 1"),
        ],
    );
}

/// Returns the errors of bash and shellcheck.
fn wrong_shell(text: &str) -> Option<String> {
    let (said, fine) = feed("bash", &["-n"], text);
    if !fine {
        return Some(said);
    }
    // Dollar signs, backslashes and typographic quotes in single quotes are intended.
    let args = ["--shell=bash", "--severity=style", "--exclude=SC2016,SC1003,SC1112", "-"];
    let (said, fine) = feed("shellcheck", &args, text);
    (!fine).then_some(said)
}

#[test]
fn shell_is_read_by_shellcheck() {
    if !has("shellcheck") || !has("bash") {
        return;
    }
    let broken = [("set -euo pipefail", "set -euo pipefail\nif true; then")];
    check(
        Kind::Az,
        20,
        |all| each(all, wrong_shell),
        &[
            broken[0],
            ("local name=$1 gib=$2 size", "local name=$1 gib=$2 size; rm $name"),
            ("MACHINE=", "UNUSED="),
            ("local name=$1 query=$2 value=$3 now", "local name=$1 query=$2 values=$3 now"),
            ("stop() {", "stop() {{"),
            ("needs IMAGE ADMIN", "needs $IMAGE ADMIN"),
            ("wanted=", "want="),
        ],
    );
    let words =
        [broken[0], ("wipefs --no-act --noheadings \"$1\"", "wipefs --no-act --noheadings $1")];
    let ebs = ("ebsnvme-id --block-dev \"/dev/$device\"", "ebsnvme-id --block-dev /dev/$device");
    let words = [&words[..], &[ebs]].concat();
    check(Kind::Mdadm, 12, |all| each(all, wrong_shell), &words);
    check(Kind::Lvm, 12, |all| each(all, wrong_shell), &words);
}

/// Returns the first node that the grammar cannot parse.
fn first_error<'a>(node: Node<'a>) -> Option<Node<'a>> {
    if node.is_error() || node.is_missing() {
        return Some(node);
    }
    let mut cursor = node.walk();
    let children: Vec<Node<'a>> = node.children(&mut cursor).collect();
    children.into_iter().find_map(first_error)
}

fn wrong_for(language: &Language, text: &str) -> Option<String> {
    let mut parser = Parser::new();
    parser.set_language(language).expect("a grammar");
    let tree = parser.parse(text, None).expect("a tree");
    let error = first_error(tree.root_node())?;
    let line = text.lines().nth(error.start_position().row).unwrap_or_default();
    Some(format!("line {}: {line}", error.start_position().row + 1))
}

fn wrong_bicep(text: &str) -> Option<String> {
    wrong_for(&tree_sitter_bicep::LANGUAGE.into(), text)
}

#[test]
fn bicep_is_read_by_its_grammar() {
    check(
        Kind::Bicep,
        15,
        |all| each(all, wrong_bicep),
        &[
            ("diskSizeGB: ", "diskSizeGB "),
            ("dataDisks: [", "dataDisks: {"),
            ("createOption: 'Empty'", "createOption: 'Empty"),
            ("param location string", "param location = string ="),
            ("diskControllerType: 'NVMe'", "diskControllerType 'NVMe'"),
            ("publicKeys: [", "publicKeys: {"),
        ],
    );
}

pub(crate) fn wrong_powershell(text: &str) -> Option<String> {
    // The grammar requires a statement; `changes` checks that there are only comments.
    if text.lines().all(|line| line.is_empty() || line.starts_with('#')) {
        return None;
    }
    wrong_for(&tree_sitter_powershell::LANGUAGE.into(), text)
}

#[test]
fn powershell_is_read_by_its_grammar() {
    check(
        Kind::Powershell,
        20,
        |all| each(all, wrong_powershell),
        &[
            ("if (-not $disk) {", "if (-not $disk {"),
            ("-Caching 'None'", "-Caching 'None"),
            ("param(", "param(,"),
            ("-Config @{ DiskSizeGB = 8192 }", "-Config @( DiskSizeGB = 8192 }"),
            ("trap {", "trap {{"),
        ],
    );
    check(
        Kind::StorageSpaces,
        7,
        |all| each(all, wrong_powershell),
        &[("$disks = @(", "$disks = @{"), ("'pool'", "'po'ol'")],
    );
}

/// The attributes of resources in azurerm 4 (as `@cdktf/provider-azurerm` 14.23.1 lists them),
/// azapi 2, aws 5.99 (`@cdktf/provider-aws` 19.65.0) and google 6.36 (`@cdktf/provider-google`
/// 14.35.0).
const ATTRIBUTES: [(&str, &str); 11] = [
    (
        "aws_ebs_volume",
        "for_each availability_zone encrypted final_snapshot iops kms_key_id multi_attach_enabled outpost_arn \
         size snapshot_id tags throughput type",
    ),
    (
        "aws_volume_attachment",
        "for_each device_name force_detach instance_id skip_destroy stop_instance_before_detaching volume_id",
    ),
    ("aws_instance", "instance_id instance_tags tags"),
    (
        "google_compute_disk",
        "for_each access_mode description labels name physical_block_size_bytes project provisioned_iops \
         provisioned_throughput size type zone",
    ),
    (
        "google_compute_attached_disk",
        "for_each device_name disk instance interface mode project zone",
    ),
    ("google_compute_instance", "name project zone self_link"),
    (
        "azurerm_managed_disk",
        "for_each name resource_group_name location zone create_option storage_account_type disk_size_gb tier \
         disk_iops_read_write disk_mbps_read_write on_demand_bursting_enabled performance_plus_enabled",
    ),
    (
        "azurerm_virtual_machine_data_disk_attachment",
        "for_each managed_disk_id virtual_machine_id lun caching",
    ),
    (
        "azurerm_mssql_managed_instance",
        "name resource_group_name location subnet_id public_data_endpoint_enabled license_type sku_name vcores \
         storage_size_in_gb",
    ),
    ("azapi_update_resource", "type resource_id body"),
    ("azurerm_virtual_machine", "name resource_group_name"),
];

fn wrong_terraform(text: &str) -> Option<String> {
    let body: Body = match text.parse() {
        Ok(body) => body,
        Err(error) => return Some(format!("{error}")),
    };
    for block in body.get_blocks("resource").chain(body.get_blocks("data")) {
        let Some(kind) = block.labels.first().map(|label| label.as_str().to_owned()) else {
            return Some(format!("a {} without labels", block.ident.as_str()));
        };
        let Some((_, known)) = ATTRIBUTES.iter().find(|(name, _)| *name == kind) else {
            return Some(format!("no resource {kind}"));
        };
        let known: Vec<&str> = known.split_whitespace().collect();
        for part in &block.body {
            let wrong = match part {
                Structure::Attribute(own) => {
                    (!known.contains(&own.key.as_str())).then(|| own.key.as_str().to_owned())
                }
                Structure::Block(own) => wrong_block(own),
            };
            if let Some(wrong) = wrong {
                return Some(format!("{kind} has no {wrong}"));
            }
        }
    }
    wrong_rows(text)
}

/// The attributes of blocks within resources, of the same versions.
const BLOCKS: [(&str, &str); 2] = [
    ("lifecycle", "prevent_destroy"),
    (
        "azure_active_directory_administrator",
        "azuread_authentication_only_enabled login_username object_id principal_type tenant_id",
    ),
];

fn wrong_block(block: &Block) -> Option<String> {
    let name = block.ident.as_str();
    let Some((_, known)) = BLOCKS.iter().find(|(own, _)| *own == name) else {
        return Some(name.to_owned());
    };
    let known: Vec<&str> = known.split_whitespace().collect();
    block.body.iter().find_map(|part| match part {
        Structure::Attribute(own) if known.contains(&own.key.as_str()) => None,
        Structure::Attribute(own) => Some(format!("{name}.{}", own.key.as_str())),
        Structure::Block(own) => Some(format!("{name}.{}", own.ident.as_str())),
    })
}

/// Returns an error if a row lacks an attribute that the resources use.
fn wrong_rows(text: &str) -> Option<String> {
    let taken = text
        .split("each.value.")
        .skip(1)
        .filter_map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next());
    let keys = |row: &str| -> Vec<String> {
        let lines = row.lines().filter_map(|line| line.trim().split_once(" = "));
        lines.map(|(key, _)| key.trim().to_owned()).collect()
    };
    let rows =
        || text.split("\" = {\n      ").skip(1).filter_map(|rest| rest.split("\n    }").next());
    taken.filter(|_| text.contains("\n  disks = {")).find_map(|key| {
        let lacks = rows().find(|row| !keys(row).iter().any(|own| own == key))?;
        Some(format!("a row has no {key}: {lacks}"))
    })
}

/// Disks of all forms of AWS and Google Cloud, and their changes.
const AWS: &str = r#"
edition = "aws"
[host]
size = "m5.4xlarge"
[[volume]]
name = "log"
family = "io2"
size = "100 GiB"
iops = 5000
[[volume]]
name = "scratch"
place = "local"
size = "10 GiB"
unlimited = true
[[stripe]]
name = "pool"
unit = "64 KiB"
volumes = { count = 4, family = "gp3", size = "1 TiB", iops = 4000, throughput = "200 MiB/s" }
"#;

const GOOGLE: &str = r#"
edition = "gcp"
[host]
unlimited = true
[[volume]]
name = "log"
family = "hyperdisk-extreme"
size = "100 GiB"
iops = 5000
[[stripe]]
name = "pool"
unit = "64 KiB"
volumes = { count = 4, family = "hyperdisk-balanced", size = "1 TiB", iops = 4000, throughput = "200 MiB/s" }
"#;

const PERSISTENT: &str = "edition = \"gcp\"\n[host]\nsize = \"n2-standard-8\"\n[[volume]]\nname = \"data\"\nfamily \
                          = \"pd-ssd\"\nsize = \"200 GiB\"\n[[volume]]\nname = \"log\"\nfamily = \"pd-ssd\"\nsize = \
                          \"100 GiB\"\n";

/// Returns modules of these layouts and of their changes, with and without options.
fn modules(texts: &[&str], machine: &str) -> Vec<String> {
    let own = |options: &Options| {
        let all = texts.iter().map(|text| script(Kind::Terraform, text, options));
        all.map(|made| made.expect("a script").text).collect::<Vec<_>>()
    };
    let mut all = own(&Options::default());
    all.extend(own(&Options { machine: Some(machine.to_owned()), ..Options::default() }));
    for old in texts {
        for new in texts {
            let made = changes(Kind::Terraform, old, new, &Options::default());
            all.push(made.expect("a script").text);
        }
    }
    all
}

#[test]
fn terraform_of_aws_is_read_by_a_parser_of_its_language() {
    let less = AWS.replace("count = 4", "count = 2").replace("1 TiB", "512 GiB");
    let other =
        AWS.replace("family = \"io2\"", "family = \"io1\"").replace("200 MiB/s", "201 MiB/s");
    let mut all = modules(&[AWS, &less, &other], "i-0123456789abcdef0");
    for name in HOSTILE {
        let options = Options { names: pairs(&[("log", name)]), ..Options::default() };
        all.extend(script(Kind::Terraform, AWS, &options).map(|made| made.text));
    }
    check_scripts(
        Kind::Terraform,
        &all,
        15,
        |all| each(all, wrong_terraform),
        &[
            ("locals {", "locals {{"),
            ("availability_zone ", "zone "),
            ("\"aws_ebs_volume\"", "\"aws_volume\""),
            ("resource \"aws_ebs_volume\" \"disk\"", "resource"),
            ("device_name ", "device "),
            ("      device = ", "      devices = "),
            ("each.value.mibps", "each.value.throughput"),
            ("volume.id }", "volume.id"),
        ],
    );
}

#[test]
fn terraform_of_google_cloud_is_read_by_a_parser_of_its_language() {
    let less = GOOGLE.replace("count = 4", "count = 2").replace("1 TiB", "512 GiB");
    let other = GOOGLE.replace("hyperdisk-extreme", "hyperdisk-balanced");
    let mut all = modules(&[GOOGLE, &less, &other], "db1");
    all.extend(modules(&[PERSISTENT, &PERSISTENT.replace("200 GiB", "300 GiB")], "db1"));
    let zone = Options { zone: Some("${it's}".to_owned()), ..Options::default() };
    all.push(script(Kind::Terraform, PERSISTENT, &zone).expect("a script").text);
    check_scripts(
        Kind::Terraform,
        &all,
        20,
        |all| each(all, wrong_terraform),
        &[
            ("  disks = {", "  disks = ["),
            ("provisioned_throughput ", "throughput "),
            ("\"google_compute_disk\"", "\"google_disk\""),
            ("\"$${it's}\"", "\"${it's}\""),
            ("each.value.iops", "each.value.rate"),
        ],
    );
}

#[test]
fn terraform_is_read_by_a_parser_of_its_language() {
    check(
        Kind::Terraform,
        15,
        |all| each(all, wrong_terraform),
        &[
            ("locals {", "locals {{"),
            ("lun      = ", "lun      == "),
            ("storage_account_type", "storage_type"),
            ("\"azurerm_managed_disk\"", "\"azurerm_disk\""),
            ("for_each = local.disks", "for_each = "),
            ("azure_active_directory_administrator", "entra_administrator"),
            ("login_username ", "user_name "),
        ],
    );
}

/// Checks the form of the lines; the devices do not exist on the test machine.
fn wrong_fstab(text: &str) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("fstab");
    std::fs::write(&path, text).expect("a file");
    let path = path.display().to_string();
    let (said, _) = feed("findmnt", &["--verify", "--verbose", "--tab-file", &path], "");
    if !said.contains("0 parse errors") && !said.contains("Success, no errors") {
        return Some(said);
    }
    let fields = |line: &str| line.split_whitespace().count();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter(|line| fields(line) != 6).map(str::to_owned).next()
}

#[test]
fn mounts_are_read_by_findmnt() {
    if !has("findmnt") {
        return;
    }
    check(
        Kind::Fstab,
        7,
        |all| each(all, wrong_fstab),
        &[
            ("LABEL=log /mnt/log xfs", "LABEL=log"),
            ("defaults,noatime,nofail 0 0", "defaults,noatime, nofail 0 0"),
        ],
    );
}

/// Checks that each language reads a quoted name as the name.
#[test]
fn a_shell_reads_the_name_that_was_given() {
    if !has("bash") {
        return;
    }
    for name in HOSTILE {
        let options = Options { machine: Some(name.to_owned()), ..Options::default() };
        let text = script(Kind::Az, MACHINE, &options).expect("a script").text;
        let line = text.lines().find(|line| line.starts_with("MACHINE=")).expect("a line");
        let (said, fine) = feed("bash", &["-c", &format!("{line}\nprintf %s \"$MACHINE\"")], "");
        assert_eq!((said.as_str(), fine), (name, true));
    }
}
