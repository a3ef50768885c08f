//! Notification of a thread's end.

pub use imp::announce;

/// By a key of the C library. Unlike a thread-local with a destructor it takes no memory, for which the C library would
/// call its `malloc`: a thread may announce itself in a signal handler that has interrupted `malloc`. With glibc the
/// key's destructor runs after all destructors of thread-locals; elsewhere destructors that run later bypass the cache.
#[cfg(target_os = "linux")]
mod imp {
    use core::ffi::{c_int, c_uint, c_void};
    use core::ptr::{self, NonNull};
    use core::sync::atomic::{AtomicU32, Ordering, fence};

    unsafe extern "C" {
        fn pthread_key_create(
            key: *mut c_uint,
            at_end: Option<unsafe extern "C" fn(*mut c_void)>,
        ) -> c_int;
        fn pthread_key_delete(key: c_uint) -> c_int;
        fn pthread_setspecific(key: c_uint, value: *const c_void) -> c_int;
    }

    /// The key plus one, or 0; [`GONE`] once the library that contains this is unloaded, or the process exits. Relaxed
    /// everywhere, unless said otherwise: nothing but the key is communicated.
    struct Key(AtomicU32);

    static KEY: Key = Key(AtomicU32::new(0));

    const GONE: u32 = u32::MAX;

    /// Deletes the key when the loader unloads the library that contains `at_end`: the C library would still call it
    /// when a thread ends. No thread may be ending just then, nor be in a call of the library.
    #[used]
    // SAFETY: the loader calls what this section holds, functions that need no arguments, and this is one.
    #[unsafe(link_section = ".fini_array")]
    static UNLOADED: extern "C" fn() = unloaded;

    extern "C" fn unloaded() {
        // From now on callers that have no cache yet go past the caches.
        KEY.delete();
    }

    /// Arranges that [`give_back`](crate::cache::threads::give_back) is called when the calling thread ends. Returns
    /// whether it will be.
    pub fn announce() -> bool {
        KEY.get().is_some_and(|key| KEY.set(key))
    }

    fn key_of(known: u32) -> Option<c_uint> {
        known.checked_sub(1).filter(|_| known != GONE)
    }

    impl Key {
        /// Returns the key, which is created if there was none. While the process exits it may be deleted at any time,
        /// and may become another library's.
        fn get(&self) -> Option<c_uint> {
            match self.0.load(Ordering::Relaxed) {
                0 => {}
                known => return key_of(known),
            }
            let mut key = 0;
            // SAFETY: it writes the key, and calls `at_end` with values that threads set.
            if unsafe { pthread_key_create(&raw mut key, Some(at_end)) } != 0 {
                return None;
            }
            match self.0.compare_exchange(0, key + 1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => Some(key),
                Err(theirs) => {
                    // SAFETY: nobody else knows the key.
                    unsafe { pthread_key_delete(key) };
                    key_of(theirs)
                }
            }
        }

        /// Gives the key, which `get` returned, a value for the calling thread, and returns whether it has one.
        fn set(&self, key: c_uint) -> bool {
            let set = |value| {
                // SAFETY: whatever has become of the key, its number stands for a place in the thread. If it is another
                // library's by now, that does not get to see the value: it is taken back before the thread goes on.
                unsafe { pthread_setspecific(key, value) == 0 }
            };
            let is_set = set(NonNull::dangling().as_ptr());
            // Whoever has the key now got it after `delete` had begun. Acquire: the C library's own accesses, by which
            // this thread may have seen that, come before the load.
            fence(Ordering::Acquire);
            if self.0.load(Ordering::Relaxed) == key + 1 {
                return is_set;
            }
            set(ptr::null_mut());
            false
        }

        /// Deletes the key, and sees to it that none is created again.
        fn delete(&self) {
            // Release: pairs with the fence in `set`.
            if let Some(key) = key_of(self.0.swap(GONE, Ordering::Release)) {
                // SAFETY: the key exists, and nobody gets to know it from now on. Who has got to know it before finds
                // in `set` that it is gone.
                unsafe { pthread_key_delete(key) };
            }
        }
    }

    unsafe extern "C" fn at_end(_: *mut c_void) {
        crate::cache::threads::give_back();
    }

    #[cfg(test)]
    mod tests {
        use super::{AtomicU32, Key, c_uint, c_void, pthread_key_create};

        unsafe extern "C" {
            fn pthread_getspecific(key: c_uint) -> *mut c_void;
        }

        /// The process exits, and another library gets the number of the deleted key, while a thread announces itself.
        #[test]
        #[cfg_attr(miri, ignore = "no number is given again")]
        fn keys_of_others_keep_their_values() {
            let ours = Key(AtomicU32::new(0));
            let key = ours.get().unwrap();
            ours.delete();
            let mut theirs = c_uint::MAX;
            // The lowest number that is free, which may be one that another test has deleted.
            for _ in 0..100 {
                // SAFETY: it writes the key.
                assert_eq!(unsafe { pthread_key_create(&raw mut theirs, None) }, 0);
                if theirs == key {
                    break;
                }
            }
            assert_eq!(theirs, key);
            assert!(!ours.set(key));
            // SAFETY: the key exists.
            assert!(unsafe { pthread_getspecific(theirs) }.is_null());
            assert_eq!(ours.get(), None);
        }
    }
}

/// By a thread-local with a destructor. Where thread-locals are keys of the C library, that of the cache may be gone
/// before this runs, with what the cache has.
#[cfg(not(target_os = "linux"))]
mod imp {
    /// Gives everything back when the thread ends.
    struct End;

    std::thread_local! {
        static END: End = const { End };
    }

    impl Drop for End {
        fn drop(&mut self) {
            crate::cache::threads::give_back();
        }
    }

    /// Arranges that [`give_back`](crate::cache::threads::give_back) is called when the calling thread ends. Returns
    /// whether it will be.
    pub fn announce() -> bool {
        END.try_with(|_| ()).is_ok()
    }
}
