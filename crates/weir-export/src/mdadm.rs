//! Stripes on Linux by mdadm, and their file systems.

use crate::change::{Change, Fate};
use crate::error::ExportError;
use crate::linux::{self, Column, Device};
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
    if !spaces.iter().any(|fate: &Fate<'_, Space>| fate.subject().unit.is_some()) {
        return Err(ExportError::Nothing {
            layout: change.new.layout.clone(),
            kind: "mdadm",
            reason: "it has no [[stripe]] of remote volumes; --as lvm also prepares single disks"
                .to_owned(),
        });
    }
    if spaces.iter().all(Fate::is_same) {
        script.nothing(change);
        return Ok(());
    }
    script.header(
        "root, mdadm, and util-linux; the disks are attached (--as az or another).",
        "creates each stripe with one column per disk and the layout's unit, and the file systems, \
         and saves the stripes so that they exist after a restart. A second run checks and leaves \
         them.",
        "change a disk that holds data or has another size than in the layout, nor mount (--as \
         fstab).",
    );
    linux::start(script, change, options)?;
    script.line(
        "MDADM_CONF=${MDADM_CONF:-/etc/mdadm/mdadm.conf} # /etc/mdadm.conf on Red Hat and SUSE",
    );
    script.line("changed=");
    for fate in &spaces {
        match *fate {
            Fate::New(space) => make(script, change, options, space)?,
            Fate::Changed(old, space) => changed(script, old, space),
            Fate::Gone(space) => space::gone(script, space, &removal(space)),
            Fate::Same(_) => {}
        }
    }
    script.blank();
    script.comment("At start, the machine assembles the stripes that its initramfs knows.");
    script.lines(
        "if [[ -n $changed ]] && command -v update-initramfs >/dev/null; then\n    update-initramfs -u\n\
         elif [[ -n $changed ]] && command -v dracut >/dev/null; then\n    dracut --force\nfi",
    );
    Ok(())
}

fn make(
    script: &mut Script,
    change: &Change,
    options: &Options,
    space: &Space,
) -> Result<(), ExportError> {
    let device = linux::device(script, change, options, space)?;
    script.blank();
    let kind = options.filesystem.unwrap_or_default();
    let Some(unit) = space.unit else {
        single(script, &device);
        return linux::filesystem(script, space, &device.columns[0].word(), kind);
    };
    check_name(space)?;
    if !unit.get().is_multiple_of(4 << 10) {
        let reason = format!("mdadm needs a unit that is a multiple of 4 KiB, not {unit}");
        return Err(space::cannot(script, &change.new, space, reason));
    }
    let count = device.columns.len();
    let path = format!("/dev/md/{}", space.name);
    let own = shell(&path);
    script.comment(&format!(
        "{}: {count} columns, one per disk, so that their limits add up; {unit} on one column \
         before the next.",
        space.own
    ));
    let checks: Vec<String> = device
        .columns
        .iter()
        .map(|column| format!("    check {} {}", column.word(), column.size))
        .collect();
    let disks: Vec<String> = device.columns.iter().map(Column::word).collect();
    device.find(script);
    let kib = unit.get() >> 10;
    script.lines(&format!(
        r#"if mdadm --detail {own} >/dev/null 2>&1; then
    detail=$(mdadm --detail {own})
    grep -Eq 'Raid Level : raid0$' <<<"$detail" || die {own}': is not a stripe'
    grep -Eq 'Raid Devices : {count}$' <<<"$detail" || die {own}': does not have {count} columns; they cannot change in place'
    grep -Eq 'Chunk Size : {kib}K$' <<<"$detail" || die {own}': does not have a unit of {kib} KiB; it cannot change in place'
else
{checks}
    mdadm --create {own} --level=0 --raid-devices={count} --chunk={kib} --metadata=1.2 \
        --name={name} {disks}
    udevadm settle 2>/dev/null || true
fi
line=$(mdadm --detail --brief {own})
if ! grep -qsF -- "$line" "$MDADM_CONF"; then
    printf '%s\n' "$line" >>"$MDADM_CONF"
    changed=yes
fi"#,
        checks = checks.join("\n"),
        name = shell(&space.name),
        disks = disks.join(" ")
    ));
    linux::filesystem(script, space, &own, kind)
}

/// Writes a single disk. Its file system is directly on it, so that it grows with the disk.
fn single(script: &mut Script, device: &Device<'_>) {
    let (path, size) = (device.columns[0].word(), device.columns[0].size);
    script.comment(&format!(
        "{}: a single disk without partitions, so that it can grow.",
        device.space.own
    ));
    device.find(script);
    script.lines(&format!(
        "if [[ -z $(blkid --probe --output value --match-tag TYPE {path} || true) ]]; then\n    check {path} {size}\nfi"
    ));
}

fn check_name(space: &Space) -> Result<(), ExportError> {
    let name = &space.name;
    let is_number = name.chars().all(|c| c.is_ascii_digit());
    if name.is_empty()
        || name.len() > 32
        || is_number
        || !name.chars().all(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
        || name.starts_with(['-', '.'])
    {
        return Err(ExportError::BadName {
            what: "a stripe of mdadm",
            name: name.clone(),
            rule: "1 to 32 letters, digits, '_', '.' and '-', no number, and not '-' or '.' first",
            own: space.own.clone(),
        });
    }
    Ok(())
}

/// Writes the change of a stripe, which mdadm cannot reshape.
fn changed(script: &mut Script, old: &Space, space: &Space) {
    match Difference::between(script, old, space) {
        None => {}
        Some(Difference::Disk) => {
            script.comment(&format!(
                "{}: the disk has grown from {} to {}; now its file system.",
                space.own, old.size, space.size
            ));
            grow(script, space);
        }
        Some(Difference::Columns) => script.warn(&format!(
            "{}: its disks grow to {} in total, from {}. The stripe gets their higher limits, but \
             a stripe of mdadm cannot use the additional space: for that, create another stripe, \
             copy, and switch over; --as lvm can grow in place.",
            space.own, space.size, old.size
        )),
        Some(Difference::Shape) => script.warn(&format!(
            "{}: it has {} columns and becomes {}, or gets another unit. A stripe of mdadm cannot \
             take a column in place, so all of its data must be copied. Create a stripe of all {} \
             disks under another name (some of them new), copy, and switch over.",
            space.own,
            old.columns.len(),
            space.columns.len(),
            space.columns.len()
        )),
    }
}

fn grow(script: &mut Script, space: &Space) {
    let label = shell(&format!("LABEL={}", space.name));
    script.lines(&format!(
        "place=$(findmnt --noheadings --output TARGET --source {label}) || die {}': is not mounted'\n\
         xfs_growfs \"$place\" || resize2fs \"$(findfs {label})\"",
        shell(&space.own)
    ));
}

fn removal(space: &Space) -> Vec<String> {
    if space.unit.is_none() {
        return vec![format!(
            "wipefs --all \"$(findfs {})\"",
            shell(&format!("LABEL={}", space.name))
        )];
    }
    let path = shell(&format!("/dev/md/{}", space.name));
    vec![
        format!("mdadm --stop {path}"),
        "mdadm --zero-superblock DISK...  # each of its disks".to_owned(),
        "# and its line out of mdadm.conf".to_owned(),
    ]
}
