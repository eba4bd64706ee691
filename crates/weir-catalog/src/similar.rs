//! Machines that resemble one that an edition does not have: of its family, near in size and version.

use crate::host::HostSize;
use crate::nearest::plain;

/// A part of a machine's name: letters or a number.
#[derive(Debug, Clone, PartialEq)]
enum Part {
    Letters(String),
    Number(u32),
}

/// Distance of names with other letters in one place.
const OTHER_LETTERS: f64 = 6.0;
/// Distance of numbers of which one is twice the other.
const TWICE: f64 = 10.0;
/// Names that differ by more are of no help.
const FAR: f64 = 25.0;

/// Splits `d32ds_v5` into d, 32, ds, v, 5.
fn parts(name: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut is_apart = true;
    for c in plain(name).chars() {
        let digit = c.to_digit(10);
        match (parts.last_mut(), digit) {
            _ if !c.is_alphanumeric() => {}
            (Some(Part::Letters(word)), None) if !is_apart => word.push(c),
            (Some(Part::Number(n)), Some(digit)) if !is_apart => {
                *n = n.saturating_mul(10).saturating_add(digit);
            }
            (_, Some(digit)) => parts.push(Part::Number(digit)),
            (_, None) => parts.push(Part::Letters(c.to_string())),
        }
        is_apart = !c.is_alphanumeric();
    }
    parts
}

/// Returns the distance of two names; `None` if their families have nothing in common.
fn distance(wanted: &[Part], own: &[Part]) -> Option<f64> {
    if wanted.len() != own.len() || wanted.len() < 2 || wanted.first() != own.first() {
        return None;
    }
    let pairs = wanted.iter().zip(own);
    pairs
        .map(|pair| match pair {
            (Part::Number(0), _) | (_, Part::Number(0)) => Some(FAR),
            (Part::Number(a), Part::Number(b)) => {
                Some((f64::from(*a) / f64::from(*b)).log2().abs() * TWICE)
            }
            (Part::Letters(a), Part::Letters(b)) => Some(if a == b { 0.0 } else { OTHER_LETTERS }),
            (Part::Letters(_), Part::Number(_)) | (Part::Number(_), Part::Letters(_)) => None,
        })
        .sum()
}

/// Returns the machine that resembles a name most.
pub(crate) fn machine<'a>(
    name: &str,
    hosts: impl Iterator<Item = &'a HostSize>,
) -> Option<&'a HostSize> {
    let wanted = parts(name);
    let near = hosts.filter_map(|host| Some((distance(&wanted, &parts(&host.name))?, host)));
    let near = near.filter(|(distance, _)| *distance <= FAR);
    near.min_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, host)| host)
}

/// Returns the figures of a machine and its differences to a name, as a sentence.
pub(crate) fn described(name: &str, host: &HostSize) -> String {
    let mut figures: Vec<String> = Vec::new();
    figures.extend(host.vcpus.map(|n| format!("{n} vCPUs")));
    figures.extend(host.memory.map(|memory| memory.to_string()));
    match host.v2_or_uncached() {
        Some(limits) => figures.push(format!("{} and {}", limits.iops, limits.throughput)),
        None => figures.push("no published limits".to_owned()),
    }
    let (wanted, own) = (parts(name), parts(&host.name));
    let mut before = String::new();
    let mut differences: Vec<String> = Vec::new();
    for (wanted, own) in wanted.iter().zip(&own) {
        let word = |part: &Part| match part {
            Part::Letters(word) => word.clone(),
            Part::Number(n) => format!("{before}{n}"),
        };
        if wanted != own {
            differences.push(format!("{} instead of {}", word(own), word(wanted)));
        }
        before = match own {
            Part::Letters(word) => word.clone(),
            Part::Number(_) => String::new(),
        };
    }
    format!("{} has {} ({})", host.name, figures.join(", "), differences.join(", "))
}

#[cfg(test)]
mod tests {
    use crate::Catalog;

    #[test]
    fn the_nearest_machine_is_of_the_family_and_near_in_size() {
        let check = |edition: &str, name: &str, expect: &str| {
            let catalog = Catalog::builtin();
            let edition = catalog.edition(edition).unwrap();
            let error = edition.host(name).unwrap_err().to_string();
            assert!(error.contains(expect), "{error}");
        };
        check(
            "azure-now",
            "D32ds_v9",
            "did you mean \"Standard_D32ds_v6\"?; Standard_D32ds_v6 has 32 vCPUs, 128 GiB, ",
        );
        check("azure-now", "D32ds_v9", "(v6 instead of v9)");
        check("azure-now", "D40s_v5", "(d48 instead of d40)");
        check("azure-now", "D9as_v7", "no published limits (d8 instead of d9)");
        check("aws", "m12i.4xlarge", "did you mean \"m8i.4xlarge\"?");
        check("gcp", "n2-standard-44", "(standard48 instead of standard44)");
    }
}
