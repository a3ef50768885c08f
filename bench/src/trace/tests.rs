use super::{Action, Event, HeapTrace, Trace, parse};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

const HEADER: &str = "# page trace v1: test\n# a comment\n";

fn zstd(text: &str) -> Vec<u8> {
    compress_to_vec(text.as_bytes(), CompressionLevel::Fastest)
}

/// Returns the error for a trace of these events, which begin in line 3.
fn refusal(events: &str) -> String {
    let text = format!("{HEADER}{events}");
    parse::trace("t", &zstd(&text)).expect_err("it is malformed").to_string()
}

#[test]
fn reads_events_in_order() {
    let text = format!("{HEADER}+0 0 7\n+1 3 8\n-1 7\n");
    let trace = parse::trace("t", &zstd(&text)).unwrap();
    let event = |cpu, action, block| Event { cpu, action, block };
    let (alloc, free) = (Action::Alloc, Action::Free);
    assert_eq!(trace.events, [event(0, alloc, 0), event(1, alloc, 1), event(1, free, 0)]);
    assert_eq!((trace.cpus, &trace.orders[..], trace.peak_units), (2, &[0, 3][..], 9));
}

#[test]
fn the_sample_is_what_its_header_says() {
    let sample = Trace::sample().unwrap();
    assert_eq!((sample.name, sample.cpus), ("redis", 2));
    assert_eq!((sample.peak_units, sample.orders.len()), (113_270, 171_708));
}

#[test]
fn reads_frames_one_after_the_other() {
    let mut file = zstd(HEADER);
    file.extend([0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]); // a skippable frame
    file.extend(zstd("+0 0 0\n"));
    assert_eq!(parse::trace("t", &file).unwrap().events.len(), 1);
}

