//! The arithmetic on codes, compiled from the library's own files: for each function, one that only takes and returns
//! `u64`, which `prove.py` executes for all words.

// A function of the library without a counterpart here is a gap in the proof.
#![deny(dead_code)]

include!(concat!(env!("OUT_DIR"), "/library.rs"));

use word::span;

/// `None`, for an optional slot, order or bound.
const NONE: u64 = u64::MAX;

fn or_none(value: Option<impl Into<u64>>) -> u64 {
    value.map_or(NONE, Into::into)
}

/// Exports `NAME(ARGUMENTS) = BODY`, with a result that fits in a `u64`.
macro_rules! export {
    ($($name:ident($($argument:ident: $type:ty),*) = $body:expr;)*) => {$(
        // SAFETY: no other symbol of this library has a name that begins with `word_` or `span_`.
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: u64),*) -> u64 {
            $(let $argument = $argument as $type;)*
            #[allow(clippy::unnecessary_cast)]
            { $body as u64 }
        }
    )*};
}

export! {
    word_constant(which: usize) = [word::FREE, word::SPLIT, word::RESERVED, word::REST, word::HEAD, word::MARK, word::UNSETTLED][which];
    word_codes(level: usize, word: u64) = word::codes(level, word);
    word_bound(word: u64) = word::bound(word);
    word_inner(old: u64, codes: u64, bound: u64) = word::inner(old, codes, bound);
    word_marked(old: u64) = word::marked(old);
    word_bound_and_mark(word: u64) = word::bound_and_mark(word);
    word_unmarked_bound(word: u64) = or_none(word::unmarked_bound(word));
    word_allows(word: u64, offer: u64) = word::allows(word, offer);
    word_passes(word: u64, slot: u32) = word::passes(word, slot);
    word_with_codes(level: usize, old: u64, codes: u64) = word::with_codes(level, old, codes);
    word_only_fills(level: usize, from: u64, to: u64) = word::only_fills(level, from, to);
    word_keeps_split(level: usize, from: u64, to: u64) = word::keeps_split(level, from, to);
    word_code(word: u64, slot: u32) = word::code(word, slot);
    word_first_slots(count: u32) = word::first_slots(count);
    word_both_bits(set: u64) = word::both_bits(set);
    word_free_slots(codes: u64) = word::free_slots(codes);
    word_split_slots(codes: u64) = word::split_slots(codes);
    word_block_bits(order: u32) = word::block_bits(order);
    word_block(order: u32) = word::block(order);
    word_block_order(codes: u64, slot: u32) = or_none(word::block_order(codes, slot));
    word_is_block(codes: u64, slot: u32, order: u32) = word::is_block(codes, slot, order);
    word_places(free: u64, order: u32) = word::places(free, order);
    word_fit(free: u64, order: u32) = or_none(word::fit(free, order));
    word_lone_fit(free: u64, order: u32) = or_none(word::lone_fit(free, order));
    word_is_free(codes: u64, slot: u32, order: u32) = word::is_free(codes, slot, order);
    word_claim(level: usize, old: u64, slot: u32, order: u32) = word::claim(level, old, slot, order);
    word_has_block(level: usize, old: u64, slot: u32, order: u32) = word::without_block(level, old, slot, order).is_some();
    word_without_block(level: usize, old: u64, slot: u32, order: u32) = word::without_block(level, old, slot, order).map_or(NONE, |(word, _)| word);
    word_left_without_block(level: usize, old: u64, slot: u32, order: u32) = word::without_block(level, old, slot, order).map_or(NONE, |(_, left)| left);
    word_largest(free: u64) = or_none(word::largest(free));
    word_largest_at(free: u64, slot: u32) = word::largest_at(free, slot);
    word_grown(codes: u64, slot: u32, most: u32) = word::grown(codes, slot, most);
    word_nth_from_slot(set: u64, start: u32, n: usize) = or_none(word::from_slot(set, start).nth(n));

    span_bits(slot: u32, count: u32) = span::bits(slot, count);
    span_rests(slot: u32, count: u32) = span::rests(slot, count);
    span_closed(slot: u32, count: u32) = span::closed(slot, count);
    span_open(slot: u32, count: u32) = span::open(slot, count);
    span_hidden(slot: u32, count: u32) = span::hidden(slot, count);
    span_reserved_at(slot: u32, count: u32) = span::reserved_at(slot, count);
    span_rest_slots(codes: u64) = span::rest_slots(codes);
    span_heads(codes: u64) = span::heads(codes);
    span_reserved(codes: u64) = span::reserved(codes);
    span_length_from(set: u64, slot: u32) = span::length_from(set, slot);
    span_start_to(set: u64, slot: u32) = span::start_to(set, slot);
    span_rests_from(codes: u64, slot: u32) = span::rests_from(codes, slot);
    span_rests_to(codes: u64, slot: u32) = span::rests_to(codes, slot);
    span_is_there(word: u64, slot: u32, count: u32, codes: u64) = span::is_there(word, slot, count, codes);
    span_starts(free: u64, count: u32) = span::starts(free, count);
    span_fit(free: u64, count: u32) = or_none(span::fit(free, count));
}
