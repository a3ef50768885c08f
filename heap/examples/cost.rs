//! What an allocation and a free take that a cache serves, by kind of cache. `cost
//! thread|any|nested|placed|placed-nested PAIRS` makes so many pairs with one of them, for whoever counts instructions;
//! without arguments, the time of each.

use std::alloc::Layout;
use std::error::Error;
use std::hint::black_box;
use std::ptr::NonNull;
use std::time::Instant;

use nbbs_heap::{Cpu, Heap, On, Overlap, Placed};

/// Any caller may have the number.
struct Any;

impl Cpu for Any {
    fn number() -> Option<usize> {
        Some(black_box(0))
    }
}

/// One caller at a time has the number.
struct Nested;

impl Cpu for Nested {
    // SAFETY: the program has one thread.
    const OVERLAP: Overlap<Self> = unsafe { Overlap::nested() };

    fn number() -> Option<usize> {
        Some(black_box(0))
    }
}

const BYTES: usize = 1 << 20;
const ALL: usize = Placed::bytes_for(2, BYTES).unwrap();
const ROUNDS: usize = 200;

static OF_THREADS: Heap<BYTES> = Heap::new();
static OF_ANY: Heap<BYTES, 1, Any> = Heap::new();
static OF_NESTED: Heap<BYTES, 1, Nested> = Heap::new();

const LAYOUT: Layout = Layout::new::<[u64; 8]>();

#[inline(never)]
fn in_static<C: Cpu>(heap: &'static Heap<BYTES, 1, C>, pairs: u64) {
    for _ in 0..pairs {
        if let Some(block) = black_box(heap.alloc(LAYOUT)) {
            // SAFETY: the block is ours.
            unsafe { heap.free(block, LAYOUT) };
        }
    }
}

#[inline(never)]
fn in_given(on: On<'_>, pairs: u64) {
    for _ in 0..pairs {
        let on = black_box(on);
        if let Some(block) = black_box(on.alloc(LAYOUT)) {
            // SAFETY: the block is ours.
            unsafe { on.free(block, LAYOUT) };
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let memory = Box::leak(vec![0_u8; ALL].into_boxed_slice());
    // SAFETY: the memory is leaked, and nobody else has it.
    let placed = unsafe { Placed::new(NonNull::from(memory).cast(), ALL, 2)? };
    // SAFETY: the program has one thread.
    let nested = unsafe { placed.on_nested(1) };
    let kinds: [(&str, &dyn Fn(u64)); 5] = [
        ("thread", &|pairs| in_static(&OF_THREADS, pairs)),
        ("any", &|pairs| in_static(&OF_ANY, pairs)),
        ("nested", &|pairs| in_static(&OF_NESTED, pairs)),
        ("placed", &|pairs| in_given(placed.on(0), pairs)),
        ("placed-nested", &|pairs| in_given(nested, pairs)),
    ];
    let arguments = testkit::arguments();
    if let [which, pairs] = &arguments[..] {
        let (_, run) = kinds.iter().find(|(name, _)| name == which).ok_or_else(|| {
            format!("{which} is none of thread, any, nested, placed, placed-nested")
        })?;
        run(pairs.parse().map_err(|_| format!("{pairs} is not a number of pairs"))?);
        return Ok(());
    }
    let mut took = [const { Vec::new() }; 5];
    for _ in 0..ROUNDS {
        for ((_, run), took) in kinds.iter().zip(&mut took) {
            let start = Instant::now();
            run(10_000);
            took.push(start.elapsed().as_nanos() as f64 / 10_000.0);
        }
    }
    println!("ns a pair: fastest and median");
    for ((name, _), took) in kinds.iter().zip(&mut took) {
        took.sort_by(f64::total_cmp);
        println!("{name:>14} {:8.1} {:8.1}", took[0], took[ROUNDS / 2]);
    }
    Ok(())
}
