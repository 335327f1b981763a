# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# The programs of Linux guests: locked with the libraries that they reach and no more, unpacked whole or not at all, and
# each one's list names all that it needs to run.
# shellcheck source-path=SCRIPTDIR source=lib.bash
. "$(dirname "$0")/lib.bash"

# program PACKAGE DEPENDS PATH FILE: a package with FILE as PATH, into the pool.
program() {
    mkdir -p "$BOX/tree/$(dirname "$3")"
    cp -L -- "$4" "$BOX/tree/$3"
    [[ $1 != qemu-system-x86 ]] || { mkdir -p "$BOX/tree/usr/share/qemu" && touch "$BOX/tree/usr/share/qemu"/{linuxboot_dma,kvmvapic}.bin; }
    [[ $1 != libstone1 ]] || { mkdir -p "$BOX/tree/usr/lib64" && cp -L /lib64/ld-linux-x86-64.so.2 "$BOX/tree/usr/lib64"; }
    make_deb "$1" 1.0 "$2" "$BOX/tree"
}

small_archive
libc=$(ldd /bin/true | awk '/libc\.so\.6/ { print $3 }')
echo 'int main(void) { return 0; }' | gcc -static -x c - -o "$BOX/static"
program qemu-system-x86 "libstone1 (>= 1) | libother, adduser" usr/bin/qemu-system-x86_64 /bin/true
mkdir -p "$BOX/tree/usr/bin" && cp -L /bin/true "$BOX/tree/usr/bin/cyclictest"
program rt-tests libstone1 usr/bin/hackbench /bin/true
program linux-perf libstone1 usr/bin/perf /bin/true
program busybox-static "" usr/bin/busybox "$BOX/static"
program libstone1 "libdeep2 (>= 1:0.9)" "usr/lib/x86_64-linux-gnu/libc.so.6" "$libc"
program libdeep2 "" usr/share/deep /etc/os-release
program libother "" usr/share/other /etc/os-release
program adduser "" usr/share/adduser /etc/os-release
program seabios "" usr/share/seabios/bios-256k.bin /etc/os-release
publish
printf '# want\t%s\n' $'firmware\tstone\tbinary\tseabios\t-\ta BIOS' \
    $'linux-guest\tstone\tlibraries\tqemu-system-x86,rt-tests,linux-perf,busybox-static\t^lib\tprograms' >"$UNSPIN_LOCK"
passes "$SETUP/update-lock"
locked=$(awk -F '\t' '$8 == "linux-guest" { print $2 }' "$UNSPIN_LOCK" | paste -sd ' ')
[[ $locked == "busybox-static libdeep2 libstone1 linux-perf qemu-system-x86 rt-tests" ]] || fail "locked: $locked"

refuses "$SETUP/unpack-linux-guest"
says 'run setup/fetch' 1
passes "$SETUP/fetch"
guest=$UNSPIN_CACHE/linux-guest

# A package that is damaged after it was checked: nothing may be left that looks whole.
library=$UNSPIN_CACHE/archive/libstone1_1.0_amd64.deb
cp "$library" "$BOX/library"
head -c 100000 "$BOX/library" >"$library"
refuses "$SETUP/unpack-linux-guest"
says 'cannot unpack libstone1' 1
[[ -z $(find "$guest" -mindepth 1) ]] || fail "left behind: $(find "$guest" -mindepth 1)"

cp "$BOX/library" "$library"
passes "$SETUP/unpack-linux-guest"
tree=$guest/current/tree
[[ $(wc -l <"$guest/current/busybox.files") == 1 ]] || fail "a static program needs: $(cat "$guest/current/busybox.files")"
for file in usr/bin/qemu-system-x86_64 usr/lib64/ld-linux-x86-64.so.2 usr/share/seabios/bios-256k.bin; do
    grep -qx "$file" "$guest/current/qemu-system-x86_64.files" || fail "QEMU's list lacks $file"
done
while read -r file; do [[ -f $tree/$file ]] || fail "$file is listed and not there"; done < <(cat "$guest"/current/*.files)
[[ ! -e $tree/usr/share/deep ]] || fail "what nobody needs was taken"
"$tree/usr/lib64/ld-linux-x86-64.so.2" --library-path "$tree/usr/lib/x86_64-linux-gnu" "$tree/usr/bin/perf" || fail "it does not run"
before=$(readlink "$guest/current").$(stat -c %Y.%i "$tree/usr/bin/perf")
passes "$SETUP/unpack-linux-guest"
[[ ! -s $BOX/out && $(readlink "$guest/current").$(stat -c %Y.%i "$tree/usr/bin/perf") == "$before" ]] || fail "a second run did something"

# Libraries that the packages do not have are told, not left to the machine's own.
program libstone1 "" usr/share/no-library /etc/os-release
publish
passes "$SETUP/update-lock"
passes "$SETUP/fetch"
refuses "$SETUP/unpack-linux-guest"
says 'lack a library of qemu-system-x86_64: libc.so.6' 1
