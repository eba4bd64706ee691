//! `weir run`: a database for real, and what is left of it.

use crate::common::{Place, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command};
use std::thread;

/// Pages and log take a millisecond, so that much is under way at any time.
const LAYOUT: &str = "[[volume]]\nname = \"data\"\nsize = \"64 MiB\"\nlatency = \"1ms\"\n\
    unlimited = true\n[[volume]]\nname = \"log\"\nsize = \"1 MiB\"\nlatency = \"1ms\"\n\
    unlimited = true\n";

/// Four times more pages than memory holds, and a log that is full every few hundred
/// transactions.
const OLTP: &str = "users = 20\nthink_time = \"1ms\"\nvcores = 4\nsize = \"8 MiB\"\n\
    buffer_pool = \"2 MiB\"\nduration = \"300ms\"\ndata = [\"data\"]\nlog = \"log\"\n\
    [checkpoint]\nevery = \"200ms\"\n\
    [[transaction]]\nname = \"t\"\nshare = 1\nreads = 2\nwrites = 4\nlog = \"1 KiB\"\ncpu = \"100us\"\n";

const RUN: [&str; 3] = ["run", "layout.toml", "oltp.toml"];
const PAGE: usize = 8192;

struct Rig(Place);

impl Rig {
    fn new() -> Self {
        Self::with(LAYOUT, OLTP)
    }

    fn with(layout: &str, oltp: &str) -> Self {
        let place = Place::without_a_disk();
        place.file("layout.toml", layout);
        place.file("oltp.toml", oltp);
        Self(place)
    }

    fn weir(&self, more: &[&str]) -> Command {
        self.0.weir(&[&RUN[..], more].concat())
    }

    /// A run to its end, on the data folder.
    #[track_caller]
    fn run(&self) -> Value {
        let (stdout, stderr, code) = run(self.weir(&["--data", "d", "-o", "json"]));
        assert_eq!(code, Some(0), "{stderr}");
        serde_json::from_str(&stdout).expect("JSON")
    }

    /// Runs a recovery and returns its report.
    #[track_caller]
    fn recover(&self) -> Value {
        let (stdout, stderr, code) =
            run(self.weir(&["--data", "d", "--recover-only", "-o", "json"]));
        assert_eq!((stderr.as_str(), code), ("", Some(0)));
        serde_json::from_str(&stdout).expect("JSON")
    }

    /// A recovery says no; how.
    #[track_caller]
    fn refused(&self) -> (String, Option<i32>) {
        let (stdout, stderr, code) = run(self.weir(&["--data", "d", "--recover-only"]));
        assert_eq!(stdout, "");
        (stderr, code)
    }

    fn acknowledged(&self) -> u64 {
        let text = fs::read_to_string(self.0.path("d/acknowledged-log")).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }

    /// Starts a long run, and waits until it has acknowledged this number of further transactions.
    fn begin(&self, transactions: u64) -> Child {
        let before = self.acknowledged();
        let child = self.weir(&["--data", "d", "--runtime", "1h"]).spawn().expect("a program");
        while self.acknowledged() < before + transactions {
            thread::yield_now();
        }
        child
    }

    fn volume(&self, name: &str) -> fs::File {
        let path = self.0.path(&format!("d/volumes/{name}/data/00000"));
        OpenOptions::new().read(true).write(true).open(path).expect("a segment")
    }

    fn pages(&self) -> Vec<Vec<u8>> {
        let mut bytes = vec![0; 8 << 20];
        self.volume("data").read_exact_at(&mut bytes, 0).expect("pages");
        bytes.chunks(PAGE).map(<[u8]>::to_vec).collect()
    }

    fn put(&self, page: usize, bytes: &[u8]) {
        self.volume("data").write_all_at(bytes, (page * PAGE) as u64).expect("room");
    }
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process"), signal).expect("it is running");
}

