#!/usr/bin/env bash
# Made by weir export 0.2.0 --as az from layout.toml (host host, edition azure-now).
#
# Needs: bash and the Azure CLI, after az login; a resource group, and a subnet for the machine.
#
# Does: creates the machine and missing disks, and attaches disks with their LUN and cache mode.
# The machine has no public IP address and no open port. A second run leaves everything as it is,
# and reports other sizes and cache modes.
#
# Does not: format disks (--as mdadm, lvm or storage-spaces does, and finds them by their LUN),
# nor delete or shrink anything.

set -euo pipefail

RESOURCE_GROUP=${RESOURCE_GROUP:?set RESOURCE_GROUP to the resource group}
MACHINE=${MACHINE:?set MACHINE to the name of the machine}
LOCATION=${LOCATION:?set LOCATION to a location, like westeurope}

# Needed only to create the machine:
IMAGE=${IMAGE:-}     # image, for example Ubuntu2204
ADMIN=${ADMIN:-}     # name of the administrator
SSH_KEY=${SSH_KEY:-} # public SSH key of the administrator, or the path of its file
SUBNET=${SUBNET:-}   # id of the subnet

there=$(az disk list --resource-group "$RESOURCE_GROUP" --query '[].[name, diskSizeGB || diskSizeGb]' --output tsv)

# Creates a missing disk, and reports how an existing one differs.
disk() { # NAME GIB ARGUMENT...
    local name=$1 gib=$2 size
    shift 2
    size=$(awk -F '\t' -v name="$name" 'tolower($1) == tolower(name) { print $2 }' <<<"$there")
    if [[ -z $size ]]; then
        echo "$name: creating it"
        az disk create --resource-group "$RESOURCE_GROUP" --location "$LOCATION" \
            --name "$name" --size-gb "$gib" "$@" --output none
    elif [[ $size != "$gib" ]]; then
        echo "$name: exists with $size GiB, the layout has $gib; not changed" >&2
    else
        echo "$name: exists"
    fi
}

# Attaches a disk. An attached one stays, and another cache mode is reported.
attach() { # NAME LUN CACHING
    local name=$1 lun=$2 caching=$3 now
    now=$(az vm show --resource-group "$RESOURCE_GROUP" --name "$MACHINE" \
        --query 'storageProfile.dataDisks[].[name, caching]' --output tsv |
        awk -F '\t' -v name="$name" 'tolower($1) == tolower(name) { print $2 }')
    if [[ -z $now ]]; then
        echo "$name: attaching it as LUN $lun, cache $caching"
        az vm disk attach --resource-group "$RESOURCE_GROUP" --vm-name "$MACHINE" \
            --name "$name" --lun "$lun" --caching "$caching" --output none
    elif [[ $now != "$caching" ]]; then
        echo "$name: has cache $now, the layout $caching; not changed" >&2
    fi
}

# Stops the script if a variable that it needs now is not set.
needs() { # VARIABLE...
    local name missing=
    for name; do
        [[ -n ${!name} ]] || missing+=" $name"
    done
    if [[ -n $missing ]]; then
        echo "these variables are not set:$missing. The top of this script describes them; nothing has changed" >&2
        exit 1
    elif [[ $SUBNET != /subscriptions/*/subnets/* ]]; then
        echo "SUBNET=$SUBNET is not the id of a subnet, like /subscriptions/../virtualNetworks/NAME/subnets/NAME; nothing has changed" >&2
        exit 1
    fi
}

# The machine: Standard_D16s_v3.
machines=$(az vm list --resource-group "$RESOURCE_GROUP" --query '[].[name, hardwareProfile.vmSize, storageProfile.diskControllerType || `"SCSI"`]' --output tsv)
now=$(awk -F '\t' -v name="$MACHINE" 'tolower($1) == tolower(name) { $1 = ""; print substr($0, 2) }' <<<"$machines")
wanted='Standard_D16s_v3 SCSI'
if [[ -z $now ]]; then
    needs IMAGE ADMIN SSH_KEY SUBNET
    echo "$MACHINE: creating it"
    az vm create --resource-group "$RESOURCE_GROUP" --location "$LOCATION" --name "$MACHINE" \
        --size Standard_D16s_v3 --image "$IMAGE" \
        --authentication-type ssh --admin-username "$ADMIN" --ssh-key-values "$SSH_KEY" \
        --subnet "$SUBNET" --public-ip-address '' --nsg-rule NONE --output none
elif [[ $now != "$wanted" ]]; then
    echo "$MACHINE: is $now, the layout has $wanted; not changed" >&2
fi

attached=$(az vm show --resource-group "$RESOURCE_GROUP" --name "$MACHINE" \
    --query 'storageProfile.dataDisks[].[name, caching, lun]' --output tsv)

# Stops before any change if an unknown disk has the LUN of a new one.
free() { # NAME LUN
    local name=$1 lun=$2 now other
    now=$(awk -F '\t' -v name="$name" 'tolower($1) == tolower(name) { print $3 }' <<<"$attached")
    other=$(awk -F '\t' -v lun="$lun" '$3 == lun { print $1 }' <<<"$attached")
    if [[ -z $now && -n $other ]]; then
        echo "$name: NOT DONE: $other is attached as LUN $lun; detach it once it is unused, or set another lun in the layout" >&2
        exit 1
    elif [[ ${now:-$lun} != "$lun" ]]; then
        echo "$name: has LUN $now, the layout $lun; not changed" >&2
    fi
}

free log 0
free pool-0 1
free pool-1 2
free pool-2 3
free pool-3 4

# log: P20, 512 GiB, LUN 0, None: no host cache.
disk log 512 --sku Premium_LRS
attach log 0 None

# pool-0: P30, 1 TiB, LUN 1, ReadOnly: host cache for reads.
disk pool-0 1024 --sku Premium_LRS
attach pool-0 1 ReadOnly

# pool-1: P30, 1 TiB, LUN 2, ReadOnly: host cache for reads.
disk pool-1 1024 --sku Premium_LRS
attach pool-1 2 ReadOnly

# pool-2: P30, 1 TiB, LUN 3, ReadOnly: host cache for reads.
disk pool-2 1024 --sku Premium_LRS
attach pool-2 3 ReadOnly

# pool-3: P30, 1 TiB, LUN 4, ReadOnly: host cache for reads.
disk pool-3 1024 --sku Premium_LRS
attach pool-3 4 ReadOnly

# scratch: the machine's local disk. It comes with the size, and loses its data when the machine
# moves.
