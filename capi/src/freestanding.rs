//! The panic handler of the freestanding library.

use core::panic::PanicInfo;

/// Stops here. Nothing in this library is expected to panic.
#[panic_handler]
fn stop(_: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
