# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# The mirror comes from the machine's own apt configuration, whatever its format, never from a security archive;
# proxies are honoured.
# shellcheck source-path=SCRIPTDIR source=lib.bash
. "$(dirname "$0")/lib.bash"

codename=$(awk -F = '$1 == "VERSION_CODENAME" { print $2 }' /etc/os-release)
[[ -n $codename ]] || codename=sid

# machine LINES...: gives this machine an apt configuration with those lines as its one sources file.
machine() {
    local name=$1
    shift
    rm -rf "${BOX:?}/etc"
    mkdir -p "$BOX/etc/parts"
    printf '%s\n' "$@" >"$BOX/etc/parts/$name"
    printf 'Dir::Etc::sourcelist "/dev/null";\nDir::Etc::sourceparts "%s";\nAcquire::http::Proxy::127.0.0.1 "DIRECT";\n' "$BOX/etc/parts" >"$APT_CONFIG"
}

# first_mirror: what set-up would try first.
first_mirror() {
    # shellcheck source=../../setup/lib/common.bash
    bash -c '. "$1/setup/lib/common.bash"; . "$1/setup/lib/archive.bash"; mirrors' bash "$REPOSITORY" | head -n 1
}

# expect MIRROR: the mirror that must come first.
expect() { [[ $(first_mirror) == "$1" ]] || fail "mirror '$(first_mirror)' instead of '$1' from: $(cat "$BOX"/etc/parts/*)"; }

machine a.list "deb http://one.invalid/debian $codename main contrib"
expect http://one.invalid/debian
machine a.list "deb [arch=amd64 trusted=yes] http://one.invalid/mirror/debian/ $codename main"
expect http://one.invalid/mirror/debian
machine a.sources 'Types: deb' 'URIs: http://two.invalid/debian' "Suites: $codename $codename-updates" 'Components: main' \
    'Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg'
expect http://two.invalid/debian
machine a.list "deb http://vendor.invalid/apt stable main" "deb http://docker.invalid/debian $codename stable" \
    "deb http://security.invalid/debian-security $codename-security main" "deb http://three.invalid/debian $codename main"
expect http://three.invalid/debian

# Only a security archive: it is not chosen, and the message says what to do.
machine a.list "deb http://security.invalid/debian-security $codename-security main"
expect ""
cp "$REPOSITORY/setup/packages.lock" "$UNSPIN_LOCK"
refuses "$SETUP/fetch"
says 'no Debian mirror .* set UNSPIN_MIRROR=' 1

# Through the machine's configuration, with a host that only the proxy knows; a vendor's archive before it lacks
# the suite and is passed over.
small_archive
unset UNSPIN_MIRROR
proxy=http://127.0.0.1:$(cat "$BOX/control/port")
machine a.list "deb http://elsewhere.invalid/debian $codename main" "deb http://mirror.invalid $codename main"
passes env http_proxy="$proxy" "$SETUP/fetch"
(($(requests 'GET http://mirror.invalid/pool/pebble.* 200') == 1)) || fail "the proxy of the environment was not used"
(($(requests 'GET http://elsewhere.invalid/debian/dists/stone/InRelease 404') > 0)) || fail "the first archive was not asked: $(cat "$BOX/control/log")"

rm -rf "$UNSPIN_CACHE"
: >"$BOX/control/log"
echo "Acquire::http::Proxy \"$proxy\";" >>"$APT_CONFIG"
passes "$SETUP/fetch"
(($(requests 'GET http://mirror.invalid/pool/pebble.* 200') == 1)) || fail "the proxy of apt's configuration was not used"
