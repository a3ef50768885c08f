//! Handlers that interrupt a caller between any two of its accesses to the words, and change them.

use core::alloc::Layout;

use nbbs::sync::Word;
use testkit::steered::{Steered, steer};

use super::{CURRENT, Ordering, Slabs, WORDS_OF_CLASSES};
use crate::class::Class;

/// Does `work`, which `handler` interrupts before every access. The handler is not interrupted.
fn interrupted<R>(mut handler: impl FnMut() + 'static, work: impl FnOnce() -> R) -> R {
    steer(move || steer(|| {}, &mut handler), work)
}

/// The class of eight slots in a unit.
fn wide() -> Class {
    Class::of(Layout::new::<[u8; 128]>()).unwrap()
}

/// Makes slabs over this many units, each listed with these slots.
fn listed(units: usize, slots: u64) -> Slabs<'static, Steered> {
    let words = |count| &*Vec::leak((0..count).map(|_| Steered::default()).collect());
    let slabs = Slabs::new(words(units), words(units), words(WORDS_OF_CLASSES));
    for unit in 0..units as u64 {
        slabs.make(wide(), unit);
        list(&slabs, unit, slots);
    }
    slabs
}

/// Gives slots back one after the other.
fn list(slabs: &Slabs<'_, Steered>, unit: u64, slots: u64) {
    (0..8).map(|slot| slots & 1 << slot).filter(|&slot| slot != 0).for_each(|slot| {
        slabs.give(wide(), unit, slot);
    });
}

/// Returns how many slabs a trim returns.
fn trim(slabs: &Slabs<'_, Steered>) -> usize {
    let mut returned = 0;
    slabs.take_all_if_whole(wide(), 4, |unit, slots| {
        slabs.give(wide(), unit, slots);
        returned += usize::from(slots == wide().all_slots());
    });
    returned
}

/// A slab becomes whole whenever the stacks are about to change places, more often than there are slabs to look at.
#[test]
#[cfg_attr(miri, ignore = "takes a minute, and has no unsafe code")]
fn a_trim_while_slabs_become_whole() {
    let slabs = listed(20, wide().all_slots());
    let mut times = 0;
    let handler = move || {
        let state = slabs.states[wide().number()].load(Ordering::Relaxed);
        let former = usize::from(state & CURRENT == 0);
        if times == 400 || slabs.on_stack(wide(), former) != 0 {
            return;
        }
        times += 1;
        let mut taken = None;
        slabs.take(wide(), 1, |unit, slots| taken = Some((unit, slots)));
        taken.into_iter().for_each(|(unit, slots)| list(&slabs, unit, slots));
    };
    assert_eq!(interrupted(handler, || trim(&slabs)), 20);
}

/// The stacks change places twice, before any two accesses of a take, or both times before the same.
#[test]
#[cfg_attr(miri, ignore = "takes a minute, and has no unsafe code")]
fn a_take_while_stacks_change_places_twice() {
    const STEPS: usize = 12;
    for (first, second) in
        (0..STEPS).flat_map(|first| (first..STEPS).map(move |second| (first, second)))
    {
        let slabs = listed(6, 1);
        let mut step = 0;
        let handler = move || {
            for _ in [first, second].into_iter().filter(|&at| at == step) {
                slabs.record_whole(wide());
                assert_eq!(trim(&slabs), 0);
            }
            step += 1;
        };
        let mut found = 0;
        interrupted(handler, || slabs.take(wide(), 1, |_, _| found += 1));
        assert_eq!(found, 1, "trims before steps {first} and {second}");
    }
}
