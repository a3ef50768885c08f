//! Races on slabs under loom: every execution of two lanes with three preemptions, and of three lanes with two. Each
//! slot is always in one place, a stack or somebody's hands, and everything done with it happens before what its next
//! holder does.
//!
//! The buddy allocator is a word here, with a bit for each block that was returned.

mod plot;

use plot::{Held, Plot, WIDE, narrow, wide};

use testkit_loom::model;

/// What a thread does with what it holds. Returns what it holds then.
type Lane = fn(&Plot, Vec<Held>) -> Vec<Held>;

/// Makes slabs, and returns what each lane holds of them.
type Fresh = fn(&Plot) -> Vec<Vec<Held>>;

/// Races lanes on a fresh plot, and checks that every slot is in one place.
#[track_caller]
fn race(preemptions: usize, units: usize, fresh: Fresh, lanes: &'static [Lane]) {
    model(preemptions, move || {
        let (plot, held) = plot::together(units, fresh, lanes);
        plot.check(&held);
    });
}

/// Holds the `slots` of a slab whose other slots are free.
fn but(plot: &Plot, unit: u64, slots: u64) -> Held {
    plot.make(wide(), unit).keep(plot, slots)
}

fn give_all(plot: &Plot, held: Vec<Held>) -> Vec<Held> {
    held.into_iter().for_each(|held| plot.give(held));
    Vec::new()
}

fn take_one(plot: &Plot, mut held: Vec<Held>) -> Vec<Held> {
    held.extend(plot.take(wide(), 1));
    held
}

fn take_two(plot: &Plot, mut held: Vec<Held>) -> Vec<Held> {
    held.extend(plot.take(wide(), 2));
    held
}

/// Keeps a slot, and gives back the others, like an allocation that bypasses the caches.
fn take_one_slot(plot: &Plot, mut held: Vec<Held>) -> Vec<Held> {
    held.extend(plot.take(wide(), 1).into_iter().map(|taken| taken.keep(plot, taken.lowest())));
    held
}

#[test]
fn freed_slots_go_to_the_taker() {
    race(3, 1, |plot| vec![vec![but(plot, 0, 0x0f)], vec![]], &[give_all, take_one]);
    race(
        2,
        1,
        |plot| vec![vec![but(plot, 0, 0x0f).part(0x03)], vec![Held::of(0, 0x0c)], vec![]],
        &[give_all, give_all, take_one],
    );
}

#[test]
fn one_of_two_lists_a_slab() {
    race(
        3,
        1,
        |plot| {
            let all = plot.make(wide(), 0);
            vec![vec![all.part(0x0f)], vec![all.part(0xf0)]]
        },
        &[give_all, give_all],
    );
    race(
        2,
        1,
        |plot| {
            let all = plot.make(wide(), 0);
            vec![vec![all.part(0x0f)], vec![all.part(0xf0)], vec![]]
        },
        &[give_all, give_all, take_one_slot],
    );
}

#[test]
fn two_take() {
    fn fresh(plot: &Plot) -> Vec<Vec<Held>> {
        vec![vec![but(plot, 0, 1), but(plot, 1, 1)], vec![]]
    }
    race(3, 2, fresh, &[take_one, take_one]);
    race(3, 2, fresh, &[take_one, take_two]);
    race(3, 2, fresh, &[take_one_slot, take_two]);
    race(3, 2, fresh, &[take_one_slot, take_one_slot]);
}

#[test]
fn a_slab_is_listed_beside_who_takes_several() {
    fn fresh(plot: &Plot) -> Vec<Vec<Held>> {
        let unlisted = plot.make(wide(), 2);
        vec![vec![unlisted.part(0x0f)], vec![but(plot, 0, 1), but(plot, 1, 1), unlisted.part(0xf0)]]
    }
    race(3, 3, fresh, &[give_all, take_two]);
    race(2, 3, fresh, &[take_two, give_all]);
}

/// One takes two slabs and lists the first of them anew, while another has seen that one before the second.
#[test]
fn a_stack_that_looks_as_before() {
    fn take_two_give_first(plot: &Plot, mut held: Vec<Held>) -> Vec<Held> {
        let mut taken = plot.take(wide(), 2).into_iter();
        if let Some(first) = taken.next() {
            held.push(first.keep(plot, first.lowest()));
        }
        held.extend(taken);
        held
    }
    let fresh = |plot: &Plot| vec![vec![but(plot, 2, 1), but(plot, 1, 1), but(plot, 0, 1)], vec![]];
    race(3, 3, fresh, &[take_two_give_first, take_one]);
    race(2, 3, fresh, &[take_two_give_first, take_two]);
}

