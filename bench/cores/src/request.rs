//! What is asked for: one line of the console.

use alloc::string::String;
use core::str::FromStr;

use crate::machine::Console;

/// `LOOP CONTENDER ORDER UNITS WARM-UP OPERATIONS`, with spaces between.
pub struct Request {
    /// What each hart does.
    pub name: String,
    /// On which allocator.
    pub contender: String,
    /// Of the blocks, where the loop has one order.
    pub order: u32,
    /// Of the arena.
    pub units: u64,
    /// Operations of each hart before anything is measured.
    pub warm_up: u64,
    /// Operations of each hart that are measured, at least.
    pub operations: u64,
}

impl Request {
    /// Waits for it.
    ///
    /// # Panics
    /// The line lacks a word.
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