/// A page that was written.
fn used(pages: &[Vec<u8>]) -> usize {
    pages.iter().position(|page| page.iter().any(|byte| *byte != 0)).expect("a page")
}

#[test]
fn a_run_reports_what_a_simulation_does() {
    let rig = Rig::new();
    let output = |format: &str| {
        let (stdout, stderr, code) = run(rig.weir(&["--every", "100ms", "-o", format]));
        assert_eq!((stderr.as_str(), code), ("", Some(0)));
        stdout
    };
    let json: Value = serde_json::from_str(&output("json")).expect("JSON");
    assert_eq!((&json["clock"], &json["trace_hash"]), (&"wall".into(), &Value::Null));
    let database = &json["databases"][0];
    let names: Vec<_> = (0..2).map(|at| database["files"][at]["file"].clone()).collect();
    assert_eq!(names, ["data", "log"]);
    for file in 0..2 {
        let file = &database["files"][file];
        assert!(file["num_of_writes"].as_u64() > Some(0), "{file}");
        // Nothing but the medium holds it.
        assert_eq!(file["io_stall_queued_write_ms"], 0);
        assert!(file["medium_ns"].as_u64() > Some(1_000_000), "{file}");
        assert!(file["write_mean_ns"].as_f64() >= Some(1e6), "{file}");
    }
    assert_eq!(database["series"].as_array().map(Vec::len), Some(3));
    let text = output("text");
    assert!(text.contains("wall time, seed 1\n0.30 s, 20 users"), "{text}");
    assert!(output("csv").lines().next().is_some_and(|head| head.contains("batches_per_s")));
}

/// In each round the process is killed while pages, log and checkpoints are under way,
/// and the next start must find everything that was acknowledged.
#[test]
fn nothing_acknowledged_is_lost_by_kill_9() {
    let rig = Rig::new();
    let mut last = 0;
    for round in 0..10 {
        let mut child = rig.begin(30 + round * 67 % 400);
        signal(&child, Signal::KILL);
        child.wait().expect("an end");
        let acknowledged = rig.acknowledged();
        assert!(acknowledged > last);
        // Every other time the next run recovers, which is killed as well.
        if round % 2 == 1 {
            let found = rig.recover();
            assert_eq!(found["acknowledged"], acknowledged);
            last = found["commit"].as_u64().expect("a number");
            assert!(last >= acknowledged, "{found}");
            assert!(found["transactions"].as_u64() > Some(0), "{found}");
        }
    }
    let again = rig.recover();
    assert_eq!((&again["transactions"], &again["pages_rebuilt"]), (&0.into(), &0.into()));
}

/// Data files of 5 and 6 MiB, of which 8 MiB are in use, and which grow by 512 KiB.
const GROWING: &str = "size = \"5 MiB\"\ngrowth = \"512 KiB\"\n[[file]]\nname = \"d2\"\n\
    role = \"data\"\ngrowth = \"512 KiB\"\nsize = \"6 MiB\"\n";

/// Each transaction adds two pages and changes three.
const ADDING: &str = "users = 20\nthink_time = \"1ms\"\nvcores = 4\nsize = \"8 MiB\"\n\
    working_set = \"2 MiB\"\nbuffer_pool = \"2 MiB\"\nduration = \"1h\"\ndata = [\"d1\", \"d2\"]\n\
    log = \"log\"\n[checkpoint]\nevery = \"200ms\"\n[[transaction]]\nname = \"t\"\nshare = 1\n\
    reads = 2\nwrites = 3\nnew_pages = 2\nlog = \"1 KiB\"\ncpu = \"100us\"\n";

