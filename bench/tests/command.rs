//! Tests the binary as its users meet it.

mod support;

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use nbbs_bench::market::{CONTENDERS, HEAPS, find};
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::Value;
use support::{json, refusal, stdout};

fn assert_numbers(row: &Value, keys: &[&str]) {
    for key in keys {
        assert!(row[key].is_number(), "{key} in {row}");
    }
}

#[test]
fn replays_the_sample_without_being_told() {
    let table = stdout(&[]);
    for words in ["redis", "nbbs", "linux", "p99.9", "verified", "332,194"] {
        assert!(table.contains(words), "{words} in\n{table}");
    }
    assert!(!table.contains("NO"), "{table}");
    for names in [["nbbs", "linux"], ["nbbs-cached", "linux-pcp"]] {
        let is_about = |line: &&str| {
            let words: Vec<&str> = line.split([' ', ',', ';']).collect();
            line.starts_with("2 threads") && names.iter().all(|name| words.contains(name))
        };
        let told = table.lines().find(|line| is_about(line) && line.contains("p99.9: "));
        let told = told.unwrap_or_else(|| panic!("{names:?} in\n{table}"));
        assert!(["times as fast", "SLOWER", "undecided"].iter().any(|words| told.contains(words)));
    }
}

#[test]
fn replay_prints_an_object_per_row() {
    let rows = json(&["replay", "--json", "--rounds", "1"]);
    assert_eq!(rows.len(), 8); // four allocators, one thread and two
    for row in rows {
        assert_eq!((&row["command"], &row["trace"]), (&"bench".into(), &"redis".into()));
        assert_eq!((&row["verified"], &row["violation"]), (&true.into(), &Value::Null));
        assert_eq!(row["ops"].as_u64().unwrap() % 332_194, 0);
        assert_eq!(row["peak_units"], 113_270);
        assert_numbers(&row, &["ns_per_op", "mean_ns", "clock_step_ns"]);
        let times = ["p50_ns", "p99_ns", "p999_ns", "max_ns"];
        assert_numbers(&row, &times);
        assert!(times.map(|key| row[key].as_f64().unwrap()).is_sorted(), "{row}");
        assert_numbers(&row, &["threads", "refused", "metadata_bytes", "largest_free_order"]);
        assert!(row["allocator"].is_string());
    }
}

#[test]
fn bench_limit_prints_an_object_per_row() {
    let args = "bench limit --json --arenas 64M --orders 0,9 --fills 0,50 --rounds 3";
    let rows = json(&args.split(' ').collect::<Vec<_>>());
    let of_case = |case: &str| rows.iter().filter(|row| row["case"] == case).count();
    assert_eq!(["pair", "bulk", "random_free"].map(of_case), [8, 2, 2]);
    assert_eq!(["fail", "way", "heap"].map(of_case), [4, 2 * 7, 2 * 7]);
    for row in &rows {
        assert_eq!((&row["command"], &row["workload"]), (&"bench".into(), &"limit".into()));
        assert_numbers(row, &["arena_bytes", "fill_percent", "threads"]);
        let heap = row["case"] == "heap";
        assert_numbers(row, &[if heap { "size_bytes" } else { "order" }]);
        assert_numbers(row, &["ns_per_op", "bare_ns_per_op", "ratio"]);
        assert_eq!(row["by"].is_string(), row["case"] == "way", "{row}");
        let counted = row["case"] != "way" && !heap;
        assert_eq!(row["rmw_per_alloc"].is_number(), counted, "{row}");
        let is_bulk = row["case"] == "bulk" || row["case"] == "random_free";
        assert_eq!(row["free_unsized_ns"].is_number(), is_bulk, "{row}");
        assert_eq!(row["clock_step_ns"].is_number(), row["case"] == "fail", "{row}");
        assert!(!counted || row["case"] == "fail" || row["rmw_per_free"].is_number(), "{row}");
    }
    let steps = |key: &str| rows.iter().map(|row| row[key].as_f64().unwrap()).next().unwrap();
    assert_eq!([steps("rmw_per_alloc"), steps("rmw_per_free")], [1.0, 1.0]);
}

#[test]
fn bench_limit_prints_tables() {
    let args = "bench limit --arenas 64M --orders 9 --fills 0 --rounds 1";
    let tables = stdout(&args.split(' ').collect::<Vec<_>>());
    for words in [
        "bare CAS",
        "2 threads",
        "random_free",
        "no order",
        "Buddy::alloc, free ",
        "sprinkled",
        "ThreadCaches",
        "nbbs-heap",
        "at most",
        "steps of ",
    ] {
        assert!(tables.contains(words), "{words} in\n{tables}");
    }
}

