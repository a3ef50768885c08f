#!/usr/bin/env bash
# cpp.sh: nbbs.hpp compiles, without a warning, as C++17, 20 and 23, with gcc and clang, and freestanding; the C++ suite;
# then with the headers broken on purpose, each time in one place of verify/mutants/cpp.list: the suite must fail. About a
# minute.
source "$(dirname "$0")/common.bash"
need g++ g++
need clang++ clang
need /usr/include/gtest/gtest.h libgtest-dev

warnings=(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror)
instances='template class nbbs::arena<int>; template class nbbs::allocator<int>; template class nbbs::result<int>;
           constinit_ nbbs::buddy global;'
for compiler in g++ clang++; do
    for standard in c++17 c++20 c++2b; do
        [ $standard = c++17 ] && constinit= || constinit=constinit
        printf '#include <nbbs.hpp>\n%s\n' "$instances" | "$compiler" -x c++ -std=$standard "${warnings[@]}" \
            -Dconstinit_=$constinit -Icapi/include -fsyntax-only -
    done
    # Every header by itself; what kernels may use.
    for header in capi/include/nbbs/*.hpp; do
        echo "#include <nbbs/${header##*/}>" |
            "$compiler" -x c++ -std=c++17 "${warnings[@]}" -Icapi/include -fsyntax-only -
    done
    for flags in "-fno-exceptions -fno-rtti" "-ffreestanding -fno-exceptions -fno-rtti"; do
        echo '#include <nbbs.hpp>
              nbbs::buddy pages;
              nbbs::block take();
              nbbs::block take() { return nbbs::block::of_order(pages, 3); }' |
            "$compiler" -x c++ -std=c++17 $flags "${warnings[@]}" -Icapi/include -fsyntax-only -
    done
done

library=$(library)
"$(suite cpp g++ "$library" plain -O1 "${warnings[@]}")" --gtest_brief=1 >&2

# try NAME: the suite that has to notice a mutant, with the headers of a copy that has it.
list=verify/mutants/cpp.list
try() {
    local name=$1 copy=$work/mutants/$1 by
    by=$(awk -v RS= -v name="$1" '$0 ~ "(^|\n)name: " name "(\n|$)"' "$list" | sed -n 's/^by: *//p')
    CRATE=capi verify/mutate.sh "$list" "$name" "$copy"
    if ! g++ -std=c++17 -O0 -w -I"$copy/capi/include" "$copy/capi/tests/cpp/$by.cc" "$library" -o "$copy/suite" \
        -lgtest -lgtest_main "${system_libraries[@]}"; then
        log "mutant $name does not build"
    elif (timeout 60 "$copy/suite" --gtest_brief=1) >/dev/null 2>&1; then
        log "mutant $name goes UNNOTICED"
    else
        log "mutant $name: caught"
        return
    fi
    return 1
}
export -f try log
export work list library step
names=$(verify/mutate.sh "$list")
xargs -P 2 -I NAME bash -c 'system_libraries=($1); try NAME' try "${system_libraries[*]}" <<<"$names"
