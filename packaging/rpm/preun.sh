# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh
# $1 is 0 when the package goes.
if [ "$1" -eq 0 ]; then
    if [ -d /run/systemd/system ]; then
        systemctl --no-reload disable --now unspin-steer.service unspin-watch.service >/dev/null 2>&1 || :
    fi
    find /etc/systemd/system \( -name unspin-watch.service -o -name unspin-steer.service \) -type l -delete 2>/dev/null || :
fi
