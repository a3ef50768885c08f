//! Tests records, pages and comparisons as users meet them.

mod support;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::{json as rows_of, nbbs, refusal, stdout};

/// Returns a header as the command writes it.
fn header() -> Value {
    json!({
        "record": 1,
        "date": "2026-11-21T12:00:00Z",
        "command": "nbbs bench bulk",
        "machine": {"cpu": "A <b>bold</b> processor", "cpus": 2, "memory_bytes": 1 << 30, "system": "Linux"},
        "versions": {"nbbs": "0.1.0", "revision": "abcdef", "rustc": "rustc 1.95.0"},
    })
}

/// Returns a row of `bulk`.
fn row(allocator: &str, threads: usize, ns: f64) -> Value {
    json!({
        "command": "bench", "workload": "bulk", "phase": "alloc", "allocator": allocator, "kind": "backend",
        "safe": allocator != "nb1", "threads": threads, "order": 0, "size_bytes": 4096,
        "arena_bytes": 1 << 27, "ns_per_op": ns, "min_ns_per_op": ns * 0.95, "max_ns_per_op": ns * 1.05,
        "clock_step_ns": 17.5, "p50_ns": ns, "p99_ns": ns * 2.0, "p999_ns": ns * 3.0, "max_ns": ns * 100.0,
        "metadata_bytes": 9000, "verified": true,
    })
}

/// Returns such a row with refusals.
fn refusing(allocator: &str, threads: usize, ns: f64) -> Value {
    let mut row = row(allocator, threads, ns);
    row["refused"] = 1234.into();
    row
}

/// Returns the lines of a record.
fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        text_of(&path)
    }
}

