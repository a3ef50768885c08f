//! Tests that the command says what it leaves out: sizes that an allocator cannot manage, and what has no effect.

mod support;

use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use support::{json, nbbs, refusal};

fn words(args: &str) -> Vec<&str> {
    args.split(' ').collect()
}

#[test]
fn nothing_left_to_measure_is_an_error_with_the_reason() {
    for (args, words_of_it) in [
        (
            "bench larson --allocators nbbs --arena 4P --threads 1 --quick",
            "larson: nbbs with 4 PiB takes 34",
        ),
        (
            "bench fill --allocators nbbs-c --arena 4P --threads 1",
            "TiB of memory, and this machine has",
        ),
        (
            "bench fill --allocators nbbs-cached --arena 4P --threads 1",
            "nbbs-cached with 4 PiB takes",
        ),
        (
            "bench heap-random --allocators system --heap 4P --quick",
            "system with 4 PiB takes 4 PiB of memory",
        ),
        (
            "bench heap-random --allocators chunk --heap 4P --quick",
            "chunk takes memory of at most 8 GiB, not 4 PiB",
        ),
        ("replay --arena 4P", "nbbs with 4 PiB takes 34"),
        (
            "bench heap-random --heap 4K --allocators nbbs-heap",
            "takes memory of at least 5 KiB, not 4 KiB",
        ),
        ("bench limit --arena 256K --orders 0", "up to 2 threads take 2 MiB to 16 TiB"),
        ("bench limit --arena 64M --orders 9 --threads 64", "up to 64 threads take 130 MiB to"),
        ("bench fill limit --arena 4K --allocators nbbs", "an arena of 4 KiB does not fit"),
        (
            "replay --arena 442M",
            "redis holds 442.5 MiB at its peak, more than 442 MiB: choose a larger --arena",
        ),
        ("bench replay --arena 1M,64M --threads 1", "more than 1 MiB: choose a larger --arena"),
        ("replay --allocators nbbs-heap", "nbbs-heap is a heap, and replay runs on back-ends"),
        ("bench fill pool --allocators talc", "talc is a heap, and none of fill, pool runs on it"),
        ("bench requests --threads 2", "requests runs on at most 1 thread, not 2"),
        ("bench first-failure --threads 4", "first-failure runs on at most 1 thread, not 4"),
        ("bench suspended --threads 1", "suspended runs on at least 2 threads, not 1"),
        (
            "bench pool --cases handover --threads 3",
            "handover takes an even number of threads, not 3",
        ),
        ("bench pool --allocators slab --threads 2", "pool: slab runs on 1 thread, not 2"),
        ("bench fill --allocators llfree", "llfree is not measured: it is not on crates.io"),
        ("bench larson --allocators frusa", "does not build with stable Rust"),
        ("replay --allocators ferroc", "does not build with stable Rust"),
        ("bench larson --sizes 2M", "expected a power of two from 8 to 1048576"),
        ("bench larson --allocators frus", "there is no such allocator; there are"),
    ] {
        let error = refusal(&words(args), 2);
        assert!(error.contains(words_of_it), "{args}: {error}");
    }
}

