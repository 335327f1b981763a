# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh
# As %systemd_post and %systemd_postun_with_restart: $1 is 1 at the first installation, more at an upgrade.
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload >/dev/null 2>&1 || :
    if [ "$1" -gt 1 ]; then
        systemctl try-restart unspin-watch.service >/dev/null 2>&1 || :
        if systemctl --quiet is-active unspin-steer.service; then
            echo "unspin: unspin-steer goes on with the version before until: systemctl restart unspin-steer"
        fi
    fi
fi