fn text_of(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_page_says_who_wins_and_what_was_measured_where() {
    let folder = Folder::new();
    let record = lines(&[
        header(),
        row("nbbs", 1, 10.0),
        row("linux", 1, 8.0),
        row("<sly> & co", 1, 30.0),
        row("nb1", 1, 5.0),
        row("nbbs", 8, 10.0),
        refusing("linux", 8, 40.0),
        row("nbbs-cached", 8, 12.0),
        row("linux-pcp", 8, 12.1),
    ]);
    let mut stalled = row("linux", 2, 10.0);
    let keys = stalled.as_object_mut().unwrap();
    keys.insert("workload".to_owned(), "suspended".into());
    keys.insert("p999_ns".to_owned(), 4_000_000.into());
    keys.insert("baseline_p999_ns".to_owned(), 1000.into());
    let record = record + &lines(&[stalled]);
    let record = folder.file("a.jsonl", &record);
    let output = text_of(&folder.path("page.html"));
    stdout(&["report", &record, "--output", &output]);
    let page = std::fs::read_to_string(&output).unwrap();
    for words in [
        "In 1 of 2 cases <b>nbbs</b>", // nb1 is faster, and does not count
        "0.80 ×",                      // linux with one thread
        "4.0 ×",                       // and with eight
        "In 0 of 1 cases <b>nbbs-cached</b>", // its rounds and those of linux-pcp overlap
        "With 8† threads nbbs is the fastest safe one: 10.0 ns; next linux-pcp: 12.1 ns.",
        "† more threads than processors",
        "<th scope=\"col\">8† thr.</th>", // of 2 CPUs
        "<th scope=\"col\">1 thr.</th>",
        "<th scope=\"col\">refused</th>",
        "<td>1,234</td>",
        "steps of 17.5 ns",
        "A &#60;b&#62;bold&#60;/b&#62; processor",
        "&#60;sly&#62; &#38; co",
        "<td>4000 ×</td>", // p99.9 while a thread is suspended
        "nbbs bench bulk",
        "How this page could be wrong",
        "data:image/png;base64,",
        "THE SOFTWARE IS PROVIDED \"AS IS\"",
    ] {
        assert!(page.contains(words), "{words}");
    }
    let sly = page.matches("<sly>").count() + page.matches("<b>bold").count();
    assert_eq!(sly, 0, "something is not escaped");
    let elsewhere = ["src=\"http", "url(http", "@import", "<link rel=\"stylesheet"];
    assert!(elsewhere.iter().all(|words| !page.contains(words)));
}

/// Returns the page of some rows.
fn page_of(rows: &[Value]) -> String {
    let folder = Folder::new();
    let record = folder.file("a.jsonl", &lines(&[&[header()], rows].concat()));
    let output = text_of(&folder.path("page.html"));
    stdout(&["report", &record, "--output", &output]);
    std::fs::read_to_string(&output).unwrap()
}

#[test]
fn nobody_is_called_the_fastest_whose_rounds_overlap_those_of_another() {
    let page = page_of(&[row("nbbs", 1, 10.0), row("nbbs-cached", 1, 10.1), row("linux", 1, 10.5)]);
    let told = "With 1 thread it is undecided which safe one is the fastest: \
                nbbs takes 10.0 ns, linux 10.5 ns, and their rounds overlap.";
    assert!(page.contains(told), "{told}");
    // Another way to use nbbs is no rival of it.
    let page = page_of(&[row("nbbs", 1, 10.0), row("nbbs-cached", 1, 10.1), row("linux", 1, 20.0)]);
    for words in [
        "With 1 thread nbbs is the fastest safe one: 10.0 ns; next linux: 20.0 ns.",
        "In 1 of 1 cases <b>nbbs</b>",
        "In 1 of 1 cases <b>nbbs-cached</b>",
    ] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn the_heap_has_a_summary_too() {
    // The time to fill a heap says nothing without how full it gets.
    let heap = |workload: &str, allocator, ns| {
        let mut row = row(allocator, 1, ns);
        (row["kind"], row["workload"]) = ("heap".into(), workload.into());
        row["efficiency_percent"] = (workload == "heap-efficiency").then_some(90.0).into();
        row
    };
    let pair = |workload, ns| [heap(workload, "nbbs-heap", 10.0), heap(workload, "talc", ns)];
    let page = page_of(&[pair("bulk", 20.0), pair("heap-efficiency", 5.0)].concat());
    assert!(page.contains("In 1 of 1 cases <b>nbbs-heap</b>"));
}

#[test]
fn what_is_measured_can_be_kept_and_shown() {
    let folder = Folder::new();
    let paths = ["page.html", "run.jsonl", "run.jsonl.zst", "again.html"];
    let [page, plain, compressed, again] = paths.map(|name| text_of(&folder.path(name)));
    let run = "bench fill --quick --threads 1 --arena 4M --rounds 1 --allocators nbbs,linux";
    let run: Vec<&str> = run.split(' ').collect();
    stdout(&[&run[..], &["--html", &page, "--record", &plain]].concat());
    stdout(&[&run[..], &["--record", &compressed]].concat());
    stdout(&["report", &plain, &compressed, "--output", &again]);
    for page in [page, again] {
        let page = std::fs::read_to_string(page).unwrap();
        assert!(page.contains("allocate the arena unit by unit") && page.contains(", talc 5."));
    }
    let text = std::fs::read_to_string(&plain).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), &lines[0]["record"]), (4, &2.into()));
    assert_eq!(lines[3], json!({"end": 2}));
    assert!(lines[0]["command"].as_str().unwrap().contains("bench fill"));
    assert!(!text.contains("null"));
    assert!(std::fs::read(&compressed).unwrap().starts_with(&[0x28, 0xb5, 0x2f, 0xfd]));
    assert_eq!(rows_of(&["compare", "--json", &plain, &compressed]).len(), 2);
}

