#!/usr/bin/env bash
# Runs the exhaustive model: every interleaving of small configurations under Spin, and the published algorithm and the
# mutants, which must be caught. verify/models/README.md says what covers what. With --long, runs larger configurations
# as well.
set -euo pipefail
cd "$(dirname "$0")/../.."

source verify/share.bash
models=$(pwd)/verify/models
work=$(realpath -m "${CARGO_TARGET_DIR:-target}")/models
depth=10000000
limit=${MODEL_SECONDS:-600}     # for one search
long=false
case ${1-} in
--long) long=true limit=${MODEL_SECONDS:-7200} ;;
?*) echo "usage: model.sh [--long]" >&2 && exit 2 ;;
esac

require_tools() {
    command -v spin >/dev/null && command -v gcc >/dev/null && return
    verify/install.sh debian spin gcc >&2 ||
        { echo "model: could not run: spin and gcc are missing and apt-get cannot install them" >&2 && exit 1; }
}

# Lists of searches: KIND NAME MODEL PROPERTY OPTION...
orders="UNITS=4 UNIT0 UNIT1 SLOT0 TOP0"
runs="RUN3 RUN4 BLOCK4 GROW CUT FRONT"
deep="THREADS=3 RUNNERS=1 DEEP UNITS=8 BLOCK8 BLOCK2 CUT_1 UNIT0 HALF1 FREES_FORGET"
ours() {
    echo "ours orders protocol safety THREADS=3 UNITS=4 UNIT0 UNIT1 TOP0 FREES_FORGET EPOCH_AT_ONCE"
    echo "ours two-threads protocol safety THREADS=2 $orders RESERVATIONS CARE"
    echo "ours livelock search progress THREADS=2 SEARCHERS=2 UNITS=4 ASK0 ASK1 FREES_FORGET"
    echo "ours livelock-past-a-mark protocol progress THREADS=3 OPS=1 UNITS=4 UNIT0 UNIT2 SLOT0 FREES_FORGET"
    echo "ours two-paths protocol safety THREADS=2 OPS=3 UNITS=6 UNIT0 UNIT4 TOP0"
    echo "ours one-lane-paths protocol safety THREADS=2 LANES=1 UNITS=8 UNIT0 UNIT4 TOP0"
    echo "ours mixed protocol safety THREADS=3 OPS=1 $orders RESERVATIONS CARE GIVE"
    echo "ours shared-lanes protocol safety THREADS=3 LANES=2 OPS=1 $orders CARE GIVE"
    echo "ours six-units protocol safety THREADS=3 OPS=1 UNITS=6 UNIT0 SLOT0 UNIT4 SLOT2 TOP0 RESERVATIONS CARE"
    echo "ours eight-units protocol safety THREADS=2 UNITS=8 UNIT0 SLOT1 UNIT4 TOP0 TOP RESERVATIONS FREES_FORGET"
    echo "ours one-lane protocol safety THREADS=2 LANES=1 UNITS=4 UNIT0 SLOT1 TOP0 GIVE"
    echo "ours one-lane-care protocol safety THREADS=2 LANES=1 UNITS=6 UNIT0 UNIT4 TOP0 CARE FREES_FORGET"
    echo "ours honest search safety THREADS=2 SEARCHERS=2 UNITS=4 ASK0 ASK1 ASK2 FREES_FORGET"
    echo "ours honest-of-three search safety THREADS=3 SEARCHERS=2 OPS=1 UNITS=4 UNIT0 ASK1 ASK2"
    echo "ours honest-six-units search safety THREADS=3 OPS=1 UNITS=6 UNIT0 SLOT2 ASK1"
    echo "ours honest-half search safety THREADS=2 HALF UNIT0 UNIT1 SLOT0 ASK0 ASK1"
    echo "ours honest-split-over search safety THREADS=3 OPS=1 HALF RESERVATIONS CARE ASK1"
    echo "ours runs protocol safety THREADS=2 RUNNERS=1 UNITS=4 $runs BLOCK1 BLOCK2 UNIT0 UNIT2 SLOT1 FREES_FORGET"
    echo "ours runs-of-two protocol safety THREADS=2 RUNNERS=2 UNITS=4 $runs BLOCK1 BLOCK2 FREES_FORGET"
    echo "ours runs-of-three protocol safety THREADS=3 RUNNERS=1 OPS=1 UNITS=4 RUN4 BLOCK4 CUT UNIT2 FREES_FORGET"
    echo "ours runs-of-three-two protocol safety THREADS=3 RUNNERS=2 OPS=1 UNITS=4 BLOCK4 GROW CUT UNIT0 FREES_FORGET"
    echo "ours runs-six-units protocol safety THREADS=2 RUNNERS=1 OPS=2 UNITS=6 RUN2_6 BLOCK4 GROW CUT UNIT4 FREES_FORGET"
    echo "ours runs-eight-units protocol safety THREADS=2 RUNNERS=1 OPS=2 UNITS=8 RUN2_8 CUT FRONT UNIT4 FREES_FORGET"
    echo "ours runs-last-of-word protocol safety THREADS=2 RUNNERS=1 UNITS=4 RUN1_3 RUN1_4 GROW CUT FRONT UNIT0 UNIT2 SLOT1 FREES_FORGET"
    echo "ours runs-last-of-word-eight-units protocol safety THREADS=2 RUNNERS=1 OPS=2 UNITS=8 RUN3_6 GROW CUT FRONT UNIT4 FREES_FORGET"
    echo "ours honest-runs-last-of-word search safety THREADS=2 SEARCHERS=1 RUNNERS=1 UNITS=4 RUN1_4 GROW CUT FRONT ASK1 ASK2 FREES_FORGET"
    echo "ours honest-runs search safety THREADS=2 SEARCHERS=1 RUNNERS=1 UNITS=4 $runs BLOCK1 BLOCK2 ASK1 ASK2 FREES_FORGET"
    echo "ours honest-runs-of-three search safety THREADS=3 SEARCHERS=1 RUNNERS=1 OPS=1 UNITS=4 BLOCK4 CUT UNIT2 ASK1 FREES_FORGET"
    echo "ours refused-cut protocol safety OPS=1 SLOT0 $deep"
}
ours_long() {
    echo "ours long-eight-units protocol safety THREADS=2 UNITS=8 UNIT0 SLOT1 UNIT4 TOP0 TOP CARE RESERVATIONS FREES_FORGET"
    echo "ours long-two-paths protocol safety THREADS=2 UNITS=6 UNIT0 UNIT1 UNIT4 TOP0"
    echo "ours long-runs-six-units protocol safety THREADS=2 RUNNERS=1 UNITS=6 RUN5 RUN2_6 BLOCK4 GROW CUT UNIT0 UNIT4 FREES_FORGET"
    echo "ours long-buddies protocol safety THREADS=3 UNITS=4 UNIT0 SLOT1 TOP0 FREES_FORGET"
    echo "ours long-orders protocol safety THREADS=3 $orders SLOT1 FREES_FORGET"
    echo "ours long-two-threads protocol safety THREADS=2 $orders SLOT1 RESERVATIONS CARE GIVE"
    echo "ours long-livelock search progress THREADS=2 SEARCHERS=2 UNITS=4 ASK0 ASK1 ASK2 FREES_FORGET"
    echo "ours long-livelock-of-three search progress THREADS=3 OPS=1 UNITS=4 UNIT0 UNIT2 SLOT1 ASK1 ASK2 FREES_FORGET"
    echo "ours long-honest-six-units search safety THREADS=3 OPS=1 UNITS=6 UNIT0 UNIT4 SLOT2 ASK1 ASK2"
    echo "ours long-honest search safety THREADS=3 OPS=1 UNITS=6 UNIT0 UNIT1 UNIT4 SLOT0 SLOT2 RESERVATIONS ASK1 ASK2"
    echo "ours long-honest-half search safety THREADS=2 SEARCHERS=2 HALF ASK0 ASK1"
    echo "ours long-runs-of-three protocol safety THREADS=3 RUNNERS=1 OPS=1 UNITS=4 RUN4 BLOCK4 GROW CUT UNIT0 UNIT2 FREES_FORGET"
    echo "ours long-runs-eight-units protocol safety THREADS=2 RUNNERS=1 UNITS=8 RUN2_8 BLOCK4 GROW CUT FRONT UNIT4 FREES_FORGET"
    echo "ours long-refused-cut protocol safety OPS=2 SLOT0 $deep"
}
patients() {
    echo "patient paper paper safety THREADS=3"
}
mutants() {
    local mutant
    for mutant in NO_VERSION MERGE_BLIND CLIMB_SHORT PASS_MARK INSPECT_SWAPPED CLAIM_SWAPPED FREE_SWAPPED \
        UNDO_NO_MERGE UNDO_LEAVES MERGE_ONCE LEAVE_SILENTLY NO_PUBLISH PUBLISH_STOPS NO_UNSETTLED \
        NO_EPOCH EPOCH_EARLY EPOCH_STALE EPOCH_LATE HELP_NO_EPOCH SURVEY_LATE KNOW_EARLY; do
        echo "mutant $mutant protocol safety THREADS=3 UNITS=4 UNIT0 UNIT1 TOP0 FREES_FORGET $mutant"
    done
    for mutant in ALLOW_MARK OPEN_NO_BOUND FORGET_OTHERS NEVER; do
        echo "mutant $mutant search safety THREADS=2 SEARCHERS=2 UNITS=4 ASK0 ASK1 ASK2 FREES_FORGET $mutant"
    done
    for mutant in OVERTAKE NO_SETTLE; do
        echo "mutant $mutant search progress THREADS=2 SEARCHERS=2 UNITS=4 ASK0 ASK1 ASK2 FREES_FORGET $mutant"
    done
    echo "mutant CLEAR_AGAIN protocol progress THREADS=3 OPS=1 UNITS=4 UNIT0 UNIT2 SLOT0 FREES_FORGET CLEAR_AGAIN"
    for mutant in FORGET_PIECE BACK_NO_MERGE GROW_KEEPS CUT_WIDE HIDE_OVER REFUSED_NO_MERGE; do
        echo "mutant $mutant protocol safety THREADS=2 RUNNERS=1 UNITS=4 RUN4 BLOCK4 GROW CUT UNIT0 UNIT2 SLOT1 FREES_FORGET $mutant"
    done
    for mutant in LOOK_LATE PATH_NO_BOUND FREES_SEE_NO_SPLIT; do
        echo "mutant $mutant protocol safety THREADS=2 UNITS=4 UNIT0 UNIT1 TOP0 CARE $mutant"
    done
    echo "mutant NO_SEAL protocol safety THREADS=2 LANES=1 UNITS=8 UNIT0 UNIT4 TOP0 NO_SEAL"
    for mutant in SPLIT_OVER_BLIND MERGE_LEAVES_MARK; do
        echo "mutant $mutant search safety THREADS=3 OPS=1 HALF RESERVATIONS CARE ASK1 $mutant"
    done
    echo "mutant CUT_CLEARS protocol safety OPS=2 $deep OVERLAP_ONLY CUT_CLEARS"
    echo "mutant BACK_LOWEST protocol safety OPS=2 SLOT0 $deep BACK_LOWEST"
}

