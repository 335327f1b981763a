#!/usr/bin/busybox sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# PID 1 of a Linux guest: says on a virtio port what the kernel is and has, then does what it is told there.
# Lines it writes: kernel RELEASE, log TEXT, ready SECONDS, run SECONDS, count LINE, failed TEXT, end.
# Lines it reads: load (for ever; a line "run" after each), symbols.
B=/usr/bin/busybox
$B mount -t proc proc /proc
$B mount -t sysfs sysfs /sys
$B mount -t devtmpfs devtmpfs /dev
$B mkdir -p /tmp
exec </dev/null >/dev/console 2>&1
until [ -e /dev/vport0p1 ]; do $B usleep 10000; done
exec 3<>/dev/vport0p1
export LD_BIND_NOW=1 PERF_BUILDID_DIR=/tmp

# Interrupts for rescheduling, function calls and TLB shootdowns, and the CPU time; once before the load, once after each run.
count() {
    $B grep -E '^ *(RES|CAL|TLB):' /proc/interrupts | $B sed 's/^ */count /' >&3
    $B sed -n 's/^cpu  /count cpu: /p' /proc/stat >&3
}

load() {
    count
    while :; do
        if ! LOAD >/tmp/out 2>&1; then
            echo "failed $($B tail -n 1 /tmp/out)" >&3
            return
        fi
        echo "run $($B sed -n 's/^\(Time:\|Total time:\|\) *\([0-9.]*\)\( \[sec\]\)\{0,1\} *$/\2/p' /tmp/out | $B tail -n 1)" >&3
        count
    done
}

echo "kernel $($B uname -r)" >&3
$B dmesg | $B grep -E 'kvm-guest: ' | $B sed 's/^/log /' >&3
read -r up _ </proc/uptime
echo "ready $up" >&3
while read -r word <&3; do
    case $word in
    load) load & ;;
    symbols)
        $B cat /proc/kallsyms >&3
        echo end >&3
        ;;
    esac
done
# The host has closed the port: it will end this machine.
while :; do $B sleep 3600; done
