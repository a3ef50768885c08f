//! The panic handler of a library that nothing stands under.

use core::panic::PanicInfo;

/// Stops here. Nothing in this library is expected to panic.
#[panic_handler]
fn stop(_: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
