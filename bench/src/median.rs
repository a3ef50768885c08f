//! Medians: one slow round is not a slow program.

/// Returns the median of some figures, or 0 if there are none.
pub fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.into_iter().collect();
    figures.sort_by(f64::total_cmp);
    match figures.len() {
        0 => 0.0,
        len if len % 2 == 1 => figures[len / 2],
        len => f64::midpoint(figures[len / 2 - 1], figures[len / 2]),
    }
}

/// Returns the figure that a tenth lie below and the one that a tenth lie above, or 0 if there are none.
pub fn tenths(figures: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let mut figures: Vec<f64> = figures.into_iter().collect();
    figures.sort_by(f64::total_cmp);
    let at = |tenth: usize| figures.get(figures.len() * tenth / 10).copied().unwrap_or(0.0);
    (at(1), at(9))
}

/// Rounds to hundredths: more digits would pretend a precision that is not there.
pub fn hundredths(figure: f64) -> f64 {
    (figure * 100.0).round() / 100.0
}

/// Rounds to ten-thousandths, for what happens seldom.
pub fn ten_thousandths(figure: f64) -> f64 {
    (figure * 10_000.0).round() / 10_000.0
}

#[cfg(test)]
mod tests {
    use super::{median, tenths};

    #[test]
    fn is_the_middle_or_between_the_middle_two() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median([]), 0.0);
    }

    #[test]
    fn a_tenth_lies_on_either_side() {
        assert_eq!(tenths((0..100).rev().map(f64::from)), (10.0, 90.0));
        assert_eq!(tenths([7.0]), (7.0, 7.0));
        assert_eq!(tenths([]), (0.0, 0.0));
    }
}