/// The keys of every row of the workloads.
const KEYS: [&str; 24] = [
    "command",
    "workload",
    "allocator",
    "kind",
    "safe",
    "threads",
    "order",
    "size_bytes",
    "ops",
    "ops_per_s",
    "ns_per_op",
    "p50_ns",
    "p99_ns",
    "p999_ns",
    "max_ns",
    "metadata_bytes",
    "rmw_per_op",
    "failed_cas_per_op",
    "lines_written_per_op",
    "worst_loads",
    "spurious_refusals",
    "instructions_per_op",
    "verified",
    "phase",
];

/// Returns the arguments that run the workloads on an arena of 16 MiB.
fn bench(words: &str) -> Vec<String> {
    let more = "--quick --arena 16M --heap 64M --rounds 1 --duration 0.003";
    ["bench"]
        .into_iter()
        .chain(words.split_whitespace())
        .chain(more.split_whitespace())
        .map(str::to_owned)
        .collect()
}

/// Writes the beginning of the sample, as much as the small arena has room for, to a file of the folder, and returns
/// its path.
fn first_events(folder: &Path) -> String {
    let sample = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../traces/redis.trace.zst"));
    let mut text = String::new();
    StreamingDecoder::new(&sample.unwrap()[..]).unwrap().read_to_string(&mut text).unwrap();
    let lines: Vec<&str> = text.lines().take(5_000).collect();
    let path = folder.join("first.trace.zst");
    let content = compress_to_vec((lines.join("\n") + "\n").as_bytes(), CompressionLevel::Fastest);
    std::fs::write(&path, content).unwrap();
    path.into_os_string().into_string().unwrap()
}

/// Runs every workload on some allocators, and checks what all rows have in common.
fn rows_of_all(allocators: &[&str], options: &str) -> Vec<Value> {
    let allocators = allocators.join(",");
    let args = bench(&format!("all --threads 2 --json --allocators {allocators} {options}"));
    let rows = json(&args.iter().map(String::as_str).collect::<Vec<_>>());
    rows.iter().for_each(is_a_row_of_a_workload);
    rows
}

/// Asserts what holds for a row of any workload.
fn is_a_row_of_a_workload(row: &Value) {
    const MIXED: [&str; 13] = [
        "alloc-rnd",
        "free-rnd",
        "stress",
        "churn",
        "replay",
        "heap-random",
        "replay-heap",
        "random-actions",
        "heap-efficiency",
        "random-pairs",
        "larson-sizes",
        "xmalloc",
        "mstress",
    ];
    const COUNTED: [&str; 6] = ["nbbs", "nbbs-cached", "nb1", "nb4", "sl1", "sl4"];
    let text = |key: &str| row[key].as_str().unwrap();
    assert!(KEYS.iter().all(|key| row.get(key).is_some()), "{row}");
    assert_eq!(row["command"], "bench", "{row}");
    let verified = row["verified"].as_bool().unwrap();
    assert!(verified || row["safe"] == false, "{row}");
    let is_mixed = MIXED.contains(&text("workload"));
    let sizes = (row["order"].is_null(), row["size_bytes"].is_null());
    assert_eq!(sizes, (is_mixed || row["kind"] != "backend", is_mixed), "{row}");
    if verified {
        assert_numbers(row, &["ops", "refused"]);
        assert!(row["kind"] != "backend" || row["metadata_bytes"].is_number(), "{row}");
    } else {
        assert!(row["violation"].is_string() && row["ns_per_op"].is_null(), "{row}");
    }
    for key in ["rmw_per_op", "failed_cas_per_op", "lines_written_per_op", "worst_loads"] {
        assert!(COUNTED.contains(&text("allocator")) || row[key].is_null(), "{row}");
    }
}

/// Returns how many different texts rows have under a key.
fn different(rows: &[Value], key: &str) -> usize {
    rows.iter().map(|row| row[key].as_str().unwrap()).collect::<BTreeSet<_>>().len()
}

#[test]
fn bench_runs_every_workload_on_every_back_end() {
    let folder = tempfile::tempdir().unwrap();
    let back_ends: Vec<&str> = CONTENDERS.iter().map(|contender| contender.name).collect();
    let rows = rows_of_all(&back_ends, &format!("--traces {}", first_events(folder.path())));
    // Two phases of bulk, four of filling, 15 of churn.
    assert_eq!(rows.len(), back_ends.len() * (16 + 2 + 4 + 15));
    assert_eq!(["workload", "allocator"].map(|key| different(&rows, key)), [19, back_ends.len()]);
    let nbbs = |row: &&Value| row["allocator"] == "nbbs" && row["workload"] == "cached";
    let row = rows.iter().find(nbbs).unwrap();
    assert_numbers(row, &["ops_per_s", "ns_per_op", "p50_ns", "p99_ns", "p999_ns", "max_ns"]);
    assert!(row["rmw_per_op"].as_f64().unwrap() >= 1.0, "{row}");
    assert!(row["worst_loads"].as_u64().unwrap() >= 2, "{row}");
}

