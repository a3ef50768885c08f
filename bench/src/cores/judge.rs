//! Judges whether the figures of the simulated machine can be believed, and whether cores that share nothing scale.

use super::args::Machine;
use crate::row::Row;

/// The least part of perfect scaling that one counter for each core must show.
const PRIVATE: f64 = 0.9;

/// The most throughput that one counter for all cores may show, beside one core's: lines that move are dear, and dearer
/// on the machine whose interconnect is worse than most. A server's shows 0.44 to 0.54.
fn most_shared(machine: Machine) -> f64 {
    match machine {
        Machine::Server => 1.0,
        Machine::Far => 0.4,
    }
}

/// The most cache-to-cache transfers a pair for cores that share nothing, and the least part of perfect scaling.
const TRANSFERS: f64 = 0.1;
const SCALING: f64 = 7.5 / 8.0;

/// Checks that a machine behaves: private counters scale, and one counter for all does not.
///
/// # Errors
/// Names the counters that do not behave so.
pub fn counters(machine: Machine, private: &Row, shared: &Row) -> anyhow::Result<()> {
    let scaling = |row: &Row| row.figure("beside_one").unwrap_or(0.0);
    let harts = private.threads;
    let told = "no figure of this machine can be believed";
    anyhow::ensure!(
        scaling(private) >= PRIVATE * harts as f64,
        "counters that nobody shares scale {:.2} times on {harts} cores: {told}",
        scaling(private)
    );
    anyhow::ensure!(
        harts == 1 || scaling(shared) <= most_shared(machine),
        "a counter that all share scales {:.2} times on {harts} cores, and {} is the most on {}: {told}",
        scaling(shared),
        most_shared(machine),
        machine.name()
    );
    Ok(())
}

/// Returns what is wrong with cores that share nothing, if anything is.
pub fn shares(row: &Row) -> Option<String> {
    let figure = |name| row.figure(name).unwrap_or(f64::NAN);
    let (transfers, scaling) = (figure("transfers_per_pair"), figure("beside_one"));
    let least = SCALING * row.threads as f64;
    // Written so that a figure that is not a number counts as wrong.
    let is_well = row.threads == 1 || (transfers < TRANSFERS && scaling >= least);
    (!is_well).then(|| {
        format!(
            "{} cores that share nothing: {transfers:.2} cache-to-cache transfers a pair, and fewer than \
             {TRANSFERS} are allowed; {scaling:.2} times the throughput of one, and at least {least:.2} is required",
            row.threads
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{counters, shares};
    use crate::cores::args::Machine;
    use crate::market::Kind;
    use crate::row::Row;

    fn row(harts: usize, scaling: f64, transfers: f64) -> Row {
        let row = Row::named("cores", "nbbs", Kind::BackEnd, harts);
        row.with("beside_one", scaling).with("transfers_per_pair", transfers)
    }

    #[test]
    fn a_machine_without_contention_is_refused() {
        let server = |private: &Row, shared: &Row| counters(Machine::Server, private, shared);
        let private = |scaling| row(8, scaling, 0.0);
        assert!(server(&private(7.9), &row(8, 0.6, 1.0)).is_ok());
        assert!(server(&private(7.9), &row(8, 4.0, 1.0)).is_err());
        assert!(server(&private(5.0), &row(8, 0.6, 1.0)).is_err());
        assert!(server(&row(1, 1.0, 0.0), &row(1, 1.0, 0.0)).is_ok());
    }

    #[test]
    fn a_far_machine_must_be_dearer_than_a_server() {
        let far = |shared| counters(Machine::Far, &row(16, 16.0, 0.0), &row(16, shared, 0.2));
        assert!(far(0.28).is_ok());
        // Where only the distance is larger.
        assert!(far(0.49).is_err());
    }

    #[test]
    fn who_shares_is_found_by_either_figure() {
        assert_eq!(shares(&row(8, 7.9, 0.02)), None);
        assert_eq!(shares(&row(1, 1.0, 0.0)), None);
        assert!(shares(&row(8, 7.9, 0.2)).is_some());
        assert!(shares(&row(8, 7.0, 0.02)).is_some());
        assert!(shares(&Row::named("cores", "nbbs", Kind::BackEnd, 8)).is_some());
    }
}
