#!/usr/bin/env bash
# Four hosts on this machine, for tests: network namespaces on one bridge, each with an address, a host name and an sshd
# of its own, so that one host can start a program on another as in a cluster without a batch system.
#
#   hosts.sh up DIR          start them, with all of their state in DIR; the hosts are h1 to h4
#   hosts.sh on DIR N CMD... run a command on host N; `ssh -F DIR/ssh_config hM` leads from there to host M
#   hosts.sh away DIR N      disconnect host N from all others
#   hosts.sh part DIR N M    nothing passes between hosts N and M
#   hosts.sh join DIR        undo both
#   hosts.sh left DIR        print the processes that run on the hosts, apart from sshd waiting for connections
#   hosts.sh down DIR        end everything and remove all that was made
#
# Needs root, ip, nsenter, unshare, ssh, ssh-keygen and sshd; SSHD names another than that on PATH, and SSHD_LIBRARIES
# the directory of its libraries.
set -euo pipefail

action=$1
dir=$2
hosts="1 2 3 4"
# Names of namespaces are valid on the whole machine, so they begin with that of the directory.
name="$(basename "$dir")h"
bridge="$(basename "$dir")b"
SSHD=${SSHD:-$(PATH=$PATH:/usr/sbin:/sbin command -v sshd || true)}

on() {
    local host=$1
    shift
    nsenter --net="/run/netns/$name$host" --uts="$dir/uts$host" --mount="$dir/mnt$host" "$@"
}

# Writes the files that every host sees instead of the machine's own: host names, a user for sshd, and a root who logs in
# by a key and whose shell, sh, reads no files at its start, which could take long.
files() {
    {
        echo "127.0.0.1 localhost"
        for host in $hosts; do echo "10.78.0.$host h$host"; done
    } > "$dir/etc_hosts"
    sed 's/^root:[^:]*:\(.*\):[^:]*$/root:*:\1:\/bin\/sh/' /etc/passwd > "$dir/etc_passwd"
    grep -q '^sshd:' "$dir/etc_passwd" || echo 'sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin' >> "$dir/etc_passwd"
    ssh-keygen -q -t ed25519 -N '' -f "$dir/host_key"
    ssh-keygen -q -t ed25519 -N '' -f "$dir/user_key"
    cat > "$dir/ssh_config" <<END
Host h*
    IdentityFile $dir/user_key
    IdentitiesOnly yes
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
END
}

up() {
    mkdir -p "$dir"
    # Files that hold namespaces need a private mount.
    mount --bind "$dir" "$dir"
    mount --make-private "$dir"
    chmod 700 "$dir"
    files
    ip netns add "$bridge"
    ip -n "$bridge" link add bridge type bridge
    ip -n "$bridge" link set bridge up
    local host
    for host in $hosts; do
        ip netns add "$name$host"
        ip -n "$name$host" link add w type veth peer name "w$host" netns "$bridge"
        ip -n "$bridge" link set "w$host" master bridge up
        ip -n "$name$host" addr add "10.78.0.$host/24" dev w
        ip -n "$name$host" link set lo up
        ip -n "$name$host" link set w up
        touch "$dir/uts$host" "$dir/mnt$host"
        unshare --uts="$dir/uts$host" --mount="$dir/mnt$host" sh -c "
            hostname h$host
            mount --bind '$dir/etc_hosts' /etc/hosts
            mount --bind '$dir/etc_passwd' /etc/passwd
            mount -t tmpfs run /run
            mkdir -p /run/sshd"
        on "$host" env ${SSHD_LIBRARIES:+LD_LIBRARY_PATH="$SSHD_LIBRARIES"} "$SSHD" -f /dev/null -o Port=22 \
            -o ListenAddress="10.78.0.$host" -o HostKey="$dir/host_key" -o PidFile="$dir/sshd$host.pid" \
            -o AuthorizedKeysFile="$dir/user_key.pub" -o StrictModes=no -o PermitRootLogin=prohibit-password \
            -o UsePAM=no -o PasswordAuthentication=no -o MaxStartups=100 -o UseDNS=no
    done
    for host in $hosts; do
        for _ in $(seq 100); do
            on 1 ssh -F "$dir/ssh_config" -o BatchMode=yes "h$host" true 2>/dev/null && continue 2
            sleep 0.1
        done
        echo "hosts.sh: h$host does not let anybody in" >&2
        return 1
    done
}

# Makes two hosts send packets for each other to an address that no NIC has.
part() {
    ip -n "$name$1" neigh replace "10.78.0.$2" lladdr 02:00:00:00:00:77 nud permanent dev w
    ip -n "$name$2" neigh replace "10.78.0.$1" lladdr 02:00:00:00:00:77 nud permanent dev w
}

join() {
    local host
    for host in $hosts; do
        ip -n "$bridge" link set "w$host" up
        ip -n "$name$host" neigh flush dev w nud permanent
    done
}

left() {
    local host pid
    for host in $hosts; do
        for pid in $(ip netns pids "$name$host"); do
            [ "$pid" = "$(cat "$dir/sshd$host.pid")" ] || echo "h$host $pid $(cat "/proc/$pid/cmdline" 2>/dev/null | tr '\0' ' ')"
        done
    done
}

down() {
    local host pid
    for host in $hosts; do
        for pid in $(ip netns pids "$name$host" 2>/dev/null); do
            kill -9 "$pid" 2>/dev/null || true
        done
        umount "$dir/uts$host" "$dir/mnt$host" 2>/dev/null || true
        ip netns del "$name$host" 2>/dev/null || true
    done
    ip netns del "$bridge" 2>/dev/null || true
    umount "$dir" 2>/dev/null || true
    rm -rf "$dir"
}

case $action in
up) up ;;
on) exec nsenter --net="/run/netns/$name$3" --uts="$dir/uts$3" --mount="$dir/mnt$3" "${@:4}" ;;
away) ip -n "$bridge" link set "w$3" down ;;
part) part "$3" "$4" ;;
join) join ;;
left) left ;;
down) down ;;
*)
    echo "usage: hosts.sh up|on|away|part|join|left|down DIR ..." >&2
    exit 2
    ;;
esac
