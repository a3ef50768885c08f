//! What stands where the feature `suite` would: it says what the command line takes.

use clap::Args;

/// `nbbs bench NAME...`, of which only the names are known.
#[derive(Debug, Args)]
pub struct Suite {
    /// Workloads of the field: they take the feature `suite`
    #[arg(
        value_name = "NAME",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub words: Vec<String>,
}

/// The refusal of this command line.
pub fn refusal() -> anyhow::Error {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words = words.join(" ");
    anyhow::anyhow!("nbbs {words} needs: cargo run --release --features suite -- {words}")
}
