//! Selects the parts and the races that are run.

/// Returns the first of `parts` that an argument names, or all if none is named.
pub fn asked_for<T>(parts: &[T], name: impl Fn(&T) -> &str) -> &[T] {
    let is_named = |part| std::env::args().any(|argument| argument == name(part));
    match parts.iter().position(is_named) {
        Some(at) => &parts[at..=at],
        None => parts,
    }
}

/// A share of the numbers from 0 on: every `n`th.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    first: u64,
    every: u64,
}

impl Share {
    /// Parses `--share K/N` among the arguments: every `N`th number, from the remainder of `K` on. Returns the share of
    /// all numbers if it is missing, and `None` if it is malformed.
    #[must_use]
    pub fn from_arguments() -> Option<Self> {
        let mut arguments = std::env::args().skip_while(|argument| argument != "--share");
        if arguments.next().is_none() {
            return Some(Self { first: 0, every: 1 });
        }
        let text = arguments.next()?;
        let (first, every) = text.split_once('/')?;
        let every = every.parse().ok().filter(|&every| every > 0)?;
        Some(Self { first: first.parse::<u64>().ok()? % every, every })
    }

    /// Iterates over those of the first `count` numbers that are in the share.
    pub fn of(self, count: u64) -> impl Iterator<Item = u64> {
        (self.first..count).step_by(self.every as usize)
    }
}
