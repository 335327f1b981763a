# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=dash
# once GROUPS LOOPS: hackbench, and beside it a thread of cyclictest on each CPU that sleeps 2 ms and looks how late it wakes up.
once() {
    local status=0 sleepers
    # Without --default-system it would keep idle CPUs from halting.
    /usr/bin/cyclictest --default-system --smp -v -i 2000 >/tmp/sleepers 2>&1 &
    sleepers=$!
    /usr/bin/hackbench -g "$1" -l "$2" || status=$?
    kill $sleepers
    wait $sleepers
    [ $status = 0 ] || return $status
    $B sed -n 's/^ *[0-9]*: *[0-9]*: *\([0-9]*\)$/\1/p' /tmp/sleepers | latencies
}
