# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# A private view of the Debian archive: its own sources list and lists folder inside the cache, the machine's own
# mirror, proxies and credentials, apt's own check of the signatures against the Debian archive keyring. The
# system's apt state is neither read nor changed. Sourced after common.bash and lock.bash.

APT=$CACHE/apt
# Set by those who only want what the lock file names: its SHA-256 says which content is right, however old the
# signed index of a slow or frozen mirror. Who looks for something newer leaves it to the machine's configuration.
APT_EXPIRED_INDEX_IS_FINE=

# keyring: path of the Debian archive keyring (UNSPIN_KEYRING overrides it), or an error.
keyring() {
    local file
    for file in "${UNSPIN_KEYRING:-}" /usr/share/keyrings/debian-archive-keyring.{pgp,gpg}; do
        [[ -n $file ]] || continue
        [[ -r $file ]] && { echo "$file"; return; }
        [[ -z ${UNSPIN_KEYRING:-} ]] || break
    done
    die "no Debian archive keyring at $file, so no signature can be checked; apt-get install debian-archive-keyring"
}

# mirrors: base URIs that may be Debian mirrors, the likeliest first, one per line. apt itself reads the machine's
# configuration (both formats, mirror+file and all); the suite of this release comes first, security archives,
# which carry no other suites, and CD-ROMs never come.
mirrors() {
    local codename empty
    if [[ -n ${UNSPIN_MIRROR:-} ]]; then
        echo "${UNSPIN_MIRROR%/}"
        return
    fi
    codename=$(os_release VERSION_CODENAME)
    empty=$(mktemp -d)
    apt-get -o Dir::State::lists="$empty" -o Acquire::Languages=none update --print-uris 2>/dev/null |
        awk -F "'" -v codename="$codename" '
            match($2, /\/dists\/[^\/]+\/main\/binary-[^\/]+\/Packages/) {
                base = substr($2, 1, RSTART - 1)
                split(substr($2, RSTART + 7), part, "/")
                if (base ~ /^cdrom:/ || part[1] ~ /-security$/ || seen[base]++) next
                print (part[1] == codename ? 0 : 2) + (base ~ /\/debian$/ ? 0 : 1), NR, base
            }' | sort -k 1,1n -k 2,2n | cut -d ' ' -f 3-
    rm -rf -- "$empty"
}

# apt_private COMMAND...: apt-get or apt-cache with the private configuration and nothing of the system's state.
apt_private() {
    local tool=$1
    shift
    "$tool" -q -c "$APT/apt.conf" "$@"
}

# apt_configure MIRROR ROWS: writes the private configuration for the suites and kinds that the file ROWS names.
apt_configure() {
    local ring suite architecture kind sandbox=
    ring=$(keyring)
    make_folder "$APT"/{lists/partial,cache/archives/partial,parts,state}
    # The unprivileged user _apt usually cannot enter a home folder; apt would say so at each file.
    ((EUID != 0)) || sandbox='APT::Sandbox::User "root";'
    cut -f 1,4 -- "$2" | sort -u | while read -r suite architecture; do
        kind=deb && [[ $architecture != source ]] || kind=deb-src
        echo "$kind [signed-by=$ring arch=amd64] $1 $suite main"
    done >"$APT/sources.list.new"
    cat >"$APT/apt.conf" <<CONF
#clear APT::Update;
#clear DPkg;
#clear APT::Default-Release;
#clear APT::Architectures;
#clear Acquire::IndexTargets::deb::DEP-11;
#clear Acquire::IndexTargets::deb::DEP-11-icons;
#clear Acquire::IndexTargets::deb::Translations;
#clear Acquire::IndexTargets::deb::Contents-deb;
APT::Update::Error-Mode "any";
APT::Architecture "amd64";
APT::Get::AllowUnauthenticated "false";
Acquire::AllowInsecureRepositories "false";
Acquire::AllowWeakRepositories "false";
Acquire::AllowDowngradeToInsecureRepositories "false";
Acquire::Languages "none";
${APT_EXPIRED_INDEX_IS_FINE:+Acquire::Check-Valid-Until "false";}
Acquire::Retries "3";
Dir::Etc::sourcelist "$APT/sources.list";
Dir::Etc::sourceparts "$APT/parts";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "$APT/parts";
Dir::State "$APT/state";
Dir::State::lists "$APT/lists";
Dir::State::status "/dev/null";
Dir::Cache "$APT/cache";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
$sandbox
CONF
    # Indexes that an interrupted run left are good for a day, when they cover all that is wanted now.
    if [[ -f $APT/sources.list && -z $(find "$APT/indexed" -mmin +1440 2>&1) ]] &&
        ! grep -qvxFf "$APT/sources.list" "$APT/sources.list.new"; then
        rm -f -- "$APT/sources.list.new"
    else
        rm -rf -- "$APT/lists" "$APT/indexed" "$APT"/index.*
        make_folder "$APT/lists/partial"
        mv -f -- "$APT/sources.list.new" "$APT/sources.list"
    fi
}

