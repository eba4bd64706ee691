//! `weir tune --rounds`: scripts, and the observations that a walk waits for. The real system is a
//! simulated one.

use crate::common::{Place, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// The disks have spent their burst credits.
const LAYOUT: &str = "edition = \"azure-now\"\nregion = \"westeurope\"\n\
    host = { size = \"D8ds_v5\" }\n[[volume]]\nname = \"data\"\ntier = \"P20\"\ncredits = \"0 %\"\n\
    [[volume]]\nname = \"log\"\ntier = \"P10\"\ncredits = \"0 %\"\n";

/// The disks of the first round, which is a stripe.
const COLUMNS: [&str; 6] =
    ["--role", "data-0=data", "--role", "data-1=data", "--role", "data-2=data"];

fn place() -> Place {
    let place = Place::new();
    place.file("layout.toml", LAYOUT);
    place.file("job.fio", &job(7));
    observe(&place, "layout.toml", "before.weirobs");
    place
}

/// Returns jobs with this many reads of the data in flight. The disk takes 2.2 ms for each: 2 do 900 a
/// second, and 7 would do 3,100, where the disk does 2,300.
fn job(depth: u32) -> String {
    format!(
        "[global]\nrw=randread\nbs=8k\nruntime=60\ntime_based\ndirect=1\nioengine=libaio\n\
         [a]\nfilename=/dev/data\niodepth={depth}\n[b]\nfilename=/dev/log\nrw=write\n\
         rate_iops=100\n"
    )
}

/// Observes the load on a layout.
#[track_caller]
fn observe(place: &Place, layout: &str, out: &str) {
    // A file appears as a whole.
    let (_, stderr, code) =
        run(place.weir(&["sim", layout, "job.fio", "--observe", "part", "--every", "1s"]));
    assert_eq!(code, Some(0), "{stderr}");
    fs::rename(place.path("part"), place.path(out)).expect("a rename");
}

const ARGS: [&str; 11] = [
    "tune",
    "layout.toml",
    "--load",
    "before.weirobs",
    "--role",
    "data=data",
    "--role",
    "log=log",
    "--rounds",
    "walk",
    "--as",
];

fn tune(place: &Place, more: &[&str]) -> Command {
    place.weir(&[&ARGS[..], &["az"], more].concat())
}

/// Starts a walk, and waits until it waits for this file.
#[track_caller]
fn until_waiting(mut command: Command, file: &str) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("weir");
    let stderr = child.stderr.take().expect("stderr");
    let wanted = format!("waiting for walk/{file}");
    let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
    if !lines.any(|line| line.starts_with(&wanted)) {
        let output = child.wait_with_output().expect("its end");
        panic!("it does not wait for {file}: {output:?}");
    }
    child
}

#[track_caller]
fn ended(child: Child) -> (Value, Option<i32>) {
    let output = child.wait_with_output().expect("its end");
    let text = String::from_utf8_lossy(&output.stdout);
    (serde_json::from_str(&text).unwrap_or(Value::Null), output.status.code())
}

/// A walk that is interrupted goes on with the same command, and ends when an observation shows that
/// storage no longer holds the load back.
#[test]
fn a_real_system_is_tuned_in_rounds() {
    let place = place();
    let waiting = until_waiting(tune(&place, &["-o", "json"]), "round-1.weirobs");
    let script = fs::read_to_string(place.path("walk/round-1-az.sh")).expect("a script");
    assert!(script.contains("disk data-2 256 --sku Premium_LRS"), "{script}");
    let undo = fs::read_to_string(place.path("walk/round-1-undo-az.sh")).expect("a script");
    assert!(undo.contains("disk data 512 --sku Premium_LRS"), "{undo}");
    let pid = Pid::from_raw(i32::try_from(waiting.id()).expect("a pid")).expect("a process");
    kill_process(pid, Signal::INT).expect("a signal");
    let (report, code) = ended(waiting);
    assert_eq!((code, &report["end"]), (Some(130), &"interrupted".into()), "{report:#}");
    // The script may have been edited since.
    place.file("walk/round-1-az.sh", "edited\n");
    observe(&place, "walk/round-1.toml", "walk/round-1.weirobs");
    // The disks have other names now.
    let (_, stderr, code) = run(tune(&place, &[]));
    assert_eq!(code, Some(2), "{stderr}");
    let expect = "walk/round-1.weirobs: has no data; it has log, data-0, data-1, data-2; add a --role \
                  NAME=data and run the command again";
    assert!(stderr.contains(expect), "{stderr}");
    let more = ["--out", "tuned.toml", "--html", "walk.html", "-o", "json"];
    let (stdout, stderr, code) = run(tune(&place, &[&more[..], &COLUMNS].concat()));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(report["verdict"], "the goal is reached in 1 round", "{report:#}");
    assert_eq!(report["is_simulated"], false);
    assert_eq!(report["undo"][0], "walk/round-1-undo-az.sh");
    let step = &report["steps"][0];
    let iops = |metrics: &Value| {
        let all = metrics.as_array().expect("metrics");
        let own = all.iter().find(|own| own["name"] == "data iops").expect("the rate");
        own["value"].as_f64().expect("a number")
    };
    assert!((2_200.0..2_310.0).contains(&iops(&report["before"]["metrics"])), "{report:#}");
    assert!((2_700.0..3_300.0).contains(&iops(&step["measured"])), "{step:#}");
    let price = |name: &str| report["price"][name].as_f64().expect("a price");
    assert!(price("after") > price("before"), "{report:#}");
    let tuned = fs::read_to_string(place.path("tuned.toml")).expect("the layout");
    assert_eq!(tuned, fs::read_to_string(place.path("walk/round-1.toml")).expect("the layout"));
    assert_eq!(fs::read_to_string(place.path("walk/round-1-az.sh")).expect("it"), "edited\n");
    assert!(fs::read_to_string(place.path("walk.html")).expect("a page").contains("1 round"));
}

