# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# A cargo that is too old, or does not run, stands first on PATH; a good one further on, or in the user's own folder, is used.
# shellcheck source-path=SCRIPTDIR source=lib.bash
. "$(dirname "$0")/lib.bash"

# rust_says FOLDER VERSION: a cargo and a rustc there that say so; that fail when VERSION is empty.
rust_says() {
    local tool
    mkdir -p "$1"
    for tool in cargo rustc; do
        printf '#!/bin/sh\n%s\nexit 1\n' "${2:+echo $tool $2; exit}" >"$1/$tool"
        chmod a+x "$1/$tool"
    done
}

# which_rust PATH: the cargo that set-up would use.
which_rust() {
    # shellcheck disable=SC2016 # the inner shell expands it
    run env HOME="$BOX/home" PATH="$1:$BOX/tools" bash -c '. "$1/lib/common.bash"; . "$1/lib/rust.bash"; use_rust && command -v cargo' - "$SETUP"
}

mkdir "$BOX/tools"
for tool in bash awk dpkg dirname env grep sed cat mkdir id uname; do ln -s "$(command -v "$tool")" "$BOX/tools/$tool"; done
rust_says "$BOX/old" 1.63.0
rust_says "$BOX/broken" ''
rust_says "$BOX/good" 1.85.0
rust_says "$BOX/other" 1.90.0

which_rust "$BOX/good:$BOX/other"
says "^$BOX/good/cargo\$"
which_rust "$BOX/old:$BOX/good"
says "^$BOX/good/cargo\$"
which_rust "$BOX/broken:$BOX/old:$BOX/good"
says "^$BOX/good/cargo\$"
which_rust "$BOX/old:$BOX/broken"
((status != 0)) || fail "an old one and a broken one are none"
rust_says "$BOX/home/.cargo/bin" 1.88.0
which_rust "$BOX/old:$BOX/broken"
says "^$BOX/home/.cargo/bin/cargo\$"

# What is used comes first for everything that it starts.
# shellcheck disable=SC2016 # the inner shell expands it
run env HOME="$BOX/nobody" PATH="$BOX/broken:$BOX/good:$BOX/tools" bash -c '. "$1/lib/common.bash"; . "$1/lib/rust.bash"; use_rust && rustc --version' - "$SETUP"
says '^rustc 1.85.0$'
