# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# A malformed lock file is refused with the number of its line and what is wrong there; the committed one is not.
# shellcheck source-path=SCRIPTDIR source=lib.bash
. "$(dirname "$0")/lib.bash"

good=$'stone\tpebble\t1.0\tamd64\tpebble_1.0_amd64.deb\t10\t'$(printf 'a%.0s' {1..64})$'\tstone'
export UNSPIN_MIRROR=http://127.0.0.1:9

# broken PATTERN LINE: a lock file whose second line is LINE is refused, and the message matches PATTERN.
broken() {
    printf '# comment\n%s\n' "$2" >"$UNSPIN_LOCK"
    refuses "$SETUP/fetch"
    says "line 2: $1" 1
    [[ ! -e $UNSPIN_CACHE/archive ]] || fail "something was done for a malformed lock file"
}
broken '8 columns needed, 7 found' "${good%$'\t'*}"
broken 'suite: Stone' "${good/stone/Stone}"
broken 'package: p/ebble' "${good/pebble/p/ebble}"
broken 'version: one' "${good/1.0/one}"
broken 'architecture: arm64' "${good/amd64/arm64}"
broken 'file: ../pebble' "${good/pebble_/../pebble_}"
broken 'bytes: 0' "${good/$'\t10\t'/$'\t0\t'}"
broken 'SHA-256: b' "${good/aaaaaaaaaa/b}"
broken 'role: ' "${good%stone}"
broken 'a want line needs 7 columns' $'# want\tstone\tstone\tbinary'
broken 'an index line needs 4 columns' $'# index\tstone\tamd64\tmany'

printf '%s\n%s\n' "$good" "$good" >"$UNSPIN_LOCK"
refuses "$SETUP/fetch"
says 'line 2: file named twice'
printf '# nothing\n' >"$UNSPIN_LOCK"
refuses "$SETUP/fetch"
says 'no file is named'
rm "$UNSPIN_LOCK"
refuses "$SETUP/fetch"
says 'is missing'

# The committed lock file passes, and has every role that set-up asks for.
export UNSPIN_LOCK=$REPOSITORY/setup/packages.lock
passes "$SETUP/fetch" --plan
for role in kernel qemu meson firmware; do says "MB $role, from"; done
