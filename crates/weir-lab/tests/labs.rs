//! Labs of a few milliseconds, in virtual and wall time.

#![expect(clippy::unwrap_used, reason = "test code")]

use weir_catalog::Catalog;
use weir_lab::{Clocks, Lab, LabError, Options, find, run};
use weir_report::lab::{LabReport, Verdict};
use weir_units::{Bytes, Span};

/// Returns a lab with one run on a volume without limits. A run with a time series has no ramp.
fn lab(figures: &str) -> Lab {
    let file = format!(
        "title = \"t\"\narticle = \"0\"\nruntime = \"10ms\"\n\
         layout_text = '''\n[[volume]]\nname = \"v\"\nsize = \"4 MiB\"\nunlimited = true\nlatency = \"100us\"\n'''\n\
         [[run]]\nid = \"r\"\nevery = \"1ms\"\n\
         jobs_text = '''\n[j]\nfilename=/dev/v\nrw=randread\ntime_based\n'''\n{figures}"
    );
    Lab { name: "l".into(), file: toml::from_str(&file).unwrap() }
}

/// Returns a figure with a minimum or a maximum.
fn figure(metric: &str, compare: &str, expected: f64) -> String {
    format!(
        "[[figure]]\nid = \"{metric} {compare} {expected}\"\nrun = \"r\"\nmetric = \"{metric}\"\n\
         expected = {expected:?}\ncompare = \"{compare}\"\nplace = \"p\"\nbasis = \"direction\"\n"
    )
}

fn options(clocks: Clocks, tries: u32) -> Options {
    Options { clocks, tries, runtime: Span::from_millis(10), ..Options::default() }
}

fn report(lab: Lab, options: &Options) -> (LabReport, Vec<String>) {
    let mut said = Vec::new();
    let mut talk = |text: &str| said.push(text.to_owned());
    let mut reports = run(&[lab], &Catalog::builtin(), options, &mut talk).unwrap();
    (reports.0.remove(0), said)
}

#[test]
fn a_miss_in_wall_time_repeats_the_lab() {
    let figures = figure("iops", "at-least", 0.0) + &figure("iops", "at-most", 0.0);
    let (report, said) = report(lab(&figures), &options(Clocks::Both, 3));
    let expect = [
        vec!["l: r in virtual time".into()],
        [1, 2, 3]
            .map(|n: u32| [format!("l: wall: try {n} of 3"), "l: r in wall time, 10 ms".into()])
            .concat(),
    ]
    .concat();
    assert_eq!(said, expect);
    assert_eq!(report.tries, 3);
    assert_eq!(report.notes.last().unwrap(), "wall: try 3 of 3");
    let verdicts: Vec<Verdict> = report.figures.iter().map(|figure| figure.verdict).collect();
    assert_eq!(verdicts, [Verdict::Holds, Verdict::MissesBoth]);
    assert_eq!(report.figures[0].wall, report.figures[1].wall, "of different tries");
    assert!(!report.holds());
}

#[test]
fn a_lab_that_holds_is_not_repeated() {
    let holding = || lab(&figure("iops", "at-least", 0.0));
    let (tried, _) = report(holding(), &options(Clocks::Wall, 3));
    assert_eq!((tried.tries, tried.notes.last().unwrap().as_str()), (1, "wall: try 1 of 3"));
    let (only, said) = report(holding(), &options(Clocks::Wall, 1));
    assert_eq!(
        (only.tries, said.as_slice()),
        (1, ["l: r in wall time, 10 ms".to_owned()].as_slice())
    );
    let expect = "wall: files limited to 64 MiB (--size), 10 ms per run (--runtime), \
                  driven by Weir's runner over NBD";
    assert_eq!(only.notes, [expect]);
}

#[test]
fn a_miss_in_virtual_time_does_not_repeat_the_lab() {
    let missing = lab(&figure("iops", "at-most", 0.0));
    let (report, _) = report(missing, &options(Clocks::Virtual, 3));
    assert_eq!((report.tries, report.figures[0].verdict), (0, Verdict::MissesVirtual));
}

