#!/usr/bin/env bash
# Runs programs of others with nbbs as their malloc: each must print what it prints without, and leave the heap in
# order. What has a fault must be noticed, and so must the mutants. A few programs run on other processors, under qemu.
# Installs the programs from Debian's packages. Takes three minutes, one and a half if told a share.
cd "$(dirname "$0")/.."
source verify/check.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tried=0 noticed=()

failed() { tail -n 20 "$work/said" "$work/report" 2>/dev/null; echo "malloc: $*"; exit 1; }

# need COMMAND PACKAGE
need() {
    command -v "$1" >/dev/null || verify/install.sh debian "$2" >"$work/said" 2>&1 || failed "$2 cannot be installed"
}
need python3 python3
need sqlite3 sqlite3
need g++ g++
need git git
need perl perl
need xz xz-utils
need php php-cli

# build FEATURES [TARGET]: builds the library, and prints its path.
build() {
    cargo build --quiet --release --package nbbs-malloc --target-dir "$target/malloc" ${1:+--features "$1"} \
        ${2:+--target "$2"} && echo "$target/malloc/${2:+$2/}release/libnbbs_malloc.so"
}

# preloaded LIBRARY COMMAND...: runs a command with this malloc, and has all its processes report. If the command is
# qemu's, this applies to the program that it runs.
preloaded() {
    local all=(LD_PRELOAD="$1" NBBS_MALLOC_REPORT="$work/report" NBBS_MALLOC_AUDIT=1 "${settings[@]}")
    case $2 in qemu-*) all=(QEMU_SET_ENV="$(IFS=,; echo "${all[*]}")") ;; esac
    rm -f "$work/report"
    env "${all[@]}" timeout 300 "${@:2}"
}
settings=()

# finds_its_word LIBRARY: whether a thread's word is found without a call of the loader, which may call `malloc`.
finds_its_word() { [[ $(readelf --relocs --wide "$1") =~ _TPREL|_TPOFF ]] || failed "$1 calls the loader"; }

# same LIBRARY COMMAND...: whether a command prints the same with this malloc as without.
same() {
    timeout 300 "${@:2}" >"$work/expected" 2>&1 || failed "without nbbs: ${*:2}"
    preloaded "$@" >"$work/said" 2>&1 || failed "fails with nbbs: ${*:2}"
    cmp "$work/expected" "$work/said" || failed "prints something else with nbbs: ${*:2}"
    in_order "${*:2}"
    tried=$((tried + 1))
}
# in_order COMMAND: whether the heaps of all of its processes that reported are; those that end by `_exit` do not.
in_order() {
    [ -s "$work/report" ] || failed "no report of $1"
    ! grep -vq '; 0 frees refused; in order$' "$work/report" || failed "not in order: $1"
}

# prefers LIBRARY COMPILER [QEMU...]: whether libraries that are loaded with RTLD_DEEPBIND have this malloc, both the
# first one and the next, and are looked for where their caller says.
prefers() {
    mkdir -p "$work/libraries"
    for name in one two; do
        "$2" -O1 -shared -fPIC -DLIBRARY malloc/programs/deepbind.c -o "$work/libraries/lib$name.so"
    done
    "$2" -O1 malloc/programs/deepbind.c -Wl,--enable-new-dtags,-rpath,"$work/libraries" -o "$work/deepbind"
    preloaded "$1" "${@:3}" "$work/deepbind" libone.so libtwo.so >"$work/said" 2>&1 &&
        [ "$(cat "$work/said")" = $'112\n112' ] || failed "libraries do not have the malloc of $1"
    in_order "a program that loads libraries"
}

query="create table t(a, b); with recursive c(x) as (select 1 union all select x+1 from c where x < 100000)
    insert into t select x, hex(x*x) from c; create index i on t(b); select count(*), max(a) from t where b like '3%'"

nbbs=$(build "")
finds_its_word "$nbbs"
same "$nbbs" env PYTHONMALLOC=malloc python3 malloc/programs/objects.py
same "$nbbs" sqlite3 :memory: "$query"
same "$nbbs" git log --stat --max-count=30
same "$nbbs" sort --parallel=4 -S 1M verify/mutants/heap.list
same "$nbbs" perl -ne '$n{$_}++ for split /\W+/; END { print "$_ $n{$_}\n" for sort keys %n }' README.md
same "$nbbs" php -r 'foreach (range(1, 200000) as $n) $all["k$n"] = str_repeat("x", $n % 50);
    ksort($all); echo md5(json_encode($all)), count(json_decode(json_encode($all), true)), preg_match("/x+/", "axx");'