/// A database that has grown allows some changes of its layout and description. The others are
/// refused before anything is read from a wrong place.
#[test]
fn changes_that_would_move_a_file_are_refused() {
    let file = |name: &str, role: &str, size: &str| {
        format!(
            "[[file]]\nname = \"{name}\"\nrole = \"{role}\"\non = \"disk\"\nsize = \"{size}\"\n"
        )
    };
    let disk =
        "[[volume]]\nname = \"disk\"\nsize = \"1 GiB\"\nlatency = \"1ms\"\nunlimited = true\n";
    let grows = "growth = \"512 KiB\"\n";
    let (d1, d2) = (file("d1", "data", "8 MiB") + grows, file("d2", "data", "4 MiB"));
    let log = file("log", "log", "1 MiB");
    let layout = [disk, &d1, &d2, &log].concat();
    let rig = Rig::with(&layout, &ADDING.replace("1h", "500ms"));
    rig.run();
    let with = |from: &str, to: &str| {
        assert!(layout.contains(from), "{from}");
        rig.0.file("layout.toml", &layout.replacen(from, to, 1));
        let (_, stderr, code) = run(rig.weir(&["--data", "d", "--recover-only"]));
        (stderr, code)
    };
    let fine = |from: &str, to: &str| assert_eq!(with(from, to), (String::new(), Some(0)), "{to}");
    let moved = |from: &str, to: &str, expect: &str| {
        let (stderr, code) = with(from, to);
        let begins = format!("weir: the database in d has its file at \"{expect}");
        assert!(stderr.starts_with(&begins) && code == Some(2), "{to}: {stderr}");
    };
    fine(disk, disk);
    fine("1 GiB", "2 GiB");
    fine("512 KiB", "1 MiB");
    moved(grows, "", "d1 on disk at 0 size 8388608 new 5636096 room ");
    fine(grows, "growth = \"512 KiB\"\nmax_size = \"9 MiB\"\n");
    moved("\"4 MiB\"", "\"5 MiB\"", "d1 on disk at 0 ");
    moved(&d2, &(file("x", "data", "1 MiB") + &d2), "d1 on disk at 0 ");
    moved(&d2, &(d2.clone() + grows), "d1 on disk at 0 ");
    rig.0.file("layout.toml", &layout);
    // A partial record of a crash is ignored.
    let record = std::fs::read_to_string(rig.0.path("d/database-log")).expect("a record");
    rig.0.file("d/.database-log.tmp", &record[..10]);
    fine(disk, disk);
    // The record of an earlier release.
    rig.0.file("d/database-log", "d1\nd2\nlog\n");
    fine(disk, disk);
    rig.0.file("oltp.toml", &ADDING.replace("size = \"8 MiB\"", "size = \"9 MiB\""));
    let (stderr, code) = {
        let (_, stderr, code) = run(rig.weir(&["--data", "d"]));
        (stderr, code)
    };
    assert!(stderr.contains("new 5636096") && stderr.contains("new 6291456"), "{stderr}");
    assert_eq!(code, Some(2));
    rig.0.file("oltp.toml", &ADDING.replace("data = [\"d1\", \"d2\"]", "data = [\"d1\"]"));
    let (_, stderr, code) = run(rig.weir(&["--data", "d"]));
    assert_eq!(
        (stderr.as_str(), code),
        (
            "weir: the database in d has the files d1, d2, log, and now d1, log are named: files \
             cannot be added to a database or removed from it; restore the list, or give another \
             folder\n",
            Some(2),
        )
    );
    rig.0.file("oltp.toml", &ADDING.replace("1h", "100ms"));
    rig.run();
}

