//! Allocating and freeing objects.

use core::mem::forget;
use core::ptr::NonNull;

use super::Pool;
use crate::boxed::PoolBox;
use crate::chunk::Hold;
use crate::error::{Exhausted, FreeError, Full};
use crate::lane::thread_number;
use crate::local::Local;
use crate::source::ChunkSource;
use crate::sync::Word;

impl<T, S: ChunkSource, W: Word> Pool<T, S, W> {
    /// Allocates an object that nobody owns; any holder of the pointer may [`free`](Self::free) it. If nobody does,
    /// [`clear`](Self::clear) or the end of the pool drops it.
    ///
    /// Cost: two read-modify-writes. [`alloc_box`](Self::alloc_box) and [`local`](Self::local) take fewer.
    ///
    /// # Errors
    /// There is no free slot, and the pool cannot grow. The error has the value.
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::new();
    /// let one = pool.alloc(1)?;
    /// pool.free(one).unwrap();
    /// # Ok::<(), nbbs_pool::Full<u32>>(())
    /// ```
    pub fn alloc(&self, value: T) -> Result<NonNull<T>, Full<T>> {
        self.alloc_box(value).map(PoolBox::leak)
    }

    /// Allocates as [`alloc`](Self::alloc) does, from `lane`: a CPU or thread number, any value. Callers with different
    /// lanes keep off each other's cache lines; a wrong or shared lane costs speed, never safety. Uses no thread-local.
    ///
    /// # Errors
    /// Those of [`alloc`](Self::alloc).
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::new();
    /// let one = pool.alloc_on(1, 7)?;
    /// assert_eq!(pool.take(one), Ok(7));
    /// # Ok::<(), nbbs_pool::Full<u32>>(())
    /// ```
    #[inline]
    pub fn alloc_on(&self, lane: usize, value: T) -> Result<NonNull<T>, Full<T>> {
        self.box_on(lane, value).map(PoolBox::leak)
    }

    /// Allocates as [`alloc`](Self::alloc) does, the object that `make` returns. `make` is only called if there is a
    /// slot. If it panics, the slot is free again. Cost: two read-modify-writes.
    ///
    /// # Errors
    /// There is no free slot, and the pool cannot grow.
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<Vec<u8>>::new();
    /// let bytes = pool.alloc_with(|| vec![0; 100])?;
    /// assert_eq!(pool.take(bytes).unwrap().len(), 100);
    /// # Ok::<(), nbbs_pool::Exhausted>(())
    /// ```
    pub fn alloc_with(&self, make: impl FnOnce() -> T) -> Result<NonNull<T>, Exhausted> {
        let (chunk, slot) = self.claim_slot(thread_number())?;
        // SAFETY: the slot is claimed for us; the hold is only dropped if there is no object.
        let hold = unsafe { Hold::of(chunk, slot) };
        // SAFETY: the slot is claimed.
        let object = unsafe { chunk.object(slot) };
        // SAFETY: the slot is claimed, so it is memory for a T that nobody else has.
        unsafe { object.write(make()) };
        forget(hold);
        // SAFETY: the object was just made in a slot that we have claimed.
        unsafe { chunk.set_live(slot) };
        Ok(object)
    }