#[test]
fn names_the_line_and_what_is_wrong() {
    for (events, message) in [
        ("+0 0 0\nhello\n", r#"t, line 4: "hello" is neither "+CPU ORDER ID" nor "-CPU ID""#),
        ("\n", r#"t, line 3: "" is neither "+CPU ORDER ID" nor "-CPU ID""#),
        ("+0 0\n", r#"t, line 3: "+0 0" is neither "+CPU ORDER ID" nor "-CPU ID""#),
        ("-0 0 0\n", r#"t, line 3: "-0 0 0" is neither "+CPU ORDER ID" nor "-CPU ID""#),
        ("é0 0 0\n", r#"t, line 3: "é0 0 0" is neither "+CPU ORDER ID" nor "-CPU ID""#),
        ("+1024 0 0\n", r#"t, line 3: CPU "1024" is not a number from 0 to 1023"#),
        ("--1 0\n", r#"t, line 3: CPU "-1" is not a number from 0 to 1023"#),
        ("+0 41 0\n", r#"t, line 3: order "41" is not a number from 0 to 40"#),
        ("+0 x 0\n", r#"t, line 3: order "x" is not a number from 0 to 40"#),
        ("+0 0 +5\n", r#"t, line 3: ID "+5" is not a number from 0 to 18446744073709551615"#),
        ("+0 0 0\n-0 1\n", "t, line 4: no line before allocates ID 1"),
        ("+0 0 0\n-0 0\n+0 0 0\n", "t, line 5: ID 0 is allocated again: line 3 allocated it"),
        ("+0 0 0\n-0 0\n-0 0\n", "t, line 5: ID 0 is no longer allocated: line 4 freed it"),
        ("", "t, line 3: there is no event in it"),
    ] {
        let refusal = refusal(events);
        assert!(refusal.starts_with(message), "{events:?}: {refusal}");
    }
}

#[test]
fn heap_traces_follow_blocks_from_place_to_place() {
    let text = "# heap trace v1: test\n+0 5 16 0\n=1 2048 0\n+0 7 8 1\n-0 0\n";
    let trace = HeapTrace::read("t", &zstd(text)).unwrap();
    let events: Vec<_> =
        trace.events.iter().map(|event| (event.thread, event.from, event.to)).collect();
    let expected =
        [(0, None, Some(0)), (1, Some(0), Some(1)), (0, None, Some(2)), (0, Some(1), None)];
    assert_eq!(events, expected);
    let sizes: Vec<_> = trace.places.iter().map(|place| (place.size(), place.align())).collect();
    assert_eq!(sizes, [(5, 16), (2048, 16), (7, 8)]);
    assert_eq!((trace.threads, trace.peak_bytes), (2, 2055));
    let sample = HeapTrace::sample().unwrap();
    assert_eq!((sample.name, sample.threads), ("git", 5));
    assert_eq!((sample.peak_bytes, sample.events.len()), (54_668_647, 252_998));
}

#[test]
fn heap_traces_name_the_line_and_what_is_wrong() {
    for (events, message) in [
        ("+0 5 0\n", r#"t, line 2: "+0 5 0" is neither "+THREAD SIZE ALIGN ID" nor "#),
        ("+0 5 3 0\n", r#"t, line 2: alignment "3" is not a power of two from 1 to"#),
        ("+0 -5 8 0\n", r#"t, line 2: size "-5" is not a number from 0 to 1099511627776"#),
        ("+x 5 8 0\n", r#"t, line 2: thread "x" is not a number from 0 to 1023"#),
        ("+0 5 8 0\n=0 6 1\n", "t, line 3: no line before allocates ID 1"),
        ("+0 5 8 0\n-0 0\n=0 6 0\n", "t, line 4: ID 0 is no longer allocated: line 3 freed it"),
    ] {
        let text = format!("# heap trace v1: test\n{events}");
        let refusal = HeapTrace::read("t", &zstd(&text)).unwrap_err().to_string();
        assert!(refusal.starts_with(message), "{events:?}: {refusal}");
    }
    let pages = zstd("# page trace v1: redis\n+0 0 0\n");
    let message = HeapTrace::read("t", &pages).unwrap_err().to_string();
    assert!(message.contains("must be \"# heap trace v1: NAME\", not"), "{message}");
}

#[test]
fn quotes_little_of_a_long_line() {
    let refusal = refusal(&"é".repeat(1000));
    assert!(refusal.chars().count() < 150, "{refusal}");
}

#[test]
fn wants_a_page_trace() {
    let other = zstd("# heap trace v1: cc\n+0 8 0\n");
    let message = parse::trace("t", &other).unwrap_err().to_string();
    assert!(message.starts_with("t, line 1: the first line must be"), "{message}");
    assert!(message.contains("heap trace"), "{message}");
}

#[test]
fn wants_zstd() {
    for file in [&b""[..], b"\x28\xb5", b"# page trace v1: test\n+0 0 0\n", b"\x1f\x8b\x08\x00\x00"]
    {
        let message = parse::trace("t", file).unwrap_err().to_string();
        assert!(message.starts_with("t: not zstd-compressed"), "{message}");
    }
}

#[test]
fn notices_a_file_that_is_cut_off() {
    let file = super::SAMPLE;
    for len in [4, 5, 100, file.len() / 2, file.len() - 5, file.len() - 1] {
        let message = parse::trace("t", &file[..len]).unwrap_err().to_string();
        assert!(message.contains("damaged or cut off"), "{len}: {message}");
        assert!(message.ends_with("the file ends in the middle"), "{len}: {message}");
    }
    for (len, lines) in [(file.len() / 2, 100_000), (file.len() - 1, 332_000)] {
        let message = parse::trace("t", &file[..len]).unwrap_err().to_string();
        let line = message.split([' ', ':']).nth(2).and_then(|line| line.parse().ok());
        assert!(line.is_some_and(|line: usize| line > lines), "{message}");
    }
}

#[test]
fn notices_damage_and_what_follows_the_end() {
    let mut file = super::SAMPLE.to_vec();
    let middle = file.len() / 2;
    file[middle] ^= 1;
    assert!(parse::trace("t", &file).is_err());
    let mut file = super::SAMPLE.to_vec();
    *file.last_mut().unwrap() ^= 1; // in the checksum
    assert!(parse::trace("t", &file).is_err());
    let mut file = super::SAMPLE.to_vec();
    file.extend(b"more");
    assert!(parse::trace("t", &file).is_err());
}

#[test]
fn names_the_file_that_is_not_there() {
    let message = Trace::open("no/such.trace.zst".as_ref()).unwrap_err().to_string();
    assert!(message.starts_with("no/such.trace.zst: cannot be read: "), "{message}");
}