/// A walk waits for the end of an observation. If the change did not bring what was predicted, it ends.
#[test]
fn a_round_that_brings_nothing_ends_the_walk() {
    let place = place();
    // A long queue is a demand that a changed system would serve.
    place.file("job.fio", &job(64));
    observe(&place, "layout.toml", "before.weirobs");
    let waiting = until_waiting(tune(&place, &["-o", "json"]), "round-1.weirobs");
    let whole = fs::read(place.path("before.weirobs")).expect("an observation");
    // The script was not run, so the system is as before. Its recorder is still writing at first.
    fs::write(place.path("walk/round-1.weirobs"), &whole[..whole.len() / 2]).expect("a half");
    fs::write(place.path("walk/round-1.weirobs"), &whole).expect("all of it");
    let (report, code) = ended(waiting);
    assert_eq!((code, &report["end"]), (Some(1), &"unpredicted".into()), "{report:#}");
    let verdict = report["verdict"].as_str().expect("words");
    assert!(
        verdict.starts_with("round 1 did not bring what was predicted: data iops is 2,"),
        "{verdict}"
    );
}

#[test]
fn a_system_that_holds_nothing_back_needs_no_round() {
    let place = place();
    place.file("job.fio", &job(2));
    observe(&place, "layout.toml", "before.weirobs");
    let (stdout, stderr, code) = run(tune(&place, &[]));
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("the goal is reached already"), "{stdout}");
    assert!(!place.path("walk").exists());
}

#[test]
fn bad_input_is_refused_before_anything_is_written() {
    let place = place();
    let check = |args: &[&str], expect: &str| {
        let (stdout, stderr, code) = run(place.weir(&[&["tune", "layout.toml"], args].concat()));
        assert_eq!(code, Some(2), "{stdout}{stderr}");
        assert!(stderr.contains(expect), "{expect:?} is not in:\n{stderr}");
    };
    let load = ["--load", "before.weirobs"];
    check(&["--rounds", "walk", "--as", "az"], "--load");
    check(&[&load[..], &["--rounds", "walk"]].concat(), "--as");
    check(&[&load[..], &["--as", "az"]].concat(), "--rounds");
    check(&["--workload", "job.fio", "--rounds", "walk", "--as", "az"], "--load");
    let goal = [&load[..], &["--rounds", "walk", "--as", "az", "--goal", "iops=5"]].concat();
    check(&goal, "--goal");
    check(&[&load[..], &["--machine", "m"]].concat(), "options of scripts need --rounds DIR");
    let walk = [&load[..], &["--role", "data=data", "--role", "log=log", "--rounds"]].concat();
    let with = |more: &[&'static str]| [&walk[..], more].concat();
    check(&with(&["layout.toml", "--as", "az"]), "--rounds layout.toml: is not a folder");
    check(&with(&["walk", "--as", "ola"]), "--as ola: writes a backup");
    check(
        &with(&["walk", "--as", "az", "--mount", "data=/mnt/d"]),
        "--mount data=/mnt/d: az scripts",
    );
    check(&with(&["walk", "--as", "az", "--control", "s.sock"]), "cannot be used with");
    assert!(!place.path("walk/round-1.toml").exists());
    // The folder of another walk.
    fs::create_dir_all(place.path("walk")).expect("a folder");
    place.file("walk/round-1.toml", LAYOUT);
    check(&with(&["walk", "--as", "az"]), "walk/round-1.toml: belongs to another walk");
    assert!(!place.path("walk/round-1-az.sh").exists());
    // Another kind of file appears in its place.
    fs::remove_file(place.path("walk/round-1.toml")).expect("it was there");
    place.file("walk/round-1.weirobs", "Device r/s w/s\nsda 1 2\n");
    check(
        &with(&["walk", "--as", "az"]),
        "for files of other tools: weir observe import FILE --out walk/",
    );
}
