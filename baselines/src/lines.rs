//! Metadata words on a cache-line boundary, as many as it takes at run time.

/// Words in a cache line.
const LINE: usize = 8;

/// A run of words that begins on a cache-line boundary, as `nbbs::Metadata` does for a size that is
/// known at compile time. All of them have been written to: no page fault is left in them.
#[derive(Debug)]
pub struct Lines<W> {
    words: Vec<W>,
    first: usize,
    len: usize,
}

impl<W: From<u64>> Lines<W> {
    /// `len` words of zero.
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        let words: Vec<W> = (0..len + LINE).map(|_| W::from(0)).collect();
        let first = words.as_ptr().align_offset(LINE * size_of::<W>()).min(LINE);
        Self { words, first, len }
    }
}

impl<W> Lines<W> {
    /// The words.
    #[must_use]
    pub fn words(&self) -> &[W] {
        &self.words[self.first..self.first + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::Lines;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn begins_on_a_cache_line_and_is_zero() {
        for len in [1, 7, 8, 4097, 100_000] {
            let lines = Lines::<AtomicU64>::zeroed(len);
            assert_eq!(lines.words().as_ptr() as usize % 64, 0);
            assert_eq!(lines.words().len(), len);
            assert!(lines.words().iter().all(|word| word.load(Ordering::Relaxed) == 0));
        }
    }
}
