//! `weir export`: the script, the notes, where it is written, and what is refused.

use crate::common::{Place, run};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;

const LAYOUT: &str = "edition = \"azure-now\"\nhost = { size = \"D8s_v3\" }\n[[stripe]]\nname = \"pool\"\nunit = \
                      \"64 KiB\"\nvolumes = { count = 4, tier = \"P30\" }\n[[file]]\nname = \"data\"\ndatabase = \
                      \"sales\"\nrole = \"data\"\nsize = \"500 GiB\"\non = \"pool\"\n";

fn place() -> Place {
    let place = Place::new();
    place.file("layout.toml", LAYOUT);
    place.file("larger.toml", &LAYOUT.replace("P30", "P40").replace("500", "600"));
    place
}

fn export(place: &Place, args: &[&str]) -> (String, String, Option<i32>) {
    run(place.weir(&[&["export"], args].concat()))
}

#[test]
fn a_layout_becomes_a_script_for_every_kind() {
    let place = place();
    for kind in
        ["az", "bicep", "terraform", "powershell", "mdadm", "lvm", "storage-spaces", "fstab"]
    {
        let (stdout, stderr, code) = export(&place, &["layout.toml", "--as", kind]);
        assert_eq!((stderr.as_str(), code), ("", Some(0)), "{kind}");
        assert!(
            stdout
                .contains(&format!("--as {kind} from layout.toml (host host, edition azure-now)"))
        );
        let (again, _, _) = export(&place, &["layout.toml", "--as", kind]);
        assert_eq!(stdout, again);
    }
    let args =
        ["layout.toml", "--as", "tsql", "--mount", "pool=/data", "--name", "data=sales_data"];
    let (stdout, stderr, code) = export(&place, &args);
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    assert!(
        stdout.contains("ALTER DATABASE [sales] MODIFY FILE (NAME = N'sales_data', SIZE = 500GB);")
    );
}

#[test]
fn a_diff_tells_what_is_not_done_and_goes_to_a_file() {
    let place = place();
    let args = ["larger.toml", "--from", "layout.toml", "--as", "mdadm", "--out", "grow.sh"];
    let (stdout, stderr, code) = export(&place, &args);
    assert_eq!((stdout.as_str(), code), ("", Some(0)), "{stderr}");
    assert!(
        stderr.starts_with("note: pool: its disks grow to 8 TiB in total, from 4 TiB."),
        "{stderr}"
    );
    let script = fs::read_to_string(place.path("grow.sh")).expect("a script");
    assert!(script.contains("# NOT DONE: pool:"), "{script}");
    let (_, stderr, code) = export(&place, &["layout.toml", "--from", "layout.toml", "--as", "az"]);
    assert_eq!(code, Some(0));
    assert_eq!(stderr, "note: nothing to do: layout.toml and layout.toml are the same for az\n");
}

/// Terraform destroys resources that are missing from a module.
#[test]
fn a_module_is_whole_where_nothing_differs() {
    let place = place();
    for kind in ["bicep", "terraform"] {
        let args = ["layout.toml", "--from", "layout.toml", "--as", kind];
        let (stdout, stderr, code) = export(&place, &args);
        assert_eq!(code, Some(0), "{stderr}");
        assert!(stderr.starts_with("note: no changes: "), "{stderr}");
        assert!(stdout.contains("pool-3"), "{stdout}");
    }
    let aws = "edition = \"aws\"\n[[volume]]\nname = \"d\"\nfamily = \"gp3\"\nsize = \"100 GiB\"\n";
    place.file("aws.toml", aws);
    let args = ["layout.toml", "--from", "aws.toml", "--as", "terraform"];
    let (stdout, stderr, code) = export(&place, &args);
    assert_eq!((stdout.as_str(), code), ("", Some(2)), "{stderr}");
    assert!(stderr.contains("that of aws.toml is aws; disks of one cloud"), "{stderr}");
}

