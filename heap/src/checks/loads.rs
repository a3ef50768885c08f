//! The worst single operation that a cache does not serve by itself, in loads and read-modify-writes: counted on memory
//! that is as bad for it as possible, and compared with what the documentation says.

use core::alloc::Layout;
use core::ptr::NonNull;

use crate::cache::Cache;
use crate::class::{Class, PAGE, SMALL_CLASSES, UNIT};
use crate::region::{Content, Memory, Region, Regions, bookkeeping};
use crate::slabs::AT_ONCE;
use crate::words::counted;

/// What an operation may cost: a constant, and an amount for each 1,024 units of the region.
struct Bound {
    name: &'static str,
    loads: (u64, u64),
    swaps: (u64, u64),
}

const fn bound(name: &'static str, loads: (u64, u64), swaps: (u64, u64)) -> Bound {
    Bound { name, loads, swaps }
}

/// The most loads and read-modify-writes, as the documentation of [`Heap`](crate::Heap) states them.
const BOUNDS: [Bound; 8] = [
    bound("a slot of a slab that has some", (11, 0), (4, 0)),
    bound("a slot freed", (5, 0), (3, 0)),
    bound("the last slot of a slab freed", (16, 0), (4, 0)),
    bound("a slot of a new slab", (80, 140), (8, 5)),
    bound("a run", (100, 1000), (12, 5)),
    bound("a run aligned to more than a page", (100, 1000), (12, 5)),
    bound("a run freed", (120, 0), (24, 0)),
    bound("trim", (170, 12 * 1024), (8, 3400)),
];

/// Memory for regions, one at a time.
struct Ground {
    units: usize,
    /// At a multiple of the largest alignment.
    start: NonNull<u8>,
}

/// The largest alignment that is tried, log2.
const MOST_ALIGN: u32 = 20;

impl Ground {
    fn new(units: usize) -> Self {
        let bytes = units * UNIT / 60 * 61 + (3 << MOST_ALIGN);
        let memory = Vec::leak(vec![0_u8; bytes]);
        let skip = memory.as_ptr().addr().wrapping_neg() % (1 << MOST_ALIGN);
        // SAFETY: so many bytes are skipped, and there are more.
        Self { units, start: unsafe { NonNull::from(memory).cast::<u8>().add(skip) } }
    }

    /// Makes the memory of a heap, a region with this many units.
    fn memory(&self) -> Memory<'static> {
        let regions = Box::leak(Box::new(Regions::new()));
        // SAFETY: the heap has no memory of its own.
        let memory = unsafe { Memory::new(regions, self.start, 0) };
        let bytes = bookkeeping(self.units as u64) + self.units * UNIT;
        // SAFETY: the memory is leaked, and whoever had it before uses it no more.
        unsafe { memory.add(self.start, bytes, Content::Any) }.unwrap();
        memory
    }

    /// Makes a region with this many units, the first of which lies `skew` bytes behind a multiple of the largest
    /// alignment.
    fn region(&self, skew: usize) -> Region<'static> {
        let units = self.units as u64;
        let skip = skew.wrapping_sub(bookkeeping(units)) % (1 << MOST_ALIGN);
        let bytes = bookkeeping(units) + self.units * UNIT;
        // SAFETY: the memory is longer than this.
        let start = unsafe { self.start.add(skip) };
        // SAFETY: the memory is leaked, this long, and whoever had it before uses it no more.
        unsafe { Region::new_cleared(start, bytes, false) }.expect("room for units")
    }
}

fn layout(units: usize) -> Layout {
    layout_of(units * UNIT)
}

fn layout_of(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 8).unwrap()
}

/// What is in use: nothing; or so many units, and behind them so many of so many runs of this many units.
type State = Option<(usize, usize, usize, usize)>;

const STATES: [State; 22] = [
    None,
    Some((0, 1, 1, 1)),
    Some((0, 1, 1, 2)),
    Some((0, 1, 1, 3)),
    Some((0, 1, 2, 3)),
    Some((0, 1, 1, 4)),
    Some((0, 1, 1, 8)),
    Some((0, 1, 1, 16)),
    Some((0, 1, 1, 17)),
    Some((0, 1, 1, 24)),
    Some((0, 1, 1, 32)),
    Some((0, 1, 1, 33)),
    Some((0, 1, 1, 64)),
    Some((0, 1, 1, 1000)),
    Some((0, 5, 1, 2)),
    Some((0, 20, 1, 2)),
    Some((0, 32, 1, 2)),
    Some((0, 48, 1, 2)),
    Some((0, 700, 1, 2)),
    // Free pieces that lie in two words, with two blocks each that look as if a run fitted.
    Some((4, 1, 1, 8)),
    Some((4, 1, 1, 32)),
    Some((16, 1, 1, 32)),
];