/// All slots come into one hand, and the memory becomes a slab of another class.
#[test]
fn a_slab_made_anew_for_another_class() {
    fn collect(plot: &Plot, held: Vec<Held>) -> Vec<Held> {
        let mut slots = 0;
        for held in held.into_iter().chain(plot.take(wide(), 1)) {
            slots |= held.slots;
        }
        plot.give(Held::of(0, slots));
        plot.make_returned(narrow()).map(|anew| anew.keep(plot, 0x00ff)).into_iter().collect()
    }
    fn take_narrow(plot: &Plot, mut held: Vec<Held>) -> Vec<Held> {
        held.extend(plot.take(narrow(), 1));
        held
    }
    let fresh = |plot: &Plot| vec![vec![but(plot, 0, 1)], vec![]];
    race(3, 1, fresh, &[collect, take_one]);
    race(3, 1, fresh, &[collect, take_one_slot]);
    race(2, 1, fresh, &[collect, take_narrow]);
    // A lane that gives a slot of the old class has kept the slab from being made anew. With two preemptions it takes
    // half a minute.
    race(
        1,
        1,
        |plot| vec![vec![but(plot, 0, 3).part(1)], vec![Held::of(0, 2)], vec![]],
        &[collect, give_all, take_one_slot],
    );
}

/// What was done with slots happens before what is done with the memory of their slab.
#[test]
fn the_memory_of_a_slab_is_handed_on() {
    fn take_and_return(plot: &Plot, held: Vec<Held>) -> Vec<Held> {
        let mut slots = 0;
        for held in held.into_iter().chain(plot.take(wide(), 1)) {
            slots |= held.slots;
        }
        plot.give(Held::of(0, slots));
        Vec::new()
    }
    fn make(plot: &Plot, _: Vec<Held>) -> Vec<Held> {
        plot.make_returned(narrow()).into_iter().collect()
    }
    let fresh = |plot: &Plot| {
        let all = plot.make(wide(), 0);
        vec![vec![all.part(0x0f)], vec![all.part(0xf0)], vec![]]
    };
    race(2, 1, fresh, &[give_all, take_and_return, make]);
}

/// Races lanes, and checks that a trim afterwards leaves no slab of which all slots are free.
#[track_caller]
fn race_and_trim(preemptions: usize, units: usize, fresh: Fresh, lanes: &'static [Lane]) {
    model(preemptions, move || {
        let (plot, held) = plot::together(units, fresh, lanes);
        plot.trim(wide());
        plot.check(&held);
        assert!(!plot.has_whole(wide()), "a slab of which all slots are free was forgotten");
    });
}

