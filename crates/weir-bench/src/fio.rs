//! fio as a client.

use crate::Failure;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// A job of fio's nbd engine.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// The export.
    pub uri: &'a str,
    /// `read`, `write`, `randread` or `randwrite`.
    pub rw: &'a str,
    /// The length of a request, as fio takes it.
    pub block: &'a str,
    /// The queue depth.
    pub depth: u32,
    /// The runtime.
    pub seconds: u32,
}

/// The result of a job.
#[derive(Debug, Clone, Copy)]
pub struct Ran {
    /// Requests per second.
    pub iops: f64,
    /// The number of requests.
    pub requests: f64,
    /// The mean latency in microseconds.
    pub mean_us: f64,
    /// The median latency in microseconds.
    pub median_us: f64,
}

/// Runs a job; its output goes to `folder`.
///
/// # Errors
///
/// The reason.
pub fn run(job: &Job<'_>, folder: &Path) -> Result<Ran, Failure> {
    let output = folder.join("fio.json");
    let status = Command::new("fio")
        .args(["--name=x", "--ioengine=nbd", "--time_based", "--size=256m"])
        .arg(format!("--uri={}", job.uri))
        .arg(format!("--rw={}", job.rw))
        .arg(format!("--bs={}", job.block))
        .arg(format!("--iodepth={}", job.depth))
        .arg(format!("--runtime={}", job.seconds))
        .args(["--output-format=json", &format!("--output={}", output.display())])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| format!("cannot start fio: {error}; install it"))?;
    if !status.success() {
        return Err(format!("fio failed against {}", job.uri).into());
    }
    let text = std::fs::read_to_string(&output)?;
    // fio may print a note before its JSON.
    let json: Value = serde_json::from_str(&text[text.find('{').unwrap_or(0)..])?;
    let side = &json["jobs"][0][if job.rw.ends_with("read") { "read" } else { "write" }];
    let number = |value: &Value| value.as_f64().ok_or("fio reported no requests");
    Ok(Ran {
        iops: number(&side["iops"])?,
        requests: number(&side["total_ios"])?,
        mean_us: number(&side["lat_ns"]["mean"])? / 1000.0,
        median_us: number(&side["clat_ns"]["percentile"]["50.000000"])? / 1000.0,
    })
}
