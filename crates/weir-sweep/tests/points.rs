//! Sweeps of a small layout, through the library.

use std::io;
use std::sync::Mutex;
use weir_catalog::Catalog;
use weir_sweep::{Inputs, Journal, Load, NamedText, Results, Shard, Sweep, SweepError, csv, run};
use weir_workload::Source;

const LAYOUT: &str = "edition = \"azure-now\"\nhost = { size = \"D8s_v3\" }\n\n[[volume]]\n\
    name = \"data\"\ntier = \"P20\"\n";
const JOB: &str = "[global]\nioengine=libaio\ndirect=1\nrw=randread\nsize=1g\nruntime=1s\n\
    time_based\n[job]\nfilename=/mnt/data\niodepth=8\nbs=4k\n";

struct None;

impl Source for None {
    fn env(&self, _: &str) -> Option<String> {
        Option::None
    }

    fn include(&self, _: &str, _: &str) -> io::Result<String> {
        Err(io::ErrorKind::NotFound.into())
    }
}

fn named(name: &str, text: &str) -> NamedText {
    NamedText { name: name.to_owned(), text: text.to_owned() }
}

fn sweep_of(parameters: &str, layout: &str) -> Result<Sweep, SweepError> {
    let keys = "layout = \"layout.toml\"\nworkload = \"job.fio\"\n";
    Sweep::new(Inputs {
        version: "1",
        sweep: named("sweep.toml", &format!("{keys}{parameters}")),
        layout: named("layout.toml", layout),
        workload: Load::Texts(vec![named("job.fio", JOB)]),
        edition: Option::None,
        catalog: Catalog::builtin(),
        editions: Vec::new(),
        source: Box::new(None),
    })
}

fn sweep(parameters: &str) -> Sweep {
    sweep_of(parameters, LAYOUT).unwrap_or_else(|error| panic!("{error}"))
}

fn wrong(parameters: &str) -> String {
    sweep_of(parameters, LAYOUT).expect_err(parameters).to_string()
}

const GRID: &str = "[[parameter]]\nname = \"tier\"\nlayout = \"volume.data.tier\"\n\
    values = [\"P10\", \"P20\"]\n[[parameter]]\nname = \"block\"\nworkload = \"job.bs\"\n\
    from = \"4 KiB\"\nto = \"16 KiB\"\nsteps = 3\nscale = \"log\"\n";

/// Runs points on two threads, through a journal.
fn results(sweep: &Sweep, points: &[u64]) -> Results {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.journal");
    let mut journal = Journal::open(&path, sweep, Shard::WHOLE).expect("a journal");
    run(sweep, points, 2, &|| false, |point, row| journal.add(point, row)).expect("a run");
    journal.results(sweep)
}

fn column(results: &Results, name: &str) -> Vec<String> {
    let at = results.columns().find("--of", name).expect("a column");
    results.rows().iter().map(|row| row[at].clone()).collect()
}

#[test]
fn a_point_is_what_its_parameters_say() {
    let results = results(&sweep(GRID), &[0, 1, 2, 3, 4, 5]);
    assert_eq!(column(&results, "tier"), ["P10", "P10", "P10", "P20", "P20", "P20"]);
    let blocks = ["4096", "8192", "16384"];
    assert_eq!(column(&results, "block_bytes"), [blocks, blocks].concat());
    // P10 has 500 operations a second, P20 2,300; both burst on credits.
    let iops = column(&results, "iops");
    assert!(iops.iter().all(|iops| iops.parse::<f64>().is_ok_and(|iops| iops > 400.0)), "{iops:?}");
    assert_eq!(column(&results, "status"), ["ok"; 6]);
    assert!(column(&results, "price")[0].parse::<f64>().is_ok_and(|price| price > 0.0));
    assert_eq!(column(&results, "currency")[0], "USD");
}

#[test]
fn the_runtime_of_the_sweep_replaces_that_of_the_jobs() {
    let iops = |keys: &str| column(&results(&sweep(&format!("{keys}{GRID}")), &[3]), "iops");
    assert_ne!(iops("runtime = \"3s\"\n"), iops(""));
    assert_eq!(iops("runtime = \"1s\"\n"), iops(""));
}

