//! `weir tune --control`: a running server is changed under load, and changed back.

use crate::common::{Place, Server, run};
use crate::tools::{self, needs};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fmt::Write;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use weir_client::{ClientError, Connection};
use weir_random::Rng;

const LAYOUT: &str = "edition = \"azure-premium-2015\"\n[[volume]]\nname = \"data\"\ntier = \
    \"P10\"\n[[volume]]\nname = \"log\"\ntier = \"P10\"\n";

/// Requests in flight of each reader.
const DEPTH: u64 = 32;

/// Clients that read 8 KiB at random offsets of exports until they are dropped.
struct Readers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    fn start(place: &Place, exports: &[&str]) -> Self {
        Self::with_depth(place, exports, DEPTH)
    }

    fn with_depth(place: &Place, exports: &[&str], depth: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = exports.iter().zip(0..).map(|(export, seed)| {
            let (client, stop) = (place.open(export), Arc::clone(&stop));
            // The server may end before its clients.
            thread::spawn(move || drop(read_until(client, Rng::new(&[seed]), depth, &stop)))
        });
        Self { threads: threads.collect(), stop }
    }
}

/// Keeps a number of reads in flight until it is told to stop.
fn read_until(
    mut client: Connection,
    mut random: Rng,
    depth: u64,
    stop: &AtomicBool,
) -> Result<(), ClientError> {
    let blocks = client.size().get() / 8192;
    let mut wanted = depth;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..wanted {
            client.queue_read(0, random.below(blocks) * 8192, 8192)?;
        }
        client.flush_out()?;
        wanted = client.receive(|_, answer| assert!(answer.is_ok(), "a read failed"))? as u64;
    }
    Ok(())
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
    }
}

/// Returns the jobs that describe the readers.
fn jobs(exports: &[&str]) -> String {
    let mut text = "[global]\nrw=randread\nbs=8k\niodepth=32\nruntime=10\ntime_based\n\
        direct=1\nioengine=libaio\n"
        .to_owned();
    for export in exports {
        writeln!(text, "[{export}]\nfilename=/dev/{export}").expect("text");
    }
    text
}

fn place() -> Place {
    let place = Place::new();
    place.file("job.fio", &jobs(&["data"]));
    place
}

