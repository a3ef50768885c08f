//! Slots under deaths, stops and races, as the ledger's tests have blocks: at every step, with an owner map of slots.

mod closed;
mod deaths;
mod lives;
mod memory_model;
mod overtaken;
mod races;
mod wild;
