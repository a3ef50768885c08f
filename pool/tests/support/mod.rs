//! Code that the tests share: memory whose slots have numbers, words that a test steers, the pool as an allocator under
//! test, and models of its answers.
#![allow(dead_code, unused_imports)] // each test is a crate of its own and uses a part

pub mod back_ends;
pub mod bank;
pub mod handles;
pub mod model;
pub mod operations;
pub mod steps;
pub mod tracked;
pub mod words;

pub use back_ends::{BankPool, Locals, Pointers, config};
pub use bank::{Bank, Item, is_slots};
