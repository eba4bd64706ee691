//! Messages for wrong input, word for word, with their exit codes: 2 for errors of the user, 3 for
//! failures while running.

use crate::common::{Place, run};
use std::os::unix::net::UnixListener;

/// Every verb that reads a layout says `expect` and ends with 2.
#[track_caller]
fn check_layout(layout: &str, expect: &str) {
    let place = Place::new();
    place.file("layout.toml", layout);
    let expect = format!("weir: {expect}\n");
    for verb in [
        &["serve", "layout.toml", "--nbd", "unix:nbd.sock", "--data", "data"][..],
        &["layout", "check", "layout.toml"],
        &["sim", "layout.toml", "jobs.fio"],
    ] {
        check_in(&place, verb, 2, &expect);
    }
    assert!(!place.path("nbd.sock").exists() && !place.path("data").exists());
}

#[test]
fn layouts() {
    check_layout(
        "[[volume]]\nname = \"a\"\nteir = \"P30\"\n",
        "layout.toml:3:1: unknown field `teir`, expected one of `name`, `host`, `tier`, `size`, \
         `family`, `iops`, `throughput`, `limits`, `unlimited`, `cache`, `place`, \
         `on_demand_burst`, `performance_plus`, `performance_tier`, `latency`, `credits`, `lun`, `backend`, `checksums`, `clients`; did you mean `tier`?",
    );
    check_layout(
        "edition = \"azure-premium-2051\"\n",
        "layout.toml:1:1: unknown edition \"azure-premium-2051\"; did you mean \
         \"azure-premium-2015\"?; there are: azure-premium-2015, azure-mi-2018, azure-2018, azure-now, azure-mi-now, azure-postgres, aws, gcp-2022, gcp",
    );
    check_layout(
        "edition = \"azure-premium-2015\"\n[host]\nsize = \"DS41\"\n",
        "layout.toml:3:1: unknown host size \"DS41\" in azure-premium-2015; did you mean \"DS14\"?; \
         DS14 has 16 vCPUs, 112 GiB, 50000 IOPS and 512 MiB/s (ds14 instead of ds41); \
         there are: DS1, DS2, DS3, DS4, DS11, DS12, DS13, DS14 and 49 more, which weir catalog hosts \
         azure-premium-2015 lists; or leave size out and give limits = { .. }",
    );
    check_layout(
        "edition = \"azure-now\"\n[host]\nsize = \"E16bds_v5\"\n",
        "layout.toml:3:1: host size \"E16bds_v5\" is in azure-now several times, with different \
         limits; write one of ebdsv5-nvme/Standard_E16bds_v5, ebdsv5-scsi/Standard_E16bds_v5, \
         ebdsv5-2021/Standard_E16bds_v5; or leave size out and give limits = { .. }",
    );
    check_layout(
        "[[volume]]\nname = \"v\"\nlimits = { iops = 1, burst = { iops = 18446744073709551615, \
         duration = \"1000000h\" } }\n",
        "layout.toml:3:32: volume \"v\": 18446744073709551615 IOPS is above the maximum of a \
         limit, 1000000000 IOPS; leave out a limit that you do not need",
    );
    check_layout(
        "[[volume]]\nname = \"v\"\ntier = \"P30\"\n",
        "layout.toml:3:1: volume \"v\": a tier is looked up in an edition; add edition = \"..\" at \
         the top (one of azure-premium-2015, azure-mi-2018, azure-2018, azure-now, azure-mi-now, \
         azure-postgres, aws, gcp-2022, gcp), or give limits = { .. }",
    );
    check_layout(
        "edition = \"azure-premium-2015\"\n[[volume]]\nname = \"a\"\nsize = \"2 TiB\"\n",
        "layout.toml:4:1: 2 TiB is more than the largest tier of premium-ssd holds (P30: 1 TiB); use \
         several: disks in a stripe, files of one database",
    );
    check_layout(
        "edition = \"azure-premium-2015\"\n[host]\nsize = \"DS1\"\n[[stripe]]\nname = \"s\"\n\
         unit = \"64 KiB\"\nvolumes = { count = 3, tier = \"P10\" }\n",
        "layout.toml:3:1: host \"host\": 3 disks are more than the 2 that DS1 can attach; use \
         fewer or larger disks, or a larger size",
    );
    check_layout(
        "edition = \"azure-now\"\n[host]\nsize = \"D8s_v3\"\n[[volume]]\nname = \"a\"\n\
         tier = \"P50\"\ncache = \"read-only\"\n",
        "layout.toml:7:1: volume \"a\": no host cache is possible: disks of 4 TiB or more are not \
         cached, and this one has 4 TiB; set its cache to none",
    );
    check_layout(
        "[[stripe]]\nname = \"s\"\nunit = \"64 KiB\"\nvolumes = { count = 1, unlimited = true }\n",
        "layout.toml:4:13: stripe \"s\": it has 1 volume; a stripe needs two or more",
    );
    check_layout(
        "[[volume]]\nname = \"a\"\nunlimited = true\nsize = \"540\"\n",
        "layout.toml:4:8: \"540\" has no unit; write for example 64 KiB, 540 GiB or 200 MB",
    );
    check_layout(
        "edition = \"azure-premium-2015\"\n[[volume]]\nname = \"a\"\ntier = \"P30\"\n\
         limits = { iops = 100 }\n",
        "layout.toml:5:1: volume \"a\": tier and limits contradict each other; keep one of them",
    );
    check_layout(
        "[[volume]]\nname = \"a\"\nunlimited = true\nlimits = { iops = 100 }\n",
        "layout.toml:3:1: volume \"a\": unlimited excludes tier and limits; keep one of them",
    );
    check_layout(
        "[[volume]]\nname = \"../a\"\nunlimited = true\n",
        "layout.toml:2:1: the name \"../a\" is not valid; use at most 100 letters, digits, '.', \
         '_' and '-', and no '.' at the start",
    );
    check_layout("[[volume]\n", "layout.toml:1:10: unclosed array table, expected `]`");
}

