//! Objects that are registered as long as they live.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

/// The serial numbers of the objects that are alive.
#[derive(Clone, Debug, Default)]
pub struct Register(Rc<Entries>);

#[derive(Debug, Default)]
struct Entries {
    alive: RefCell<BTreeSet<u64>>,
    made: Cell<u64>,
}

impl Register {
    pub fn make(&self) -> Tracked {
        let serial = self.0.made.get();
        self.0.made.set(serial + 1);
        self.0.alive.borrow_mut().insert(serial);
        Tracked { serial, check: !serial, register: self.clone() }
    }

    pub fn alive(&self) -> BTreeSet<u64> {
        self.0.alive.borrow().clone()
    }
}

/// An object that is damaged if its two numbers do not agree, and is dropped once.
#[derive(Debug)]
#[repr(align(32))]
pub struct Tracked {
    serial: u64,
    check: u64,
    register: Register,
}

impl Tracked {
    pub fn serial(&self) -> u64 {
        assert_eq!(self.serial, !self.check, "a damaged object");
        self.serial
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        let serial = self.serial();
        let was_alive = self.register.0.alive.borrow_mut().remove(&serial);
        // The first finder reports an error.
        assert!(was_alive || std::thread::panicking(), "object {serial} is dropped twice");
    }
}
