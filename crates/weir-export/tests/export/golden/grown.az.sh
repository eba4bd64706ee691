#!/usr/bin/env bash
# Made by weir export 0.1.0 --as az from layout.toml (host host, edition azure-now).
# It holds what changes where old.toml is what is there at present.
#
# Needs: bash and the Azure CLI, after az login.
#
# Does: makes and attaches the disks that are new, and changes what differs. Run it again: it
# looks first what is there, and does nothing twice.
#
# Does not: format disks (--as mdadm, lvm or storage-spaces does, and finds them by their LUN),
# nor delete or shrink anything.

set -euo pipefail

RESOURCE_GROUP=${RESOURCE_GROUP:?set RESOURCE_GROUP to the resource group}
MACHINE=${MACHINE:?set MACHINE to the name of the machine}

# A disk grows if it is smaller; one that is larger stays.
grow() { # NAME GIB
    local name=$1 gib=$2 size
    size=$(az disk show --resource-group "$RESOURCE_GROUP" --name "$name" \
        --query 'diskSizeGB || diskSizeGb' --output tsv)
    if ((size > gib)); then
        echo "$name: has $size GiB already, and the layout $gib; nothing is changed" >&2
        return
    elif ((size == gib)); then
        echo "$name: has $gib GiB"
        return
    fi
    echo "$name: growing it from $size to $gib GiB"
    az disk update --resource-group "$RESOURCE_GROUP" --name "$name" --size-gb "$gib" --output none
}

# log: P30, 1 TiB, LUN 0, None: no host cache.
# The machine may run while most disks grow; one that crosses 4 TiB, or a machine that is too old
# for it, has to be deallocated first. Then grow the partition, if there is one, and the file
# system: xfs_growfs, resize2fs or Resize-Partition.
grow log 1024

# scratch: the machine's own disk; it comes with the size, and is empty after each move.
