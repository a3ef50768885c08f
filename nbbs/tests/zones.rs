//! Tests zones: which one is asked, which one gets a block back, and what each of them answers.

use nbbs::sync::Word;
use nbbs::{AllocError, FreeError, Request, RequestError, ResizeError, Zone, Zones};
use proptest::prelude::*;
use testkit::program::{Arena, Ask, No, within};
use testkit::steered::Steered;
use testkit::{BackEnd, Load, Oracle, Spec, Unit, Violation, stress};

/// Arenas, and where each begins among all units.
struct Machine<W = std::sync::atomic::AtomicU64> {
    arenas: Vec<(u64, Arena<W>)>,
}

impl<W: Word + Default> Machine<W> {
    fn new(zones: &[(u64, u64)]) -> Self {
        Self { arenas: zones.iter().map(|&(base, units)| (base, Arena::new(units))).collect() }
    }

    fn zones(&self) -> Vec<Zone<'_, W>> {
        self.arenas.iter().map(|(base, arena)| Zone { base: *base, buddy: arena.buddy() }).collect()
    }
}

/// Low, then a gap, then two neighbours, of which the second is not whole words.
const THREE: [(u64, u64); 3] = [(0, 64), (100, 256), (356, 90)];

fn used(zones: &[Zone<'_>]) -> Vec<u64> {
    zones.iter().map(|zone| zone.buddy.stats().used_units).collect()
}

#[test]
fn the_first_zone_of_the_preference_that_has_it() {
    let machine: Machine = Machine::new(&THREE);
    let list = machine.zones();
    let zones = Zones::new(&list).unwrap();
    for (preference, expected) in
        [(vec![0, 1, 2], 0), (vec![1, 0, 2], 1), (vec![2, 1, 0], 2), (vec![7, 2, 9], 2)]
    {
        let answers = [
            zones.alloc(&preference, 3).unwrap(),
            zones.request(&preference, Request::units(5)).unwrap(),
            zones.request(&preference, Request::units(5).top_down()).unwrap(),
            zones.on(3).alloc(&preference, 0).unwrap(),
        ];
        for index in answers {
            assert_eq!(zones.zone_of(index), Some(expected), "{preference:?}");
        }
        assert_eq!(used(&list).iter().filter(|&&units| units > 0).count(), 1);
        assert_eq!(list[expected].buddy.stats().used_units, 19);
        answers.iter().for_each(|&index| _ = zones.free(index).unwrap());
        assert_eq!(used(&list), [0, 0, 0]);
    }
}

#[test]
fn the_next_zone_when_the_first_is_full_or_too_small() {
    let machine: Machine = Machine::new(&THREE);
    let list = machine.zones();
    let zones = Zones::new(&list).unwrap();
    assert_eq!(zones.alloc(&[0, 1], 7).map(|index| zones.zone_of(index)), Ok(Some(1)));
    assert_eq!(zones.alloc(&[0, 1], 6), Ok(0));
    assert_eq!(zones.alloc(&[0, 1], 6).map(|index| zones.zone_of(index)), Ok(Some(1)));
    assert_eq!(zones.request(&[0, 1, 2], Request::units(70)), Ok(356));
    assert_eq!(used(&list), [64, 192, 70]);

    let full = zones.alloc(&[0, 1, 2], 7);
    assert_eq!(full, Err(AllocError::Exhausted { units: 1 << 7 }), "zone 1 could have one");
    let never = zones.alloc(&[0, 2], 7);
    assert_eq!(never, Err(AllocError::OrderTooLarge { order: 7, max: 6 }));
    let full = zones.request(&[1, 0], Request::units(65));
    assert_eq!(full, Err(RequestError::Exhausted { units: 65 }), "not that zone 0 is too small");
    let never = zones.request(&[0], Request::units(65));
    assert_eq!(never, Err(RequestError::Units { units: 65, max: 64 }));
    for none in [&[][..], &[3], &[8, usize::MAX]] {
        let no_zone = AllocError::NoZone { zones: 3 };
        assert_eq!(zones.alloc(none, 0), Err(no_zone));
        assert_eq!(zones.alloc_batch(none, 0, &mut [0]), Err(no_zone));
        let no_zone = RequestError::NoZone { zones: 3 };
        assert_eq!(zones.request(none, Request::units(1)), Err(no_zone));
        assert_eq!(zones.alloc_units(none, 500), Err(no_zone));
    }
    assert_eq!(used(&list), [64, 192, 70]);
}

#[test]
fn a_range_is_one_of_units_among_all_zones() {
    let machine: Machine = Machine::new(&THREE);
    let list = machine.zones();
    let zones = Zones::new(&list).unwrap();
    let all = [0, 1, 2];
    let within = |start, end| Request::units(8).within(start..end);
    assert_eq!(zones.request(&all, within(60, 110)), Ok(100), "4 units of zone 0 are too few");
    let no_place = |start, end| Err(RequestError::NoPlace { units: 8, order: 0, start, end });
    assert_eq!(zones.request(&all, within(64, 100)), no_place(64, 100));
    assert_eq!(zones.request(&all, within(350, 1 << 40)), Ok(356));
    assert_eq!(zones.request(&[2, 1], within(0, 400).top_down()), Ok(392));
    assert_eq!(zones.request(&[0], within(100, 356)), no_place(100, 356));
    // Nothing lies in two zones.
    assert_eq!(
        zones.alloc_at(350, 8),
        Err(RequestError::OutOfRange { start: 350, end: 358, units: 356 })
    );
    assert_eq!(
        zones.alloc_at(70, 8),
        Err(RequestError::InNoZone { unit: 70, gap_start: 64, gap_end: 100 })
    );
    assert_eq!(zones.alloc_at(348, 8), Ok(348));
    assert_eq!(zones.alloc_at(355, 1), Err(RequestError::InUse { unit: 355 }));
    assert_eq!(zones.alloc_at(131, 2), Ok(131));
}

#[test]
fn resizing_stays_in_the_zone() {
    let machine: Machine = Machine::new(&THREE);
    let list = machine.zones();
    let zones = Zones::new(&list).unwrap();
    let run = zones.alloc_at(300, 40).unwrap();
    assert_eq!(zones.grow(run, 56), Ok(()));
    let outside = ResizeError::OutOfRange { start: 300, end: 357, units: 356 };
    assert_eq!(zones.grow(run, 57), Err(outside), "the next zone's");
    assert_eq!(zones.len_of(run), Ok(56));
    assert_eq!(
        zones.shrink(run, 57),
        Err(ResizeError::WrongLength { index: 300, units: 57, actual: 56 })
    );
    assert_eq!(zones.shrink(run, 50), Ok(()));
    assert_eq!(zones.split_off(run, 20), Ok(320));
    assert_eq!(zones.split(320, 1), Ok(()));
    assert_eq!(zones.len_of(348), Ok(2));
    assert_eq!(zones.free_part(run, 305..310), Ok(()));
    assert_eq!([run, 310].map(|part| zones.len_of(part)), [Ok(5), Ok(10)]);
    for part in [99..101, 100..301, 299..301, 304..306, 303..303] {
        let std::ops::Range { start, end } = part;
        let refused = if start < run {
            ResizeError::BeforeRun { start, end, index: run }
        } else {
            ResizeError::BehindRun { start, end, behind: run + 5 }
        };
        assert_eq!(zones.free_part(run, part), Err(refused));
    }
    let first = zones.alloc_at(100, 5).unwrap();
    for (part, limit) in [
        (50..102, "begins at unit 100"),
        (50..60, "begins at unit 100"),
        (0..1, "begins at unit 100"),
        (102..u64::MAX, "ends before unit 105"),
        (u64::MAX - 1..u64::MAX, "ends before unit 105"),
    ] {
        let refused = zones.free_part(first, part.clone()).unwrap_err().to_string();
        assert_eq!(refused, format!("units {part:?} are no part of the run, which {limit}"));
    }
    let edges = [0, 63, 64, 99, 100, 355, 356, 445, 446];
    let zones_of = [Some(0), Some(0), None, None, Some(1), Some(1), Some(2), Some(2), None];
    assert_eq!(edges.map(|unit| zones.zone_of(unit)), zones_of);
    let nowhere = FreeError::InNoZone { unit: 70, gap_start: 64, gap_end: 100 };
    assert_eq!(zones.shrink(70, 1), Err(ResizeError::Free(nowhere)));
    assert_eq!(zones.len_of(70), Err(nowhere));
    assert_eq!(zones.free_units(70, 1), Err(nowhere));
    assert_eq!(
        zones.free_units(run, 6),
        Err(FreeError::WrongLength { index: 300, units: 6, actual: 5 })
    );
    assert_eq!(zones.free_units(run, 5), Ok(()));
    assert_eq!(zones.free(301), Err(FreeError::NotAllocated { index: 301 }));
}

#[test]
fn batches_go_through_all_zones_and_back() {
    let machine: Machine = Machine::new(&THREE);
    let list = machine.zones();
    let zones = Zones::new(&list).unwrap();
    let mut blocks = vec![0; 500];
    let got = zones.alloc_batch(&[2, 0, 1], 0, &mut blocks).unwrap();
    assert_eq!((got, used(&list)), (64 + 256 + 90, vec![64, 256, 90]));
    assert!(blocks[..90].iter().all(|&index| zones.zone_of(index) == Some(2)));
    assert_eq!(zones.alloc_batch(&[0, 1], 0, &mut [0]), Err(AllocError::Exhausted { units: 1 }));
    assert_eq!(zones.alloc_batch(&[0, 1], 0, &mut []), Ok(0));
    // An order that a zone of the preference has, and one that none has: as a lane answers.
    assert_eq!(zones.alloc_batch(&[0, 1], 7, &mut []), Ok(0));
    let never = Err(AllocError::OrderTooLarge { order: 9, max: 8 });
    assert_eq!(zones.alloc_batch(&[0, 1], 9, &mut []), never);
    assert_eq!(zones.alloc_batch(&[0, 1], 9, &mut [0]), never);
    // Blocks of mixed zones, and one block twice.
    let mut mixed = blocks[..got].to_vec();
    mixed.sort_by_key(|index| index % 7);
    mixed.push(mixed[3]);
    let refused = zones.free_batch(0, &mixed).unwrap_err();
    assert_eq!(refused.error, FreeError::NotAllocated { index: mixed[3] });
    assert_eq!(refused.done, got);
    assert_eq!(used(&list), [0, 0, 0]);
    let nowhere = FreeError::InNoZone { unit: 99, gap_start: 64, gap_end: 100 };
    let refused = zones.free_batch(0, &[99, 0]).unwrap_err();
    assert_eq!((refused.done, refused.error), (0, nowhere));

    let got = zones.alloc_batch(&[0, 2], 6, &mut blocks).unwrap();
    assert_eq!(blocks[..got], [0, 356], "the one that fits into zone 2");
    zones.free_batch(6, &blocks[..got]).unwrap();
    assert!(list.iter().all(|zone| zone.buddy.audit().is_ok()));
}

/// A random request to zones.
#[derive(Clone, Debug)]
enum Do {
    Alloc(Vec<usize>, u32),
    Request {
        preference: Vec<usize>,
        units: u64,
        order: u32,
        range: Option<(u64, u64)>,
        top_down: bool,
    },
    At(u64, u64),
    Batch(Vec<usize>, u32, usize),
    Free(usize, bool),
    Shrink(usize, u64),
    Grow(usize, u64),
    SplitOff(usize, u64),
}

fn operations() -> impl Strategy<Value = Do> {
    let preference = || prop::collection::vec(0_usize..4, 0..4);
    let range = || prop::option::of((0_u64..446, 0_u64..200));
    let units = || prop_oneof![3 => 1_u64..40, 1 => 1_u64..260];
    prop_oneof![
        4 => (preference(), 0_u32..9).prop_map(|(p, order)| Do::Alloc(p, order)),
        6 => (preference(), units(), 0_u32..5, range(), any::<bool>()).prop_map(
            |(preference, units, order, range, top_down)| {
                let range = range.map(|(start, len)| (start, start + 1 + len));
                Do::Request { preference, units, order, range, top_down }
            }
        ),
        2 => (0_u64..446, units()).prop_map(|(index, units)| Do::At(index, units)),
        1 => (preference(), 0_u32..3, 0_usize..80).prop_map(|(p, order, n)| Do::Batch(p, order, n)),
        6 => (any::<usize>(), any::<bool>()).prop_map(|(pick, sized)| Do::Free(pick, sized)),
        2 => (any::<usize>(), any::<u64>()).prop_map(|(pick, units)| Do::Shrink(pick, units)),
        2 => (any::<usize>(), 0_u64..40).prop_map(|(pick, units)| Do::Grow(pick, units)),
        1 => (any::<usize>(), any::<u64>()).prop_map(|(pick, units)| Do::SplitOff(pick, units)),
    ]
}

/// The zones, a specification for each, and what is held by number among all.
struct Model<'a> {
    zones: Zones<'a>,
    specs: Vec<Spec>,
    held: Vec<(u64, u64)>,
}

