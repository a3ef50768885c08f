//! What an allocator calls must not unwind: the process ends instead.

/// Calls `call`, and ends the process if it panics.
#[inline(always)]
pub fn aborting<R>(call: impl FnOnce() -> R) -> R {
    let guard = Guard;
    let answer = call();
    core::mem::forget(guard);
    answer
}

/// Is dropped only where something unwinds. A panic then is the second one, which ends the process.
struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        panic!("what an allocator calls must not panic");
    }
}
