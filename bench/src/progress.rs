//! Shows progress on standard error, only if that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// Returns a bar without steps.
pub fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}");
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
