//! Stripes and single disks on Linux by LVM, and their file systems.

use crate::change::{Change, Fate};
use crate::error::ExportError;
use crate::linux::{self, Column};
use crate::options::Options;
use crate::quote::shell;
use crate::script::Script;
use crate::site::Space;
use crate::space::{self, Difference};

pub(crate) fn write(
    script: &mut Script,
    change: &Change,
    options: &Options,
) -> Result<(), ExportError> {
    let spaces = space::remote(change);
    if spaces.is_empty() {
        return Err(ExportError::Nothing {
            layout: change.new.layout.clone(),
            kind: "lvm",
            reason: "the layout has no remote volume or stripe".to_owned(),
        });
    }
    if spaces.iter().all(Fate::is_same) {
        script.nothing(change);
        return Ok(());
    }
    script.header(
        "root, lvm2, and util-linux; the disks are attached (--as az or another).",
        "creates a volume group vg_NAME with one logical volume lv_NAME for each stripe or disk, \
         with one stripe per disk and the layout's unit, and its file system. A second run checks \
         and leaves them.",
        "change a disk that holds data or has another size than in the layout, nor mount (--as \
         fstab).",
    );
    linux::start(script, change, options)?;
    for fate in &spaces {
        match *fate {
            Fate::New(space) => make(script, change, options, space)?,
            Fate::Changed(old, space) => changed(script, change, options, old, space)?,
            Fate::Gone(space) => {
                let group = shell(&format!("vg_{}", space.name));
                space::gone(
                    script,
                    space,
                    &[format!("vgremove {group}"), "pvremove DISK...".to_owned()],
                );
            }
            Fate::Same(_) => {}
        }
    }
    Ok(())
}

fn path(space: &Space) -> String {
    format!("/dev/vg_{name}/lv_{name}", name = space.name)
}

fn make(
    script: &mut Script,
    change: &Change,
    options: &Options,
    space: &Space,
) -> Result<(), ExportError> {
    check_name(space)?;
    let device = linux::device(script, change, options, space)?;
    let (group, volume) =
        (shell(&format!("vg_{}", space.name)), shell(&format!("lv_{}", space.name)));
    let count = device.columns.len();
    script.blank();
    let (words, stripes) = match space.unit {
        None => ("a single disk; the volume group lets it grow".to_owned(), String::new()),
        Some(unit) => {
            if !unit.get().is_power_of_two() || unit.get() < 4 << 10 || unit.get() > 4 << 20 {
                let reason = format!(
                    "LVM needs a unit that is a power of two from 4 KiB to 4 MiB, not {unit}"
                );
                return Err(space::cannot(script, &change.new, space, reason));
            }
            let words = format!(
                "{count} stripes, one per disk, so that their limits add up; {unit} on one before \
                 the next"
            );
            (words, format!(" --stripes {count} --stripesize {}k", unit.get() >> 10))
        }
    };
    script.comment(&format!("{}: {words}.", space.own));
    let checks: Vec<String> = device
        .columns
        .iter()
        .map(|column| format!("    check {} {}", column.word(), column.size))
        .collect();
    // A volume group of this name may be unrelated.
    let members: Vec<String> = device.columns.iter().map(|column: &Column| {
        let disk = column.word();
        let words =
            format!("{} is not in the volume group {group}: rename with --name", column.name());
        format!(
            "[[ $(pvs --noheadings --options vg_name {disk} 2>/dev/null | tr -d ' ') == {group} ]] ||\n    die {}",
            shell(&words)
        )
    }).collect();
    let disks: Vec<String> = device.columns.iter().map(Column::word).collect();
    let disks = disks.join(" ");
    device.find(script);
    let kib = space.unit.map(|unit| unit.get() >> 10);
    script.lines(&format!(
        r#"if ! vgs --noheadings {group} >/dev/null 2>&1; then
{}
    pvcreate {disks}
    vgcreate {group} {disks}
fi
if now=$(lvs --noheadings --units k --nosuffix --options stripes,stripe_size {group}/{volume} 2>/dev/null |
    awk '{{ print $1, int($2) }}' | sort -u); then
    read -r stripes unit <<<"$now"
    [[ $now == '{count} {kib}' ]] || die {own}": NOT DONE: it has $stripes stripes of $unit KiB, the layout {wanted}; that is not changed in place: make a volume under another name, copy, \
        and change over"
fi
{members}
if [[ -z $now ]]; then
    lvcreate --yes --wipesignatures n{stripes} --extents 100%FREE --name {volume} {group}
fi"#,
        checks.join("\n"),
        members = members.join("\n"),
        kib = kib.unwrap_or_default(),
        wanted = kib.map_or_else(|| "a single disk".to_owned(), |kib| format!("{count} of {kib} KiB")),
        own = shell(&space.own),
    ));
    linux::filesystem(script, space, &shell(&path(space)), options.filesystem.unwrap_or_default())
}

fn changed(
    script: &mut Script,
    change: &Change,
    options: &Options,
    old: &Space,
    space: &Space,
) -> Result<(), ExportError> {
    check_name(space)?;
    let Some(difference) = Difference::between(script, old, space) else { return Ok(()) };
    if difference == Difference::Shape {
        script.warn(&format!(
            "{}: it has {} disks and becomes {}, or gets another unit. LVM can add disks to a \
             group and extend a volume over them, but existing data keeps its stripes, so the \
             limits of new disks would serve new data only. Create a volume over all {} disks \
             under another name, copy, and switch over.",
            space.own,
            old.columns.len(),
            space.columns.len(),
            space.columns.len()
        ));
        return Ok(());
    }
    let device = linux::device(script, change, options, space)?;
    let disks: Vec<String> = device.columns.iter().map(Column::word).collect();
    script.comment(&format!(
        "{}: its disks grow from {} to {} in total; its stripes do not change.",
        space.own, old.size, space.size
    ));
    device.find(script);
    script.lines(&format!(
        "pvresize {}\nif [[ $(vgs --noheadings --options vg_free_count {group} | tr -d ' ') != 0 ]]; then\n    \
         lvextend --resizefs --extents +100%FREE {}\nfi",
        disks.join(" "),
        shell(&path(space)),
        group = shell(&format!("vg_{}", space.name))
    ));
    Ok(())
}

fn check_name(space: &Space) -> Result<(), ExportError> {
    const RESERVED: [&str; 16] = [
        "_cdata", "_cmeta", "_corig", "_imeta", "_iorig", "_mimage", "_mlog", "_pmspare",
        "_rimage", "_rmeta", "_tdata", "_tmeta", "_vdata", "_vorigin", "_wcorig", "_wdata",
    ];
    let name = &space.name;
    // The kernel's name combines those of group and volume.
    if name.is_empty()
        || name.len() > 56
        || !name
            .chars()
            .all(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '+'))
        || RESERVED.iter().any(|word| format!("lv_{name}").contains(word))
    {
        return Err(ExportError::BadName {
            what: "a volume of LVM",
            name: name.clone(),
            rule: "1 to 56 letters, digits, '_', '.', '+' and '-', and none of LVM's own endings like \
                   _tdata",
            own: space.own.clone(),
        });
    }
    Ok(())
}
