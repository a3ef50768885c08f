//! Replays a trace, and pictures which memory is in use while it runs.

mod image;

use testkit::Oracle;

use crate::args::UNIT_BYTES;
use crate::market::Contender;
use crate::replay::{ReplayPlan, verify};
use crate::table::bytes;
use crate::trace::Trace;

/// The units of a frame, which is the least that a row of the image shows: 2 MiB, a huge page of x86-64.
const FRAME: u64 = 512;

/// The most rows of an image.
const ROWS: u64 = 512;

/// The number of samples over the trace, which are the columns of an image.
const SAMPLES: usize = 320;

/// The back-ends that the page shows: one of each family, unless it would take minutes.
const SHOWN: [&str; 7] =
    ["nbbs", "linux", "linux-pcp", "nb4", "buddy-sl", "bitmap-tree", "frame-allocator"];

/// A trace, and its pictures.
pub struct Pictures {
    pub trace: String,
    pub units: u64,
    /// The units that a row of the images stands for.
    pub units_per_row: u64,
    /// Operations before each sample.
    pub at: Vec<usize>,
    /// Percent of the arena in use, by sample.
    pub in_use: Vec<f64>,
    pub pictures: Vec<Picture>,
}

/// The picture of one allocator.
pub struct Picture {
    pub contender: &'static Contender,
    /// A PNG, as the address of an image.
    pub image: String,
    /// Percent of the free memory that lies outside free frames, by sample.
    pub unusable: Vec<f64>,
    /// The index of the last sample of the trace itself.
    ends: usize,
    /// The number of refused allocations.
    pub failed: u64,
    pub violation: Option<String>,
}

impl Picture {
    /// Returns the worst sample.
    pub fn worst(&self) -> f64 {
        self.unusable.iter().copied().fold(0.0, f64::max)
    }

    /// Returns the sample at the end of the trace.
    pub fn at_end(&self) -> f64 {
        self.unusable.get(self.ends).copied().unwrap_or(0.0)
    }

    /// Returns the sample after the remaining blocks have been freed, too.
    pub fn empty(&self) -> f64 {
        self.unusable.last().copied().unwrap_or(0.0)
    }
}

impl Pictures {
    /// Returns the size of the arena.
    pub fn arena(&self) -> String {
        bytes(self.units * UNIT_BYTES)
    }

    /// Returns the memory that a row of the images stands for.
    pub fn row(&self) -> String {
        bytes(self.units_per_row * UNIT_BYTES)
    }

    /// Replays the trace on each back-end, and then frees what it leaves. It does so in the order of the trace and
    /// without a clock, so the same build draws the same pictures everywhere.
    pub fn of(trace: &Trace) -> anyhow::Result<Self> {
        let units = trace.peak_units.next_power_of_two().max(FRAME);
        let units_per_row = FRAME.max(units / ROWS);
        let mut plan = ReplayPlan::new(trace, trace.cpus);
        let ends = plan.steps.len();
        plan.free_survivors();
        let stride = plan.steps.len().div_ceil(SAMPLES).max(1);
        let all = plan.steps.len();
        let is_sampled = |count: usize| count.is_multiple_of(stride) || count == all;
        let at: Vec<usize> = (1..=all).filter(|&count| is_sampled(count)).collect();
        let ends = at.iter().rposition(|&count| count <= ends).unwrap_or(0);
        let mut in_use = Vec::new();
        let mut pictures = Vec::new();
        for contender in SHOWN.into_iter().filter_map(crate::market::find) {
            let mut samples = Vec::new();
            let verdict = verify::watch(contender, units, &plan, |count, oracle| {
                if is_sampled(count) {
                    samples.push(rows_in_use(oracle, units_per_row));
                }
            });
            if in_use.is_empty() {
                in_use = samples.iter().map(|rows| percent(rows.iter().sum(), units)).collect();
            }
            pictures.push(Picture {
                contender,
                image: image::of(&samples, units_per_row)?,
                unusable: samples.iter().map(|rows| unusable(rows, units_per_row)).collect(),
                ends,
                failed: verdict.failed,
                violation: verdict.violation,
            });
        }
        Ok(Self { trace: trace.name.to_owned(), units, units_per_row, at, in_use, pictures })
    }
}

/// Returns the units in use in each row of the image, by address.
fn rows_in_use(oracle: &Oracle, units_per_row: u64) -> Vec<u64> {
    let row = |first: u64| {
        let units = first..(first + units_per_row).min(oracle.units());
        units.filter(|&unit| !oracle.is_free(unit)).count() as u64
    };
    (0..oracle.units()).step_by(units_per_row as usize).map(row).collect()
}

/// Returns the percentage of the free units that lie in rows that are partly in use.
fn unusable(rows: &[u64], units_per_row: u64) -> f64 {
    let free: u64 = rows.iter().map(|in_use| units_per_row - in_use).sum();
    let whole = rows.iter().filter(|&&in_use| in_use == 0).count() as u64 * units_per_row;
    percent(free - whole, free)
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64 * 1000.0).round() / 10.0 }
}

#[cfg(test)]
mod tests {
    use super::{Pictures, unusable};
    use crate::trace::Trace;

    #[test]
    fn free_memory_in_broken_rows_is_unusable() {
        assert_eq!(unusable(&[0, 0], 512), 0.0);
        assert_eq!(unusable(&[1, 512], 512), 100.0);
        assert_eq!(unusable(&[256, 0, 0], 512), 20.0);
        assert_eq!(unusable(&[512, 512], 512), 0.0);
    }

    #[test]
    fn the_sample_breaks_frames_up_and_most_of_them_heal() {
        let pictures = Pictures::of(&Trace::sample().unwrap()).unwrap();
        assert_eq!(pictures.in_use.len(), pictures.at.len());
        for picture in &pictures.pictures {
            let name = picture.contender.name;
            assert_eq!(picture.unusable.len(), pictures.at.len(), "{name}");
            assert_eq!((picture.violation.as_deref(), picture.failed), (None, 0), "{name}");
            assert!(picture.image.starts_with("data:image/png;base64,"), "{name}");
            assert_eq!(picture.empty(), 0.0, "{name}");
            assert!(picture.worst() >= picture.at_end() && picture.at_end() > 0.0, "{name}");
        }
    }
}
