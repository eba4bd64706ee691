//! iostat as JSON.

use crate::bed::{read, refused};
use crate::samples::sample;

const JSON: &str = r#"{"sysstat": {"hosts": [{
    "nodename": "db1", "number-of-cpus": 4, "date": "2024-03-14",
    "statistics": [
        {"timestamp": "2024-03-14T17:53:14-0700",
         "avg-cpu": {"user": 0.72, "nice": 0.22, "system": 0.77, "iowait": 0.01, "steal": 0.05, "idle": 98.23},
         "disk": [{"disk_device": "sda", "r/s": 1.39, "w/s": 22.85, "rkB/s": 69.95, "r_await": 0.95, "rrqm": 1.5, "util": 0.98}]},
        {"timestamp": "2024-03-14T17:53:15-0700",
         "avg-cpu": {"user": 10.0, "nice": 5.0, "system": 5.0, "iowait": 20.0, "steal": 0.0, "idle": 60.0},
         "disk": [{"util": 50.0, "w/s": 2.0, "r/s": 4.0, "rMB/s": 1.5, "r_await": 0.25, "disk_device": "sda"},
                  {"disk_device": "sdb", "tps": 3.0, "kB_wrtn/s": 8.0, "kB_wrtn": 8}]}
    ]
}]}}
"#;

#[test]
fn reports_without_the_first() {
    let read = read(JSON);
    assert_eq!(read.kind(), "iostat-json");
    assert_eq!(read.start().as_deref(), Some("2024-03-15T00:53:15Z"));
    assert_eq!(read.all("sda", "reads_per_s"), [4.0]);
    assert_eq!(read.all("sda", "read_bytes_per_s"), [1_572_864.0]);
    assert_eq!(read.all("sda", "read_latency_ns"), [250_000.0]);
    assert_eq!(read.all("sda", "busy"), [0.5]);
    assert_eq!(read.all("sdb", "operations_per_s"), [3.0]);
    assert_eq!(read.all("sdb", "write_bytes_per_s"), [8192.0]);
    assert_eq!(read.all("db1", "cpu"), [0.2]);
    assert_eq!(read.all("db1", "cpu_user"), [0.15]);
    assert!(read.notes("since boot and is left out"), "{:?}", read.summary.notes);
    assert!(read.notes("rrqm"), "{:?}", read.summary.notes);
}

#[test]
fn truncated_input_has_its_complete_reports() {
    let more = JSON.replace("8}]}\n    ]", "8}]},\n{\"disk\": [{\"disk_device\": \"sd");
    let read = read(more.split("sd\n").next().expect("a part"));
    assert_eq!(read.all("sda", "reads_per_s"), [4.0]);
    assert!(read.notes("it was truncated"), "{:?}", read.summary.notes);
}

#[test]
fn malformed_input_is_reported() {
    let wrong = JSON.replace("\"r/s\": 4.0", "\"r/s\": 4..0");
    assert_eq!(refused(&wrong), "line 9: a sample is not JSON: invalid number");
    let wrong = JSON.replace("2024-03-14T17:53:15-0700", "soon");
    assert_eq!(refused(&wrong), "line 7: \"soon\" is not a time");
    let wrong = JSON.replace("\"disk_device\": \"sdb\", ", "");
    assert_eq!(refused(&wrong), "line 7: a device in this sample has no name");
}

#[test]
fn samples_have_the_published_figures() {
    let Some(read) = sample("iostat_json/pkb_iostat_output.json") else { return };
    assert_eq!(read.start().as_deref(), Some("2024-03-15T00:53:15Z"));
    assert_eq!(read.all("dm-0", "writes_per_s")[0], 2.0);
    assert_eq!(read.all("sda", "busy").last(), Some(&0.014));
    assert_eq!(read.all("sda", "write_latency_ns").last(), Some(&250_000.0));
}

#[test]
fn processors_alone() {
    let text = without_disks(JSON);
    let read = read(&text);
    assert_eq!(read.kind(), "iostat-json");
    assert_eq!((read.all("db1", "cpu"), read.summary.entities), (vec![0.2], 1));
    assert!(read.notes("say nothing about disks"), "{:?}", read.summary.notes);
}

/// The report without its disks, as `iostat -c` writes it.
fn without_disks(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, after)) = rest.split_once(",\n         \"disk\": [") {
        kept.push_str(before);
        rest = after.split_once("]}").map_or("", |(_, rest)| rest);
        kept.push('}');
    }
    kept + rest
}

#[test]
fn a_second_document_is_another_run() {
    let later = JSON.replace("T17:", "T19:").replace("\"r/s\": 4.0", "\"r/s\": 8.0");
    let read = read(&(JSON.to_owned() + &later));
    assert_eq!(read.all("sda", "reads_per_s"), [4.0, 8.0]);
    assert_eq!(read.seconds(), [0.0, 7200.0]);
    let interval = read.values("sda", "interval_ns");
    assert_eq!(interval, [None, Some(1e9)], "the rates are of a second");
    assert!(read.notes("first reports of 2 runs"), "{:?}", read.summary.notes);
}