#[test]
fn missing_figures_differ_from_unmeasurable_ones() {
    let verdict = |metric: &str, clocks| {
        let (report, _) = report(lab(&figure(metric, "at-least", 0.0)), &options(clocks, 1));
        (report.figures[0].verdict, report.holds(), report.notes.last().unwrap().clone())
    };
    // Requests never wait at a volume without limits, so there are no shares of waits.
    let (unseen, wait) = ("only measured in virtual time", "wait_share:disk_iops");
    let (verdict_there, holds, _) = verdict(wait, Clocks::Virtual);
    assert_eq!((verdict_there, holds), (Verdict::NotMeasured, false));
    let note = format!("{wait} at-least 0: {unseen}");
    assert_eq!(verdict(wait, Clocks::Wall), (Verdict::NotRun, true, note));
    let hits = "series_last:disk_read_mib_per_s";
    let note = format!("{hits} at-least 0: {unseen}");
    assert_eq!(verdict(hits, Clocks::Both), (Verdict::Holds, true, note));
}

#[test]
fn options_are_checked_before_anything_runs() {
    let check = |options: Options, expect: &str| {
        let labs = ["io-size", "stripe"].map(|name| find(name).unwrap());
        let mut said = 0;
        let error = run(&labs, &Catalog::builtin(), &options, &mut |_| said += 1).unwrap_err();
        assert!(error.is_usage(), "{error:?}");
        assert_eq!((error.to_string().as_str(), said), (expect, 0));
    };
    let size = |size| Options { size, ..options(Clocks::Wall, 1) };
    let least = "lab \"io-size\" has blocks of 1 MiB; give at least that";
    check(size(Bytes::ZERO), &format!("--size 0 B: {least}"));
    check(size(Bytes::kib(1023)), &format!("--size 1023 KiB: {least}"));
    assert!(!LabError::Interrupted.is_usage());
}

/// Returns a lab with runs of databases and of a layout alone.
fn databases(figures: &str) -> Lab {
    let oltp = "users = 4\nvcores = 2\nsize = \"1 MiB\"\nbuffer_pool = \"2 MiB\"\nwarm = true\n\
                duration = \"200ms\"\ndata = [\"data\"]\nlog = \"log\"\n\
                [[transaction]]\nname = \"t\"\nshare = 1\nreads = 1\nwrites = 1\nlog = \"1 KiB\"\n\
                cpu = \"100us\"\n";
    let files = "[[file]]\nname = \"data\"\nrole = \"data\"\nsize = \"150 GiB\"\n\
                 [[file]]\nname = \"log\"\nrole = \"log\"\nsize = \"1 GiB\"\n";
    let run = |id: &str, tiers: &str, rest: &str| {
        let host =
            format!("host = {{ managed_instance = \"gp\", vcores = 8, tiers = \"{tiers}\" }}\n");
        format!("[[run]]\nid = \"{id}\"\nlayout_text = '''\n{host}{files}'''\n{rest}")
    };
    let file = format!(
        "title = \"t\"\narticle = \"0\"\nlayout_text = 'edition = \"azure-mi-2018\"'\n{}{}{}{figures}",
        run("load", "mi-2018", &format!("oltp_text = '''\n{oltp}'''\n")),
        run("by 2018", "mi-2018", ""),
        run("by 2020", "mi-2020", ""),
    );
    Lab { name: "l".into(), file: toml::from_str(&file).unwrap() }
}

/// Returns a figure with these keys.
fn keyed(metric: &str, keys: &str) -> String {
    let id = metric.split(':').next().unwrap();
    format!("[[figure]]\nid = \"{id}\"\nmetric = \"{metric}\"\nplace = \"p\"\n{keys}\n")
}

fn verdicts(report: &LabReport) -> Vec<(&str, Verdict)> {
    report.figures.iter().map(|figure| (figure.id.as_str(), figure.verdict)).collect()
}

#[test]
fn databases_and_layouts_have_their_own_figures() {
    let tiers = "basis = \"exact\"\npublished = { \"by 2020\" = \"P20\", \"by 2018\" = \"P15\" }";
    let some = "run = \"load\"\nbasis = \"prediction\"\ncompare = \"at-least\"\nexpected = 1";
    let wait = "run = \"load\"\nbasis = \"direction\"\npublished = \"WRITELOG\"";
    let figures =
        [keyed("tier:data", tiers), keyed("transactions_per_min", some), keyed("top_wait", wait)];
    let (report, said) = report(databases(&figures.concat()), &options(Clocks::Virtual, 1));
    // A layout is not run.
    assert_eq!(said, ["l: load in virtual time"]);
    assert_eq!(
        verdicts(&report),
        [
            ("tier: by 2018", Verdict::Holds),
            ("tier: by 2020", Verdict::Holds),
            ("transactions_per_min", Verdict::Holds),
            ("top_wait", Verdict::Holds),
        ]
    );
    assert_eq!(report.notes, ["virtual: 200 ms per run"]);
}

