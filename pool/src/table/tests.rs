//! Chunks by number, by address and by room.

use super::{Extra, FIRST, SEGMENTS, Table, place};
use crate::source::Global;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU64;
use std::vec::Vec;

const SLOTS: usize = 3;
const BYTES: usize = SLOTS * 8;

/// Makes this many chunks without a free slot, each with memory of its own.
fn table(memory: &mut [[u64; SLOTS]]) -> Table<u64, AtomicU64> {
    let table = Table::new();
    for (number, place) in memory.iter_mut().enumerate() {
        let (chunk, is_new) = table.append(number, SLOTS, Extra::Nothing, &Global).unwrap();
        assert!(is_new && chunk.number() == number);
        // SAFETY: as many slots of u64, which no chunk has yet.
        assert!(unsafe { chunk.install(NonNull::from(place).cast()) });
    }
    assert_eq!(table.count(), memory.len());
    table
}

/// Disposes of the table; the memory is not the source's.
fn dispose(mut table: Table<u64, AtomicU64>) {
    // SAFETY: nobody else reaches the chunks.
    table.newest_first().for_each(|chunk| _ = unsafe { chunk.uninstall() });
    table.dispose(Extra::Nothing, &Global);
}

#[test]
fn chunks_are_found_by_address_and_by_room() {
    let mut memory = [[0; SLOTS]; 60];
    let table = table(&mut memory);
    let addresses: Vec<usize> = table.newest_first().map(|chunk| chunk.memory() as usize).collect();
    let found = |address| table.find(address, BYTES).map(|chunk| chunk.number());
    let numbers: Vec<_> = (0..60).rev().zip(addresses).collect();
    for &(number, address) in &numbers {
        assert_eq!(found(address), None);
        table.enlist(table.get(number).unwrap(), BYTES);
        assert_eq!((found(address), found(address + BYTES - 1)), (Some(number), Some(number)));
        table.strike(table.get(number).unwrap(), BYTES);
        assert_eq!(found(address), None);
    }
    table.newest_first().for_each(|chunk| table.enlist(chunk, BYTES));
    let first = numbers.iter().map(|&(_, address)| address).min().unwrap();
    let last = numbers.iter().map(|&(_, address)| address + BYTES).max().unwrap();
    for &(number, address) in &numbers {
        assert_eq!((found(address), found(address + BYTES - 1)), (Some(number), Some(number)));
    }
    assert_eq!((found(first - 1), found(last), found(0)), (None, None, None));

    let room = |from| table.next_with_room(from).map(|chunk| chunk.number());
    assert_eq!(room(0), None);
    for number in [59, 40, 24, 23, 8, 7, 0] {
        // SAFETY: all slots are claimed, and nobody's.
        unsafe { table.get(number).unwrap().open() };
        assert_eq!((room(0), room(number)), (Some(number), Some(number)));
    }
    assert_eq!(
        [1, 8, 9, 24, 25, 41, 60].map(room),
        [7, 8, 23, 24, 40, 59, 99].map(|n| (n < 60).then_some(n))
    );
    let before = |to| table.last_with_room(to).map(|chunk| chunk.number());
    assert_eq!(
        [0, 1, 7, 8, 9, 23, 24, 25, 40, 41, 59, 60, 100, usize::MAX - FIRST].map(before),
        [99, 0, 0, 7, 8, 8, 23, 24, 24, 40, 40, 59, 59, 59].map(|n| (n < 60).then_some(n))
    );
    dispose(table);
}

#[test]
fn of_two_who_append_a_chunk_one_counts_it() {
    let table = Table::<u64, AtomicU64>::new();
    let append = || {
        table.append(0, SLOTS, Extra::Words, &Global).map(|(chunk, is_new)| (chunk.slots(), is_new))
    };
    assert_eq!((append(), append()), (Ok((SLOTS, true)), Ok((SLOTS, false))));
    assert_eq!((table.count(), table.get(0).is_some(), table.get(1).is_some()), (1, true, false));
    let mut table = table;
    table.dispose(Extra::Words, &Global);
}

#[test]
fn segments_follow_each_other() {
    let mut next = (0, 0);
    for number in 0..10_000 {
        assert_eq!(place(number), next);
        next = if next.1 + 1 == FIRST << next.0 { (next.0 + 1, 0) } else { (next.0, next.1 + 1) };
    }
}

/// Such as a handle may name that was made of any bits, on 32-bit machines.
#[test]
fn a_number_that_no_chunk_can_have_is_in_no_segment() {
    assert!(place(usize::MAX).0 >= SEGMENTS);
    assert!(Table::<u64, AtomicU64>::new().get(usize::MAX).is_none());
}
