//! Collections of the kernel, in its heap: maps that grow and shrink, lists in interrupt handlers.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::random::Random;

/// The most lists that a CPU keeps.
const MOST: usize = 256;

/// Lists of numbers that follow each other, by the first of them.
pub struct Lists(BTreeMap<u64, Vec<u64>>);

/// Numbers that follow each other.
fn list(random: &mut Random) -> Vec<u64> {
    let first = random.draw() >> 8;
    (first..=first + random.below(100)).collect()
}

/// Checks that nobody else has written to a list.
fn check(list: &[u64]) {
    let is_whole = list.iter().zip(list[0]..).all(|(&number, expected)| number == expected);
    assert!(is_whole, "a list from {} is not as it was made", list[0]);
}

impl Lists {
    pub fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Makes a few lists, and ends others.
    pub fn step(&mut self, random: &mut Random) {
        for _ in 0..8 {
            if random.below(MOST as u64) < self.0.len() as u64 {
                let (_, list) = self.0.pop_first().expect("there are some");
                check(&list);
            } else {
                let list = list(random);
                self.0.insert(list[0], list);
            }
        }
    }

    /// Checks all lists, and frees them.
    pub fn free_all(&mut self) {
        self.0.values().for_each(|list| check(list));
        self.0.clear();
    }
}

/// In a handler: makes a list, and frees it.
pub fn in_handler(random: &mut Random) {
    check(&list(random));
}
