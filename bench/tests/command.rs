//! The binary as its users meet it.

use std::path::PathBuf;
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;

fn nbbs(args: &[&str]) -> Output {
    Command::cargo_bin("nbbs").unwrap().args(args).output().unwrap()
}

/// What the command says on its way out; it must end with `code`, and print nothing.
fn refusal(args: &[&str], code: i32) -> String {
    let output = nbbs(args);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
    assert!(output.stdout.is_empty(), "{args:?}");
    assert!(!error.contains("panicked"), "{args:?}: {error}");
    error
}

/// The standard output of a command that succeeds.
fn stdout(args: &[&str]) -> String {
    let output = nbbs(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(args: &[&str]) -> Vec<Value> {
    stdout(args).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn assert_numbers(row: &Value, keys: &[&str]) {
    for key in keys {
        assert!(row[key].is_number(), "{key} in {row}");
    }
}

#[test]
fn replays_the_sample_without_being_told() {
    let table = stdout(&[]);
    for words in
        ["redis", "nbbs", "linux", "p99.9", "verified", "332,194", "2 threads: nbbs beside"]
    {
        assert!(table.contains(words), "{words} in\n{table}");
    }
    assert!(!table.contains("NO"), "{table}");
}

#[test]
fn replay_prints_an_object_per_row() {
    let rows = json(&["replay", "--json", "--repeat", "1"]);
    assert_eq!(rows.len(), 4); // two allocators, one thread and two
    for row in rows {
        assert_eq!((&row["command"], &row["trace"]), (&"replay".into(), &"redis".into()));
        assert_eq!((&row["verified"], &row["violation"]), (&true.into(), &Value::Null));
        assert_eq!((&row["ops"], &row["peak_units"]), (&332_194.into(), &113_270.into()));
        let times = ["median_ns", "p99_ns", "p999_ns", "max_ns"];
        assert_numbers(&row, &times);
        let times = times.map(|key| row[key].as_f64().unwrap());
        assert!(times.is_sorted(), "{row}");
        assert_numbers(&row, &["threads", "failed", "metadata_bytes", "largest_free_order"]);
        assert!(row["allocator"].is_string());
    }
}

#[test]
fn refusals_of_a_small_arena_are_counted_and_judged() {
    let args = ["replay", "--json", "--repeat", "1", "--arena", "64M", "--threads", "2"];
    for row in json(&args) {
        assert!(row["failed"].as_u64().unwrap() > 100_000, "{row}");
        assert_eq!((&row["verified"], &row["peak_units"]), (&true.into(), &16_384.into()), "{row}");
    }
}

#[test]
fn bench_limit_prints_an_object_per_row() {
    let args = "bench limit --json --arenas 64M --orders 0,9 --fills 0,50 --rounds 3";
    let rows = json(&args.split(' ').collect::<Vec<_>>());
    let of_case = |case: &str| rows.iter().filter(|row| row["case"] == case).count();
    assert_eq!(["pair", "bulk", "random_free"].map(of_case), [8, 2, 2]);
    assert_eq!(of_case("fail"), 4);
    for row in &rows {
        assert_eq!(row["command"], "bench limit");
        assert_numbers(row, &["order", "arena_bytes", "fill_percent", "threads"]);
        assert_numbers(row, &["ns", "bare_cas_ns", "ratio", "rmw_per_alloc"]);
        assert!(row["case"] == "fail" || row["rmw_per_free"].is_number(), "{row}");
    }
    let steps = |key: &str| rows.iter().map(|row| row[key].as_f64().unwrap()).next().unwrap();
    assert_eq!([steps("rmw_per_alloc"), steps("rmw_per_free")], [1.0, 1.0]);
}

#[test]
fn bench_limit_prints_tables() {
    let args = "bench limit --arenas 64M --orders 9 --fills 0 --rounds 1";
    let tables = stdout(&args.split(' ').collect::<Vec<_>>());
    for words in ["bare CAS", "2 threads", "random_free", "sprinkled", "at most"] {
        assert!(tables.contains(words), "{words} in\n{tables}");
    }
}

#[test]
fn nonsense_is_refused_with_the_limit() {
    for (args, words) in [
        ("frobnicate", "unrecognized subcommand 'frobnicate'"),
        ("bench", "Usage: nbbs bench"),
        ("replay --allocators nbbs,jemalloc", "there are: nbbs, linux"),
        ("replay --threads 0", "1 to 64"),
        ("replay --threads 3", "redis has events of 2 CPUs"),
        ("replay --threads many", "1 to 64"),
        ("replay --repeat 0", "1 to 100000"),
        ("replay --arena big", "512M, 1G or 1T"),
        ("replay --arena 5000", "multiple of 4 KiB"),
        ("replay --arena 8P", "at most 4 PiB"),
        ("replay --arena 1P", "linux takes an arena of at most 16.0 TiB"),
        ("bench limit --orders 18", "18 is not in 0..=17"),
        ("bench limit --fills 100", "100 is not in 0..=99"),
        ("bench limit --arenas 1M --orders 9", "orders up to 9 take 8 MiB to 16 TiB"),
        ("bench limit --rounds -1", "unexpected argument '-1'"),
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
        .args(["replay", "--json", "--repeat", "1"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