/// Whatever is measured can be kept, shown and compared: no two of its cases are confused.
#[test]
fn every_command_that_measures_can_be_kept() {
    let folder = Folder::new();
    let [page, record] = ["page.html", "run.jsonl"].map(|name| text_of(&folder.path(name)));
    for (args, rows) in [
        ("bench limit --arenas 64M --orders 0,9 --fills 0,50 --rounds 3", 44),
        ("bench requests --rounds 1", 11),
        ("replay --rounds 1 --threads 1 --allocators nbbs,linux", 2),
        (
            "bench pool --quick --pairs 2000 --threads 1 --rounds 1 --allocators nbbs-pool,nothing",
            6,
        ),
    ] {
        let args: Vec<&str> = args.split(' ').collect();
        let told = rows_of(&[&args[..], &["--json", "--record", &record]].concat());
        assert_eq!(told.len(), rows, "{args:?}");
        assert!(told.iter().all(|row| row["ns_per_op"].as_f64() > Some(0.0)), "{told:?}");
        assert_eq!(rows_of(&["compare", "--json", &record, &record]).len(), rows, "{args:?}");
        stdout(&["report", &record, "--output", &page]);
        assert!(std::fs::read_to_string(&page).unwrap().contains(args[1].trim_start_matches('-')));
    }
}

/// Kills a run once it has a row. Returns its number of rows.
#[cfg(unix)]
fn killed_run(record: &Path) -> usize {
    let args = "bench cached larson --quick --threads 1,2,4,8,16,32 --allocators nbbs,linux --rounds 40 --record";
    let mut run = std::process::Command::new(env!("CARGO_BIN_EXE_nbbs"))
        .args(args.split(' '))
        .arg(record)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let rows = || {
        let output = nbbs(&["compare", "--json", &text_of(record), &text_of(record)]);
        output.stdout.iter().filter(|&&byte| byte == b'\n').count()
    };
    while rows() == 0 {
        assert!(run.try_wait().unwrap().is_none(), "it came to its end");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    run.kill().unwrap();
    run.wait().unwrap();
    rows()
}

#[cfg(unix)]
#[test]
fn a_killed_run_leaves_what_it_measured() {
    let folder = Folder::new();
    for name in ["killed.jsonl", "killed.jsonl.zst"] {
        let record = folder.path(name);
        let rows = killed_run(&record);
        assert!((2..24).contains(&rows), "{rows} rows");
        let (record, page) = (text_of(&record), text_of(&folder.path("page.html")));
        let output = nbbs(&["report", &record, "--output", &page]);
        let warned = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && warned.contains(&record), "{warned}");
        let said = format!("was cut off after {rows} rows");
        let page = std::fs::read_to_string(&page).unwrap();
        assert!(warned.contains(&said) && page.contains(&said), "{said} in {warned}");
    }
}

/// The header of a record holds the command line, which is text.
#[cfg(unix)]
#[test]
fn a_record_may_have_any_name() {
    use std::os::unix::ffi::OsStrExt;

    let folder = Folder::new();
    let record = folder.path("").join(std::ffi::OsStr::from_bytes(b"\xff.jsonl"));
    let mut command = assert_cmd::Command::cargo_bin("nbbs").unwrap();
    let run = ["bench", "fill", "--quick", "--rounds", "1", "--threads", "1"];
    command.args(run).args(["--allocators", "nbbs", "--record"]).arg(&record).assert().success();
    let mut command = assert_cmd::Command::cargo_bin("nbbs").unwrap();
    command.arg("compare").args([&record, &record]).assert().success();
}

