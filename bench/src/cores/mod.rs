//! Measures many cores on a machine that has few: runs a separate program, without an operating system, on a simulated
//! machine of up to 64 harts with coherent private caches.
//!
//! ```text
//! args     what the command line asks for           tools    the simulator and the program, brought here
//! plan     the loops, who takes part, how long      measure  all of them
//! run      one simulation                           judge    what a machine, and what shares nothing, must show
//! row      a case, as a row                         report   the tables, and what the figures do not say
//! cases    what the command line asks for, and what of it is left out
//! ```
//!
//! The program and the machine's parameters are in `bench/cores`.

pub mod args;
mod cases;
mod judge;
mod measure;
pub mod plan;
pub mod report;
mod row;
mod run;
mod tools;

pub use measure::CASES;
