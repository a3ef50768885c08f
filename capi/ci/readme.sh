#!/usr/bin/env bash
# readme.sh: the examples in README.md and CPP.md compile without a warning and run, as they are there: as a program if
# they have a main, or else as the inside of one. Takes some seconds.
source "$(dirname "$0")/common.bash"
need gcc gcc
need g++ g++

library=$(library)
rm -f "$work"/example* /dev/shm/name
trap 'rm -f /dev/shm/name' EXIT
# examples FILE LANGUAGE: writes each to a file, and prints their names.
examples() {
    awk -v language="$2" -v to="$work/example" '
        $0 == "```" language { open = 1; text = ""; next }
        /^```/ && open {
            open = 0
            count++
            name = to count "." language
            if (text !~ /main\(/) text = "int main(void) {\n" text "return 0;\n}\n"
            headers = language == "c" ? "#include <stdio.h>\n#include <nbbs.h>\n" : \
                "#include <nbbs.hpp>\n#include <string>\n#include <unordered_map>\n#include <vector>\n"
            printf "%s%s", headers, text >name
            close(name)
            print name
        }
        open { text = text $0 "\n" }' "$1"
}
tried=0
for example in $(examples capi/README.md c) $(examples capi/CPP.md cpp); do
    case $example in *.c) compiler=(gcc -std=c11) ;; *) compiler=(g++ -std=c++17) ;; esac
    "${compiler[@]}" -O1 -Wall -Wextra -Wpedantic -Werror -Icapi/include "$example" "$library" -o "${example%.*}" \
        "${system_libraries[@]}" 2>"$work/said" || { log "does not compile: $(cat "$example" "$work/said")"; exit 1; }
    [ "$(status_of "${example%.*}")" = 0 ] || { log "fails: $(cat "$example" "$work/said")"; exit 1; }
    tried=$((tried + 1))
done
[ $tried -ge 8 ] || { log "only $tried examples were found"; exit 1; }
log "$tried examples run"
