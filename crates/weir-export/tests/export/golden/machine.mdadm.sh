#!/usr/bin/env bash
# Made by weir export 0.2.0 --as mdadm from layout.toml (host host, edition azure-now).
#
# Needs: root, mdadm, and util-linux; the disks are attached (--as az or another).
#
# Does: creates each stripe with one column per disk and the layout's unit, and the file systems,
# and saves the stripes so that they exist after a restart. A second run checks and leaves them.
#
# Does not: change a disk that holds data or has another size than in the layout, nor mount (--as
# fstab).

set -euo pipefail

die() {
    printf '%s\n' "$*" >&2
    exit 1
}

# Checks that a disk exists, has the size of the layout, and is empty.
check() { # DEVICE BYTES
    local size signatures
    size=$(lsblk --nodeps --bytes --noheadings --output SIZE "$1" | tr -d ' ') || die "$1: does not exist; is it attached, and is the disk controller SCSI?"
    [[ $size == "$2" ]] || die "$1: has $size bytes, the layout $2; is it another disk?"
    signatures=$(wipefs --no-act --noheadings "$1") || die "$1: cannot be read"
    [[ -z $signatures ]] || die "$1: is not empty and is left alone: $signatures"
}
MDADM_CONF=${MDADM_CONF:-/etc/mdadm/mdadm.conf} # /etc/mdadm.conf on Red Hat and SUSE
changed=

# log: a single disk without partitions, so that it can grow.
if [[ -z $(blkid --probe --output value --match-tag TYPE /dev/disk/azure/scsi1/lun0 || true) ]]; then
    check /dev/disk/azure/scsi1/lun0 549755813888
fi
now=$(blkid --probe --output value --match-tag TYPE /dev/disk/azure/scsi1/lun0) || now=
if [[ -z $now ]]; then
    [[ -z $(wipefs --no-act --noheadings /dev/disk/azure/scsi1/lun0) ]] || die log': is not empty and is left alone'
    mkfs.xfs -q -L log /dev/disk/azure/scsi1/lun0
elif [[ $now != xfs ]]; then
    die log": has $now instead of xfs and is left alone"
fi

# pool: 4 columns, one per disk, so that their limits add up; 64 KiB on one column before the
# next.
if mdadm --detail /dev/md/pool >/dev/null 2>&1; then
    detail=$(mdadm --detail /dev/md/pool)
    grep -Eq 'Raid Level : raid0$' <<<"$detail" || die /dev/md/pool': is not a stripe'
    grep -Eq 'Raid Devices : 4$' <<<"$detail" || die /dev/md/pool': does not have 4 columns; they cannot change in place'
    grep -Eq 'Chunk Size : 64K$' <<<"$detail" || die /dev/md/pool': does not have a unit of 64 KiB; it cannot change in place'
else
    check /dev/disk/azure/scsi1/lun1 1099511627776
    check /dev/disk/azure/scsi1/lun2 1099511627776
    check /dev/disk/azure/scsi1/lun3 1099511627776
    check /dev/disk/azure/scsi1/lun4 1099511627776
    mdadm --create /dev/md/pool --level=0 --raid-devices=4 --chunk=64 --metadata=1.2 \
        --name=pool /dev/disk/azure/scsi1/lun1 /dev/disk/azure/scsi1/lun2 /dev/disk/azure/scsi1/lun3 /dev/disk/azure/scsi1/lun4
    udevadm settle 2>/dev/null || true
fi
line=$(mdadm --detail --brief /dev/md/pool)
if ! grep -qsF -- "$line" "$MDADM_CONF"; then
    printf '%s\n' "$line" >>"$MDADM_CONF"
    changed=yes
fi
# The file system aligns files to the unit and the columns.
now=$(blkid --probe --output value --match-tag TYPE /dev/md/pool) || now=
if [[ -z $now ]]; then
    [[ -z $(wipefs --no-act --noheadings /dev/md/pool) ]] || die pool': is not empty and is left alone'
    mkfs.xfs -q -d su=64k,sw=4 -L pool /dev/md/pool
elif [[ $now != xfs ]]; then
    die pool": has $now instead of xfs and is left alone"
fi

# At start, the machine assembles the stripes that its initramfs knows.
if [[ -n $changed ]] && command -v update-initramfs >/dev/null; then
    update-initramfs -u
elif [[ -n $changed ]] && command -v dracut >/dev/null; then
    dracut --force
fi
