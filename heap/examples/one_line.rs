//! One line makes the heap the global allocator: everything that the program allocates, its threads' included.

use std::collections::HashMap;
use std::thread;

use nbbs_heap::Heap;

#[global_allocator]
static HEAP: Heap<{ 64 << 20 }> = Heap::new();

fn main() {
    let counted: Vec<HashMap<String, usize>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|number| scope.spawn(move || count(number))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    });
    let words: usize = counted.iter().map(HashMap::len).sum();
    let stats = HEAP.stats();
    println!("{words} words counted by 4 threads, all in a heap of {} KiB:", stats.bytes >> 10);
    println!(
        "{} KiB in slots, {} KiB in runs, {} KiB in free slots, {} KiB free",
        stats.slots >> 10,
        stats.runs >> 10,
        stats.free_slots >> 10,
        stats.free >> 10
    );
    for class in stats.classes().iter().filter(|class| class.used > 100) {
        println!("{:>6} slots of {:>5} bytes in {:>3} slabs", class.used, class.size, class.slabs);
    }
    drop(counted);
}

/// Counts words that it makes up.
fn count(thread: usize) -> HashMap<String, usize> {
    let mut words = HashMap::new();
    for number in 0..50_000_usize {
        *words.entry(format!("word {}", number * (thread + 3) % 7919)).or_insert(0) += 1;
    }
    words
}
