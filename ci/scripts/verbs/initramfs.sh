#!/usr/bin/env bash
# Makes the initial file system of the virtual machines of `cargo xtask verbs`: busybox, the modules by which they reach
# the host's directories, and an init that mounts the host's root as the guest's, read-only and with a writable layer in
# memory over it.
#
#   initramfs.sh KERNEL FILE    KERNEL is a directory with lib/modules
#
# Needs busybox (a static one), kmod and cpio.
set -euo pipefail

kernel=$1
file=$2
version=$(ls "$kernel/lib/modules")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{bin,dev,proc,sys,lower,rw,new,modules}
cp "$(command -v busybox)" "$work/bin/busybox"
ln -s busybox "$work/bin/sh"
for module in virtio_pci 9pnet_virtio 9p overlay; do
    modprobe -d "$kernel" -S "$version" --show-depends "$module" | awk '$1 == "insmod" { print $2 }'
done | awk '!seen[$0]++' | while read -r module; do
    cp "$module" "$work/modules/"
    basename "$module" >> "$work/modules/order"
done
cat > "$work/init" <<'INIT'
#!/bin/sh
busybox=/bin/busybox
for command in mount mkdir insmod poweroff; do eval "$command() { $busybox $command \"\$@\"; }"; done
share() { mount -t 9p -o "$1,trans=virtio,version=9p2000.L,msize=512000,cache=$2" "$3" "$4"; }
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
while read -r module; do insmod "/modules/$module"; done < /modules/order
share ro loose root /lower || poweroff -f
mount -t tmpfs -o size=80% layer /rw
mkdir -p /rw/upper /rw/work
mount -t overlay -o lowerdir=/lower,upperdir=/rw/upper,workdir=/rw/work root /new || poweroff -f
mount -t proc proc /new/proc
mount -t sysfs sys /new/sys
mount -t devtmpfs dev /new/dev
mkdir -p /new/dev/shm /new/dev/pts /new/mnt/out /new/lib/modules
mount -t tmpfs shm /new/dev/shm
mount -t devpts pts /new/dev/pts
mount -t tmpfs run /new/run
for link in fd:/proc/self/fd stdin:/proc/self/fd/0 stdout:/proc/self/fd/1 stderr:/proc/self/fd/2; do
    $busybox ln -s "${link#*:}" "/new/dev/${link%%:*}"
done
share rw none out /new/mnt/out
share ro loose modules /new/lib/modules
cd /new
mount --move . /
exec $busybox chroot . /bin/bash /mnt/out/guest.sh
INIT
chmod 755 "$work/init"
(cd "$work" && find . | cpio -o -H newc --quiet | gzip -1) > "$file"
