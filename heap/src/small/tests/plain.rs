//! A row beside a plain list of its runs: one caller gets the first place that there is, wrong calls change nothing,
//! and the bits say what the list says.

use std::format;
use std::vec::Vec;

use fastrand::Rng;

use super::super::codes::Use;
use super::super::find::Wanted;
use super::super::look::SmallStats;
use super::super::row::Row;
use super::super::word::Word;
use super::{Memory, Narrow};

/// The runs of a row, in order: where each begins, and its units.
#[derive(Default)]
struct Plain {
    runs: Vec<(usize, usize)>,
    units: usize,
}

impl Plain {
    /// Returns the free pieces.
    fn pieces(&self) -> impl Iterator<Item = (usize, usize)> {
        let ends = [0].into_iter().chain(self.runs.iter().map(|(start, units)| start + units));
        ends.zip(self.runs.iter().map(|run| run.0).chain([self.units]))
    }

    fn first_place(&self, wanted: Wanted) -> Option<usize> {
        let Wanted { units, align, offset } = wanted;
        self.pieces().find_map(|(start, end)| {
            (start..end)
                .find(|unit| (unit + offset).is_multiple_of(align))
                .filter(|unit| unit + units <= end)
        })
    }

    /// Returns where the free piece that begins at `start` ends.
    fn free_to(&self, start: usize) -> usize {
        self.runs.iter().map(|run| run.0).find(|&next| next >= start).unwrap_or(self.units)
    }

    /// Checks that a walk shows these runs and free pieces, and that the statistics add up.
    fn is_shown(&self, row: &Row<'_, impl Word>, context: &str) {
        let (mut runs, mut pieces) = (Vec::new(), Vec::new());
        row.walk(|used_for, units| match used_for {
            Use::Run => runs.push((units.start, units.len())),
            Use::Free => pieces.push((units.start, units.end)),
            Use::Rests => panic!("{context}: {units:?} have no head"),
        });
        assert_eq!(runs, self.runs, "{context}");
        assert!(
            pieces.iter().copied().eq(self.pieces().filter(|(start, end)| start < end)),
            "{context}"
        );
        for unit in 0..self.units {
            let run =
                self.runs.iter().find(|(start, units)| (*start..start + units).contains(&unit));
            let said = match run {
                Some(&(start, units)) if start == unit => Ok(units),
                Some(_) => Err(Use::Rests),
                None => Err(Use::Free),
            };
            assert_eq!(row.run_at(unit), said, "{context}: {unit}");
        }
        let stats = SmallStats::of(row, 1);
        let free = pieces.iter().map(|(start, end)| end - start);
        assert_eq!(stats.bytes, self.units, "{context}");
        assert_eq!((stats.free, stats.blocks), (free.clone().sum(), runs.len()), "{context}");
        assert_eq!(stats.largest_free, free.max().unwrap_or(0), "{context}");
    }

    fn insert(&mut self, start: usize, units: usize) {
        self.runs.push((start, units));
        self.runs.sort_unstable();
    }
}

/// Runs a random program on a row, and on the list.
fn agree<W: Word + Default>(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let units = rng.usize(1..if seed.is_multiple_of(4) { 3000 } else { 150 });
    let most = rng.usize(1..=units.min(if seed.is_multiple_of(3) { 600 } else { 12 }));
    let offset = rng.usize(0..100);
    let memory = Memory::<W>::new(units);
    let (row, mut plain) = (memory.row(), Plain { units, ..Plain::default() });
    for step in 0..if cfg!(miri) { 50 } else { 400 } {
        let pick = |rng: &mut Rng, plain: &Plain| {
            (!plain.runs.is_empty()).then(|| rng.usize(0..plain.runs.len()))
        };
        let length = rng.usize(1..=most);
        match (rng.u32(0..10), pick(&mut rng, &plain)) {
            (0..=4, _) | (_, None) => {
                let align = 1 << [0, 0, rng.u32(0..6)][rng.usize(0..3)];
                let wanted = Wanted { units: length, align, offset };
                let found = row.alloc(wanted);
                assert_eq!(found, plain.first_place(wanted), "seed {seed}, {step}: {length}");
                found.into_iter().for_each(|start| plain.insert(start, length));
            }
            (5..=7, Some(number)) => {
                let (start, units) = plain.runs.swap_remove(number);
                plain.runs.sort_unstable();
                assert!(row.cut(start, units, 0), "seed {seed}, {step}: {start}, {units}");
                assert!(!row.cut(start, units, 0), "seed {seed}, {step}: freed twice");
            }
            (8, Some(number)) => {
                let (start, units) = plain.runs[number];
                let behind = plain.free_to(start + units) - start;
                let (cut, grown) = (row.cut(start, units, length), row.grow(start, units, length));
                assert_eq!(cut, length < units, "seed {seed}, {step}: {start}, {units}, {length}");
                assert_eq!(
                    grown,
                    length > units && length <= behind,
                    "seed {seed}, {step}: {start}, {units}, {length}"
                );
                if cut || grown {
                    plain.runs[number].1 = length;
                }
            }
            // Wrong calls: another place, or another length.
            (_, Some(number)) => {
                let (mut start, mut length) = plain.runs[number];
                match rng.u32(0..3) {
                    0 => start = rng.usize(0..units + 2),
                    1 => length = rng.usize(0..units + 2),
                    _ => length = length.wrapping_sub(1),
                }
                if !plain.runs.contains(&(start, length)) {
                    let to = rng.usize(0..=most);
                    assert!(!row.cut(start, length, to), "seed {seed}, {step}: {start}, {length}");
                    assert!(!row.grow(start, length, to), "seed {seed}, {step}: {start}, {length}");
                }
            }
        }
        let in_use: usize = plain.runs.iter().map(|run| run.1).sum();
        assert_eq!(row.free_units(), units - in_use, "seed {seed}, {step}");
        if step % 20 == 0 {
            plain.is_shown(&row, &format!("seed {seed}, {step}"));
        }
    }
    for (start, units) in plain.runs {
        assert!(row.cut(start, units, 0), "seed {seed}: {start}, {units}");
    }
    assert!(memory.words.iter().all(|word| word.load(core::sync::atomic::Ordering::Relaxed) == 0));
}

#[test]
fn a_row_does_what_a_list_of_runs_does() {
    for seed in if cfg!(miri) { 1..3 } else { 0..2000 } {
        agree::<Narrow<2>>(seed);
        agree::<Narrow<8>>(seed);
        agree::<Narrow<16>>(seed);
        agree::<Narrow<{ usize::BITS / 2 }>>(seed);
    }
}
