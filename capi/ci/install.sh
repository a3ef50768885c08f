#!/usr/bin/env bash
# install.sh: what `cargo cinstall` installs is complete, and has the files that CMake installs. With nothing else,
# examples/c builds through pkg-config, as C99 and with the shared and the static library. Takes half a minute, and two
# more if cargo-c is missing.
source "$(dirname "$0")/common.bash"
need gcc gcc
need cmake cmake
need_cargo_c
prefix=$target/installed
rm -rf "$prefix"
cargo cinstall --package nbbs-c --features shared --release --prefix "$prefix" --libdir "$prefix/lib" >&2
diff <(files "$prefix") <(files "$(installed_by_cmake)") >&2 || { log "CMake installs other files than cargo-c"; exit 1; }
for file in include/nbbs.h lib/libnbbs.a lib/libnbbs.so lib/pkgconfig/nbbs.pc; do
    [ -e "$prefix/$file" ] || { log "$file is missing"; exit 1; }
done
has_soname "$prefix"
declared=$(grep -oE '\b(nb|nbbs)_[a-z_]+\(' capi/include/nbbs.h | tr -d '(' | grep -vxE 'nbbs_(hook|visit)' | sort -u)
exported=$(nm --dynamic --defined-only "$prefix/lib/libnbbs.so" | awk '{ print $3 }' | sed 's/@.*//' | sort -u)
for name in $declared; do
    grep -qx "$name" <<<"$exported" || { log "$name is declared, and not in the shared library"; exit 1; }
done
others=$(grep -vE '^nb(bs)?_' <<<"$exported") || true
[ -z "$others" ] || { log "the shared library exports more than its own: $others"; exit 1; }

# Away from the repository, with only the installed package.
cp -R capi/examples/c "$work/examples" && cd "$work/examples"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
for example in *.c; do
    gcc -std=c11 -O2 -Wall -Wextra -Wpedantic -Werror "$example" $(pkg-config --cflags --libs nbbs) -o shared
    LD_LIBRARY_PATH=$prefix/lib ./shared >&2
    gcc -std=c11 -O2 -Wall -Wextra -Wpedantic -Werror "$example" $(pkg-config --cflags nbbs) \
        $(pkg-config --static --libs nbbs | sed "s|-lnbbs|$prefix/lib/libnbbs.a|") -o static
    ./static >&2
done