#[test]
fn a_record_may_end_anywhere_and_says_so() {
    let folder = Folder::new();
    let mut header = header();
    header.as_object_mut().unwrap().insert("record".to_owned(), 2.into());
    let whole = lines(&[
        header,
        row("nbbs", 1, 10.0),
        row("linux", 1, 20.0),
        json!({"skipped": "a thing that is too large"}),
        json!({"end": 2}),
    ]);
    let ends: Vec<usize> = whole.match_indices('\n').map(|(place, _)| place + 1).collect();
    // After the first row, in the second, after the second, which may lack its newline, and in the last line.
    let places = [(ends[1], 1), (ends[1] + 9, 1), (ends[2] - 1, 2), (ends[2], 2), (ends[4] - 3, 2)];
    for (end, rows) in places {
        let cut = folder.file("cut.jsonl", &whole[..end]);
        let output = nbbs(&["compare", &cut, &cut, "--json"]);
        assert_eq!(output.stdout.iter().filter(|&&byte| byte == b'\n').count(), rows);
        let warned = String::from_utf8(output.stderr).unwrap();
        assert!(warned.contains(&format!("incomplete: nbbs bench bulk was cut off after {rows}")));
    }
    let whole = folder.file("whole.jsonl", &whole);
    assert!(nbbs(&["compare", &whole, &whole]).stderr.is_empty());
    let page = text_of(&folder.path("page.html"));
    stdout(&["report", &whole, "--output", &page]);
    assert!(std::fs::read_to_string(&page).unwrap().contains("a thing that is too large"));
}

#[test]
fn comparisons_put_what_changed_most_first_and_mark_noise() {
    let folder = Folder::new();
    let old = [header(), row("nbbs", 1, 10.0), row("linux", 1, 10.0), row("sl1", 1, 10.0)];
    let old = folder.file("old.jsonl", &lines(&old));
    let new = [
        header(),
        row("nbbs", 1, 10.5),
        row("linux", 1, 13.0),
        row("sl1", 1, 2.5),
        row("nb4", 1, 1.0),
    ];
    let new = folder.file("new.jsonl", &lines(&new));
    let rows = rows_of(&["compare", &old, &new, "--json"]);
    let seen: Vec<(&str, f64, bool)> = rows
        .iter()
        .map(|row| (&row["allocator"], &row["ratio"], &row["within_noise"]))
        .map(|(name, ratio, noise)| {
            (name.as_str().unwrap(), ratio.as_f64().unwrap(), noise.as_bool().unwrap())
        })
        .collect();
    assert_eq!(seen, [("sl1", 0.25, false), ("linux", 1.3, false), ("nbbs", 1.05, true)]);
    let table = stdout(&["compare", &old, &new, "--most", "2"]);
    for words in
        ["0.25", "1.30", "2 changed beyond their noise", "1 only in the new", "1 row is not shown"]
    {
        assert!(table.contains(words), "{words} in\n{table}");
    }
}

#[test]
fn records_without_a_case_in_common_are_refused() {
    let folder = Folder::new();
    let one =
        folder.file("one.jsonl", &lines(&[header(), row("nbbs", 1, 10.0), row("linux", 1, 10.0)]));
    let other = folder.file("other.jsonl", &lines(&[header(), row("nbbs", 2, 10.0)]));
    let output = nbbs(&["compare", &one, &other]);
    assert!(!output.status.success() && output.stdout.is_empty());
    let said = String::from_utf8(output.stderr).unwrap();
    let expected = "no case in common: 2 are only in the old one, 1 only in the new one";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn rows_by_an_old_name_are_compared_with_those_by_the_new_one() {
    let folder = Folder::new();
    let names = ["arena", "arena-box", "arena-sl", "typed-arena"];
    let old = names.map(|name| row(name, 1, 10.0));
    let old = folder.file("old.jsonl", &lines(&[&[header()][..], &old].concat()));
    let names = ["nbbs-pool", "nbbs-pool-box", "freelist-sl", "typed-arena"];
    let new = names.map(|name| row(name, 1, 10.0));
    let new = folder.file("new.jsonl", &lines(&[&[header()][..], &new].concat()));
    let rows = rows_of(&["compare", &old, &new, "--json"]);
    assert_eq!(
        rows.iter().map(|row| row["allocator"].as_str().unwrap()).collect::<Vec<_>>(),
        names
    );
}

#[test]
fn a_comparison_fails_if_an_allocator_is_found_wrong_that_was_not() {
    let folder = Folder::new();
    let mut wrong = row("linux", 1, 10.0);
    let found = wrong.as_object_mut().unwrap();
    found.remove("ns_per_op");
    found.insert("verified".to_owned(), false.into());
    let old = folder.file("old.jsonl", &lines(&[header(), row("linux", 1, 10.0)]));
    let new = folder.file("new.jsonl", &lines(&[header(), wrong]));
    let output = nbbs(&["compare", &old, &new]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stdout).unwrap().contains("FAILED"));
    assert_eq!(nbbs(&["compare", &new, &old]).status.code(), Some(0));
}

