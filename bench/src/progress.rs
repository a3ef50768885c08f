//! Progress on standard error, only where that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar of no steps yet.
pub fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}");
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
