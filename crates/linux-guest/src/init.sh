#!/usr/bin/busybox sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=dash
# PID 1 of a Linux guest: says on a virtio port what the kernel is and has, then does what it is told there.
# Lines it writes: kernel RELEASE, log TEXT, ready SECONDS, said TEXT (what the load wrote), run, count LINE, failed TEXT, end.
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

# timed COMMAND...: runs it and writes how long it took.
timed() {
    local begin end
    read -r begin _ </proc/uptime
    "$@" || return
    read -r end _ </proc/uptime
    # Hundredths of a second; the 1 before them keeps 08 from being octal, and falls out of the difference.
    end=$((${end%.*} * 100 + 1${end#*.} - ${begin%.*} * 100 - 1${begin#*.}))
    echo "Time: $((end / 100)).$((end / 10 % 10))$((end % 10))"
}

# latencies: reads numbers of microseconds; writes the 99th percentile (nearest rank) and the largest.
latencies() {
    local count
    $B sort -n >/tmp/latencies
    count=$($B wc -l </tmp/latencies)
    [ "$count" -gt 0 ] || { echo 'no latencies' && return 1; }
    echo "p99: $($B sed -n "$(((count * 99 + 99) / 100))p" /tmp/latencies) us"
    echo "max: $($B tail -n 1 /tmp/latencies) us"
}

# calls TIMES: so often switches the scheduler's statistics on and off, for which the kernel patches its text and calls
# every CPU several times, waiting (smp_text_poke_sync_each_cpu, arch/x86/kernel/alternative.c); meanwhile as many loops
# in user mode run as there are other CPUs.
calls() {
    local loops='' i=1
    while [ $i -lt "$($B nproc)" ]; do
        while :; do :; done &
        loops="$loops $!"
        i=$((i + 1))
    done
    timed patches "$1" || return
    # shellcheck disable=SC2086 # one number per word
    kill $loops
}

patches() {
    local i=0
    while [ $i -lt "$1" ]; do
        echo 1 >/proc/sys/kernel/sched_schedstats && echo 0 >/proc/sys/kernel/sched_schedstats || return
        i=$((i + 1))
    done
}

# make_all JOBS UNITS: compiles so often. torture SECONDS: Linux's own lock torture, which fails when two are inside.
make_all() {
    $B mkdir -p /tmp/make
    $B time -f 'Time: %e' /usr/bin/make -B -s -j "$1" -f /usr/share/unspin/Makefile UNITS="$($B seq -s ' ' "$2")"
}

torture() {
    local modules=/usr/lib/modules end
    $B insmod $modules/torture.ko || return
    $B insmod $modules/locktorture.ko torture_type=spin_lock nwriters_stress="$($B nproc)" stat_interval=1 long_hold=20 || return
    $B sleep "$1"
    $B rmmod locktorture torture || return
    end=$($B dmesg | $B grep 'End of test')
    case $end in *SUCCESS*) ;; *) echo "$end" && return 1 ;; esac
    $B dmesg | $B sed -n 's/.*Writes: .*Total: \([0-9]*\).*/locks taken: \1/p' | $B tail -n 1
    echo "Time: $1"
}

# failed WHAT: the end of what WHAT wrote, which may be nothing.
failed() { echo "failed $1: $($B grep -v '^ *$' /tmp/out | $B tail -n 1)" >&3; }

# A load that is more than one command has a script: once ARGUMENTS..., a run; prepare: what comes before the first.
prepare() { :; }
# shellcheck source=/dev/null
[ ! -e /load.sh ] || . /load.sh

load() {
    if ! prepare >/tmp/out 2>&1; then
        failed 'its preparation'
        return
    fi
    count
    while :; do
        if ! LOAD >/tmp/out 2>&1; then
            failed 'a run'
            return
        fi
        $B tail -n 60 /tmp/out | $B sed 's/^\(.\{0,200\}\).*/said \1/' >&3
        echo run >&3
        count
    done
}

echo "kernel $($B uname -r)" >&3
COUNTS=/usr/lib/modules/unspin_counts.ko
if [ -e $COUNTS ]; then
    # Its parameters stand on the kernel's command line, as a built-in module's do.
    # shellcheck disable=SC2046 # one word, or none
    $B insmod $COUNTS $($B grep -o 'unspin_counts[.]hooks=1' /proc/cmdline | $B cut -d . -f 2) 2>&1 | $B sed 's/^/failed /' >&3
fi
$B dmesg | $B grep -E '(kvm-guest|unspin|unspin_counts): ' | $B sed 's/^/log /' >&3
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
