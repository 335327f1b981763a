# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=dash
# once CLIENTS SECONDS: dbench, whose clients do a file server's operations, over and over until the time is up.
prepare() {
    $B mkdir -p /tmp/dbench
    $B mount -t tmpfs tmpfs /tmp/dbench
}

once() { /usr/bin/dbench -t "$2" -D /tmp/dbench -c /usr/share/unspin/dbench.txt "$1"; }
