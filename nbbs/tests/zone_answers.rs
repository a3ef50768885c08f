//! Tests that zones answer as each of their arenas would, in the numbers that units have among all zones.

use std::fmt::Debug;
use std::sync::atomic::AtomicU64;

use nbbs::{AllocError, Buddy, Request, RequestError, Zone, ZoneError, Zones};
use testkit::program::{Arena, Body};
use testkit::steered::{Steered, Turn, follow};

const UNITS: u64 = 72;
const BASES: [u64; 2] = [0, 1000];

/// Returns an arena with blocks, runs in one word and across two, a reservation, and free units.
fn in_use(arena: &Arena) -> Buddy<'_> {
    let buddy = arena.buddy();
    for (index, units) in [(0, 4), (5, 3), (20, 20), (48, 16), (31 + 32 + 8, 1)] {
        buddy.here().alloc_at(index, units).unwrap();
    }
    buddy.reserve(10..12).unwrap();
    buddy
}

/// Returns an answer with every number of a unit raised by `by`: an error's `index`, `unit`, `start`, `end` and
/// `behind`, and, where a range ends, its `units`.
fn raised(answer: &str, by: u64) -> String {
    let mut fields = answer.split_inclusive([' ', ',']).map(str::to_string).collect::<Vec<_>>();
    for field in 1..fields.len() {
        let is_unit = match fields[field - 1].trim() {
            "index:" | "unit:" | "start:" | "end:" | "behind:" => true,
            "units:" => answer.contains("OutOfRange"),
            _ => false,
        };
        let digits = fields[field].trim_end_matches([' ', ',']).to_string();
        if let (true, Ok(number)) = (is_unit, digits.parse::<u64>()) {
            let raised = number.saturating_add(by).to_string();
            fields[field] = fields[field].replacen(&digits, &raised, 1);
        }
    }
    fields.concat()
}