/// A command, run where there is nothing but an empty folder.
#[track_caller]
fn check(args: &[&str], code: i32, expect: &str) {
    check_in(&Place::new(), args, code, expect);
}

#[track_caller]
fn check_in(place: &Place, args: &[&str], code: i32, expect: &str) {
    let (stdout, stderr, ended) = run(place.weir(args));
    assert_eq!((stdout.as_str(), stderr.as_str()), ("", expect));
    assert_eq!(ended, Some(code));
}

#[test]
fn arguments() {
    let more = "\n\nFor more information, try '--help'.\n";
    for (address, reason) in [
        ("somewhere", "it is not systemd, and does not start with unix: or tcp:"),
        ("unix:", "the path is empty"),
        ("tcp:localhost", "it needs a host and a port of at most 65535"),
        ("tcp::10809", "it needs a host and a port of at most 65535"),
        ("tcp:localhost:99999", "it needs a host and a port of at most 65535"),
    ] {
        let expect = format!(
            "error: invalid value '{address}' for '--nbd <ADDRESS>': {address:?} is not an \
             address: {reason}; write unix:PATH, tcp:HOST:PORT or systemd{more}"
        );
        check(&["serve", "layout.toml", "--nbd", address], 2, &expect);
    }
    let long = format!("unix:/{}", "x".repeat(107));
    let expect = format!(
        "error: invalid value '{long}' for '--nbd <ADDRESS>': {long:?} is not an address: a Unix \
         socket's path has at most 107 bytes; write unix:PATH, tcp:HOST:PORT or systemd{more}"
    );
    check(&["serve", "layout.toml", "--nbd", &long], 2, &expect);
    let expect = format!(
        "error: invalid value '540' for '<SIZE>': \"540\" has no unit; write for example 64 KiB, \
         540 GiB or 200 MB{more}"
    );
    check(&["volume", "resize", "data", "540"], 2, &expect);
    let sim = ["sim", "layout.toml", "jobs.fio"];
    for (verb, value, option, reason) in [
        (&sim[..], "0s", "--runtime <TIME>", "it must be more than zero"),
        (&sim, "-5s", "--runtime <TIME>", "\"-5s\" is negative; write it without the minus sign"),
        (&sim, "0s", "--every <TIME>", "it must be more than zero"),
        (&sim, "0B", "--size <SIZE>", "it must be more than zero"),
        (&sim, "host@0s", "--crash <HOST@TIME>", "it must be more than zero"),
        (&sim, "-1", "--seed <SEED>", "expected a whole number from 0 to 18446744073709551615"),
        (&["status"], "0s", "--interval <TIME>", "it must be more than zero"),
        (&["host", "warm", "data"], "0B", "--length <SIZE>", "it must be more than zero"),
    ] {
        let expect = format!("error: invalid value '{value}' for '{option}': {reason}{more}");
        let name = option.split(' ').next().unwrap_or_default();
        check(&[verb, &[name, value]].concat(), 2, &expect);
    }
    check(&["status", "--interval", "2h"], 2, "weir: --interval 2 h: must be at most 1 h\n");
}

