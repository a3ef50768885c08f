//! Tests `nbbs bench cores` where its tools are missing, and what the page shows of it. `ci/cores.sh` runs the command
//! itself.
#![cfg(unix)]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use assert_cmd::Command;
use serde_json::json;
use support::{json as rows_of, refusal, stdout};

/// Creates a command that runs this script.
fn fake(folder: &Path, name: &str, script: &str) {
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Returns the message of the command when there are no programs except those in the folder.
fn said(folder: &Path) -> String {
    let mut nbbs = Command::cargo_bin("nbbs").unwrap();
    nbbs.env("PATH", folder).env("CARGO", "cargo").env("CARGO_TARGET_DIR", folder);
    let output = nbbs.args(["bench", "cores", "--quick"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn what_is_missing_is_named_with_how_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    assert!(said(path).contains("install Rust"));
    fake(path, "rustc", "echo /no/such/folder");
    assert!(said(path).contains("rustup target add riscv64gc-unknown-none-elf"));
    fake(path, "rustc", "echo /");
    fake(path, "cargo", "echo no crates >&2; exit 101");
    assert!(said(path).contains("cannot be built: no crates"));
    fake(path, "cargo", "");
    assert!(said(path).contains("python3 is missing"));
    fake(path, "python3", "echo no ensurepip; exit 1");
    let error = said(path);
    assert!(error.contains("python3-venv") && error.contains("no ensurepip"), "{error}");
    fake(
        path,
        "python3",
        "/bin/mkdir -p $4/bin; /bin/cp $0 $4/bin/python; [ $2 = venv ] || { echo no index; exit 1; }",
    );
    let error = said(path);
    assert!(error.contains("this needs PyPI") && error.contains("no index"), "{error}");
}

#[test]
fn arguments_that_cannot_be_are_refused() {
    assert!(refusal(&["bench", "cores", "--loops", "knots"], 2).contains("bulk, churn"));
    assert!(refusal(&["bench", "cores", "--harts", "65"], 2).contains("at most 64 threads"));
    let nobody = ["bench", "cores", "--loops", "objects", "--allocators", "nb4"];
    assert!(refusal(&nobody, 2).contains("nb4 is a back-end, and cores runs on"));
    let large = ["bench", "cores", "--quick", "--arena", "8G"];
    assert!(refusal(&large, 2).contains("at most 4 GiB, not 8 GiB"));
}

#[test]
fn the_page_draws_throughput_beside_one_core() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name| folder.path().join(name).to_str().unwrap().to_owned();
    let (record, page) = (path("cores.jsonl"), path("page.html"));
    let header = json!({
        "record": 1, "date": "2026-11-23T12:00:00Z", "command": "nbbs bench cores",
        "machine": {"cpu": "c", "cpus": 2, "memory_bytes": 1 << 30, "system": "Linux"},
        "versions": {"nbbs": "0.1.0", "revision": "abcdef", "rustc": "rustc 1.95.0"},
    });
    let row = |harts: usize, times: f64| {
        json!({
            "command": "bench cores", "workload": "cores", "phase": "pairs", "allocator": "nbbs", "kind": "backend",
            "threads": harts, "ns_per_op": 40.0 / times, "beside_one": times, "transfers_per_pair": 0.02,
            "verified": null,
        })
    };
    let lines = [header, row(1, 1.0), row(64, 61.25)].map(|line| format!("{line}\n"));
    std::fs::write(&record, lines.concat()).unwrap();
    let compared = rows_of(&["compare", "--json", &record, &record]);
    assert_eq!(compared.len(), 2);
    // Nobody judged them, so nothing is wrong and nothing is verified.
    assert!(compared.iter().all(|row| row["new_verified"].is_null() && row["ratio"] == 1.0));
    stdout(&["report", &record, "--output", &page]);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(!page.contains("FAILED"));
    for words in
        ["beside one core: higher is better", "\"factors\":true", "61.25", "no SMT, no NUMA"]
    {
        assert!(page.contains(words), "{words}");
    }
}
