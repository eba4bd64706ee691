//! Mounts of a Linux machine: a line for each file system, found by its label.

use crate::change::{Change, Fate};
use crate::error::ExportError;
use crate::linux;
use crate::options::{Filesystem, Options, refused};
use crate::quote;
use crate::script::Script;
use crate::site::Space;
use crate::space;

pub(crate) fn write(
    script: &mut Script,
    change: &Change,
    options: &Options,
) -> Result<(), ExportError> {
    let spaces = space::remote(change);
    if spaces.is_empty() {
        return Err(ExportError::Nothing {
            layout: change.new.layout.clone(),
            kind: "fstab",
            reason: "it has no remote volume or stripe".to_owned(),
        });
    }
    let is_mounted = |fate: &Fate<'_, Space>| matches!(fate, Fate::New(_) | Fate::Gone(_));
    if change.is_known() && !spaces.iter().any(is_mounted) {
        script.nothing(change);
        return Ok(());
    }
    script.header(
        "lines of /etc/fstab. The file systems are there (--as mdadm or lvm), and so are the folders that \
         they are mounted at; then mount --all.",
        "mount by label, since devices change their names.",
        "switch barriers off: a disk whose cache is none or for reads has what it acknowledged, and XFS \
         has no such option any more.",
    );
    script.comment("");
    script.comment("noatime: a read of a file must not become a write.");
    script.comment(
        "nofail: the machine starts without the disk, too; what needs the mount must say so \
         (RequiresMountsFor= in its unit), or it starts on an empty folder.",
    );
    script.blank();
    for fate in &spaces {
        match *fate {
            Fate::New(space) => line(script, options, space)?,
            Fate::Gone(space) => {
                let words =
                    format!("{} is not in the layout any more: take its line out", space.own);
                script.warn(&format!("{words}."));
            }
            Fate::Same(_) | Fate::Changed(..) => {}
        }
    }
    for space in change.new.spaces.iter().filter(|space| space.is_local) {
        script.comment(&format!(
            "{}: the machine's own disk, which the machine mounts itself; it is empty after each move.",
            space.own
        ));
    }
    Ok(())
}

fn line(script: &mut Script, options: &Options, space: &Space) -> Result<(), ExportError> {
    let filesystem = options.filesystem.unwrap_or_default();
    linux::check_label(space, filesystem)?;
    let default = format!("/mnt/{}", space.name);
    let mount = options.mount_of(&space.own).unwrap_or(&default);
    if !mount.starts_with('/') {
        return Err(refused(
            format!("--mount {}={mount}", space.own),
            "Linux mounts at a path that begins with /".to_owned(),
        ));
    }
    // XFS checks itself; other file systems are checked after the root.
    let pass = match filesystem {
        Filesystem::Xfs => 0,
        Filesystem::Ext4 => 2,
    };
    script.line(&format!(
        "LABEL={} {} {} defaults,noatime,nofail 0 {pass}",
        quote::fstab(&space.name),
        quote::fstab(mount),
        filesystem.name()
    ));
    Ok(())
}
