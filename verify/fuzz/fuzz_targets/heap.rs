//! Runs programs of layouts on heaps of several kinds: the tests' owner map, the contents of blocks and audits judge
//! every answer.
#![no_main]

#[path = "../../../heap/tests/support/mod.rs"]
mod support;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| support::programs::run_bytes(bytes));
