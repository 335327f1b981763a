# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# Programs of Linux guests, taken out of unpacked packages with the shared libraries that each needs. Sourced after common.bash.

PROGRAM_LIBRARIES=usr/lib/x86_64-linux-gnu PROGRAM_LOADER=usr/lib64/ld-linux-x86-64.so.2

# needed ROOT FILE OUT: writes the shared libraries that the loader of the packages finds for a program into the file OUT, as
# paths below ROOT. A static program, which the loader does not take (--verify gives 1, as ldd relies on), needs none.
needed() {
    local program=$1/$2 name missing status=0
    name=$(basename "$2")
    : >"$3"
    "$1/$PROGRAM_LOADER" --verify "$program" >/dev/null 2>&1 || status=$?
    ((status != 1)) || return 0
    "$1/$PROGRAM_LOADER" --library-path "$1/$PROGRAM_LIBRARIES" --list "$program" >"$3.all" 2>&1 ||
        die "the loader of the packages refuses $name: $(tail -n 1 "$3.all")"
    # The loader also looks where this machine keeps its own.
    missing=$(awk -v root="$1/" '$2 == "=>" && index($3, root) != 1 { print $1; exit }' "$3.all")
    [[ -z $missing ]] || die "the packages lack a library of $name: $missing;" \
        "the want line for $(basename "$(dirname "$1")") in $LOCK_FILE is out of date"
    awk -v root="$1/" '$2 == "=>" && index($3, root) == 1 { print substr($3, length(root) + 1) }' "$3.all" >"$3"
    echo "$PROGRAM_LOADER" >>"$3"
}

# take ROOT TREE FILE...: copies files below ROOT to the same places below TREE; links become what they point to.
take() {
    local root=$1 tree=$2 file
    shift 2
    for file; do
        [[ ! -e $tree/$file ]] || continue
        make_folder "$tree/$(dirname "$file")"
        cp -L -- "$root/$file" "$tree/$file" 2>"$CACHE/unpack.log" ||
            die "cannot unpack $file: $(tail -n 1 "$CACHE/unpack.log"); is the disk full, or has the packages' layout changed?"
    done
}

# program ROOT NEW NAME FILE...: takes files below ROOT into NEW/tree, those among them that are programs with all that they need,
# and writes the list of all as NEW/NAME.files.
program() {
    local root=$1 new=$2 name=$3 file files
    shift 3
    files=("$@")
    for file; do
        [[ $file == */bin/* ]] || continue
        [[ -x $root/$file ]] || die "the packages have no $file; their layout has changed"
        needed "$root" "$file" "$root/needed"
        mapfile -t -O "${#files[@]}" files <"$root/needed"
    done
    take "$root" "$new/tree" "${files[@]}"
    printf '%s\n' "${files[@]}" | sort -u >"$new/$name.files"
}
