# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=dash
# once JOBS TIMES: Lua's own Makefile with tcc, from nothing to a program that runs.
prepare() {
    $B ln -s busybox /usr/bin/sh
    $B ln -s usr/bin /bin
    # The C library's linker scripts name it so.
    $B ln -s usr/lib /lib
    $B cp -r /usr/share/unspin/lua /tmp
}

trees() {
    local i=0
    while [ $i -lt "$1" ]; do
        $B rm -f /tmp/lua/*.o /tmp/lua/liblua.a /tmp/lua/lua /tmp/lua/luac
        /usr/bin/make -s -C /tmp/lua -j "$2" CC=tcc AR='tcc -ar rcs' RANLIB=: all || return
        i=$((i + 1))
    done
}

once() {
    timed trees "$2" "$1" || return
    [ "$(/tmp/lua/lua -e 'print(6 * 7)')" = 42 ] || { echo 'the lua that was built cannot reckon' && return 1; }
}