#[test]
fn a_script_replaces_no_layout() {
    let place = place();
    symlink(place.path("layout.toml"), place.path("link")).expect("a link");
    for (out, words) in [
        ("layout.toml", "it is an input layout"),
        ("./layout.toml", "it is an input layout"),
        ("larger.toml", "it is an input layout"),
        ("link", "it is a link, which would be replaced"),
        ("/dev/null", "it exists and is not a file"),
        ("-", "the script goes to standard output"),
    ] {
        let args = ["layout.toml", "--from", "larger.toml", "--as", "az", "--out", out];
        let (stdout, stderr, code) = export(&place, &args);
        assert_eq!((stdout.as_str(), code), ("", Some(2)), "{out}: {stderr}");
        assert!(stderr.contains(words), "{out}: {stderr}");
    }
    assert_eq!(fs::read_to_string(place.path("layout.toml")).expect("the layout"), LAYOUT);
}

/// The message has the given name, not that of a temporary file.
#[test]
fn an_unwritable_output_is_named() {
    let place = place();
    let expect = "weir: cannot write none/x: the folder none does not exist; make it first\n";
    let (stdout, stderr, code) = export(&place, &["layout.toml", "--as", "az", "--out", "none/x"]);
    assert_eq!((stdout.as_str(), stderr.as_str(), code), ("", expect, Some(3)));
    let need = ["plan", "--size", "100GiB", "--iops", "500", "--out", "none/x"];
    let (stdout, stderr, code) = run(place.weir(&need));
    assert_eq!((stdout.as_str(), stderr.as_str(), code), ("", expect, Some(3)));
    let (_, stderr, code) =
        export(&place, &["layout.toml", "--as", "az", "--out", "layout.toml/x"]);
    let expect = "weir: cannot write layout.toml/x: Not a directory (os error 20)\n";
    assert_eq!((stderr.as_str(), code), (expect, Some(3)));
}

#[test]
fn an_export_that_is_impossible_is_refused_in_one_line() {
    let place = place();
    let refused = |args: &[&str], words: &str| {
        let (stdout, stderr, code) = export(&place, args);
        assert_eq!((stdout.as_str(), code), ("", Some(2)), "{args:?}: {stderr}");
        assert!(stderr.contains(words), "{args:?}: {stderr}");
    };
    refused(&["layout.toml", "--as", "tsql"], "give it with --mount pool=PATH");
    refused(&["layout.toml", "--as", "az", "--database", "x"], "az scripts do not use it");
    refused(&["layout.toml", "--as", "perl"], "invalid value 'perl'");
    refused(&["layout.toml"], "--as <KIND>");
    refused(&["layout.toml", "--as", "az", "--zone", "1 2"], "--zone 1 2: it contains a space");
    refused(&["layout.toml", "--as", "az", "--location", ""], "--location: it is empty");
    refused(&["layout.toml", "--as", "az", "--name", "pool"], "write the name in the layout");
    refused(&["layout.toml", "--as", "lvm", "--device", "sdc"], "write NAME=/dev/..");
    refused(&["layout.toml", "--as", "az", "--os", "beos"], "invalid value 'beos' for '--os <OS>'");
    refused(&["layout.toml", "--as", "lvm", "--os", "linux"], "lvm scripts do not use it");
    let change = ["larger.toml", "--from", "layout.toml", "--as", "az", "--os", "windows"];
    refused(&change, "--os windows: this script creates no machine; leave it out");
    place.file("owned.toml", &LAYOUT.replace("\"D8s_v3\"", "\"D8s_v3\", licence_owned = true"));
    refused(
        &["owned.toml", "--as", "az"],
        "owned.toml: host \"host\" cannot be exported as az: licence_owned stands for a Windows Server licence",
    );
    place.file("wrong.toml", &LAYOUT.replace("\"D8s_v3\"", "\"D8s_v3\", licence_owned = 1"));
    refused(&["wrong.toml", "--as", "az"], "wrong.toml:2:43: invalid type: integer `1`");
    refused(
        &["layout.toml", "--as", "lvm", "--device", "/a{lun}", "--device", "/b{lun}"],
        "remove one of the two",
    );
    refused(&["none.toml", "--as", "az"], "cannot read none.toml");
    refused(&["layout.toml", "--as", "az", "--from", "none.toml"], "cannot read none.toml");
    place
        .file("single.toml", "edition = \"azure-now\"\n[[volume]]\nname = \"d\"\ntier = \"P10\"\n");
    refused(&["single.toml", "--as", "mdadm"], "nothing to export as mdadm: it has no [[stripe]]");
}

