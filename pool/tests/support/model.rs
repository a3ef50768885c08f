//! A model of a pool: operations one after the other, and the right answers.

use std::collections::{BTreeMap, BTreeSet};

use nbbs_pool::sync::Word;
use nbbs_pool::{Config, Exhausted, Full, Local, Pool, PoolBox};

use super::bank::Bank;
use super::tracked::{Register, Tracked};

/// A pool's configuration, its source, and what locals may keep.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub chunk_size: usize,
    /// The number of chunks for which the source has memory.
    pub places: usize,
    /// The limit; 0 means none.
    pub limit: usize,
    pub reserve: usize,
    pub ahead: usize,
    pub by_helper: bool,
    /// The most slots that a local keeps.
    pub most: usize,
}

impl Shape {
    pub fn config(&self) -> Config {
        let Self { chunk_size, limit, reserve, ahead, .. } = *self;
        let config =
            Config::new().chunk_size(chunk_size).limit(limit).reserve(reserve).ahead(ahead);
        if self.by_helper { config.by_helper() } else { config }
    }

    pub fn max_len(&self) -> usize {
        if self.limit == 0 { usize::MAX } else { self.limit }
    }

    /// Returns the slots of a chunk.
    fn slots_of(&self, number: usize) -> usize {
        self.max_len().saturating_sub(number * self.chunk_size).min(self.chunk_size)
    }

    /// Returns whether a local has a place for each word.
    pub fn words_are_apart(&self) -> bool {
        self.places <= 16 && self.chunk_size <= 64
    }

    fn looks_ahead(&self) -> bool {
        self.ahead > 0 && !self.by_helper
    }
}

/// Returns the reason as whoever adds chunks ahead of demand gets it.
fn ahead(reason: Exhausted) -> Exhausted {
    match reason {
        Exhausted::Limit { limit } => Exhausted::Slots { slots: limit + 1, limit },
        other => other,
    }
}

pub type Banked<'b, W> = Pool<Tracked, &'b Bank<Tracked>, W>;
pub type Boxed<'b, W> = PoolBox<'b, Tracked, W>;

pub struct Model<'b, W: Word> {
    pub shape: Shape,
    pub bank: &'b Bank<Tracked>,
    pub pool: &'b Banked<'b, W>,
    pub register: Register,
    pub locals: Vec<Local<'b, Tracked, &'b Bank<Tracked>, W>>,
    /// For each slot, the serial number of an object that was allocated by pointer.
    pub pointers: BTreeMap<u64, u64>,
    /// The boxes, with slot and serial number.
    pub boxes: Vec<(u64, u64, Boxed<'b, W>)>,
    /// For each chunk, by number, where it is, if it has memory.
    chunks: Vec<Option<usize>>,
    /// The number of places of the bank's log that are in `chunks`.
    seen: usize,
}

/// The state that decides an allocation.
pub struct Before {
    /// The slots that the caller itself keeps.
    own: usize,
    free: usize,
    capacity: usize,
    may_grow: Result<(), Exhausted>,
    /// The chunks that an allocation adds if it finds nothing free: one, and those to be reserved.
    demand: usize,
}

impl<'b, W: Word> Model<'b, W> {
    pub fn new(
        shape: Shape,
        bank: &'b Bank<Tracked>,
        pool: &'b Banked<'b, W>,
        register: &Register,
    ) -> Self {
        let locals = (0..2).map(|_| pool.local_of(shape.most)).collect();
        let (pointers, boxes) = (BTreeMap::new(), Vec::new());
        let (chunks, seen, register) = (Vec::new(), 0, register.clone());
        Self { shape, bank, pool, register, locals, pointers, boxes, chunks, seen }
    }

    pub fn make(&self) -> Tracked {
        self.register.make()
    }

    pub fn held(&self) -> usize {
        self.pointers.len() + self.boxes.len()
    }

    pub fn kept(&self) -> usize {
        self.locals.iter().map(Local::kept).sum()
    }

    fn capacity(&self) -> usize {
        let there = (0..self.chunks.len()).filter(|&number| self.chunks[number].is_some());
        there.map(|number| self.shape.slots_of(number)).sum()
    }

