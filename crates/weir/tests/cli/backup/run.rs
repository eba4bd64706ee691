//! `weir backup run`, to each kind of target, and back by `weir restore`.

use super::{LAYOUT, Rig, id, pattern};
use crate::blob::Rig as BlobRig;
use crate::common::{Place, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::process::Stdio;

#[test]
fn a_backup_goes_to_files_in_two_folders() {
    let rig = Rig::new();
    let (data, log) = (rig.contents("data"), rig.contents("log"));
    let report = rig.backup("data log --to b c --stripes 5 --verify --name sales --html page.html");
    let page = fs::read_to_string(rig.place.path("page.html")).expect("a page");
    assert!(page.contains("<h1>full backup sales "), "{page}");
    assert!(page.contains(" complete and verified: 9"), "{page}");
    assert_eq!((rig.files("b").len(), rig.files("c").len()), (3, 2));
    assert_eq!(report["is_verified"], true);
    // 8 MiB of data and 1 MiB of log, which begins within a block.
    assert_eq!(report["bytes_read"], (9 << 20) + (64 << 10));
    assert!(report["pause_ns"].as_u64().expect("a pause") > 0);
    let message = report["message"].as_str().expect("a message");
    assert!(message.starts_with("BACKUP DATABASE successfully processed 1160 pages"), "{message}");
    rig.restore("sales --from b --from c", &[("data", &data), ("log", &log)]);
}

#[test]
fn an_encrypted_backup_hides_its_contents_and_needs_its_key() {
    let rig = Rig::new();
    let data = rig.contents("data");
    rig.place.file("key", &"ab".repeat(32));
    rig.place.file("other", &"cd".repeat(32));
    rig.refuse("data --to b --encrypt", 2, "--encrypt needs a key: give --key-file FILE");
    rig.refuse("data --to b --encrypt --key-file none", 2, "cannot read the key file none");
    rig.place.file("short", "abc");
    rig.refuse("data --to b --encrypt --key-file short", 2, "too short");
    assert_eq!(rig.files("b"), [""; 0]);
    let report =
        rig.backup("data --to b --stripes 2 --compress=3 --encrypt --key-file key --verify");
    assert_eq!(report["is_verified"], true);
    let stored = report["stored_bytes"].as_u64().expect("bytes");
    assert!(stored < 8 << 20, "{stored}");
    let all: Vec<u8> = rig
        .files("b")
        .iter()
        .flat_map(|f| fs::read(rig.place.path("b").join(f)))
        .flatten()
        .collect();
    assert!(!all.windows(64).any(|own| own == &data[..64]), "it is in the clear");
    let id = id(&report);
    rig.restore(&format!("{id} --from b --key-file key"), &[("data", &data)]);
    let (_, stderr, code) =
        run(rig.weir(&format!("restore {id} --from b --key-file other --image x")));
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("the key does not belong to backup"), "{stderr}");
}

#[test]
fn raw_volumes_of_the_same_server_take_backups() {
    let rig = Rig::new();
    let data = rig.contents("data");
    // All exports but the targets.
    let first = rig.backup("--to backup1 backup2 --stripes 4 --verify");
    let second = rig.backup("data --to backup1 --stripes 2 --verify --compress");
    let uri =
        |name: &str| format!("nbd+unix:///{name}?socket={}", rig.place.path("nbd.sock").display());
    let both = format!("--from {} --from {}", uri("backup1"), uri("backup2"));
    rig.restore(
        &format!("{} {both}", id(&first)),
        &[("data", &data), ("log", &rig.contents("log"))],
    );
    rig.restore(&format!("{} {both}", id(&second)), &[("data", &data)]);
    let full = "no room on backup1: a stripe needs";
    rig.write("data", 12 << 20, &pattern(9, 12 << 20));
    rig.refuse("data --to backup1", 2, full);
    // A restore never replaces backups, those that it reads least of all.
    let onto = format!("restore {} {both} --to {} --only data --force", id(&first), uri("backup1"));
    let (_, stderr, code) = run(rig.weir(&onto));
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("it holds backups, which a restore never replaces"), "{stderr}");
    // Data other than backups is not overwritten.
    rig.refuse("data --to log", 2, "log contains data other than backups; give an empty volume");
    assert_eq!(rig.contents("log")[4096..][..100], pattern(3, 100));
}