#[test]
fn files_that_are_not_there() {
    let missing = "weir: cannot read layout.toml: No such file or directory (os error 2)\n";
    check(&["serve", "layout.toml"], 2, missing);
    check(&["layout", "check", "layout.toml"], 2, missing);
    let missing = "weir: cannot read own.toml: No such file or directory (os error 2)\n";
    check(&["--catalog", "own.toml", "catalog", "editions"], 2, missing);
}

#[test]
fn files_that_are_no_text() {
    let place = Place::new();
    std::fs::write(place.path("garb.bin"), [b'a', 0xff, 0xfe]).expect("a file");
    place.file("layout.toml", LAYOUT);
    let check = |args: &[&str], what: &str| {
        let expect = format!("weir: cannot read garb.bin as a {what}: it is not UTF-8 text\n");
        check_in(&place, args, 2, &expect);
    };
    check(&["layout", "check", "garb.bin"], "layout");
    check(&["sim", "layout.toml", "garb.bin"], "job file");
    check(&["--catalog", "garb.bin", "catalog", "editions"], "catalog edition");
}

#[test]
fn no_server() {
    let place = Place::new();
    let absent = "weir: no server answers at control.sock: No such file or directory (os error 2); \
                  is weir serve running, with this --control?\n";
    check_in(&place, &["status"], 3, absent);
    check_in(&place, &["volume", "list"], 3, absent);
    check_in(&place, &["volume", "resize", "data", "1GiB"], 3, absent);
    // As a killed server leaves it.
    drop(UnixListener::bind(place.path("control.sock")).expect("a socket"));
    let dead = absent
        .replace("No such file or directory (os error 2)", "Connection refused (os error 111)");
    check_in(&place, &["host", "crash", "host"], 3, &dead);
}

/// `weir sim` on a layout and a job, with more arguments, refuses them.
#[track_caller]
fn check_sim(args: &[&str], expect: &str) {
    let place = Place::new();
    place.file(
        "layout.toml",
        "[host]\nunlimited = true\ncache = { size = \"1 GiB\" }\n\
         [[volume]]\nname = \"data\"\nlimits = { iops = 100 }\ncache = \"read-only\"\n\
         [[volume]]\nname = \"log\"\nlimits = { iops = 100 }\n\
         [[volume]]\nname = \"idle\"\nlimits = { iops = 100 }\ncache = \"read-only\"\n",
    );
    let job = "[global]\nrw=read\nbs=4k\nsize=1m\nruntime=2\ntime_based\ndirect=1\n";
    place.file("jobs.fio", &format!("{job}[a]\ndirectory=/mnt/data\n[b]\nfilename=/dev/log\n"));
    let sim = [&["sim", "layout.toml", "jobs.fio"], args].concat();
    check_in(&place, &sim, 2, &format!("weir: {expect}\n"));
}