    pub fn free(&self) -> usize {
        self.capacity() - self.held() - self.kept()
    }

    /// Returns the number of the chunk that gets memory next.
    fn next_chunk(&self) -> usize {
        let bare = self.chunks.iter().position(Option::is_none);
        bare.unwrap_or(self.chunks.len())
    }

    pub fn may_grow(&self) -> Result<(), Exhausted> {
        let slots = self.shape.slots_of(self.next_chunk());
        if slots == 0 {
            Err(Exhausted::Limit { limit: self.shape.max_len() })
        } else if !self.bank.taken().contains(&0) {
            let (bytes, align) = (slots * size_of::<Tracked>(), align_of::<Tracked>());
            Err(Exhausted::Memory { bytes, align })
        } else {
            Ok(())
        }
    }

    /// Returns how many chunks have this many slots, the next ones first, as far as there are any, and whether that is
    /// enough.
    fn chunks_for(&self, slots: usize) -> (usize, bool) {
        let without_memory = |&number: &usize| self.chunks.get(number).is_none_or(Option::is_none);
        let places = self.bank.taken().iter().filter(|&&slots| slots == 0).count();
        let (mut chunks, mut got) = (0, 0);
        for number in (0..).filter(without_memory).take(places) {
            if got >= slots || self.shape.slots_of(number) == 0 {
                break;
            }
            (chunks, got) = (chunks + 1, got + self.shape.slots_of(number));
        }
        (chunks, got >= slots)
    }

    /// Counts the chunks that have got memory since it was called, and forgets those that have lost it.
    pub fn grown(&mut self) -> usize {
        let (taken, since) = (self.bank.taken(), self.bank.taken_since(self.seen));
        for chunk in &mut self.chunks {
            *chunk = chunk.filter(|&place| taken[place] != 0);
        }
        for &place in &since {
            let number = self.next_chunk();
            self.chunks.resize(self.chunks.len().max(number + 1), None);
            self.chunks[number] = Some(place);
            assert_eq!(taken[place], self.shape.slots_of(number), "slots of chunk {number}");
        }
        self.seen += since.len();
        since.len()
    }

    /// Records the bookkeeping of a chunk for which there was no memory.
    pub fn note_refusal(&mut self, reason: Exhausted) {
        if matches!(reason, Exhausted::Memory { .. }) && self.next_chunk() == self.chunks.len() {
            self.chunks.push(None);
        }
    }

    pub fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Returns the state before an allocation by a local, or without one.
    pub fn before(&self, local: Option<usize>) -> Before {
        let (free, capacity, may_grow) = (self.free(), self.capacity(), self.may_grow());
        let own = local.map_or(0, |local| self.locals[local].kept());
        let missing = self.shape.reserve.saturating_sub(capacity);
        Before { own, free, capacity, may_grow, demand: self.chunks_for(missing.max(1)).0 }
    }

    /// Checks that an allocation was granted if there was room, and that the pool has grown if there was none.
    pub fn judge(&mut self, before: &Before, refused: Option<Exhausted>) {
        let grown = self.grown();
        let ahead = usize::from(self.shape.looks_ahead());
        if before.own > 0 || before.free > 0 {
            assert_eq!(refused, None, "refused while {} are free", before.free);
            let may_grow = if before.own > 0 { 0 } else { ahead };
            assert!(grown <= may_grow, "grows while {} are free", before.free);
            let free = before.capacity - self.held() - 1 - self.kept();
            assert!(grown == 0 || free < self.shape.ahead, "grows too early");
        } else {
            assert_eq!(refused, before.may_grow.err());
            match before.may_grow {
                Ok(()) => assert!((before.demand..=before.demand + ahead).contains(&grown)),
                Err(reason) => self.note_refusal(reason),
            }
        }
    }

    pub fn refused<T>(answer: &Result<T, Full<Tracked>>) -> Option<Exhausted> {
        answer.as_ref().err().map(|full| {
            full.value.serial();
            full.reason
        })
    }

