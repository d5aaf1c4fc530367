#!/usr/bin/env bash
# A private Slurm of four nodes on this machine, for tests: two hosts in network namespaces with a wire between
# them, two nodes on each. It has addresses and ports of its own, so it does not disturb another Slurm.
#
#   slurm.sh up DIR      start it, with all of its state in DIR; then DIR/srun and DIR/salloc are its srun and salloc
#   slurm.sh down DIR    end it and remove all that it made
#
# Needs root, and the programs munged, slurmctld, slurmd, srun, ip, nsenter and unshare.
set -euo pipefail

action=$1
dir=$2
# Names of namespaces are valid on the whole machine, so they contain that of the directory.
host="slurm-$(basename "$dir")-"
# Runs a command on a host, where the nodes have names. Not by `ip netns exec`, which mounts another /sys, without the
# cgroups that slurmd looks for.
on() {
    nsenter --net="/run/netns/$host$1" unshare --mount sh -c 'mount --bind "$0" /etc/hosts && exec "$@"' \
        "$dir/hosts" "${@:2}"
}
export SLURM_CONF=$dir/slurm.conf

configuration() {
    cat <<END
ClusterName=rushmem
SlurmctldHost=$(hostname -s)(10.79.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CredType=cred/munge
SlurmctldPort=26817
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.%n.pid
SlurmdSpoolDir=$dir/spool/%n
StateSaveLocation=$dir/state
SlurmctldLogFile=$dir/log/slurmctld
SlurmdLogFile=$dir/log/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1
SlurmctldParameters=node_reg_mem_percent=1
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
# srun waits this long and two seconds more for the processes that it ends; after that it exits with status 0.
KillWait=20
# On a loaded machine the daemons answer late.
MessageTimeout=60
# PMIx keeps files of each node there.
TmpFS=$dir/tmp/%n
PartitionName=tests Nodes=n[1-4] Default=YES MaxTime=10 OverSubscribe=YES State=UP
END
    local node
    for node in 1 2 3 4; do
        echo "NodeName=n$node NodeHostname=$(hostname -s) NodeAddr=10.79.0.$(((node + 1) / 2))" \
            "Port=$((26820 + node)) CPUs=8 RealMemory=1000 State=UNKNOWN"
    done
}

up() {
    mkdir -p "$dir"/{state,log,munge} "$dir"/{spool,tmp}/n{1,2,3,4}
    chmod 755 "$dir" "$dir/munge"
    configuration > "$SLURM_CONF"
    { cat /etc/hosts && printf '10.79.0.1 n1 n2\n10.79.0.2 n3 n4\n'; } > "$dir/hosts"
    ip netns add "${host}1"
    ip netns add "${host}2"
    ip -n "${host}1" link add w type veth peer name w netns "${host}2"
    local i node try
    for i in 1 2; do
        ip -n "$host$i" addr add "10.79.0.$i/24" dev w
        ip -n "$host$i" link set lo up
        ip -n "$host$i" link set w up
    done
    (umask 077 && head -c 1024 /dev/urandom > "$dir/munge.key")
    munged --force --socket="$dir/munge/socket" --key-file="$dir/munge.key" --num-threads=2 \
        --pid-file="$dir/munged.pid" --log-file="$dir/log/munged" --seed-file="$dir/munge.seed"
    on 1 slurmctld -f "$SLURM_CONF"
    for node in 1 2 3 4; do
        on $(((node + 1) / 2)) slurmd -f "$SLURM_CONF" -N "n$node"
    done
    local command
    for command in srun salloc; do
        printf '#!/bin/sh\nSLURM_CONF=%s exec nsenter --net=/run/netns/%s %s "$@"\n' \
            "$SLURM_CONF" "${host}1" "$command" > "$dir/$command"
        chmod 755 "$dir/$command"
    done
    for try in $(seq 200); do
        [ "$(on 1 sinfo -h -o %T 2>/dev/null | sort -u)" = idle ] && return
        sleep 0.1
    done
    echo "slurm.sh: the nodes did not become idle: see $dir/log" >&2
    return 1
}

down() {
    local file namespace
    for file in "$dir"/slurmd.*.pid "$dir/slurmctld.pid" "$dir/munged.pid"; do
        [ -f "$file" ] && kill "$(cat "$file")" 2>/dev/null || true
    done
    for namespace in "${host}1" "${host}2"; do
        ip netns del "$namespace" 2>/dev/null || true
    done
    # Daemons write to the directory until they have handled the signal.
    for _ in $(seq 50); do
        rm -rf "$dir" 2>/dev/null && return
        sleep 0.1
    done
}

case $action in
up) up ;;
down) down ;;
*)
    echo "usage: slurm.sh up|down DIR" >&2
    exit 2
    ;;
esac
