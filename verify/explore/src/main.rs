//! The library's own code on words of a small shape, under every schedule with up to three preemptions.
//!
//! ```text
//! verify-explore [--long] [--first] [--compare] [--seed N] [--thin N] [--triples] [--only TEXT ...]
//! ```
//!
//! A program has two or three lanes; each makes one or two calls, beginning in a scene: an arena as other calls have left
//! it. Of all programs a share is run that the seed chooses. After every schedule, what lies in the arena must be what the
//! lanes hold; all of it is freed, and the arena must be whole. On the way nothing may be handed out twice, and a call
//! that nobody else disturbed must answer as the specification has it. A violation is printed with its program after
//! `FOUND`, its schedule to standard error; the command then ends with 3. `--first` ends at the first. `--thin N` runs one
//! in N of the share. `--only` runs all
//! pairs that have TEXT in their names, as printed (blanks do not count), or with `--triples` all such triples.
//! `--compare` searches once more without reductions but the first, and compares the ends.
//!
//! Leaf words have four units, inner words two slots or four, so that an arena of 16 or 32 units has as many levels as
//! one of thousands has in the standard shape. Every access to a word is a step; memory is sequentially consistent.
//!
//! # How a schedule runs
//!
//! A lane is preempted if another takes the next step although it could go on. Most errors need few preemptions in
//! the right places (Musuvathi and Qadeer, "Iterative context bounding for systematic testing of multithreaded
//! programs", PLDI 2007), and with few of them all schedules can be tried.
//!
//! What a lane does next follows from what it has read. So no lane has a stack of its own that would have to be
//! suspended: the search remembers the answers that each lane got, and where a lane is to go on, its program is called
//! anew and given the same answers up to there, which touches no memory; then it goes on with the words as they are. The
//! search is depth first: before a step of one lane, the others are tried in its place, as calls within that step, and
//! what they changed is taken back. A lane that need not go on, because what follows has been seen, runs to its end
//! unwatched, and its writes are taken back like any others.
//!
//! # Which schedules are left out
//!
//! Four reductions, each of which leaves a schedule out only if another with no more preemptions is tried that leads to
//! the same results.
//!
//! **States met before.** A state is what the words hold, and for each lane what it has read, as a hash: its variables
//! are a function of that. Of a lane that is done only what it holds counts. A state is not entered again if it was
//! entered before with the same lane running and as many preemptions left, or more: whatever can follow now was
//! possible then. States are looked up at some steps only; what is looked up less often is met later, not lost.
//!
//! **Steps that nobody sees.** A lane is only preempted before a step on a *shared* word: one that several lanes of the
//! program access, and at least one of them writes. Between two such steps of a lane, its other steps commute with all
//! that the others do, so that a preemption there can be moved to the next step on a shared word. Which words are
//! shared is found out: the search begins with those that the lanes share when they run one after the other, and begins
//! again whenever it meets one that it did not know. When it gets through, no schedule that it tried has an access that it
//! did not know of. Nor has any that it left out: of such a one take the steps before the first such access; these have,
//! moved as said, the same effect as in a schedule tried, in which that access then is met (Musuvathi and Qadeer reason
//! so about races, section 3.1).
//!
//! **Preemptions that could have come earlier.** Let a lane be preempted after a step `a`, and go on later, and let no step
//! of the others in between depend on `a` (the same word, and one of the two writes; or both change who holds what, or
//! begin or end a call). Then `a` can be moved behind these steps: the lane is preempted one step earlier, or has one turn
//! less. Each such move lessens the number of turns, or moves a step to a later one of them, so there is a last one: a
//! schedule in which every lane that goes on after a preemption has met such a dependency. The others are cut when the
//! lane would go on. Whether the dependency was met is a part of the state, so the first reduction, applied to the
//! schedules that are not cut, loses nothing.
//!
//! **Lanes that were tried a step earlier.** Every state keeps which words the others stepped on, in all schedules that
//! follow, until a lane went on. If another lane was tried before a step of the lane that runs, and that step depends on
//! none of what followed until that lane went on again, then trying it after the step gives the same, and is left out.
//!
//! Sleep sets and persistent sets, which look at single steps, are not sound under a bound on preemptions: what they
//! keep in place of a schedule may have more (Coons, Musuvathi and McKinley, "Bounded partial-order reduction", OOPSLA
//! 2013). The moves above never add one.

#![forbid(unsafe_code)]

mod actor;
mod answers;
mod calls;
mod explore;
mod scenes;
mod search;
mod survey;
mod tell;
mod word;

use std::process::ExitCode;

use survey::{Options, Share, Survey};
use word::{Four, Shared, Two};

fn main() -> ExitCode {
    let Some(options) = options(std::env::args().skip(1)) else {
        eprintln!(
            "usage: verify-explore [--long] [--first] [--compare] [--seed N] [--thin N] [--triples] [--only TEXT ...]"
        );
        return ExitCode::from(2);
    };
    // Panics are findings, and printed as such.
    std::panic::set_hook(Box::new(|_| {}));
    let more = if options.long { 10 } else { 1 };
    let less = options.thin;
    let share = |pairs, triples, changes| {
        let [pairs, triples, changes] = [pairs, triples, changes].map(|of| of * less / more);
        Share { pairs, triples, changes }
    };
    let mut survey = Survey::new(options);
    survey.run::<Two>(16, share(10, 2_000, 1_000));
    survey.run::<Shared>(16, share(30, 6_000, 3_000));
    survey.run::<Two>(14, share(50, 10_000, 5_000));
    survey.run::<Two>(32, share(100, 10_000, 1_000));
    survey.run::<Four>(32, share(100, 20_000, 1_000));
    let figures = survey.figures();
    println!("{figures}");
    match (figures.found(), figures.programs()) {
        (0, 0) => ExitCode::from(2),
        (0, _) => ExitCode::SUCCESS,
        _ => ExitCode::from(3),
    }
}

/// What the arguments ask for. `None`: nothing that is known.
fn options(mut arguments: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options { seed: 1, thin: 1, ..Options::default() };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--long" => options.long = true,
            "--first" => options.first = true,
            "--compare" => options.compare = true,
            "--triples" => options.triples = true,
            "--seed" => options.seed = arguments.next()?.parse().ok()?,
            "--thin" => options.thin = arguments.next()?.parse().ok().filter(|&thin| thin > 0)?,
            "--only" => options.only.push(arguments.next()?),
            _ => return None,
        }
    }
    Some(options)
}
