//! A system in memory that several processes have, and what each of them holds.

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

/// A mapping with, in this order: whether to stop, a record for each member, the owner map, the words of the system.
/// It stays until the process ends.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    words: &'static [AtomicU64],
    units: u64,
}

/// What others know of a member.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// What it has done, counted.
    pub operations: &'static AtomicU64,
    /// As in [`Hands`].
    pub stake: &'static AtomicU64,
    reservations: &'static [AtomicU64],
    slots: &'static [AtomicU64],
}

/// Words of a cache line, for which every part is rounded.
const LINE: usize = 8;
/// Words of a record, and how many there are.
const RECORD: usize = 4 * LINE;
const MEMBERS: usize = 64;

impl Shared {
    /// A fresh one for a system of so many units, zero throughout, and the file that it is in.
    ///
    /// # Panics
    /// If there is no memory.
    #[must_use]
    pub fn create(units: u64) -> (File, Self) {
        let file = memfd_create("nbbs", MFdFlags::MFD_CLOEXEC).expect("files in memory");
        let file = File::from(file);
        file.set_len(8 * Self::len(units) as u64).expect("memory");
        let shared = Self::open(&file, units);
        (file, shared)
    }

    /// The one in this file.
    ///
    /// # Panics
    /// If the file is shorter.
    #[must_use]
    pub fn open(file: &File, units: u64) -> Self {
        let len = Self::len(units);
        let bytes = NonZeroUsize::new(8 * len).expect("never empty");
        assert!(file.metadata().is_ok_and(|found| found.len() >= bytes.get() as u64));
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping, at a place that the system chooses.
        let at = unsafe { mmap(None, bytes, access, MapFlags::MAP_SHARED, file, 0) };
        let at = at.expect("room for a mapping").cast::<AtomicU64>();
        // SAFETY: the mapping is page-aligned, has so many words, and is never unmapped; the file is as long, and is
        // never truncated. Nobody accesses it but by atomics, of which any bits are a value.
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

    /// Enough for any of the systems.
    fn system_words(units: u64) -> usize {
        let ours = metadata_words(units).next_multiple_of(LINE) + metadata_words(SECOND);
        ours.max(4 * units.next_power_of_two() as usize + 2 * LINE)
    }

    fn system(&self) -> &'static [AtomicU64] {
        &self.words[Self::map_at() + Self::map_words(self.units)..]
    }

    /// Tells the members to give back what they hold, and to end.
    pub fn stop(&self) {
        // Relaxed: nothing is said by it but this.
        self.words[0].store(1, Ordering::Relaxed);
    }

    /// Whether they have been told.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.words[0].load(Ordering::Relaxed) != 0
    }

    /// The record of a member.
    #[must_use]
    pub fn member(&self, who: usize) -> Member {
        let record = &self.words[LINE + who * RECORD..][..RECORD];
        // Fewer slots where units are few: what is in use is to come and go.
        let slots = (self.units / 4).clamp(2, 24) as usize;
        Member {
            operations: &record[0],
            stake: &record[1],
            reservations: &record[2..4],
            slots: &record[4..4 + slots],
        }
    }

    /// Who holds which unit.
    #[must_use]
    pub fn oracle(&self) -> Oracle<&'static [AtomicU32]> {
        let map = &self.words[Self::map_at()..][..Self::map_words(self.units)];
        // SAFETY: these words are accessed as pairs of half their size only; alignment and lifetime are theirs.
        let halves = unsafe { slice::from_raw_parts(map.as_ptr().cast(), map.len() * 2) };
        Oracle::over(&halves[..(self.units + BETWEEN + SECOND) as usize])
    }

    /// The two arenas of nbbs, as in `Everything`, on the processor's own words.
    ///
    /// # Errors
    /// `attach` refuses.
    pub fn zones(&self) -> Result<[Zone<'static>; 2], Violation> {
        let [first, second] = self.metadata();
        self.attach(first, second)
    }

    /// Allocates a unit of the first arena as a C program does, which has attached to it.
    #[must_use]
    pub fn alloc_as_c(&self) -> Option<u64> {
        let [words, _] = self.metadata();
        let (mut arena, mut index) = (MaybeUninit::<nbbs_c::Arena>::uninit(), 0);
        let (arena, no_error) = (arena.as_mut_ptr(), ptr::null_mut());
        let at = words.as_ptr().cast_mut().cast();
        // SAFETY: room for a handle, words that are accessed by atomics and stay, room for a number, and no error
        // wanted.
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

    /// Lends the actor `who` on a system to `body`, on words with a hook or, of nbbs, on the processor's own.
    ///
    /// # Errors
    /// Those of `body`, or that it panicked.
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

/// A word of a mapping, with a hook. The default is the next one that there is: a system that is built in the same way
/// in two processes is one system.
#[derive(Debug)]
struct Mapped(&'static AtomicU64);

thread_local! {
    static MARKS: Cell<u64> = const { Cell::new(0) };
    /// The words that no [`Mapped`] stands for yet.
    static NEXT: Cell<&'static [AtomicU64]> = const { Cell::new(&[]) };
}

/// The bit by which nbbs marks an inner word.
const MARK: u64 = 1 << 63;

/// How many words this thread has marked. Few steps come before it has changed them again.
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
