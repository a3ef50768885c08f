//! Tests which cache lines of the bitmaps locals write, in the steady state: none that another local touches.
//!
//! Other data that a local writes, which slots it keeps and where it claimed last, has cache lines of its own by its
//! type.

mod support;

use nbbs_pool::{Config, Global, Local, Pool};
use support::words::Over;
use testkit::touched::{Lanes, Touched};

/// A word that notes accesses to it.
type Noted = Over<Touched>;

type Object = [u64; 6];

/// The number of locals for which a pool has lanes.
const LOCALS: usize = 32;

/// The objects that a local allocates before it frees them, and how often a round of that may write a line that another
/// local touches. A local keeps slots of 16 words of 64, so beyond 1024 objects they come from words from which all
/// claim.
static BOUNDS: &[(usize, f64)] = &[(1, 0.0), (8, 0.0), (64, 0.0), (1000, 0.0), (2000, 100.0)];

/// Returns how often a round of a local writes a line that another local touches.
fn shared_writes(objects: usize) -> f64 {
    let pool: Pool<Object, Global, Noted> = Pool::with_words(Global, Config::new());
    pool.reserve(2 * LOCALS * objects.max(64)).unwrap();
    let mut locals: Vec<Local<'_, Object, Global, Noted>> =
        (0..LOCALS).map(|_| pool.local()).collect();
    let (warm_up, rounds) = (8, 64);
    let step = |lane: usize| {
        let held: Vec<_> = (0..objects).map(|_| locals[lane].alloc([1; 6]).unwrap()).collect();
        held.into_iter().for_each(|object| locals[lane].free(object));
    };
    let lanes = Lanes::in_turn(LOCALS, warm_up, rounds, step);
    lanes.shared_writes() as f64 / (LOCALS * rounds) as f64
}

#[test]
fn locals_write_no_lines_of_each_other() {
    for &(objects, most) in BOUNDS {
        let shared = shared_writes(objects);
        println!("{objects} objects: {shared:.4} shared writes a round");
        assert!(
            shared <= most,
            "{objects} objects: {shared} shared writes a round; {most} are stated"
        );
    }
}
