//! Tables of machines, all with the same columns.

use super::{Facts, Row, Table};
use crate::error::XtaskError;
use std::collections::BTreeMap;

/// The columns. Limits are per second; `vcpus` are those in use, `of_vcpus` those of the machine that
/// a constrained size is cut from; `like` is a row of the edition's file whose limits hold.
const HEADS: [&str; 22] = [
    "name",
    "series",
    "vcpus",
    "of_vcpus",
    "memory_gib",
    "disks",
    "uncached_iops",
    "uncached_mbps",
    "burst_iops",
    "burst_mbps",
    "cached_iops",
    "cached_mbps",
    "cache_gib",
    "temp_gib",
    "like",
    "src_base",
    "src_memory",
    "src_uncached",
    "src_burst",
    "src_cached",
    "src_cache",
    "src_temp",
];

fn table() -> Table {
    let mut table = Table::default();
    table.line(HEADS);
    table
}

impl Table {
    /// Adds a machine from its cells by heading.
    fn host(&mut self, cells: &BTreeMap<&str, String>) {
        let all = HEADS.map(|head| (head, cells.get(head).map_or("", String::as_str)));
        let sources = all.iter().filter(|(head, _)| head.starts_with("src_"));
        self.cite(&sources.map(|(_, key)| *key).collect::<Vec<_>>());
        self.line(all.map(|(_, cell)| cell));
    }
}

pub(super) fn azure(facts: &Facts) -> Result<Table, XtaskError> {
    let mut table = table();
    for row in facts.rows("azure-vm-sizes.csv")? {
        let size = row.get("size");
        let mut cells: BTreeMap<&str, String> = BTreeMap::new();
        let mut put = |head, text: &str| cells.insert(head, text.to_owned());
        // A page that has all figures of a size is its own base.
        let base = if row.get("src_base") == "docs" { "src_memory" } else { "src_base" };
        put("name", size);
        put("series", &series(size));
        put("vcpus", row.get("vcpus_available"));
        if row.get("vcpus") != row.get("vcpus_available") {
            put("of_vcpus", row.get("vcpus"));
        }
        for (head, from) in [
            ("memory_gib", "memory_gib"),
            ("disks", "max_data_disks"),
            ("uncached_iops", "uncached_iops"),
            ("uncached_mbps", "uncached_mbps"),
            ("burst_iops", "burst_uncached_iops"),
            ("burst_mbps", "burst_uncached_mbps"),
            ("cached_iops", "cached_iops"),
            ("cached_mbps", "cached_mbps"),
            ("cache_gib", "cache_gib"),
            ("temp_gib", "temp_gib"),
            ("src_base", base),
            ("src_memory", "src_memory"),
            ("src_uncached", "src_uncached"),
            ("src_burst", "src_burst"),
            ("src_cached", "src_cached"),
            ("src_cache", "src_cache"),
            ("src_temp", "src_temp"),
        ] {
            put(head, row.get(from));
        }
        table.host(&cells);
    }
    Ok(table)
}

/// Returns the series of an Azure size: `Standard_E16-4ds_v5` is of `edsv5`. Isolated sizes are of the
/// series that they end.
pub(super) fn series(size: &str) -> String {
    let name = size.strip_prefix("Standard_").unwrap_or(size);
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default();
    let letters = first.chars().take_while(char::is_ascii_alphabetic).collect::<String>();
    let suffix: String =
        first.chars().skip(letters.len()).filter(char::is_ascii_alphabetic).collect();
    let is_gpu = letters.starts_with('N');
    let suffix = if is_gpu { suffix } else { suffix.replace('i', "") };
    let rest = parts.filter(|part| !part.chars().all(|c| c.is_ascii_digit()));
    format!("{letters}{suffix}{}", rest.collect::<String>()).to_lowercase()
}

pub(super) fn aws(facts: &Facts) -> Result<Table, XtaskError> {
    let mut table = table();
    for row in facts.rows("aws-ec2.csv")? {
        let name = row.get("instance_type");
        let is_described = !row.get("vcpus").is_empty();
        let source = if is_described { "moto" } else { "karpenter-aws" };
        let mut cells = BTreeMap::from([
            ("name", name.to_owned()),
            ("series", name.split('.').next().unwrap_or_default().to_owned()),
            ("vcpus", row.get("vcpus").to_owned()),
            ("memory_gib", gib(&row)?),
            ("disks", row.get("max_ebs_attachments").to_owned()),
            ("uncached_iops", row.get("ebs_baseline_iops").to_owned()),
            ("uncached_mbps", whole_bytes(row.get("ebs_baseline_mbps"))),
            ("src_base", source.to_owned()),
        ]);
        let is_burst = row.get("ebs_max_iops") != row.get("ebs_baseline_iops")
            || row.get("ebs_max_mbps") != row.get("ebs_baseline_mbps");
        if is_burst {
            cells.insert("burst_iops", row.get("ebs_max_iops").to_owned());
            cells.insert("burst_mbps", whole_bytes(row.get("ebs_max_mbps")));
        }
        table.host(&cells);
    }
    Ok(table)
}