#[test]
fn a_known_miss_is_explained_and_a_new_one_is_not() {
    let holds = |gives: f64| {
        let explained = format!("explained = {{ gives = {gives:?}, why = \"w\" }}");
        let keys = "run = \"by 2018\"\nbasis = \"exact\"\npublished = 2300";
        let figure = keyed("limit_iops:data", &format!("{keys}\n{explained}"));
        let (report, _) = report(databases(&figure), &options(Clocks::Virtual, 1));
        assert_eq!(report.figures[0].verdict, Verdict::MissesVirtual);
        (report.figures[0].explained_miss, report.holds())
    };
    assert_eq!(holds(1_100.0), (true, true));
    assert_eq!(holds(1_120.0), (true, true));
    assert_eq!(holds(1_123.0), (false, false));
    assert_eq!(holds(1_070.0), (false, false));
}

#[test]
fn a_metric_that_a_run_cannot_have_is_an_error() {
    let check = |figure: String, expect: &str| {
        let lab = databases(&figure);
        let options = options(Clocks::Virtual, 1);
        let error = run(&[lab], &Catalog::builtin(), &options, &mut |_| ()).unwrap_err();
        assert_eq!(error.to_string(), expect);
    };
    let of = |run: &str| format!("run = \"{run}\"\nbasis = \"cap\"\nexpected = 1");
    check(keyed("iops", &of("load")), "lab l: figure \"iops\": databases have no metric \"iops\"");
    check(
        keyed("batches_per_s", &of("by 2018")),
        "lab l: figure \"batches_per_s\": a layout alone has no metric \"batches_per_s\"",
    );
    check(
        keyed("cpu_pct", &format!("{}\ndatabase = \"x\"", of("load"))),
        "lab l: figure \"cpu_pct\": there is no database \"x\"",
    );
    check(
        keyed("cpu_pct", "basis = \"cap\"\nrun = \"x\"\nexpected = 1"),
        "lab l: figure \"cpu_pct\": there is no run \"x\"",
    );
}

#[test]
fn the_lab_of_backups_holds_in_virtual_time() {
    let (report, _) = report(find("backup-targets").unwrap(), &options(Clocks::Virtual, 1));
    // Figures that compare the clocks need both.
    let is_of_both = |id: &str| id.starts_with("seconds of 2 GiB");
    let own: Vec<_> = report.figures.iter().filter(|figure| !is_of_both(&figure.id)).collect();
    assert_eq!((own.len(), report.figures.len()), (24, 31));
    for figure in own {
        let gives = figure.virtual_time.as_ref().map(ToString::to_string);
        println!("{}: {} beside {:?}", figure.id, figure.expected, gives);
        assert_eq!((figure.verdict, &figure.explained), (Verdict::Holds, &None), "{figure:?}");
    }
}

/// The table of docs/TRUTH.md is the one that the lab prints.
#[test]
fn what_others_measured_is_compared_in_the_documentation() {
    let labs = [find("published").unwrap()];
    let options = options(Clocks::Virtual, 1);
    let reports = run(&labs, &Catalog::builtin(), &options, &mut |_| ()).unwrap();
    let docs = include_str!("../../../docs/TRUTH.md");
    let table = weir_report::table::Report::markdown(&reports);
    let (_, documented) = docs.split_once("## All figures\n").expect("a section with all figures");
    // Line by line, since a difference of all of it is unreadable.
    for (own, other) in table.trim().lines().zip(documented.trim().lines()) {
        assert_eq!(own, other, "docs/TRUTH.md has another line");
    }
    assert_eq!(table.trim().lines().count(), documented.trim().lines().count());
    assert!(reports.hold());
    let plot = reports.plot().unwrap();
    assert_eq!(plot, include_str!("../../../docs/truth.svg"), "docs/truth.svg is another plot");
}
