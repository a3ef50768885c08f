//! The races of runs, on 64 units: two leaf words, of units 0 to 31 and 32 to 63, under one inner word.

use crate::race::Op::{
    self, Alloc, At, Batch, EndAt, Free, FreeBatch, FreePart, FreeRun, MendAll, ReserveRelease,
    Units,
};
use crate::race::{MAIN, Notes, Race};
use crate::races::{ALL, FOUR, HAND_OVER, TWO, Under};
use crate::word::Model::Bare;

/// The first leaf word is one block of the main thread, so everything happens in the second.
const FIRST_FULL: (usize, Op) = (MAIN, At(0, 32));

/// Only acquire and release, with up to three preemptions.
const HAND_OVER_OF_WORDS: Under = &[(Bare, Some(3))];

const fn race(
    name: &'static str,
    setup: &'static [(usize, Op)],
    lanes: &'static [&'static [Op]],
    under: Under,
) -> Race {
    Race { name, units: 64, grain: 0, setup, lanes, notes: Notes::Own, under }
}

/// All races of runs.
pub static RUNS: &[Race] = &[
    // Two exact sizes in one word that has room for one.
    race(
        "exact-or-exact",
        &[FIRST_FULL, (MAIN, At(32, 50)), (MAIN, Units(3))],
        &[&[Units(9)], &[At(55, 62)]],
        ALL,
    ),
    // Two claims overlap, and each is given back.
    race("exact-again", &[FIRST_FULL], &[&[At(40, 47), FreeRun], &[At(45, 50), FreeRun]], FOUR),
    // A run across words meets a claim in its second word: one of them is rolled back.
    race("across-or-alloc", &[], &[&[At(20, 44), FreeRun], &[At(40, 43)]], FOUR),
    // Two runs across the same words, whose pieces overlap in the second.
    race("across-or-across", &[], &[&[At(20, 44)], &[At(4, 12), EndAt(34)]], FOUR),
    // A run across words meets a block above one of them.
    race("across-or-block", &[], &[&[At(24, 40), FreeRun], &[Alloc(5)]], TWO),
    // A run grows in its word, and another lane claims behind it.
    race("grow-or-alloc", &[FIRST_FULL, (0, At(32, 36))], &[&[EndAt(42)], &[At(40, 44)]], ALL),
    // A run grows beyond its word, and another lane claims there.
    race("grow-across-or-alloc", &[(0, At(24, 32))], &[&[EndAt(40), FreeRun], &[At(36, 40)]], FOUR),
    // Another lane takes what is given back: within a word, beyond one, from the middle, and the whole run.
    race(
        "hand-over-by-shrinking",
        &[FIRST_FULL, (0, At(32, 63))],
        &[&[EndAt(48)], &[At(48, 56)]],
        HAND_OVER,
    ),
    race(
        "hand-over-of-a-tail",
        &[(0, At(20, 48))],
        &[&[EndAt(26)], &[At(40, 46)]],
        HAND_OVER_OF_WORDS,
    ),
    race(
        "hand-over-of-a-part",
        &[FIRST_FULL, (0, At(32, 60))],
        &[&[FreePart(40, 50)], &[At(42, 48)]],
        HAND_OVER,
    ),
    race(
        "hand-over-of-a-run",
        &[(0, At(20, 48))],
        &[&[FreeRun], &[At(20, 32), At(36, 40)]],
        HAND_OVER_OF_WORDS,
    ),
    // A block above the leaf words is cut while another lane looks for units.
    race("cut-or-alloc", &[(0, At(32, 64)), (MAIN, At(0, 30))], &[&[EndAt(40)], &[Units(4)]], TWO),
    // Many blocks are claimed by one compare-and-swap, and another lane claims one among them.
    race("batch-or-alloc", &[FIRST_FULL], &[&[Batch(2, 9), FreeBatch(2)], &[At(36, 37)]], FOUR),
    // Many blocks in a word are claimed, and the word as a block.
    race("batch-or-block", &[FIRST_FULL], &[&[Batch(2, 3), FreeBatch(2)], &[Alloc(5), Free]], FOUR),
    // Mending beside changes of all kinds. It costs nothing: a cut without a claim below it is not refused.
    race(
        "mend-beside-cut",
        &[(0, At(32, 64)), (MAIN, At(0, 30))],
        &[&[EndAt(40)], &[MendAll]],
        FOUR,
    ),
    race("mends-beside-cut", &[(0, At(32, 64))], &[&[EndAt(40)], &[MendAll], &[MendAll]], TWO),
    race("mend-beside-part", &[(0, At(0, 64))], &[&[FreePart(20, 40)], &[MendAll]], FOUR),
    race("mend-beside-growth", &[(0, At(24, 32))], &[&[EndAt(40), FreeRun], &[MendAll]], TWO),
    race("mend-beside-run", &[], &[&[At(20, 44), FreeRun], &[MendAll]], TWO),
    race(
        "mend-beside-reservation",
        &[FIRST_FULL],
        &[&[ReserveRelease(40, 44)], &[MendAll], &[Alloc(5)]],
        TWO,
    ),
];
