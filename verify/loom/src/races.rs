//! The races of blocks and reservations.
//!
//! Most are on 64 units: two leaf words, of units 0 to 31 and 32 to 63, under one inner word. If the first leaf word is
//! full, with two blocks of the main thread, everything happens in the second.

use crate::race::Op::{
    self, After, Alloc, At, Batch, Die, Free, FreeUnsized, Mend, Release, Reserve, ReserveRelease,
};
use crate::race::{MAIN, Notes, Race};
use crate::word::Model::{self, Bare, Fences, Leading, Trailing};

/// Models, and for each the most preemptions; `None` means any number.
pub type Under = &'static [(Model, Option<usize>)];

/// Every model that has a fence, without a bound.
pub const ALL: Under = &[(Fences, None), (Leading, None), (Trailing, None)];
/// Every model that has a fence, with up to five preemptions.
pub const FIVE: Under = &[(Fences, Some(5)), (Leading, Some(5)), (Trailing, Some(5))];
/// Every model that has a fence, with up to four preemptions.
pub const FOUR: Under = &[(Fences, Some(4)), (Leading, Some(4)), (Trailing, Some(4))];
/// Every model that has a fence, with up to two preemptions.
pub const TWO: Under = &[(Fences, Some(2)), (Leading, Some(2)), (Trailing, Some(2))];
/// Only acquire and release, without a bound.
pub const HAND_OVER: Under = &[(Bare, None)];

/// Creates a race on 64 units, with blocks of order 4 and up, and separate notes for each thread.
const fn half_words(
    name: &'static str,
    setup: &'static [(usize, Op)],
    lanes: &'static [&'static [Op]],
    under: Under,
) -> Race {
    Race { name, units: 64, grain: 4, setup, lanes, notes: Notes::Own, under }
}