same "$nbbs" bash -c "xz -T2 --block-size=100000 -c traces/*.* | xz -d -T2 | cksum"
same "$nbbs" g++ -O1 -std=c++17 -pthread malloc/programs/words.cpp -o "$work/words"
same "$nbbs" "$work/words"
g++ -O1 -std=c++17 -pthread malloc/programs/random_sizes.cpp -o "$work/random_sizes"
same "$nbbs" "$work/random_sizes" 4 1000000
# In little memory, which grows; and in address space that the system counts.
settings=(NBBS_MALLOC_MIB=1)
same "$nbbs" "$work/words"
same "$nbbs" sqlite3 :memory: "$query"
settings=()
same "$nbbs" bash -c "ulimit -v 700000; python3 malloc/programs/objects.py"
preloaded "$nbbs" bash -c "ulimit -v 300000; exec python3 -c 'print(len([bytes(1 << 20) for _ in range(1000)]))'" \
    >"$work/said" 2>&1 && failed "has more memory than there is"
grep -q '^MemoryError' "$work/said" || failed "no MemoryError"

gcc -O1 malloc/programs/wrong.c -o "$work/wrong"
wrong=("$work/wrong")
# exits NUMBER WORDS LIBRARY FAULT: whether the program with this fault ends with this status, and says or reports the
# words.
exits() {
    local status=0
    [ "$4" = nothing ] || noticed+=("$4")
    { preloaded "$3" "${wrong[@]}" "$4" >"$work/said" 2>&1 || status=$?; } 2>/dev/null
    touch "$work/report"
    [ $status = "$1" ] && grep -q -- "$2" "$work/report" "$work/said" || failed "$4: status $status"
}
exits 0 '^112$' "$nbbs" nothing
prefers "$nbbs" gcc
exits 134 '^nbbs: free: nothing is allocated at 0x' "$nbbs" double
exits 134 '^nbbs: free: address 0x.* is inside what begins at 0x' "$nbbs" inside
# Linked, without LD_PRELOAD: also a program that names none of the functions.
gcc -O1 malloc/programs/wrong.c "${nbbs%.so}.a" -lpthread -ldl -lm -o "$work/linked"
[ "$("$work/linked")" = 112 ] || failed "a program that is linked with the library does not use it"
g++ -O1 malloc/programs/only_new.cpp -Wl,-u,malloc "${nbbs%.so}.a" -lpthread -ldl -lm -o "$work/linked"
rm -f "$work/report"
NBBS_MALLOC_REPORT=$work/report NBBS_MALLOC_AUDIT=1 "$work/linked"
in_order "a program that is linked with the library, and has only new"
# What cannot be done is said, with the name of what was asked for.
says() { [ "$("$work/linked" 2>&1)" = "nbbs: $1" ] || failed "does not say: $1"; }
NBBS_MALLOC_MIB=5MiB says "NBBS_MALLOC_MIB=5MiB: expected a whole number from 1 to 4194304"
NBBS_MALLOC_REPORT=/no/folder says "NBBS_MALLOC_REPORT=/no/folder: cannot be written to: no such file or directory, errno 2"

hardened=$(build poison,quarantine,shuffle)
same "$hardened" env PYTHONMALLOC=malloc python3 malloc/programs/objects.py
same "$hardened" "$work/words"
exits 0 ': .*; 0 frees refused; in order$' "$hardened" nothing
exits 0 ' 1 SLOTS WRITTEN TO AFTER THEIR FREE' "$hardened" write

# Other processors, under qemu: the word of a thread is read in their assembly.
for processor in $(printf '%s\n' aarch64 riscv64 | share); do
    need qemu-$processor qemu-user
    need $processor-linux-gnu-g++ g++-$processor-linux-gnu
    rust=${processor/riscv64/riscv64gc}-unknown-linux-gnu
    export "CARGO_TARGET_$(tr a-z- A-Z_ <<<"$rust")_LINKER=$processor-linux-gnu-gcc"
    verify/install.sh rustup target add "$rust" >"$work/said" 2>&1 || failed "no Rust for $rust"
    other=$(build "" "$rust") qemu=(qemu-$processor -L "/usr/$processor-linux-gnu")
    finds_its_word "$other"
    $processor-linux-gnu-gcc -O1 malloc/programs/wrong.c -o "$work/wrong.$processor"
    wrong=("${qemu[@]}" "$work/wrong.$processor")
    exits 0 '^112$' "$other" nothing
    in_order "a program on $processor"
    prefers "$other" $processor-linux-gnu-gcc "${qemu[@]}"
    exits 134 '^nbbs: free: nothing is allocated at 0x' "$other" double
    for program in words random_sizes; do
        $processor-linux-gnu-g++ -O1 -std=c++17 -pthread malloc/programs/$program.cpp -o "$work/other"
        same "$other" "${qemu[@]}" "$work/other" 4 20000
    done
done

# The contract, which `cargo test` checks.
build_mutant() { test_builds "$1" --package nbbs-malloc; }
catches() { test_notices "$1" --package nbbs-malloc; }
mutants_level=1
try_mutants malloc
[ $mutants_caught = $mutants_tried ] || exit 1
echo "$tried programs print the same with nbbs as their malloc, and leave it in order;" \
    "${#noticed[@]} faults are noticed; mutants $mutants_caught/$mutants_tried"