#[test]
fn results_depend_on_neither_threads_nor_order() {
    let sweep = sweep(GRID);
    let one = csv::write(&results(&sweep, &[0, 1, 2, 3, 4, 5]));
    assert_eq!(csv::write(&results(&sweep, &[5, 3, 1, 0, 2, 4])), one);
}

#[test]
fn the_identity_is_that_of_all_inputs() {
    let identity = |own: &Sweep| own.identity().to_owned();
    let grid = identity(&sweep(GRID));
    assert_eq!(grid, identity(&sweep(GRID)));
    assert_ne!(grid, identity(&sweep(&format!("seed = 2\n{GRID}"))));
    let other = sweep_of(GRID, &LAYOUT.replace("P20", "P30")).expect("a sweep");
    assert_ne!(grid, identity(&other));
}

#[test]
fn a_point_whose_layout_is_invalid_is_a_row_with_the_reason() {
    // A disk of P20 has 512 GiB.
    let sizes = "[[parameter]]\nname = \"tier\"\nlayout = \"volume.data.tier\"\nvalues = [\"P10\", \
        \"P20\"]\n[[parameter]]\nname = \"size\"\nlayout = \"volume.data.size\"\nvalues = [\"100 GiB\", \
        \"400 GiB\"]\n";
    let results = results(&sweep(sizes), &[0, 1, 2, 3]);
    assert_eq!(column(&results, "status"), ["ok", "invalid", "ok", "ok"]);
    let (point, reason) = results.first_invalid().expect("a point");
    assert!(point == 1 && reason.starts_with("layout.toml:7:1: "), "{reason}");
    assert_eq!(column(&results, "iops")[1], "");
}

#[test]
fn wrong_parameters_name_themselves() {
    let parameter = |rest: &str| format!("[[parameter]]\nname = \"x\"\n{rest}\n");
    let check = |rest: &str, expect: &str| {
        let message = wrong(&parameter(rest));
        assert!(message.contains(expect), "{message}");
    };
    check("layout = \"volume.dta.tier\"\nvalues = [\"P10\"]", "did you mean \"data\"?");
    check(
        "layout = \"volum.data.tier\"\nvalues = [\"P10\"]",
        "parameter \"x\", value \"P10\": layout.toml:",
    );
    check(
        "layout = \"volume.data.tier\"\nvalues = [\"P10\", \"P99\"]",
        "value \"P99\": layout.toml:6:1: ",
    );
    check("layout = \"volume.data.teir\"\nvalues = [\"P10\"]", "did you mean `tier`?");
    check("workload = \"jb.bs\"\nvalues = [1]", "there is no section [jb]");
    check("workload = \"job.bss\"\nvalues = [1]", "unknown option \"bss\"");
    check("workload = \"job.thread\"\nvalues = [1]", "thread has no effect");
    check("workload = \"a.b.c\"\nvalues = [1]", "names no option of a job file");
    check("catalog = \"tier_set.x\"\nvalues = [1]", "catalog = \"FILE\"");
    check("values = [1]", "give one of layout, workload and catalog");
    check("layout = \"seed\"\nfrom = 1", "give values = [..], or from and to");
    check("layout = \"seed\"\nfrom = 1\nto = 5", "a grid needs step or steps");
    check("layout = \"seed\"\nfrom = 5\nto = 1\nstep = 1", "is not less than");
    check("layout = \"seed\"\nfrom = 1\nto = \"5 s\"\nstep = 1", "different units");
    check("layout = \"seed\"\nfrom = 1\nto = 5\nstep = 0", "a positive number");
    check("layout = \"seed\"\nfrom = 0\nto = 5\nsteps = 3\nscale = \"log\"", "above zero");
    check("layout = \"seed\"\nvalues = [1, 1]", "given twice");
    check("layout = \"seed\"\nvalues = [1]\nstep = 1", "exclude each other");
    check("layout = \"seed\"\nfrom = 1\nto = 10000000\nstep = 1", "more than 1000000 values");
    check(
        "layout = \"seed\"\nvalues = [1]\n[[parameter]]\nname = \"x\"\nlayout = \"region\"\nvalues = [1]",
        "has the column x",
    );
    let twice = wrong(
        "runtime = \"1s\"\n[[parameter]]\nname = \"x\"\nworkload = \"job.runtime\"\nvalues = [1]",
    );
    assert!(twice.contains("which runtime at the top already sets"), "{twice}");
    assert!(wrong("runtime = \"0s\"\n[[parameter]]\nname = \"x\"").contains("more than zero"));
    assert!(wrong("").contains("at least one [[parameter]]"));
    assert!(wrong("sample = 0\n[[parameter]]\nname = \"x\"").contains("sample = 0"));
    assert!(wrong("[[parameter]]\nnam = \"x\"").starts_with("sweep.toml:4:1: "));
    let reserved = "[[parameter]]\nname = \"iops\"\nlayout = \"seed\"\nvalues = [1]";
    assert!(wrong(reserved).contains("a column iops of their own"));
    let million = "from = 1\nto = 2000\nstep = 1\n";
    let two = format!(
        "[[parameter]]\nname = \"a\"\nlayout = \"seed\"\n{million}[[parameter]]\nname = \"b\"\nworkload = \"iodepth\"\n{million}"
    );
    assert!(wrong(&two).contains("the grid has 4000000 points, and at most 1000000 are possible"));
}