#[test]
fn options_without_effect_on_a_simulation_are_refused() {
    check_sim(
        &["--map", "/mnt/dta=data"],
        "--map /mnt/dta=data: no job has the directory or filename /mnt/dta; the jobs have: \
         /dev/log, /mnt/data",
    );
    check_sim(
        &["--map", "/mnt/data=log", "--map", "/mnt/data/=data"],
        "--map /mnt/data/=data: /mnt/data/ is mapped twice",
    );
    check_sim(
        &["--warm", "log"],
        "--warm log: it has cache = \"none\"; give it cache = \"read-only\" in the layout",
    );
    check_sim(&["--warm", "idle"], "--warm idle: no job has a file on it");
    check_sim(
        &["--warm", "dta"],
        "there is no export \"dta\" in the layout; did you mean \"data\"?; there are: data, log, idle",
    );
    check_sim(
        &["--crash", "host@1h"],
        "--crash host@1h: the run ends before that, after 2.00 s; give an earlier time",
    );
    check_sim(&["--every", "1us"], "--every 1 us: must be at least 1 ms");
}

/// Sizes have units, and the job its line.
#[test]
fn a_job_that_does_not_fit_its_volume() {
    let place = Place::new();
    place.file(
        "layout.toml",
        "[[volume]]\nname = \"v\"\nlimits = { iops = 100 }\nsize = \"512 GiB\"\n",
    );
    place.file("jobs.fio", "[global]\nrw=read\ndirect=1\n\n[a]\nfilename=/dev/v\nsize=600g\n");
    let sim = ["sim", "layout.toml", "jobs.fio"];
    let expect = "weir: jobs.fio:5: job \"a\": offset 0 B and size 600 GiB reach past the end of its \
                  file or volume of 512 GiB; lower one of them\n";
    check_in(&place, &sim, 2, expect);
    place.file("jobs.fio", "[a]\nrw=read\ndirect=1\nfilename=/mnt/v/file\nsize=600g\n");
    let expect = "weir: jobs.fio:1: job \"a\": \"v\" has 512 GiB and the files of the jobs need 600 GiB; \
                  lower size or numjobs\n";
    check_in(&place, &sim, 2, expect);
}

#[test]
fn names_that_the_catalog_does_not_have() {
    check(
        &["catalog", "tiers", "ibm"],
        2,
        "weir: unknown edition \"ibm\"; there are: azure-premium-2015, azure-mi-2018, azure-2018, azure-now, azure-mi-now, azure-postgres, aws, gcp-2022, gcp\n",
    );
    check(
        &["catalog", "tiers", "azure"],
        2,
        "weir: unknown edition \"azure\"; did you mean \"azure-now\"?; there are: azure-premium-2015, \
         azure-mi-2018, azure-2018, azure-now, azure-mi-now, azure-postgres, aws, gcp-2022, gcp\n",
    );
    check(
        &["catalog", "show", "DS41"],
        2,
        "weir: unknown name \"DS41\"; did you mean \"DS14\"?; weir catalog tiers EDITION and weir \
         catalog hosts EDITION list names; editions: azure-premium-2015, azure-mi-2018, azure-2018, azure-now, azure-mi-now, azure-postgres, aws, gcp-2022, gcp\n",
    );
}

#[test]
fn a_data_folder_that_is_none() {
    let place = Place::new();
    place.file("layout.toml", LAYOUT);
    let serve = |data| ["serve", "layout.toml", "--nbd", "unix:nbd.sock", "--data", data];
    check_in(
        &place,
        &serve("layout.toml"),
        2,
        "weir: --data layout.toml: is a file; give a folder, or a path where one can be created\n",
    );
    // The system's reason is said, too.
    check_in(
        &place,
        &serve("layout.toml/data"),
        3,
        "weir: cannot create layout.toml: File exists (os error 17)\n",
    );
}

const LAYOUT: &str = "[[volume]]\nname = \"v\"\nunlimited = true\nsize = \"1 MiB\"\n";