#[test]
fn another_server_can_have_the_target_or_the_source() {
    let (rig, other) = (Rig::new(), Rig::new());
    let data = rig.contents("data");
    let uri = |rig: &Rig, name: &str| {
        format!("nbd+unix:///{name}?socket={}", rig.place.path("nbd.sock").display())
    };
    let target = uri(&other, "backup1");
    let source = uri(&other, "data");
    rig.backup(&format!("data --to {target} --name a --verify"));
    rig.restore(&format!("a --from {target}"), &[("data", &data)]);
    let report = rig.backup(&format!("{source} --to b --name foreign"));
    let notes = report["notes"].to_string();
    assert!(notes.contains("it was not frozen"), "{notes}");
    rig.restore("foreign --from b", &[("data", &other.contents("data"))]);
    let own = format!("{source} --to {source}");
    rig.refuse(&own, 2, "is a source and a target");
    rig.refuse("nbd://127.0.0.1:1/x --to b", 3, "is the server running?");
}

#[test]
fn a_differential_has_what_changed_and_what_is_zeros_now() {
    let rig = Rig::new();
    rig.refuse("data --to b --differential", 2, "take a full backup first");
    rig.backup("data log --to b --name week");
    rig.backup("data log --to b --name aside --copy-only");
    rig.write("data", (2 << 20) + 5, &pattern(7, 100_000));
    rig.open("data").write_zeroes(9 << 20, 1 << 20).expect("zeros");
    rig.write("data", 20 << 20, &pattern(8, 1 << 20));
    let expect = rig.contents("data");
    let report = rig.backup("data log --to c --from b --name day --differential --verify");
    let read = report["bytes_read"].as_u64().expect("bytes");
    assert!((1 << 20..2 << 20).contains(&read), "{read}");
    assert_eq!(report["kind"], "differential");
    rig.restore("day --from b --from c", &[("data", &expect), ("log", &rig.contents("log"))]);
    // Since the full backup, not since the last differential.
    rig.write("data", 3 << 20, &pattern(5, 4096));
    let expect = rig.contents("data");
    let report = rig.backup("data log --to c --from b --name day2 --differential");
    assert!(report["bytes_read"].as_u64() > Some(read));
    rig.restore("day2 --from b --from c", &[("data", &expect)]);
}

#[test]
fn a_raw_volume_with_data_anywhere_is_refused() {
    let rig = Rig::new();
    rig.write("backup2", 20 << 20, &pattern(4, 4096));
    rig.refuse("log --to backup2", 2, "backup2 contains data other than backups");
}

#[test]
fn a_differential_of_some_sources_is_restored_by_their_names() {
    let rig = Rig::new();
    rig.backup("data log --to b --name week");
    rig.write("log", 0, &pattern(6, 8192));
    let expect = (rig.contents("log"), rig.contents("data"));
    rig.backup("log --to b --name one --differential");
    rig.backup("log data --to b --name turned --differential");
    rig.restore("one --from b", &[("log", &expect.0)]);
    rig.restore("turned --from b", &[("log", &expect.0), ("data", &expect.1)]);
}

#[test]
fn a_differential_of_a_volume_that_shrank_has_nothing_behind_its_end() {
    let rig = Rig::new();
    rig.backup("data --to b --name week");
    rig.open("data").write_zeroes(8 << 20, 16 << 20).expect("zeros");
    let (_, stderr, code) = run(rig.weir("volume resize data 8MiB"));
    assert_eq!(code, Some(0), "{stderr}");
    let expect = rig.contents("data");
    assert_eq!(expect.len(), 8 << 20);
    rig.backup("data --to b --name day --differential");
    rig.restore("day --from b --prove", &[("data", &expect)]);
}

#[test]
fn a_name_is_not_hidden_by_a_folder_of_the_same_name() {
    let rig = Rig::new();
    let log = rig.contents("log");
    rig.backup("log --to b --name sales");
    rig.backup("data --to b --name later");
    fs::create_dir(rig.place.path("sales")).expect("a folder");
    rig.restore("sales --from b", &[("log", &log)]);
    assert!(!rig.place.path("images/data.raw").exists());
}

#[test]
fn a_prune_by_name_keeps_what_a_differential_of_another_name_needs() {
    let rig = Rig::new();
    let (first, data) = (rig.backup("data --to b --name full"), rig.contents("data"));
    rig.backup("data --to b --name day --differential");
    rig.backup("data --to b --name full --copy-only");
    let (stdout, stderr, code) = run(rig.weir("backup prune b --name full --keep-last 1"));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains(&id(&first)[..13]), "{stdout}");
    rig.restore("day --from b", &[("data", &data)]);
}

#[test]
fn a_data_folder_that_no_server_has_is_backed_up() {
    let mut rig = Rig::new();
    let data = rig.contents("data");
    rig.server.take().expect("a server").stop();
    let own = "--layout layout.toml --data d";
    rig.backup(&format!("{own} data --to b --verify"));
    rig.restore("layout --from b", &[("data", &data)]);
    rig.backup(&format!("{own} data --to backup1 --name raw --verify"));
    rig.refuse(&format!("{own} none --to b"), 2, "there is no export \"none\"; there are ");
    rig.refuse("--layout layout.toml --data e data --to b", 2, "it holds no data of weir");
    fs::create_dir(rig.place.path("d/inside")).expect("a folder");
    rig.refuse(
        &format!("{own} data --to d/inside"),
        2,
        "the data folder of a weir server; give a folder elsewhere",
    );
    rig.refuse("data --to b", 3, "control.sock");
}

