//! Threads that write to what they hold without any synchronisation: under Miri, a claim that does not happen after the
//! last holder's free is a data race. `verify/checks/miri.sh` runs this under many schedules; here it is a small test.

use std::cell::UnsafeCell;
use std::thread;

use nbbs::{Buddy, Metadata, Request, metadata_words};

/// A word of memory for each unit.
struct Memory(Vec<UnsafeCell<u64>>);

// SAFETY: a thread that accesses a cell holds its unit, which the allocator hands out to one thread at a time: this is
// what is tested.
unsafe impl Sync for Memory {}

impl Memory {
    fn new(units: u64) -> Self {
        Self((0..units).map(|_| UnsafeCell::new(0)).collect())
    }

    fn write(&self, index: u64, units: u64, value: u64) {
        for cell in &self.0[index as usize..(index + units) as usize] {
            // SAFETY: as above.
            unsafe { *cell.get() = value };
        }
    }

    /// The holder's last read, before it frees.
    fn check(&self, index: u64, units: u64, value: u64) {
        for cell in &self.0[index as usize..(index + units) as usize] {
            // SAFETY: as above.
            assert_eq!(unsafe { *cell.get() }, value);
        }
    }
}

const UNITS: u64 = 70;

/// Calls `act` with the thread's number on three threads, on an arena of two levels.
fn three(act: impl Fn(&Buddy<'_>, &Memory, usize) + Sync) {
    let metadata = Metadata::<{ metadata_words(UNITS) }>::new();
    let buddy = Buddy::new(metadata.words(), UNITS).unwrap();
    let memory = Memory::new(UNITS);
    thread::scope(|scope| {
        for thread in 0..3 {
            let (act, buddy, memory) = (&act, &buddy, &memory);
            scope.spawn(move || act(buddy, memory, thread));
        }
    });
    buddy.audit().unwrap();
    assert_eq!(buddy.stats().free_units, UNITS);
}

/// Takes blocks of these orders in turn, two at a time.
fn take(buddy: &Buddy<'_>, memory: &Memory, lane: usize, orders: &[u32]) {
    let free = |(index, order): (u64, u32)| {
        memory.check(index, 1 << order, lane as u64);
        buddy.on(lane).free_sized(index, order).unwrap();
    };
    let mut last = None;
    for &order in orders {
        let got = buddy.on(lane).alloc(order).ok();
        if let Some(index) = got {
            memory.write(index, 1 << order, lane as u64);
        }
        std::mem::replace(&mut last, got.map(|index| (index, order))).map(free);
    }
    last.map(free);
}

/// Whole words, which are merged and split again, beside the smallest blocks.
#[test]
fn blocks_of_every_order() {
    three(|buddy, memory, thread| match thread {
        0 => take(buddy, memory, 0, &[5, 0, 6, 5]),
        1 => take(buddy, memory, 1, &[0, 4, 5, 0]),
        _ => take(buddy, memory, 2, &[6, 1, 5]),
    });
}

/// All threads name one lane, and use what it remembers.
#[test]
fn a_lane_that_is_shared() {
    let metadata = Metadata::<{ metadata_words(UNITS) }>::new();
    let buddy = Buddy::new(metadata.words(), UNITS).unwrap();
    let memory = Memory::new(UNITS);
    thread::scope(|scope| {
        for thread in 0..3 {
            let (buddy, memory) = (&buddy, &memory);
            scope.spawn(move || {
                for order in [0, 5, 0, 4] {
                    let Ok(index) = buddy.on(7).alloc(order) else { continue };
                    memory.write(index, 1 << order, thread);
                    memory.check(index, 1 << order, thread);
                    assert_eq!(buddy.on(7).free(index), Ok(1 << order));
                }
            });
        }
    });
    buddy.audit().unwrap();
}

/// Exact sizes that cross words, cut and grown, beside batches and places.
#[test]
fn runs_batches_and_places() {
    three(|buddy, memory, thread| match thread {
        0 => {
            let Ok(run) = buddy.on(0).alloc_units(37) else { return };
            memory.write(run, 37, 1);
            memory.check(run + 30, 7, 1);
            let len = if buddy.on(0).shrink(run, 30).is_ok() { 30 } else { 37 };
            let len = if buddy.on(0).grow(run, len + 5).is_ok() { len + 5 } else { len };
            memory.write(run, len, 2);
            buddy.on(0).free_units(run, len).unwrap();
        }
        1 => {
            let mut blocks = [0; 9];
            let got = buddy.here().alloc_batch(1, &mut blocks).unwrap_or(0);
            blocks[..got].iter().for_each(|&block| memory.write(block, 2, 3));
            buddy.here().free_batch(1, &blocks[..got]).unwrap();
        }
        _ => {
            let low = Request::units(9).within(0..40).top_down();
            if let Ok(index) = buddy.on(2).request(low) {
                memory.write(index, 9, 4);
                buddy.on(2).free(index).unwrap();
            }
            if buddy.on(2).alloc_at(5, 3).is_ok() {
                memory.write(5, 3, 5);
                buddy.on(2).free(5).unwrap();
            }
        }
    });
}

/// The threads' own lanes, whichever these are.
#[test]
fn threads_without_a_lane() {
    three(|buddy, memory, thread| {
        for order in [2, 0, 5] {
            let Ok(index) = buddy.alloc(order) else { continue };
            memory.write(index, 1 << order, thread as u64);
            buddy.free(index).unwrap();
        }
    });
}
