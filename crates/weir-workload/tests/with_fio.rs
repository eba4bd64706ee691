//! The same files with fio itself, and real job files if they are available. Both print a message
//! when they are skipped.

#![expect(clippy::print_stdout, reason = "what is skipped is said aloud")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use weir_workload::{FioError, Isolated, JobFile, JobSpec, Tally, ValueError, fio};

/// Runs fio, or prints that it is missing.
fn run_fio(args: &[&str], dir: &Path) -> Option<Output> {
    let mut command = Command::new("fio");
    command.args(args).current_dir(dir);
    command.env("WEIR_TEST_BS", "8k").env("WEIR_TEST_NAME", "x");
    let output = command.output();
    if output.is_err() {
        assert!(std::env::var_os("CI").is_none(), "CI needs fio");
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

/// Every option that fio lists must be in the table.
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

/// fio prints the value of each number; ours must be the same.
#[test]
fn sizes_mean_what_fio_makes_of_them() {
    let dir = tempfile::tempdir().unwrap();
    for base in [1024, 1000] {
        for suffix in
            ["", "b", "k", "K", "kb", "ki", "kib", "KiB", "m", "mib", "g", "gib", "t", "tib"]
        {
            let text = format!("[job]\nkb_base={base}\nrw=read\nfilename=x\nio_size=3{suffix}\n");
            std::fs::write(dir.path().join("job.fio"), &text).unwrap();
            let args = ["--parse-only", "--debug=parse", "job.fio"];
            let Some(output) = run_fio(&args, dir.path()) else { return };
            let debug = String::from_utf8_lossy(&output.stdout);
            let fio_says = debug.lines().find_map(|line| line.split_once("out=")).unwrap().1;
            let job = fio::parse("job.fio", &text, &Isolated).unwrap().jobs.remove(0);
            let here = job.io_size.unwrap().resolve(0).to_string();
            assert_eq!(here, fio_says, "3{suffix} with kb_base={base}");
        }
    }
}

/// Returns `total_ios` of each of fio's reports.
fn reported_by_fio(files: &[&str], dir: &Path) -> Option<Vec<u64>> {
    let names: Vec<String> = (0..files.len()).map(|n| format!("{n}.fio")).collect();
    for (name, text) in names.iter().zip(files) {
        std::fs::write(dir.join(name), text).expect("a job file");
    }
    let args = ["--output-format=json"].into_iter().chain(names.iter().map(String::as_str));
    let output = run_fio(&args.collect::<Vec<_>>(), dir)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let total = |line: &str| {
        line.trim().strip_prefix("\"total_ios\" : ")?.trim_end_matches(',').parse().ok()
    };
    // Each report has zero writes, trims and syncs.
    Some(text.lines().filter_map(total).filter(|ios| *ios > 0).collect())
}

/// Jobs of 16 reads each are merged into the same reports as by fio.
#[test]
fn reports_are_merged_as_in_fio() {
    let check = |files: &[&str]| {
        let dir = tempfile::tempdir().unwrap();
        let global = "[global]\nioengine=null\nsize=64k\nrw=read\n";
        let files: Vec<String> = files.iter().map(|jobs| format!("{global}{jobs}")).collect();
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let Some(of_fio) = reported_by_fio(&files, dir.path()) else { return };
        let parsed = files.iter().map(|text| fio::parse("a.fio", text, &Isolated).unwrap());
        let jobs = parsed.reduce(JobFile::then).unwrap().jobs;
        let specs: Vec<JobSpec> =
            jobs.iter().flat_map(|job| vec![job.clone(); job.clones as usize]).collect();
        let own: Vec<u64> = Tally::members(&specs).iter().map(|m| m.len() as u64 * 16).collect();
        assert_eq!(own, of_fio, "{files:?}");
    };
    check(&["[j]\n[j]\n[k]\n"]);
    check(&["[j]\nnumjobs=2\ngroup_reporting\n[j]\n[k]\ngroup_reporting\n[l]\n"]);
    let grouped = "group_reporting\n[j]\nnumjobs=2\n[j]\n[k]\nstonewall\n[l]\nnew_group\n[m]\n";
    check(&[grouped]);
    check(&[grouped, grouped]);
}

/// fio prints that it ignores `time_based` without a runtime.
#[test]
fn time_based_without_a_runtime_is_ignored_by_fio() {
    let dir = tempfile::tempdir().unwrap();
    let text = "[j]\nioengine=null\nsize=64k\nrw=read\ntime_based\n";
    let Some(of_fio) = reported_by_fio(&[text], dir.path()) else { return };
    assert_eq!(of_fio, [16]);
    let ignored = fio::parse("a.fio", text, &Isolated).unwrap().ignored;
    assert_eq!(ignored.iter().map(|i| i.option).collect::<Vec<_>>(), ["time_based"]);
}

/// Expects the number of jobs of a real file, or the beginning of its message.
fn check_sample(name: &str, text: &str, expect: Result<usize, &str>) {
    match (fio::parse(name, text, &Isolated), expect) {
        (Ok(file), Ok(jobs)) => assert_eq!(file.jobs.len(), jobs, "{name}"),
        (Err(error), Err(expect)) => assert_eq!(error.to_string(), expect),
        (got, _) => panic!("{name}: {got:?}"),
    }
}

/// Options that real files have, and that Weir names instead of leaving them out.
#[test]
fn options_that_change_the_io_are_refused_by_their_lines() {
    let unsupported = "is not supported and changes the I/O:";
    let job =
        |option: &str| format!("# by hand\n[global]\nsize=1g\nrw=randread\n[job]\n{option}\n");
    for (option, reason) in [
        ("ratemin=1024", "it ends the job when it is too slow"),
        ("flow=1", "it balances jobs against each other"),
        ("latency_target=500000", "it adapts the load to measured latency"),
    ] {
        let expect = format!("own.fio:6: option \"{option}\" {unsupported} {reason}");
        check_sample("own.fio", &job(option), Err(&expect));
    }
    let expect = "own.fio:6: random_distribution=sequence:2,0,1: must be one of random, zipf, \
                  pareto, normal, zoned, zoned_abs";
    check_sample("own.fio", &job("random_distribution=sequence:2,0,1"), Err(expect));
    check_sample("own.fio", &job("random_distribution=zipf:1.2"), Ok(1));
    let six = [job("bs=8k"), "[log]\nrw=write\n".into(), "[a]\n[b]\n[c]\n[d]\n".into()].concat();
    check_sample("own.fio", &six, Ok(6));
}

#[test]
fn real_job_files() {
    let Some(samples) = weir_needs::shared("samples") else { return };
    let unsupported = "is not supported and changes the I/O:";
    for entry in std::fs::read_dir(samples.join("fio_jobs")).unwrap() {
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
            // A file without an expectation: reading it must not panic.
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

/// fio prints that it limits the depth of a synchronous engine to one.
#[test]
fn a_depth_with_a_synchronous_engine_is_ignored_by_fio() {
    let dir = tempfile::tempdir().unwrap();
    let ignored = |text: &str| fio::parse("a.fio", text, &Isolated).unwrap().ignored;
    let text = "[j]\nsize=64k\nrw=read\niodepth=16\n";
    let said = ignored(text);
    assert_eq!(said.iter().map(|i| i.option).collect::<Vec<_>>(), ["iodepth"]);
    assert_eq!(said[0].at.to_string(), "a.fio:4");
    assert!(ignored("[j]\nsize=64k\nioengine=libaio\niodepth=16\n").is_empty());
    assert!(ignored("[j]\nsize=64k\niodepth=1\n").is_empty());
    std::fs::write(dir.path().join("a.fio"), text).unwrap();
    let Some(output) = run_fio(&["a.fio"], dir.path()) else { return };
    let of_fio = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(of_fio.contains("queue depth will be capped at 1"), "{of_fio}");
}