/// Killed while its files grow, a database comes back with all that it was told to keep,
/// and the files go on growing from where they are.
#[track_caller]
fn grows_and_is_killed(layout: &str) {
    let rig = Rig::with(layout, ADDING);
    let mut pages = 0;
    for round in 0..4 {
        let mut child = rig.begin(150 + round * 67);
        signal(&child, Signal::KILL);
        child.wait().expect("an end");
        let acknowledged = rig.acknowledged();
        let found = rig.recover();
        assert_eq!(found["acknowledged"], acknowledged);
        assert!(found["commit"].as_u64() >= Some(acknowledged), "{found}");
        // Those of the working set, and two for each transaction at least.
        let checked = found["pages_read"].as_u64().expect("a number");
        assert!(checked >= 256 + 2 * acknowledged && checked > pages, "{found}");
        pages = checked;
    }
    let (stdout, stderr, code) =
        run(rig.weir(&["--data", "d", "--runtime", "200ms", "-o", "json"]));
    assert_eq!(code, Some(0), "{stderr}");
    let json: Value = serde_json::from_str(&stdout).expect("JSON");
    let database = &json["databases"][0];
    assert_eq!(database["load"]["failed"], 0);
    let size = |file: usize| database["files"][file]["size_on_disk_bytes"].as_u64();
    let sizes = size(0).zip(size(1)).map(|(one, two)| one + two);
    assert!(sizes >= Some((8 << 20) + pages * 8192 - (2 << 20)), "{database}");
}

#[test]
fn files_on_a_disk_grow_and_nothing_is_lost_by_kill_9() {
    grows_and_is_killed(&format!(
        "[[volume]]\nname = \"disk\"\nsize = \"1 GiB\"\nlatency = \"1ms\"\nunlimited = true\n\
         [[file]]\nname = \"log\"\nrole = \"log\"\nsize = \"1 MiB\"\non = \"disk\"\n\
         [[file]]\nname = \"d1\"\nrole = \"data\"\non = \"disk\"\n{GROWING}on = \"disk\"\n"
    ));
}

#[test]
fn files_of_an_instance_grow_and_nothing_is_lost_by_kill_9() {
    grows_and_is_killed(&format!(
        "edition = \"azure-mi-2018\"\nhost = {{ managed_instance = \"bc\", vcores = 8 }}\n\
         [[file]]\nname = \"log\"\nrole = \"log\"\nsize = \"1 MiB\"\n\
         [[file]]\nname = \"d1\"\nrole = \"data\"\n{GROWING}"
    ));
}

#[test]
fn a_run_goes_on_where_the_last_one_ended() {
    let rig = Rig::new();
    let transactions = rig.run()["databases"][0]["load"]["transactions"].clone();
    let first = rig.acknowledged();
    assert_eq!(transactions, first);
    let (_, stderr, code) = run(rig.weir(&["--data", "d"]));
    assert_eq!(code, Some(0));
    assert!(stderr.starts_with("recovered in "), "{stderr}");
    assert!(stderr.ends_with("; nothing that was acknowledged is lost\n"), "{stderr}");
    let found = rig.recover();
    assert!(rig.acknowledged() > first && found["commit"].as_u64() >= Some(rig.acknowledged()));
}

#[test]
fn a_run_is_observed_as_a_simulation_is() {
    let rig = Rig::new();
    let shown = |verb: &str| {
        let file = format!("{verb}.weirobs");
        let args = [verb, "layout.toml", "oltp.toml", "--every", "50ms", "--observe", &file];
        let (_, stderr, code) = run(rig.0.weir(&args));
        assert_eq!((stderr.as_str(), code), ("", Some(0)));
        let (stdout, stderr, code) = run(rig.0.weir(&["observe", "show", &file, "-o", "json"]));
        assert_eq!(code, Some(0), "{stderr}");
        serde_json::from_str::<Value>(&stdout).expect("JSON")
    };
    let (simulated, wall) = (shown("sim"), shown("run"));
    assert_ne!(simulated["source"], wall["source"]);
    assert_eq!(simulated["entities"], wall["entities"]);
}

#[test]
fn ctrl_c_ends_a_run_with_what_came_until_then() {
    let rig = Rig::new();
    let child = rig.begin(50);
    signal(&child, Signal::INT);
    let output = child.wait_with_output().expect("an end");
    let text = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(text.contains("interrupted after ") && text.contains("WRITELOG"), "{text}");
    let found = rig.recover();
    assert!(found["commit"].as_u64() >= found["acknowledged"].as_u64());
}

