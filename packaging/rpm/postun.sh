# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh
# $1 is 0 when the package is gone.
if [ "$1" -eq 0 ]; then
    rm -rf /var/lib/unspin /var/log/unspin /run/unspin
    # Folders that are the package's alone: the list of files has no folders.
    rmdir /etc/unspin /usr/share/unspin/monitoring /usr/share/unspin /usr/share/doc/unspin/reference /usr/share/doc/unspin 2>/dev/null || :
    if [ -d /run/systemd/system ]; then
        systemctl daemon-reload >/dev/null 2>&1 || :
    fi
fi
