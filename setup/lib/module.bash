# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# Builds our kernel modules (kmod/, guest-linux/module/) for the kernel that the testbed boots, which stock guests boot, too.
# Sourced after common.bash.
#
# Debian's kernel headers and build tools are fetched by setup/headers.lock into headers/ of the cache and unpacked there while
# a module is built: nothing is installed. The tools are programs of that suite, so they run with that suite's C library; the
# compiler is this machine's.

readonly HEADERS=$CACHE/headers
readonly HEADERS_LOCK=$REPOSITORY/setup/headers.lock
readonly HEADERS_ROOT=$HEADERS/root
readonly HEADERS_LIBRARIES=$HEADERS_ROOT/usr/lib/x86_64-linux-gnu
readonly MODULE_LOG=$HEADERS/make.log
# Unpacked, with what one module's build leaves.
readonly HEADERS_BYTES=200000000

# fetch_headers: everything that setup/headers.lock names; no network when it is there.
fetch_headers() {
    local tool
    for tool in gcc make dpkg-deb readelf strip; do
        command -v "$tool" >/dev/null || die "missing: $tool; apt-get install binutils gcc make dpkg"
    done
    UNSPIN_CACHE=$HEADERS UNSPIN_LOCK=$HEADERS_LOCK "$REPOSITORY/setup/fetch"
}

# module_key FILE...: tells a build of these sources with what was fetched from any other.
module_key() {
    { grep -v '^#' "$HEADERS/archive/manifest.tsv" && cat -- "$REPOSITORY/setup/lib/module.bash" "$@"; } | sha256sum | cut -c 1-16
}

# wrapped TOOL [PROGRAM]: in the place of TOOL a script that runs PROGRAM (TOOL itself) with the suite's C library.
wrapped() {
    local tool=$1 program=${2:-$1.program}
    [[ -n ${2:-} ]] || mv -- "$tool" "$program"
    # printf instead of a here-document: the paths are quoted for the shell that reads them.
    printf '#!/bin/sh\nexec %q --library-path %q %q "$@"\n' "$HEADERS_LIBRARIES/ld-linux-x86-64.so.2" "$HEADERS_LIBRARIES" "$program" >"$tool.new"
    chmod +x -- "$tool.new"
    mv -f -- "$tool.new" "$tool"
}

# compiler FILE: a gcc that knows no option that this kernel's own (16) has and older ones have not.
compiler() {
    # shellcheck disable=SC2016 # for the script
    printf '%s\n' '#!/bin/sh' \
        'for word; do shift; case $word in -fmin-function-alignment=*) word=-falign-functions=${word#*=} ;; esac' \
        'set -- "$@" "$word"; done; exec gcc "$@"' >"$1"
    chmod +x -- "$1"
}

# unpack_headers: HEADERS_ROOT with the headers and the tools, in one step.
unpack_headers() {
    local package kbuild new=$HEADERS_ROOT.new
    need_space "$HEADERS" "$HEADERS_BYTES" "the build of a kernel module"
    rm -rf -- "$HEADERS_ROOT" "$new"
    make_folder "$new"
    for package in "$HEADERS"/archive/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar -x -C "$new" --exclude=./usr/share || die "cannot unpack $package; is the disk full?"
    done
    mv -- "$new" "$HEADERS_ROOT"
    kbuild=$(echo "$HEADERS_ROOT"/usr/lib/linux-kbuild-*)
    wrapped "$kbuild/scripts/basic/fixdep"
    wrapped "$kbuild/scripts/mod/modpost" "$kbuild/scripts/mod/modpost.real-lsb-64"
    wrapped "$kbuild/tools/objtool/objtool" "$kbuild/tools/objtool/objtool.real-x86"
    wrapped "$kbuild/tools/bpf/resolve_btfids/resolve_btfids"
    wrapped "$HEADERS_ROOT/usr/bin/pahole"
    compiler "$HEADERS_ROOT/gcc"
}

# make_module NAME SOURCE RELEASE [ARGUMENT...]: SOURCE/NAME.ko for that kernel, by SOURCE/Kbuild and with these arguments of
# make, without what only debuggers read.
make_module() {
    local name=$1 source=$2 release=$3
    local headers=$HEADERS_ROOT/usr/src/linux-headers-$release common=$HEADERS_ROOT/usr/src/linux-headers-${release%-cloud-amd64}-common
    shift 3
    [[ -d $headers && -d $common ]] ||
        die "setup/headers.lock has no headers of $release, which the testbed boots; UNSPIN_LOCK=setup/headers.lock setup/update-lock"
    # Debian's own Makefile there names absolute paths; these are what it would set.
    make -s -C "$headers" -f "$common/Makefile" KBUILD_OUTPUT="$headers" M="$source" ARCH=x86 KERNELRELEASE="$release" \
        CC="$HEADERS_ROOT/gcc" PAHOLE="$HEADERS_ROOT/usr/bin/pahole" "$@" modules >"$MODULE_LOG" 2>&1 9>&- ||
        die "$name does not compile: $(grep -m 1 -E 'error|\*\*\*' "$MODULE_LOG"); see $MODULE_LOG"
    strip --strip-debug "$source/$name.ko"
}

# testbed_release: that of the kernel that the testbed boots.
testbed_release() {
    [[ -d $CACHE/kernel/current ]] || die "the testbed's kernel is not set up; run make setup first"
    basename "$(readlink -f "$CACHE/kernel/current")"
}