#[test]
fn block_and_page_blobs_behind_a_signature_take_backups() {
    for (kind, more) in [("block", ""), ("page", " --page-blob")] {
        let layout = format!("{LAYOUT}[blob]\n");
        let blobs = BlobRig::new(Place::without_a_disk(), &layout, &[]);
        blobs.client.container("backups");
        let rig = Rig { place: blobs.place, server: Some(blobs.server) };
        rig.write("data", 0, &pattern(1, 5 << 20));
        let data = rig.contents("data");
        let signed = blobs.client.signed_url();
        let (account, sas) = signed.split_once('?').expect("a signature");
        let url = format!("{account}/backups/sales");
        rig.place.file("sas", sas);
        let report = rig
            .backup(&format!("data --to {url} --sas-file sas --stripes 2 --verify --name x{more}"));
        assert_eq!(report["is_verified"], true, "{kind}");
        assert!(!report.to_string().contains("sig="), "{report}");
        rig.restore(&format!("x --from {url}?{sas}"), &[("data", &data)]);
        let wrong = sas.replace("sig=", "sig=A");
        rig.refuse(&format!("data --to {url}?{wrong}"), 2, "refused with 403");
        rig.refuse(&format!("data --to {account}/none?{sas}"), 3, "is there such a container?");
        rig.refuse("data --to http://127.0.0.1:1/a/c", 3, "http://127.0.0.1:1/a/c: ");
        // Nothing is left beside the stripes, and the place shows the backup as complete.
        let (stdout, _, _) = run(rig.weir(&format!("backup list {url}?{sas} -o json")));
        let list: Value = serde_json::from_str(&stdout).expect("JSON");
        assert_eq!(list["backups"][0]["state"], "complete", "{list}");
    }
}

/// The limit is exact: 8 MiB at 16 MiB/s take half a second, less the last transfer.
#[test]
fn a_limit_paces_the_reads() {
    let rig = Rig::new();
    let report = rig.backup("data --to b --limit 16MiB/s");
    assert!(report["elapsed_s"].as_f64() > Some(0.43), "{}", report["elapsed_s"]);
}

/// Transactions that were acknowledged before the freeze are in a backup that was made while the
/// database ran.
#[test]
fn a_running_database_is_backed_up_with_its_acknowledged_transactions() {
    let place = Place::without_a_disk();
    place.file(
        "layout.toml",
        "[[volume]]\nname = \"data\"\nsize = \"64 MiB\"\nlatency = \"1ms\"\nunlimited = true\n\
         [[volume]]\nname = \"log\"\nsize = \"1 MiB\"\nlatency = \"1ms\"\nunlimited = true\n",
    );
    place.file(
        "oltp.toml",
        "users = 20\nthink_time = \"1ms\"\nvcores = 4\nsize = \"8 MiB\"\nbuffer_pool = \"2 MiB\"\n\
         duration = \"600s\"\ndata = [\"data\"]\nlog = \"log\"\n[checkpoint]\nevery = \"200ms\"\n\
         [[transaction]]\nname = \"t\"\nshare = 1\nreads = 2\nwrites = 4\nlog = \"1 KiB\"\n\
         cpu = \"100us\"\n",
    );
    fs::create_dir(place.path("b")).expect("a folder");
    let args = ["run", "layout.toml", "oltp.toml", "--data", "d", "--control", "run.sock"];
    let mut database = place.weir(&args).spawn().expect("a program");
    let acknowledged = place.path("d/acknowledged-log");
    let committed = || {
        let text = fs::read_to_string(&acknowledged).unwrap_or_default();
        text.trim().parse::<u64>().unwrap_or(0)
    };
    while committed() < 300 {
        assert!(database.try_wait().expect("a state").is_none(), "it ended");
        std::thread::yield_now();
    }
    fs::copy(&acknowledged, place.path("before")).expect("a copy");
    let backup = ["backup", "run", "--layout", "layout.toml", "--control", "run.sock", "oltp.toml"];
    let (_, stderr, code) = run(place.weir(&[&backup[..], &["--to", "b", "--verify"]].concat()));
    database.kill().expect("it runs");
    database.wait().expect("an end");
    assert_eq!(code, Some(0), "{stderr}");
    let restore = ["restore", "oltp", "--from", "b", "--to", "layout.toml", "--data", "r"];
    let (_, stderr, code) = run(place.weir(&restore));
    assert_eq!(code, Some(0), "{stderr}");
    let recover = ["run", "layout.toml", "oltp.toml", "--data", "r", "--recover-only"];
    let more = ["--acknowledged", "before", "-o", "json"];
    let (stdout, stderr, code) = run(place.weir(&[&recover[..], &more].concat()));
    assert_eq!(code, Some(0), "{stderr}");
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    assert!(report["acknowledged"].as_u64() >= Some(300), "{report}");
}