# apt_failed WHAT LOG: ends with the message that fits what apt wrote into LOG, after removing what is half done.
# A download that was cut short stays, apt goes on with it.
apt_failed() {
    if grep -qiE 'no space left|write error|disk quota' "$2" || disk_is_full "$APT"; then
        rm -rf -- "$APT" "$ARCHIVE"/*.new
        die "disk full while fetching $1 into $CACHE (what was half fetched is removed);" \
            "free some, or move the cache with UNSPIN_CACHE=<folder>"
    elif grep -qiE 'hash sum mismatch|unexpected size|different filesize' "$2"; then
        rm -rf -- "$APT"
        die "a package or index has the wrong hash or size: $(grep -iEm 1 'mismatch|unexpected size|different filesize' "$2");" \
            "the bad file is removed; a proxy or mirror in between may be broken: try again, or UNSPIN_MIRROR=<another mirror>"
    elif grep -qE 'NO_PUBKEY|not signed|GPG error|InRelease.*signature|signature.*InRelease' "$2"; then
        die "the signature of the archive cannot be checked: $(grep -Em 1 'NO_PUBKEY|not signed|GPG error|signature' "$2");" \
            "a newer debian-archive-keyring may be needed (apt-get install debian-archive-keyring)"
    fi
    ! grep -q '404' "$2" || rm -f -- "$APT/indexed"
    die "cannot fetch $1: $(grep -m 1 '^E:' "$2" || tail -n 1 "$2");" \
        "is the network there (http_proxy, apt's proxies)? Run it again: it goes on where it stopped"
}

# apt_update ROWS: reads the signed indexes that the file ROWS needs, from the first mirror that has them. Nothing
# is fetched when an earlier, interrupted run left them whole.
apt_update() {
    local mirror found='' log=$CACHE/apt-update.log
    while read -r mirror; do
        found=1
        apt_configure "$mirror" "$1"
        [[ ! -f $APT/indexed ]] || return 0
        if apt_private apt-get update >"$log" 2>&1; then
            touch "$APT/indexed"
            rm -f -- "$log"
            return 0
        fi
        grep -qE '404|does not have a Release file' "$log" || break
    done < <(mirrors)
    [[ -n $found ]] || die "no Debian mirror in this machine's apt configuration;" \
        "set UNSPIN_MIRROR=<base URI of one, as in sources.list>"
    apt_failed "the signed indexes of $(cut -f 1 -- "$1" | sort -u | paste -sd ' ') from $mirror" "$log"
}

# index_date SUITE: the date in its signed index.
index_date() { sed -n '/^Date: /{s///p;q}' "$APT"/lists/*_dists_"$1"_InRelease; }

# index SUITE ARCHITECTURE: path of a table made from the signed index: PACKAGE VERSION FILE BYTES SHA256 DEPENDS.
index() {
    local table=$APT/index.$1.$2 created=Packages files
    [[ $2 != source ]] || created=Sources
    if [[ ! -s $table || $APT/indexed -nt $table ]]; then
        # shellcheck disable=SC2016 # apt expands it
        files=$(apt_private apt-get indextargets --format '$(FILENAME)' "Created-By: $created" "Release: $1")
        [[ -n $files ]] || die "the mirror has no $created index of the suite '$1'"
        # shellcheck disable=SC2086 # one path per word; the cache folder's own blanks are refused in setup/fetch
        /usr/lib/apt/apt-helper cat-file $files | awk -v OFS='\t' '
            function base(path) { sub(/.*\//, "", path); return path }
            /^Package: / { package = $2 }
            /^Version: / { version = $2 }
            /^Filename: / { file = base($2) }
            /^Size: / { bytes = $2 }
            /^SHA256: / { sha256 = $2 }
            /^Depends: / { depends = substr($0, 10) }
            /^[^ ]/ { in_sums = /^Checksums-Sha256:/ }
            /^ / && in_sums { sums[++count] = $3 OFS $2 OFS $1 }
            /^$/ {
                if (file) print package, version, file, bytes, sha256, depends
                for (i = 1; i <= count; i++) print package, version, sums[i], ""
                package = version = file = bytes = sha256 = depends = ""; count = 0
            }' >"$table.new" || apt_failed "the index of $1" /dev/null
        mv -f -- "$table.new" "$table"
    fi
    echo "$table"
}

# newest TABLE PACKAGE: its highest version there; empty when it has none.
newest() {
    local version best=''
    while read -r version; do
        [[ -n $best ]] && ! dpkg --compare-versions "$version" gt "$best" || best=$version
    done < <(awk -F '\t' -v package="$2" '$1 == package { print $2 }' "$1" | sort -u)
    echo "$best"
}

# closure TABLE PACKAGE VERSION KEEP: PACKAGE VERSION pairs reached by dependencies on one exact version, whose
# names match the regular expression KEEP.
closure() {
    awk -F '\t' -v OFS='\t' -v package="$2" -v version="$3" -v keep="$4" '
        { depends[$1, $2] = $6 }
        END {
            queue[last = 1] = package SUBSEP version
            for (i = 1; i <= last; i++) {
                split(queue[i], pair, SUBSEP)
                if (pair[1] ~ keep) print pair[1], pair[2]
                n = split(depends[pair[1], pair[2]], wants, / *, */)
                for (j = 1; j <= n; j++)
                    if (match(wants[j], /^[^ |]+ \(= [^)]+\)$/)) {
                        split(wants[j], word, / \(= |\)/)
                        next_one = word[1] SUBSEP word[2]
                        if (!known[next_one]++) queue[++last] = next_one
                    }
            }
        }' "$1" | sort -u
}

