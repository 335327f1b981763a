# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# What the tests of set-up share: a throw-away cache, a tiny signed package archive served over HTTP, assertions.
# Sourced by every test, which is one bash script that ends with status 0 when it passes. Nothing here needs a
# network or root.

# shellcheck disable=SC2034 # its variables are used by those who source it
set -euo pipefail
export LC_ALL=C
REPOSITORY=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
SETUP=$REPOSITORY/setup
HERE=$REPOSITORY/tests/setup
BOX=$(mktemp -d "${TMPDIR:-/tmp}/unspin-setup-test.XXXXXX")
started=()

# What the tests must not inherit.
unset http_proxy https_proxy no_proxy UNSPIN_MIRROR UNSPIN_KEYRING UNSPIN_LOCK_HELD
export UNSPIN_CACHE=$BOX/cache UNSPIN_STATE=$BOX/state UNSPIN_LOCK=$BOX/packages.lock APT_CONFIG=$BOX/machine-apt.conf
echo 'Acquire::http::Proxy::127.0.0.1 "DIRECT";' >"$APT_CONFIG"

# tidy: ends what this test started and removes its folder.
tidy() {
    local pid
    for pid in "${started[@]}"; do kill -- "$pid" 2>/dev/null || true; done
    [[ ! -d $BOX/gpg ]] || gpgconf --homedir "$BOX/gpg" --kill all >/dev/null 2>&1 || true
    rm -rf -- "$BOX"
}
trap tidy EXIT

# fail TEXT...: the test has failed.
fail() {
    printf 'FAILED: %s\n' "$*" >&2
    [[ ! -f $BOX/out ]] || sed 's/^/  | /' "$BOX/out" >&2
    exit 1
}

# skip TEXT...: this machine cannot run the test.
skip() {
    printf 'skipped: %s\n' "$*"
    exit 77
}

# run COMMAND...: runs it, output and errors into $BOX/out, status into $status.
run() {
    status=0
    "$@" >"$BOX/out" 2>&1 || status=$?
}

# passes COMMAND..., refuses COMMAND...: run, and check the status.
passes() {
    run "$@"
    ((status == 0)) || fail "status $status of: $*"
}
refuses() {
    run "$@"
    ((status != 0)) || fail "status 0, but it had to refuse: $*"
    [[ $(grep -c 'error:' "$BOX/out") == 1 ]] || fail "not exactly one error message: $*"
}

# says PATTERN [COUNT]: the output of the last run has COUNT (1 or more when not given) lines that match.
says() {
    local lines
    lines=$(grep -cE -- "$1" "$BOX/out" || true)
    if [[ -n ${2:-} ]]; then ((lines == $2)) || fail "$lines lines instead of $2 match: $1"; else ((lines > 0)) || fail "no line matches: $1"; fi
}

# make_deb NAME VERSION DEPENDS FOLDER: a package with the content of FOLDER, into the archive's pool.
make_deb() {
    mkdir -p "$4/DEBIAN" "$BOX/www/pool"
    printf 'Package: %s\nVersion: %s\nArchitecture: amd64\nMaintainer: nobody <nobody@localhost>\nDepends: %s\nDescription: test\n' \
        "$1" "$2" "$3" | sed '/^Depends: $/d' >"$4/DEBIAN/control"
    dpkg-deb -Znone --root-owner-group --build "$4" "$BOX/www/pool/$1_$2_amd64.deb" >/dev/null
    rm -rf -- "$4"
}

# make_source NAME VERSION: a source package of two files.
make_source() {
    local tar=$1_$2.tar
    mkdir -p "$BOX/www/pool"
    echo "source of $1 $2" >"$BOX/www/pool/$tar"
    printf 'Format: 3.0 (native)\nSource: %s\nBinary: %s\nArchitecture: any\nVersion: %s\nChecksums-Sha256:\n %s %s %s\nFiles:\n %s %s %s\n' "$1" "$1" "$2" \
        "$(sha256sum <"$BOX/www/pool/$tar" | cut -d ' ' -f 1)" "$(stat -c %s "$BOX/www/pool/$tar")" "$tar" \
        "$(md5sum <"$BOX/www/pool/$tar" | cut -d ' ' -f 1)" "$(stat -c %s "$BOX/www/pool/$tar")" "$tar" >"$BOX/www/pool/$1_$2.dsc"
}

