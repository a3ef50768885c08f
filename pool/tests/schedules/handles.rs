//! Tests handles: of the threads that remove an object, one succeeds, and the last that has it drops it.

use std::sync::atomic::{AtomicUsize, Ordering};

use nbbs_pool::{Config, Global, Handle, Handles, Key};
use testkit::program::Body;
use testkit::steered::all_schedules;

use crate::must_pass;
use crate::support::steps::Stepped;

/// The number of dropped objects, by generation.
type Drops = [AtomicUsize; 4];

struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// One slot, which has an object at first.
struct Case<'a> {
    handles: Handles<Counted<'a>, Handle, Global, Stepped>,
    drops: &'a Drops,
    removals: AtomicUsize,
    insertions: AtomicUsize,
}

const FIRST: u32 = 0;

impl<'a> Case<'a> {
    fn new(drops: &'a Drops) -> Self {
        let config = Config::new().chunk_size(1).limit(1);
        let handles = Handles::with_source(Global, config);
        let (removals, insertions) = Default::default();
        let case = Self { handles, drops, removals, insertions };
        case.handles.pool().reserve(1).unwrap();
        case
    }

    fn dropped(&self, generation: u32) -> usize {
        self.drops[generation as usize].load(Ordering::Relaxed)
    }

    fn look(&self) {
        if let Ok(guard) = self.handles.get(Handle::new(0, FIRST)) {
            assert_eq!(guard.0.load(Ordering::Relaxed), 0, "dropped while somebody looks");
        }
    }

    fn remove(&self) {
        let removed = self.handles.remove(Handle::new(0, FIRST)).is_ok();
        self.removals.fetch_add(usize::from(removed), Ordering::Relaxed);
    }

    /// Inserts an object if there is room, which there only is after the last one's end, and removes it.
    fn insert(&self) {
        let turn = self.insertions.load(Ordering::Relaxed);
        if let Ok(handle) = self.handles.insert(Counted(&self.drops[turn])) {
            self.insertions.fetch_add(1, Ordering::Relaxed);
            assert!((0..turn).all(|past| self.dropped(past as u32) == 1), "{turn} is too early");
            assert_eq!(handle, Handle::new(0, turn as u32));
            assert!(self.handles.contains(handle));
            if turn > 0 {
                self.handles.remove(handle).unwrap();
            }
        }
    }
}

type Lane = fn(&Case<'_>);

#[test]
fn an_object_is_dropped_once() {
    let look: Lane = |case| case.look();
    let remove: Lane = |case| case.remove();
    fn look_and_remove(case: &Case<'_>) {
        case.look();
        case.remove();
    }
    fn replace(case: &Case<'_>) {
        case.remove();
        case.insert();
    }
    let races: [(&str, &[Lane]); 5] = [
        ("look and remove", &[look, remove]),
        ("two look, one removes", &[look, look, remove]),
        ("look and replace", &[look, replace]),
        ("remove and replace", &[remove, replace]),
        ("look and remove, twice", &[look_and_remove, look_and_remove]),
    ];
    for (name, lanes) in races {
        let explored = all_schedules(2, |together| {
            let drops = Drops::default();
            let case = Case::new(&drops);
            case.insert();
            let bodies = lanes.iter().map(|lane| -> Body<'_> {
                Box::new(|| {
                    lane(&case);
                    Ok(())
                })
            });
            together(bodies.collect())?;
            assert_eq!((case.removals.load(Ordering::Relaxed), case.dropped(FIRST)), (1, 1));
            assert!(case.handles.pool().is_empty());
            Ok(())
        });
        must_pass(name, explored);
    }
}
