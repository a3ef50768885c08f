//! Slots under deaths, stops and races, as the ledger's tests have blocks: at every step, with an owner map of slots.

mod closed;
mod deaths;
mod lives;
mod memory_model;
mod memory_pins;
mod overtaken;
mod raced;
mod races;
mod wild;
