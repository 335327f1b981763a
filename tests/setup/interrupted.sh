# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# A set-up that is interrupted while a file of 1.5 MB arrives goes on where it stopped.
# shellcheck source-path=SCRIPTDIR source=lib.bash
. "$(dirname "$0")/lib.bash"

small_archive
big=linux-modules-7.2.0-test_7.2-1_amd64.deb
touch "$BOX/control/slow"
set -m
"$SETUP/fetch" >"$BOX/out" 2>&1 &
fetch=$!
set +m
started+=("-$fetch")
for _ in {1..100}; do
    partial=$(find "$UNSPIN_CACHE/apt" -name 'linux-modules*' -size +200k 2>/dev/null | head -n 1) || true
    [[ -z $partial ]] || break
    sleep 0.05
done
[[ -n $partial ]] || fail "the big file never began to arrive"
kill -INT -- "-$fetch"
status=0
wait "$fetch" || status=$?
((status != 0)) || fail "status 0 although it was interrupted"
says 'interrupted; run it again' 1
[[ ! -e $UNSPIN_CACHE/archive/$big ]] || fail "a half fetched file has its final name"
[[ ! -e $UNSPIN_CACHE/archive/manifest.tsv ]] || fail "the manifest speaks of what is not there"

rm "$BOX/control/slow"
: >"$BOX/control/log"
passes "$SETUP/fetch"
[[ $(requests "$big 206 [1-9]") == 1 ]] || fail "the big file was not gone on with: $(cat "$BOX/control/log")"
[[ $(requests '/dists/') == 0 ]] || fail "the indexes were read again"
cmp -s "$BOX/www/pool/$big" "$UNSPIN_CACHE/archive/$big" || fail "the resumed file differs"
