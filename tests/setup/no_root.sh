# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# System packages are missing and the user is neither root nor can use sudo: one message with the command to run.
# shellcheck source-path=SCRIPTDIR source=lib.bash
. "$(dirname "$0")/lib.bash"

export UNSPIN_SYSTEM_PACKAGES=$BOX/table
printf 'any\tdemo\tbase-files\tis always there\nany\tdemo\tunspin-no-such-package\ta test asks for it\n' >"$UNSPIN_SYSTEM_PACKAGES"

# A sudo that refuses, in a folder of its own.
mkdir "$BOX/fake"
printf '#!/bin/sh\nexit 1\n' >"$BOX/fake/sudo"
chmod a+rx "$BOX" "$BOX/fake" "$BOX/fake/sudo"
chmod a+r "$UNSPIN_SYSTEM_PACKAGES" "$APT_CONFIG"
mkdir "$BOX/home"
export UNSPIN_CACHE=$BOX/home/cache UNSPIN_STATE=$BOX/home/state
ordinary=()
if ((EUID == 0)); then
    ordinary=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    chown 65534:65534 "$BOX/home"
    "${ordinary[@]}" test -r "$SETUP/system-packages" || skip "an ordinary user cannot read $REPOSITORY"
fi
refuses "${ordinary[@]}" env PATH="$BOX/fake:$PATH" HOME="$BOX/home" "$SETUP/system-packages" demo </dev/null
says 'neither root nor can use sudo; as root: apt-get install .*unspin-no-such-package'
says 'base-files' 0
[[ ! -e $UNSPIN_STATE ]] || fail "something was recorded as installed"

# apt knows no such package: what apt says is passed on. A stand-in for apt-get, in a folder of its own, so that
# nothing can be installed.
if ((EUID == 0)); then
    cat >"$BOX/fake/apt-get" <<'FAKE'
#!/bin/sh
case "$*" in *print-uris*) exit 0 ;; esac
echo "E: Unable to locate package unspin-no-such-package"
exit 100
FAKE
    chmod a+rx "$BOX/fake/apt-get"
    refuses env PATH="$BOX/fake:$PATH" HOME="$BOX/home" "$SETUP/system-packages" demo </dev/null
    says 'could not install .*: E: Unable to locate package'
    rm -rf "$UNSPIN_STATE" "$UNSPIN_CACHE"
fi

# Nothing is missing: no root needed, no word.
sed -i '/no-such/d' "$UNSPIN_SYSTEM_PACKAGES"
depends=$REPOSITORY/testbed/qemu/build-depends
if [[ ! -f $depends ]] || grep -vE '^ *(#|$)' "$depends" | xargs -r dpkg-query -W >/dev/null 2>&1; then
    passes "${ordinary[@]}" env PATH="$BOX/fake:$PATH" HOME="$BOX/home" "$SETUP/system-packages" demo </dev/null
    [[ ! -s $BOX/out ]] || fail "it did something although nothing is missing"
fi
