//! Metrics of a layout, as `weir layout check` prints them.
//!
//! | metric | is |
//! |---|---|
//! | `files_gib`, `blobs_gib` | the size of all files, and of their blobs |
//! | `tier:FILE` | the tier of a file |
//! | `step_up_gib:FILE` | the next size with higher limits |
//! | `limit_iops:FILES`, `limit_mib_per_s:FILES` | the sum of their limits |
//! | `refusal` | the error of an invalid layout |
//!
//! FILES is the name of a file or a role.

use super::name::{Unknown, split};
use crate::work::Checked;
use weir_core::{GateLimits, Limit};
use weir_layout::Layout;
use weir_layout::files::FileUse;
use weir_layout::instance::{Measure, Tally};
use weir_report::lab::Value;
use weir_report::number::float;
use weir_units::Bytes;

const GIB: f64 = 1_073_741_824.0;
const MIB: f64 = 1_048_576.0;

pub(super) fn read(metric: &str, checked: &Checked<'_>) -> Result<Option<Value>, Unknown> {
    let (name, of) = split(metric);
    let layout = match (&checked.layout, name) {
        (Err(refusal), "refusal") => return Ok(Some(Value::Text(refusal.clone()))),
        (Ok(layout), _) => Some(layout),
        (Err(_), _) => None,
    };
    let uses = layout.map(uses).unwrap_or_default();
    let total = |measure| (!uses.is_empty()).then(|| float(Tally::sum(&uses).get(measure)) / GIB);
    let is_of = |file: &&FileUse<'_>| file.file.name == of || file.file.role.name() == of;
    let limits = |limit: &dyn Fn(&GateLimits) -> Option<Limit>| {
        let of = uses.iter().filter(is_of);
        let limits = of.filter_map(|file| limit(&file.volume.spec.limits.gate));
        limits.map(|limit| float(limit.rate.get())).reduce(|a, b| a + b)
    };
    let file = uses.iter().find(is_of);
    let number = match name {
        "files_gib" => total(Measure::Files),
        "blobs_gib" => total(Measure::Blobs),
        "limit_iops" => limits(&|gate| gate.iops),
        "limit_mib_per_s" => limits(&|gate| gate.bytes).map(|bytes| bytes / MIB),
        "step_up_gib" => {
            let steps = file.zip(checked.edition);
            let up = steps.and_then(|(file, edition)| file.volume.steps(edition)?.up);
            up.map(|step| float(Bytes::get(step.size)) / GIB)
        }
        "tier" => return Ok(file.and_then(|file| file.volume.tier.clone()).map(Value::Text)),
        "refusal" => None,
        _ => return Err(Unknown),
    };
    Ok(number.map(Value::Number))
}

fn uses(layout: &Layout) -> Vec<FileUse<'_>> {
    layout.hosts.iter().flat_map(weir_layout::Host::file_uses).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_catalog::Catalog;

    const FILES: &str = "edition = \"azure-mi-2018\"\n\
        host = { name = \"mi\", managed_instance = \"gp\", vcores = 8 }\n\
        [[file]]\nname = \"a\"\nrole = \"data\"\nsize = \"150 GiB\"\n\
        [[file]]\nname = \"b\"\nrole = \"data\"\nsize = \"900 GiB\"\n\
        [[file]]\nname = \"l\"\nrole = \"log\"\nsize = \"1 GiB\"\n";

    #[test]
    fn sums_over_files() {
        let catalog = Catalog::builtin();
        let layout = Layout::parse("l", FILES, &catalog).map_err(|error| error.to_string());
        let checked = Checked { layout, edition: catalog.edition("azure-mi-2018").ok() };
        let check = |metric: &str, expect: f64| {
            assert_eq!(read(metric, &checked), Ok(Some(Value::Number(expect))), "{metric}");
        };
        check("files_gib", 1051.0);
        check("blobs_gib", 1408.0);
        check("limit_iops:data", 6_100.0);
        check("limit_iops:l", 500.0);
        check("limit_mib_per_s:b", 200.0);
        check("step_up_gib:a", 257.0);
        assert_eq!(read("tier:b", &checked), Ok(Some(Value::Text("P30".into()))));
        for none in ["refusal", "tier:c", "limit_iops:tempdb", "step_up_gib:c"] {
            assert_eq!(read(none, &checked), Ok(None), "{none}");
        }
        assert_eq!(read("iops", &checked), Err(Unknown));
    }

    #[test]
    fn a_rejected_layout_has_only_an_error() {
        let checked = Checked { layout: Err("too large".into()), edition: None };
        assert_eq!(read("refusal", &checked), Ok(Some(Value::Text("too large".into()))));
        assert_eq!(read("files_gib", &checked), Ok(None));
    }
}