#[test]
fn bench_runs_every_workload_on_every_heap() {
    let heaps: Vec<&str> = HEAPS.iter().map(|heap| heap.name).collect();
    // The system's allocator takes part as a pool, too.
    let (pools, rows): (Vec<Value>, Vec<Value>) =
        rows_of_all(&heaps, "").into_iter().partition(|row| row["kind"] == "pool");
    assert_eq!(["workload", "phase"].map(|key| different(&pools, key)), [1, 4]);
    assert!(rows.iter().all(|row| row["kind"] == "heap"));
    assert_eq!(["workload", "allocator"].map(|key| different(&rows, key)), [16, heaps.len()]);
    // Phases of heap-random and random-actions.
    assert_eq!(rows.len(), heaps.len() * (14 + 2 + 5));
}

/// A thread needs room for 160 blocks, some of which are 16 times as large.
#[test]
fn an_arena_grows_until_the_threads_have_room() {
    let args = bench("constant-occupancy --threads 1,32 --orders 6 --allocators nbbs --json");
    let args = args.iter().map(String::as_str).filter(|word| !["--arena", "16M"].contains(word));
    let rows = json(&args.collect::<Vec<_>>());
    let arenas: Vec<u64> =
        rows.iter().map(|row| row["arena_bytes"].as_u64().unwrap() >> 20).collect();
    assert_eq!(arenas, [2048, 2048]);
    assert!(rows.iter().all(|row| row["refused"] == 0), "{rows:?}");
}

#[test]
fn what_cannot_be_measured_is_left_out_and_named() {
    let args = bench("cached replay --threads 1,8 --allocators nbbs --csv");
    let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
    for word in args.iter_mut().filter(|word| **word == "16M") {
        *word = "64K";
    }
    let output = support::nbbs(&args);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    for words in ["left out: cached with 8 threads", "left out: redis holds 442.5 MiB at its peak"]
    {
        assert!(said.contains(words), "{words} in {said}");
    }
    let rows = String::from_utf8(output.stdout).unwrap();
    assert_eq!(rows.lines().count(), 1 + 1, "{rows}");
}

#[test]
fn a_pair_of_one_thread_takes_two_read_modify_writes() {
    let args = bench("cached --threads 1 --allocators nbbs --json");
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let row = &json(&args)[0];
    assert!((1.0..1.01).contains(&row["rmw_per_op"].as_f64().unwrap()), "{row}");
    assert_eq!(row["failed_cas_per_op"], 0.0, "{row}");
    assert!((1.0..2.01).contains(&row["lines_written_per_op"].as_f64().unwrap()), "{row}");
}

/// A locked allocator whose thread sleeps with the lock held stops the others. There are enough suspensions to hit
/// this.
#[cfg(unix)]
#[test]
fn a_suspended_thread_stops_only_who_waits_for_it() {
    let args = "bench suspended --json --quick --allocators nbbs,linux,buddy-sl,linked-list";
    let rows = json(&args.split(' ').collect::<Vec<_>>());
    assert_eq!(rows.len(), 4);
    for row in &rows {
        assert_numbers(row, &["suspensions", "stalled", "baseline_p999_ns", "p999_ns", "max_ns"]);
        assert_eq!((&row["verified"], &row["threads"]), (&true.into(), &2.into()), "{row}");
    }
    let stalled = |row: &Value| row["stalled"].as_u64().unwrap();
    let (nbbs, locked): (Vec<&Value>, Vec<&Value>) =
        rows.iter().partition(|row| row["allocator"] == "nbbs");
    assert_eq!(stalled(nbbs[0]), 0, "{}", nbbs[0]);
    assert!(locked.into_iter().map(stalled).sum::<u64>() > 0, "{rows:?}");
}

/// The command needs valgrind, and says so without it.
#[test]
fn instructions_are_counted_if_valgrind_is_there() {
    let args = "bench cached --quick --threads 1,2 --rounds 1 --allocators nbbs,talc --instructions --json";
    let args: Vec<&str> = args.split(' ').collect();
    if std::process::Command::new("valgrind").arg("--version").output().is_err() {
        assert!(refusal(&args, 2).contains("valgrind"));
        return;
    }
    for row in json(&args) {
        let counted = row["instructions_per_op"].as_f64();
        assert_eq!(counted.is_some(), row["threads"] == 1, "{row}");
        assert!(counted.is_none_or(|each| (5.0..2000.0).contains(&each)), "{row}");
    }
}

