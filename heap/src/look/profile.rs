//! What is in use: block by block, and as a profile that viewers open.

use core::fmt;
use core::ptr::NonNull;

use nbbs::Piece;

use crate::class::{CLASSES, Class, UNIT};
use crate::region::{Memory, Region};

/// A block that is in use, or a slot or run that a cache keeps, as [`Heap::walk`](crate::Heap::walk) reports it;
/// or a block of a [`Small`](crate::Small) heap.
///
/// ```
/// use nbbs_heap::{Heap, LiveBlock};
/// use std::alloc::Layout;
///
/// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
///
/// let block = HEAP.alloc(Layout::new::<[u8; 100_000]>()).unwrap();
/// HEAP.walk(|live: LiveBlock| assert_eq!((live.at, live.size, live.class), (block, 98 << 10, None)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveBlock {
    /// Its address.
    pub at: NonNull<u8>,
    /// Its bytes: those of the slot, or of the run of units.
    pub size: usize,
    /// The number of its size class in [`Stats::classes`](crate::Stats::classes); `None` for a run.
    pub class: Option<usize>,
}

impl Memory<'_> {
    /// Calls `visit` for every slot and run in use, each as it is at some moment of the walk.
    pub fn walk(&self, mut visit: impl FnMut(LiveBlock)) {
        self.each(|region| {
            region.buddy().walk(|piece| match piece {
                Piece::Used { index, order } => match region.slab_at(index, order) {
                    Some((class, _)) => walk_slab(region, class, index, &mut visit),
                    None => visit(run(region, index, 1 << order)),
                },
                Piece::Run { index, len } => visit(run(region, index, len)),
                _ => {}
            });
        });
    }
}

fn run(region: &Region<'_>, unit: u64, units: u64) -> LiveBlock {
    LiveBlock { at: region.runs.pointer(unit), size: units as usize * UNIT, class: None }
}

fn walk_slab(region: &Region<'_>, class: Class, unit: u64, visit: &mut impl FnMut(LiveBlock)) {
    // None, if it is not a slab any more.
    let Some((_, free)) = region.slabs().look(unit).filter(|&(found, _)| found == class) else {
        return;
    };
    let mut used = class.all_slots() & !free;
    while used != 0 {
        let slot = used.trailing_zeros() as usize;
        // SAFETY: the slot lies in the slab, which lies in the region, as its block did.
        let at = unsafe { region.runs.pointer(unit).add(slot * class.size()) };
        visit(LiveBlock { at, size: class.size(), class: Some(class.number()) });
        used &= used - 1;
    }
}

/// What is in use by size, without saying by whom: the heap itself has no stack to look at.
///
/// Its text is a file of DHAT, which `dh_view.html` of Valgrind opens, as does every other viewer of that format. It
/// has a program point for each size class, and for each power of two of bytes of runs.
///
/// ```
/// use nbbs_heap::{Heap, Profile};
/// use std::alloc::Layout;
///
/// static HEAP: Heap<{ 1 << 20 }> = Heap::new();
///
/// assert!(HEAP.alloc(Layout::new::<[u8; 100_000]>()).is_some());
/// let profile: Profile = HEAP.profile();
/// assert!(profile.to_string().contains("runs of units with 65536 to 131071 bytes"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    classes: [usize; CLASSES],
    /// The number of runs with this many bytes, log2, and all their bytes.
    runs: [(usize, usize); usize::BITS as usize],
}

impl Profile {
    pub(crate) fn of(memory: &Memory<'_>) -> Self {
        let mut profile = Self { classes: [0; CLASSES], runs: [(0, 0); usize::BITS as usize] };
        memory.walk(|block| match block.class {
            Some(class) => profile.classes[class] += 1,
            None => {
                let (count, bytes) = &mut profile.runs[block.size.ilog2() as usize];
                *count += 1;
                *bytes += block.size;
            }
        });
        profile
    }

    /// Returns for each kind of block in use: whether it is a run, its bytes or the least of them, how many there are,
    /// and their bytes.
    fn kinds(&self) -> impl Iterator<Item = (bool, usize, usize, usize)> + '_ {
        let slots = Class::all().zip(self.classes);
        let slots = slots.map(|(class, count)| (false, class.size(), count, count * class.size()));
        let runs = self.runs.iter().enumerate();
        let runs = runs.map(|(log2, &(count, bytes))| (true, 1 << log2, count, bytes));
        slots.chain(runs).filter(|&(_, _, count, _)| count > 0)
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "{\"dhatFileVersion\":2,\"mode\":\"nbbs-heap\",\"verb\":\"In use\",\"bklt\":false,\
             \"bkacc\":false,\"tu\":\"walks\",\"Mtu\":\"Mwalks\",\"cmd\":\"\",\"pid\":0,\"te\":0,\n\"pps\":[",
        )?;
        for (number, (_, _, count, bytes)) in self.kinds().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            let frame = number + 1;
            write!(f, "{comma}\n{{\"tb\":{bytes},\"tbk\":{count},\"fs\":[{frame}]}}")?;
        }
        f.write_str("],\n\"ftbl\":[\"[root]\"")?;
        for (is_run, size, ..) in self.kinds() {
            if is_run {
                let most = size + (size - 1);
                write!(f, ",\n\"runs of units with {size} to {most} bytes\"")?;
            } else {
                write!(f, ",\n\"slots of {size} bytes\"")?;
            }
        }
        f.write_str("]}\n")
    }
}
