//! The workloads of the C implementation of NBBS by T. Cici, and the fill of the Buddy Allocator Workshop.

use super::Worker;

/// Allocates blocks of one order, divided equally.
pub fn alloc_seq(worker: &mut Worker<'_>) {
    let blocks = worker.share(worker.units() >> worker.order());
    worker.stretch("alloc", |worker| worker.repeat(blocks, |worker| worker.hold(worker.order())));
}

/// How often the memory is filled with random orders, as few blocks fill it.
const TIMES: usize = 5;

/// Allocates random orders; the threads race.
pub fn alloc_rnd(worker: &mut Worker<'_>) {
    for _ in 0..TIMES {
        worker.stretch("alloc", fill_up);
        worker.prepare(|worker| worker.repeat_all(Worker::free_last));
    }
}

/// Frees in order what was allocated in order.
pub fn free_seq(worker: &mut Worker<'_>) {
    worker.prepare(|worker| {
        let blocks = worker.share(worker.units() >> worker.order());
        worker.repeat(blocks, |worker| worker.hold(worker.order()));
        worker.held.reverse();
    });
    free_all(worker);
}

/// Frees at random what any thread allocated.
pub fn free_rnd(worker: &mut Worker<'_>) {
    for _ in 0..TIMES {
        worker.prepare(|worker| {
            fill_up(worker);
            worker.shuffle_over_all();
        });
        free_all(worker);
    }
}

/// Makes the memory nearly full, then nearly empty, again and again until time is up. What is refused is followed by
/// smaller orders; the memory also counts as nearly full when a single unit is refused.
pub fn stress(worker: &mut Worker<'_>) {
    let share = worker.units() / worker.threads() as u64;
    let (high, low) = (share * 95 / 100, share * 5 / 100);
    worker.stretch("all", |worker| {
        let (mut units, mut growing) = (0, true);
        let mut largest = worker.largest_of_mix();
        worker.until_late(|worker| {
            if growing {
                let held = hold_any(worker, &mut largest);
                units += held.unwrap_or(0);
                growing = held.is_some() && units < high;
            } else {
                units -= worker.free_any().map_or(units, |block| block.len());
                growing = units <= low;
                largest = worker.largest_of_mix();
            }
            true
        });
    });
}

fn free_all(worker: &mut Worker<'_>) {
    worker.stretch("free", |worker| worker.repeat_all(Worker::free_last));
}

/// Allocates random orders, of those that were not refused yet, until a single unit is refused.
fn fill_up(worker: &mut Worker<'_>) {
    let mut largest = worker.largest_of_mix();
    worker.until_done(|worker| hold_any(worker, &mut largest).is_some());
}

/// Allocates a block of a random order up to `largest`, which is below that order after a refusal. Returns the number of
/// units that it got, or `None` if a single unit was refused.
fn hold_any(worker: &mut Worker<'_>, largest: &mut u32) -> Option<u64> {
    let order = worker.random.u32(0..=*largest);
    match worker.hold(order) {
        true => Some(1 << order),
        false => {
            *largest = order.checked_sub(1)?;
            Some(0)
        }
    }
}
