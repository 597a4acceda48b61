#!/bin/sh
# Removes everything that a site of real machines made on this host.
#
#   clear.sh NUMBER FOLDER [remove]
#
# NUMBER is the site's number on the host, FOLDER is where its machines are, with `remove` that goes too. A site of this number that has
# another folder is left alone. Done again it does nothing. Takes 15 s at most.
number=$1 folder=$2
link=fh$number
deadline=$(($(date +%s) + 15))

[ -n "$number" ] && [ -n "$folder" ] || exit 2

# All hierarchies: of cgroup v1 there are many, of v2 one.
groups() {
    for group in /sys/fs/cgroup/freehold-box/"$number" /sys/fs/cgroup/*/freehold-box/"$number"; do
        [ ! -d "$group" ] || echo "$group"
    done
}
processes() {
    groups | while read -r group; do find "$group" -name cgroup.procs -exec cat {} + 2>/dev/null; done | sort -u
}
freeze() {
    groups | while read -r group; do
        [ ! -e "$group/freezer.state" ] || echo "$1" >"$group/freezer.state"
        [ ! -e "$group/cgroup.freeze" ] || echo "$2" >"$group/cgroup.freeze"
    done 2>/dev/null
}
# Groups below may be frozen by themselves.
thaw() {
    freeze THAWED 0
    groups | while read -r group; do
        find "$group" -name freezer.state -exec sh -c 'for file; do echo THAWED >"$file"; done' sh {} +
        find "$group" -name cgroup.freeze -exec sh -c 'for file; do echo 0 >"$file"; done' sh {} +
    done 2>/dev/null
}

# The claim goes last: while it is there, it says whose all of this is.
if [ -e "/sys/class/net/$link" ] && [ "$(cat "/sys/class/net/$link/ifalias")" = "$folder" ]; then
    while [ -n "$(processes)" ] && [ "$(date +%s)" -lt "$deadline" ]; do
        freeze FROZEN 1
        processes | xargs -r kill -KILL 2>/dev/null
        thaw
        sleep 0.05
    done
    for namespace in /run/netns/"$link"-*; do
        [ ! -e "$namespace" ] || ip netns delete "${namespace##*/}"
    done
    # A network namespace that a process still held keeps its end of the pair; without this one it is of no use.
    for pair in /sys/class/net/"$link"-*; do
        [ ! -e "$pair" ] || ip link delete "${pair##*/}"
    done
    groups | while read -r group; do
        find "$group" -depth -type d -exec rmdir {} + 
        rmdir "${group%/*}"
    done 2>/dev/null
    is_ours=yes
fi

# The volumes' devices first: they hold the mount that their files are on, and lose their files' names with it. Then that mount's own.
detach() {
    losetup --list --noheadings --output NAME,BACK-FILE 2>/dev/null | while read -r device file; do
        case $file in "$folder"/*) losetup --detach "$device" ;; esac
    done
}
detach
# The machines' own mounts ended with their last process.
while read -r _ _ _ _ place _; do
    case $place in "$folder"/*) echo "$place" ;; esac
done </proc/self/mountinfo | sort -r | while read -r place; do umount -l "$place"; done
detach

[ "${3:-}" != remove ] || rm -rf "$folder"
[ -z "${is_ours:-}" ] || ip link delete "$link"
exit 0
