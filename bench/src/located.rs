//! Errors of files that are read line by line.

use std::fmt;

/// An error of a file that cannot be used: the file, where reading stopped, and why.
#[derive(Debug)]
pub struct Located<F> {
    /// The file, as the user named it.
    pub file: String,
    /// The line at which reading stopped, from 1, or 0 if the error is not about a line.
    pub line: usize,
    /// What is wrong: it names the value and the limit.
    pub fault: F,
}

impl<F: fmt::Display> fmt::Display for Located<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, fault } = self;
        match line {
            0 => write!(f, "{file}: {fault}"),
            line => write!(f, "{file}, line {line}: {fault}"),
        }
    }
}

impl<F: fmt::Debug + fmt::Display> std::error::Error for Located<F> {}
