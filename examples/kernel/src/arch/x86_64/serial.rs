//! The first serial port.

use core::fmt;

use x86_64::instructions::port::{PortReadOnly, PortWriteOnly};

const DATA: u16 = 0x3f8;
const LINE_STATUS: u16 = DATA + 5;
const MAY_SEND: u8 = 1 << 5;

/// The port, as the firmware has set it up.
pub struct Serial;

impl fmt::Write for Serial {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(send);
        Ok(())
    }
}

fn send(byte: u8) {
    let mut status: PortReadOnly<u8> = PortReadOnly::new(LINE_STATUS);
    let mut data = PortWriteOnly::new(DATA);
    // SAFETY: the port is a serial port on every PC; reading its status and sending through it changes no memory.
    unsafe {
        while status.read() & MAY_SEND == 0 {
            core::hint::spin_loop();
        }
        data.write(byte);
    }
}
