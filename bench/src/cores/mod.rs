//! Many cores without many cores: a program of its own, without an operating system, on a simulated machine of up to 64
//! harts with private caches that are kept coherent.
//!
//! ```text
//! args     the command line                         tools    the simulator and the program, brought here
//! plan     the loops, who takes part, how long
//! run      one simulation                           judge    what a machine, and what shares nothing, must show
//! row      a case, as a row                         report   the tables, and what the figures do not say
//! ```
//!
//! The program and the machine's parameters are in `bench/cores`.

pub mod args;
pub mod judge;
pub mod plan;
pub mod report;
pub mod row;
pub mod run;
pub mod tools;
