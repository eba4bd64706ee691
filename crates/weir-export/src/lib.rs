//! Layouts as scripts that build them.
//!
//! [`export`] takes a layout, and where there is one the layout that is there at present, and
//! writes a script of one [`Kind`]. It runs nothing and knows no account: what a layout does not
//! say is an option, or a variable of the script.
//!
//! | module | holds |
//! |---|---|
//! | [`options`] | what a layout does not say: names, places, where things are mounted |
//! | [`script`] | the kinds of scripts, and how one is put together |
//! | [`error`] | every way in which a layout cannot be exported |
//! | `site` | what of a layout scripts speak of: disks, what they make together, files |
//! | `change` | the difference between two layouts, once for all kinds |
//! | `quote` | how each language quotes |
//! | `disk` | what becomes of disks, whatever cloud they are of |
//! | `ebs` | the names under which AWS attaches volumes |
//! | `space` | what becomes of stripes and single disks, whatever system makes them |
//! | `azure` | what Azure calls what a layout has, once for its four languages |
//! | `linux` | what shell scripts for a Linux machine have in common |
//! | [`backup`] | backups as statements and settings of other tools, a file per kind |
//! | one per kind | `tsql`, `az`, `bicep`, `terraform`, `powershell`, `mdadm`, `lvm`, `storage_spaces`, `fstab` |

#![forbid(unsafe_code)]

mod az;
mod azure;
pub mod backup;
mod bicep;
mod change;
mod disk;
mod ebs;
pub mod error;
mod fstab;
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

pub use backup::Backup;
pub use error::ExportError;
pub use options::{Filesystem, OperatingSystem, Options};
pub use script::{Export, Kind};

use change::Change;
use script::Script;
use site::Site;
use weir_layout::Layout;

/// A layout by the name of its file.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// How the script calls it.
    pub name: &'a str,
    /// The layout.
    pub layout: &'a Layout,
}

/// A script of `kind` that builds `layout`; that makes it of `from`, if that is there at present.
///
/// # Errors
///
/// [`ExportError`] where the kind has nothing to do for the layout, needs an option, has no use for
/// one, or cannot have a name.
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
    let new = Site::of(layout, options, options.host.as_deref())?;
    let old = from.map(|from| Site::of(from, options, present_host(options, from)));
    let old = old.transpose()?;
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

/// The host of the present layout: the only one, whatever its name is.
fn present_host<'a>(options: &'a Options, from: Source<'_>) -> Option<&'a str> {
    options.host.as_deref().filter(|_| from.layout.hosts.len() > 1)
}