#[test]
fn a_value_may_need_another_parameter() {
    // Each machine is of one edition, and P20 is of azure-now.
    let both = "[[parameter]]\nname = \"edition\"\nlayout = \"edition\"\nvalues = [\"azure-now\", \"gcp\"]\n\
        [[parameter]]\nname = \"machine\"\nlayout = \"host.size\"\nvalues = [\"D8s_v3\", \"n2-standard-8\"]\n";
    assert!(wrong(both).contains("value \"gcp\""), "no point has another disk");
    let layout = "edition = \"azure-now\"\nhost = { size = \"D8s_v3\" }\n[[volume]]\nname = \"data\"\nlimits = { iops = 500 }\nlatency = \"1ms\"\n";
    let sweep = sweep_of(both, layout).expect("a sweep");
    let results = results(&sweep, &[0, 1, 2, 3]);
    assert_eq!(column(&results, "status"), ["ok", "invalid", "invalid", "ok"]);
}

#[test]
fn a_journal_keeps_whole_lines_and_belongs_to_one_sweep() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("out.csv.journal");
    let own = sweep(GRID);
    let mut journal = Journal::open(&path, &own, Shard::WHOLE).expect("a journal");
    let busy = Journal::open(&path, &own, Shard::WHOLE).expect_err("it is in use").to_string();
    assert!(busy.contains("another weir sweep"), "{busy}");
    run(&own, &[0, 1], 1, &|| false, |point, row| journal.add(point, row)).expect("a run");
    let rows = journal.results(&own);
    drop(journal);
    let whole = std::fs::read(&path).expect("a journal");
    std::fs::write(&path, [&whole[..], b"{\"point\":2,\"row\":[\"ok"].concat()).expect("a file");
    let journal = Journal::open(&path, &own, Shard::WHOLE).expect("a torn line is dropped");
    assert_eq!((journal.completed(), journal.results(&own)), (2, rows));
    drop(journal);
    assert_eq!(std::fs::read(&path).expect("a journal"), whole);
    let refused = |sweep: &Sweep, shard: &str| {
        let shard = shard.parse().expect("a shard");
        Journal::open(&path, sweep, shard).expect_err("another").to_string()
    };
    assert!(refused(&own, "1/2").contains("belongs to shard 1/1, and this is shard 1/2"));
    assert!(refused(&sweep(&format!("seed = 2\n{GRID}")), "1/1").contains("another sweep"));
    std::fs::write(&path, [&whole[..], b"{}\n"].concat()).expect("a file");
    assert!(refused(&own, "1/1").contains("line 4 is damaged"));
    std::fs::write(&path, b"hello\n").expect("a file");
    assert!(refused(&own, "1/1").contains("no journal of weir sweep"));
}

#[test]
fn a_stop_drops_the_points_that_are_not_complete() {
    let rows = Mutex::new(0);
    let stop = || *rows.lock().expect("a number") >= 2;
    let own = sweep(GRID);
    let all: Vec<u64> = (0..own.points()).collect();
    run(&own, &all, 1, &stop, |_, _| {
        *rows.lock().expect("a number") += 1;
        Ok::<(), SweepError>(())
    })
    .expect("a run");
    assert!((2..=4).contains(&*rows.lock().expect("a number")));
}
