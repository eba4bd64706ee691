//! The same files through fio itself, and genuine job files if they are at hand.
//! Both say so aloud when they have nothing to work with.

#![expect(clippy::print_stdout, reason = "what is skipped is said aloud")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use weir_workload::{FioError, Isolated, ValueError, fio};

/// Runs fio, or says that it is not there.
fn run_fio(args: &[&str], dir: &Path) -> Option<Output> {
    let mut command = Command::new("fio");
    command.args(args).current_dir(dir);
    command.env("WEIR_TEST_BS", "8k").env("WEIR_TEST_NAME", "x");
    let output = command.output();
    if output.is_err() {
        println!("skipped: needs fio");
    }
    output.ok()
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

struct Files;

impl fio::Source for Files {
    fn env(&self, name: &str) -> Option<String> {
        let known = [("WEIR_TEST_BS", "8k"), ("WEIR_TEST_NAME", "x")];
        known.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    }

    fn include(&self, _: &str, name: &str) -> std::io::Result<String> {
        std::fs::read_to_string(fixtures().join(name))
    }
}

#[test]
fn fio_accepts_every_job_file_that_weir_accepts() {
    let mut accepted = 0;
    for entry in std::fs::read_dir(fixtures()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "fio") {
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        fio::parse(name, &text, &Files).unwrap_or_else(|error| panic!("{error}"));
        let Some(output) = run_fio(&["--parse-only", name], &fixtures()) else { return };
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "fio refuses {name}: {messages}");
        assert!(!messages.contains("dropped"), "fio drops a job of {name}: {messages}");
        accepted += 1;
    }
    assert!(accepted >= 6, "{accepted} fixtures");
}

/// Every option that fio lists must be known here, one way or another.
#[test]
fn no_option_of_fio_is_unknown() {
    let Some(output) = run_fio(&["--cmdhelp"], Path::new(".")) else { return };
    let help = String::from_utf8_lossy(&output.stdout);
    let names: BTreeSet<&str> =
        help.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim()).collect();
    assert!(names.len() > 150, "{} options", names.len());
    for name in names {
        let text = format!("[job]\n{name}=\n");
        if let Err(error @ FioError::UnknownOption { .. }) = fio::parse("help", &text, &Isolated) {
            panic!("{error}");
        }
    }
}

/// fio prints what it made of each number; the same must come out here.
#[test]
fn sizes_mean_what_fio_makes_of_them() {
    let dir = std::env::temp_dir().join(format!("weir-workload-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    for base in [1024, 1000] {
        for suffix in
            ["", "b", "k", "K", "kb", "ki", "kib", "KiB", "m", "mib", "g", "gib", "t", "tib"]
        {
            let text = format!("[job]\nkb_base={base}\nrw=read\nfilename=x\nio_size=3{suffix}\n");
            std::fs::write(dir.join("job.fio"), &text).unwrap();
            let Some(output) = run_fio(&["--parse-only", "--debug=parse", "job.fio"], &dir) else {
                return;
            };
            let debug = String::from_utf8_lossy(&output.stdout);
            let fio_says = debug.lines().find_map(|line| line.split_once("out=")).unwrap().1;
            let job = fio::parse("job.fio", &text, &Isolated).unwrap().jobs.remove(0);
            let here = job.io_size.unwrap().of(0).to_string();
            assert_eq!(here, fio_says, "3{suffix} with kb_base={base}");
        }
    }
    std::fs::remove_dir_all(dir).unwrap();
}

/// What becomes of a genuine file: how many jobs, or the beginning of the message.
fn check_sample(name: &str, text: &str, expect: Result<usize, &str>) {
    match (fio::parse(name, text, &Isolated), expect) {
        (Ok(file), Ok(jobs)) => assert_eq!(file.jobs.len(), jobs, "{name}"),
        (Err(error), Err(expect)) => assert_eq!(error.to_string(), expect),
        (got, _) => panic!("{name}: {got:?}"),
    }
}

#[test]
fn genuine_job_files() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/samples/fio_jobs");
    let Ok(entries) = std::fs::read_dir(&dir) else {
        println!("skipped: needs ../shared/samples");
        return;
    };
    let unsupported = "is not supported and changes the I/O:";
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let expect = match name {
            "fio_1mbs_clients.fio" => Err(format!(
                "{name}:7: option \"ratemin=1024\" {unsupported} it ends the job when it is too slow"
            )),
            "fio_flow.fio" => Err(format!(
                "{name}:19: option \"flow=1\" {unsupported} it balances jobs against each other"
            )),
            "fio_latency-profile.fio" => Err(format!(
                "{name}:14: option \"latency_target=500000\" {unsupported} it adapts the load to \
                 measured latency"
            )),
            "fio_sequence-distribution.fio" => Err(format!(
                "{name}:22: random_distribution=sequence:2,0,1: must be one of random, zipf, \
                 pareto, normal, zoned, zoned_abs"
            )),
            "vc_expectedoltp-c.fio1.jobfile" => Ok(6),
            "fio_zipf.fio" | "kochaika_write.ini" => Ok(1),
            // A file that is new here: reading it must not panic.
            _ => {
                let _either = fio::parse(name, &text, &Isolated);
                continue;
            }
        };
        check_sample(name, &text, expect.as_ref().copied().map_err(String::as_str));
    }
}

/// A template as published, before its placeholders are filled in.
#[test]
fn a_template_is_told_from_a_job_file() {
    let text = "[global]\nfilename=${filenameRandom}\nsize=124G\n[reader]\nrw=randread\n";
    match fio::parse("template.fio", text, &Isolated) {
        Err(FioError::BadValue { kind: ValueError::Unset { name }, at, .. }) => {
            assert_eq!((name.as_str(), at.line), ("filenameRandom", 2));
        }
        got => panic!("{got:?}"),
    }
}