#[test]
fn what_has_no_effect_is_named_beside_what_is_measured() {
    for (args, left_out) in [
        (
            "bench requests --rounds 1 --arena 4K --duration 1",
            vec![
                "--arena, which has no effect on requests",
                "--duration, which has no effect on requests",
            ],
        ),
        (
            "bench fill --allocators nbbs --traces no --heap-trace no --heap 1M --sizes 8 --orders 1 --fills 3",
            vec![
                "--orders, which has no effect on fill",
                "--sizes, which has no effect on fill",
                "--heap, which has no effect on fill",
                "--traces, which has no effect on fill",
                "--heap-trace, which has no effect on fill",
                "--fills, which has no effect on fill",
            ],
        ),
        (
            "bench fill --allocators nbbs --machine far --check --cases bulk --pairs 2",
            vec![
                "--cases, which has no effect on fill",
                "--pairs, which has no effect on fill",
                "--machine, which has no effect on fill",
                "--check, which has no effect on fill",
            ],
        ),
        (
            "bench fill cached --allocators nbbs,nbbs-heap,slab --orders 0",
            vec![
                "slab is a pool, and none of fill, cached runs on it",
                "--orders, which has no effect on fill",
            ],
        ),
        (
            "bench cached --allocators nbbs-heap --orders 11 --arena 64M --heap 64M --sizes 64 --threads 1",
            vec![
                "--orders, which has no effect on cached with these allocators",
                "--arena, which has no effect on cached with these allocators",
            ],
        ),
        (
            "bench fill cached --allocators talc",
            vec!["fill runs on back-ends, and none of them was asked for"],
        ),
        (
            "bench heap-random --heap 4K --allocators nbbs-heap,chunk",
            vec!["heap-random: nbbs-heap takes memory of at least 5 KiB, not 4 KiB"],
        ),
        (
            "bench pool --pairs 100 --allocators nbbs-pool,slab --threads 1,2",
            vec![
                "pool: handover takes an even number of threads, not 1",
                "pool: slab runs on 1 thread, not 2",
            ],
        ),
        // The heap has memory of its own, and what is too little for blocks does not concern it.
        ("bench limit --allocators nbbs-heap --threads 1 --rounds 1 --arena 4K", vec![]),
        // What only `all` asks for takes what it can.
        (
            "bench all --allocators slab --threads 1 --pairs 100 --fills 3",
            vec![
                "xmalloc runs on at least 2 threads, not 1",
                "suspended runs on at least 2 threads, not 1",
                "pool: handover takes an even number of threads, not 1",
                "--fills, which has no effect on any workload of `all`",
            ],
        ),
    ] {
        let output = nbbs(&[words(args), words("--quick")].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && !output.stdout.is_empty(), "{args}: {said}");
        let lines: Vec<&str> =
            said.lines().filter_map(|line| line.strip_prefix("left out: ")).collect();
        let first_failure = |line: &&&str| !line.starts_with("first-failure");
        assert_eq!(
            lines.iter().filter(first_failure).copied().collect::<Vec<_>>(),
            left_out,
            "{args}"
        );
    }
}

/// The trace fits into the arena, but half of it is free in pieces when it asks for the other half whole. Of these
/// refusals those of one replay count, however many a round has.
#[test]
fn refusals_in_an_arena_with_room_are_counted_and_judged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pieces.trace.zst");
    let each: String = (0..64).map(|block| format!("+0 0 {block}\n")).collect();
    let every_other: String = (0..32).map(|block| format!("-0 {}\n", 2 * block)).collect();
    let text = format!("# page trace v1: pieces\n{each}{every_other}+0 5 64\n");
    std::fs::write(&path, compress_to_vec(text.as_bytes(), CompressionLevel::Fastest)).unwrap();
    let args = "replay --json --rounds 2 --arena 256K --allocators nbbs,linux";
    let rows = json(&[words(args), vec![path.to_str().unwrap()]].concat());
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_eq!((&row["verified"], &row["peak_units"]), (&true.into(), &64.into()), "{row}");
        assert_eq!(row["refused"], 1, "{row}");
    }
}

/// The smallest memory that each allocator can have lets every workload end, or is left out.
#[test]
fn little_memory_is_no_reason_to_panic() {
    for size in ["4K", "8K", "64K"] {
        let args = format!(
            "bench fill heap-random larson --quick --rounds 1 --threads 1 --arena {size} --heap {size} --json"
        );
        let rows = json(&words(&args));
        assert!(rows.iter().all(|row| row["verified"] == true || row["safe"] == false), "{rows:?}");
        assert!(rows.iter().any(|row| row["workload"] == "heap-random"), "{size}");
    }
}

/// Hours of measuring would be lost, and a record overwritten.
#[test]
fn what_is_not_installed_is_told_before_anything_is_measured() {
    let directory = tempfile::tempdir().unwrap();
    let record = directory.path().join("r.jsonl");
    let args = "bench cached --quick --threads 1 --allocators nbbs --instructions --record";
    let mut command = assert_cmd::Command::cargo_bin("nbbs").unwrap();
    let output = command.args(words(args)).arg(&record).env("PATH", "").output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && error.contains("valgrind"), "{error}");
    assert!(!record.exists());
}

/// Beyond what a heap serves from slots, and as many as the threads hold at a time.
#[test]
fn large_blocks_are_measured_in_a_heap_that_has_room_for_them() {
    let args = "bench cached --sizes 64K,1M --allocators nbbs-heap,chunk --threads 4 --quick --rounds 1 --json";
    let rows = json(&args.split(' ').collect::<Vec<_>>());
    assert_eq!(rows.len(), 2 * 2);
    for row in &rows {
        let size = row["size_bytes"].as_u64().unwrap();
        assert!([64 << 10, 1 << 20].contains(&size), "{row}");
        assert!(row["arena_bytes"].as_u64().unwrap() >= 4 * 8 * size, "{row}");
        assert_eq!((&row["verified"], &row["refused"]), (&true.into(), &0.into()), "{row}");
    }
}