#[test]
fn a_log_that_is_cut_is_told() {
    let rig = Rig::new();
    rig.run();
    let acknowledged = rig.acknowledged();
    // All but the checkpoints.
    let log = rig.volume("log");
    log.write_all_at(&vec![0; (1 << 20) - 8192], 8192).expect("room");
    let (said, code) = rig.refused();
    assert_eq!(code, Some(1));
    let start = "weir: acknowledged transactions are lost: the log ends at transaction ";
    let end = format!(", but all transactions up to {acknowledged} were acknowledged\n");
    assert!(said.starts_with(start) && said.ends_with(&end), "{said}");
}

#[test]
fn a_lost_write_of_a_page_is_told() {
    let rig = Rig::new();
    rig.run();
    rig.recover();
    let before = rig.pages();
    rig.run();
    let found = rig.recover();
    let changed = rig.pages().iter().zip(&before).position(|(now, then)| now != then);
    let changed = changed.expect("a page was changed");
    rig.put(changed, &before[changed]);
    let (said, code) = rig.refused();
    assert_eq!(code, Some(1));
    let (commit, changes) = (&found["commit"], &found["changes"]);
    let end = format!(", but transaction {commit} recorded {changes}: page writes are lost\n");
    assert!(said.starts_with("weir: the pages record ") && said.ends_with(&end), "{said}");
}

#[test]
fn a_damaged_page_is_told_with_its_place() {
    let rig = Rig::new();
    rig.run();
    rig.recover();
    let pages = rig.pages();
    let page = used(&pages);
    let mut damaged = pages[page].clone();
    damaged[4000] ^= 1;
    rig.put(page, &damaged);
    let (said, code) = rig.refused();
    assert_eq!(code, Some(3));
    let offset = page * PAGE;
    let start = format!("weir: database file \"data\": page {page}, at offset {offset}: ");
    assert!(said.starts_with(&format!("{start}it is torn or damaged: ")), "{said}");
    // It is a whole page, and another one.
    let other = page + 1 + used(&pages[page + 1..]);
    rig.put(page, &pages[other]);
    assert_eq!(
        rig.refused(),
        (
            format!(
                "{start}it is page {other} of data file 0: a write or a read went to the wrong \
                 place\n"
            ),
            Some(3)
        )
    );
    rig.put(page, &pages[page]);
    rig.recover();
}

#[test]
fn a_torn_page_is_repaired_by_the_log() {
    let rig = Rig::new();
    // No checkpoint: the log has all there is.
    rig.0.file("oltp.toml", &OLTP.replace("200ms", "1h"));
    rig.0.file("layout.toml", &LAYOUT.replace("1 MiB", "64 MiB"));
    rig.run();
    let pages = rig.pages();
    // The database did not write it, so recovery counts it as a torn page.
    rig.put(used(&pages), &[7; PAGE]);
    let found = rig.recover();
    assert_eq!(found["torn_pages"], 1);
}

/// The caps say how much is done, not the machine.
#[test]
fn both_clocks_agree() {
    let rig = Rig::new();
    let limited = |data: &str, log: &str| {
        let volume = |name: &str, limits: &str| {
            format!(
                "[[volume]]\nname = \"{name}\"\nsize = \"1 GiB\"\nlatency = \"2ms\"\n{limits}\n"
            )
        };
        [volume("data", data), volume("log", log)].concat()
    };
    let figures = |verb: &str| {
        let args = [verb, "layout.toml", "oltp.toml", "--runtime", "5s", "-o", "json"];
        let (stdout, stderr, code) = run(rig.0.weir(&args));
        assert_eq!(code, Some(0), "{stderr}");
        let json: Value = serde_json::from_str(&stdout).expect("JSON");
        let database = &json["databases"][0];
        let rate = database["load"]["batches_per_s"].as_f64().expect("a rate");
        (rate, database["waits"][0]["wait"].clone())
    };
    let free = "unlimited = true";
    for (data, log) in
        [("limits = { iops = 1500 }", free), (free, "limits = { throughput = \"512 KiB/s\" }")]
    {
        rig.0.file("layout.toml", &limited(data, log));
        let (virtual_rate, virtual_wait) = figures("sim");
        let (wall_rate, wall_wait) = figures("run");
        let ratio = wall_rate / virtual_rate;
        assert!((0.95..1.05).contains(&ratio), "{wall_rate} and {virtual_rate}: {data} {log}");
        assert_eq!(wall_wait, virtual_wait, "{data} {log}");
    }
}