#[test]
fn a_differential_says_what_it_builds_on_and_needs_it() {
    let rig = Rig::new();
    rig.place.file("key", &"ab".repeat(32));
    let full = rig.backup("data log --to b --name week");
    let day = "data log --to c --name day --differential";
    let missing = format!("the full backup {}, from which the changes are counted,", id(&full));
    rig.refuse(day, 2, &missing);
    rig.refuse(&format!("{day} --from b --encrypt --key-file key"), 2, "it is not encrypted");
    assert_eq!(rig.files("c"), [""; 0]);
    let report = rig.backup(&format!("{day} --from b --verify"));
    assert_eq!((&report["base"], &report["is_verified"]), (&full["id"], &Value::Bool(true)));
    let notes = report["notes"].to_string();
    let on = format!("it builds on the full backup week ({}) of 20", id(&full));
    assert!(notes.contains(&on) && notes.contains(", which has another name"), "{notes}");
    assert!(notes.contains(&format!("read back of its full backup {}: ", id(&full))), "{notes}");
    // A verification covers the full backup: without it the differential is worth nothing.
    let file = rig.place.path("b").join(&rig.files("b")[0]);
    let mut bytes = fs::read(&file).expect("a stripe");
    bytes[9000] ^= 1;
    fs::write(&file, bytes).expect("a stripe");
    let args = "backup run data log --to c --from b --name day2 --differential --verify -o json";
    let (stdout, stderr, code) = run(rig.weir(args));
    assert_eq!(code, Some(1), "{stderr}");
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(report["is_verified"], false);
    assert!(report["notes"].to_string().contains("damage of its full backup"), "{report}");
    // Once it is gone there is nothing to build on.
    fs::remove_file(&file).expect("a stripe");
    rig.refuse(&format!("{day} --from b"), 2, &missing);
}

/// An endpoint that takes connections and says nothing.
#[test]
fn ctrl_c_ends_the_wait_for_a_dead_endpoint() {
    let rig = Rig::new();
    let dead = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = dead.local_addr().expect("an address");
    for args in [
        format!("backup run data --to http://{address}/account/c"),
        format!("backup verify x --from http://{address}/account/c"),
    ] {
        let mut command = rig.weir(&args);
        let mut child = command.stderr(Stdio::null()).spawn().expect("a program");
        let stream = dead.accept().expect("a connection");
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, Signal::INT).expect("it runs");
        // Five attempts of half a minute are what it would wait otherwise.
        #[expect(clippy::disallowed_methods, reason = "it must end long before its timeouts")]
        let (start, limit) = (std::time::Instant::now(), std::time::Duration::from_secs(25));
        while child.try_wait().expect("a state").is_none() {
            assert!(start.elapsed() < limit, "{args}: it waits on");
            std::thread::yield_now();
        }
        assert_eq!(child.wait().expect("an end").code(), Some(130), "{args}");
        drop(stream);
    }
}

/// Ctrl-C and kill -9: nothing looks like a backup, and the sources are not frozen any more.
#[test]
fn an_interrupted_backup_is_none() {
    let rig = Rig::new();
    for signal in [Signal::INT, Signal::KILL] {
        let mut command = rig.weir("backup run data --to b --stripes 2 --limit 1MiB/s");
        let backup = command.stderr(Stdio::null()).spawn().expect("a program");
        // A frame of one stripe is there.
        let has_begun = || {
            let paths = rig.files("b").into_iter().map(|name| rig.place.path("b").join(name));
            paths.map(|path| fs::metadata(path).map_or(0, |about| about.len())).sum::<u64>() > 4096
        };
        while !has_begun() {
            std::thread::yield_now();
        }
        assert!(rig.files("b").iter().all(|name| name.ends_with(".weirbak.tmp")));
        let pid = i32::try_from(backup.id()).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, signal).expect("it runs");
        let code = backup.wait_with_output().expect("an end").status.code();
        if signal == Signal::INT {
            assert_eq!((code, rig.files("b")), (Some(130), Vec::new()));
        }
        let (stdout, _, _) = run(rig.weir("backup list b -o json"));
        assert!(!stdout.contains("\"complete\""), "{stdout}");
    }
    // A freeze that was left would be of the same exports, with the same changes.
    let data = rig.contents("data");
    rig.backup("data --to c --name after --verify");
    rig.restore("after --from c", &[("data", &data)]);
}
