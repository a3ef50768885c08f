//! The `nbbs` command: all of it is in the library beside it, where tests find it.

use std::process::ExitCode;

fn main() -> ExitCode {
    nbbs_bench::run()
}
