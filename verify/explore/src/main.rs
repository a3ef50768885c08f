//! Runs the library's own code on words of a small shape, under every schedule with up to three preemptions.
//!
//! ```text
//! verify-explore [--long] [--first] [--compare] [--seed N] [--thin N] [--triples] [--only TEXT ...]
//! ```
//!
//! A program has two or three lanes. Each makes one or two calls, beginning in a scene: an arena as other calls have
//! left it. The seed chooses a share of all programs to run. After every schedule, what lies in the arena must be what
//! the lanes hold; all of it is freed, and the arena must be whole. On the way nothing may be handed out twice, and a
//! call that no other lane disturbed must answer as the specification says. A violation is printed with its program
//! after `FOUND`, its schedule to standard error; the command then ends with 3. `--first` ends at the first. `--thin N`
//! runs one in N of the share. `--only` runs all pairs that have TEXT in their names, as printed (blanks do not count),
//! or with `--triples` all such triples. `--compare` searches once more without reductions except the first, and
//! compares the ends.
//!
//! Leaf words have four units, inner words two slots or four, so that an arena of 16 or 32 units has as many levels as
//! one of thousands has in the standard shape. Every access to a word is a step; memory is sequentially consistent.
//!
//! # How a schedule runs
//!
//! A lane is preempted if another takes the next step although the lane could go on. Most errors need few preemptions
//! in the right places (Musuvathi and Qadeer, "Iterative context bounding for systematic testing of multithreaded
//! programs", PLDI 2007), and with few preemptions all schedules can be tried.
//!
//! What a lane does next follows from what it has read. So no lane needs a stack of its own that would have to be
//! suspended. The search remembers the answers that each lane got. To let a lane go on, it calls the lane's program
//! anew and gives it the same answers up to that point, which touches no memory; then the lane goes on with the words
//! as they are. The search is depth first: before a step of one lane, the others are tried in its place, as calls
//! within that step, and what they changed is undone. A lane that need not go on, because what follows has been seen,
//! runs to its end unwatched, and its writes are undone like any others.
//!
//! # Which schedules are left out
//!
//! There are four reductions. Each leaves a schedule out only if another with no more preemptions is tried that leads
//! to the same results.
//!
//! **States met before.** A state consists of what the words hold and, for each lane, a hash of what it has read: the
//! lane's variables are a function of that. If a lane is done, only what it holds counts. A state is not entered again
//! if it was entered before with the same lane running and as many preemptions left, or more: everything that can
//! follow now was possible then. States are looked up only at some steps; a state that is looked up less often is met
//! later, not lost.
//!
//! **Steps that nobody sees.** A lane is only preempted before a step on a *shared* word: one that several lanes of the
//! program access, and that at least one of them writes. Between two such steps of a lane, its other steps commute with
//! everything that the others do, so a preemption there can be moved to the next step on a shared word. The search
//! discovers which words are shared: it begins with those that the lanes share when they run one after the other, and
//! begins again whenever it meets another. When it gets through, no schedule that it tried has an access that it did
//! not know of. Nor has any schedule that it left out: take the steps of such a schedule before the first such access;
//! moved as described, they have the same effect as in a schedule that was tried, in which that access is then met
//! (Musuvathi and Qadeer reason so about races, section 3.1).
//!
//! **Preemptions that could have come earlier.** Let a lane be preempted after a step `a`, and go on later, and let no
//! step of the others in between depend on `a` (the same word, and one of the two writes; or both change who holds
//! what, or begin or end a call). Then `a` can be moved behind these steps: the lane is preempted one step earlier, or
//! has one turn less. Each such move reduces the number of turns, or moves a step to a later turn, so there is a last
//! move. It leads to a schedule in which every lane that goes on after a preemption has met such a dependency. The
//! other schedules are cut when the lane would go on. Whether the dependency was met is a part of the state, so the
//! first reduction, applied to the schedules that are not cut, loses nothing.
//!
//! **Lanes that were tried a step earlier.** Every state records which words the others stepped on, in all schedules
//! that follow, until a lane went on. Assume that another lane was tried before a step of the running lane, and that
//! this step does not depend on anything that followed until the running lane went on again. Then trying the other lane
//! after the step gives the same, and is left out.
//!
//! Sleep sets and persistent sets, which look at single steps, are not sound under a bound on preemptions: the schedule
//! that they keep in place of another may have more preemptions (Coons, Musuvathi and McKinley, "Bounded partial-order
//! reduction", OOPSLA 2013). The moves above never add one.

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
    let Some(options) = options(testkit::arguments().into_iter()) else {
        eprintln!(
            "usage: verify-explore [--long] [--first] [--compare] [--seed N] [--thin N] [--triples] [--only TEXT ...]"
        );
        return ExitCode::from(2);
    };
    // Panics are findings, and are printed as such.
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

/// Parses the arguments. Returns `None` for an unknown one.
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