#[test]
fn malformed_records_are_refused_by_name_and_line() {
    let folder = Folder::new();
    let good = lines(&[header(), row("nbbs", 1, 10.0)]);
    let (mut negative, mut nobody, mut future) =
        (row("nbbs", 1, 1.0), row("nbbs", 0, 1.0), header());
    negative.as_object_mut().unwrap().insert("ns_per_op".to_owned(), (-1.0).into());
    nobody.as_object_mut().unwrap().insert("threads".to_owned(), 0.into());
    future.as_object_mut().unwrap().insert("record".to_owned(), 3.into());
    for (text, words) in [
        (String::new(), "there is no row in it"),
        (lines(&[header()]), "there is no row in it"),
        (lines(&[row("nbbs", 1, 1.0)]), "line 1: a record begins with a header"),
        (format!("{good}{{"), "line 3: not a JSON object"),
        (format!("{good}[1]"), "line 3: not a JSON object: [1]"),
        (format!("{good}{{\"max_ns\": 1e999}}"), "number out of range at column 16: 1e999"),
        (format!("{good}{{\"max_ns\": NaN}}"), "expected value at column 12: NaN"),
        (format!("{good}{{\"max_ns\": -Infinity}}"), "invalid number at column 13: -Infinity"),
        (
            format!("{good}{{\"workload\":\"bulk\"}}"),
            "line 3: not a row of a benchmark: missing field",
        ),
        (
            format!("{good}{negative}"),
            "line 3: not a row of a benchmark: ns_per_op is -1.0, below 0",
        ),
        (format!("{good}{nobody}"), "line 3: not a row of a benchmark: threads is 0, below 1"),
        (
            good.replace("\"threads\":1", "\"threads\":\"one\""),
            "line 2: not a row of a benchmark: threads: invalid type: string \"one\", expected usize",
        ),
        (
            good.replace("\"cpus\":", "\"cpus\":\"two\",\"others\":"),
            "line 1: not a header of a record: machine.cpus: invalid type: string \"two\", expected usize",
        ),
        (
            good.replace("\"cpus\":", "\"others\":"),
            "line 1: not a header of a record: machine: missing field `cpus`",
        ),
        (format!("{{\"record\":1}}\n{good}"), "line 1: not a header of a record: missing field"),
        (format!("{good}{{\"end\":7}}\n"), "line 3: the end of a run of 7 rows after 1"),
        (
            good.replace("\"record\":1", "\"record\":2")
                + &lines(&[json!({ "end": 1 }), row("nbbs", 2, 1.0)]),
            "line 4: a record begins with a header",
        ),
        (format!("{good}{{\"skipped\":7}}\n"), "line 3: `skipped` must be a text, not 7"),
        (
            format!("{good}{future}"),
            "line 3: a record of format 3; this command reads formats up to 2",
        ),
    ] {
        let file = folder.file("bad.jsonl", &text);
        let error = refusal(&["compare", &file, &file], 2);
        assert!(error.contains(words) && error.contains(&file), "{error}");
        assert!(!error.contains("at line 1 column"), "{error}");
    }
    let garbage = folder.path("bad.jsonl.zst");
    std::fs::write(&garbage, [0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3]).unwrap();
    assert!(refusal(&["report", &text_of(&garbage)], 2).contains("line 1: damaged"));
    let missing = text_of(&folder.path("none.jsonl"));
    assert!(refusal(&["report", &missing], 2).contains("cannot be read"));
    let record = folder.file("good.jsonl", &good);
    let nowhere = text_of(&folder.path("none/page.html"));
    assert!(refusal(&["report", &record, "--output", &nowhere], 2).contains("cannot be written"));
    let early = refusal(&["bench", "fill", "--html", &nowhere], 2);
    assert!(early.contains("cannot be written"), "{early}");
    // Whatever is refused, what a record holds stays.
    let run = ["bench", "fill", "--record", &record, "--html"];
    assert!(refusal(&[&run[..], &[&nowhere]].concat(), 2).contains("cannot be written"));
    assert!(refusal(&[&run[..], &[&record]].concat(), 2).contains("both record and page"));
    let over = refusal(&["report", &record, "--output", &record], 2);
    assert!(over.contains("cannot be the page"), "{over}");
    let neither = refusal(&["report", &missing, "--output", &missing], 2);
    assert!(neither.contains("cannot be read"), "{neither}");
    assert!(
        stdout(&["report", &record, "--output", &text_of(&folder.path("page.html"))])
            .contains("page.html")
    );
}

