# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# make clean-cache removes the cache and nothing else; make uninstall lists packages and removes none.
# shellcheck source-path=SCRIPTDIR source=lib.bash
. "$(dirname "$0")/lib.bash"

small_archive
passes "$SETUP/fetch"
passes "$SETUP/clean" cache
[[ ! -e $UNSPIN_CACHE ]] || fail "the cache is still there"
passes "$SETUP/clean" cache
says 'there is no cache'

# A folder of the user's: neither made a cache nor removed.
mkdir "$UNSPIN_CACHE"
echo precious >"$UNSPIN_CACHE/letter"
refuses "$SETUP/clean" cache
refuses "$SETUP/fetch"
says 'holds .*/letter'
[[ $(cat "$UNSPIN_CACHE/letter") == precious ]] || fail "a user's file is gone"

# uninstall in a copy of the repository's set-up, so that this build is not removed.
rm -r "$UNSPIN_CACHE"
mkdir -p "$BOX/copy/target" && cp -r "$SETUP" "$BOX/copy/"
passes "$BOX/copy/setup/clean" uninstall
says 'set-up installed no system package'
[[ ! -e $BOX/copy/target ]] || fail "the build folder is still there"
mkdir -p "$UNSPIN_STATE"
printf '%s\n' base-files unspin-no-such-package >"$UNSPIN_STATE/installed-packages"
passes "$BOX/copy/setup/clean" uninstall
says 'these 1 system packages'
says 'setup:   base-files'
says 'apt-get remove --purge'
dpkg-query -W base-files >/dev/null || fail "a package was removed"
