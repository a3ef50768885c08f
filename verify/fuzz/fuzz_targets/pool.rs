//! Runs operations one after the other on pools of several shapes, and checks every answer against the model of the
//! tests.
#![no_main]

#[path = "../../../pool/tests/support/mod.rs"]
mod support;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| support::operations::run_all(bytes));
