//! Every invalid request is refused with an error that names it, and changes nothing.

use nbbs::{
    AllocError, Buddy, FreeError, MAX_UNITS, MetadataError, RangeError, ResizeError, metadata_words,
};
use testkit::program::Arena;

/// Returns an arena of 1000 units with a block of order 3 at 0, of order 5 at 32, of order 8 at 256, and a reservation
/// at 100..110.
fn with_three_blocks(arena: &Arena) -> Buddy<'_> {
    let buddy = arena.buddy();
    buddy.reserve(512..1000).unwrap();
    let blocks = [buddy.on(0).alloc(3), buddy.on(0).alloc(5), buddy.on(0).alloc(8)];
    assert_eq!(blocks, [Ok(0), Ok(32), Ok(256)]);
    buddy.reserve(100..110).unwrap();
    buddy.release(512..1000).unwrap();
    buddy
}

/// Returns the refusal of a unit that an arena of this many units does not have.
fn outside(index: u64, units: u64) -> FreeError {
    FreeError::OutOfRange { start: index, end: index.saturating_add(1), units }
}

/// Asks a question that must not change anything.
fn asked<T>(buddy: &Buddy<'_>, question: impl FnOnce() -> T) -> T {
    let before = buddy.stats();
    let answer = question();
    assert_eq!(buddy.stats(), before);
    buddy.audit().unwrap();
    answer
}

#[test]
fn frees_without_an_order() {
    let arena = Arena::new(1000);
    let buddy = with_three_blocks(&arena);
    for (index, error) in [
        (1000, outside(1000, 1000)),
        (u64::MAX, outside(u64::MAX, 1000)),
        (8, FreeError::NotAllocated { index: 8 }),
        (64, FreeError::NotAllocated { index: 64 }),
        (999, FreeError::NotAllocated { index: 999 }),
        (1, FreeError::NotABlock { index: 1 }),
        (4, FreeError::NotABlock { index: 4 }),
        (33, FreeError::NotABlock { index: 33 }),
        (48, FreeError::NotABlock { index: 48 }),
        (288, FreeError::NotABlock { index: 288 }),
        (511, FreeError::NotABlock { index: 511 }),
        (100, FreeError::Reserved { index: 100 }),
        (109, FreeError::Reserved { index: 109 }),
    ] {
        assert_eq!(asked(&buddy, || buddy.free(index)), Err(error));
        assert_eq!(asked(&buddy, || buddy.order_of(index)), Err(error));
        assert_eq!(asked(&buddy, || buddy.on(3).free(index)), Err(error));
    }
    assert_eq!([buddy.free(0), buddy.free(32), buddy.free(256)], [Ok(8), Ok(32), Ok(256)]);
}

#[test]
fn frees_with_an_order() {
    let arena = Arena::new(1000);
    let buddy = with_three_blocks(&arena);
    for (index, order, error) in [
        (1000, 0, outside(1000, 1000)),
        (0, 10, FreeError::OrderTooLarge { order: 10, max: 9 }),
        (0, u32::MAX, FreeError::OrderTooLarge { order: u32::MAX, max: 9 }),
        (4, 3, FreeError::Misaligned { index: 4, order: 3 }),
        (32, 6, FreeError::Misaligned { index: 32, order: 6 }),
        (0, 2, FreeError::WrongOrder { index: 0, order: 2, actual: 3 }),
        (0, 4, FreeError::WrongOrder { index: 0, order: 4, actual: 3 }),
        (0, 9, FreeError::WrongOrder { index: 0, order: 9, actual: 3 }),
        (32, 0, FreeError::WrongOrder { index: 32, order: 0, actual: 5 }),
        (256, 7, FreeError::WrongOrder { index: 256, order: 7, actual: 8 }),
        (256, 5, FreeError::WrongOrder { index: 256, order: 5, actual: 8 }),
        (256, 4, FreeError::WrongOrder { index: 256, order: 4, actual: 8 }),
        (4, 2, FreeError::NotABlock { index: 4 }),
        (4, 0, FreeError::NotABlock { index: 4 }),
        (288, 5, FreeError::NotABlock { index: 288 }),
        (260, 0, FreeError::NotABlock { index: 260 }),
        (64, 6, FreeError::NotAllocated { index: 64 }),
        (8, 0, FreeError::NotAllocated { index: 8 }),
        // Aligned, and its end lies outside the arena.
        (512, 9, FreeError::NotAllocated { index: 512 }),
        (101, 0, FreeError::Reserved { index: 101 }),
        (104, 2, FreeError::Reserved { index: 104 }),
    ] {
        assert_eq!(asked(&buddy, || buddy.free_sized(index, order)), Err(error));
        assert_eq!(asked(&buddy, || buddy.on(1).free_sized(index, order)), Err(error));
    }
    assert_eq!(buddy.free_sized(0, 3), Ok(()));
    assert_eq!(buddy.free_sized(32, 5), Ok(()));
    assert_eq!(buddy.free_sized(256, 8), Ok(()));
}

