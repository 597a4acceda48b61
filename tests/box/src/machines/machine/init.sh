#!/bin/sh
# Sets up a machine's namespaces from inside, then holds them for as long as its standard input is open.
#
#   init.sh FOLDER HOSTNAME MACHINE-ID ADDRESS GATEWAY PROGRAM...
#
# Runs in new network, mount and host-name namespaces. The host's root file system is there, read-only; the machine's own are /etc
# (over the host's), /var and /opt, kept in FOLDER beyond a boot, and /run, /tmp and /dev/disk, which are not.
set -eu
umask 022
folder=$1 hostname=$2 machine_id=$3 address=$4 gateway=$5
shift 5

hostname "$hostname"
mount --make-rprivate /
# Or this machine would hold the network namespaces of those that were there before it.
umount --recursive --lazy /run/netns
# Or it would hold the file systems of volumes, its own site's and others': what is mounted still is not mounted a second time.
while read -r _ _ _ _ place _; do
    case $place in */volumes/pool) umount --lazy "$place" ;; esac
done </proc/self/mountinfo

ip link set lo up
ip address add "$address/32" dev eth0
ip link set eth0 up
ip route add default via "$gateway" dev eth0 onlink src "$address"
echo 1 >/proc/sys/net/ipv4/ip_forward
# What kube-proxy would do for the one service that everything needs.
for chain in PREROUTING OUTPUT; do
    iptables -w -t nat -A "$chain" -d 10.96.0.1/32 -p tcp --dport 443 -j DNAT --to-destination "$gateway:6443"
done

# The kubelet sets these on the machine it believes to have for itself. They are the host's: it finds what it wants, and writes nothing.
while read -r path value; do
    if [ -e "/proc/sys/$path" ]; then
        mkdir -p "$folder/sys"
        echo "$value" >"$folder/sys/${path##*/}"
        mount --bind "$folder/sys/${path##*/}" "/proc/sys/$path"
    fi
done <<'END'
vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
END

mkdir -p "$folder/etc/upper" "$folder/etc/work" "$folder/var" "$folder/opt/freehold-box/bin"
chmod 755 "$folder/etc/upper" "$folder/var" "$folder/opt"
# Not bind mounts: runc starts containers through an overlay of its own folder, which would see the file beneath the mount.
for program in "$@"; do
    place=$folder/opt/freehold-box/bin/${program##*/}
    rm -f "$place"
    ln "$program" "$place" 2>/dev/null || cp "$program" "$place"
done
mkdir -p "$folder/var/lib/kubelet" "$folder/var/lib/containerd" "$folder/var/log" "$folder/var/tmp"
chmod 1777 "$folder/var/tmp"
ln -sfn /run "$folder/var/run"
ln -sfn /run/lock "$folder/var/lock"

# While FOLDER can still be seen: it may lie below one of these.
mount --bind "$folder/opt" "$folder/opt"
mount --bind "$folder/var" "$folder/var"
mount -t overlay -o "lowerdir=/etc,upperdir=$folder/etc/upper,workdir=$folder/etc/work" machine "$folder/etc"
mount --move "$folder/etc" /etc
mount --move "$folder/opt" /opt
mount --move "$folder/var" /var
mount -t tmpfs -o mode=755 machine /run
mount -t tmpfs -o mode=1777 machine /tmp
mkdir -p /dev/disk /run/lock
mount -t tmpfs -o mode=755 machine /dev/disk
mkdir -p /dev/disk/by-id
# What is mounted for a pod, by the kubelet and by the CSI driver, must reach the pod's own namespace.
mount --bind /var/lib/kubelet /var/lib/kubelet
mount --make-shared /var/lib/kubelet
echo "$machine_id" >/etc/machine-id
mount -o remount,bind,ro /

echo ready
exec cat >/dev/null
