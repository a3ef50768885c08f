//! Collections in a given heap, beside the program's own: what they hold never leaves it, and cannot exceed it.

use allocator_api2::vec::Vec;
use hashbrown::HashMap;
use nbbs_heap::Heap;

static SESSIONS: Heap<{ 1 << 20 }> = Heap::new();

fn main() {
    let mut names = HashMap::new_in(&SESSIONS);
    for id in 0..1000_u32 {
        let mut name = Vec::new_in(&SESSIONS);
        name.extend_from_slice(format!("session {id}").as_bytes());
        names.insert(id, name);
    }
    let stats = SESSIONS.stats();
    println!(
        "{} names in {} of {} KiB",
        names.len(),
        (stats.slots + stats.runs) >> 10,
        stats.bytes >> 10
    );

    let mut big: Vec<u8, _> = Vec::new_in(&SESSIONS);
    let refused = big.try_reserve(1 << 20).is_err();
    println!("a further MiB is refused: {refused}");
    drop(names);
    SESSIONS.trim();
    println!("free again: {} of {} KiB", SESSIONS.stats().free >> 10, stats.bytes >> 10);
}
