//! The documentation lists every kind and every metric.

use weir_import::kinds;
use weir_observe::metric;

const DOCS: [&str; 2] =
    [include_str!("../../../../docs/IMPORT.md"), include_str!("../../../../docs/OBSERVATION.md")];

#[test]
fn every_kind_is_documented_with_its_description() {
    for kind in kinds() {
        let line = format!("| `{}` | {} |", kind.name, kind.about);
        assert!(DOCS[0].contains(&line), "docs/IMPORT.md lacks: {line}");
    }
}

#[test]
fn every_metric_is_documented() {
    // Percentiles are documented by the pattern of their names.
    let parts = ["_min_", "_p50_", "_p90_", "_p95_", "_p99_", "_p99_9", "_max_ns", "_stddev_"];
    let is_part = |metric: &str| parts.iter().any(|part| metric.contains(part));
    for own in metric::ALL.iter().filter(|own| !is_part(own.name)) {
        let name = format!("`{}`", own.name);
        assert!(DOCS.iter().any(|text| text.contains(&name)), "{name} is in no documentation");
    }
}
