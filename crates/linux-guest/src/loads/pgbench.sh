# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=dash
# once CLIENTS TRANSACTIONS: pgbench's simple update, so many transactions of each client, by a server that goes on between runs.
# Its data lie in the root file system, which is memory.
P=/usr/lib/postgresql/17/bin
prepare() {
    $B tar -xzf /usr/share/unspin/postgresql.tar.gz -C /tmp || return
    $B chmod 1777 /tmp
    $B mkdir -p /etc
    echo 'nobody:x:65534:65534::/tmp:/bin/sh' >/etc/passwd
    # The server refuses to run as root.
    $B start-stop-daemon -S -c nobody -x $P/postgres -- -D /tmp/data >/tmp/server 2>&1 &
    local tries=0
    until $P/pgbench -h /tmp -U postgres -n -S -t 1 postgres >/tmp/client 2>&1; do
        tries=$((tries + 1))
        if [ $tries -gt 600 ]; then
            echo "the server does not answer: $($B tail -n 1 /tmp/client)"
            return 1
        elif ! kill -0 $!; then
            echo "the server has ended: $($B grep -v '^ *$' /tmp/server | $B tail -n 1)"
            return 1
        fi
        $B usleep 100000
    done
}

once() {
    $B rm -f /tmp/transaction.*
    $P/pgbench -h /tmp -U postgres -N -c "$1" -j "$($B nproc)" -t "$2" -l --log-prefix=/tmp/transaction postgres 2>&1 || return
    $B cut -d ' ' -f 3 /tmp/transaction.* | latencies
}
