# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# What every script of set-up shares: folders, messages, sizes. Sourced, never run.
#
# Folders (each can be moved with the variable named):
#   UNSPIN_CACHE  everything that can be fetched or built again      (default $XDG_CACHE_HOME/unspin)
#   UNSPIN_STATE  which system packages set-up installed, and no more (default $XDG_STATE_HOME/unspin)

# shellcheck disable=SC2034 # its variables are used by those who source it
set -euo pipefail
export LC_ALL=C

REPOSITORY=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
CACHE=${UNSPIN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/unspin}
STATE=${UNSPIN_STATE:-${XDG_STATE_HOME:-$HOME/.local/state}/unspin}
LOCK_FILE=${UNSPIN_LOCK:-$REPOSITORY/setup/packages.lock}
ARCHIVE=$CACHE/archive
MANIFEST=$ARCHIVE/manifest.tsv
# A guess that is printed as one: 20 Mbit/s.
readonly LINK_BYTES_PER_SECOND=2500000

# Errors go where standard error went at the start: a trap may run while a function's own is redirected into a log.
exec 8>&2

# say TEXT...: one line of progress.
say() { printf 'setup: %s\n' "$*"; }

# die TEXT...: one message that says what was wrong, where, and what to do; ends the script with status 1.
die() {
    printf 'setup: error: %s\n' "$*" >&8
    exit 1
}

# megabytes BYTES: BYTES in MB (10^6) with one decimal.
megabytes() { awk -v bytes="$1" 'BEGIN { printf "%.1f", bytes / 1e6 }'; }

# link_minutes BYTES: minutes that BYTES take at LINK_BYTES_PER_SECOND, at least 1.
link_minutes() { echo $(($1 / LINK_BYTES_PER_SECOND / 60 + 1)); }

# os_release KEY: its value in /etc/os-release; empty when it has none.
os_release() { awk -F = -v key="$1" '$1 == key { gsub(/"/, "", $2); print $2 }' /etc/os-release 2>/dev/null; }

# file_bytes FILE: its size.
file_bytes() { stat -c %s -- "$1"; }

# sha256_of FILE: its SHA-256 in hexadecimal.
sha256_of() { sha256sum -- "$1" | cut -d ' ' -f 1; }

# make_folder PATH...: creates folders, or says which could not be.
make_folder() {
    local folder
    for folder; do
        mkdir -p -- "$folder" 2>/dev/null ||
            die "cannot create the folder $folder: is the disk full or read-only? UNSPIN_CACHE=<folder> moves the cache"
    done
}

# free_bytes FOLDER: bytes an ordinary user can still write to the file system of FOLDER.
free_bytes() { echo $(($(df -Pk -- "$1" | awk 'NR == 2 { print $4 }') * 1024)); }

# need_space FOLDER BYTES WHAT: ends with a message when FOLDER has less than BYTES free.
need_space() {
    local free
    free=$(free_bytes "$1")
    ((free >= $2)) ||
        die "disk full: $3 needs $(megabytes "$2") MB in $1, $(megabytes "$free") MB are free;" \
            "free some, or move the cache with UNSPIN_CACHE=<folder>"
}

# disk_is_full FOLDER: true when not even 64 KiB can be written there. Writes and removes one file.
disk_is_full() {
    local probe=$1/.space.$$ status=0
    head -c 65536 /dev/zero 2>/dev/null >"$probe" || status=$?
    rm -f -- "$probe"
    ((status != 0))
}

# commit_file TEMPORARY FINAL: makes TEMPORARY durable and gives it its name in one step, so that a file with a
# final name is always whole.
commit_file() {
    sync -- "$1" && mv -f -- "$1" "$2"
}

# is_a_cache: true when the cache folder is one that set-up made, which alone may be removed.
is_a_cache() { grep -qs '^# unspin$' -- "$CACHE/CACHEDIR.TAG"; }

# make_cache: creates the cache folder, marked as such (the mark also keeps backup programs out); a folder that
# holds anything but known parts of a cache is refused, so that "make clean-cache" can never remove a user's files.
make_cache() {
    local stranger
    make_folder "$CACHE"
    ! is_a_cache || return 0
    stranger=$(find "$CACHE" -mindepth 1 -maxdepth 1 ! -name archive ! -name kernel ! -name kernels ! -name linux-guest ! -name guest-linux \
        ! -name guest-module ! -name guest-loads ! -name kmod ! -name headers ! -name rivals ! -name qemu ! -name apt ! -name .lock ! -name python \
        ! -name 'nextest-*' ! -name 'packagers-*' ! -name 'deny-*' ! -name bochs ! -name baselines ! -name 'mdbook-*' ! -name '*.log' ! -name lost+found -print -quit)
    [[ -z $stranger ]] || die "$CACHE is to be the cache, but holds $stranger; UNSPIN_CACHE=<an empty or new folder>"
    { printf 'Signature: 8a477f597d28d172789f06886806bc55\n# unspin\n' >"$CACHE/CACHEDIR.TAG"; } 2>/dev/null ||
        die "cannot write to the cache folder $CACHE: is the disk full or read-only? UNSPIN_CACHE=<folder> moves the cache"
}

# take_lock: one set-up per cache at a time; a second one waits and says so. Held until the script and what it
# started have ended; scripts that it calls share it.
take_lock() {
    make_cache
    [[ ${UNSPIN_LOCK_HELD:-} != "$CACHE" ]] || return 0
    { exec 9>"$CACHE/.lock"; } 2>/dev/null || die "cannot write to the cache folder $CACHE"
    if ! flock --nonblock 9; then
        say "another set-up uses $CACHE: waiting for it"
        flock 9
    fi
    export UNSPIN_LOCK_HELD=$CACHE
}

# as_root COMMAND...: runs it as root, through sudo when needed, keeping the proxies that sudo would drop.
as_root() {
    local name kept=()
    for name in http_proxy https_proxy ftp_proxy no_proxy DEBIAN_FRONTEND; do
        [[ -z ${!name:-} ]] || kept+=("$name=${!name}")
    done
    if ((EUID == 0)); then
        env "${kept[@]}" "$@"
    else
        sudo env "${kept[@]}" "$@"
    fi
}

# can_be_root: true when as_root can work: root, sudo without a password, or sudo and somebody there to type it.
can_be_root() { ((EUID == 0)) || sudo -n true 2>/dev/null || { [[ -t 0 ]] && command -v sudo >/dev/null; }; }
