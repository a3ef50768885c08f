# To be sourced: jobs in the background, of which so many run at a time.
running=0 failed=0

# at_most NUMBER: waits until no more jobs than that are running.
at_most() {
    while [ "$running" -gt "$1" ]; do
        wait -n || failed=$((failed + 1))
        running=$((running - 1))
    done
}

# start COMMAND...: as a job.
start() {
    "$@" &
    running=$((running + 1))
}