fn arguments<'a>(goal: &'a [&'a str]) -> Vec<&'a str> {
    let all = ["tune", "layout.toml", "--control", "control.sock", "--workload", "job.fio"];
    [&all[..], &["--for", "1500ms", "--settle", "500ms", "-o", "json"], goal].concat()
}

/// Returns the tier of a volume of the server.
fn tier(place: &Place, volume: &str) -> String {
    let (listed, _, _) = run(place.weir(&["volume", "list", "--output", "csv"]));
    let line = listed.lines().find(|line| line.starts_with(&format!("{volume},"))).expect("a row");
    line.split(',').nth(2).expect("a tier").to_owned()
}

fn report(place: &Place, goal: &[&str], code: i32) -> (Value, String) {
    let (stdout, stderr, got) = run(place.weir(&arguments(goal)));
    assert_eq!(got, Some(code), "{stdout}{stderr}");
    (serde_json::from_str(&stdout).expect("JSON"), stderr)
}

#[test]
fn a_tier_is_changed_under_load_and_its_command_changes_it_back() {
    let place = place();
    let server = place.serve(LAYOUT, &[]);
    let readers = Readers::start(&place, &["data"]);
    let (report, said) = report(&place, &["--goal", "iops=2000"], 0);
    assert_eq!((&report["end"], &report["is_simulated"]), (&"reached".into(), &false.into()));
    let steps = report["steps"].as_array().expect("steps");
    assert_eq!(steps.len(), 1, "{report:#}");
    assert!(steps[0]["deviation"].as_f64().expect("a number") <= 0.1, "{report:#}");
    let because = steps[0]["because"].as_str().expect("a reason");
    assert!(because.contains("disk IOPS limit of data"), "{because}");
    assert_eq!(tier(&place, "data"), "P20");
    let undo = "weir volume set-tier data P10 --control control.sock";
    assert_eq!(report["undo"], serde_json::json!([undo]));
    assert!(said.contains("applying: weir volume set-tier data P20"), "{said}");
    assert!(said.contains(undo), "{said}");
    // The layout that is written is that of the server, where the next walk begins.
    let tuned = LAYOUT.replacen("P10", "P20", 1);
    place.file("layout.toml", &tuned);
    let (again, said) = self::report(&place, &["--goal", "iops=2000"], 0);
    assert_eq!((&again["end"], said.as_str()), (&"reached".into(), ""), "{again:#}");
    assert_eq!(again["steps"], serde_json::json!([]));
    let words: Vec<&str> = undo.split(' ').skip(1).collect();
    assert_eq!(run(place.weir(&words)).2, Some(0));
    assert_eq!(tier(&place, "data"), "P10");
    drop(readers);
    server.stop();
}

#[test]
fn provisioned_rates_are_changed_under_load_and_set_back() {
    let place = place();
    let layout = "edition = \"azure-now\"\n[[volume]]\nname = \"data\"\nfamily = \"premium-ssd-v2\"\nsize = \"1 \
        TiB\"\n";
    let server = place.serve(layout, &[]);
    let readers = Readers::start(&place, &["data"]);
    // A purchase of 3,300 would be within the tolerance, and at its edge.
    let (report, said) = report(&place, &["--goal", "iops=3360"], 0);
    assert_eq!(report["end"], "reached", "{report:#}");
    let steps = report["steps"].as_array().expect("steps");
    let change = steps[0]["change"].as_str().expect("words");
    assert!(change.starts_with("data with 3"), "{change}");
    let undo = report["undo"][0].as_str().expect("a command");
    let expect =
        "weir volume set-rates data --iops 3000 --throughput \"125 MB/s\" --control control.sock";
    assert_eq!(undo, expect, "{said}");
    let limit = || {
        let (status, _, _) = run(place.weir(&["status", "-o", "json"]));
        let status: Value = serde_json::from_str(&status).expect("JSON");
        status["hosts"][0]["volumes"][0]["limit_iops"].as_u64().expect("a limit")
    };
    // The fixed steps are 3,300 and 3,600. What is asked is bought, to within the error of the measured rate.
    assert!((3344..3550).contains(&limit()), "{}", limit());
    // The layout does not have what was bought.
    let (_, refused, code) = run(place.weir(&arguments(&["--goal", "iops=3360"])));
    assert!(refused.contains("data has 3,000 IOPS here and 3,"), "{refused}");
    assert_eq!(code, Some(2));
    let back = ["volume", "set-rates", "data", "--iops", "3000", "--throughput", "125 MB/s"];
    assert_eq!(run(place.weir(&back)).1, "data has 3,000 IOPS and 125 MB/s\n");
    assert_eq!(limit(), 3000);
    drop(readers);
    server.stop();
}

/// The throughput of io2 follows from its operations, which are all that is set, also to undo it.
#[test]
fn operations_are_bought_alone_where_throughput_follows_and_set_back() {
    let place = place();
    let layout = "edition = \"aws\"\nhost = { unlimited = true }\n[[volume]]\nname = \"data\"\nfamily = \"io2\"\n\
        size = \"100 GiB\"\niops = 1000\n";
    let server = place.serve(layout, &[]);
    let readers = Readers::start(&place, &["data"]);
    let (report, said) = report(&place, &["--goal", "iops=1500"], 0);
    assert_eq!(report["end"], "reached", "{report:#}");
    let undo = report["undo"][0].as_str().expect("a command");
    assert_eq!(undo, "weir volume set-rates data --iops 1000 --control control.sock", "{said}");
    let words: Vec<&str> = undo.split(' ').skip(1).collect();
    let (_, stderr, code) = run(place.weir(&words));
    assert_eq!(code, Some(0), "{stderr}");
    drop(readers);
    server.stop();
}

/// A load that is not that of the description is found before anything is changed.
#[test]
fn a_load_of_another_system_changes_nothing() {
    let place = place();
    let server = place.serve(LAYOUT, &[]);
    let readers = Readers::start(&place, &["data", "log"]);
    let (report, said) = report(&place, &["--goal", "iops=2000"], 1);
    assert_eq!(report["end"], "unpredicted");
    let verdict = report["verdict"].as_str().expect("text");
    assert!(verdict.contains("before any change (500 IOPS at "), "{verdict}");
    assert!(verdict.contains(" predicted, "), "{verdict}");
    assert_eq!((tier(&place, "data").as_str(), said.as_str()), ("P10", ""));
    drop(readers);
    server.stop();
}

/// Starts `weir tune`, which waits this time after the first change, and returns when it says what it
/// applies.
fn until_applied(place: &Place, settle: &str) -> (Child, BufReader<ChildStderr>) {
    let mut args = arguments(&["--goal", "iops=2000"]);
    let at = args.iter().position(|own| *own == "500ms").expect("the wait after a change");
    args[at] = settle;
    let mut child = place.weir(&args).spawn().expect("a program");
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    stderr.read_line(&mut line).expect("text");
    assert!(line.starts_with("applying: weir volume set-tier data P20"), "{line}");
    (child, stderr)
}

#[test]
fn an_interruption_undoes_the_changes() {
    let place = place();
    let server = place.serve(LAYOUT, &[]);
    let readers = Readers::start(&place, &["data"]);
    let (mut child, mut stderr) = until_applied(&place, "300s");
    while tier(&place, "data") != "P20" {
        thread::yield_now();
    }
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process");
    kill_process(pid, Signal::INT).expect("it is running");
    let mut said = String::new();
    stderr.read_to_string(&mut said).expect("text");
    assert_eq!(child.wait().expect("an end").code(), Some(130), "{said}");
    assert_eq!(said, "undoing: weir volume set-tier data P10 --control control.sock\n");
    let mut stdout = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut stdout).expect("text");
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!((&report["end"], &report["undo"]), (&"interrupted".into(), &serde_json::json!([])));
    assert_eq!(report["undone"], serde_json::json!(["data as P20"]));
    assert_eq!(tier(&place, "data"), "P10");
    drop(readers);
    server.stop();
}

