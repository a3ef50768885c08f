//! Which lane a call uses that names none: that of the calling thread, found without a thread-local.
//!
//! A thread-local of a library that was loaded by `dlopen` comes from `malloc` when a thread first uses it, and a
//! signal handler that has interrupted `malloc` would wait for itself. So threads are looked up in a table by
//! `pthread_self`, which reads a register and may be called from handlers.
//!
//! A wrong or shared lane costs speed, never safety. So entries stay: a thread that comes in the place of one that has
//! ended takes over its lane, the thread that goes on after `fork` keeps the one that it had in the parent, and a
//! thread for which no place is left shares a lane.

#[cfg(all(feature = "std", unix))]
pub(crate) use table::thread_lane;

// Without `std` there is no thread to ask; elsewhere handlers do not interrupt threads.
#[cfg(not(all(feature = "std", unix)))]
pub(crate) use nbbs::default_lane as thread_lane;

#[cfg(all(feature = "std", unix))]
mod table {
    use core::sync::atomic::{AtomicU32, Ordering};

    use nbbs::next_lane;

    unsafe extern "C" {
        /// An integer or a pointer wherever there is a Rust for it.
        safe fn pthread_self() -> usize;
    }

    /// log2 of the threads that the table has room for.
    const PLACES_LOG2: u32 = 8;
    /// Places where a thread looks for itself: those of its cache line.
    const NEAR: usize = 16;
    /// The bits of an entry that are the lane; those above are the thread's.
    const LANE: u32 = 255;

    /// Entries; 0: nobody's.
    static TABLE: Table = Table([const { AtomicU32::new(0) }; 1 << PLACES_LOG2]);

    #[repr(align(64))]
    struct Table([AtomicU32; 1 << PLACES_LOG2]);

    /// The calling thread's lane. Takes constant time; callable from signal handlers.
    #[inline(always)]
    pub(crate) fn thread_lane() -> usize {
        // The golden section of 2^32: what differs anywhere differs at the top.
        let key = (pthread_self() as u32).wrapping_mul(0x9e37_79b1);
        let place = (key >> (u32::BITS - PLACES_LOG2)) as usize;
        // Relaxed, here and below: an entry is all that there is to know.
        let entry = TABLE.0[place].load(Ordering::Relaxed);
        if is_of(entry, key) { entry as usize } else { look_around(key, place) }
    }

    #[inline(always)]
    fn is_of(entry: u32, key: u32) -> bool {
        (entry ^ key) <= LANE
    }

    /// The lane of a thread that is not at its first place: elsewhere near it, or new.
    #[cold]
    fn look_around(key: u32, place: usize) -> usize {
        let mut fresh = None;
        for near in 0..NEAR {
            let entry = &TABLE.0[place ^ near];
            let mut found = entry.load(Ordering::Relaxed);
            if found == 0 {
                let new = key & !LANE | *fresh.get_or_insert_with(next_lane) as u32 & LANE;
                match entry.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => found = new,
                    // Another thread's, or that of a handler that has interrupted this very call.
                    Err(other) => found = other,
                }
            }
            if is_of(found, key) {
                return found as usize;
            }
        }
        place
    }

    #[cfg(test)]
    mod tests {
        extern crate std;
        use std::collections::HashSet;
        use std::sync::Barrier;
        use std::thread;
        use std::vec::Vec;

        use super::{LANE, PLACES_LOG2, thread_lane};

        /// The lanes of so many threads that live at the same time.
        fn lanes_of(threads: usize) -> Vec<usize> {
            let together = Barrier::new(threads);
            thread::scope(|scope| {
                let lane = || {
                    let lane = thread_lane();
                    together.wait();
                    assert_eq!(thread_lane(), lane);
                    lane & LANE as usize
                };
                let threads: Vec<_> = (0..threads).map(|_| scope.spawn(lane)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            })
        }

        #[test]
        fn threads_have_lanes_of_their_own_until_the_table_is_full() {
            let few = lanes_of(16);
            assert_eq!(few.iter().collect::<HashSet<_>>().len(), 16, "{few:?}");
            // Of more than there are places each has one, too, the same at every call; most of them are used.
            let many: HashSet<_> = lanes_of(600).into_iter().collect();
            assert!(many.len() > 1 << (PLACES_LOG2 - 1), "{many:?}");
        }
    }
}
