//! A system in memory that several processes share, and what each of them holds.

use std::cell::Cell;
use std::fs::File;
use std::mem::MaybeUninit;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::{ptr, slice};

use baselines::Pause;
use nbbs::sync::{Ordering, Word};
use nbbs::{Buddy, Zone, metadata_words};
use nbbs_c::Code;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap};
use testkit::hooked::Hook;
use testkit::{BackEnd, Oracle, Violation};

use crate::hooked::Calls;
use crate::systems::{BETWEEN, Body, SECOND, nb1, nb4, no_panic, sl1, sl4};
use crate::{Blocks, Everything, Hands};

/// A mapping. It has, in this order, whether to stop, a record for each member, the owner map, and the words of the
/// system. It exists until the process ends.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    words: &'static [AtomicU64],
    units: u64,
}

/// What others know about a member.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// The number of its operations.
    pub operations: &'static AtomicU64,
    /// As in [`Hands`].
    pub stake: &'static AtomicU64,
    reservations: &'static [AtomicU64],
    slots: &'static [AtomicU64],
}

/// The words of a cache line, to which every part is rounded up.
const LINE: usize = 8;
/// The words of a record, and the number of records.
const RECORD: usize = 4 * LINE;
const MEMBERS: usize = 64;

impl Shared {
    /// Creates a zeroed mapping for a system of `units` units. Also returns its file.
    ///
    /// # Panics
    /// If there is not enough memory.
    #[must_use]
    pub fn create(units: u64) -> (File, Self) {
        let file = memfd_create("nbbs", MFdFlags::MFD_CLOEXEC).expect("files in memory");
        let file = File::from(file);
        file.set_len(8 * Self::len(units) as u64).expect("memory");
        let shared = Self::open(&file, units);
        (file, shared)
    }

    /// Opens the mapping in this file.
    ///
    /// # Panics
    /// If the file is too short.
    #[must_use]
    pub fn open(file: &File, units: u64) -> Self {
        let len = Self::len(units);
        let bytes = NonZeroUsize::new(8 * len).expect("never empty");
        assert!(file.metadata().is_ok_and(|found| found.len() >= bytes.get() as u64));
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: this makes a new mapping, at a place that the system chooses.
        let at = unsafe { mmap(None, bytes, access, MapFlags::MAP_SHARED, file, 0) };
        let at = at.expect("room for a mapping").cast::<AtomicU64>();
        // SAFETY: the mapping is page-aligned, has this many words, and is never unmapped; the file is as long, and is
        // never truncated. It is only accessed through atomics, for which all bit patterns are valid.
        let words = unsafe { slice::from_raw_parts(at.as_ptr(), len) };
        Self { words, units }
    }

    fn len(units: u64) -> usize {
        Self::map_at() + Self::map_words(units) + Self::system_words(units)
    }

    fn map_at() -> usize {
        LINE + MEMBERS * RECORD
    }

    fn map_words(units: u64) -> usize {
        (units + BETWEEN + SECOND).div_ceil(2).next_multiple_of(LINE as u64) as usize
    }

    /// Returns a number of words that is enough for any of the systems.
    fn system_words(units: u64) -> usize {
        let ours = metadata_words(units).next_multiple_of(LINE) + metadata_words(SECOND);
        ours.max(4 * units.next_power_of_two() as usize + 2 * LINE)
    }