#[test]
fn a_server_that_ends_in_a_step_is_reported_with_what_is_applied() {
    let place = place();
    let server = place.serve(LAYOUT, &[]);
    let readers = Readers::start(&place, &["data"]);
    let (mut child, _stderr) = until_applied(&place, "2s");
    drop(readers);
    server.stop();
    let mut stdout = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut stdout).expect("text");
    assert_eq!(child.wait().expect("an end").code(), Some(3), "{stdout}");
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(report["end"], "failed");
    let verdict = report["verdict"].as_str().expect("text");
    assert!(verdict.starts_with("data as P20: no server answers at control.sock"), "{verdict}");
    // A reason follows if it is another one.
    assert!(verdict.contains("; the changes could not be undone"), "{verdict}");
    let undo = "weir volume set-tier data P10 --control control.sock";
    assert_eq!(report["undo"], serde_json::json!([undo]));
}

#[test]
fn what_is_not_the_system_is_refused_before_anything_changes() {
    let place = place();
    let refused = |args: &[&str], code: i32, expect: &str| {
        let (_, said, got) = run(place.weir(args));
        assert_eq!(got, Some(code), "{said}");
        assert!(said.contains(expect), "{expect:?} is not in:\n{said}");
    };
    place.file("layout.toml", LAYOUT);
    let goal = arguments(&["--goal", "iops=2000"]);
    refused(&goal, 3, "control.sock");
    let server = place.serve(LAYOUT, &[]);
    refused(&goal, 3, "no request arrived in 1500 ms; start the load");
    place.file("layout.toml", &LAYOUT.replacen("P10", "P20", 1));
    refused(&goal, 2, "is not the layout of the server: data has P20 here and P10 there");
    place.file("layout.toml", &format!("{LAYOUT}[[volume]]\nname = \"more\"\ntier = \"P10\"\n"));
    refused(&goal, 2, "it has no volume more");
    let simulated = ["tune", "layout.toml", "--workload", "job.fio"];
    refused(&[&simulated[..], &["--for", "1s"]].concat(), 2, "--control");
    refused(&[&simulated[..], &["--keep"]].concat(), 2, "--control");
    place.file("oltp.toml", crate::observe::OLTP);
    let databases = ["tune", "layout.toml", "--workload", "oltp.toml", "--control", "control.sock"];
    refused(&databases, 2, "a server sees requests, not transactions");
    assert_eq!(tier(&place, "data"), "P10");
    server.stop();
}