/// Rounds MB to whole bytes. The source divides bits in floating point, which leaves a trace in the
/// last digits.
fn whole_bytes(mb: &str) -> String {
    match mb.split_once('.').is_some_and(|(_, decimals)| decimals.len() > 6) {
        true => mb.parse().map_or(mb.to_owned(), |mb: f64| format!("{mb:.6}")),
        false => mb.to_owned(),
    }
}

/// Returns the memory of an EC2 type in GiB.
fn gib(row: &Row) -> Result<String, XtaskError> {
    let mib = row.get("memory_mib");
    if mib.is_empty() {
        return Ok(String::new());
    }
    mib.parse().map(of_mib).map_err(|_| XtaskError::Facts {
        file: "aws-ec2.csv".to_owned(),
        reason: format!("{mib:?} is no number of MiB"),
    })
}

/// Returns MiB in GiB, with up to ten decimals.
fn of_mib(mib: u64) -> String {
    let decimals = format!("{:010}", (mib % 1024) * 9_765_625);
    let decimals = decimals.trim_end_matches('0');
    let point = if decimals.is_empty() { "" } else { "." };
    format!("{}{point}{decimals}", mib / 1024)
}

/// Rounds GiB down to whole MiB: 0.6 GB of a shared machine.
fn whole_mib(gib: &str) -> String {
    match gib.parse::<f64>() {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a memory in MiB"
        )]
        Ok(gib) => of_mib((gib * 1024.0) as u64),
        Err(_) => gib.to_owned(),
    }
}

/// The machines of each series in the edition's file, which stand for machines with as many vCPUs.
/// True where a row stands for all up to the next one.
const RULES: [(&str, bool, &[u32]); 7] = [
    ("n1", true, &[1, 2, 8, 16, 32, 64]),
    ("n2", true, &[1, 2, 8, 16, 32, 64]),
    ("n2d", true, &[1, 2, 8, 16, 32, 64]),
    ("e2", true, &[2, 8, 16, 32]),
    ("c2", false, &[4, 8, 16, 30, 60]),
    ("c2d", false, &[2, 4, 8, 16, 32, 56, 112]),
    ("c3", false, &[4, 8, 22, 44, 88, 176]),
];
const C3D: (&str, bool, &[u32]) = ("c3d", false, &[4, 8, 16, 30, 60, 90, 180, 360]);

/// Returns the row whose limits a machine type has.
fn like(series: &str, vcpus: &str) -> Option<String> {
    let vcpus: u32 = vcpus.parse().ok()?;
    let (_, is_range, rows) = RULES.iter().chain([&C3D]).find(|rule| rule.0 == series)?;
    let row = match is_range {
        true => rows.iter().rev().find(|row| **row <= vcpus)?,
        false => rows.iter().find(|row| **row == vcpus)?,
    };
    Some(format!("{series}-{row}vcpu"))
}

/// Machine types whose share of a processor is smaller than their number of vCPUs.
const SHARED: [&str; 5] = ["e2-medium", "e2-micro", "e2-small", "f1-micro", "g1-small"];

pub(super) fn gcp(facts: &Facts) -> Result<Table, XtaskError> {
    let mut table = table();
    let mut last = String::new();
    for row in facts.rows("gcp-prices.csv")?.iter().filter(|row| row.get("kind") == "vm") {
        let name = row.get("item");
        if name == last {
            continue;
        }
        name.clone_into(&mut last);
        let series = name.split('-').next().unwrap_or_default();
        let is_shared = SHARED.contains(&name);
        let vcpus = if is_shared { "" } else { row.get("vcpus") };
        table.host(&BTreeMap::from([
            ("name", name.to_owned()),
            ("series", series.to_owned()),
            ("vcpus", vcpus.to_owned()),
            ("memory_gib", whole_mib(row.get("memory_gib"))),
            ("like", like(series, vcpus).unwrap_or_default()),
            ("src_base", row.get("source").to_owned()),
        ]));
    }
    Ok(table)
}
