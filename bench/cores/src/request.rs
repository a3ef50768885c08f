//! The request: one line of the console.

use alloc::string::String;
use core::str::FromStr;

use crate::machine::Console;

/// `LOOP CONTENDER ORDER UNITS WARM-UP OPERATIONS`, with spaces between.
pub struct Request {
    /// The name of the loop that each hart runs.
    pub name: String,
    /// The allocator.
    pub contender: String,
    /// The order of the blocks, if the loop has one order.
    pub order: u32,
    /// The units of the arena.
    pub units: u64,
    /// The operations of each hart before anything is measured.
    pub warm_up: u64,
    /// The least number of measured operations of each hart.
    pub operations: u64,
}

impl Request {
    /// Waits for the request, and reads it.
    ///
    /// # Panics
    /// If the line lacks a word.
    pub fn read(console: &mut Console) -> Self {
        let mut line = String::new();
        loop {
            match console.get() {
                b'\n' => break,
                byte => line.push(byte.into()),
            }
        }
        let mut words = line.split(' ');
        let mut word = || words.next().unwrap_or_else(|| panic!("not a request: {line}"));
        Self {
            name: word().into(),
            contender: word().into(),
            order: number(word()),
            units: number(word()),
            warm_up: number(word()),
            operations: number(word()),
        }
    }
}

fn number<N: FromStr>(word: &str) -> N {
    word.parse().unwrap_or_else(|_| panic!("not a number: {word}"))
}
