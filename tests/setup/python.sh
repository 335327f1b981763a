# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# The packages of PyPI: nothing half done stays, and what is there is not made again.
# shellcheck source-path=SCRIPTDIR source=lib.bash
. "$(dirname "$0")/lib.bash"

python3 -m venv --help >/dev/null 2>&1 || /usr/bin/python3 -m venv --help >/dev/null 2>&1 || skip "no Python 3 with the module venv"

# No index and no folder of packages: pip's own configuration counts for nothing here.
export PIP_CONFIG_FILE=/dev/null PIP_NO_INDEX=1 PIP_FIND_LINKS=$BOX/none
passes "$SETUP/python" --plan
says 'to download from PyPI: 3 packages'
refuses "$SETUP/python"
says 'pip could not install the packages of setup/python-packages.txt: ERROR'
[[ ! -e $UNSPIN_CACHE/python ]] || fail "half an environment stays"

passes "$SETUP/python" --plan wheel
says 'to download from PyPI: 1 packages, 10 MB: maturin'
passes "$SETUP/python" --plan lab
says 'packages, 250 MB: pandas'
refuses "$SETUP/python" wheels
says 'usage: setup/python'

# One that was made from this very list is left alone; from another list it is not.
mkdir -p "$UNSPIN_CACHE/python/bin"
printf '#!/bin/sh\n' >"$UNSPIN_CACHE/python/bin/python"
chmod +x "$UNSPIN_CACHE/python/bin/python"
sha256sum "$SETUP/python-packages.txt" | cut -d ' ' -f 1 >"$UNSPIN_CACHE/python/.packages"
passes "$SETUP/python"
passes "$SETUP/python" --plan
[[ ! -s $BOX/out ]] || fail "it did something although nothing is missing"
echo of another list >"$UNSPIN_CACHE/python/.packages"
refuses "$SETUP/python"
