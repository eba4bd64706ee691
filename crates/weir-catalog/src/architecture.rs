//! The processors of a machine, by its name: their instruction set, and whether they are burstable.
//!
//! | cloud | rule | source |
//! |---|---|---|
//! | Azure | `p` among the lower-case letters after the number of vCPUs: `D16pds_v6`; accelerators with Grace: `_GB200_` | "Azure virtual machine sizes naming conventions": p = ARM CPU |
//! | AWS | `g` after the generation: `m7gd.large`; and `a1` and Macs after `mac1` | "Amazon EC2 instance type naming conventions": g = AWS Graviton processors |
//! | Google | the series `t2a`, `c4a`, `n4a` and `a4x` | "Machine families resource guide": Arm machine series |

use std::str::FromStr;

/// The Arm series of Google Cloud.
const GOOGLE_ARM: [&str; 4] = ["t2a", "c4a", "n4a", "a4x"];

/// The instruction set of a machine's processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    /// x86-64 of Intel or AMD.
    X64,
    /// 64-bit Arm: Ampere Altra, Cobalt, Graviton, Axion.
    Arm64,
}

impl Architecture {
    /// Returns the name that needs and options have.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::X64 => "x64",
            Self::Arm64 => "arm64",
        }
    }

    /// Returns the architecture of a machine of a provider, by its name.
    pub(crate) fn of_machine(provider: Option<&str>, name: &str) -> Self {
        let is_arm = match provider {
            // GB200 and GB300 join GPUs with Grace, an Arm processor.
            Some("azure") => features(name).contains('p') || name.contains("_GB"),
            Some("aws") => is_graviton(name),
            Some("google") => {
                name.split('-').next().is_some_and(|series| GOOGLE_ARM.contains(&series))
            }
            _ => false,
        };
        if is_arm { Self::Arm64 } else { Self::X64 }
    }
}

impl FromStr for Architecture {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "x64" => Ok(Self::X64),
            "arm64" => Ok(Self::Arm64),
            _ => Err(format!("{text:?} is not an architecture; use x64 or arm64")),
        }
    }
}

/// Returns the letters in a name of Azure that state features, which follow the number of vCPUs: `pds` of
/// `Standard_D16pds_v6`, `ads` of `Standard_E96-24ads_v5`.
pub(crate) fn features(name: &str) -> &str {
    let prefix = "standard_";
    let is_long = name.get(..prefix.len()).is_some_and(|own| own.eq_ignore_ascii_case(prefix));
    let size = if is_long { &name[prefix.len()..] } else { name };
    let size = size.split('_').next().unwrap_or(size);
    let size = size.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    size.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-')
}

/// Returns whether the processors of a machine are burstable or shared: Azure's B series, the T families of AWS,
/// and Google's `f1-micro`, `g1-small` and `e2-micro` to `e2-medium`.
pub(crate) fn is_burstable(provider: Option<&str>, name: &str) -> bool {
    let digit_after = |letter: char, name: &str| {
        name.strip_prefix(letter).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    match provider {
        Some("azure") => digit_after('B', name.strip_prefix("Standard_").unwrap_or(name)),
        Some("aws") => digit_after('t', name.strip_prefix("db.").unwrap_or(name)),
        Some("google") => {
            ["f1-micro", "g1-small", "e2-micro", "e2-small", "e2-medium"].contains(&name)
        }
        _ => false,
    }
}

/// Returns whether a type of EC2 or RDS has processors of Arm: `m7gd.large`, `db.r6g.large`, `a1.xlarge`.
fn is_graviton(name: &str) -> bool {
    let own = name.strip_prefix("db.").unwrap_or(name);
    let family = own.split('.').next().unwrap_or(own);
    if family.starts_with("mac") {
        return family != "mac1";
    }
    let generation = family.trim_start_matches(|c: char| !c.is_ascii_digit());
    family == "a1" || generation.contains('g')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalog;

    #[test]
    fn names_state_the_architecture() {
        let check = |provider, names: &[&str], expect| {
            for name in names {
                assert_eq!(Architecture::of_machine(provider, name), expect, "{name}");
            }
        };
        let azure = Some("azure");
        let arm = ["Standard_D16pds_v6", "B2pts_v2", "Standard_E4ps_v5", "D32pls_v6"];
        check(azure, &arm, Architecture::Arm64);
        let x64 = ["Standard_D16ds_v6", "DS14", "Standard_NP10s", "Standard_E96-24ads_v5", "F2s"];
        check(azure, &x64, Architecture::X64);
        let aws = Some("aws");
        let arm =
            ["m7gd.large", "g5g.xlarge", "im4gn.large", "a1.large", "db.r6g.large", "mac2.metal"];
        check(aws, &arm, Architecture::Arm64);
        let x64 = [
            "m6i.xlarge",
            "g5.xlarge",
            "gr6.4xlarge",
            "m7i-flex.large",
            "u-6tb1.metal",
            "mac1.metal",
        ];
        check(aws, &x64, Architecture::X64);
        check(Some("google"), &["c4a-highmem-8", "t2a-standard-4"], Architecture::Arm64);
        check(
            Some("google"),
            &["c4-highmem-8", "a2-highgpu-1g", "n4-standard-4"],
            Architecture::X64,
        );
        check(None, &["D16pds_v6"], Architecture::X64);
    }

    #[test]
    fn names_state_burstable_processors() {
        let check = |provider, name| is_burstable(Some(provider), name);
        assert!(check("azure", "Standard_B16ms") && check("azure", "B2pts_v2"));
        assert!(check("aws", "t3.large") && check("aws", "db.t4g.medium"));
        assert!(check("google", "e2-medium") && check("google", "f1-micro"));
        assert!(!check("azure", "Standard_D16s_v5") && !check("azure", "Basic_A1"));
        assert!(!check("aws", "trn2.3xlarge") && !check("aws", "m6i.large"));
        assert!(!check("google", "e2-standard-4") && !check("google", "t2a-standard-4"));
    }

    #[test]
    fn a_text_is_an_architecture_or_refused() {
        for own in [Architecture::X64, Architecture::Arm64] {
            assert_eq!(own.name().parse(), Ok(own));
        }
        assert!("x86".parse::<Architecture>().unwrap_err().contains("use x64 or arm64"));
    }

    /// Machines of both kinds are in each of today's clouds.
    #[test]
    fn todays_editions_have_both() {
        let catalog = Catalog::builtin();
        let aws = catalog.edition("aws").expect("an edition");
        let macs = aws.hosts().filter(|host| aws.is_mac(host)).count();
        assert!(macs > 0, "{macs}");
        for name in ["azure-now", "aws", "gcp"] {
            let edition = catalog.edition(name).expect("an edition");
            for own in [Architecture::X64, Architecture::Arm64] {
                let mut hosts = edition.hosts();
                assert!(hosts.any(|host| edition.architecture(host) == own), "{name}: {own:?}");
            }
        }
    }
}