#[test]
fn bench_prints_tables_and_comma_separated_values() {
    let args = bench("fill bulk --threads 1,2 --allocators nbbs,linux-pcp,nb1");
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let tables = stdout(&args);
    for words in
        ["bulk, 4 KiB", "fill, 4 KiB", "GiB/s", "2 thr.", "linux-pcp (caches)", "nb1 (UNSAFE)"]
    {
        assert!(tables.contains(words), "{words} in\n{tables}");
    }
    let lines = stdout(&[&args[..], &["--csv"]].concat());
    let mut lines = lines.lines();
    assert!(lines.next().unwrap().starts_with("command,workload,phase,allocator,kind,safe"));
    // Allocators, threads and phases, and the names of the second workload's figures.
    assert_eq!(lines.count(), 3 * 2 * 3 + 1);
}

/// Full memory refuses requests, and whoever refuses more does less: tables say so.
#[test]
fn tables_count_refusals_and_mark_threads_that_take_turns() {
    let crowd = std::thread::available_parallelism().unwrap().get() + 1;
    let args = bench(&format!("churn --threads 1,{crowd} --allocators nbbs,linux"));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let tables = stdout(&args);
    let marked = format!("{crowd} thr.†");
    for words in ["refused", "1 thr. ", &marked, "† more threads than processors", "steps of "] {
        assert!(tables.contains(words), "{words} in\n{tables}");
    }
    let roomy = bench("cached --threads 1 --allocators nbbs,linux");
    let roomy = stdout(&roomy.iter().map(String::as_str).collect::<Vec<_>>());
    let table = roomy.split("ns per operation").next().unwrap();
    assert!(!table.contains("refused") && !table.contains('†'), "{table}");
}

#[test]
fn bench_pool_prints_an_object_per_row() {
    let args = "bench pool --json --pairs 20000 --threads 1,2 --rounds 1 --seconds 1";
    let rows = json(&args.split(' ').collect::<Vec<_>>());
    let of = |case: &str, allocator: &str| {
        rows.iter().filter(|row| row["phase"] == case && row["allocator"] == allocator).count()
    };
    // A hand-over needs two threads, and a pool that is not shared runs on one.
    for case in ["bulk", "pair", "burst"] {
        assert_eq!(
            [of(case, "nbbs-pool"), of(case, "nbbs-pool-single"), of(case, "nothing")],
            [2, 1, 1]
        );
    }
    assert_eq!([of("handover", "nbbs-pool"), of("handover", "nbbs-pool-single")], [1, 0]);
    for row in &rows {
        assert!(KEYS.iter().all(|key| row.get(key).is_some()), "{row}");
        assert_eq!((&row["kind"], &row["size_bytes"]), (&"pool".into(), &48.into()));
        assert!(row["verified"] == true || row["safe"] == false, "{row}");
        assert_numbers(row, &["threads", "ops"]);
        assert!(row["ops"].as_u64().unwrap() >= 1000, "{row}");
    }
}

#[test]
fn bench_pool_names_its_lists_as_the_registry_does() {
    let help = stdout(&["bench", "--help"]);
    for name in ["freelist-untagged", "freelist-tagged", "freelist-sl", "freelist-mutex"] {
        assert!(find(name).is_some() && help.contains(name), "{name} in\n{help}");
    }
}

#[test]
fn bench_pool_prints_tables() {
    let args = "bench pool --pairs 2000 --threads 2 --rounds 1 --cases pair,handover";
    let tables = stdout(&args.split(' ').collect::<Vec<_>>());
    for words in ["pool, 48 B", "pair", "handover", "freelist-untagged (UNSAFE)", "system (caches)"]
    {
        assert!(tables.contains(words), "{words} in\n{tables}");
    }
    assert!(!tables.contains("nbbs-pool-single") && !tables.contains("bulk"), "{tables}");
}