/// A plan onto a size with an NVMe interface is built with it, and its disks are found there.
#[test]
fn a_plan_for_nvme_is_built_with_nvme() {
    let place = Place::new();
    let need = [
        "plan",
        "--size",
        "8TiB",
        "--iops",
        "200000",
        "--edition",
        "azure-now",
        "--host",
        "ebdsv5-nvme/E96bds_v5",
        "--out",
        "plan.toml",
    ];
    let (stdout, stderr, code) = run(place.weir(&need));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let (stdout, stderr, code) = export(&place, &["plan.toml", "--as", "az"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("--size Standard_E96bds_v5 --disk-controller-type NVMe"), "{stdout}");
    let (stdout, stderr, code) = export(&place, &["plan.toml", "--as", "mdadm"]);
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    assert!(stdout.contains("check /dev/disk/azure/data/by-lun/0 "), "{stdout}");
}

/// An owned licence goes from the plan to the layout and the script, and survives a plan with `--keep`.
#[test]
fn a_licence_that_is_owned_goes_from_the_plan_to_the_script() {
    let place = Place::new();
    let need = ["plan", "--size", "300GiB", "--iops", "2000", "--edition", "azure-mi-now"];
    let planned = |more: &[&'static str], licence: &str| {
        let (stdout, stderr, code) = run(place.weir(&[&need[..], more].concat()));
        assert_eq!(code, Some(0), "{stdout}{stderr}");
        let out = more.last().expect("a file");
        let layout = fs::read_to_string(place.path(out)).expect("a layout");
        assert_eq!(layout.contains("licence_owned = true\n"), licence == "BasePrice", "{layout}");
        let (script, stderr, code) = export(&place, &[out, "--as", "az"]);
        assert_eq!(code, Some(0), "{stderr}");
        assert!(script.contains(&format!("--license-type {licence} ")), "{script}");
    };
    planned(&["--out", "rented.toml"], "LicenseIncluded");
    planned(&["--licence-owned", "--out", "owned.toml"], "BasePrice");
    planned(&["--keep", "owned.toml", "--out", "again.toml"], "BasePrice");
    planned(&["--keep", "rented.toml", "--out", "still.toml"], "LicenseIncluded");
    let update = ["owned.toml", "--from", "rented.toml", "--as", "az"];
    let (script, stderr, code) = export(&place, &update);
    assert_eq!(code, Some(0), "{stderr}");
    let line = "\ndiffers licence licenseType BasePrice --license-type BasePrice\n";
    assert!(script.contains(line), "{script}");
}

/// The numbers of disks in a script, by name.
fn numbers(script: &str, kind: &str) -> BTreeMap<String, u32> {
    let mut all = BTreeMap::new();
    let mut row = "";
    for line in script.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, lun) = match (kind, &words[..]) {
            ("az", ["attach", name, lun, _]) => (*name, *lun),
            ("terraform", ["lun", "=", lun]) => (row, *lun),
            ("terraform", [name, "=", "{"]) => {
                row = name.trim_matches('"');
                continue;
            }
            _ => continue,
        };
        // A value that is no number refers to the resource's table.
        if let Ok(lun) = lun.parse() {
            all.insert(name.to_owned(), lun);
        }
    }
    all
}

