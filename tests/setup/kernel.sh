# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# The kernel is unpacked whole or not at all; a second run does nothing; a new kernel takes the old one's place.
# shellcheck source-path=SCRIPTDIR source=lib.bash
. "$(dirname "$0")/lib.bash"

small_archive
refuses "$SETUP/unpack-kernel"
says 'run setup/fetch' 1
passes "$SETUP/fetch"
kernel=$UNSPIN_CACHE/kernel

# A package that is damaged after it was checked: nothing may be left that looks like a kernel.
modules=$UNSPIN_CACHE/archive/linux-modules-7.2.0-test_7.2-1_amd64.deb
cp "$modules" "$BOX/modules"
head -c 100000 "$BOX/modules" >"$modules"
refuses "$SETUP/unpack-kernel"
says 'cannot unpack linux-modules' 1
[[ -z $(find "$kernel" -mindepth 1) ]] || fail "left behind: $(find "$kernel" -mindepth 1)"

cp "$BOX/modules" "$modules"
passes "$SETUP/unpack-kernel"
for file in vmlinuz config modules/kernel/kvm.ko.xz; do [[ -f $kernel/current/$file ]] || fail "no $file"; done
[[ $(readlink "$kernel/current") == 7.2.0-test ]] || fail "current is not the release"
before=$(stat -c %Y.%i "$kernel/current/vmlinuz")
passes "$SETUP/unpack-kernel"
[[ ! -s $BOX/out && $(stat -c %Y.%i "$kernel/current/vmlinuz") == "$before" ]] || fail "a second run did something"
