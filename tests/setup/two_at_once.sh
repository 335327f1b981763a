# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# Two set-ups of one cache: the second waits, says so, and finds the work done.
# shellcheck source-path=SCRIPTDIR source=lib.bash
. "$(dirname "$0")/lib.bash"

small_archive
touch "$BOX/control/slow"
"$SETUP/fetch" >"$BOX/first" 2>&1 &
first=$!
started+=("$first")
for _ in {1..100}; do [[ $(requests /pool/) == 0 ]] || break; sleep 0.05; done
passes "$SETUP/fetch"
says 'another set-up uses .*: waiting for it' 1
says 'to download' 0
wait "$first" || fail "the first one failed: $(cat "$BOX/first")"
[[ $(requests '/pool/linux-modules') == 1 ]] || fail "a file was fetched twice"