    /// Records where an object is, and checks that no other is there.
    pub fn place(&self, object: *const Tracked) -> u64 {
        let slot = self.bank.number(object);
        assert!(!self.pointers.contains_key(&slot), "slot {slot} is in use");
        let boxed = self.boxes.iter().any(|&(other, ..)| other == slot);
        assert!(!boxed, "slot {slot} is a box's");
        slot
    }

    pub fn hold(&mut self, each: Boxed<'b, W>) {
        self.boxes.push((self.place(&raw const *each), each.serial(), each));
    }

    pub fn hold_pointer(&mut self, object: std::ptr::NonNull<Tracked>) {
        let slot = self.place(object.as_ptr());
        // SAFETY: the object is live, and nobody else has the pointer.
        self.pointers.insert(slot, unsafe { object.as_ref() }.serial());
    }

    /// Adds a chunk, if there may be one more.
    pub fn grow(&mut self) {
        let (capacity, may_grow) = (self.capacity(), self.may_grow());
        let answer = self.pool.grow();
        assert_eq!(self.grown(), usize::from(may_grow.is_ok()));
        assert_eq!(answer, may_grow.map(|()| self.capacity()).map_err(ahead));
        assert!(answer.is_err() || self.capacity() > capacity);
        answer.err().into_iter().for_each(|reason| self.note_refusal(reason));
    }

    /// Adds this many slots, by `act`.
    pub fn grow_by(
        &mut self,
        more: usize,
        act: impl FnOnce(&Banked<'b, W>) -> Result<(), Exhausted>,
    ) {
        let (chunks, enough) = self.chunks_for(more);
        let answer = act(self.pool);
        assert_eq!(self.grown(), chunks);
        assert_eq!(answer, if enough { Ok(()) } else { self.may_grow().map_err(ahead) });
        answer.err().into_iter().for_each(|reason| self.note_refusal(reason));
    }

    /// Shrinking takes what is wholly free, the newest chunks first, and leaves what is reserved.
    pub fn shrink(&mut self) {
        let used = self.pointers.keys().chain(self.boxes.iter().map(|(slot, ..)| slot));
        let used: BTreeSet<_> = used.map(|&slot| slot as usize / self.shape.chunk_size).collect();
        let (capacity, kept) = (self.capacity(), self.kept());
        let mut left = capacity;
        for (number, chunk) in self.chunks.iter().enumerate().rev() {
            let slots = self.shape.slots_of(number);
            let is_free = chunk.is_some_and(|place| !used.contains(&place));
            if is_free && left >= self.shape.reserve + slots {
                left -= slots;
            }
        }
        let gone = self.pool.shrink();
        assert_eq!(self.grown(), 0);
        assert_eq!(gone, capacity - self.capacity());
        let reserved = gone == 0 || self.capacity() >= self.shape.reserve;
        // It is not known where the slots are that locals keep.
        assert!(if kept == 0 { gone == capacity - left } else { reserved }, "{gone} slots");
    }

    /// Checks everything that can be asked without changing anything.
    pub fn check(&self) {
        let (pool, capacity) = (self.pool, self.capacity());
        assert_eq!(pool.capacity(), capacity);
        assert_eq!(self.bank.taken().iter().sum::<usize>(), capacity);
        assert_eq!((pool.len(), pool.is_empty()), (self.held(), self.held() == 0));
        let stats = pool.stats();
        let counts = (stats.slots, stats.objects, stats.kept, stats.free);
        assert_eq!(counts, (capacity, self.held(), self.kept(), self.free()));
        assert_eq!(stats.chunks, self.chunks.iter().flatten().count());
        let peak = (0..self.chunks.len()).map(|number| self.shape.slots_of(number)).sum();
        assert!(stats.peak_slots >= peak, "{stats:?}");
        assert_eq!(stats.bytes + stats.bookkeeping, self.bank.lent_bytes());
        assert_eq!(pool.is_low(), self.free() < self.shape.ahead);
        assert!(self.locals.iter().all(|local| local.kept() <= self.shape.most));
        let boxes = self.boxes.iter().map(|&(_, serial, _)| serial);
        let held: BTreeSet<u64> = self.pointers.values().copied().chain(boxes).collect();
        assert_eq!(self.register.alive(), held, "alive, and held");
    }
}