    /// Allocates an object that the box owns. It is freed when the box is dropped, on any thread.
    ///
    /// Cost: one read-modify-write, and one for the free.
    ///
    /// # Errors
    /// There is no free slot, and the pool cannot grow. The error has the value.
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::new();
    /// let mut one = pool.alloc_box(1)?;
    /// *one += 1;
    /// assert_eq!(*one, 2);
    /// # Ok::<(), nbbs_pool::Full<u32>>(())
    /// ```
    #[inline]
    pub fn alloc_box(&self, value: T) -> Result<PoolBox<'_, T, W>, Full<T>> {
        self.box_on(thread_number(), value)
    }

    #[inline]
    fn box_on(&self, lane: usize, value: T) -> Result<PoolBox<'_, T, W>, Full<T>> {
        match self.claim_slot(lane) {
            Ok((chunk, slot)) => {
                // SAFETY: the slot is claimed.
                let object = unsafe { chunk.object(slot) };
                // SAFETY: the slot is claimed, so it is memory for a T that nobody else has.
                unsafe { object.write(value) };
                // SAFETY: the object was just made in a slot that we have claimed.
                Ok(unsafe { PoolBox::new(object, chunk) })
            }
            Err(reason) => Err(Full { value, reason }),
        }
    }

    /// Drops the object and frees its slot.
    ///
    /// The pointer may be any: a pointer to anything but an object that was allocated by pointer is refused. A double
    /// free is refused until the slot is allocated again; [`Handles`](crate::Handles) detect it for ever. A second free
    /// at the same time as the first, beside a [`shrink`](Self::shrink) that gives the chunk back, may for a moment hide
    /// an object that has since come to its place elsewhere: that object's own free is refused if it comes just then.
    /// Cost: two read-modify-writes.
    ///
    /// # Errors
    /// The pointer leads to no chunk, into a slot, or to a slot without such an object.
    ///
    /// ```
    /// use nbbs_pool::{FreeError, Pool};
    ///
    /// let pool = Pool::<u32>::new();
    /// let one = pool.alloc(1).unwrap();
    /// pool.free(one)?;
    /// let address = one.as_ptr() as usize;
    /// assert_eq!(pool.free(one), Err(FreeError::NotAllocated { address }));
    /// # Ok::<(), FreeError>(())
    /// ```
    pub fn free(&self, object: NonNull<T>) -> Result<(), FreeError> {
        self.adopt(object).map(drop)
    }

    /// Frees the object's slot and returns the object. Cost: that of [`free`](Self::free).
    ///
    /// # Errors
    /// Those of [`free`](Self::free).
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<String>::new();
    /// let name = pool.alloc("a name".to_owned()).unwrap();
    /// assert_eq!(pool.take(name)?, "a name");
    /// # Ok::<(), nbbs_pool::FreeError>(())
    /// ```
    pub fn take(&self, object: NonNull<T>) -> Result<T, FreeError> {
        self.adopt(object).map(PoolBox::into_inner)
    }

    /// Moves an object that was allocated by pointer into a box, which owns it from now on. Cost: one read-modify-write.
    ///
    /// # Errors
    /// Those of [`free`](Self::free).
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::new();
    /// let one = pool.alloc(1).unwrap();
    /// let owned = pool.adopt(one)?;
    /// assert!(pool.free(one).is_err()); // it is the box's
    /// assert_eq!(*owned, 1);
    /// # Ok::<(), nbbs_pool::FreeError>(())
    /// ```
    pub fn adopt(&self, object: NonNull<T>) -> Result<PoolBox<'_, T, W>, FreeError> {
        let (chunk, slot) = self.locate_live(object)?;
        let not_allocated = FreeError::NotAllocated { address: object.as_ptr() as usize };
        // SAFETY: the chunk has the slot, where an object was found.
        if !unsafe { chunk.clear_live(slot) } {
            return Err(not_allocated);
        }
        // SAFETY: clearing the live bit made the object at the slot ours, and the slot is claimed for it.
        let found = unsafe { chunk.object(slot) };
        // If it is elsewhere, somebody else has freed the pointer's object since.
        if found != object {
            // SAFETY: the object is complete, and ours to leave to the pool again.
            unsafe { chunk.set_live(slot) };
            return Err(not_allocated);
        }
        // SAFETY: it is ours, and complete, and the slot is claimed for it.
        Ok(unsafe { PoolBox::new(found, chunk) })
    }

    /// Makes the box of an object that [`PoolBox::into_raw`] released, unchecked.
    ///
    /// This is for callers that keep plain pointers where no Rust type can be used, such as behind a C interface. The
    /// pair saves the two read-modify-writes by which [`alloc`](Self::alloc) and [`adopt`](Self::adopt) refuse wrong
    /// pointers.
    ///
    /// # Safety
    /// `object` was returned by [`PoolBox::into_raw`] of a box of this pool, no box has been made of it
    /// since, and the pool has not been [cleared](Self::clear).
    ///
    /// # Panics
    /// If the address lies in no chunk of the pool.
    ///
    /// ```
    /// use nbbs_pool::{Pool, PoolBox};
    ///
    /// let pool = Pool::<u32>::new();
    /// let raw = PoolBox::into_raw(pool.alloc_box(1).unwrap());
    /// // SAFETY: `raw` comes from a box of this pool, and is turned back once.
    /// let one = unsafe { pool.from_raw(raw) };
    /// assert_eq!(*one, 1);
    /// ```
    #[must_use]
    #[allow(clippy::wrong_self_convention)] // named after `Box::from_raw`
    pub unsafe fn from_raw(&self, object: NonNull<T>) -> PoolBox<'_, T, W> {
        let address = object.as_ptr() as usize;
        let chunk = self.table().find(address, self.chunk_bytes());
        let chunk = chunk.expect("an object of this pool lies in one of its chunks");
        // SAFETY: the object is the caller's, by the contract, and lies in the chunk.
        unsafe { PoolBox::new(object, chunk) }
    }

    /// Allocates a box for each value, and passes it to `out`. Claims 64 slots by one read-modify-write where it can.
    ///
    /// # Errors
    /// There was no slot for the value that is in the error. The boxes before it have been passed to `out`; the values
    /// after it have not been consumed.
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::new();
    /// let mut all = Vec::new();
    /// pool.alloc_batch(0..1000, |each| all.push(each))?;
    /// assert_eq!(*all[999], 999);
    /// pool.free_batch(all);
    /// assert!(pool.is_empty());
    /// # Ok::<(), nbbs_pool::Full<u32>>(())
    /// ```
    pub fn alloc_batch<'a>(
        &'a self,
        values: impl IntoIterator<Item = T>,
        mut out: impl FnMut(PoolBox<'a, T, W>),
    ) -> Result<(), Full<T>> {
        let mut local = self.local();
        values.into_iter().try_for_each(|value| local.alloc(value).map(&mut out))
    }

    /// Frees all boxes, with one read-modify-write for consecutive boxes in the same word.
    ///
    /// See [`alloc_batch`](Self::alloc_batch) for an example.
    ///
    /// ```
    /// let pool = nbbs_pool::Pool::<u32>::new();
    /// let boxes: Vec<_> = (0..100).map(|number| pool.alloc_box(number).unwrap()).collect();
    /// pool.free_batch(boxes);
    /// assert!(pool.is_empty());
    /// ```
    pub fn free_batch<'a>(&'a self, boxes: impl IntoIterator<Item = PoolBox<'a, T, W>>) {
        let mut local: Local<'a, T, S, W> = self.local();
        boxes.into_iter().for_each(|each| local.free(each));
    }
}
