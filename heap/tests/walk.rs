//! Tests that every block in use is shown once, and counted in the profile.

mod support;

use std::collections::BTreeMap;

use nbbs_heap::{Heap, LiveBlock};
use serde_json::Value;
use support::{Memory, assert_whole, layout};

#[test]
fn all_that_is_held_and_nothing_else() {
    static HEAP: Heap<{ 16 << 20 }> = Heap::new();
    let mut rng = fastrand::Rng::with_seed(1);
    let mut held = BTreeMap::new();
    for _ in 0..if cfg!(miri) { 3 } else { 50 } {
        for _ in 0..30 {
            let most = [300, 20_000, 200_000][rng.usize(..3)];
            let of = layout(rng.usize(..most), 8);
            held.extend(HEAP.alloc(of).map(|at| (at, of)));
            if rng.bool()
                && let Some((at, of)) = held.pop_first()
            {
                // SAFETY: ours.
                unsafe { Memory::free(&HEAP, at, of) };
            }
        }
        HEAP.trim();
        let (stats, mut shown) = (HEAP.stats(), BTreeMap::new());
        HEAP.walk(|live| {
            assert!(shown.insert(live.at, live).is_none(), "{live:?}: twice");
            assert_eq!(HEAP.usable(live.at), Ok(live.size));
            assert!(live.class.is_none_or(|class| stats.classes()[class].size == live.size));
        });
        assert!(shown.keys().eq(held.keys()), "{} of {}", shown.len(), held.len());
        check_profile(&HEAP.profile().to_string(), shown.into_values());
    }
    HEAP.walk(|live| {
        // SAFETY: ours.
        unsafe { HEAP.free_at(live.at) }.unwrap();
    });
    assert_whole(&HEAP);
    check_profile(&HEAP.profile().to_string(), []);
}

/// Reads a profile as viewers do.
fn check_profile(text: &str, shown: impl IntoIterator<Item = LiveBlock>) {
    let profile: Value = serde_json::from_str(text).unwrap();
    assert_eq!(profile["dhatFileVersion"], 2);
    for key in ["mode", "verb", "tu", "Mtu", "cmd"] {
        assert!(profile[key].is_string(), "{key}");
    }
    assert!(profile["bklt"] == false && profile["bkacc"] == false);
    assert!(profile["pid"].is_u64() && profile["te"].is_u64());
    let frames = profile["ftbl"].as_array().unwrap();
    assert_eq!(frames[0], "[root]");
    let number = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
    let mut found = BTreeMap::new();
    for point in profile["pps"].as_array().unwrap() {
        let frame = frames[number(&point["fs"][0])].as_str().unwrap();
        let least: usize = frame.split(' ').find_map(|word| word.parse().ok()).unwrap();
        let kind = (frame.starts_with("runs"), least);
        assert_eq!(found.insert(kind, (number(&point["tbk"]), number(&point["tb"]))), None);
    }
    let mut expected = BTreeMap::<_, (usize, usize)>::new();
    for live in shown {
        let of_run = (true, 1 << live.size.ilog2());
        let kind = live.class.map_or(of_run, |_| (false, live.size));
        let (count, bytes) = expected.entry(kind).or_default();
        (*count, *bytes) = (*count + 1, *bytes + live.size);
    }
    assert_eq!(found, expected);
}