#[test]
fn figures_that_no_measurement_can_have_are_refused_by_line() {
    let folder = Folder::new();
    for (key, figure, words) in [
        ("order", json!(200), "order is 200, above 40"),
        ("threads", json!(129), "threads is 129, above 128"),
        ("size_bytes", json!(0), "size_bytes is 0, below 1"),
        ("arena_bytes", json!(1_u64 << 60), "arena_bytes is 1152921504606846976, above"),
        ("ops_per_s", json!(-1), "ops_per_s is -1, below 0"),
        ("rmw_per_op", json!(-0.5), "rmw_per_op is -0.5, below 0"),
        ("ops", json!(-3), "ops is -3, below 0"),
        ("ns_per_op", json!(-1e308), "ns_per_op is -1e+308, below 0"),
        ("max_ns", json!(1e308), "max_ns is 1e+308, above 18446744073709551615"),
        ("baseline_p999_ns", json!(-2), "baseline_p999_ns is -2, below 0"),
        ("min_ns_per_op", json!(1e6), "min_ns_per_op is 1000000.0, above max_ns_per_op, 10.5"),
        ("recovered_percent", json!(101), "recovered_percent is 101, above 100"),
        ("fragmentation_permille", json!(1001), "fragmentation_permille is 1001, above 1000"),
        ("success_rate", json!(1.5), "success_rate is 1.5, above 1"),
    ] {
        let mut wrong = row("nbbs", 1, 10.0);
        wrong.as_object_mut().unwrap().insert(key.to_owned(), figure);
        let file = folder.file("bad.jsonl", &lines(&[header(), wrong]));
        for command in [["compare", &file, &file].as_slice(), &["report", &file]] {
            let error = refusal(command, 2);
            let told = format!("bad.jsonl, line 2: not a row of a benchmark: {words}");
            assert!(error.contains(&told), "{error}");
        }
    }
}

#[test]
fn the_pool_has_rivals_with_caches_and_none_among_its_own() {
    let pool = |allocator: &str, caches: bool, ns: f64| {
        let mut row = row(allocator, 1, ns);
        (row["kind"], row["private_caches"]) = ("pool".into(), caches.into());
        row
    };
    let page = page_of(&[
        pool("nbbs-pool", true, 10.0),
        pool("nbbs-pool-box", false, 5.0),
        pool("nothing", false, 1.0),
        pool("system", true, 20.0),
        pool("slab", false, 30.0),
    ]);
    for words in ["In 1 of 1 cases <b>nbbs-pool</b>", "<b>2.0 ×</b>"] {
        assert!(page.contains(words), "{words}");
    }
    assert!(page.contains("no safe allocator, with private caches or without, is faster"));
}