/// All races.
pub static RACES: &[Race] = &[
    // A block is freed and taken again: the holders' accesses to the memory are ordered by its word alone.
    half_words(
        "hand-over-in-a-word",
        &[(MAIN, Alloc(4)), (MAIN, Alloc(4)), (MAIN, Alloc(4)), (0, Alloc(4))],
        &[&[Free], &[Alloc(4)]],
        HAND_OVER,
    ),
    // The word looks to lane 1 as it left it, so it claims without a look.
    half_words(
        "hand-over-by-a-guess",
        &[(MAIN, Alloc(4)), (MAIN, Alloc(4)), (MAIN, Alloc(4)), (1, Alloc(4)), (1, Free)],
        &[&[Alloc(4), Free], &[Alloc(4)]],
        HAND_OVER,
    ),
    // Lane 0 empties a word and leaves it unmerged; lane 1 merges it and takes the whole.
    half_words(
        "hand-over-by-a-merge",
        &[(MAIN, Alloc(4)), (MAIN, Alloc(4)), (0, Alloc(4)), (0, Free), (0, Alloc(4))],
        &[&[Free], &[Alloc(5)]],
        HAND_OVER,
    ),
    // The same with two lanes that merge, and a third that takes.
    half_words(
        "hand-over-by-another",
        &[(MAIN, Alloc(4)), (MAIN, Alloc(4)), (0, Alloc(4))],
        &[&[Free], &[Alloc(6)], &[Alloc(5)]],
        &[(Bare, Some(2))],
    ),
    // Lane 0 frees the first leaf word as a block, lane 1 splits it, and lane 2 claims beside lane 1: only the top says
    // that lane 0 is done.
    Race {
        name: "hand-over-by-a-climb",
        units: 64,
        grain: 3,
        setup: &[(2, Alloc(3)), (2, Free), (MAIN, Alloc(5)), (0, Alloc(5))],
        lanes: &[&[Free], &[After(0), At(8, 16)], &[After(1), Alloc(3)]],
        notes: Notes::Own,
        under: &[(Bare, Some(0))],
    },
    // The same with one more level, on one lane: lane 1 notes the path; lane 2 trusts the note and does not look at the
    // top. In the word between them it may see what lane 1 left there first.
    Race {
        name: "hand-over-by-a-path",
        units: 1024,
        grain: 3,
        setup: &[(2, Alloc(3)), (2, Free), (MAIN, Alloc(9)), (0, Alloc(9))],
        lanes: &[&[Free], &[After(0), At(8, 16), At(32, 40), At(40, 48)], &[After(1), Alloc(3)]],
        notes: Notes::OnePath,
        under: &[(Bare, Some(0))],
    },
    // The same, but lane 1 notes the path by a free. The claim with which it opens the way is in the word of lane 2,
    // and the block that it frees is in the next word, so neither orders anything of lane 0 before the claim.
    Race {
        name: "hand-over-by-the-path-of-a-free",
        units: 1024,
        grain: 3,
        setup: &[
            (MAIN, Alloc(5)),
            (1, Alloc(4)),
            (1, Free),
            (MAIN, Free),
            (2, Alloc(3)),
            (2, Free),
            (MAIN, Alloc(9)),
            (0, Alloc(9)),
        ],
        lanes: &[&[Free], &[After(0), At(8, 16), Batch(4, 2), Free], &[After(1), Alloc(3)]],
        notes: Notes::OnePath,
        under: &[(Bare, Some(0))],
    },
    // Lane 0 dies as it has claimed in a word, which lane 1 takes for empty and merges, for a request that is refused.
    // Lane 2 mends after the death.
    half_words(
        "mend-or-merge",
        &[(MAIN, At(0, 32)), (0, Alloc(4)), (0, Free)],
        &[&[Die(4, 1)], &[Alloc(6)], &[Mend(32, 4)]],
        TWO,
    ),
    // Two mend after a death below a free slot, beside a claim.
    half_words(
        "mend-or-mend",
        &[(MAIN, At(0, 32)), (0, Alloc(4)), (0, Free), (1, Alloc(6)), (0, Die(4, 1))],
        &[&[Mend(32, 4)], &[Mend(32, 4)], &[Alloc(4)]],
        &[(Fences, Some(2)), (Leading, Some(2))],
    ),
    // Lane 0 frees the last block of a word and takes the slot above; lane 1 claims in the word and knows its path.
    half_words(
        "claim-or-merge",
        &[(MAIN, Alloc(4)), (MAIN, Alloc(4)), (0, Alloc(4)), (1, Alloc(4)), (1, Free)],
        &[&[Free, Alloc(5)], &[Alloc(4)]],
        ALL,
    ),
    // The same, but lane 1 has to search and climb.
    half_words(
        "climb-or-merge",
        &[(MAIN, Alloc(4)), (MAIN, Alloc(4)), (0, Alloc(4))],
        &[&[Free, Alloc(5)], &[Alloc(4)]],
        ALL,
    ),
    // Three levels: lane 0 merges the word below the top and takes the half, lane 1 splits the slot above that word,
    // and lane 2, which claims in the same leaf word, finds it split. Its look at the top must come after that.
    Race {
        name: "climb-beside-a-climb",
        units: 1024,
        grain: 4,
        setup: &[(0, Alloc(5)), (MAIN, Alloc(9)), (0, Free)],
        lanes: &[&[Alloc(9)], &[Alloc(4)], &[Alloc(4)]],
        notes: Notes::Own,
        // Two reads in a row decide, which nothing orders under Trailing.
        under: &[(Fences, Some(2)), (Leading, Some(2))],
    },
    // Small and large blocks of an empty arena: claims meet larger blocks, and are undone.
    half_words("large-or-small", &[], &[&[Alloc(6), Free], &[Alloc(4)]], ALL),
    half_words(
        "halves-or-whole",
        &[(0, Alloc(4)), (1, Alloc(4))],
        &[&[Free, Alloc(6)], &[Free, Alloc(5)]],
        ALL,
    ),
    // A refused allocation lowers the bound while a block becomes free, whose holder looks at the bound.
    half_words(
        "free-or-tighten",
        &[(0, Alloc(4)), (MAIN, Alloc(4)), (0, Alloc(4)), (1, Alloc(4))],
        &[&[Alloc(4)], &[Free]],
        ALL,
    ),
    // The same, but the freeing lane's guess of the word is wrong.
    half_words(
        "slow-free-or-tighten",
        &[(1, Alloc(4)), (MAIN, Alloc(4)), (MAIN, Alloc(4)), (MAIN, Alloc(4))],
        &[&[Alloc(4)], &[Free]],
        ALL,
    ),
    // Reservations are claimed and freed like blocks, a stretch of a word at a time.
    Race {
        name: "reserved",
        units: 64,
        grain: 0,
        setup: &[
            (MAIN, Alloc(5)),
            (0, Alloc(4)),
            (1, Reserve(48, 56)),
            (2, Alloc(3)),
            (2, Free),
            (2, Alloc(3)),
        ],
        lanes: &[&[Alloc(3)], &[Release(48, 56)]],
        notes: Notes::Own,
        under: ALL,
    },
    Race {
        name: "reserve-or-merge",
        units: 64,
        grain: 0,
        setup: &[(MAIN, Alloc(5)), (0, Alloc(4))],
        lanes: &[&[Free, Alloc(5)], &[ReserveRelease(40, 48)]],
        notes: Notes::Own,
        under: FIVE,
    },
    // A search is about to split a slot over a word that is entirely reserved, and becomes free again.
    Race {
        name: "split-over",
        units: 64,
        grain: 0,
        setup: &[(0, Alloc(5)), (MAIN, Alloc(4)), (MAIN, Alloc(4))],
        lanes: &[&[Free], &[ReserveRelease(0, 32)], &[Alloc(4)]],
        notes: Notes::Own,
        under: &[(Fences, Some(2)), (Leading, Some(2))],
    },
    // Three threads on one word.
    half_words(
        "three-in-a-word",
        &[(MAIN, Alloc(4)), (MAIN, Alloc(4)), (0, Alloc(4)), (2, Alloc(4)), (2, Free)],
        &[&[Free, Alloc(5)], &[Alloc(4), Free], &[Alloc(4)]],
        TWO,
    ),
    // Two merges under one mark, and a claim that clears it between them.
    Race {
        name: "two-merges",
        units: 96,
        grain: 4,
        setup: &[
            (0, Alloc(4)),
            (MAIN, Alloc(4)),
            (1, Alloc(4)),
            (MAIN, Alloc(4)),
            (MAIN, Alloc(5)),
            (MAIN, Free),
            (MAIN, Free),
        ],
        lanes: &[&[Free, Alloc(5)], &[Free], &[Alloc(4)]],
        notes: Notes::Own,
        under: TWO,
    },
    // Three levels: what a lane knows about its way up ends with a merge at the top. Lane 1 knows its way up from
    // before; lane 0 empties the word below the top, and takes the half.
    Race {
        name: "known-way-up",
        units: 1024,
        grain: 4,
        setup: &[
            (MAIN, Alloc(9)),
            (0, Alloc(4)),
            (1, Alloc(4)),
            (1, Free),
            (1, Alloc(4)),
            (1, Free),
        ],
        lanes: &[&[Free, Alloc(9)], &[Alloc(4)]],
        notes: Notes::Own,
        under: FOUR,
    },
    Race {
        name: "known-way-up-of-three",
        units: 1024,
        grain: 4,
        setup: &[
            (MAIN, Alloc(9)),
            (0, Alloc(4)),
            (1, Alloc(4)),
            (1, Free),
            (1, Alloc(4)),
            (1, Free),
        ],
        lanes: &[&[Free, Alloc(9)], &[Alloc(4)], &[Alloc(4)]],
        notes: Notes::Own,
        under: TWO,
    },
    // The same, but lane 1 last claimed in the other half, and knows its way up only from its last free.
    Race {
        name: "known-way-up-by-a-free-of-three",
        units: 1024,
        grain: 4,
        setup: &[
            (0, Alloc(4)),
            (1, Alloc(4)),
            (1, At(512, 528)),
            (1, At(544, 560)),
            (1, At(560, 576)),
            (1, Free),
        ],
        lanes: &[&[Free, Alloc(9)], &[Alloc(4)], &[Alloc(4)]],
        notes: Notes::Own,
        under: &[(Fences, Some(2))],
    },
    // Three levels: what lane 1 knows about the path of its frees ends with a merge at the top. Lane 0 is late to raise
    // a bound below the top, which from then on promises more than the top's bound.
    Race {
        name: "known-path-of-frees",
        units: 512,
        grain: 4,
        setup: &[(0, Alloc(4)), (0, Free), (0, Alloc(4)), (1, Alloc(4)), (1, Free)],
        lanes: &[&[Free], &[Alloc(9), Free, Alloc(4), Alloc(4), Free, Free]],
        notes: Notes::Own,
        under: FOUR,
    },
    // Three levels: one lane lowers bounds at two of them, and the other raises them.
    Race {
        name: "free-or-tighten-above",
        units: 1024,
        grain: 4,
        setup: &[
            (MAIN, Alloc(9)),
            (1, Alloc(4)),
            (MAIN, Alloc(4)),
            (MAIN, Alloc(8)),
            (MAIN, Alloc(7)),
            (MAIN, Alloc(6)),
            (MAIN, Alloc(5)),
        ],
        lanes: &[&[Alloc(4)], &[Free]],
        notes: Notes::Own,
        under: FOUR,
    },
    // Lane 1 empties a word and merges it. Lane 0, which looks for a block that large, lowers the bound of the top.
    Race {
        name: "merge-or-tighten-above",
        units: 1024,
        grain: 4,
        setup: &[
            (MAIN, Alloc(9)),
            (1, At(512, 528)),
            (MAIN, Alloc(8)),
            (MAIN, Alloc(7)),
            (MAIN, Alloc(6)),
            (MAIN, Alloc(5)),
        ],
        lanes: &[&[Alloc(5)], &[Op::FreeRun]],
        notes: Notes::Own,
        under: FOUR,
    },
    // Notes that all threads share, however old.
    Race {
        name: "stale-notes",
        units: 64,
        grain: 4,
        setup: &[(0, Alloc(4)), (1, Alloc(4))],
        lanes: &[&[Free, Alloc(4)], &[Free, Alloc(5)]],
        notes: Notes::Shared,
        under: TWO,
    },
    // Lane 0 frees a block of two words without its order, over a claim that lane 1 takes back.
    Race {
        name: "unsized-over-a-claim",
        units: 1024,
        grain: 4,
        setup: &[(MAIN, Alloc(9)), (1, Alloc(4)), (1, Free), (0, Alloc(9))],
        lanes: &[&[FreeUnsized], &[Alloc(4)]],
        notes: Notes::Own,
        under: TWO,
    },
    // Lane 0 looks at the way up before it clears, and lane 1 merges what is there.
    Race {
        name: "unsized-beside-a-merge",
        units: 512,
        grain: 4,
        setup: &[(0, Alloc(4)), (0, Free), (0, Alloc(4)), (1, Alloc(4)), (1, Free)],
        lanes: &[&[FreeUnsized], &[Alloc(8), FreeUnsized, Alloc(4), FreeUnsized]],
        notes: Notes::Own,
        under: &[(Fences, Some(2))],
    },
    // The same, where lane 1 lowers the bound that lane 0 saw.
    Race {
        name: "unsized-beside-a-lower-bound",
        units: 1024,
        grain: 4,
        setup: &[
            (0, Alloc(4)),
            (1, Alloc(4)),
            (MAIN, Alloc(9)),
            (MAIN, Alloc(8)),
            (MAIN, Alloc(7)),
            (MAIN, Alloc(6)),
            (MAIN, Alloc(5)),
        ],
        lanes: &[&[FreeUnsized], &[Alloc(4), FreeUnsized, Alloc(5)]],
        notes: Notes::Shared,
        under: &[(Fences, Some(2)), (Bare, Some(1))],
    },
];
