# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# Nothing is taken from an archive whose signature cannot be checked: no keyring, another key, an altered index.
# shellcheck source-path=SCRIPTDIR source=lib.bash
. "$(dirname "$0")/lib.bash"

small_archive
release=$BOX/www/dists/stone/InRelease

refuses env UNSPIN_KEYRING=/nonexistent "$SETUP/fetch"
says 'no Debian archive keyring at /nonexistent' 1

# Signed, but not by the key that is trusted.
mv "$BOX/gpg" "$BOX/gpg.trusted"
mv "$BOX/keyring.gpg" "$BOX/trusted.gpg"
publish
export UNSPIN_KEYRING=$BOX/trusted.gpg
refuses "$SETUP/fetch"
says 'signature of the archive cannot be checked' 1

# Signed by the right key, altered afterwards.
gpgconf --homedir "$BOX/gpg" --kill all
rm -rf "$BOX/gpg"
mv "$BOX/gpg.trusted" "$BOX/gpg"
publish
passes "$SETUP/fetch"
rm -rf "$UNSPIN_CACHE"
sed -i 's/^Origin: Test/Origin: Tset/' "$release"
refuses "$SETUP/fetch"
says 'signature of the archive cannot be checked' 1
[[ -z $(find "$UNSPIN_CACHE" -name '*.deb') ]] || fail "a package was taken all the same"

# Not signed at all.
sed -i -e '/^-----BEGIN PGP SIGNATURE/,$d' -e '/^-----BEGIN PGP SIGNED/,/^$/d' "$release"
refuses "$SETUP/fetch"
[[ -z $(find "$UNSPIN_CACHE" -name '*.deb') ]] || fail "a package was taken from an unsigned archive"