#[test]
fn a_socket_or_a_folder_that_another_has() {
    let place = Place::new();
    let server = place.serve(LAYOUT, &["--data", "data"]);
    let serve = |args: &[&'static str]| [&["serve", "layout.toml"], args].concat();
    check_in(
        &place,
        &serve(&["--nbd", "unix:nbd.sock"]),
        3,
        "weir: nbd.sock is in use by a running server; stop it or give another path\n",
    );
    let socket = place.path("nbd.sock");
    let expect = format!(
        "weir: data directory data is in use by process {} (weir serve at unix:{}); stop that \
         process or choose another data directory\n",
        server.id(),
        socket.display()
    );
    let elsewhere = ["--nbd", "unix:other.sock", "--control", "other-control.sock"];
    check_in(&place, &serve(&[&elsewhere[..], &["--data", "data"]].concat()), 3, &expect);
    check_in(
        &place,
        &serve(&["--nbd", "unix:other.sock", "--control", "control.sock"]),
        3,
        "weir: control.sock is in use by a running server; stop it or give another path\n",
    );
    check_in(
        &place,
        &serve(&["--nbd", "unix:none/nbd.sock"]),
        3,
        "weir: cannot listen on unix:none/nbd.sock: No such file or directory (os error 2)\n",
    );
    let twice = "weir: unix:other.sock is given twice, by --nbd or --control; give each an address of its own\n";
    check_in(&place, &serve(&["--nbd", "unix:other.sock", "--control", "other.sock"]), 2, twice);
    check_in(&place, &serve(&["--nbd", "unix:other.sock", "--nbd", "unix:other.sock"]), 2, twice);
    let log = ["--nbd", "unix:other.sock", "--write-log", "v=w.log", "--write-log", "u=w.log"];
    let expect =
        "weir: --write-log u=w.log: it is the write log of v; give each volume a file of its own\n";
    check_in(&place, &serve(&[&log[..], &["--control", "other-control.sock"]].concat()), 2, expect);
    assert!(!place.path("w.log").exists(), "nothing is left");
    let remote = ["--nbd", "unix:other.sock", "--control", "other-control.sock", "--web-remote"];
    let expect = "weir: --web-remote is for --web and --metrics, and neither is given\n";
    check_in(&place, &serve(&remote), 2, expect);
    // One port, twice.
    let tcp = Place::new();
    tcp.file("layout.toml", LAYOUT);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("tcp:{}", listener.local_addr().expect("an address"));
    let expect = format!(
        "weir: cannot listen on {address}: Address already in use (os error 98); another process \
         uses it: stop it, or give another address\n"
    );
    check_in(&tcp, &["serve", "layout.toml", "--nbd", &address], 3, &expect);
    server.stop();
}

#[test]
fn a_data_directory_of_another_version() {
    let place = Place::new();
    place.file("layout.toml", LAYOUT);
    std::fs::create_dir(place.path("data")).expect("a folder");
    place.file("data/format", "weir data 2\n");
    let serve = ["serve", "layout.toml", "--nbd", "unix:nbd.sock", "--data", "data"];
    let expect = "weir: data/format has format \"weir data 2\", this release reads \"weir data 1\"; \
                  use the release that wrote it, or an empty directory\n";
    check_in(&place, &serve, 3, expect);
}

#[test]
fn a_volume_that_is_a_stripe_or_nearly_named() {
    let place = Place::new();
    let stripe = "[[stripe]]\nname = \"wh\"\nunit = \"64 KiB\"\nvolumes = { count = 2, size = \
                  \"1 MiB\", unlimited = true }\n";
    let data = LAYOUT.replace("\"v\"", "\"data\"");
    let server = place.serve(&format!("{data}{stripe}"), &[]);
    let check = |args: &[&str], expect: &str| check_in(&place, args, 2, expect);
    check(
        &["volume", "resize", "wh", "2MiB"],
        "weir: volume \"wh\": it is a stripe; name its columns one by one: wh-0, wh-1\n",
    );
    check(
        &["volume", "set-cache", "dta", "none"],
        "weir: there is no volume \"dta\"; did you mean \"data\"?; there is data, wh-0, wh-1\n",
    );
    server.stop();
}

#[test]
fn a_running_server_refuses_invalid_commands() {
    let place = Place::new();
    let server = place.serve(
        &format!(
            "edition = \"azure-premium-2015\"\n{LAYOUT}[[volume]]\nname = \"p\"\ntier = \"P10\"\n"
        ),
        &[],
    );
    let check = |args: &[&str], expect: &str| check_in(&place, args, 2, expect);
    check(&["volume", "resize", "w", "1GiB"], "weir: there is no volume \"w\"; there is v, p\n");
    check(
        &["volume", "resize", "p", "2TiB"],
        "weir: 2 TiB is more than the largest tier of premium-ssd holds (P30: 1 TiB); use several: \
         disks in a stripe, files of one database\n",
    );
    check(
        &["volume", "set-cache", "p", "readonly"],
        "error: invalid value 'readonly' for '<MODE>'\n  [possible values: none, read-only, \
         read-write]\n\n  tip: a similar value exists: 'read-only'\n\nFor more information, try \
         '--help'.\n",
    );
    check(
        &["host", "warm", "p", "--length", "1MiB"],
        "weir: export \"p\": its volumes have no host cache, so there is nothing to warm; set cache = \
         \"read-only\" or \"read-write\" for one of them\n",
    );
    check(
        &["volume", "set-cache", "p", "read-only"],
        "weir: volume \"p\": no host cache is possible: host \"host\" has no cache (give it cache = \
         { size = \"..\" }); set its cache to none\n",
    );
    check(&["host", "crash", "mars"], "weir: there is no host \"mars\"; there is host\n");
    check(
        &["host", "warm", "w", "--length", "1MiB"],
        "weir: there is no export \"w\"; there is v, p\n",
    );
    server.stop();
}

#[test]
fn a_damaged_volume_is_said_and_the_rest_is_served() {
    let place = Place::new();
    let layout = format!("{LAYOUT}{}", LAYOUT.replace("\"v\"", "\"w\""));
    place.serve(&layout, &["--data", "data"]).stop();
    let meta = place.path("data/volumes/v/meta.json");
    let text = std::fs::read_to_string(meta).expect("its metadata");
    place.file("data/volumes/v/meta.json", &(text + "x"));
    let server = place.serve(&layout, &["--data", "data"]);
    let expect = "weir: not served: v: data/volumes/v/meta.json cannot be read: trailing \
                  characters at line 6 column 1; restore the file from a copy; the volume's bytes \
                  in data/ beside it are untouched\nready; \
                  control socket control.sock\n";
    assert_eq!(server.said, expect);
    let (listed, _, code) = run(place.weir(&["volume", "list"]));
    assert!(
        code == Some(0) && listed.contains("not served: v: data/volumes/v/meta.json"),
        "{listed}"
    );
    let (csv, _, _) = run(place.weir(&["volume", "list", "-o", "csv"]));
    let rows: Vec<&str> = csv.lines().skip(1).collect();
    assert!(rows[0].contains(",none,not served,data/volumes/v/meta.json"), "{csv}");
    assert!(rows[1].ends_with(",none,served,,"), "{csv}");
    server.stop();

    place.file("layout.toml", LAYOUT);
    let (_, stderr, code) =
        run(place.weir(&["serve", "layout.toml", "--nbd", "unix:nbd.sock", "--data", "data"]));
    assert!(stderr.starts_with("weir: no volume can be served\n  v: data/volumes/v/"), "{stderr}");
    assert_eq!(code, Some(3));
}

#[test]
fn columns_of_a_stripe_have_their_own_reasons_for_not_being_served() {
    let place = Place::new();
    let layout = format!(
        "{LAYOUT}[[stripe]]\nname = \"pool\"\nunit = \"64 KiB\"\nvolumes = {{ count = 2, unlimited = true, \
         size = \"1 MiB\" }}\n"
    );
    place.serve(&layout, &["--data", "data"]).stop();
    place.file("data/volumes/pool-1/meta.json", "x");
    let server = place.serve(&layout, &["--data", "data"]);
    let (json, _, _) = run(place.weir(&["volume", "list", "-o", "json"]));
    let rows: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let row = |name: &str| {
        let mut all = rows.as_array().expect("rows").iter();
        let own = all.find(|own| own["volume"] == name).unwrap_or_else(|| panic!("{json}"));
        (own["state"].to_string(), own["reason"].to_string())
    };
    assert_eq!(row("v"), ("\"served\"".into(), "null".into()));
    for (name, why) in [("pool-0", "\"pool-1\\\" is not served"), ("pool-1", "cannot be read: ")] {
        let (state, reason) = row(name);
        assert!(state == "\"not served\"" && reason.contains(why), "{name}: {state} {reason}");
    }
    server.stop();
}

#[test]
fn volumes_are_made_and_deleted_on_a_running_server() {
    let place = Place::new();
    let layout = "edition = \"azure-premium-2015\"\nhost = { size = \"DS14\" }\n[[volume]]\n\
                  name = \"v\"\ntier = \"P10\"\n";
    let server = place.serve(layout, &["--data", "data"]);
    let (stdout, stderr, code) = run(place.weir(&["volume", "create", "x", "--size", "200GiB"]));
    let uri = format!("nbd+unix:///x?socket={}", place.path("nbd.sock").display());
    assert_eq!(
        (stdout, stderr, code),
        (String::new(), format!("x has 200 GiB, P20\n  {uri}\n"), Some(0))
    );
    let check = |args: &[&str], expect: &str| {
        check_in(&place, &[&["volume"], args].concat(), 2, &format!("weir: {expect}\n"));
    };
    check(&["create", "x", "--size", "1GiB"], "volume \"x\": this name is taken; choose another");
    check(
        &["create", "y", "--size", "1GiB", "--role", "data"],
        "volume \"y\": role and database are for files of a managed instance",
    );
    check(
        &["create", "y", "--tier", "P99"],
        "unknown tier \"P99\" in azure-premium-2015; there are: P10, P20, P30, S4, S6, S10, S20, S30",
    );
    check(
        &["create", "../y", "--size", "1GiB"],
        "the name \"../y\" is not valid; use at most 100 letters, digits, '.', '_' and '-', and no \
         '.' at the start",
    );
    check(
        &["create", "y", "--size", "1GiB", "--host", "hots"],
        "there is no host \"hots\"; did you mean \"host\"?; there is host",
    );
    check(
        &["delete", "x"],
        "x: its data cannot be recovered; confirm the deletion with --yes, or use --if-unused",
    );
    let (_, stderr, code) = run(place.weir(&["volume", "set-rates", "v"]));
    assert!(stderr.contains("<--iops <N>|--throughput <RATE>>"), "{stderr}");
    assert_eq!(code, Some(2));
    check(
        &["set-rates", "v", "--iops", "9000"],
        "volume \"v\": it has no provisioned rates and no limits of its own: its limits are those of P10; change \
         the tier",
    );
    check(
        &["delete", "v", "--yes"],
        "volume \"v\": it is in the layout; remove it there, and then remove its folder",
    );
    server.stop();
    let server = place.serve(layout, &["--data", "data"]);
    let (listed, _, _) = run(place.weir(&["volume", "list"]));
    assert!(listed.contains(" x ") && listed.contains("P20"), "{listed}");
    assert!(!server.said.contains("not served"), "{}", server.said);
    let (_, stderr, code) = run(place.weir(&["volume", "delete", "x", "--yes"]));
    assert_eq!((stderr.as_str(), code), ("x is deleted\n", Some(0)));
    check(&["delete", "x", "--yes"], "there is no volume \"x\"; there is v");
    server.stop();
}