/// Asks an arena and, in the numbers of each of two zones, both zones, and compares the answers and what is left of all
/// three.
#[track_caller]
fn assert_same<T: Debug>(
    alone: impl Fn(&Buddy<'_>) -> T,
    zoned: impl Fn(&Zones<'_>, u64) -> T,
    lifted: impl Fn(T, u64) -> T,
) {
    for base in BASES {
        let arenas: [Arena; 3] = std::array::from_fn(|_| Arena::new(UNITS));
        let [single, low, high] = arenas.each_ref().map(in_use);
        let list = [Zone { base: 0, buddy: low }, Zone { base: BASES[1], buddy: high }];
        let zones = Zones::new(&list).unwrap();
        let (zone, other) = if base == 0 { (low, high) } else { (high, low) };
        let before = other.stats();
        let expected = format!("{:?}", lifted(alone(&single), base));
        let expected = if expected.contains("Err") { raised(&expected, base) } else { expected };
        assert_eq!(format!("{:?}", zoned(&zones, base)), expected);
        let len = |buddy: &Buddy<'_>| (0..UNITS).map(|unit| buddy.len_of(unit)).collect::<Vec<_>>();
        assert_eq!(len(&zone), len(&single));
        assert_eq!(other.stats(), before);
    }
}

/// Every unit of a zone, and every length that is different.
#[test]
fn changes_are_those_of_the_zone() {
    for index in 0..UNITS {
        let same = |answer, _| answer;
        assert_same(|one| one.free(index), |all, base| all.free(base + index), same);
        assert_same(|one| one.len_of(index), |all, base| all.len_of(base + index), |a, _| a);
        assert_same(|one| one.order_of(index), |all, base| all.order_of(base + index), |a, _| a);
        for order in 0..=8 {
            assert_same(
                |one| one.here().free_sized(index, order),
                |all, base| all.free_sized(base + index, order),
                |a, _| a,
            );
        }
        for units in [0, 1, 2, 3, 4, 16, 20, 21, 72, 100] {
            let at = |base| base + index;
            assert_same(
                |one| one.here().free_units(index, units),
                |all, base| all.free_units(at(base), units),
                |a, _| a,
            );
            assert_same(
                |one| one.here().shrink(index, units),
                |all, base| all.shrink(at(base), units),
                |a, _| a,
            );
            assert_same(
                |one| one.here().grow(index, units),
                |all, base| all.grow(at(base), units),
                |a, _| a,
            );
            assert_same(
                |one| one.here().split_off(index, units),
                |all, base| all.split_off(at(base), units),
                |a, base| a.map(|cut| cut + base),
            );
            let order = units as u32;
            assert_same(
                |one| one.here().split(index, order),
                |all, base| all.split(at(base), order),
                |a, _| a,
            );
            let end = index + units;
            for start in [index, index + 1, 3, 0] {
                assert_same(
                    |one| one.here().free_part(index, start..end),
                    |all, base| all.free_part(at(base), base + start..base + end),
                    |a, _| a,
                );
            }
        }
    }
}

/// Every range that begins in a zone: free or not, reserved or not, empty, and beyond the end.
#[test]
fn ranges_are_those_of_the_zone() {
    for start in 0..UNITS {
        for end in [start + 1, start + 2, 10, 12, 40, UNITS, UNITS + 1, 0] {
            let at = |base| base + start..base + end;
            assert_same(|one| one.is_free(start..end), |all, base| all.is_free(at(base)), |a, _| a);
            assert_same(|one| one.reserve(start..end), |all, base| all.reserve(at(base)), |a, _| a);
            assert_same(|one| one.release(start..end), |all, base| all.release(at(base)), |a, _| a);
        }
    }
}

#[test]
fn places_and_batches_are_those_of_the_zone() {
    for index in 0..UNITS {
        for units in [0, 1, 2, 9, 40, UNITS, UNITS + 1] {
            assert_same(
                |one| one.here().alloc_at(index, units),
                |all, base| all.alloc_at(base + index, units),
                |a, base| a.map(|index| index + base),
            );
        }
        for order in [0, 2, 4, 7] {
            for other in [0, index, 5, 48] {
                let blocks = [other, index, 71];
                assert_same(
                    |one| one.here().free_batch(order, &blocks),
                    |all, base| all.free_batch(order, &blocks.map(|block| base + block)),
                    |a, _| a,
                );
            }
        }
    }
}

/// Batches that are larger than what a zone is told at once get everything that is free, and give it back.
#[test]
fn large_batches_go_to_their_zones() {
    let arenas: [Arena; 3] = [Arena::new(200), Arena::new(70), Arena::new(130)];
    let [a, b, c] = arenas.each_ref().map(Arena::buddy);
    let list =
        [Zone { base: 7, buddy: a }, Zone { base: 207, buddy: b }, Zone { base: 500, buddy: c }];
    let zones = Zones::new(&list).unwrap();
    for count in [1, 63, 64, 65, 128, 129, 270, 400, 500] {
        let mut blocks = vec![0; count];
        assert_eq!(zones.alloc_batch(&[2, 0, 1], 0, &mut blocks), Ok(count.min(400)));
        blocks.truncate(400);
        let used = [c, a, b].map(|zone| zone.stats().used_units);
        let expected = [130, 200, 70].iter().scan(blocks.len() as u64, |left, &units| {
            let here = units.min(*left);
            *left -= here;
            Some(here)
        });
        assert!(expected.eq(used), "{count}: {used:?}");
        blocks.reverse();
        assert_eq!(zones.free_batch(0, &blocks), Ok(()));
        assert!([a, b, c].iter().all(|zone| zone.stats().used_units == 0));
    }
}

/// Returns three zones, with a gap before the last.
fn of(arenas: &[Arena; 3]) -> Vec<Zone<'_>> {
    let zones = arenas.iter().zip([0, 20, 300]);
    zones.map(|(arena, base)| Zone { base, buddy: arena.buddy() }).collect()
}

/// Tries every preference of three zones and one that does not exist, at every order, while they are empty and as they
/// fill up.
#[test]
fn a_refusal_is_that_of_all_zones_together() {
    let arenas: [Arena; 3] = [Arena::new(20), Arena::new(100), Arena::new(40)];
    let list = of(&arenas);
    let zones = Zones::new(&list).unwrap();
    let digits = |number: usize| (0..3).map(move |place| number / 4_usize.pow(place) % 4);
    for full in 0..8 {
        for preference in (0..64).map(|number| digits(number).collect::<Vec<_>>()) {
            for order in 0..8 {
                let held: Vec<_> = list
                    .iter()
                    .zip(0..)
                    .map(|(zone, number)| {
                        let units = zone.buddy.units();
                        (full >> number & 1 == 1)
                            .then(|| zone.buddy.here().alloc_at(0, units).unwrap())
                    })
                    .collect();
                let known: Vec<usize> =
                    preference.iter().copied().filter(|&zone| zone < 3).collect();
                let max = |&zone: &usize| list[zone].buddy.max_order();
                let first = known.iter().find(|&zone| max(zone) >= order && held[*zone].is_none());
                let refused = match known.iter().map(max).max() {
                    None => AllocError::NoZone { zones: 3 },
                    Some(max) if max < order => AllocError::OrderTooLarge { order, max },
                    Some(_) => AllocError::Exhausted { units: 1 << order },
                };
                let expected = first.copied().ok_or(refused);
                let got = zones.alloc(&preference, order);
                got.into_iter().for_each(|block| assert_eq!(zones.free(block), Ok(1 << order)));
                assert_eq!(
                    got.map(|block| zones.zone_of(block).unwrap()),
                    expected,
                    "{preference:?}"
                );
                let mut block = [u64::MAX];
                let got = zones.alloc_batch(&preference, order, &mut block);
                assert_eq!(got, expected.map(|_| 1));
                got.into_iter().for_each(|_| zones.free_batch(order, &block).unwrap());
                for (zone, held) in list.iter().zip(held) {
                    held.into_iter().for_each(|index| _ = zone.buddy.free(index).unwrap());
                }
            }
        }
    }
}

/// The refusal of a zone that could have the run is preferred to that of one that could not; of these, that of the zone
/// that could have the most.
#[test]
fn a_refused_request_says_why() {
    let arenas: [Arena; 3] = [Arena::new(20), Arena::new(100), Arena::new(40)];
    let list = of(&arenas);
    let zones = Zones::new(&list).unwrap();
    list[1].buddy.here().alloc_at(0, 100).unwrap();
    let ask = |preference: &[usize], request| zones.request(preference, request);
    let units = |units, max| Err(RequestError::Units { units, max });
    let exhausted = |units| Err(RequestError::Exhausted { units });
    assert_eq!(ask(&[0, 2], Request::units(50)), units(50, 40));
    assert_eq!(ask(&[2, 0], Request::units(50)), units(50, 40));
    assert_eq!(ask(&[1, 0], Request::units(50)), exhausted(50));
    assert_eq!(ask(&[0, 1], Request::units(50)), exhausted(50));
    assert_eq!(ask(&[0], Request::units(0)), units(0, 20));
    assert_eq!(ask(&[2, 0], Request::units(0)), units(0, 40));
    let aligned = |order| Request::units(1).aligned(order);
    assert_eq!(ask(&[2], aligned(6)), Err(RequestError::OrderTooLarge { order: 6, max: 5 }));
    assert_eq!(ask(&[2, 1], aligned(6)), exhausted(1));
    assert_eq!(ask(&[2, 0], Request::units(21).within(10..330)), Ok(300));
    assert_eq!(zones.free_units(300, 21), Ok(()));
    assert_eq!(ask(&[2, 0], Request::units(5).within(15..301)), Ok(15));
    let no_place = RequestError::NoPlace { units: 2, order: 0, start: 19, end: 301 };
    assert_eq!(ask(&[0, 2], Request::units(2).within(19..301)), Err(no_place));
    assert_eq!(ask(&[0, 2, 1], Request::units(2).within(19..301)), exhausted(2));
    for (start, end) in [(5, 2), (50, 10), (310, 310), (u64::MAX, 0)] {
        let refused = Err(RequestError::OutOfRange { start, end, units: 340 });
        assert_eq!(ask(&[0, 2], Request::units(2).within(start..end)), refused);
    }
    assert_eq!(ask(&[2], Request::units(2).within(0..u64::MAX)), Ok(300));
}

/// Without any zone there is no range to be outside of, unless the caller gives one.
#[test]
fn a_request_of_no_zones_says_so() {
    let zones = Zones::<AtomicU64>::new(&[]).unwrap();
    let none = Err(RequestError::NoZone { zones: 0 });
    assert_eq!(zones.request(&[0], Request::units(1)), none);
    assert_eq!(zones.request(&[0], Request::units(1).within(0..10)), none);
    assert_eq!(zones.alloc_units(&[], 1), none);
    let refused = Err(RequestError::OutOfRange { start: 5, end: 5, units: 0 });
    assert_eq!(zones.request(&[0], Request::units(1).within(5..5)), refused);
}

/// Zones that touch, that overlap by one unit, and that end where numbers do.
#[test]
fn zones_are_in_order_or_refused() {
    let arenas: [Arena; 2] = [Arena::new(10), Arena::new(33)];
    let zone = |base, arena: usize| Zone { base, buddy: arenas[arena].buddy() };
    let made = |list: &[Zone<'_>]| Zones::new(list).map(|zones| zones.zones().len());
    let overlap = |zone, base, end| Err(ZoneError::Overlap { zone, base, end });
    let too_high = |zone, base, units| Err(ZoneError::TooHigh { zone, base, units });
    assert_eq!(made(&[]), Ok(0));
    assert_eq!(made(&[zone(5, 0), zone(15, 1)]), Ok(2));
    assert_eq!(made(&[zone(5, 0), zone(14, 1)]), overlap(1, 14, 15));
    assert_eq!(made(&[zone(15, 1), zone(5, 0)]), overlap(1, 5, 48));
    assert_eq!(made(&[zone(0, 0), zone(u64::MAX - 33, 1)]), Ok(2));
    assert_eq!(made(&[zone(0, 0), zone(u64::MAX - 32, 1)]), too_high(1, u64::MAX - 32, 33));
    assert_eq!(made(&[zone(u64::MAX - 9, 0)]), too_high(0, u64::MAX - 9, 10));
    let text = |list: &[Zone<'_>]| Zones::new(list).unwrap_err().to_string();
    let overlap = text(&[zone(5, 0), zone(14, 1)]);
    assert_eq!(overlap, "zone 1 begins at unit 14: the one before it ends at unit 15");
    let list = [zone(5, 0), zone(15, 1)];
    let zones = Zones::new(&list).unwrap();
    for unit in 0..60 {
        let expected = match unit {
            5..15 => Some(0),
            15..48 => Some(1),
            _ => None,
        };
        assert_eq!(zones.zone_of(unit), expected, "{unit}");
    }
}

/// Every operation that names a unit in no zone says so, and where the zones around it are.
#[test]
fn a_unit_in_no_zone_is_said_to_be_in_none() {
    let arenas: [Arena; 3] = [Arena::new(20), Arena::new(100), Arena::new(40)];
    let list = of(&arenas);
    for (first, unit, said) in [
        (0, 120, "unit 120 is in no zone: there is none from unit 120 on, up to unit 299"),
        (0, 299, "unit 299 is in no zone: there is none from unit 120 on, up to unit 299"),
        (0, 340, "unit 340 is in no zone: there is none from unit 340 on"),
        (0, u64::MAX, "unit 18446744073709551615 is in no zone: there is none from unit 340 on"),
        (1, 5, "unit 5 is in no zone: there is none from unit 0 on, up to unit 19"),
        (3, 5, "unit 5 is in no zone: there is none from unit 0 on"),
    ] {
        let zones = Zones::new(&list[first..]).unwrap();
        let end = unit.saturating_add(1);
        let answers = [
            zones.free(unit).unwrap_err().to_string(),
            zones.free_units(unit, 1).unwrap_err().to_string(),
            zones.free_batch(0, &[unit]).unwrap_err().error.to_string(),
            zones.len_of(unit).unwrap_err().to_string(),
            zones.split(unit, 0).unwrap_err().to_string(),
            zones.free_part(unit, unit..end).unwrap_err().to_string(),
            zones.alloc_at(unit, 2).unwrap_err().to_string(),
            zones.is_free(unit..end).unwrap_err().to_string(),
            zones.reserve(unit..end).unwrap_err().to_string(),
        ];
        assert!(answers.iter().all(|answer| answer == said), "{answers:?}");
    }
}

#[test]
fn a_refusal_says_what_the_best_of_the_zones_could_do() {
    // The large one in the middle, so that neither the first nor the last answer is right.
    let arenas: [Arena; 3] = [Arena::new(64), Arena::new(16_384), Arena::new(90)];
    let bases = [0, 1 << 20, 1 << 30];
    let list: [Zone<'_>; 3] =
        std::array::from_fn(|zone| Zone { base: bases[zone], buddy: arenas[zone].buddy() });
    let zones = Zones::new(&list).unwrap();
    let all = [0, 1, 2];
    for preference in [[0, 1, 2], [1, 2, 0], [2, 0, 1]] {
        let refused = |request: Request| zones.request(&preference, request).unwrap_err();
        let units = RequestError::Units { units: 20_000, max: 16_384 };
        assert_eq!(refused(Request::units(20_000)), units);
        let order = RequestError::OrderTooLarge { order: 20, max: 14 };
        assert_eq!(refused(Request::units(1).aligned(20)), order);
        assert_eq!(refused(Request::units(80).aligned(20)), order, "zone 0 has not so many units");
        let order = AllocError::OrderTooLarge { order: 20, max: 14 };
        assert_eq!(zones.alloc(&preference, 20), Err(order));
        // Zone 1 could have them, but not in the 3 units of the range that are its own.
        let no_place = |units, start, end| RequestError::NoPlace { units, order: 0, start, end };
        let end = (1 << 20) + 3;
        assert_eq!(refused(Request::units(100).within(0..end)), no_place(100, 0, end));
        let none = no_place(20_000, 70, 90);
        assert_eq!(refused(Request::units(20_000).within(70..90)), none, "no zone is there");
        let units = RequestError::Units { units: 20_000, max: 64 };
        assert_eq!(refused(Request::units(20_000).within(0..90)), units, "nor are 1 and 2");
    }
    let units = RequestError::Units { units: 100, max: 90 };
    assert_eq!(zones.request(&[2, 0, 7], Request::units(100)), Err(units));
    assert_eq!(zones.alloc_at(1 << 20, 16_384), Ok(1 << 20));
    let exhausted = RequestError::Exhausted { units: 100 };
    assert_eq!(zones.request(&all, Request::units(100)), Err(exhausted));
}

#[test]
fn a_range_that_leaves_its_zone() {
    let arena: Arena = Arena::new(64);
    let zones = [Zone { base: 1000, buddy: arena.buddy() }];
    let refused = Zones::new(&zones).unwrap().alloc_at(1060, 8).unwrap_err();
    // Which says nothing of the units below the zone.
    let said = "units 1060..1068 reach beyond the last unit, 1063";
    assert_eq!(refused.to_string(), said);
}

/// A refusal is not of one instant: somebody frees in the first zone, which has been asked, and then allocates in the
/// second. At every instant a unit was free.
#[test]
fn each_zone_refuses_at_an_instant_of_its_own() {
    let refused = (0..20).filter(|&stop| {
        let arenas = [Arena::<Steered>::new(1), Arena::<Steered>::new(1)];
        let zone = |number: usize| Zone { base: number as u64, buddy: arenas[number].buddy() };
        let list = [zone(0), zone(1)];
        let zones = Zones::new(&list).unwrap();
        let unit = zones.on(1).alloc(&[0], 0).unwrap();
        let mut answer = None;
        let bodies: Vec<Body<'_>> = vec![
            Box::new(|| {
                answer = Some(zones.on(0).alloc(&[0, 1], 0));
                Ok(())
            }),
            Box::new(|| {
                zones.on(1).free(unit).unwrap();
                _ = zones.on(1).alloc(&[1], 0);
                Ok(())
            }),
        ];
        follow(&[Turn::steps(0, stop), Turn::rest(1)], bodies).unwrap();
        answer == Some(Err(AllocError::Exhausted { units: 1 }))
    });
    assert!(refused.count() > 0);
}
