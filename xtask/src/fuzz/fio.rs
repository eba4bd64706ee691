//! Invariants of a job file: it is read, or rejected with a message, and its I/O stays in its
//! region and ends or continues.

use std::collections::VecDeque;
use std::io;
use weir_units::{Bytes, Instant, Span};
use weir_workload::fio::{self, Source};
use weir_workload::job::Target;
use weir_workload::{Issue, JobFile, JobSpec, Op, Placed, Region, Workload};

/// Maximum number of jobs of a file, of clones of a job, and of files of a clone.
const MAX_JOBS: usize = 6;
const MAX_CLONES: u32 = 2;
const MAX_FILES: usize = 8;
/// Maximum number of I/Os and of idle polls in a run.
const MAX_ISSUES: usize = 400;
const MAX_STEPS: usize = 1_000;

pub(super) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match fio::parse("fuzz.fio", &text, &Surroundings) {
        Err(error) => said(&error),
        Ok(file) => {
            for ignored in &file.ignored {
                assert!(!ignored.why.is_empty(), "{} is ignored without a reason", ignored.option);
            }
            let small = Region { device: 0, base: Bytes::ZERO, len: Bytes::mib(1) };
            // The maximum length of a volume, at a high offset.
            let huge = Region { device: 1, base: Bytes::new(1 << 62), len: Bytes::new(1 << 60) };
            for region in [small, huge] {
                match Workload::new(place(&file, region), 1) {
                    Err(error) => said(&error),
                    Ok(workload) => drive(workload, region),
                }
            }
        }
    }
}

/// An environment variable and include files.
pub(super) struct Surroundings;

impl Source for Surroundings {
    fn env(&self, name: &str) -> Option<String> {
        (name == "SIZE").then(|| "64k".to_owned())
    }

    fn include(&self, _: &str, name: &str) -> io::Result<String> {
        match name {
            "part.fio" => Ok("bs=8k\niodepth=4\n".to_owned()),
            "endless.fio" => Ok("include endless.fio\n".to_owned()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

fn said(error: &weir_workload::FioError) {
    assert!(!error.to_string().trim().is_empty(), "{error:?} says nothing");
}

/// Returns the first jobs, with the first and last clone of each.
fn place(file: &JobFile, region: Region) -> Vec<Placed> {
    let clones = |spec: &JobSpec| {
        let last = spec.clones.saturating_sub(1);
        (0..MAX_CLONES.min(last)).chain([last])
    };
    let place = |spec: &JobSpec, clone| {
        let files = match &spec.target {
            Target::Files(files) => files.len().clamp(1, MAX_FILES),
            Target::Unnamed | Target::Directory(_) => 1,
        };
        Placed { spec: spec.clone(), clone, regions: vec![region; files] }
    };
    let jobs = file.jobs.iter().take(MAX_JOBS);
    jobs.flat_map(|spec| clones(spec).map(move |clone| place(spec, clone))).collect()
}

/// Completes each I/O a millisecond after it is issued, in order.
fn drive(mut workload: Workload, region: Region) {
    let mut now = Instant::ZERO;
    let mut in_flight: VecDeque<(Instant, u32)> = VecDeque::new();
    let mut issues = 0;
    for _ in 0..MAX_STEPS {
        while let Some(issue) = workload.poll_issue(now) {
            check_issue(&issue, region);
            in_flight.push_back((now + Span::from_millis(1), issue.process));
            issues += 1;
            if issues == MAX_ISSUES {
                return;
            }
        }
        let deadline = workload.poll_deadline();
        assert!(
            deadline.is_none_or(|at| at > now || at == Instant::FAR),
            "{deadline:?} at {now:?}"
        );
        let completion = in_flight.front().map(|(at, _)| *at);
        let Some(next) = completion.into_iter().chain(deadline).min() else {
            assert!(workload.is_done(), "nothing in flight, no deadline, not done");
            return;
        };
        if next == Instant::FAR {
            return;
        }
        now = next;
        while let Some((at, process)) = in_flight.front().copied()
            && at <= now
        {
            in_flight.pop_front();
            workload.handle_completion(now, process);
        }
    }
}

fn check_issue(issue: &Issue, region: Region) {
    if issue.op == Op::Flush {
        return;
    }
    let end = issue.offset.checked_add(issue.len.into());
    let region_end = region.base.get() + region.len.get();
    let inside = issue.offset >= region.base.get() && end.is_some_and(|end| end <= region_end);
    assert!(inside && issue.len > 0, "{issue:?} is not inside of {region:?}");
    assert_eq!(issue.device, region.device);
}
