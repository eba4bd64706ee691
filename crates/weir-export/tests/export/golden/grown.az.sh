#!/usr/bin/env bash
# Made by weir export 0.2.0 --as az from layout.toml (host host, edition azure-now).
# It contains the changes from old.toml, the layout in use.
#
# Needs: bash and the Azure CLI, after az login.
#
# Does: creates and attaches new disks, and changes differences. It checks the present state
# first, so a second run does nothing.
#
# Does not: format disks (--as mdadm, lvm or storage-spaces does, and finds them by their LUN),
# nor delete or shrink anything.

set -euo pipefail

RESOURCE_GROUP=${RESOURCE_GROUP:?set RESOURCE_GROUP to the resource group}
MACHINE=${MACHINE:?set MACHINE to the name of the machine}

# Grows a smaller disk, and leaves a larger one.
grow() { # NAME GIB
    local name=$1 gib=$2 size
    size=$(az disk show --resource-group "$RESOURCE_GROUP" --name "$name" \
        --query 'diskSizeGB || diskSizeGb' --output tsv)
    if ((size > gib)); then
        echo "$name: already has $size GiB, the layout $gib; not changed" >&2
        return
    elif ((size == gib)); then
        echo "$name: has $gib GiB"
        return
    fi
    echo "$name: growing it from $size to $gib GiB"
    az disk update --resource-group "$RESOURCE_GROUP" --name "$name" --size-gb "$gib" --output none
}

# log: P30, 1 TiB, LUN 0, None: no host cache.
# Most disks grow while the machine runs. It must be deallocated if a disk crosses 4 TiB, or if
# the machine is too old. Afterwards grow the partition, if there is one, and the file system:
# xfs_growfs, resize2fs or Resize-Partition.
grow log 1024

# scratch: the machine's local disk. It comes with the size, and loses its data when the machine
# moves.
