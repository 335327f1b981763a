# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# The rivals: only the crates that the lock file names are built, whole or not at all, once, with the libraries that they need.
# cargo and rustc are scripts here: what a build takes a quarter of an hour for is not what is tested.
# shellcheck source-path=SCRIPTDIR source=lib.bash
. "$(dirname "$0")/lib.bash"

export CARGO_HOME=$BOX/cargo UNSPIN_RIVALS_LOCK=$BOX/rivals.lock UNSPIN_SYSTEM_PACKAGES=$BOX/no-packages.tsv BOX
touch "$UNSPIN_SYSTEM_PACKAGES"
mkdir -p "$BOX/bin" "$CARGO_HOME/registry/cache/index" "$BOX/scx_one-1.2.3" "$BOX/scx_two-1.0.0"
tar -C "$BOX" -czf "$BOX/scx_one-1.2.3.crate" scx_one-1.2.3
tar -C "$BOX" -czf "$BOX/scx_two-1.0.0.crate" scx_two-1.0.0

# "info" fetches; "install --path .../NAME-VERSION --root ROOT" puts some dynamic program there; each call is noted.
cat >"$BOX/bin/cargo" <<'SCRIPT'
#!/bin/bash
[[ $1 != --version ]] || { echo "cargo 1.95.0"; exit; }
echo "$*" >>"$BOX/calls"
[[ ! -e $BOX/offline ]] || { echo "error: no network" >&2; exit 101; }
[[ $1 != info ]] || { cp "$BOX/${3/@/-}.crate" "$CARGO_HOME/registry/cache/index/"; exit; }
while [[ $# != 0 ]]; do
    [[ $1 != --path ]] || path=$2
    [[ $1 != --root ]] || root=$2
    shift
done
name=$(basename "$path")
name=${name%-*}
[[ ! -e $BOX/broken-$name ]] || { echo "error: it does not compile" >&2; exit 101; }
mkdir -p "$root/bin"
cp -L /bin/true "$root/bin/$name"
SCRIPT
# shellcheck disable=SC2016 # for the script
printf '#!/bin/sh\necho "rustc $(cat "$BOX/rustc-version") (x)"\n' >"$BOX/bin/rustc"
printf '#!/bin/sh\n' >"$BOX/bin/apt-cache"
chmod +x "$BOX"/bin/*
echo 1.95.0 >"$BOX/rustc-version"
PATH=$BOX/bin:$PATH

# lock SHA256-OF-THE-FIRST
lock() {
    printf '# a comment\nscx_one\t1.2.3\t%s\tGPL-2.0-only\nscx_two\t1.0.0\t%s\tGPL-2.0-only\n' \
        "$1" "$(sha256sum "$BOX/scx_two-1.0.0.crate" | cut -d ' ' -f 1)" >"$UNSPIN_RIVALS_LOCK"
}
right=$(sha256sum "$BOX/scx_one-1.2.3.crate" | cut -d ' ' -f 1)
rivals=$UNSPIN_CACHE/rivals

# A lock file that is none.
for wrong in $'scx_one\t1.2.3\tabc\tGPL' $'scx_one\t1.2\t'"$right"$'\tGPL' $'scx one\t1.2.3\t'"$right"$'\tGPL' 'scx_one' '# nothing'; do
    printf '%s\n' "$wrong" >"$UNSPIN_RIVALS_LOCK"
    refuses "$SETUP/rivals"
    says 'is malformed' 1
done

# Another file than the one that is locked, though it has its name; nothing of it is unpacked or built.
lock "${right//[0-9]/0}"
refuses "$SETUP/rivals"
says 'scx_one 1.2.3 in cargo.s cache is not the one that setup/rivals.lock names' 1
! grep -q install "$BOX/calls" || fail "it was built all the same"

# No network, a compiler that is too old and nowhere to be had, a crate that does not compile: said, and nothing is left under its name.
lock "$right"
touch "$BOX/offline"
refuses "$SETUP/rivals"
says 'could not fetch scx_one 1.2.3: error: no network' 1
rm "$BOX/offline"
echo 1.90.0 >"$BOX/rustc-version"
refuses "$SETUP/rivals"
says "rustc is 1.90.0, the rivals need 1.91" 1
says "apt's lists have no rustc-web of at least 1.91" 1
echo 1.95.0 >"$BOX/rustc-version"
touch "$BOX/broken-scx_two"
refuses "$SETUP/rivals"
says 'could not build scx_two 1.0.0: error: it does not compile' 1
[[ ! -e $rivals/current ]] || fail "half of them are there"
rm "$BOX/broken-scx_two"

passes "$SETUP/rivals"
for name in scx_one scx_two; do [[ -x $rivals/current/$name ]] || fail "no $name"; done
[[ $(cat "$rivals/current/rivals.tsv") == $'scx_one\t1.2.3\tGPL-2.0-only\nscx_two\t1.0.0\tGPL-2.0-only' ]] || fail "the list is wrong"
"$rivals/current/lib/ld-linux-x86-64.so.2" --library-path "$rivals/current/lib" "$rivals/current/scx_one" || fail "it does not run"
[[ -z $(find "$rivals" -mindepth 1 -maxdepth 1 -name '.*') ]] || fail "what cargo left takes room"

# A second run does nothing; another lock file is another build, and the old one goes.
: >"$BOX/calls"
before=$(readlink "$rivals/current")
passes "$SETUP/rivals"
[[ ! -s $BOX/calls && ! -s $BOX/out ]] || fail "it did something although nothing is missing"
sed -i '/scx_two/d' "$UNSPIN_RIVALS_LOCK"
passes "$SETUP/rivals"
[[ $(readlink "$rivals/current") != "$before" && ! -e $rivals/$before && ! -e $rivals/current/scx_two ]] || fail "the old build stays"

# Taken away with the cache.
passes "$SETUP/clean" cache
[[ ! -e $UNSPIN_CACHE ]] || fail "the cache stays"
