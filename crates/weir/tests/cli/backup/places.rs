//! Sources that are not named, and places given as a layout, a server or a folder of data.

use super::{LAYOUT, Rig, id, pattern};
use crate::blob::Rig as BlobRig;
use crate::common::{Place, run};
use serde_json::Value;
use std::fs;

/// Returns the sources of a backup.
fn sources(rig: &Rig, report: &Value, place: &str) -> Vec<String> {
    let shown = rig.good(&format!("backup show {} --from {place} -o json", id(report)));
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    let sources = shown["sources"].as_array().expect("sources").iter();
    sources.map(|own| own["source"].as_str().expect("a name").to_owned()).collect()
}

/// Serves a layout with an ordinary folder `b` beside it.
fn serve(layout: &str) -> Rig {
    let place = Place::without_a_disk();
    let server = Some(place.serve(layout, &["--data", "d"]));
    fs::create_dir(place.path("b")).expect("a folder");
    Rig { place, server }
}

const VAULT: &str = "[[volume]]\nname = \"vault\"\nsize = \"32 MiB\"\nunlimited = true\n";

#[test]
fn volumes_for_backups_are_no_sources_unless_they_are_named() {
    let rig = serve(&format!("{LAYOUT}{VAULT}"));
    rig.write("data", 0, &pattern(1, 1 << 20));
    // The name says nothing of an empty volume.
    let report = rig.backup("--to b --copy-only");
    assert_eq!(sources(&rig, &report, "b"), ["data", "log", "vault"]);
    rig.backup("data --to vault");
    let report = rig.backup("--to b");
    assert_eq!(sources(&rig, &report, "b"), ["data", "log"]);
    let notes = report["notes"].to_string();
    let left_out = "left out as volumes for backups: backup1, backup2, vault; name them";
    assert!(notes.contains(left_out), "{notes}");
    // One that is named is a source.
    let report = rig.backup("vault data --to b --copy-only");
    assert_eq!(sources(&rig, &report, "b"), ["vault", "data"]);
}

#[test]
fn a_volume_that_is_not_served_is_missing_and_said_to_be() {
    let mut rig = serve(LAYOUT);
    rig.write("data", 0, &pattern(1, 1 << 20));
    rig.write("log", 0, &pattern(2, 1 << 20));
    drop(rig.server.take());
    fs::remove_file(rig.place.path("d/volumes/log/meta.json")).expect("the metadata");
    rig.server = Some(rig.place.serve(LAYOUT, &["--data", "d"]));
    let (stdout, stderr, code) = run(rig.place.weir(&["backup", "run", "--to", "b", "-o", "json"]));
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!((sources(&rig, &report, "b"), code), (vec!["data".to_owned()], Some(1)), "{stderr}");
    assert!(
        stderr.contains("warning: log is not in this backup, because it is not served: "),
        "{stderr}"
    );
    // One that is named is an error, as before.
    rig.refuse("log --to b", 2, "log is not served");
}

#[test]
fn a_server_of_volumes_for_backups_has_nothing_to_back_up() {
    let volume =
        |name: &str| format!("[[volume]]\nname = \"{name}\"\nsize = \"8 MiB\"\nunlimited = true\n");
    let rig = serve(&format!("{}{}", volume("backup1"), volume("backups")));
    let expect = "nothing to back up: every export of the server is a target or for backups \
                  (backups); name the exports to back up";
    rig.refuse("--to backup1", 2, expect);
    rig.refuse("--to b", 2, "(backup1, backups)");
}

#[test]
fn the_roles_of_a_layout_say_which_volumes_are_for_backups() {
    let file = |role: &str, on: &str| {
        format!(
            "[[file]]\nname = \"{role}-1\"\nrole = \"{role}\"\nsize = \"4 MiB\"\non = \"{on}\"\n"
        )
    };
    let layout = format!("{LAYOUT}{VAULT}{}{}", file("backup", "vault"), file("data", "backup2"));
    let rig = serve(&layout);
    // By its name, backup2 would be left out, and vault would not.
    let report = rig.backup("--layout layout.toml --to b");
    assert_eq!(sources(&rig, &report, "b"), ["data", "log", "backup2"]);
    let list = "backup list layout.toml";
    rig.bad("backup list b/layout.toml", 2, "cannot look for backups in b/layout.toml");
    rig.backup("data --to vault --copy-only --name kept");
    let listed: Value = serde_json::from_str(&rig.good(&format!("{list} -o json"))).expect("JSON");
    assert_eq!(listed["backups"][0]["name"], "kept");
}

