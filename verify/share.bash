# To be sourced: which of many things are tried this time.

# share: of the lines on standard input, with NBBS_SHARE=K/N every Nth from the Kth on; of fewer than N lines one. Without
# it, all.
share() {
    awk -v share="${NBBS_SHARE:-0/1}" '
        { line[n++] = $0 }
        END {
            split(share, of, "/")
            every = of[2] < n ? of[2] : n
            for (i = 0; i < n; i++) if (i % every == of[1] % every) print line[i]
        }'
}
