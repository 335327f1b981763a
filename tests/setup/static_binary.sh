# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# unspin is one static file: no interpreter, no shared library, and it runs where there is nothing else.
# shellcheck source-path=SCRIPTDIR source=lib.bash
. "$(dirname "$0")/lib.bash"

unspin=${UNSPIN:-$REPOSITORY/unspin}
[[ -x $unspin ]] || fail "$unspin is missing: run setup/run test"
readelf --wide --program-headers "$unspin" >"$BOX/headers"
! grep -q INTERP "$BOX/headers" || fail "it asks for an interpreter"
! readelf --wide --dynamic "$unspin" 2>/dev/null | grep -q NEEDED || fail "it needs shared libraries"
# The same reading of a dynamic program must find both, or the two lines above prove nothing.
readelf --wide --program-headers /bin/true | grep -q INTERP || fail "readelf does not show the interpreter of /bin/true"
readelf --wide --dynamic /bin/true | grep -q NEEDED || fail "readelf does not show the libraries of /bin/true"

# In a root folder that holds this file only.
mkdir "$BOX/empty"
cp "$(readlink -f "$unspin")" "$BOX/empty/unspin"
if chroot "$BOX/empty" /unspin --version >"$BOX/out" 2>&1 ||
    unshare --map-root-user chroot "$BOX/empty" /unspin --version >"$BOX/out" 2>&1; then
    says '^unspin [0-9]'
elif ((EUID == 0)); then
    fail "it does not run in an empty root folder"
fi