# source_stanza DSC: its stanza of the index Sources.
source_stanza() {
    local field sum
    sed -e 's/^Source: /Package: /' -e '/^Checksums-Sha256:/,$d' "$1"
    echo "Directory: pool"
    for field in Checksums-Sha256:sha256sum Files:md5sum; do
        sum=${field#*:}
        echo "${field%:*}:"
        echo " $("$sum" <"$1" | cut -d ' ' -f 1) $(stat -c %s "$1") $(basename "$1")"
        sed -n "/^${field%:*}:/,/^[A-Z]/{/^ /p}" "$1"
    done
    echo
}

# publish: makes the signed indexes of the suite "stone" from the pool, with a key of its own.
publish() {
    local dist=$BOX/www/dists/stone deb index
    mkdir -p "$dist/main/binary-amd64" "$dist/main/source"
    for deb in "$BOX"/www/pool/*.deb; do
        dpkg-deb --field "$deb"
        printf 'Filename: pool/%s\nSize: %s\nSHA256: %s\n\n' "$(basename "$deb")" "$(stat -c %s "$deb")" "$(sha256sum <"$deb" | cut -d ' ' -f 1)"
    done >"$dist/main/binary-amd64/Packages"
    for deb in "$BOX"/www/pool/*.dsc; do [[ ! -f $deb ]] || source_stanza "$deb"; done >"$dist/main/source/Sources"
    {
        printf 'Origin: Test\nSuite: stone\nCodename: stone\nDate: %s\nArchitectures: amd64\nComponents: main\nSHA256:\n' "$(date -Ru | sed 's/+0000/UTC/')"
        for index in main/binary-amd64/Packages main/source/Sources; do
            echo " $(sha256sum <"$dist/$index" | cut -d ' ' -f 1) $(stat -c %s "$dist/$index") $index"
        done
    } >"$dist/Release"
    if [[ ! -d $BOX/gpg ]]; then
        mkdir -m 700 "$BOX/gpg"
        gpg --homedir "$BOX/gpg" --batch --quiet --passphrase '' --quick-gen-key 'Test <test@localhost>' ed25519 sign never 2>"$BOX/gpg.log" ||
            fail "gpg cannot make a key: $(cat "$BOX/gpg.log")"
        gpg --homedir "$BOX/gpg" --batch --export >"$BOX/keyring.gpg"
    fi
    rm -f -- "$dist/InRelease"
    gpg --homedir "$BOX/gpg" --batch --quiet --clearsign --output "$dist/InRelease" "$dist/Release"
}

# serve: starts the server on the archive; sets UNSPIN_MIRROR and UNSPIN_KEYRING; $SERVER is its process id.
serve() {
    mkdir -p "$BOX/control"
    rm -f -- "$BOX/control/port"
    perl "$HERE/server.pl" "$BOX/www" "$BOX/control" 2>"$BOX/server.log" &
    SERVER=$!
    started+=("$SERVER")
    for _ in {1..100}; do [[ ! -f $BOX/control/port ]] || break; sleep 0.05; done
    export UNSPIN_MIRROR UNSPIN_KEYRING=$BOX/keyring.gpg
    UNSPIN_MIRROR=http://127.0.0.1:$(cat "$BOX/control/port")
}

# small_archive: a package "pebble", a kernel of three packages behind a meta package, a source "gravel"; published
# and served, and the lock file that update-lock makes of it.
small_archive() {
    local release=7.2.0-test part
    mkdir -p "$BOX/tree" && echo "a pebble" >"$BOX/tree/pebble" && make_deb pebble 1.0 "" "$BOX/tree"
    for part in base binary modules; do
        mkdir -p "$BOX/tree/usr/lib/modules/$release/kernel"
        case $part in
        base) echo config >"$BOX/tree/usr/lib/modules/$release/config" ;;
        binary) echo vmlinuz >"$BOX/tree/usr/lib/modules/$release/vmlinuz" ;;
        modules) head -c 1500000 /dev/zero | tr '\0' m >"$BOX/tree/usr/lib/modules/$release/kernel/kvm.ko.xz" ;;
        esac
        make_deb "linux-$part-$release" 7.2-1 "" "$BOX/tree"
    done
    mkdir -p "$BOX/tree" && make_deb "linux-image-$release" 7.2-1 "initramfs-tools | dracut, linux-base-$release (= 7.2-1), linux-binary-$release (= 7.2-1), linux-modules-$release (= 7.2-1)" "$BOX/tree"
    mkdir -p "$BOX/tree" && make_deb linux-image-test 7.2-1 "linux-image-$release (= 7.2-1)" "$BOX/tree"
    make_source gravel 1.0
    publish
    serve
    printf '# want\t%s\n' $'stone\tstone\tbinary\tpebble\t-\ta pebble' \
        $'kernel\tstone\tclosure\tlinux-image-test\t^linux-(base|binary|modules)-[0-9]\ta kernel' \
        $'gravel\tstone\tsource\tgravel\t-\ta source' >"$UNSPIN_LOCK"
    passes "$SETUP/update-lock"
    : >"$BOX/control/log"
}

# requests PATTERN: how many requests in the server's log match.
requests() { grep -cE -- "$1" "$BOX/control/log" || true; }
