#!/usr/bin/env bash
# cpp.sh: nbbs.hpp compiles, without a warning, as C++17, 20 and 23, with gcc and clang, and freestanding. Wrong code
# does not compile, and the message says why. Runs the C++ suite; then again with the headers broken on purpose, each
# time in one place of verify/mutants/cpp.list: the suite must fail. Takes about a minute.
source "$(dirname "$0")/common.bash"
need g++ g++
need clang++ clang
need /usr/include/gtest/gtest.h libgtest-dev

warnings=(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wundef -Werror)
instances='template class nbbs::pool<int>; template class nbbs::threaded_pool<int>;
           template class nbbs::allocator<int>; template class nbbs::heap_allocator<int>; template class nbbs::result<int>;
           constinit_ nbbs::buddy global;'
for compiler in $(printf '%s\n' g++ clang++ | share); do
    for standard in c++17 c++20 c++2b; do
        [ $standard = c++17 ] && constinit= || constinit=constinit
        printf '#include <nbbs.hpp>\n%s\n' "$instances" | "$compiler" -x c++ -std=$standard "${warnings[@]}" \
            -Dconstinit_=$constinit -Icapi/include -fsyntax-only -
    done
    # Every header by itself, and those that kernels may use.
    for header in capi/include/nbbs/*.hpp; do
        echo "#include <nbbs/${header##*/}>" |
            "$compiler" -x c++ -std=c++17 "${warnings[@]}" -Icapi/include -fsyntax-only -
    done
    for flags in -DNBBS_WITHOUT_SHARED_MEMORY "-fno-exceptions -fno-rtti" "-ffreestanding -fno-exceptions -fno-rtti"; do
        echo '#include <nbbs.hpp>
              nbbs::buddy pages;
              nbbs::block take();
              nbbs::block take() { return nbbs::block::of_order(pages, 3); }' |
            "$compiler" -x c++ -std=c++17 $flags "${warnings[@]}" -Icapi/include -fsyntax-only -
    done
done

# refused WORDS CODE [STANDARD]: whether code does not compile, with such a message, although everything before it does.
refused() {
    local before='#include <nbbs.hpp>
                  void f(const nbbs::buddy& pages, std::size_t cpu) {'
    ! echo "$before $2 }" | g++ -x c++ -std="${3:-c++17}" -Icapi/include -fsyntax-only - >"$work/said" 2>&1 &&
        grep -qE "$1" "$work/said" || { log "compiles, or does not say '$1': $2"; cat "$work/said" >&2; exit 1; }
}
echo '#include <nbbs.hpp>
      void f(const nbbs::buddy& pages) { auto b = nbbs::block::of_order(pages, 3); nbbs::memory_resource r(pages);
          nbbs::heap heap(64); nbbs::heap_resource other(heap); nbbs::heap_allocator<int> a(heap); }' |
    g++ -x c++ -std=c++17 -Icapi/include -fsyntax-only -
deleted=('nbbs::memory_resource r(nbbs::buddy(64));' 'nbbs::allocator<int> a(nbbs::buddy(64));'
    'nbbs::heap_resource r(nbbs::heap(64));' 'nbbs::heap_allocator<int> a(nbbs::heap(64));')
for of in 'of_order(T, 3)' 'try_of_order(T, 3)' 'of_units(T, 3)' 'try_of_units(T, 3)' 'of(T, {})' 'try_of(T, {})' \
    'of_bytes(T, 3)' 'try_of_bytes(T, 3)' 'from_index(T, 3)' 'try_from_index(T, 3)'; do
    deleted+=("static_cast<void>(nbbs::block::${of/T/pages.on(cpu)});")
done
printf '%s\n' "${deleted[@]}" | share >"$work/deleted"
while read -r code; do refused 'deleted function' "$code"; done <"$work/deleted"
refused 'takes C\+\+17' '' c++14

library=$(library)
passes "the C++ suite" "$(suite cpp g++ "$library" plain -O1 "${warnings[@]}")"

# The suite that has to notice a mutant, with the mutant's headers. GoogleTest's header is compiled once for all.
mutant=(g++ -std=c++17 -O0 -w -fmax-errors=3)
echo '#include <gtest/gtest.h>' >"$work/gtest.h"
"${mutant[@]}" "$work/gtest.h" -o "$work/gtest.h.gch"
build_mutant() {
    "${mutant[@]}" -include "$work/gtest.h" -Icapi/include "capi/tests/cpp/$(of_mutant "$1" by).cc" \
        "$library" -o "$work/broken" -lgtest -lgtest_main "${system_libraries[@]}"
}
catches() { fails "$work/broken" --gtest_brief=1; }
catch_mutants cpp
