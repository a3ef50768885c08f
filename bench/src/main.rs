//! The `nbbs` command. All of it is in the library beside it, where tests can use it.

use std::process::ExitCode;

fn main() -> ExitCode {
    nbbs_bench::run()
}
