# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# Fetching: the plan is said first, every file arrives whole, a second run needs no network.
# shellcheck source-path=SCRIPTDIR source=lib.bash
. "$(dirname "$0")/lib.bash"

small_archive
[[ $(grep -vc '^#' "$UNSPIN_LOCK") == 6 ]] || fail "update-lock locked other than 6 files: $(cat "$UNSPIN_LOCK")"
! grep -v '^#' "$UNSPIN_LOCK" | grep -q linux-image || fail "a meta package was locked"

passes "$SETUP/fetch" --plan
says 'to download .* MB .* min'
says 'MB kernel, from stone: a kernel'
[[ $(requests .) == 0 ]] || fail "--plan used the network"

passes "$SETUP/fetch"
(cd "$BOX/www/pool" && sha256sum -- *stone* pebble* gravel* linux-{base,binary,modules}* 2>/dev/null) >"$BOX/sums" || true
(cd "$UNSPIN_CACHE/archive" && sha256sum --quiet --check "$BOX/sums") || fail "files differ from the archive's"
[[ ! -e $UNSPIN_CACHE/apt ]] || fail "the indexes were left behind"

# The server is gone and a proxy that refuses is set: the second run must not notice.
kill "$SERVER"
: >"$BOX/control/log"
passes env http_proxy=http://127.0.0.1:9 "$SETUP/fetch"
[[ ! -s $BOX/out ]] || fail "a second run did something"
passes "$SETUP/fetch" --plan
[[ ! -s $BOX/out ]] || fail "a second plan is not empty"

# Without any of its files it must notice: this is what makes the above a test.
rm "$UNSPIN_CACHE"/archive/pebble*
refuses env http_proxy=http://127.0.0.1:9 "$SETUP/fetch"
says 'cannot fetch'
