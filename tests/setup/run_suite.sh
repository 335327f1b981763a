# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# setup/run-suite counts what cargo and scripts report, and fails over budget, on a hang, and when nothing ran.
# shellcheck source-path=SCRIPTDIR source=lib.bash
. "$(dirname "$0")/lib.bash"

unset UNSPIN_BUDGET_PERCENT
suite() { run "$SETUP/run-suite" "$@"; }

suite cargo 20 printf 'test result: ok. 5 passed; 0 failed; 1 ignored\ntest result: ok. 2 passed; 0 failed; 0 ignored\n'
says '^suite cargo: 7 passed, 0 failed, [0-9]+ s of 20 s$'
((status == 0)) || fail "a good suite failed"
suite lines 20 printf '3 passed, 0 failed\nnot 4 passed, 0 failed\n'
says '^suite lines: 3 passed, 0 failed'
suite plain 20 true
says '^suite plain: 1 passed, 0 failed'

suite bad 20 bash -c 'echo "test result: FAILED. 5 passed; 2 failed; 0 ignored"; exit 101'
((status != 0)) || fail "a failed suite passed"
says '^suite bad: 5 passed, 2 failed'
suite crash 20 bash -c 'echo "3 passed, 0 failed"; exit 1'
((status != 0)) || fail "a suite that crashed passed"
says '^suite crash: 3 passed, 1 failed'
suite hidden 20 bash -c 'echo "test result: FAILED. 3 passed; 1 failed; 0 ignored"; exit 0'
((status != 0)) || fail "a failure that is only printed passed"
suite empty 20 echo 'test result: ok. 0 passed; 0 failed; 3 ignored'
((status != 0)) || fail "a suite that ran nothing passed"

suite slow 1 sleep 2
((status != 0)) || fail "a suite over its budget passed"
says 'over its budget of 1 s'
suite hang 1 sleep 60
((status != 0)) || fail "a suite that hangs passed"
says 'ended after twice its budget'
suite hang 1 true
((status == 0)) || fail "a suite within its budget failed"
