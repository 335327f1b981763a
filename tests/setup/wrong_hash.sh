# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# A package whose hash is wrong, in three ways: altered on the way, altered in the cache, another one in the index.
# shellcheck source-path=SCRIPTDIR source=lib.bash
. "$(dirname "$0")/lib.bash"

small_archive
pebble=$BOX/www/pool/pebble_1.0_amd64.deb
cp "$pebble" "$BOX/good"

# Altered on the way: same length, one byte other.
printf 'X' | dd of="$pebble" bs=1 seek=200 conv=notrunc status=none
refuses "$SETUP/fetch"
says 'wrong hash' 1
[[ -z $(find "$UNSPIN_CACHE" -name 'pebble*') ]] || fail "the bad file was left: $(find "$UNSPIN_CACHE" -name 'pebble*')"

# The archive mended, set-up goes on.
cp "$BOX/good" "$pebble"
passes "$SETUP/fetch"

# Altered in the cache: fetched again, alone.
printf 'X' | dd of="$UNSPIN_CACHE/archive/pebble_1.0_amd64.deb" bs=1 seek=200 conv=notrunc status=none
: >"$BOX/control/log"
passes "$SETUP/fetch"
cmp -s "$BOX/good" "$UNSPIN_CACHE/archive/pebble_1.0_amd64.deb" || fail "the altered file was kept"
[[ $(requests '/pool/') == 1 ]] || fail "more than the altered file was fetched again"

# The signed index says another hash than the lock file for the same version.
mkdir "$BOX/tree" && echo "another pebble" >"$BOX/tree/pebble" && make_deb pebble 1.0 "" "$BOX/tree" && publish
rm -r "$UNSPIN_CACHE"
refuses "$SETUP/fetch"
says 'pebble 1.0 has the wrong hash'
[[ -z $(find "$UNSPIN_CACHE" -name 'pebble*.deb') ]] || fail "the other file was fetched all the same"