# Runs one search, and leaves "KIND NAME VERDICT STATES" in its folder. A search that was cut short has no verdict.
search() {
    local kind=$1 name=$2 model=$3 property=$4 verdict=broken states=0 start=$SECONDS
    # NOREDUCE: nearly every step is on a shared word, so a reduction finds almost nothing, at a price.
    local folder=$work/$kind-$name optimise=-O0 check=(-DNOREDUCE -DMEMLIM=6000) run=()
    shift 4
    case "$kind $*" in
    ours*RUNNERS*) ;; # takes longer to optimise than to search
    ours*) optimise=-O1 ;;
    esac
    [[ $name != long-* ]] || check+=(-DCOLLAPSE) # slower, in a third of the memory
    [ "$kind" != patient ] || check+=(-DBFS) # the shortest interleaving
    if [ "$property" = safety ]; then check+=(-DSAFETY); else check+=(-DNP -DNOFAIR) run=(-l); fi
    rm -rf "$folder" && mkdir -p "$folder" && cp "$models"/*.pml "$folder" && cd "$folder"
    if spin "${@/#/-D}" -a "$model.pml" >spin.out 2>&1 &&
        gcc $optimise "${check[@]}" -o pan pan.c >gcc.out 2>&1; then
        timeout "$limit" ./pan -m$depth -w25 "${run[@]}" >pan.out 2>&1 || echo "pan: exit status $?" >>pan.out
        states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.out)
        if grep -qE '^pan:[0-9]+: (assertion violated|non-progress cycle|invalid end state)' pan.out; then
            verdict=error
        elif grep -qE 'search depth too small|not completed|out of memory|MEMLIM bound|exit status' pan.out; then
            verdict=truncated
        elif grep -q 'errors: 0' pan.out; then
            verdict=clean
        fi
    fi
    rm -f pan pan.[bchmpt]
    echo "$kind $name $verdict ${states:-0}" >verdict
    echo "model: $kind $name: $verdict, ${states:-0} states, $((SECONDS - start)) s" >&2
}

count() { awk -v kind="$1" -v verdict="${2-}" '$1 == kind && (verdict == "" || $3 == verdict)' "$work/verdicts" | wc -l; }

require_tools
rm -rf "$work" && mkdir -p "$work"
{ ours && { ! $long || ours_long; }; } >"$work/listed"
{ share <"$work/listed" && patients && mutants | share; } >"$work/searches"

export models work depth limit
export -f search
xargs -P "$(($(nproc) < 2 ? 1 : 2))" -L 1 bash -c 'search "$@"' search <"$work/searches"
cat "$work"/*/verdict >"$work/verdicts"

clean=$(count ours clean) configurations=$(count ours)
states=$(awk '$1 == "ours" { sum += $4 } END { printf "%.1f million", sum / 1e6 }' "$work/verdicts")
patient="$(count patient error)/$(count patient)" mutant="$(count mutant error)/$(count mutant)"
ours=clean
[ "$clean" = "$configurations" ] || ours=FOUND
echo "CHECK model | whole state space of $clean of $configurations configurations (of $(wc -l <"$work/listed") a share), 2 and 3 threads on 3 levels, $states states | patients $patient | mutants $mutant | ours: $ours"
[ "$ours" = clean ] && [ "${patient%/*}" = "${patient#*/}" ] && [ "${mutant%/*}" = "${mutant#*/}" ] &&
    [ "$(wc -l <"$work/verdicts")" = "$(wc -l <"$work/searches")" ]
