#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Says of a kernel that has just been installed whether unspin works with it. It reports and never fails: an upgrade of the kernel
# is nobody's to stop. Called as /etc/kernel/postinst.d/zz-unspin VERSION IMAGE.
[ -n "${1:-}" ] && [ -x /usr/bin/unspin ] || exit 0
/usr/bin/unspin doctor --release "$1" || echo "unspin: whether it works with the kernel $1 is not known; after the reboot: unspin doctor"
exit 0