#[test]
fn second_frees() {
    for order in 0..=9 {
        let arena: Arena = Arena::new(1000);
        let buddy = arena.buddy();
        let block = buddy.alloc(order).unwrap();
        assert_eq!(buddy.free(block), Ok(1 << order));
        assert_eq!(
            asked(&buddy, || buddy.free(block)),
            Err(FreeError::NotAllocated { index: block })
        );
        let refused = asked(&buddy, || buddy.free_sized(block, order));
        assert_eq!(refused, Err(FreeError::NotAllocated { index: block }));
        // With a neighbour in use, so that the word does not become empty.
        let (one, two) = (buddy.alloc(order), buddy.alloc(order));
        let Ok(two) = two else { continue };
        assert_eq!(buddy.free_sized(two, order), Ok(()));
        assert_eq!(asked(&buddy, || buddy.free(two)), Err(FreeError::NotAllocated { index: two }));
        assert_eq!(buddy.free(one.unwrap()), Ok(1 << order));
    }
}

#[test]
fn allocations() {
    let arena: Arena = Arena::new(100);
    let buddy = arena.buddy();
    let too_large = |order| Err(AllocError::OrderTooLarge { order, max: 6 });
    assert_eq!(asked(&buddy, || buddy.alloc(7)), too_large(7));
    assert_eq!(asked(&buddy, || buddy.on(9).alloc(u32::MAX)), too_large(u32::MAX));
    assert_eq!(asked(&buddy, || buddy.on(1).alloc(64)), too_large(64));
    buddy.alloc(6).unwrap();
    assert_eq!(asked(&buddy, || buddy.alloc(6)), Err(AllocError::Exhausted { units: 1 << 6 }));
}

#[test]
fn ranges() {
    let arena = Arena::new(1000);
    let buddy = with_three_blocks(&arena);
    for (start, end) in [(0, 0), (5, 4), (999, 1001), (1000, 1001), (0, u64::MAX), (u64::MAX, 0)] {
        let error = Err(RangeError::OutOfRange { start, end, units: 1000 });
        assert_eq!(asked(&buddy, || buddy.reserve(start..end)), error);
        assert_eq!(asked(&buddy, || buddy.release(start..end)), error);
    }
    for (start, end, rule) in [
        (0, 0, "are an empty range"),
        (5, 4, "are an empty range"),
        (2000, 1000, "are an empty range"),
        (999, 1001, "reach beyond the last unit, 999"),
    ] {
        let refused = buddy.reserve(start..end).unwrap_err();
        assert_eq!(refused.to_string(), format!("units {start}..{end} {rule}"));
    }
    let refused = buddy.reserve(1000..1001).unwrap_err();
    assert_eq!(refused.to_string(), "unit 1000 is beyond the last unit, 999");
    for (start, end) in [(0, 1), (7, 9), (64, 101), (64, 1000), (300, 301), (109, 110)] {
        let refused = asked(&buddy, || buddy.reserve(start..end));
        assert!(matches!(refused, Err(RangeError::InUse { unit }) if (start..end).contains(&unit)));
    }
    for (start, end, unit) in [(0, 1, 0), (99, 105, 99), (105, 111, 110), (100, 1000, 110)] {
        let refused = asked(&buddy, || buddy.release(start..end));
        assert_eq!(refused, Err(RangeError::NotReserved { unit }));
    }
}