    fn system(&self) -> &'static [AtomicU64] {
        &self.words[Self::map_at() + Self::map_words(self.units)..]
    }

    /// Tells the members to give back what they hold, and then to end.
    pub fn stop(&self) {
        // Relaxed: it communicates nothing else.
        self.words[0].store(1, Ordering::Relaxed);
    }

    /// Returns whether they have been told.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.words[0].load(Ordering::Relaxed) != 0
    }

    /// Returns the record of a member.
    #[must_use]
    pub fn member(&self, who: usize) -> Member {
        let record = &self.words[LINE + who * RECORD..][..RECORD];
        // Fewer slots if there are few units, so that what is in use comes and goes.
        let slots = (self.units / 4).clamp(2, 24) as usize;
        Member {
            operations: &record[0],
            stake: &record[1],
            reservations: &record[2..4],
            slots: &record[4..4 + slots],
        }
    }

    /// Returns the owner map.
    #[must_use]
    pub fn oracle(&self) -> Oracle<&'static [AtomicU32]> {
        let map = &self.words[Self::map_at()..][..Self::map_words(self.units)];
        // SAFETY: these words are only accessed as pairs of half their size; alignment and lifetime are theirs.
        let halves = unsafe { slice::from_raw_parts(map.as_ptr().cast(), map.len() * 2) };
        Oracle::over(&halves[..(self.units + BETWEEN + SECOND) as usize])
    }

    /// Returns the two arenas of nbbs, as in `Everything`, on the processor's own words.
    ///
    /// # Errors
    /// `attach` refuses.
    pub fn zones(&self) -> Result<[Zone<'static>; 2], Violation> {
        let [first, second] = self.metadata();
        self.attach(first, second)
    }

    /// Allocates a unit of the first arena as a C program does that has attached to it.
    #[must_use]
    pub fn alloc_as_c(&self) -> Option<u64> {
        let [words, _] = self.metadata();
        let (mut arena, mut index) = (MaybeUninit::<nbbs_c::Arena>::uninit(), 0);
        let (arena, no_error) = (arena.as_mut_ptr(), ptr::null_mut());
        let at = words.as_ptr().cast_mut().cast();
        // SAFETY: there is room for a handle, the words are accessed by atomics and stay, there is room for a number,
        // and no error is wanted.
        unsafe {
            (nbbs_c::nbbs_attach(arena, at, size_of_val(words), self.units, no_error) == Code::Ok
                && nbbs_c::nbbs_alloc(arena, 0, &raw mut index, no_error) == Code::Ok)
                .then_some(index)
        }
    }

    fn metadata(&self) -> [&'static [AtomicU64]; 2] {
        let first = metadata_words(self.units);
        [&self.system()[..first], &self.system()[first.next_multiple_of(LINE)..]]
    }

    fn attach<'a, W: Word>(
        &self,
        first: &'a [W],
        second: &'a [W],
    ) -> Result<[Zone<'a, W>; 2], Violation> {
        let attach = |words: &'a [W], units| {
            let buddy = Buddy::attach(words, units);
            buddy.map_err(|error| Violation::wrong("attach", "an arena in use", error))
        };
        let base = self.units + BETWEEN;
        Ok([
            Zone { base: 0, buddy: attach(first, self.units)? },
            Zone { base, buddy: attach(second, SECOND)? },
        ])
    }

    /// Lends the actor `who` on a system to `body`, on words with a hook or, for nbbs, on the processor's own.
    ///
    /// # Errors
    /// Those of `body`, or a panic of it.
    pub fn lend(
        &self,
        system: &str,
        who: usize,
        hooked: bool,
        body: Body<'_>,
    ) -> Result<(), Violation> {
        no_panic(|| match system {
            "nbbs" if hooked => {
                let [first, second] = self.metadata().map(mapped);
                self.everything(self.attach(&first, &second)?, who, body)
            }
            "nbbs" => self.everything(self.zones()?, who, body),
            _ => self.lend_back_ends(system, &mut |_, back_end| {
                let (oracle, slots) = (self.oracle(), self.member(who).slots);
                let hands = Hands { oracle: &oracle, who, slots, stake: self.member(who).stake };
                body(&Blocks { back_end, hands, lane: who })
            }),
        })
    }

    fn everything<W: Word>(
        &self,
        zones: [Zone<'_, W>; 2],
        who: usize,
        body: Body<'_>,
    ) -> Result<(), Violation> {
        let (oracle, Member { slots, reservations, stake, .. }) = (self.oracle(), self.member(who));
        let hands = Hands { oracle: &oracle, who, slots, stake };
        body(&Everything::new(&zones, nbbs::next_lane(), hands, reservations))
    }

    /// Lends the arenas of a system to `body`, each with its first unit, on words with a hook.
    ///
    /// # Errors
    /// Those of `body`.
    ///
    /// # Panics
    /// If the words of such a system cannot be in a mapping.
    pub fn lend_back_ends(
        &self,
        system: &str,
        body: &mut dyn FnMut(u64, &dyn BackEnd) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        if system == "nbbs" {
            let [first, second] = self.metadata().map(mapped);
            let zones = self.attach(&first, &second)?;
            return zones.iter().try_for_each(|zone| body(zone.base, &zone.buddy));
        }
        let make = match system {
            "nb1" => nb1::<Mapped>,
            "nb4" => nb4::<Mapped>,
            "sl1" => sl1::<Mapped>,
            "sl4" => sl4::<Mapped>,
            _ => panic!("{system} brings its own memory"),
        };
        NEXT.set(self.system());
        let mut result = Ok(());
        make(self.units, &mut |back_end| result = body(0, back_end));
        result
    }
}

/// A word of a mapping, with a hook. The default is the next word of the mapping: a system that is built in the same
/// way in two processes is one system.
#[derive(Debug)]
struct Mapped(&'static AtomicU64);

thread_local! {
    static MARKS: Cell<u64> = const { Cell::new(0) };
    /// The words that no [`Mapped`] has taken yet.
    static NEXT: Cell<&'static [AtomicU64]> = const { Cell::new(&[]) };
}

/// The bit with which nbbs marks an inner word.
const MARK: u64 = 1 << 63;

/// Returns how many words this thread has marked. It changes them again within a few steps.
#[must_use]
pub fn marks() -> u64 {
    MARKS.get()
}

impl Default for Mapped {
    fn default() -> Self {
        let (first, rest) = NEXT.get().split_first().expect("enough words for any of the systems");
        NEXT.set(rest);
        Self(first)
    }
}

fn mapped(words: &'static [AtomicU64]) -> Vec<Mapped> {
    words.iter().map(Mapped).collect()
}

impl Word for Mapped {
    fn load(&self, order: Ordering) -> u64 {
        Calls::before_access();
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        Calls::before_access();
        self.0.store(value, order);
    }

    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        Calls::before_access();
        let result = self.0.compare_exchange(current, new, success, failure);
        let mark = result.is_ok() && new & !current & MARK != 0;
        MARKS.set(MARKS.get() + u64::from(mark));
        result
    }
}

impl Pause for Mapped {}