#[test]
fn bench_requests_prints_an_object_per_row() {
    let rows = json(&["bench", "requests", "--json", "--rounds", "1"]);
    for row in &rows {
        assert_eq!(
            (&row["workload"], &row["verified"]),
            (&"requests".into(), &true.into()),
            "{row}"
        );
        let keys = ["units_requested", "units_held", "ns_per_op", "rmw_per_unit", "success_rate"];
        assert_numbers(row, &keys);
    }
    let find = |case: &str, by: &str| {
        let of = |row: &&Value| row["case"] == case && row["allocator"] == by;
        rows.iter().find(of).unwrap_or_else(|| panic!("{case} by {by}"))
    };
    let exact = find("exact", "nbbs exact");
    assert_eq!(exact["units_requested"], exact["units_held"]);
    let per_unit = |by: &str| find("batch", by)["rmw_per_unit"].as_f64().unwrap();
    assert!(per_unit("nbbs batch") <= 0.1 && per_unit("nbbs single") >= 1.0, "{rows:?}");
    assert!(["grow", "placement"].iter().all(|case| rows.iter().any(|row| row["case"] == *case)));
}

#[test]
fn nonsense_is_refused_with_the_limit() {
    for (args, words) in [
        ("frobnicate", "unrecognized subcommand 'frobnicate'"),
        ("bench", "Usage: nbbs bench"),
        ("replay --allocators nbbs,nobody", "there are nbbs, nbbs-c, nbbs-cached, linux"),
        ("bench fill --allocators nobody", "the back-ends nbbs, nbbs-c, nbbs-cached, linux"),
        ("replay --threads 0", "1 to 128"),
        ("replay --threads 3", "redis has events of 2 threads"),
        ("replay --rounds 0", "1 to 100000"),
        ("replay --arena big", "'big' for '--arena <SIZE>': expected a multiple of 4 KiB, at most"),
        ("bench cached --heap -5G", "'-5G' for '--heap <SIZE>': expected a multiple of 4 KiB"),
        ("bench cached --sizes -1K", "'-1K' for '--sizes <LIST>': expected a power of two"),
        ("replay --arena 1P --allocators linux", "linux takes memory of at most 16.0 TiB"),
        ("bench limit --orders 18", "a number from 0 to 17"),
        (
            "bench limit --allocators linux",
            "linux is a back-end, and limit runs on nbbs and nbbs-heap",
        ),
        ("bench limit --fills 100", "a number from 0 to 99"),
        (
            "bench limit --arenas 1M --orders 9",
            "orders up to 9 on up to 2 threads take 8 MiB to 16 TiB",
        ),
        ("bench lason", "a similar value exists: 'larson'"),
        ("bench bulk --orders 11", "bulk takes orders up to 10, not 11"),
        ("bench larson --sizes 24", "a power of two from 8 to 1048576, such as 64 or 1K"),
        ("bench fill --allocators talc", "talc is a heap, and fill runs on back-ends"),
        ("bench replay-heap --heap 32M", "git holds 52.1 MiB at its peak, more than 32 MiB"),
        ("bench replay-heap --threads 6", "git has events of 5 threads"),
        ("bench replay-heap --heap-trace no.zst", "no.zst: cannot be read"),
        ("bench fill --duration 0", "seconds from 0.001 to 3600"),
        ("bench fill --json --csv", "cannot be used with"),
        ("bench constant-occupancy --orders 7 --allocators nbbs", "takes orders up to 6, not 7"),
        (
            "bench cached --arena 64K --threads 8 --allocators nbbs",
            "8 threads and order 0 takes memory of 128 KiB",
        ),
        ("bench pool --allocators list", "the pools nbbs-pool, nbbs-pool-box"),
        ("bench pool --cases list", "[possible values: bulk, pair, handover, burst]"),
        ("bench pool --pairs 0", "a number from 1 to 1000000000000"),
        ("bench pool --pairs 18446744073709551615", "a number from 1 to 1000000000000"),
        ("bench limit --rounds -1", "'-1' for '--rounds <N>': expected a number from 1 to 100000"),
    ] {
        let error = refusal(&args.split(' ').collect::<Vec<_>>(), 2);
        assert!(error.contains(words), "{args}: {error}");
    }
}

#[test]
fn malformed_traces_are_refused_by_name_and_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| -> PathBuf {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    };
    let sample = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../traces/redis.trace.zst"));
    let sample = sample.unwrap();
    for (path, words) in [
        (file("text.trace", b"# page trace v1: x\n+0 0 0\n"), "not zstd-compressed"),
        (file("cut.trace.zst", &sample[..sample.len() / 3]), "the file ends in the middle"),
        (directory.path().join("none.zst"), "cannot be read"),
        (directory.path().to_owned(), "cannot be read"),
    ] {
        let error = refusal(&["replay", path.to_str().unwrap()], 2);
        assert!(error.contains(words) && error.contains(path.to_str().unwrap()), "{error}");
    }
    let cut = directory.path().join("cut.trace.zst");
    assert!(refusal(&["replay", cut.to_str().unwrap()], 2).contains(", line "));
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("nbbs"))
        .args(["replay", "--json", "--rounds", "1"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
