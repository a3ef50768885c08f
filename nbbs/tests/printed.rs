//! Tests what a program prints of the library's values: it does not grow with the arena.

use std::fmt::Debug;

use nbbs::sync::{AtomicU64, Word};
use nbbs::{
    Block, Buddy, Caches, Caps, Metadata, MetadataBox, Request, Zone, Zones, cache_words,
    metadata_words,
};
use testkit::program::Arena;

#[track_caller]
fn assert_prints(value: impl Debug, as_text: &str) {
    assert_eq!(format!("{value:?}"), as_text);
}

#[test]
fn handles_print_without_the_words() {
    let arena: Arena = Arena::new(128);
    let buddy = arena.buddy();
    assert_prints(buddy, "Buddy { units: 128, .. }");
    assert_prints(buddy.on(3), "Lane { .. }");
    let block = Block::new(buddy.on(0), Request::units(5).within(40..45)).unwrap();
    assert_prints(&block, "Block { lane: Lane { .. }, index: 40 }");
}

#[test]
fn zones_print_their_arenas() {
    let arena: Arena = Arena::new(128);
    let zones = [Zone { base: 7, buddy: arena.buddy() }];
    assert_prints(zones[0], "Zone { base: 7, buddy: Buddy { units: 128, .. } }");
    let listed = format!("zones: {zones:?}");
    let zones = Zones::new(&zones).unwrap();
    assert_prints(zones, &format!("Zones {{ {listed}, lane: None }}"));
    assert_prints(zones.on(3), &format!("Zones {{ {listed}, lane: Some(3) }}"));
}

/// Compiles only if what it prints can be printed whether or not the words can: nothing is known of `W` but that.
fn assert_handles_print<W: Word>(words: &[W], cache: &[W]) {
    let buddy = Buddy::new(words, 64).unwrap();
    let (zone, caps) = (Zone { base: 0, buddy }, Caps::new());
    assert_prints(zone, "Zone { base: 0, buddy: Buddy { units: 64, .. } }");
    let zones = format!("Zones {{ zones: [{zone:?}], lane: None }}");
    assert_prints(Zones::new(&[zone]).unwrap(), &zones);
    let block = Block::new(buddy.on(0), Request::block(6)).unwrap();
    assert_prints(&block, "Block { lane: Lane { .. }, index: 0 }");
    let rest = format!("caps: {caps:?}");
    assert_prints(buddy.cache(0), &format!("Cache {{ buddy: {buddy:?}, lane: 0, {rest}, .. }}"));
    let caches = format!("Caches {{ buddy: {buddy:?}, {rest}, cpus: 1, .. }}");
    assert_prints(Caches::new(buddy, cache), &caches);
}

#[test]
fn handles_print_whether_or_not_their_words_can() {
    let zeros = |words| (0..words).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
    assert_handles_print(&zeros(metadata_words(64)), &zeros(cache_words(1)));
}

#[test]
fn caches_print_without_what_they_keep() {
    let arena: Arena = Arena::new(128);
    let (buddy, caps) = (arena.buddy(), Caps::new());
    let rest = format!("caps: {caps:?}");
    let words = MetadataBox::zeroed(cache_words(2)).unwrap();
    let caches = Caches::new(buddy, words.words());
    assert_prints(caches, &format!("Caches {{ buddy: {buddy:?}, {rest}, cpus: 2, .. }}"));
    assert_prints(buddy.cache(1), &format!("Cache {{ buddy: {buddy:?}, lane: 1, {rest}, .. }}"));
}

#[test]
fn metadata_prints_its_length() {
    assert_prints(Metadata::<40>::new(), "Metadata { words: 40, .. }");
    let words = metadata_words(1);
    let said = format!("MetadataBox {{ words: {words}, .. }}");
    assert_prints(MetadataBox::for_cpus(1, 1).unwrap(), &said);
}
