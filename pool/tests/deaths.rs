//! Tests a thread that dies, or stalls for good, at any step: nobody else waits, nothing is handed out twice, and at
//! most what it had in its hands is lost.

mod support;

use nbbs_pool::PoolBox;
use support::steps::Stepped;
use support::{Bank, Item, Pointers};
use testkit::steered::die_before;
use testkit::{BackEnd, Oracle};

const CHUNK: usize = 66;

/// Lets `act` die before each of its steps in turn, with `held` objects in a pool of two chunks, and lets the others
/// go on. At most `lost` slots may be lost.
fn die_everywhere(held: usize, lost: usize, act: impl Fn(&Pointers<'_, Stepped>)) {
    for step in 0.. {
        let bank = Bank::new(CHUNK, 2);
        let back_end = Pointers::<Stepped>::new(&bank);
        back_end.pool.reserve(2 * CHUNK).unwrap();
        let oracle = Oracle::of(&back_end);
        let objects: Vec<_> =
            (0..held).map(|_| oracle.take(1, back_end.alloc(1, 0).unwrap(), 0).unwrap()).collect();
        let survived = die_before(step, || act(&back_end)).is_some();
        for block in objects {
            oracle.give(block).unwrap();
            back_end.free(2, block.index, 0).unwrap();
        }
        let mut all = Vec::new();
        while let Some(index) = back_end.alloc(3, 0) {
            all.push(oracle.take(3, index, 0).unwrap());
        }
        let missing = 2 * CHUNK - all.len();
        assert!(missing <= lost, "died before step {step}: {missing} slots are lost");
        for block in all {
            oracle.give(block).unwrap();
            back_end.free(4, block.index, 0).unwrap();
        }
        if survived {
            assert!(step > 0, "no step was taken");
            assert_eq!(back_end.pool.shrink(), 2 * CHUNK - missing.div_ceil(CHUNK) * CHUNK);
            break;
        }
    }
}

fn item() -> Item {
    Item([5, 0, 0, !5])
}

#[test]
fn during_an_allocation() {
    for held in [0, 1, 63, 64, CHUNK - 1, CHUNK, 2 * CHUNK - 1, 2 * CHUNK] {
        die_everywhere(held, 1, |back_end| {
            _ = back_end.pool.alloc_box(item()).map(PoolBox::into_raw);
        });
    }
}

#[test]
fn during_a_free() {
    for held in [0, 63, 64, CHUNK, 2 * CHUNK - 1] {
        die_everywhere(held, 1, |back_end| {
            let object = back_end.pool.alloc(item()).unwrap();
            back_end.pool.free(object).unwrap();
        });
    }
}

/// A local's owner may lose what it kept, and the slot that it is freeing.
#[test]
fn in_a_local_that_gives_back() {
    // One word, so that the slot that is kept apart lies where the others do.
    const WORD: usize = 64;
    for most in [2, 3, 5, 61] {
        let mut worst = 0;
        for step in 0.. {
            let bank = Bank::new(WORD, 1);
            let back_end = Pointers::<Stepped>::new(&bank);
            let pool = &back_end.pool;
            pool.reserve(WORD).unwrap();
            let all = || std::iter::from_fn(|| pool.alloc_box(item()).ok().map(PoolBox::into_raw));
            let mut held: Vec<_> = all().take(most + 3).collect();
            // A thread that dies does not drop it.
            let mut local = std::mem::ManuallyDrop::new(pool.local_of(most));
            let survived = die_before(step, || {
                while let Some(one) = held.pop() {
                    // SAFETY: it comes from a box of this pool, and is turned back once.
                    local.free(unsafe { pool.from_raw(one) });
                }
            });
            worst = worst.max(WORD - held.len() - all().count());
            if survived.is_some() {
                break;
            }
        }
        assert!(worst <= most + 1, "a local that keeps {most} cost {worst}");
        assert!(most > 2 || worst == 3, "it should die while it frees the third");
    }
}

/// A local that is forgotten costs its place, too.
#[test]
fn in_all_locals() {
    let bank = Bank::new(CHUNK, 1);
    let back_end = Pointers::<Stepped>::new(&bank);
    let keeps = || {
        let mut local = back_end.pool.local();
        let one = local.alloc(item()).unwrap();
        local.free(one);
        local.kept() > 0
    };
    for _ in 0..32 {
        assert!(keeps());
        std::mem::forget(back_end.pool.local());
    }
    assert!(!keeps());
}

/// A local's owner may lose what it kept, and no more.
#[test]
fn in_a_local() {
    for (held, most) in [(0, 1025), (1, 1025), (65, 1025), (1, 2), (65, 5)] {
        die_everywhere(held, most.min(64), |back_end| {
            // A thread that dies does not drop it.
            let mut local = std::mem::ManuallyDrop::new(back_end.pool.local_of(most));
            let one = local.alloc(item()).map(PoolBox::into_raw);
            // SAFETY: it comes from a box of this pool, and is turned back once.
            local.free(unsafe { back_end.pool.from_raw(one.unwrap()) });
            local.flush();
        });
    }
}
