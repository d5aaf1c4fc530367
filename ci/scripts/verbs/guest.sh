#!/usr/bin/env bash
# Sets up a guest of `cargo xtask verbs` after its start: a network, and a NIC in software that has verbs. Then runs the
# jobs in /mnt/out/jobs, one per line: name, time limit in seconds, command, separated by tabs. The output of a job is
# in NAME.log; `results` has a line for each: name, status, seconds.
#
# In a pair of guests, the first runs the jobs. The second runs the commands that elsewhere.sh sends, until the first is
# done.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
number=$(sed -n 's/.*guest=\([0-9]\).*/\1/p' /proc/cmdline)
pair=$(sed -n 's/.*pair=\([0-9]\).*/\1/p' /proc/cmdline)
out=/mnt/out

up() {
    ulimit -l unlimited
    ulimit -n 8192
    hostname "guest$number"
    ip link set lo up
    modprobe -a rdma_rxe ib_uverbs rdma_ucm || return
    local wire
    if [ "$pair" = 1 ]; then
        modprobe virtio_net || return
        for _ in $(seq 50); do
            wire=$(ls /sys/class/net | grep -v '^lo$' | head -n 1)
            [ -n "$wire" ] && break
            sleep 0.2
        done
        ip link set "$wire" mtu 4200
    else
        modprobe veth || return
        wire=wire
        ip link add wire mtu 4200 type veth peer name other mtu 4200
        ip link set other up
    fi
    ip addr add "10.9.0.$number/24" dev "$wire"
    ip link set "$wire" up
    rdma link add rxe0 type rxe netdev "$wire" || return
    if [ "$pair" = 1 ]; then
        busybox nc -ll -p 7009 -e "$out/served.sh" 2>> "$out/served.log" &
        for _ in $(seq 300); do
            (exec 3<> "/dev/tcp/10.9.0.$((3 - number))/7009") 2> /dev/null && return
            sleep 0.5
        done
        echo "the other guest does not answer"
        return 1
    fi
}

work() {
    local name limit command start status
    while IFS=$'\t' read -r name limit command <&9; do
        start=$(date +%s)
        echo "$name: begun at $(cut -d' ' -f1 /proc/uptime) s"
        (cd /tmp && timeout -k 5 "$limit" bash -c "$command") > "$out/$name.log" 2>&1 < /dev/null
        status=$?
        printf '%s\t%s\t%s\n' "$name" "$status" "$(($(date +%s) - start))" >> "$out/results"
    done 9< "$out/jobs"
}

if up; then
    echo "up at $(cut -d' ' -f1 /proc/uptime) s"
    if [ "$number" = 1 ]; then
        work
        [ "$pair" = 1 ] && "$out/elsewhere.sh" touch /tmp/done < /dev/null
    else
        until [ -e /tmp/done ]; do sleep 1; done
    fi
    touch "$out/finished"
fi
sync
busybox poweroff -f
