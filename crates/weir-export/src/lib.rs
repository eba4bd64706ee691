//! Export of layouts as scripts that build them.
//!
//! [`export`] writes a script of one [`Kind`] for a layout, or for the difference from the layout
//! in use. It runs nothing and knows no account. Values that a layout does not contain are options,
//! or variables of the script.
//!
//! | module | holds |
//! |---|---|
//! | [`options`] | values that a layout does not contain: names, locations, mount points |
//! | `kind` | the kinds of scripts |
//! | [`script`] | the common parts of scripts |
//! | [`error`] | reasons why a layout cannot be exported |
//! | `site` | the host of a layout as scripts see it: disks, stripes, files |
//! | `applied` | options applied to the layouts |
//! | `change` | the difference between two layouts, once for all kinds |
//! | `quote` | quoting in each language |
//! | `disk` | changes of disks, for all clouds |
//! | `ebs` | the names under which AWS attaches volumes |
//! | `space` | changes of stripes and single disks, for all systems |
//! | `azure` | Azure's names and rules, once for its four languages |
//! | `linux` | common parts of shell scripts for a Linux machine |
//! | `backup` | backups as statements and settings of other tools, a file per kind |
//! | one per kind | `tsql`, `az`, `bicep`, `terraform`, `powershell`, `mdadm`, `lvm`, `storage_spaces`, `fstab` |

#![forbid(unsafe_code)]

mod applied;
mod az;
mod azure;
mod backup;
mod bicep;
mod change;
mod disk;
mod ebs;
pub mod error;
mod fstab;
mod kind;
mod linux;
mod lvm;
mod mdadm;
pub mod options;
mod powershell;
mod quote;
pub mod script;
mod site;
mod space;
mod storage_spaces;
mod terraform;
mod tsql;

pub use backup::backup_kinds;
pub use error::ExportError;
pub use kind::Kind;
pub use options::{Backup, Filesystem, OperatingSystem, Options};
pub use script::Export;
pub use site::Source;

use change::Change;
use script::Script;
use site::Site;

/// Returns a script of `kind` that builds `layout`, or that changes `from` into it.
///
/// # Errors
///
/// [`ExportError`] if the kind does not apply to the layout, lacks an option, does not use one, or
/// does not allow a name.
pub fn export(
    kind: Kind,
    layout: Source<'_>,
    from: Option<Source<'_>>,
    options: &Options,
) -> Result<Export, ExportError> {
    options.check(kind)?;
    if let Some(from) = from.filter(|_| kind.is_backup()) {
        let reason = "a backup is of one layout; leave it out".to_owned();
        return Err(options::refused(format!("--from {}", from.name), reason));
    }
    let new = Site::for_host(layout, options, options.host.as_deref())?;
    let old =
        from.map(|from| Site::for_host(from, options, present_host(options, from))).transpose()?;
    options.check_names(kind, &new, old.as_ref())?;
    let options = &options.with_file_system_of(kind, &new)?;
    let change = Change::between(old, new)?;
    change.check_clouds(kind)?;
    change.check_file_system(kind)?;
    change.check_numbers(kind)?;
    let mut script = Script::new(kind, &change);
    match kind {
        Kind::Tsql => tsql::write(&mut script, &change, options)?,
        Kind::Az => az::write(&mut script, &change, options)?,
        Kind::Bicep => bicep::write(&mut script, &change, options)?,
        Kind::Terraform => terraform::write(&mut script, &change, options)?,
        Kind::Powershell => powershell::write(&mut script, &change, options)?,
        Kind::Mdadm => mdadm::write(&mut script, &change, options)?,
        Kind::Lvm => lvm::write(&mut script, &change, options)?,
        Kind::StorageSpaces => storage_spaces::write(&mut script, &change, options)?,
        Kind::Fstab => fstab::write(&mut script, &change, options)?,
        Kind::TsqlBackup | Kind::Ola | Kind::Dbatools | Kind::Pgbackrest => {
            backup::write(&mut script, &change, options)?;
        }
    }
    Ok(script.finish())
}

/// Returns the host of the layout in use: the only one, whatever its name.
fn present_host<'a>(options: &'a Options, from: Source<'_>) -> Option<&'a str> {
    options.host.as_deref().filter(|_| from.layout.hosts.len() > 1)
}
