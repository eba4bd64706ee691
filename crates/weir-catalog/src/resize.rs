//! Obstacles to the resize of a machine, besides a restart.

use crate::architecture::{Architecture, features};
use crate::edition::Edition;
use crate::host::{HostSize, Interface};

/// The traits of a machine that a resize cannot change, or only with preparation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MachineTraits {
    /// The name of the size.
    pub name: String,
    /// The instruction set.
    pub architecture: Architecture,
    /// Whether a size of Azure has a local temporary disk; `None` if that is not known, and on other clouds.
    pub temporary_disk: Option<bool>,
    /// The interface of the remote disks, if the edition states it.
    pub interface: Option<Interface>,
}

impl MachineTraits {
    /// Returns the reason why a machine cannot become `after` by a resize, if there is one.
    ///
    /// - Another architecture needs another operating system and other software.
    /// - Azure does not resize between sizes with and without a local temporary disk ("Resize a virtual machine",
    ///   limitations).
    #[must_use]
    pub fn refusal(&self, after: &Self) -> Option<String> {
        if self.architecture != after.architecture {
            let is_arm = after.architecture == Architecture::Arm64;
            return Some(format!(
                "{} has {} processors, so the operating system must be reinstalled",
                after.name,
                if is_arm { "Arm" } else { "x64" }
            ));
        }
        match (self.temporary_disk, after.temporary_disk) {
            (Some(old), Some(new)) if old != new => Some(format!(
                "Azure refuses to resize to {}, because it {} a local temporary disk: create a new \
                 machine and move the disks to it",
                after.name,
                if new { "has" } else { "does not have" }
            )),
            _ => None,
        }
    }

    /// Returns the obstacle to a resize to `after`, or `None` if the machine only restarts: a
    /// [`refusal`](Self::refusal), or a system whose disks are attached by SCSI, which must be prepared for NVMe.
    #[must_use]
    pub fn obstacle(&self, after: &Self) -> Option<String> {
        self.refusal(after).or_else(|| match (self.interface, after.interface) {
            (Some(Interface::Scsi), Some(Interface::Nvme)) => Some(
                "the operating system must be prepared for NVMe first, and the machine deallocated"
                    .to_owned(),
            ),
            _ => None,
        })
    }
}

impl Edition {
    /// Returns the traits of a machine that a resize cannot change, or only with preparation.
    #[must_use]
    pub fn traits(&self, host: &HostSize) -> MachineTraits {
        let is_azure = self.provider() == Some("azure");
        MachineTraits {
            name: host.name.clone(),
            architecture: self.architecture(host),
            temporary_disk: temporary_disk(host).filter(|_| is_azure),
            interface: host.interface,
        }
    }

    /// Returns the obstacle to a resize from `before` to `after`, or `None` if the machine only restarts.
    #[must_use]
    pub fn obstacle(&self, before: &HostSize, after: &HostSize) -> Option<String> {
        self.traits(before).obstacle(&self.traits(after))
    }
}

/// Returns whether a size of Azure has a local temporary disk; `None` if that is not known.
///
/// The figures or a `d` in the name say that there is one. A name without `d` means that there is none in the D and E
/// families from version 4 on (from 5 on with AMD), in F from 5 on, and in the second version of B.
fn temporary_disk(host: &HostSize) -> Option<bool> {
    let name = host.name.strip_prefix("Standard_").unwrap_or(&host.name);
    if host.temp.is_some() || features(name).contains('d') {
        return Some(true);
    }
    let family = name.trim_end_matches(|c: char| !c.is_ascii_uppercase());
    let family = family.split(|c: char| !c.is_ascii_uppercase()).next().unwrap_or_default();
    let version = name.rsplit_once("_v").and_then(|(_, version)| version.parse::<u32>().ok());
    match (family, version) {
        ("D" | "E" | "F", Some(5..)) | ("B", Some(2)) => Some(false),
        // AMD sizes of version 4 have one.
        ("D" | "E", Some(4)) if !features(name).contains('a') => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::Catalog;

    #[test]
    fn obstacles_are_named_and_unknown_ones_are_not() {
        let catalog = Catalog::builtin();
        let edition = catalog.edition("azure-now").expect("an edition");
        let between = |before: &str, after: &str| {
            let host = |name| edition.host(name).unwrap_or_else(|error| panic!("{error}"));
            edition.obstacle(host(before), host(after)).unwrap_or_default()
        };
        assert_eq!(between("D8s_v3", "D16s_v3"), "");
        assert_eq!(between("D8ds_v5", "D16ds_v5"), "");
        assert_eq!(between("D8s_v5", "D16as_v5"), "");
        assert!(between("D8s_v3", "D8as_v5").contains("it does not have a local temporary disk"));
        assert!(between("D16s_v4", "D16ds_v5").contains("it has a local temporary disk"));
        assert!(between("D8s_v5", "D8ds_v5").contains("it has a local temporary disk"));
        // The sources do not say whether these have one.
        assert_eq!(between("L8s", "D8ds_v5"), "");
        assert!(between("D8s_v5", "D8ps_v5").contains("has Arm processors"));
        assert!(between("D8ps_v5", "D8s_v5").contains("has x64 processors"));
        let nvme = between("ebdsv5-scsi/Standard_E8bds_v5", "ebdsv5-nvme/Standard_E8bds_v5");
        assert!(nvme.contains("prepared for NVMe"), "{nvme}");
    }
}
