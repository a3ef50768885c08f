# To be sourced: which of many things are tried this time: a share of NBBS_SHARE=K/N, or all.
NBBS_SHARE=${NBBS_SHARE:-0/1}
shares=${NBBS_SHARE#*/}
turn=$((${NBBS_SHARE%/*} % shares))

# fewer ALL SOME: prints how much is tried of what goes on for as long as it is let: SOME if a share is tried.
fewer() { if [ "$shares" = 1 ]; then echo "$1"; else echo "$2"; fi; }

# share: of the lines on standard input every Nth from the Kth on; of fewer than N lines one.
share() {
    awk -v turn="$turn" -v shares="$shares" '
        { line[n++] = $0 }
        END {
            every = shares < n ? shares : n
            for (i = 0; i < n; i++) if (i % every == turn % every) print line[i]
        }'
}