/// The layout of each plan is the layout in use at the next, as somebody would do it who never looks at
/// the machine again.
#[test]
fn plan_after_plan_moves_no_disk() {
    let place = Place::new();
    // By hand, without numbers, and not in the order in which a plan writes disks.
    place.file(
        "plan-0.toml",
        "edition = \"azure-now\"\n[host]\nsize = \"D16s_v3\"\n[[volume]]\nname = \"redo\"\ntier = \
         \"P20\"\n[[volume]]\nname = \"left\"\ntier = \"P30\"\n[[volume]]\nname = \"right\"\ntier = \
         \"P30\"\n[[stripe]]\nname = \"pool\"\nunit = \"64 KiB\"\nvolumes = [\"right\", \"left\"]\n\
         [[file]]\nname = \"redo-file\"\nrole = \"log\"\nsize = \"100 GiB\"\non = \"redo\"\n[[file]]\n\
         name = \"sales\"\nrole = \"data\"\nsize = \"800 GiB\"\non = \"pool\"\n",
    );
    let data = "edition = \"azure-now\"\nmax_disks = 16\n[data]\nsize = \"1 TiB\"\niops = 6000\n[log]\nsize = \
                \"100 GiB\"\niops = 500\n";
    let tempdb = format!("{data}[tempdb]\nsize = \"400 GiB\"\niops = 3000\n");
    let backup = format!("{}[backup]\nsize = \"1 TiB\"\n", tempdb.replace("1 TiB", "3 TiB"));
    let mut present = numbers(&export(&place, &["plan-0.toml", "--as", "az"]).0, "az");
    assert_eq!(present.len(), 3);
    for (at, need) in [data, &tempdb, &backup].iter().enumerate() {
        let (old, new) = (format!("plan-{at}.toml"), format!("plan-{}.toml", at + 1));
        place.file("need.toml", need);
        let args = ["plan", "--need", "need.toml", "--keep", &old, "--out", &new];
        let (stdout, stderr, code) = run(place.weir(&args));
        assert_eq!(code, Some(0), "{stdout}{stderr}");
        let text = fs::read_to_string(place.path(&new)).expect("a layout");
        assert!(text.contains("lun = "), "{text}");
        let from = ["--from", &old];
        let (script, stderr, code) =
            export(&place, &[&[new.as_str(), "--as", "terraform"], &from[..]].concat());
        assert_eq!(code, Some(0), "{stderr}");
        let module = numbers(&script, "terraform");
        for (name, lun) in &present {
            assert_eq!(module.get(name), Some(lun), "{name} moves in\n{script}");
        }
        let (script, stderr, code) =
            export(&place, &[&[new.as_str(), "--as", "az"], &from[..]].concat());
        assert_eq!(code, Some(0), "{stderr}");
        // It attaches what is new alone, under the numbers that the module has.
        let attached = numbers(&script, "az");
        assert!(attached.keys().all(|name| !present.contains_key(name)), "{script}");
        present.extend(attached);
        assert_eq!(present, module);
        // A whole export and the sum of the changes describe the same layout.
        let (script, _, _) = export(&place, &[&new, "--as", "terraform"]);
        assert_eq!(numbers(&script, "terraform"), present, "{script}");
    }
    assert!(present.len() > 4, "{present:?}");
}

#[test]
fn disks_of_other_clouds_are_exported_and_services_are_not() {
    let place = Place::new();
    let check = |args: &[&str], expect: Result<&str, &str>| {
        let rates = ["--iops", "3000", "--size", "500GiB", "--out", "plan.toml"];
        let (stdout, stderr, code) = run(place.weir(&[&["plan"], args, &rates].concat()));
        assert_eq!(code, Some(0), "{stdout}{stderr}");
        let (stdout, stderr, code) = export(&place, &["plan.toml", "--as", "terraform"]);
        match expect {
            Ok(words) => {
                assert_eq!((stderr.as_str(), code), ("", Some(0)));
                assert!(stdout.contains(words), "{stdout}");
            }
            Err(words) => {
                assert_eq!((stdout.as_str(), code), ("", Some(2)), "{stderr}");
                assert!(stderr.contains(words), "{stderr}");
            }
        }
    };
    let has_numbers = || {
        let text = fs::read_to_string(place.path("plan.toml")).expect("a layout");
        text.contains("lun = 0\n") || text.contains("luns = [0, ")
    };
    check(&["--edition", "aws"], Ok("resource \"aws_ebs_volume\""));
    assert!(has_numbers());
    // Google Cloud finds disks by name.
    check(&["--edition", "gcp"], Ok("resource \"google_compute_disk\""));
    assert!(!has_numbers());
    check(
        &["--edition", "aws", "--family", "rds"],
        Err("its server belongs to rds, which creates it"),
    );
    check(
        &["--edition", "azure-postgres"],
        Err("which creates it; scripts exist for virtual machines"),
    );
}