/// A slab becomes whole while all are taken: afterwards it is returned, or the next look finds it.
#[test]
fn no_whole_slab_is_forgotten() {
    fn trim(plot: &Plot, held: Vec<Held>) -> Vec<Held> {
        plot.trim(wide());
        held
    }
    // One slab is whole, and another is about to be recorded as whole.
    let two = |plot: &Plot| {
        let whole = plot.make(wide(), 1);
        plot.give(whole.part(0x0f));
        plot.give(whole.part(0xf0));
        vec![vec![but(plot, 0, 1)], vec![]]
    };
    // The stack was empty.
    let one = |plot: &Plot| {
        let all = plot.make(wide(), 0);
        vec![vec![all.part(0x0f), all.part(0xf0)], vec![]]
    };
    let races: [(Fresh, &'static [Lane]); 3] =
        [(two, &[give_all, trim]), (two, &[give_all, take_one_slot]), (one, &[give_all, trim])];
    races.into_iter().for_each(|(fresh, lanes)| race_and_trim(3, 2, fresh, lanes));
    // Two give back what makes a slab whole, and the one that lists it is not the one that gives the last slot.
    let parts = |plot: &Plot| {
        let all = plot.make(wide(), 0);
        vec![vec![all.part(0x0f)], vec![all.part(0xf0)], vec![]]
    };
    race_and_trim(2, 1, parts, &[give_all, give_all, trim]);
}

/// A caller that lists a slab where it was to be listed two trims ago does not hide it.
#[test]
fn a_slab_listed_late_is_not_forgotten() {
    fn trim_twice(plot: &Plot, held: Vec<Held>) -> Vec<Held> {
        plot.trim(wide());
        give_all(plot, held);
        plot.trim(wide());
        Vec::new()
    }
    let fresh = |plot: &Plot| {
        let [late, whole, next] = [0, 1, 2].map(|unit| plot.make(wide(), unit));
        plot.give(whole.part(0x0f));
        plot.give(whole.part(0xf0));
        plot.give(next.part(0x0f));
        vec![vec![late.part(0x0f), late.part(0xf0)], vec![next.part(0xf0)]]
    };
    race_and_trim(2, 3, fresh, &[give_all, trim_twice]);
    // The last slot is given between the trims.
    let parts = |plot: &Plot| {
        let [late, whole] = [0, 1].map(|unit| plot.make(wide(), unit));
        plot.give(whole.part(0x0f));
        plot.give(whole.part(0xf0));
        vec![vec![late.part(0x0f)], vec![late.part(0xf0)]]
    };
    race_and_trim(2, 2, parts, &[give_all, trim_twice]);
}

/// Of two that trim at once each finds all whole slabs, except the one that the other has in hand.
#[test]
fn two_trim() {
    fn trim_all_but_one(plot: &Plot, _: Vec<Held>) -> Vec<Held> {
        plot.trim(wide());
        assert!(plot.returned() >= 1, "one of two whole slabs is in nobody's hands");
        Vec::new()
    }
    // The first slab on the stack is not whole.
    fn fresh(plot: &Plot) -> Vec<Vec<Held>> {
        for unit in 0..2 {
            let whole = plot.make(wide(), unit);
            plot.give(whole.part(0x0f));
            plot.give(whole.part(0xf0));
        }
        vec![vec![but(plot, 2, 1)], vec![]]
    }
    fn trim_and_keep(plot: &Plot, held: Vec<Held>) -> Vec<Held> {
        trim_all_but_one(plot, Vec::new());
        held
    }
    race_and_trim(2, 3, fresh, &[trim_and_keep, trim_all_but_one]);
    race_and_trim(2, 3, fresh, &[give_all, trim_all_but_one]);
}

/// Slots are found while slabs are moved from one stack to the other, on both.
#[test]
fn slots_of_both_stacks() {
    model(0, || {
        let plot = Plot::new(4);
        let held = [0, 1, 2].map(|unit| but(&plot, unit, 1));
        let whole = plot.make(wide(), 3);
        plot.give(whole.part(0x0f));
        plot.give(whole.part(0xf0));
        let mut taken = Vec::new();
        plot.trim_with(wide(), |in_hand| {
            plot.give(in_hand);
            taken.extend(plot.take(wide(), 1));
        });
        taken.extend(plot.take(wide(), 1));
        assert_eq!(taken.len(), 3, "each slab has slots");
        taken.extend(held);
        plot.check(&taken);
    });
}

/// Slabs with free slots are moved from one stack to the other between two looks of a take.
#[test]
fn a_take_beside_a_trim() {
    fn trim(plot: &Plot, held: Vec<Held>) -> Vec<Held> {
        plot.trim(wide());
        held
    }
    fn take_some(plot: &Plot, mut held: Vec<Held>) -> Vec<Held> {
        let taken = plot.take(wide(), 1);
        assert!(!taken.is_empty(), "three slabs have free slots, and the other has one in hand");
        held.extend(taken);
        held
    }
    // It was said that a slab is whole, but it was taken since.
    fn say_whole(plot: &Plot, whole: Held) -> Vec<Held> {
        plot.give(whole.part(0x0f));
        plot.give(whole.part(0xf0));
        plot.take(wide(), 1)
    }
    // The first stack is current.
    fn first(plot: &Plot) -> Vec<Vec<Held>> {
        let mut held: Vec<_> = (0..3).map(|unit| but(plot, unit, 1)).collect();
        held.extend(say_whole(plot, plot.make(wide(), 3)));
        vec![vec![], held]
    }
    // The second stack is.
    fn second(plot: &Plot) -> Vec<Vec<Held>> {
        let whole = say_whole(plot, plot.make(wide(), 3));
        plot.trim(wide());
        let mut held: Vec<_> = (0..3).map(|unit| but(plot, unit, 1)).collect();
        held.extend(whole.into_iter().flat_map(|whole| say_whole(plot, whole)));
        vec![vec![], held]
    }
    race(2, 4, first, &[trim, take_some]);
    race(2, 4, second, &[trim, take_some]);
}

/// A handler trims in the middle of a trim.
#[test]
fn a_trim_within_a_trim() {
    model(0, || {
        let plot = Plot::new(6);
        for unit in 0..6 {
            let all = plot.make(wide(), unit);
            plot.give(all.part(0x0f));
            plot.give(all.part(0xf0));
        }
        let mut in_hand = 0;
        plot.trim_with(wide(), |held| {
            in_hand += 1;
            plot.trim(wide());
            assert_eq!(plot.returned(), 5, "one is in the interrupted caller's hands");
            plot.give(held);
        });
        assert_eq!((in_hand, plot.returned()), (1, 6));
        plot.check(&[]);
    });
}

#[test]
fn what_is_not_held_is_refused() {
    model(0, || {
        let plot = Plot::new(2);
        let all = plot.make(wide(), 0);
        assert!(plot.refuses(narrow(), 0, 1), "another class");
        assert!(plot.refuses(wide(), 1, 1), "no slab");
        plot.give(all.part(0x0f));
        for slots in [0x01, 0x11, WIDE] {
            assert!(plot.refuses(wide(), 0, slots), "free already: {slots:#x}");
        }
        plot.give(all.part(0xf0));
        assert!(plot.refuses(wide(), 0, 1) && plot.refuses(wide(), 0, WIDE));
        plot.trim(wide());
        assert!(plot.refuses(wide(), 0, 1), "returned");
        plot.check(&[]);
    });
}
