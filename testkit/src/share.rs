//! The share of what is drawn or listed that a check tries.

use std::str::FromStr;

/// Every `N`th of many things, from the remainder of `K` on.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    first: usize,
    every: usize,
}

impl Share {
    /// All of them.
    pub const ALL: Self = Self { first: 0, every: 1 };

    /// Iterates over those of `all` that are in the share.
    pub fn of<I: IntoIterator>(self, all: I) -> impl Iterator<Item = I::Item> {
        all.into_iter().skip(self.first).step_by(self.every)
    }
}

impl FromStr for Share {
    type Err = &'static str;

    /// Parses `K/N`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers = text.split_once('/').and_then(|(first, every)| {
            let every = every.parse().ok().filter(|&every| every > 0)?;
            Some(Self { first: first.parse::<usize>().ok()? % every, every })
        });
        numbers.ok_or("a share is K/N, of which N is above 0")
    }
}

#[cfg(test)]
mod tests {
    use super::Share;

    #[test]
    fn all_shares_together_are_the_whole() {
        let share = |text: &str| text.parse::<Share>().unwrap().of(0..7).collect::<Vec<_>>();
        assert_eq!(
            [share("0/3"), share("4/3"), share("2/3")],
            [vec![0, 3, 6], vec![1, 4], vec![2, 5]]
        );
        assert!(Share::ALL.of(0..7).eq(share("0/1")));
        for wrong in ["", "1", "0/0", "-1/3", "1/x", "1/3/3"] {
            assert!(wrong.parse::<Share>().is_err(), "{wrong}");
        }
    }
}
