//! Makes programs and races from a fuzzer's bytes: any bytes are one, and a small change of the bytes is a small change
//! of it.

use arbitrary::{Result, Unstructured};

use super::strategies::Raw;
use super::{BOUNDARIES, Op, Program, Race, Step};
use crate::steered::Schedule;

/// The most operations of a program.
const STEPS: usize = 200;
/// The most operations of a lane in a race.
const RACE_OPS: usize = 5;

impl Program {
    /// Returns the program that the bytes stand for: up to 200 steps on 4 lanes.
    ///
    /// ```
    /// use testkit::program::Program;
    ///
    /// let program = Program::from_bytes(&[1, 40, 0, 0, 2, 2, 3, 3]);
    /// assert!(program.units > 0);
    /// ```
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut bytes = Unstructured::new(bytes);
        let (units, reserved) = (units(&mut bytes), bytes.ratio(1, 8).unwrap_or(false));
        let mut steps = Vec::new();
        while !bytes.is_empty() && steps.len() < STEPS {
            let lane = usize::from(bytes.arbitrary::<u8>().unwrap_or(0) & 3);
            let Ok(op) = op(&mut bytes, units) else { break };
            steps.push(Step { lane, op });
        }
        Self { units, reserved, steps }
    }
}

impl Race {
    /// Returns the race that the bytes stand for, and its schedule: 2 to 4 lanes of up to 5 operations each, on arenas
    /// of one to three levels.
    ///
    /// ```
    /// use testkit::{program::Race, steered::replay};
    ///
    /// let (race, schedule) = Race::from_bytes(&[1, 40, 0, 0, 2, 2, 3, 3]);
    /// assert!(replay(&race, schedule).1.is_ok());
    /// ```
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> (Self, Schedule) {
        let mut bytes = Unstructured::new(bytes);
        let number = |bytes: &mut Unstructured<'_>, most| bytes.int_in_range(0..=most).unwrap_or(0);
        let stalls = number(&mut bytes, 5);
        let schedule = Schedule { seed: number(&mut bytes, 0xffff).into(), stalls, steps: 150 };
        let units = units(&mut bytes).min(600);
        let before = number(&mut bytes, 6);
        let lanes = 2 + number(&mut bytes, 2) as usize;
        let shared = number(&mut bytes, 3) == 0;
        let some_ops = |bytes: &mut Unstructured<'_>, most| -> Vec<Op> {
            (0..most).map_while(|_| op(bytes, units).ok()).collect()
        };
        let setup = some_ops(&mut bytes, before as usize);
        let of_lane = |(number, op)| Step { lane: number % lanes, op };
        let steps = setup.into_iter().enumerate().map(of_lane).collect();
        let share = (bytes.len() / lanes).clamp(3, 40);
        let ops = (0..lanes).map(|_| {
            let mut own = Unstructured::new(bytes.bytes(share.min(bytes.len())).unwrap_or(&[]));
            some_ops(&mut own, RACE_OPS)
        });
        let lanes = ops.collect();
        (Self { setup: Program { units, reserved: false, steps }, lanes, shared }, schedule)
    }

    /// Returns the race on another number of units, without the operations that [`race_plain`](super::race_plain) does
    /// not have.
    ///
    /// ```
    /// use testkit::program::{Op, Race};
    ///
    /// let (race, _) = Race::from_bytes(&[1; 60]);
    /// let race = race.plain(4);
    /// assert!(race.lanes.concat().iter().all(|op| matches!(op, Op::Alloc { .. } | Op::Free { .. })));
    /// ```
    #[must_use]
    pub fn plain(mut self, units: u64) -> Self {
        let is_plain =
            |op: &Op| matches!(op, Op::Alloc { .. } | Op::Free { .. } | Op::FreeSized { .. });
        self.setup.units = units;
        self.setup.steps.retain(|step| is_plain(&step.op));
        self.lanes.iter_mut().for_each(|ops| ops.retain(is_plain));
        self
    }
}

/// Draws the units of an arena: mostly small ones, and sizes at which the structure changes.
pub(super) fn units(bytes: &mut Unstructured<'_>) -> u64 {
    let drawn = bytes.arbitrary::<u16>().unwrap_or(0);
    match drawn & 3 {
        0 | 1 => u64::from(drawn >> 2) % 100 + 1,
        2 => u64::from(drawn >> 2) % 1200 + 1,
        _ => BOUNDARIES[usize::from(drawn >> 2) % 26],
    }
}

fn op(bytes: &mut Unstructured<'_>, units: u64) -> Result<Op> {
    if bytes.is_empty() {
        return Err(arbitrary::Error::NotEnoughData);
    }
    let (kind, number) = (bytes.arbitrary::<u8>()?, u64::from(bytes.arbitrary::<u16>()?));
    let (small, large) = (number as u32, number as usize);
    let raw = match kind % 16 {
        0 | 1 => Raw::Alloc(small),
        2 | 3 => Raw::AllocSmall(small % 7),
        4 => Raw::AllocLarge(small % 4),
        5 | 6 => Raw::Free(large),
        7 | 8 => Raw::FreeSized(large),
        9 => Raw::FreeAgain,
        10 => Raw::FreeAt(number),
        11 => Raw::FreeSizedAt(number, u32::from(kind >> 4)),
        12 => Raw::Reserve(number, bytes.arbitrary::<u8>()?.into()),
        13 => Raw::Release(number, bytes.arbitrary::<u8>()?.into()),
        14 => Raw::Drain(small),
        _ if kind < 64 => Raw::OrderOf(number),
        _ if kind < 96 => Raw::Inspect,
        _ => Raw::Run(bytes.arbitrary()?, large & 63, number, bytes.arbitrary::<u16>()?.into()),
    };
    Ok(raw.of(units))
}
