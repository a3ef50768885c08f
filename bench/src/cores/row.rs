//! Turns cases into rows.

use super::plan::{Contender, Loop};
use super::run::Outcome;
use crate::median::{hundredths, ten_thousandths};
use crate::row::Row;

/// A case: a contender, a loop, a number of harts and a machine.
pub struct CoresCase<'a> {
    pub of: &'a Loop,
    pub contender: &'a Contender,
    pub order: Option<u32>,
    pub units: Option<u64>,
    pub harts: usize,
    pub machine: &'static str,
}

impl CoresCase<'_> {
    /// Returns what was measured, beside the throughput of one hart and the cycles of a bare compare-and-swap, as far
    /// as these are known. A pair is two operations.
    pub fn row(&self, outcome: &Outcome, one: Option<f64>, bare: Option<f64>) -> Row {
        let &Contender { name, kind, safe, private_caches, .. } = self.contender;
        let row = Row::named("cores", name, kind, self.harts);
        let row = self.units.map_or(row.clone(), |units| row.on(units, self.order));
        let per_second = outcome.per_second();
        let row = Row {
            phase: self.phase().into(),
            safe,
            private_caches,
            complete: true,
            ops: Some(outcome.operations()),
            ops_per_s: Some(per_second.round()),
            ns_per_op: Some(ten_thousandths(1e9 / per_second)),
            instructions_per_op: Some(hundredths(outcome.per_op(outcome.instructions))),
            ..row
        };
        row.with("machine", self.machine)
            .with_all([
                ("cycles_per_pair", Some(2.0 * outcome.cycles_per_op())),
                ("median_cycles_per_pair", Some(2.0 * outcome.median_cycles_per_op())),
                ("bare_pairs_per_pair", bare.map(|bare| outcome.cycles_per_op() / bare)),
                ("beside_one", one.map(|one| per_second / one)),
            ])
            .with("transfers_per_pair", ten_thousandths(2.0 * outcome.per_op(outcome.transfers)))
    }

    /// Returns the loop, and the machine unless it is the usual one.
    fn phase(&self) -> String {
        match self.machine {
            "server" => self.of.name.to_owned(),
            machine => format!("{} ({machine})", self.of.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CoresCase;
    use crate::cores::plan::{LOOPS, NBBS};
    use crate::cores::run::{Hart, Outcome};

    #[test]
    fn rows_stand_beside_bare_pairs_and_are_verified_by_nobody() {
        let harts = vec![Hart { operations: 100, cycles: 7_000, all: 100 }];
        let outcome = Outcome { clock_mhz: 2400.0, harts, transfers: 0.0, instructions: 0.0 };
        let (of, order, units) = (&LOOPS[0], Some(0), Some(1 << 10));
        let case = CoresCase { of, contender: &NBBS, order, units, harts: 1, machine: "server" };
        let row = case.row(&outcome, None, Some(14.0));
        assert_eq!((row.verified, row.is_good()), (None, true));
        assert_eq!(row.arena_bytes, Some(4 << 20));
        assert_eq!(row.figure("bare_pairs_per_pair"), Some(5.0));
        assert_eq!(row.figure("beside_one"), None);
    }
}
