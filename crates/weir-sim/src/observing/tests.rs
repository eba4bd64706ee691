//! Observations agree with the counters.

use super::*;
use crate::{OltpOptions, OltpSimulation, Options, Simulation, devices};
use std::collections::BTreeMap;
use weir_catalog::Catalog;
use weir_observe::header::{Contents, EntityKind};
use weir_observe::metric;
use weir_oltp::Description;
use weir_units::{Instant, Span};
use weir_workload::{Isolated, fio, place};

fn layout(text: &str) -> Layout {
    Layout::parse("layout.toml", text, &Catalog::builtin()).expect("a layout")
}

const OLTP: &str = "users = 20\nthink_time = \"5ms\"\nvcores = 4\nsize = \"1 GiB\"\n\
    buffer_pool = \"256 MiB\"\nduration = \"4s\"\nramp_time = \"2s\"\ndata = [\"d1\", \"d2\"]\n\
    log = \"log\"\n[checkpoint]\nevery = \"1s\"\n[[transaction]]\nname = \"t\"\nshare = 1\n\
    reads = 4\nwrites = 4\nlog = \"2 KiB\"\ncpu = \"200us\"\n";

/// Returns the row of a sample, by the names of entity and metric.
fn named(contents: &Contents, shape: &Shape, sample: &Sample) -> BTreeMap<String, i64> {
    let mut row = Vec::new();
    shape.row(sample, &mut row);
    assert_eq!(row.len(), contents.series.len());
    let name = |series: &weir_observe::Series| {
        let entity = contents.entity(series.entity).expect("an entity");
        format!("{}.{}", entity.name, series.metric)
    };
    contents
        .series
        .iter()
        .map(name)
        .zip(row.into_iter().map(|value| value.expect("a value")))
        .collect()
}

#[test]
fn a_managed_instance_is_observed_from_the_start_of_the_ramp() {
    let layout = layout(
        "edition = \"azure-mi-2018\"\n[host]\nmanaged_instance = \"gp\"\nvcores = 8\n\
         [[file]]\nname = \"d1\"\nrole = \"data\"\nsize = \"100 GiB\"\n\
         [[file]]\nname = \"d2\"\nrole = \"data\"\nsize = \"300 GiB\"\n\
         [[file]]\nname = \"log\"\nrole = \"log\"\nsize = \"64 GiB\"\n",
    );
    let descriptions = [Description::parse("oltp.toml", OLTP).expect("a description")];
    let options = OltpOptions { seed: 1, ..OltpOptions::default() };
    let mut simulation = OltpSimulation::new(&layout, &descriptions, &options).expect("it fits");
    let shape = simulation.shape();
    let contents = shape.contents();
    let find = |kind: EntityKind, name: &str| {
        contents.entities.iter().find(|e| e.kind == kind && e.name == name).expect("an entity")
    };
    let file = find(EntityKind::File, "d2");
    assert_eq!((file.text("role"), file.text("volume")), (Some("data"), Some("d2")));
    assert_eq!(file.number("iops_limit"), find(EntityKind::Volume, "d2").number("iops_limit"));
    assert_eq!(find(EntityKind::Host, "host").number("vcores"), Some(8));
    assert!(find(EntityKind::Host, "host").number("log_bytes_per_s_limit").is_some());
    let mut at = |seconds: u64| {
        simulation.run_until(Instant::ZERO + Span::from_secs(seconds));
        named(&contents, &shape, &simulation.sample())
    };
    let (ramp, end) = (at(2), at(60));
    let report = simulation.report();
    let file = &report.databases[0].files[0];
    let measured = |metric: &str| u64::try_from(end[metric] - ramp[metric]).expect("it grows");
    assert!(ramp["d1.num_of_reads"] > 0, "the ramp is observed");
    assert_eq!(measured("d1.num_of_reads"), file.num_of_reads);
    assert_eq!(measured("d1.num_of_bytes_written"), file.num_of_bytes_written);
    assert_eq!(measured("d1.wait_disk_iops_ns"), file.waits_ns["disk_iops"]);
    let waits: i64 = end.iter().filter(|(m, _)| m.starts_with("d1.wait_")).map(|(_, v)| v).sum();
    let queued = end["d1.io_stall_queued_read_ms"] + end["d1.io_stall_queued_write_ms"];
    let stall = end["d1.io_stall_read_ms"] + end["d1.io_stall_write_ms"];
    // Each is whole milliseconds.
    assert!((waits / 1_000_000 - queued).abs() <= 2, "{waits} and {queued}");
    assert!(((waits + end["d1.medium_ns"]) / 1_000_000 - stall).abs() <= 2, "{end:?}");
}

/// Every cap that throttles has a series; otherwise its time would be lost.
#[test]
fn every_wait_of_a_cached_machine_is_there() {
    let layout = layout(
        "[host]\ncache = { size = \"1 GiB\", dirty_limit = \"1 MiB\" }\n\
         [host.limits]\nuncached = { iops = 1000 }\ncached = { iops = 900 }\n\
         [[volume]]\nname = \"rw\"\nlimits = { iops = 100 }\ncache = \"read-write\"\n\
         [[volume]]\nname = \"ro\"\nlimits = { iops = 500, burst = { iops = 600, duration = \"1s\" } }\n\
         cache = \"read-only\"\n\
         [[volume]]\nname = \"plain\"\nlimits = { iops = 400, throughput = \"1 MiB/s\" }\n",
    );
    let job = |name: &str, rw: &str| {
        format!(
            "[{name}]\nfilename=/mnt/{name}\nrw={rw}\nbs=4k\nsize=64m\nruntime=3\ntime_based\ndirect=1\niodepth=8\n"
        )
    };
    let text = [job("rw", "randwrite"), job("ro", "randread"), job("plain", "randwrite")].concat();
    let jobs = fio::parse("jobs.fio", &text, &Isolated).expect("jobs");
    let placed = place(&jobs, &devices(&layout), &[]).expect("they fit");
    let mut simulation = Simulation::new(&layout, placed, &Options::default()).expect("it fits");
    let shape = simulation.shape();
    simulation.run_until(Instant::FAR).expect("it runs");
    let values = named(&shape.contents(), &shape, &simulation.sample());
    for volume in &simulation.report().volumes {
        let value = |metric: &str| values[&format!("{}.{metric}", volume.name)];
        for (cap, ns) in &volume.waits_ns {
            assert_eq!(value(&metric::wait_ns(cap)).cast_unsigned(), *ns, "{}", volume.name);
        }
        for (cap, ns) in &volume.writeback_waits_ns {
            let metric = format!("writeback_{}", metric::wait_ns(cap));
            assert_eq!(value(&metric).cast_unsigned(), *ns, "{}", volume.name);
        }
    }
    assert!(values["rw.wait_cache_writeback_ns"] > 0 && values["rw.writebacks"] > 0, "{values:?}");
    assert!(values.contains_key("ro.credits_disk_iops"), "{values:?}");
    assert!(values["host.cache_resident_bytes"] > 0);
}
