//! Tests what a program prints of the library's values: it does not grow with the arena.

use std::fmt::Debug;

use nbbs::{Block, Caches, Caps, Metadata, MetadataBox, Request, cache_words, metadata_words};
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
    assert_prints(MetadataBox::new(1).unwrap(), &said);
}
