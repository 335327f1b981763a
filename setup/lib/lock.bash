# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# The lock file (setup/packages.lock) and the manifest (archive/manifest.tsv in the cache), which says what was
# really fetched and has the same columns. Sourced after common.bash.
#
# Lines, tab separated:
#   # want   ROLE SUITE KIND PACKAGE KEEP REASON   what update-lock looks up. KIND: binary, source, or closure:
#            the packages reached from PACKAGE by dependencies on one exact version whose names match KEEP. Or libraries:
#            the packages PACKAGE (several, apart by commas) and those they reach by any dependency through names that
#            match KEEP; of alternatives the first.
#   # index  SUITE ARCHITECTURE BYTES              size of the signed index that must be read to fetch anything
#   SUITE PACKAGE VERSION ARCHITECTURE FILE BYTES SHA256 ROLE     one file; ARCHITECTURE: amd64 or source

# lock_rows FILE: the rows that name files.
lock_rows() { grep -v '^#' -- "$1" || true; }

# lock_check FILE: ends with the line number when a line is malformed.
lock_check() {
    local complaint
    [[ -r $1 ]] || die "the lock file $1 is missing; it belongs to the repository: git checkout -- setup/packages.lock"
    complaint=$(awk -F '\t' '
        function bad(why) { printf "line %d: %s", NR, why; exit }
        /^# want\t/ { if (NF != 7 || $4 !~ /^(binary|source|closure|libraries)$/) bad("a want line needs 7 columns"); next }
        /^# index\t/ { if (NF != 4 || $4 !~ /^[0-9]+$/) bad("an index line needs 4 columns"); next }
        /^#/ { next }
        NF != 8 { bad("8 columns needed, " NF " found") }
        $1 !~ /^[a-z][a-z0-9-]*$/ { bad("suite: " $1) }
        $2 !~ /^[a-z0-9][a-z0-9.+-]+$/ { bad("package: " $2) }
        $3 !~ /^[0-9][A-Za-z0-9.+:~-]*$/ { bad("version: " $3) }
        $4 !~ /^(amd64|source)$/ { bad("architecture: " $4) }
        $5 !~ /^[A-Za-z0-9][A-Za-z0-9.+:~_%-]*$/ { bad("file: " $5) }
        $6 !~ /^[1-9][0-9]*$/ { bad("bytes: " $6) }
        $7 !~ /^[0-9a-f]+$/ || length($7) != 64 { bad("SHA-256: " $7) }
        $8 !~ /^[a-z][a-z0-9-]*$/ { bad("role: " $8) }
        seen[$5]++ { bad("file named twice: " $5) }
        { rows++ }
        END { if (!rows) print "no file is named in it" }' "$1")
    [[ -z $complaint ]] || die "the lock file $1 is malformed, $complaint; git checkout -- setup/packages.lock, or make update-lock"
}

# wanted ROLE FILE: SUITE KIND PACKAGE KEEP of the role, tab separated; empty when unknown.
wanted() { awk -F '\t' -v OFS='\t' -v role="$1" '/^# want\t/ && $2 == role { print $3, $4, $5, $6 }' "$2"; }

# roles FILE: every role that its rows name, once, in order.
roles() { lock_rows "$1" | awk -F '\t' '!seen[$8]++ { print $8 }'; }

# rows_missing FILE: those rows of FILE whose file is not in the archive folder with its SHA-256. Reads every file.
rows_missing() {
    local suite package version architecture file bytes sha256 role
    while IFS=$'\t' read -r suite package version architecture file bytes sha256 role; do
        [[ -f $ARCHIVE/$file && $(file_bytes "$ARCHIVE/$file") == "$bytes" && $(sha256_of "$ARCHIVE/$file") == "$sha256" ]] ||
            printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$suite" "$package" "$version" "$architecture" "$file" "$bytes" "$sha256" "$role"
    done < <(lock_rows "$1")
}

# rows_bytes: the sum of the column BYTES of standard input.
rows_bytes() { awk -F '\t' '{ sum += $6 } END { printf "%d", sum }'; }

# index_bytes ROWS LOCK: the size of the indexes that the rows in the file ROWS need, as LOCK recorded it.
index_bytes() {
    awk -F '\t' 'NR == FNR { if (/^# index\t/) size[$2 "/" $3] = $4; next }
        !seen[$1 "/" $4]++ { sum += size[$1 "/" $4] } END { printf "%d", sum }' "$2" "$1"
}

# manifest_is_current: true when the manifest was made from this very lock file. Does not look at the files.
manifest_is_current() {
    [[ -f $MANIFEST && $(head -n 1 "$MANIFEST") == "# lock $(sha256_of "$LOCK_FILE")" ]]
}

# manifest_write ROWS: records the rows in the file ROWS as what is in the archive folder now.
manifest_write() {
    { echo "# lock $(sha256_of "$LOCK_FILE")" && cat -- "$1"; } >"$MANIFEST.new" && commit_file "$MANIFEST.new" "$MANIFEST"
}

# manifest_rows ROLE: the rows fetched for ROLE; ends when there are none.
manifest_rows() {
    local rows
    [[ -f $MANIFEST ]] || die "nothing was fetched into $ARCHIVE yet; run setup/fetch"
    rows=$(lock_rows "$MANIFEST" | awk -F '\t' -v role="$1" '$8 == role')
    [[ -n $rows ]] || die "$MANIFEST names nothing for '$1'; run setup/fetch"
    printf '%s\n' "$rows"
}
