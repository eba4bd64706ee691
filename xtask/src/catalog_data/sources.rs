//! The table of sources, and that of figures on which sources disagree.

use super::{Facts, Table};
use crate::error::XtaskError;
use std::collections::BTreeSet;

/// The description of the facts, with the sources by key and the disagreements.
const README: &str = "README-catalog-data.md";

/// Keys whose source is not a line of a table in the description: part of the line of that file's table
/// that names it.
const FILES: [(&str, &str, &str); 6] = [
    (
        "karpenter-azure",
        "Azure/karpenter-provider-azure pkg/providers/pricing/zz_generated.pricing.go @2b431da1",
        "2026-06-18",
    ),
    (
        "karpenter-azure-derived",
        "Azure/karpenter-provider-azure pkg/providers/pricing/zz_generated.pricing.go @2b431da1; \
         the Windows price less 0.046 per vCPU and hour",
        "2026-06-18",
    ),
    (
        "karpenter-azure-twin",
        "Azure/karpenter-provider-azure pkg/providers/pricing/zz_generated.pricing.go @2b431da1; \
         derived: the price in the other of East US and East US 2. B v2 sizes with a listed price in \
         both cost the same there",
        "2026-06-18",
    ),
    (
        "karpenter-azure-sibling",
        "Azure/karpenter-provider-azure pkg/providers/pricing/zz_generated.pricing.go @2b431da1; \
         derived: the price per vCPU of the largest size of the series in the region, rounded to a \
         thousandth",
        "2026-06-18",
    ),
    (
        "moto",
        "getmoto/moto moto/ec2/resources/instance_types.json @34d6cad5 (DescribeInstanceTypes)",
        "2026-08-02",
    ),
    (
        "karpenter-aws",
        "aws/karpenter-provider-aws pkg/providers/pricing/zz_generated.pricing_aws.go @6fc13b52",
        "2026-07-20",
    ),
];

/// Returns the table of the sources that are cited.
pub(super) fn cited(facts: &Facts, keys: &BTreeSet<String>) -> Result<String, XtaskError> {
    let listed = listed(facts)?;
    let mut table = Table::default();
    table.line(["key", "as_of", "source"]);
    let mut keys = keys.clone();
    let derived = ["derived", "twin", "sibling"];
    keys.extend(derived.map(|rule| format!("karpenter-azure-{rule}")));
    for key in &keys {
        let (source, as_of) = source(facts, &listed, key)?;
        table.line([key.as_str(), &as_of, &source]);
    }
    Ok(table.text)
}

/// Returns the lines of the description's tables as cells.
fn listed(facts: &Facts) -> Result<Vec<Vec<String>>, XtaskError> {
    let text = facts.text(README)?;
    let cells = |line: &str| -> Vec<String> {
        let inner = line.trim().trim_matches('|');
        inner.split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect()
    };
    Ok(text.lines().filter(|line| line.starts_with('|')).map(cells).collect())
}

/// Returns source and date of a key: `csi^` is that of the parent size, `now:vm_m#temp` a limit of the
/// temporary disk, `now:vm_m` a table of another file of facts.
fn source(
    facts: &Facts,
    listed: &[Vec<String>],
    key: &str,
) -> Result<(String, String), XtaskError> {
    if let Some((_, source, as_of)) = FILES.iter().find(|own| own.0 == key) {
        return Ok(((*source).to_owned(), (*as_of).to_owned()));
    }
    if let Some(parent) = key.strip_suffix('^') {
        let (source, as_of) = self::source(facts, listed, parent)?;
        return Ok((format!("{source}; by the size that it is cut from"), as_of));
    }
    if let Some(whole) = key.strip_suffix("#temp") {
        let (source, as_of) = self::source(facts, listed, whole)?;
        return Ok((format!("{source}; printed as the limit of the temporary disk"), as_of));
    }
    if let Some(sure) = key.strip_suffix('~') {
        let (source, as_of) = self::source(facts, listed, sure)?;
        return Ok((format!("{source}; MB/s ambiguous by 1"), as_of));
    }
    for (prefix, file) in [("now:", "azure-now.toml"), ("2015:", "azure-premium-2015.toml")] {
        if let Some(name) = key.strip_prefix(prefix) {
            return of_table(facts, file, name);
        }
    }
    let index = listed.iter().position(|line| line[0] == key && line.len() == 3);
    let Some(index) = index else {
        let reason = format!("there is no source {key:?}");
        return Err(XtaskError::Facts { file: README.to_owned(), reason });
    };
    let (text, as_of) = (listed[index][1].replace('`', ""), listed[index][2].clone());
    let above = index.checked_sub(1).and_then(|above| listed[above].get(1)?.split(' ').next());
    let source = match (text.strip_prefix("the same, "), above) {
        (Some(path), Some(repository)) => format!("{repository} {path}"),
        _ => text,
    };
    Ok((source, as_of))
}

/// Returns source and date of a table of TOML facts.
fn of_table(facts: &Facts, file: &str, name: &str) -> Result<(String, String), XtaskError> {
    let text = facts.text(file)?;
    let head = format!("[{name}]");
    let lines = text.lines().skip_while(|line| *line != head).skip(1);
    let lines: Vec<&str> = lines.take_while(|line| !line.starts_with('[')).collect();
    let value = |key: &str| {
        let line = lines.iter().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""))?;
        Some(line.strip_suffix('"')?.replace("\\\"", "\""))
    };
    value("source").zip(value("as_of")).ok_or_else(|| XtaskError::Facts {
        file: file.to_owned(),
        reason: format!("{head} has no source and as_of"),
    })
}

/// Disagreements that the description states without the figures, which are those of its sources:
/// name, figure, one with its source, the other with its source, the one that is used.
const UNLISTED: [[&str; 7]; 2] = [
    ["D96ads_v5", "cached_mbps", "3872", "dadsv5-2021", "4000", "dadsv5", "3872"],
    ["D96ads_v5", "temp_gib", "2400", "dadsv5-2021", "3600", "dadsv5", "3600"],
];

/// Returns the table of disagreements between sources of Azure machines.
pub(super) fn conflicts(facts: &Facts) -> Result<Table, XtaskError> {
    let mut table = Table::default();
    table.line(["edition", "name", "figure", "one", "one_source", "other", "other_source", "used"]);
    let listed = listed(facts)?;
    let is_figure = |line: &&Vec<String>| line.len() == 5 && line[2].ends_with(')');
    for line in listed.iter().filter(is_figure) {
        let (Some((one, by)), Some((other, other_by))) = (sourced(&line[2]), sourced(&line[3]))
        else {
            continue;
        };
        table.conflict([&line[0], &line[1], one, by, other, other_by, &line[4]]);
    }
    UNLISTED.into_iter().for_each(|own| table.conflict(own));
    Ok(table)
}

impl Table {
    fn conflict(&mut self, own: [&str; 7]) {
        let [name, figure, one, by, other, other_by, used] = own;
        self.cite(&[by, other_by]);
        let name = format!("Standard_{name}");
        self.line(["azure-now", &name, figure, one, by, other, other_by, used]);
    }
}

/// Splits `320 (csi)` into figure and key of the source.
fn sourced(cell: &str) -> Option<(&str, &str)> {
    let (figure, source) = cell.split_once(" (")?;
    Some((figure, source.strip_suffix(')')?))
}
