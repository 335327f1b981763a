# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# The locked version has left the archive: the newest is taken, one line says so, and nothing is fetched again.
# shellcheck source-path=SCRIPTDIR source=lib.bash
. "$(dirname "$0")/lib.bash"

small_archive
rm "$BOX"/www/pool/pebble_1.0_amd64.deb
for version in 1.9 1.10; do
    mkdir "$BOX/tree" && echo "pebble $version" >"$BOX/tree/pebble" && make_deb pebble $version "" "$BOX/tree"
done
publish
passes "$SETUP/fetch"
says 'no longer has pebble 1.0; using the newest, pebble 1.10' 1
says 'using the newest' 1
[[ -f $UNSPIN_CACHE/archive/pebble_1.10_amd64.deb ]] || fail "1.10 was not fetched"

kill "$SERVER"
passes "$SETUP/fetch"
[[ ! -s $BOX/out ]] || fail "a second run did something"

# make update-lock moves the lock to it.
serve
passes "$SETUP/update-lock"
grep -q $'pebble\t1.10' "$UNSPIN_LOCK" || fail "update-lock did not lock 1.10"
says '< pebble.*1.0$'
passes "$SETUP/fetch"
says 'newest' 0
