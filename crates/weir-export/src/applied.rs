//! Options applied to the layouts of an export.

use crate::error::ExportError;
use crate::kind::Kind;
use crate::options::{Filesystem, Options, refused};
use crate::site::Site;
use weir_layout::file::FileSystem;

impl Options {
    /// Checks that the given names are in the layouts.
    pub(crate) fn check_names(
        &self,
        kind: Kind,
        new: &Site,
        old: Option<&Site>,
    ) -> Result<(), ExportError> {
        let sites = || std::iter::once(new).chain(old);
        let spaces: Vec<&str> =
            sites().flat_map(|site| site.spaces.iter().map(|own| own.own.as_str())).collect();
        let disks: Vec<&str> =
            sites().flat_map(|site| site.disks.iter().map(|own| own.own.as_str())).collect();
        let files: Vec<&str> =
            sites().flat_map(|site| site.files.iter().map(|own| own.own.as_str())).collect();
        // A name that the kind does not write is an error.
        let named = match kind {
            Kind::Tsql => files,
            Kind::Az | Kind::Bicep | Kind::Terraform | Kind::Powershell => disks.clone(),
            Kind::StorageSpaces | Kind::Fstab => spaces.clone(),
            // Names of stripes contain the time.
            Kind::TsqlBackup | Kind::Ola | Kind::Dbatools | Kind::Pgbackrest => Vec::new(),
            Kind::Mdadm | Kind::Lvm => [&spaces[..], &disks].concat(),
        };
        for (option, pairs, known) in [
            ("--name", &self.names, &named),
            ("--mount", &self.mounts, &spaces),
            ("--device", &self.devices, &disks),
        ] {
            for (name, value) in pairs {
                if !known.contains(&name.as_str()) {
                    let mut there = known.clone();
                    there.dedup();
                    let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
                    let reason = format!(
                        "{} has no {name:?} that {kind} speaks of; there are: {there}",
                        new.layout
                    );
                    return Err(refused(format!("{option} {name}={value}"), reason));
                }
            }
        }
        Ok(())
    }

    /// Returns the options with the file system of the layout, for kinds that make or mount one.
    pub(crate) fn with_file_system_of(&self, kind: Kind, site: &Site) -> Result<Self, ExportError> {
        let Some(own) = site.filesystem else { return Ok(self.clone()) };
        let linux = match own {
            FileSystem::Ext4 => Some(Filesystem::Ext4),
            FileSystem::Xfs => Some(Filesystem::Xfs),
            FileSystem::Ntfs => None,
        };
        let cannot = |reason: String| ExportError::Cannot {
            layout: site.layout.clone(),
            what: format!("host {:?}", site.host),
            kind: kind.name(),
            reason,
        };
        let of_system = format!("the file system of its disks is {}", own.name());
        match (kind, self.filesystem, linux) {
            (Kind::StorageSpaces, _, Some(_)) => {
                Err(cannot(format!("{of_system}, which Windows lacks; export as mdadm or lvm")))
            }
            (Kind::Mdadm | Kind::Lvm | Kind::Fstab, _, None) => {
                Err(cannot(format!("{of_system}, of Windows; export as storage-spaces")))
            }
            (_, Some(said), Some(linux)) if said != linux => Err(refused(
                format!("--filesystem {}", said.name()),
                format!("{of_system} in {}; leave the option out", site.layout),
            )),
            (Kind::Mdadm | Kind::Lvm | Kind::Fstab, _, Some(_)) => {
                Ok(Self { filesystem: linux, ..self.clone() })
            }
            _ => Ok(self.clone()),
        }
    }
}