# libraries TABLE PACKAGES KEEP: PACKAGE VERSION pairs of the newest PACKAGES (apart by commas) and of what they reach by
# dependencies, of alternatives by the first, through packages whose names match the regular expression KEEP. A package
# that cannot be had is given without a version.
libraries() {
    local package versions version
    awk -F '\t' -v OFS='\t' -v packages="$2" -v keep="$3" '
        !($1 in depends) { depends[$1] = $6 }
        $2 != version[$1] { version[$1] = $2; versions[$1]++ }
        END {
            last = split(packages, queue, ",")
            for (i = 1; i <= last; i++) known[queue[i]] = 1
            for (i = 1; i <= last; i++) {
                print queue[i], versions[queue[i]] + 0, version[queue[i]]
                n = split(depends[queue[i]], wants, / *, */)
                for (j = 1; j <= n; j++) {
                    split(wants[j], word, /[ |(:]/)
                    if (word[1] ~ keep && word[1] in depends && !known[word[1]]++) queue[++last] = word[1]
                }
            }
        }' "$1" | while IFS=$'\t' read -r package versions version; do
        ((versions < 2)) || version=$(newest "$1" "$package")
        printf '%s\t%s\n' "$package" "$version"
    done
}

# resolve_newest ROLE LOCK: rows of the newest that the archive has for ROLE, as its want line in LOCK says.
resolve_newest() {
    local suite kind package keep table version pairs architecture=amd64
    IFS=$'\t' read -r suite kind package keep < <(wanted "$1" "$2") || die "$2 has no want line for the role '$1'"
    [[ $kind != source ]] || architecture=source
    table=$(index "$suite" "$architecture")
    if [[ $kind == libraries ]]; then
        pairs=$(libraries "$table" "$package" "$keep")
        package=$(awk -F '\t' '!$2 { print $1; exit }' <<<"$pairs")
    else
        version=$(newest "$table" "$package")
        [[ -z $version ]] || pairs=$package$'\t'$version package=
    fi
    [[ -z $package ]] || die "the suite '$suite' has no package '$package' any more; the lock file's want line for '$1' is out of date"
    [[ $kind != closure ]] || pairs=$(closure "$table" "${pairs%%$'\t'*}" "$version" "$keep")
    printf '%s\n' "$pairs" |
        awk -F '\t' -v OFS='\t' -v suite="$suite" -v architecture="$architecture" -v role="$1" '
            NR == FNR { take[$1, $2]; next }
            ($1, $2) in take && $3 !~ /\.asc$/ { print suite, $1, $2, architecture, $3, $4, $5, role }' - "$table" | sort
}
