# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# A cache folder on a full disk: said beforehand when it can be known, and at the moment it fills up otherwise;
# either way one message, and nothing half done. Needs a file system of its own: root, or a user namespace.
# shellcheck source-path=SCRIPTDIR source=lib.bash
if [[ -z ${UNSPIN_TEST_MAY_MOUNT:-} ]]; then
    export UNSPIN_TEST_MAY_MOUNT=1
    # The last form is for a root folder that is no mount point (chroot).
    for way in "--mount" "--map-root-user --mount" "--mount --propagation unchanged"; do
        # shellcheck disable=SC2086 # one option per word
        if unshare $way true 2>/dev/null; then exec unshare $way bash "$0"; fi
    done
    echo "skipped: this user can mount nothing"
    exit 77
fi
. "$(dirname "$0")/lib.bash"

small_archive
rm -rf "$UNSPIN_CACHE"
mkdir "$UNSPIN_CACHE"
trap 'umount --lazy "$UNSPIN_CACHE" 2>/dev/null || true; tidy' EXIT

# Known beforehand: 1.6 MB and indexes do not fit into 1 MB.
mount -t tmpfs -o size=1m tmpfs "$UNSPIN_CACHE" || skip "tmpfs cannot be mounted here"
: >"$BOX/control/log"
refuses "$SETUP/fetch"
says 'disk full: .* needs [0-9.]+ MB .* UNSPIN_CACHE=' 1
[[ $(requests .) == 0 ]] || fail "something was downloaded although it could not fit"
umount "$UNSPIN_CACHE"

# Not known beforehand: the lock file says that the kernel's modules are small, the disk fills while they arrive.
mount -t tmpfs -o size=1700k tmpfs "$UNSPIN_CACHE"
cp "$UNSPIN_LOCK" "$BOX/true.lock"
sed -i '/^stone\tlinux-modules/s/\t15[0-9]*\t/\t1000\t/' "$UNSPIN_LOCK"
head -c 500000 /dev/zero >"$UNSPIN_CACHE/ballast.log"
refuses "$SETUP/fetch"
says 'disk full while fetching linux-modules' 1
[[ -z $(find "$UNSPIN_CACHE" -name 'linux-modules*') ]] || fail "a half fetched file was left"
[[ ! -e $UNSPIN_CACHE/archive/manifest.tsv ]] || fail "the manifest speaks of what is not there"

# With room again it goes on, and the kernel can be unpacked only when that fits as well.
mv "$BOX/true.lock" "$UNSPIN_LOCK"
mount -o remount,size=4m "$UNSPIN_CACHE"
passes "$SETUP/fetch"
refuses "$SETUP/unpack-kernel"
says 'disk full: unpacking the kernel needs' 1
[[ ! -e $UNSPIN_CACHE/kernel/current ]] || fail "a kernel that was not unpacked is current"
mount -o remount,size=8m "$UNSPIN_CACHE"
passes "$SETUP/unpack-kernel"

# A cache folder that cannot be made at all.
umount "$UNSPIN_CACHE"
mount -t tmpfs -o size=64k,ro tmpfs "$UNSPIN_CACHE"
refuses "$SETUP/fetch"
says 'disk full or read-only' 1
