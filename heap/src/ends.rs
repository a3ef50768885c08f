//! Notification of a thread's end.

pub use imp::announce;

/// By a key of the C library. Unlike a thread-local with a destructor it takes no memory, for which the C library would
/// call its `malloc`: a thread may announce itself in a signal handler that has interrupted `malloc`. With glibc the
/// key's destructor runs after all destructors of thread-locals; elsewhere destructors that run later bypass the cache.
#[cfg(target_os = "linux")]
mod imp {
    use core::ffi::{c_int, c_uint, c_void};
    use core::ptr::NonNull;
    use core::sync::atomic::{AtomicU32, Ordering};

    unsafe extern "C" {
        fn pthread_key_create(
            key: *mut c_uint,
            at_end: Option<unsafe extern "C" fn(*mut c_void)>,
        ) -> c_int;
        fn pthread_key_delete(key: c_uint) -> c_int;
        fn pthread_setspecific(key: c_uint, value: *const c_void) -> c_int;
    }

    /// The key plus one, or 0; [`GONE`] once the library that contains this is unloaded, or the process exits.
    static KEY: AtomicU32 = AtomicU32::new(0);

    const GONE: u32 = u32::MAX;

    /// Deletes the key when the loader unloads the library that contains `at_end`: the C library would still call it
    /// when a thread ends.
    #[used]
    // SAFETY: the loader calls what this section holds, functions that need no arguments, and this is one.
    #[unsafe(link_section = ".fini_array")]
    static UNLOADED: extern "C" fn() = unloaded;

    extern "C" fn unloaded() {
        // From now on callers that have no cache yet go past the caches.
        if let Some(key) = key_of(KEY.swap(GONE, Ordering::Relaxed)) {
            // SAFETY: the key exists, and nobody gets to know it from now on. While the process exits, a thread may
            // have read it just before: what it sets has no destructor then, and the C library checks the key.
            unsafe { pthread_key_delete(key) };
        }
    }

    fn key_of(known: u32) -> Option<c_uint> {
        known.checked_sub(1).filter(|_| known != GONE)
    }

    /// Arranges that [`give_back`](crate::threads::give_back) is called when the calling thread ends. Returns whether
    /// it will be.
    pub fn announce() -> bool {
        let value = NonNull::<c_void>::dangling();
        // SAFETY: the key exists, and nobody reads through its value, which only has to be non-null.
        key().is_some_and(|key| unsafe { pthread_setspecific(key, value.as_ptr()) } == 0)
    }

    fn key() -> Option<c_uint> {
        // Relaxed, here and below: nothing but the key is communicated.
        match KEY.load(Ordering::Relaxed) {
            0 => {}
            known => return key_of(known),
        }
        let mut key = 0;
        // SAFETY: it writes the key, and calls `at_end` with values that threads set.
        if unsafe { pthread_key_create(&raw mut key, Some(at_end)) } != 0 {
            return None;
        }
        match KEY.compare_exchange(0, key + 1, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Some(key),
            Err(theirs) => {
                // SAFETY: nobody else knows the key.
                unsafe { pthread_key_delete(key) };
                key_of(theirs)
            }
        }
    }

    unsafe extern "C" fn at_end(_: *mut c_void) {
        crate::threads::give_back();
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
            crate::threads::give_back();
        }
    }

    /// Arranges that [`give_back`](crate::threads::give_back) is called when the calling thread ends. Returns whether
    /// it will be.
    pub fn announce() -> bool {
        END.try_with(|_| ()).is_ok()
    }
}