#[test]
fn a_layout_as_a_place_stands_for_its_volumes_for_backups() {
    let mut rig = Rig::new();
    let data = rig.contents("data");
    rig.backup("data --to backup1 backup2 --stripes 3 --name sales");
    rig.backup("data --to b --name aside --copy-only");
    let names = |list: &str| {
        let list: Value = serde_json::from_str(list).expect("JSON");
        let all = list["backups"].as_array().expect("backups").iter();
        all.map(|own| own["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    // The running server lists them, with and without another place.
    assert_eq!(names(&rig.good("backup list layout.toml -o json")), ["sales"]);
    assert_eq!(names(&rig.good("backup list layout.toml b -o json")), ["sales", "aside"]);
    rig.server.take().expect("a server").stop();
    for args in ["layout.toml --data d", "layout.toml --layout layout.toml --data d"] {
        assert_eq!(names(&rig.good(&format!("backup list {args} -o json"))), ["sales"]);
    }
    assert!(rig.good("backup verify sales --from layout.toml --data d").contains("sound"));
    let restore = "restore sales --from layout.toml --to layout.toml --data d";
    rig.bad(restore, 2, "data is not empty; --force replaces what is there");
    rig.good(&format!("{restore} --force --prove"));
    rig.server = Some(rig.place.serve(LAYOUT, &["--data", "d"]));
    assert!(rig.contents("data") == data);
    // Without volumes for backups, without a layout, and other files.
    rig.place
        .file("none.toml", "[[volume]]\nname = \"data\"\nsize = \"1 MiB\"\nunlimited = true\n");
    rig.bad("backup list none.toml", 2, "none.toml has no volume for backups");
    rig.bad("backup list b --data d", 2, "--data d: give its layout with --layout FILE");
    rig.place.file("note.txt", "a letter");
    rig.bad("backup list note.txt", 2, "cannot look for backups in note.txt: it is no stripe");
    rig.place.file("broken.toml", "[[volume]]\nnane = \"data\"\n");
    rig.bad("backup list broken.toml", 2, "broken.toml:2:1: unknown field");
}

#[test]
fn the_server_of_the_places_can_be_another_than_that_of_the_targets() {
    let (from, to) = (Rig::new(), serve(LAYOUT));
    let data = from.contents("data");
    from.backup("data log --to backup1 --name sales");
    // A later change, which a restore to the wrong server would take back.
    from.write("data", 0, &pattern(9, 4096));
    let changed = from.contents("data");
    let control = from.place.path("control.sock");
    let source = format!("restore sales --from backup1 --from-control {}", control.display());
    to.good(&format!("{source} --control control.sock --prove"));
    assert!(to.contents("data") == data && to.contents("log") == from.contents("log"));
    assert!(from.contents("data") == changed, "the server of the places was written to");
    // To a layout that no server has, and to images.
    to.good(&format!("{source} --to layout.toml --data e --only log"));
    to.good(&format!("{source} --image images --only data"));
    assert!(fs::read(to.place.path("images/data.raw")).expect("an image") == data);
    // Without it, the places are asked of the server of the targets.
    to.bad("restore sales --from backup1 --control control.sock", 2, "no backup \"sales\"");
    let absent = "restore sales --from backup1 --from-control none.sock --control control.sock";
    to.bad(absent, 3, "none.sock");
}

#[test]
fn nothing_is_restored_into_the_data_of_a_running_server() {
    let rig = Rig::new();
    rig.backup("data --to b --name sales");
    let tree = |rig: &Rig| {
        let mut all = Vec::new();
        let mut folders = vec![rig.place.path("d")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                all.push(path.clone());
                if path.is_dir() {
                    folders.push(path);
                }
            }
        }
        all.sort();
        all
    };
    let (before, data) = (tree(&rig), rig.contents("data"));
    let refused = "the data folder of a weir server; give a folder elsewhere";
    let link = rig.place.path("link");
    std::os::unix::fs::symlink(rig.place.path("d/volumes"), link).expect("a link");
    for target in [
        "--image d",
        "--image d/new/images",
        "--image link/images",
        "--image b/../d/volumes/data --force",
        "--to layout.toml --data d/volumes/inner --force",
        "--to layout.toml --data link --force",
        "--prove --scratch d/volumes",
    ] {
        rig.bad(&format!("restore sales --from b {target}"), 2, refused);
    }
    let open = "restore sales --from b --to layout.toml --data d --force";
    rig.bad(open, 3, "in use");
    assert_eq!(tree(&rig), before, "something was made in the data folder");
    assert!(rig.contents("data") == data);
}

/// Page blobs are exports of the server: backed up while clients write them, and restored.
#[test]
fn page_blobs_of_a_running_server_are_backed_up_and_restored() {
    let blobs =
        BlobRig::new(Place::without_a_disk(), &format!("{LAYOUT}[blob]\n"), &["--data", "d"]);
    for container in ["disks", "backups"] {
        blobs.client.container(container);
    }
    blobs.client.page_blob("/disks/db.vhd", 4 << 20);
    blobs.client.put("/disks/db.vhd", 512, &pattern(4, 1 << 20));
    let (client, rig) = (blobs.client, Rig { place: blobs.place, server: Some(blobs.server) });
    fs::create_dir(rig.place.path("b")).expect("a folder");
    let before = client.get("/disks/db.vhd", 0, 4 << 20);
    rig.backup("disks.db.vhd --to b --verify --name blob");
    rig.restore("blob --from b", &[("disks.db.vhd", &before)]);
    // A change over REST.
    client.put("/disks/db.vhd", 2 << 20, &pattern(5, 4096));
    let after = client.get("/disks/db.vhd", 0, 4 << 20);
    let report = rig.backup("disks.db.vhd --to b --differential --verify --name blob");
    // Absent pages of the blob are not read, so this is less than a tracked range.
    assert_eq!(report["bytes_read"], 4096);
    rig.restore("blob --from b", &[("disks.db.vhd", &after)]);
    // Back into the blob itself.
    client.put("/disks/db.vhd", 0, &pattern(6, 8192));
    rig.good("restore blob --from b --control control.sock --force --prove");
    assert!(client.get("/disks/db.vhd", 0, 4 << 20) == after);
    // Stripes in page blobs of the same server are exports too, and no sources.
    let signed = client.signed_url();
    let (account, sas) = signed.split_once('?').expect("a signature");
    rig.place.file("sas", sas);
    let to = format!("--to {account}/backups --sas-file sas --page-blob");
    rig.backup(&format!("disks.db.vhd {to} --name blob"));
    let report = rig.backup("--to b --name all");
    assert_eq!(sources(&rig, &report, "b"), ["data", "log", "disks.db.vhd"]);
    let stripe = report["notes"].to_string();
    assert!(stripe.contains("backups.blob-"), "{stripe}");
}

/// Each verb takes the signature of a container from a file, and says so where there is none.
#[test]
fn a_signature_in_a_file_does_for_each_verb() {
    let blobs =
        BlobRig::new(Place::without_a_disk(), &format!("{LAYOUT}[blob]\n"), &["--data", "d"]);
    blobs.client.container("backups");
    let signed = blobs.client.signed_url();
    let (account, sas) = signed.split_once('?').expect("a signature");
    let url = format!("{account}/backups");
    blobs.place.file("sas", sas);
    let rig = Rig { place: blobs.place, server: Some(blobs.server) };
    rig.write("data", 0, &pattern(1, 1 << 20));
    rig.backup(&format!("data --to {url} --sas-file sas --name far"));
    rig.backup(&format!("data --to {url} --sas-file sas --name far --differential"));
    for verb in [
        format!("backup list {url}"),
        format!("backup show far --from {url}"),
        format!("backup verify far --from {url}"),
        format!("restore far --from {url} --prove"),
        format!("backup prune {url} --keep-last 1"),
    ] {
        rig.good(&format!("{verb} --sas-file sas"));
        let (_, stderr, code) = run(rig.weir(&verb));
        assert!(
            code != Some(0) && stderr.contains("give one with --sas-file FILE"),
            "{verb}: {stderr}"
        );
    }
}

/// Files of a managed instance are volumes of their own.
#[test]
fn files_of_a_managed_instance_are_backed_up_and_restored() {
    let layout = "edition = \"azure-mi-2018\"\n\
        host = { managed_instance = \"gp\", vcores = 8, storage = \"1 TiB\" }\n\
        [[file]]\nname = \"sales-data\"\ndatabase = \"sales\"\nrole = \"data\"\nsize = \"2 GiB\"\n\
        [[file]]\nname = \"sales-log\"\ndatabase = \"sales\"\nrole = \"log\"\nsize = \"1 GiB\"\n";
    let rig = serve(layout);
    let (data, log) = (pattern(1, 1 << 20), pattern(2, 256 << 10));
    rig.write("sales-data", 1 << 30, &data);
    rig.write("sales-log", 0, &log);
    let report = rig.backup("--to b --stripes 2 --verify --name sales");
    assert_eq!(sources(&rig, &report, "b"), ["sales-data", "sales-log"]);
    rig.good("restore sales --from b --image images --prove");
    let image = |name: &str, size: u64, offset: u64, expect: &[u8]| {
        let file = fs::File::open(rig.place.path("images").join(name)).expect("an image");
        assert_eq!(file.metadata().expect("a file").len(), size, "{name}");
        let mut bytes = vec![0; expect.len()];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, offset).expect("bytes");
        assert!(bytes == expect, "{name}");
    };
    image("sales-data.raw", 2 << 30, 1 << 30, &data);
    image("sales-log.raw", 1 << 30, 0, &log);
    // Only what changed since, and back into the files themselves.
    rig.write("sales-log", 512 << 10, &pattern(3, 4096));
    let before = rig.contents("sales-log");
    let report = rig.backup("--to b --differential --name sales");
    assert!(report["bytes_read"].as_u64().expect("bytes") <= 256 << 10, "{report}");
    rig.write("sales-log", 0, &pattern(4, 64 << 10));
    rig.good("restore sales --from b --control control.sock --force");
    assert!(rig.contents("sales-log") == before);
}