#[test]
fn invalid_runs_are_refused() {
    let rig = Rig::new();
    let check = |more: &[&str], expect: &str| {
        let (stdout, stderr, code) = run(rig.weir(more));
        assert_eq!((stdout.as_str(), stderr, code), ("", format!("weir: {expect}\n"), Some(2)));
    };
    rig.0.file("file", "");
    check(
        &["--data", "file"],
        "--data file: is a file; give a folder, or a path where one can be created",
    );
    check(&["--every", "1us"], "--every 1 us: must be at least 1 ms");
    let (_, stderr, code) = run(rig.weir(&["--recover-only"]));
    assert!(stderr.contains("--data <DIR>") && code == Some(2), "{stderr}");
    let jobs = rig.0.weir(&["run", "layout.toml", "jobs.fio"]);
    assert_eq!(
        run(jobs),
        (
            String::new(),
            "weir: jobs.fio: weir run takes an OLTP description, a file that ends in .toml; serve \
             the layout with weir serve and run fio there\n"
                .to_owned(),
            Some(2)
        )
    );
    // A folder with another database in it.
    rig.run();
    // That another one gives the working set is seen in the log, the rest is noted.
    rig.0.file("oltp.toml", &OLTP.replace("buffer_pool", "working_set = \"4 MiB\"\nbuffer_pool"));
    check(
        &["--data", "d"],
        "database file \"log\" belongs to another description: the data files or their sizes, \
         working_set or the size of the log differ; use the description with which it was created, \
         or another folder",
    );
    rig.0.file("oltp.toml", OLTP);
    rig.0.file("told", "many\n");
    check(
        &["--data", "d", "--acknowledged", "told"],
        "told: \"many\" is not a transaction number; the file was not written by weir run",
    );
}

#[test]
fn a_database_does_not_take_the_files_of_another() {
    let rig = Rig::new();
    let more =
        "[[volume]]\nname = \"log2\"\nsize = \"1 MiB\"\nlatency = \"1ms\"\nunlimited = true\n";
    rig.0.file("layout.toml", &[LAYOUT, more].concat());
    rig.run();
    rig.0.file("other.toml", &OLTP.replace("log = \"log\"", "log = \"log2\""));
    let other = ["run", "layout.toml", "other.toml", "--data", "d"];
    let (stdout, stderr, code) = run(rig.0.weir(&other));
    assert_eq!(
        (stdout.as_str(), stderr.as_str(), code),
        (
            "",
            "weir: file \"data\" in d belongs to the database whose log is \"log\", or overlaps \
             one of its files; give this database its own files, or another folder\n",
            Some(2)
        )
    );
    rig.run();
}

#[test]
fn a_log_that_is_gone_is_told() {
    let rig = Rig::new();
    rig.run();
    fs::remove_dir_all(rig.0.path("d/volumes/log")).expect("it is there");
    fs::remove_file(rig.0.path("d/acknowledged-log")).expect("it is there");
    assert_eq!(
        rig.refused(),
        (
            "weir: the database ran here before, and its log \"log\" is empty: the log is lost\n"
                .to_owned(),
            Some(1)
        )
    );
}
