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
            reason: "the layout has no remote volume or stripe".to_owned(),
        });
    }
    if change.is_known()
        && !spaces.iter().any(|fate: &Fate<'_, Space>| matches!(fate, Fate::New(_) | Fate::Gone(_)))
    {
        script.nothing(change);
        return Ok(());
    }
    script.header(
        "the file systems (--as mdadm or lvm) and the folders of the mount points. Add the lines \
         to /etc/fstab and run mount --all.",
        "mounts by label, because device names change.",
        "switch barriers off: disks without a write cache need none switched off, and XFS no \
         longer has that option.",
    );
    script.comment("");
    script.comment("noatime: a read of a file must not become a write.");
    script.comment(
        "nofail: the machine starts even without the disk; services that need the mount must say \
         so (RequiresMountsFor= in its unit), or it starts on an empty folder.",
    );
    script.blank();
    for fate in &spaces {
        match *fate {
            Fate::New(space) => line(script, options, space)?,
            Fate::Gone(space) => {
                let words = format!("{} is no longer in the layout: remove its line", space.own);
                script.warn(&format!("{words}."));
            }
            Fate::Same(_) | Fate::Changed(..) => {}
        }
    }
    for space in change.new.spaces.iter().filter(|space| space.is_local) {
        script.comment(&format!(
            "{}: the machine's local disk, which the machine mounts itself. It loses its data when \
             the machine moves.",
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