impl Model<'_> {
    fn grant(&mut self, index: u64, len: u64) {
        let zone = self.zones.zone_of(index).expect("a zone's unit");
        let base = self.zones.zones()[zone].base;
        self.specs[zone].grant_run(index - base, len);
        self.held.push((index, len));
    }

    fn give_back(&mut self, place: usize) -> (u64, u64) {
        let (index, len) = self.held.swap_remove(place);
        let zone = self.zones.zone_of(index).expect("a zone's unit");
        let base = self.zones.zones()[zone].base;
        assert_eq!(self.specs[zone].give_back_run(index - base), Some(len));
        (index, len)
    }

    /// Checks that the first zone of a preference in whose specification there is a place is that of `index`.
    fn judge(
        &self,
        preference: &[usize],
        got: Option<u64>,
        place: impl Fn(u64, &Spec) -> Option<u64>,
    ) {
        let zones = self.zones.zones();
        let known = preference.iter().filter(|&&zone| zone < zones.len());
        let expected =
            known.copied().find(|&zone| place(zones[zone].base, &self.specs[zone]).is_some());
        assert_eq!(got.and_then(|index| self.zones.zone_of(index)), expected);
    }

    fn step(&mut self, operation: &Do) {
        match *operation {
            Do::Alloc(ref preference, order) => {
                let got = self.zones.alloc(preference, order).ok();
                self.judge(preference, got, |_, spec| {
                    spec.free_block(order)
                        .filter(|_| order <= spec.max_order())
                        .map(|block| block.index)
                });
                got.into_iter().for_each(|index| self.grant(index, 1 << order));
            }
            Do::Request { ref preference, units, order, range, top_down } => {
                let request = Request::units(units).aligned(order);
                let request =
                    range.map_or(request.clone(), |(start, end)| request.within(start..end));
                let request = if top_down { request.top_down() } else { request };
                let got = self.zones.request(preference, request).ok();
                let place = |base: u64, spec: &Spec| {
                    let (start, end) = range.unwrap_or((0, u64::MAX));
                    let start = start.saturating_sub(base);
                    let end = end.saturating_sub(base).min(spec.units());
                    (start < end && units <= end)
                        .then(|| spec.place(units, order, &(start..end), top_down))?
                };
                self.judge(preference, got, place);
                if let (Some(index), Some(_)) = (got, range) {
                    let zone = self.zones.zone_of(index).expect("a zone's unit");
                    let base = self.zones.zones()[zone].base;
                    assert_eq!(
                        place(base, &self.specs[zone]),
                        Some(index - base),
                        "the first or last place"
                    );
                }
                got.into_iter().for_each(|index| self.grant(index, units));
            }
            Do::At(index, units) => {
                let zone = self.zones.zone_of(index);
                let got = self.zones.alloc_at(index, units).ok();
                let preference: Vec<usize> = zone.into_iter().collect();
                self.judge(&preference, got, |base, spec| {
                    spec.place(units, 0, &(index - base..index - base + units), false)
                        .filter(|_| index - base + units <= spec.units())
                });
                got.into_iter().for_each(|index| self.grant(index, units));
            }
            Do::Batch(ref preference, order, count) => {
                let mut blocks = vec![0; count];
                let got = self.zones.alloc_batch(preference, order, &mut blocks).unwrap_or(0);
                for &index in &blocks[..got] {
                    self.grant(index, 1 << order);
                }
                if got < count {
                    self.judge(preference, None, |_, spec| {
                        spec.free_block(order).map(|block| block.index)
                    });
                }
            }
            Do::Free(..) | Do::Shrink(..) | Do::Grow(..) | Do::SplitOff(..)
                if self.held.is_empty() => {}
            Do::Free(pick, sized) => {
                let (index, len) = self.give_back(pick % self.held.len());
                if sized {
                    assert_eq!(self.zones.free_units(index, len), Ok(()));
                } else {
                    assert_eq!(self.zones.free(index), Ok(len));
                }
            }
            Do::Shrink(pick, units) => {
                let (index, len) = self.give_back(pick % self.held.len());
                let shrunk = self.zones.shrink(index, 1 + units % len);
                self.grant(index, if shrunk.is_ok() { 1 + units % len } else { len });
            }
            Do::Grow(pick, units) => {
                let (index, len) = self.held[pick % self.held.len()];
                let zone = self.zones.zone_of(index).expect("a zone's unit");
                let end = index + len - self.zones.zones()[zone].base;
                let free = units == 0 || self.specs[zone].all(&(end..end + units), Unit::Free);
                match self.zones.grow(index, len + units) {
                    Ok(()) => {
                        assert!(free);
                        self.give_back(pick % self.held.len());
                        self.grant(index, len + units);
                    }
                    Err(ResizeError::InUse { .. } | ResizeError::OutOfRange { .. }) => {
                        assert!(!free)
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            Do::SplitOff(pick, units) => {
                let (index, len) = self.held[pick % self.held.len()];
                let first = 1 + units % len;
                if first < len && self.zones.split_off(index, first) == Ok(index + first) {
                    self.give_back(pick % self.held.len());
                    self.grant(index, first);
                    self.grant(index + first, len - first);
                }
            }
        }
        for (zone, spec) in self.zones.zones().iter().zip(&self.specs) {
            let used =
                (0..spec.units()).filter(|&unit| spec.unit(unit) != Some(Unit::Free)).count();
            assert_eq!(zone.buddy.stats().used_units, used as u64, "in the zone at {}", zone.base);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_answer_is_that_of_the_zones(program in prop::collection::vec(operations(), 0..80)) {
        let machine: Machine = Machine::new(&THREE);
        let list = machine.zones();
        let specs = THREE.map(|(_, units)| Spec::new(units)).to_vec();
        let mut model = Model { zones: Zones::new(&list).unwrap(), specs, held: Vec::new() };
        program.iter().for_each(|operation| model.step(operation));
        while !model.held.is_empty() {
            model.step(&Do::Free(0, true));
        }
        prop_assert!(list.iter().all(|zone| zone.buddy.audit().is_ok()));
    }
}

/// Zones without gaps, as one allocator: odd lanes ask the last zone first.
struct OneAllocator<'a, W>(Zones<'a, W>);

impl<W: Word> OneAllocator<'_, W> {
    fn preference(&self, lane: usize) -> Vec<usize> {
        let zones = 0..self.0.zones().len();
        if lane.is_multiple_of(2) { zones.collect() } else { zones.rev().collect() }
    }
}

impl<W: Word> BackEnd for OneAllocator<'_, W> {
    fn units(&self) -> u64 {
        self.0.zones().iter().map(|zone| zone.buddy.units()).sum()
    }

    fn max_order(&self) -> u32 {
        self.0.zones().iter().map(|zone| zone.buddy.max_order()).min().unwrap_or(0)
    }

    fn metadata_bytes(&self) -> usize {
        0
    }

    fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
        self.0.on(lane).alloc(&self.preference(lane), order).ok()
    }

    fn free(&self, lane: usize, index: u64, order: u32) -> Result<(), String> {
        self.0.on(lane).free_units(index, 1 << order).map_err(|error| error.to_string())
    }

    fn offers_runs(&self) -> bool {
        true
    }

    fn ask(&self, lane: usize, ask: Ask<'_>) -> Result<u64, No> {
        let (zones, preference) = (self.0.on(lane), self.preference(lane));
        let place = |_: RequestError| No::Exhausted;
        match ask {
            Ask::Units(units) => zones.request(&preference, Request::units(units)).map_err(place),
            Ask::At(at) => zones.alloc_at(at.index, at.len).map_err(place),
            Ask::Within(units, order, range, top_down) => {
                zones.request(&preference, within(units, order, range, top_down)).map_err(place)
            }
            Ask::Free(held) => zones.free(held.index).map(|_| 0).map_err(|_| No::Wrong),
            Ask::Shrink(held, units) => {
                zones.shrink(held.index, units).map(|()| 0).map_err(No::from)
            }
            Ask::Grow(held, units) => zones.grow(held.index, units).map(|()| 0).map_err(No::from),
            Ask::SplitOff(held, units) => zones.split_off(held.index, units).map_err(No::from),
            Ask::Split(held, order) => zones.split(held.index, order).map(|()| 0).map_err(No::from),
            Ask::FreePart(held, part) => {
                zones.free_part(held.index, part).map(|()| 0).map_err(No::from)
            }
            Ask::Batch(order, blocks) => {
                let got = zones.alloc_batch(&preference, order, blocks);
                blocks.truncate(got.unwrap_or(0));
                got.map(|_| 0).map_err(|_| No::Exhausted)
            }
            Ask::FreeBatch(order, blocks) => {
                zones.free_batch(order, blocks).map(|()| 0).map_err(|_| No::Wrong)
            }
        }
    }
}

fn load_of<W: Word + Default>(zones: &[(u64, u64)], load: &Load) -> Result<(), Violation> {
    let machine: Machine<W> = Machine::new(zones);
    let list = machine.zones();
    let all = OneAllocator(Zones::new(&list).unwrap());
    let report = stress(&all, &Oracle::of(&all), load)?;
    assert!(report.allocations > 0 && report.run_operations > 0, "{report:?}");
    for zone in &list {
        zone.buddy.audit().unwrap_or_else(|broken| panic!("{broken} in the zone at {}", zone.base));
    }
    Ok(())
}

#[test]
fn threads_on_all_zones_at_once() {
    for zones in [vec![(0, 64), (64, 64)], vec![(0, 512), (512, 1024), (1536, 512)]] {
        for runs in [20, 80] {
            for threads in [2, 4, 8] {
                let load = Load::new(threads, 24_000 / threads as u64, 0..=6).by_size();
                let load = load.occupancy(80).runs(runs);
                load_of::<std::sync::atomic::AtomicU64>(&zones, &load).unwrap();
                let fewer = Load { operations: load.operations / 4, ..load };
                load_of::<Steered>(&zones, &fewer.jitter(40)).unwrap();
            }
        }
    }
}
