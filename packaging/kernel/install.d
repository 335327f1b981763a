#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The same for kernel-install(8): COMMAND VERSION ENTRY-DIRECTORY IMAGE.
[ "${1:-}" = add ] || exit 0
[ -n "${2:-}" ] && [ -x /usr/bin/unspin ] || exit 0
/usr/bin/unspin doctor --release "$2" || echo "unspin: whether it works with the kernel $2 is not known; after the reboot: unspin doctor"
exit 0
