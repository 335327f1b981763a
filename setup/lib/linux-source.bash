# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# The kernel's source as guest-linux/packages.lock names it, and the programs beside it. Sourced after common.bash, never run.

readonly LINUX_SOURCE=$CACHE/guest-linux
# Sources that no x86 kernel of ours is built from: their Kconfig files are needed, they are not.
readonly LEFT_OUT="arch/arm arch/arm64 arch/powerpc arch/mips drivers/gpu drivers/net/ethernet drivers/net/wireless drivers/media
    tools/testing sound"

# fetch_linux_source: the archive of guest-linux/packages.lock, once. The caller holds set-up's lock.
fetch_linux_source() {
    UNSPIN_CACHE=$LINUX_SOURCE UNSPIN_LOCK=$REPOSITORY/guest-linux/packages.lock "$REPOSITORY/setup/fetch"
}

# fetched PACKAGE: the archive's file of it.
fetched() {
    local file
    file=$(awk -F '\t' -v package="$1" '$2 == package { print $5 }' "$LINUX_SOURCE/archive/manifest.tsv")
    [[ -n $file ]] || die "$LINUX_SOURCE/archive/manifest.tsv has no $1; remove $LINUX_SOURCE/archive and run this again"
    echo "$LINUX_SOURCE/archive/$file"
}

# unpack_linux_source FOLDER: the source, without what is left out, into the new folder FOLDER.
unpack_linux_source() {
    local folder without=()
    for folder in $LEFT_OUT; do without+=(--exclude="*/$folder/*.[chS]" --exclude="*/$folder/*.dts*"); done
    rm -rf -- "$1"
    make_folder "$1"
    dpkg-deb --fsys-tarfile "$(fetched linux-source-7.2)" 2>/dev/null |
        tar -x -O --wildcards './usr/src/linux-source-*.tar.xz' | xz -dc -T0 |
        tar -x -C "$1" --strip-components=1 "${without[@]}" || die "the source cannot be unpacked; is the disk full?"
}

# key FILE...: 16 hexadecimal digits over the packages and these files.
key() { { grep -v '^#' "$LINUX_SOURCE/archive/manifest.tsv" && cat -- "$@"; } | sha256sum | cut -c 1-16; }