/// A P15 bursts to 3,500 IOPS: only with empty buckets does it show its 1,100.
#[test]
fn burst_credits_are_emptied_to_measure_and_filled_again() {
    let place = place();
    let layout = "edition = \"azure-now\"\n[[volume]]\nname = \"data\"\ntier = \"P10\"\n\
        credits = \"50 %\"\n";
    let server = place.serve(layout, &[]);
    let readers = Readers::start(&place, &["data"]);
    let (report, said) = report(&place, &["--goal", "iops=1000"], 0);
    let measured = report["steps"][0]["measured"][0]["value"].as_f64().expect("a rate");
    assert!((1_000.0..1_200.0).contains(&measured), "{report:#}");
    let emptied =
        "emptying burst credits: weir volume set-credits data \"0 %\" --control control.sock";
    assert!(said.contains(emptied), "{said}");
    let (status, _, _) = run(place.weir(&["status", "-o", "json"]));
    let status: Value = serde_json::from_str(&status).expect("JSON");
    let volume = &status["hosts"][0]["volumes"][0];
    for (left, full) in [("credits_operations", "full_operations"), ("credits_bytes", "full_bytes")]
    {
        let number = |key: &str| volume[key].as_f64().expect("a number");
        let share = number(left) / number(full);
        // The readers spend operations before and after the walk; bytes are earned all the time.
        assert!((0.4..0.55).contains(&share), "{left}: {share}");
    }
    drop(readers);
    server.stop();
}

/// Random disks and stripes, with credits that are spent first: rates after the changes are within
/// 10 % of the predictions. `WEIR_TUNE_SERVED=20` takes as many. Every other one is read by eight clients that wait
/// for each answer.
///
/// Other work on the machine slows the requests down after a prediction that was made without it. A system that misses
/// its prediction is therefore measured again, up to three times in all.
#[test]
fn predictions_hold_in_wall_time() {
    let count = std::env::var("WEIR_TUNE_SERVED").ok().and_then(|own| own.parse().ok());
    let mut random = Rng::new(&[7]);
    let mut worst: f64 = 0.0;
    for system in 0..count.unwrap_or(3) {
        let waits = system % 2 == 1;
        let (layout, goal) = random_system(&mut random, waits);
        let mut deviations = Vec::new();
        while deviations.len() < 3 && deviations.last().is_none_or(|last| *last > 0.1) {
            deviations.push(largest_deviation(&layout, &goal, waits));
        }
        assert!(deviations.last() <= Some(&0.1), "system {system}: {deviations:?}\n{layout}{goal}");
        let words = if waits { "eight that wait" } else { "32 in flight" };
        eprintln!("{words}: {:.1} %", deviations.last().unwrap_or(&0.0) * 100.0);
        worst = deviations.last().map_or(worst, |last| last.max(worst));
    }
    eprintln!("largest deviation: {:.1} %", worst * 100.0);
}

/// Returns a layout, and a goal for its IOPS. Eight clients that wait do not reach the goals of larger ones.
fn random_system(random: &mut Rng, is_small: bool) -> (String, String) {
    let tier = *random.one(&["P10", "P15", "P20"]);
    let columns = if is_small { 1 } else { 1 + random.below(3) };
    let more = if is_small { 20 } else { 20 + random.below(60) };
    let (disks, base) = match tier {
        "P10" => (columns, 500),
        "P15" => (columns, 1_100),
        _ => (1, 2_300),
    };
    let mut layout = "edition = \"azure-now\"\n".to_owned();
    match disks {
        1 => writeln!(layout, "[[volume]]\nname = \"data\"\ntier = \"{tier}\""),
        _ => writeln!(
            layout,
            "[[stripe]]\nname = \"data\"\nunit = \"64 KiB\"\nvolumes = {{ count = {disks}, tier = \
             \"{tier}\" }}"
        ),
    }
    .expect("text");
    let goal = format!("iops={}", base * disks + base * disks * more / 100);
    (layout, goal)
}

