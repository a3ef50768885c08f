//! An owned object.

use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

use crate::chunk::{Chunk, Hold};
use crate::sync::{AtomicU64, Word};

/// An owned object in a pool: two words. Dropping it drops the object and frees its slot, in O(1) with one
/// read-modify-write, on any thread; [`Local::free`](crate::Local::free) mostly avoids that.
///
/// A box that is forgotten leaks its object and its slot; [`leak`](Self::leak) leaves both to the pool.
///
/// ```
/// let pool = nbbs_pool::Pool::<String>::new();
/// let name = pool.alloc_box("a name".to_owned())?;
/// std::thread::scope(|scope| scope.spawn(move || drop(name)).join().unwrap());
/// assert!(pool.is_empty());
/// # Ok::<(), nbbs_pool::Full<String>>(())
/// ```
///
/// A box is invariant in its type. Otherwise an object that does not live long enough could be left to the pool:
///
/// ```compile_fail
/// use nbbs_pool::{Pool, PoolBox};
///
/// let pool = Pool::<&'static str>::new();
/// let name = String::from("a name");
/// let mut each: PoolBox<'_, &str> = pool.alloc_box("another").unwrap();
/// *each = &name;
/// _ = PoolBox::leak(each);
/// drop(name);
/// let each = pool.iter().next().unwrap();
/// println!("{}", pool.take(each).unwrap());
/// ```
// The object is complete, and at a slot of the chunk that is claimed for it: by the contract of `new`.
pub struct PoolBox<'a, T, W: Word = AtomicU64> {
    object: NonNull<T>,
    chunk: &'a Chunk<T, W>,
    owns: PhantomData<T>,
}

// SAFETY: the box owns its object, which moves with it; the thread that drops it changes the chunk's words.
unsafe impl<T: Send, W: Word + Sync> Send for PoolBox<'_, T, W> {}
// SAFETY: a shared box gives shared references to its object, and nothing else.
unsafe impl<T: Sync, W: Word + Sync> Sync for PoolBox<'_, T, W> {}

impl<'a, T, W: Word> PoolBox<'a, T, W> {
    /// # Safety
    /// The object is complete, belongs to nobody else, and is at a claimed slot of the chunk, which goes with it.
    #[inline(always)]
    pub(crate) unsafe fn new(object: NonNull<T>, chunk: &'a Chunk<T, W>) -> Self {
        Self { object, chunk, owns: PhantomData }
    }

    #[inline(always)]
    pub(crate) fn object(&self) -> NonNull<T> {
        self.object
    }

    #[inline(always)]
    pub(crate) fn chunk(&self) -> &'a Chunk<T, W> {
        self.chunk
    }

    /// Frees the slot and returns the object. Cost: one read-modify-write.
    ///
    /// ```
    /// use nbbs_pool::{Pool, PoolBox};
    ///
    /// let pool = Pool::<u32>::new();
    /// let one = pool.alloc_box(1).unwrap();
    /// assert_eq!(PoolBox::into_inner(one), 1);
    /// ```
    #[must_use]
    pub fn into_inner(each: Self) -> T {
        let each = ManuallyDrop::new(each);
        // SAFETY: the slot is claimed for the box, which is not dropped; the object is taken from it below.
        let _hold = unsafe { Hold::of(each.chunk, each.chunk.slot_of(each.object)) };
        // SAFETY: the object was the box's, which is not dropped; the slot is freed after this.
        unsafe { each.object.read() }
    }

    /// Leaves the object to the pool: [`Pool::free`](crate::Pool::free) frees it, or the end of the pool drops it.
    /// Cost: one read-modify-write.
    ///
    /// ```
    /// use nbbs_pool::{Pool, PoolBox};
    ///
    /// let pool = Pool::<u32>::new();
    /// let one = PoolBox::leak(pool.alloc_box(1).unwrap());
    /// assert!(pool.is_valid(one));
    /// ```
    #[must_use]
    pub fn leak(each: Self) -> NonNull<T> {
        let each = ManuallyDrop::new(each);
        // SAFETY: the slot is claimed for the box, which is not dropped: the object is left to the pool.
        unsafe { each.chunk.set_live(each.chunk.slot_of(each.object)) };
        each.object
    }

    /// Releases the object without freeing it: only [`Pool::from_raw`](crate::Pool::from_raw) makes a box of it again,
    /// unchecked. Otherwise object and slot are leaked.
    ///
    /// See [`Pool::from_raw`](crate::Pool::from_raw) for an example.
    ///
    /// ```
    /// use nbbs_pool::{Pool, PoolBox};
    ///
    /// let pool = Pool::<u32>::new();
    /// let raw = PoolBox::into_raw(pool.alloc_box(7).unwrap());
    /// // SAFETY: it comes from a box of this pool, and this is the only one made of it.
    /// assert_eq!(*unsafe { pool.from_raw(raw) }, 7);
    /// ```
    #[must_use]
    pub fn into_raw(each: Self) -> NonNull<T> {
        ManuallyDrop::new(each).object
    }
}

impl<T, W: Word> Deref for PoolBox<'_, T, W> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the box owns a complete object.
        unsafe { self.object.as_ref() }
    }
}

impl<T, W: Word> DerefMut for PoolBox<'_, T, W> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the box owns a complete object.
        unsafe { self.object.as_mut() }
    }
}

impl<T, W: Word> Drop for PoolBox<'_, T, W> {
    fn drop(&mut self) {
        // The slot is freed even if the object's destructor panics.
        // SAFETY: it is claimed for the box, and this is the object's end.
        let _hold = unsafe { Hold::of(self.chunk, self.chunk.slot_of(self.object)) };
        // SAFETY: the box owns a complete object, and this is its end; the slot is freed after it.
        unsafe { self.object.drop_in_place() };
    }
}

impl<T: fmt::Debug, W: Word> fmt::Debug for PoolBox<'_, T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Display, W: Word> fmt::Display for PoolBox<'_, T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