/// Lengths of runs, in units: those of slots that are runs, and larger ones.
const LENGTHS: [usize; 17] = [1, 2, 3, 5, 6, 9, 20, 24, 28, 32, 33, 47, 64, 100, 300, 700, 1000];

/// Puts a region into a state.
fn prepared(region: Region<'static>, state: State) -> Region<'static> {
    let Some((front, length, used, of)) = state else { return region };
    assert!(front == 0 || region.alloc_run(layout(front), false, 0).is_some());
    let all: Vec<_> = core::iter::from_fn(|| region.alloc_run(layout(length), false, 0)).collect();
    for (number, at) in all.into_iter().enumerate() {
        if number % of >= used {
            assert!(region.free_run(at, length * UNIT, 0));
        }
    }
    region
}

/// The most that each operation took: loads, read-modify-writes.
#[derive(Default)]
struct Most([(u64, u64); BOUNDS.len()]);

impl Most {
    fn note(&mut self, row: usize, (loads, swaps): (u64, u64)) {
        let most = &mut self.0[row];
        *most = (most.0.max(loads), most.1.max(swaps));
    }
}

/// Measures in a region that is full of slabs of which all slots are free, each listed.
fn measure_slabs(ground: &Ground, most: &mut Most) {
    let (region, class) = (ground.region(0), Class::of(layout_of(16)).unwrap());
    let slabs: Vec<_> = core::iter::from_fn(|| region.make_slab(class, 0, 0)).collect();
    for slab in slabs {
        let (unit, _) = region.slot_of(class, slab).unwrap();
        for slots in [1, class.all_slots() & !1] {
            assert!(region.give(class, 0, unit, slots).is_some());
        }
    }
    let (found, cost) = counted(|| region.alloc_slot(class, 0, &mut 0));
    most.note(0, cost);
    let (slab, slot) = region.slot_of(class, found.unwrap()).unwrap();
    let (given, cost) = counted(|| region.give(class, 0, slab, 1 << slot));
    assert!(given.is_some());
    most.note(1, cost);
    let (bytes, cost) = counted(|| region.trim(0, &mut 0));
    assert!(bytes >= ground.units * UNIT);
    most.note(7, cost);
}

/// Measures in a region that is full of slabs with a free slot, one of which is whole.
fn measure_slabs_in_use(ground: &Ground, most: &mut Most) {
    let (region, class) = (ground.region(0), Class::of(layout_of(16)).unwrap());
    let slabs: Vec<_> = core::iter::from_fn(|| region.make_slab(class, 0, 0)).collect();
    for (number, slab) in slabs.into_iter().enumerate() {
        let (unit, _) = region.slot_of(class, slab).unwrap();
        assert!(region.give(class, 0, unit, 1).is_some());
        if number == 0 {
            assert!(region.give(class, 0, unit, class.all_slots() & !1).is_some());
        }
    }
    let (bytes, cost) = counted(|| region.trim(0, &mut 0));
    assert_eq!(bytes, UNIT);
    most.note(7, cost);
}

/// Measures in a region that is in a certain state.
fn measure(region: &Region<'_>, most: &mut Most) {
    let mut note = |row: usize, cost: (u64, u64)| most.note(row, cost);
    for class in Class::all() {
        let mut held = Vec::new();
        for _ in 0..class.all_slots().count_ones() + 2 {
            let (found, cost) = counted(|| region.alloc_slot(class, 0, &mut 0));
            if let Some(at) = found {
                note(0, cost);
                held.push(at);
                continue;
            }
            let (found, cost) = counted(|| region.alloc_slot_of_new(class, 0, &mut 0));
            note(3, cost);
            held.extend(found);
        }
        for at in held {
            let (slab, slot) = region.slot_of(class, at).unwrap();
            let (given, cost) = counted(|| region.give(class, 0, slab, 1 << slot));
            assert!(given.is_some());
            note(1, cost);
        }
        // All slots of a slab at once, as a cache returns them.
        let mut taken = None;
        region.take(class, 1, |slab, slots| taken = Some((slab, slots)));
        if let Some((slab, slots)) = taken {
            let (unit, _) = region.slot_of(class, slab).unwrap();
            let (given, cost) = counted(|| region.give(class, 0, unit, slots));
            assert!(given.is_some());
            note(if slots == class.all_slots() { 2 } else { 1 }, cost);
        }
        let (_, cost) = counted(|| region.trim(0, &mut 0));
        note(7, cost);
    }
}

/// Measures runs of all lengths and alignments, from several lanes, in a region that is in a certain state.
fn measure_runs(region: &Region<'_>, most: &mut Most) {
    for length in LENGTHS {
        for align in (4..=MOST_ALIGN).map(|log2| 1 << log2) {
            let layout = Layout::from_size_align(length * UNIT, align).unwrap();
            for lane in [0, 15] {
                let (found, cost) = counted(|| region.alloc_run(layout, false, lane));
                most.note(if align <= PAGE { 4 } else { 5 }, cost);
                let Some(at) = found else { continue };
                assert_eq!(at.addr().get() % align, 0);
                let (freed, cost) = counted(|| region.free_run(at, length * UNIT, lane));
                assert!(freed);
                most.note(6, cost);
            }
        }
    }
}

#[test]
fn no_operation_takes_more_loads_than_is_said() {
    let mut wrong = Vec::new();
    for units in [1 << 10, 1 << 14, 1 << 17] {
        let mut most = Most::default();
        let ground = Ground::new(units);
        for state in STATES {
            measure(&prepared(ground.region(0), state), &mut most);
            for skew in [0, 3 * PAGE, (1 << (MOST_ALIGN - 1)) + PAGE] {
                measure_runs(&prepared(ground.region(skew), state), &mut most);
            }
        }
        measure_slabs(&ground, &mut most);
        measure_slabs_in_use(&ground, &mut most);
        println!("in {units} units of 1 KiB, at worst:");
        for (of, (loads, swaps)) in BOUNDS.iter().zip(most.0) {
            let each = units as u64 / 1024;
            let may = (of.loads.0 + of.loads.1 * each, of.swaps.0 + of.swaps.1 * each);
            println!(
                "{:>34}: {loads} loads (may be {}), {swaps} read-modify-writes ({})",
                of.name, may.0, may.1
            );
            if loads > may.0 || swaps > may.1 {
                wrong.push((units, of.name, loads, swaps));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// The same for a cache: to take slabs that have slots, or to make room for those of a class, and to give back
/// everything, when somebody has asked for that.
const CACHE_BOUNDS: [(u64, u64); 2] = [(400, 64), (20_000, 6000)];

/// Measures the frees of a cache that keeps as much as it can of each class, as much set aside as it may have of small
/// ones: the last slot in use of a slab each, or a run of its own; and of larger runs; and what it takes when it keeps
/// nothing. Returns the most of these, and what the first free takes after a trim.
fn measure_cache(ground: &Ground, as_runs: bool) -> [(u64, u64); 2] {
    let memory = ground.memory();
    let slot_of = |class: Class| {
        memory.find(|region| {
            if !as_runs {
                return region.alloc_slot_of_new(class, 0, &mut 0);
            }
            let at =
                region.make_run(class, 0).or_else(|| region.alloc_slot_of_new(class, 0, &mut 0));
            // So that what is freed has neighbours in use.
            region.alloc_run(layout(1), false, 0).and(at)
        })
    };
    let slot = |class: Class| slot_of(class).expect("there is room");
    let mut cache = Box::new(Cache::new());
    for class in Class::all() {
        // Also the rest of a slab.
        cache.alloc(class, &memory, 0).expect("there is room");
        while cache.push(class, slot(class)) {}
    }
    let mut most = [(0, 0); 2];
    let note = |most: &mut (u64, u64), cost: (u64, u64)| {
        *most = (most.0.max(cost.0), most.1.max(cost.1));
    };
    for class in Class::all() {
        // Those of neighbouring slabs are far apart.
        let count = if class.number() < SMALL_CLASSES { 400 } else { 1 };
        let slots: Vec<_> = (0..count).map(|_| slot(class)).collect();
        for &at in (0..20).flat_map(|first| slots.iter().skip(first).step_by(20)) {
            let ((), cost) = counted(|| cache.free(class, at, &memory, 0));
            note(&mut most[0], cost);
        }
        while cache.push(class, slot(class)) {}
    }
    for _ in 0..8 {
        let at = memory.find(|region| {
            let at = region.alloc_run(layout(127), false, 0);
            region.alloc_run(layout(1), false, 0).and(at)
        });
        let at = at.expect("there is room");
        let mut free = |region: &Region<'_>| cache.free_run(at, 127 * UNIT, region, &memory, 0);
        assert_eq!(memory.at(at, &mut free), Some(Some(true)));
    }
    memory.trim(0);
    let class = Class::numbered(0).unwrap();
    let at = cache.pop(class).expect("it is full");
    ((), most[1]) = counted(|| cache.free(class, at, &memory, 0));
    for class in Class::all().skip(1) {
        // Slabs with all slots but one.
        (0..AT_ONCE).for_each(|_| _ = slot(class));
        let (found, cost) = counted(|| cache.alloc(class, &memory, 0));
        assert!(found.is_some());
        note(&mut most[0], cost);
    }
    most
}

#[test]
fn no_cache_takes_more_loads_than_is_said() {
    let ground = Ground::new(1 << 19);
    for as_runs in [false, true] {
        let most = measure_cache(&ground, as_runs);
        println!("some of a class, all of a cache: {most:?} (may be {CACHE_BOUNDS:?})");
        for (most, may) in most.into_iter().zip(CACHE_BOUNDS) {
            assert!(most.0 <= may.0 && most.1 <= may.1, "{most:?}, not {may:?}");
        }
    }
}

/// The same for a free of a run to a cache that keeps as many as it can: it gives back another, and the run, too, if that
/// is not enough.
const RUN_BOUND: (u64, u64) = (250, 48);

#[test]
fn no_run_freed_to_a_cache_takes_more_loads_than_is_said() {
    let memory = Ground::new(1 << 17).memory();
    let run = |units| {
        let at = memory.find(|region| region.alloc_run(layout(units), false, 0));
        // So that what is freed has neighbours in use.
        assert!(memory.find(|region| region.alloc_run(layout(1), false, 0)).is_some());
        at.expect("there is room")
    };
    let (mut most, mut kept) = ((0, 0), [0; 2]);
    for length in LENGTHS.into_iter().filter(|&length| length > 32) {
        // A cache that has kept more than these in vain keeps few.
        let mut cache = Box::new(Cache::new());
        for length in [33; 8].into_iter().chain([length; 9]) {
            let at = run(length);
            assert_eq!(memory.at(at, |region| region.holds_run(at, length * UNIT)), Some(true));
            let mut free = |region: &Region<'_>| {
                let is_kept = cache.free_run(at, length * UNIT, region, &memory, 0) == Some(true);
                kept[usize::from(is_kept)] += 1;
                is_kept || region.free_run(at, length * UNIT, 0)
            };
            let (freed, (loads, swaps)) = counted(|| memory.at(at, &mut free));
            assert_eq!(freed, Some(true), "{length}");
            most = (most.0.max(loads), most.1.max(swaps));
        }
        assert!(cache.drain(&memory, 0) > 0);
    }
    println!("a run freed to a cache: {most:?} (may be {RUN_BOUND:?})");
    assert!(kept.into_iter().all(|count| count > 5), "{kept:?}");
    assert!(most.0 <= RUN_BOUND.0 && most.1 <= RUN_BOUND.1, "{most:?}, not {RUN_BOUND:?}");
}

#[test]
fn what_was_refused_is_looked_for_once() {
    let memory = Ground::new(1 << 12).memory();
    let (mut cache, mut other) = (Box::new(Cache::new()), Box::new(Cache::new()));
    let class = Class::all().last().unwrap();
    let run = core::iter::from_fn(|| cache.alloc(class, &memory, 0)).last().unwrap();
    let (found, (twice, _)) = counted(|| other.alloc(class, &memory, 0));
    assert_eq!(found, None);
    let (found, (once, _)) = counted(|| cache.alloc(class, &memory, 0));
    assert_eq!(found, None);
    assert!(once < twice, "{once} loads, and {twice} by a cache that was refused nothing");
    // By somebody else.
    assert!(memory.at(run, |region| region.give_run(class, 0, run)).flatten().is_some());
    assert_eq!(cache.alloc(class, &memory, 0), Some(run));
}

/// The same for finding what is allocated at an address: a slot; for a run comes what [`Buddy::len_of`] takes.
///
/// [`Buddy::len_of`]: nbbs::Buddy::len_of
const FIND_BOUND: u64 = 3;

#[test]
fn no_address_takes_more_loads_than_is_said() {
    let ground = Ground::new(1 << 16);
    let region = ground.region(0);
    let mut most = 0;
    for class in Class::all() {
        let slots = (0..80).map(|_| {
            let found = region
                .alloc_slot(class, 0, &mut 0)
                .or_else(|| region.alloc_slot_of_new(class, 0, &mut 0));
            found.expect("there is room")
        });
        for at in slots {
            let (found, (loads, swaps)) = counted(|| region.find(at));
            assert!(found.is_ok_and(|held| held.is_of(class)) && swaps == 0);
            most = most.max(loads);
        }
    }
    for length in LENGTHS {
        let at = region.alloc_run(layout(length), false, 0).expect("there is room");
        let unit = (at.addr().get() - region.address_of(0)) / UNIT;
        let (_, (of_buddy, _)) = counted(|| region.buddy().len_of(unit as u64));
        let (found, (loads, swaps)) = counted(|| region.find(at));
        assert!(found.is_ok_and(|held| held.bytes() == length * UNIT) && swaps == 0);
        most = most.max(loads - of_buddy);
    }
    println!("finding what is at an address: {most} loads (may be {FIND_BOUND})");
    assert!(most <= FIND_BOUND, "{most}, not {FIND_BOUND}");
}