/// Tunes a served system. Returns the largest deviation of its steps from their predictions.
fn largest_deviation(layout: &str, goal: &str, waits: bool) -> f64 {
    let place = place();
    let server: Server = place.serve(layout, &[]);
    let readers = if waits {
        let job = jobs(&["data"]).replace("iodepth=32", "numjobs=8").replace("libaio", "psync");
        place.file("job.fio", &job);
        Readers::with_depth(&place, &["data"; 8], 1)
    } else {
        Readers::start(&place, &["data"])
    };
    let (stdout, stderr, code) = run(place.weir(&arguments(&["--goal", goal])));
    assert_eq!(code, Some(0), "{layout}{goal}\n{stdout}{stderr}");
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    let steps = report["steps"].as_array().expect("steps");
    let deviations = steps.iter().map(|step| step["deviation"].as_f64().expect("a number"));
    let largest = deviations.fold(0.0, f64::max);
    drop(readers);
    server.stop();
    largest
}

/// A data file with 500 IOPS, and room for another of its size, but not for a file of the next tier.
const INSTANCE: &str = "edition = \"azure-mi-2018\"\nhost = { managed_instance = \"gp\", vcores = 8, storage = \
    \"128 GiB\" }\n[[file]]\nname = \"data\"\nrole = \"data\"\ndatabase = \"shop\"\nsize = \"40 GiB\"\n";

const NEED: &str =
    "[data]\nsize = \"30 GiB\"\niops = 800\nrequest = \"8 KiB\"\nreads = \"100 %\"\n";

/// fio, which reads 8 KiB at random offsets of exports at a rate in all until it is dropped.
struct Fio(Child);