#[test]
fn parts() {
    let arena = Arena::new(1000);
    let buddy = arena.buddy();
    buddy.here().alloc_at(40, 100).unwrap();
    buddy.here().alloc_at(200, 1).unwrap();
    let refused = buddy.here().shrink(200, 2).unwrap_err();
    assert_eq!(refused.to_string(), "the run at unit 200 has 1 unit, so 2 is not possible");
    for (start, end) in [(39, 50), (50, 141), (0, 1), (60, 60), (70, 60), (140, 150), (u64::MAX, 0)]
    {
        let refused = asked(&buddy, || buddy.here().free_part(40, start..end)).unwrap_err();
        let (expected, said) = if start < 40 {
            (ResizeError::BeforeRun { start, end, index: 40 }, "begins at unit 40")
        } else {
            (ResizeError::BehindRun { start, end, behind: 140 }, "ends before unit 140")
        };
        assert_eq!(refused, expected);
        let said = format!("units {start}..{end} are no part of the run, which {said}");
        assert_eq!(refused.to_string(), said);
    }
}

#[test]
fn splits() {
    let arena = Arena::new(1000);
    let buddy = arena.buddy();
    let runs = buddy.here();
    runs.alloc_at(36, 8).unwrap();
    runs.alloc_at(48, 12).unwrap();
    let length = |index, units, actual| ResizeError::WrongLength { index, units, actual };
    let misaligned = |order| FreeError::Misaligned { index: 36, order }.into();
    for (index, order, error) in [
        (36, 3, misaligned(3)),
        (36, 9, misaligned(9)),
        (48, 3, length(48, 8, 12)),
        (48, 10, ResizeError::OrderTooLarge { order: 10, max: 9 }),
        (40, 0, FreeError::NotABlock { index: 40 }.into()),
    ] {
        assert_eq!(asked(&buddy, || runs.split(index, order)), Err(error));
    }
    for units in [0, 8, 9, u64::MAX] {
        assert_eq!(asked(&buddy, || runs.split_off(36, units)), Err(length(36, units, 8)));
    }
    assert_eq!(runs.split(48, 2), Ok(()));
    assert_eq!(buddy.free(56), Ok(4));
}

#[test]
fn metadata() {
    let units_error = |units| Err(MetadataError::Units { units, max: MAX_UNITS });
    let none: [std::sync::atomic::AtomicU64; 0] = [];
    assert_eq!(Buddy::new(&none, 0).map(|_| ()), units_error(0));
    assert_eq!(Buddy::new(&none, MAX_UNITS + 1).map(|_| ()), units_error(MAX_UNITS + 1));
    assert_eq!(Buddy::attach(&none, u64::MAX).map(|_| ()), units_error(u64::MAX));
    for units in [1, 33, 1000, 1 << 20] {
        let arena: Arena = Arena::new(units);
        let (needed, words) = (metadata_words(units), arena.words());
        assert_eq!(words.len(), needed);
        let short = &words[..needed - 1];
        let error = Err(MetadataError::TooShort { words: needed - 1, needed });
        assert_eq!(Buddy::new(short, units).map(|_| ()), error);
        assert_eq!(Buddy::new_reserved(short, units).map(|_| ()), error);
        assert_eq!(Buddy::attach(short, units).map(|_| ()), error);
    }
}