impl Fio {
    /// Starts it, and returns when its requests arrive.
    fn start(place: &Place, exports: &[&str], rate: usize) -> Self {
        let mut fio = Command::new("fio");
        let each = format!("--rate_iops={}", rate / exports.len());
        fio.args(["--ioengine=nbd", "--rw=randread", "--bs=8k", "--iodepth=64", "--runtime=600"])
            .args(["--time_based", "--thread", each.as_str()]);
        for export in exports {
            let socket = place.path("nbd.sock");
            fio.arg(format!("--name={export}"))
                .arg(format!("--uri=nbd+unix:///{export}?socket={}", socket.display()));
        }
        fio.current_dir(place.dir()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut fio = Self(fio.spawn().expect("a program"));
        let reads = || -> Vec<u64> {
            let (status, _, _) = run(place.weir(&["status", "-o", "json"]));
            let status: Value = serde_json::from_str(&status).expect("JSON");
            let volumes = status["hosts"][0]["volumes"].as_array().expect("volumes").clone();
            let own = volumes.iter().filter(|own| exports.iter().any(|name| own["name"] == *name));
            own.map(|own| own["reads"].as_u64().expect("a count")).collect()
        };
        let before = reads();
        assert_eq!(before.len(), exports.len(), "{exports:?}");
        while reads().iter().zip(&before).any(|(now, before)| now == before) {
            assert!(fio.0.try_wait().expect("a process").is_none(), "fio has ended");
        }
        fio
    }
}

impl Drop for Fio {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts `weir tune` on the instance, and returns when it waits for requests to the file that it added.
fn until_added(place: &Place, wait: &str) -> (Child, BufReader<ChildStderr>) {
    place.file("need.toml", NEED);
    let args = ["tune", "layout.toml", "--control", "control.sock", "--need", "need.toml"];
    let times = ["--for", "2s", "--settle", "1s", "--file-wait", wait, "-o", "json"];
    let mut child = place.weir(&[&args[..], &times].concat()).spawn().expect("a program");
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut said = String::new();
    while !said.contains("waiting for a share of the requests to reach data-2; add every new file")
    {
        assert!(stderr.read_line(&mut said).expect("text") > 0, "{said}");
    }
    let create = "applying: weir volume create data-2 --size \"40 GiB\" --role data --database shop \
        --control control.sock; to undo: weir volume delete data-2 --if-unused --control control.sock";
    assert!(said.contains(create), "{said}");
    (child, stderr)
}

/// Returns the report of a walk, its exit code, and what it said.
fn ended(mut child: Child, mut stderr: BufReader<ChildStderr>) -> (Value, Option<i32>, String) {
    let (mut stdout, mut said) = (String::new(), String::new());
    child.stdout.take().expect("a pipe").read_to_string(&mut stdout).expect("text");
    stderr.read_to_string(&mut said).expect("text");
    let code = child.wait().expect("an end").code();
    (serde_json::from_str(&stdout).expect("JSON"), code, said)
}

fn has_volume(place: &Place, name: &str) -> bool {
    let (listed, _, _) = run(place.weir(&["volume", "list", "--output", "csv"]));
    listed.lines().any(|line| line.starts_with(&format!("{name},")))
}

/// A file is added to a served instance, and the load is measured once clients use it.
#[test]
fn a_file_is_added_under_load_and_measured_when_it_is_used() {
    needs!("fio");
    let place = Place::new();
    let server = place.serve(INSTANCE, &[]);
    let fio = Fio::start(&place, &["data"], 800);
    let (child, stderr) = until_added(&place, "300s");
    drop(fio);
    let fio = Fio::start(&place, &["data", "data-2"], 800);
    let (report, code, said) = ended(child, stderr);
    assert_eq!((code, &report["end"]), (Some(0), &"reached".into()), "{said}{report:#}");
    assert_eq!(report["steps"][0]["change"], "new file data-2 of 40 GiB");
    assert_eq!(
        report["undo"],
        serde_json::json!(["weir volume delete data-2 --if-unused --control control.sock"])
    );
    assert!(has_volume(&place, "data-2"));
    // The command deletes it once no client uses it.
    let delete = ["volume", "delete", "data-2", "--if-unused"];
    let (_, refused, code) = run(place.weir(&delete));
    assert_eq!(code, Some(2), "{refused}");
    assert!(
        refused.contains("clients are connected to it, a backup reads it, or it holds data"),
        "{refused}"
    );
    drop(fio);
    while run(place.weir(&delete)).2 != Some(0) {
        thread::yield_now();
    }
    assert!(!has_volume(&place, "data-2"));
    server.stop();
}

/// A file that nobody uses is deleted again, also after an interruption; one that has data stays, and is named.
#[test]
fn a_file_that_is_not_used_is_deleted_and_one_with_data_stays() {
    needs!("fio");
    let place = Place::new();
    let server = place.serve(INSTANCE, &[]);
    let fio = Fio::start(&place, &["data"], 800);
    let (child, stderr) = until_added(&place, "1s");
    let (report, code, said) = ended(child, stderr);
    assert_eq!((code, &report["end"]), (Some(3), &"failed".into()), "{said}{report:#}");
    let verdict = report["verdict"].as_str().expect("text");
    assert!(verdict.contains("data-2 got no share of the requests in 1 s"), "{verdict}");
    assert!(verdict.ends_with("all changes are undone"), "{verdict}");
    assert!(!has_volume(&place, "data-2"));

    let (child, stderr) = until_added(&place, "300s");
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process");
    kill_process(pid, Signal::INT).expect("it is running");
    let (report, code, said) = ended(child, stderr);
    assert_eq!((code, &report["end"]), (Some(130), &"interrupted".into()), "{said}{report:#}");
    assert!(!has_volume(&place, "data-2"), "{said}");

    let (child, stderr) = until_added(&place, "3s");
    // A header alone is no share of the requests.
    let mut client = place.open("data-2");
    client.write(0, &[7; 4096]).expect("a write");
    client.close().expect("an end");
    let (report, code, said) = ended(child, stderr);
    assert_eq!((code, &report["end"]), (Some(3), &"failed".into()), "{said}{report:#}");
    let verdict = report["verdict"].as_str().expect("text");
    assert!(verdict.ends_with("except for files in use, which stay: data-2"), "{verdict}");
    assert!(said.contains("data-2 stays: "), "{said}");
    let mut client = place.open("data-2");
    let mut data = [0; 4096];
    client.read(0, &mut data).expect("a read");
    assert_eq!(data, [7; 4096]);
    client.close().expect("an end");
    // The next walk needs a layout that has it.
    let args = ["tune", "layout.toml", "--control", "control.sock", "--need", "need.toml"];
    let (_, refused, code) = run(place.weir(&args));
    assert_eq!(code, Some(2), "{refused}");
    assert!(refused.contains("it also has the volume data-2"), "{refused}");
    drop(fio);
    server.stop();
}
