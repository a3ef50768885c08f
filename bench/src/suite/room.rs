//! How much memory a case takes, and whether this machine has it.

use std::sync::OnceLock;

use sysinfo::{MemoryRefreshKind, RefreshKind, System};

use crate::market::{Contender, Kind};

/// Returns the bytes of memory of this machine, or of the control group that this process is confined to.
pub fn of_machine() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let memory = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
        let system = System::new_with_specifics(memory);
        system.cgroup_limits().map_or(system.total_memory(), |limits| limits.total_memory)
    })
}

/// Estimates the bytes that a case takes, on a back-end of so many units or a heap of so many bytes.
pub fn of_case(contender: &Contender, units: u64) -> u64 {
    /// For each unit, a thread's list has room for a block, two owner maps have a number, and the specification has a
    /// state and two bytes.
    const BESIDE: u64 = 16 + 2 * 4 + 8 + 2;
    match contender.kind() {
        Kind::Heap => units,
        _ => units.saturating_mul(BESIDE).saturating_add(metadata(contender, units)),
    }
}

/// Estimates the bookkeeping of a back-end by that of small ones, as nothing but its creation would tell, for which
/// there may be no memory.
fn metadata(contender: &Contender, units: u64) -> u64 {
    const SMALL: u64 = 1 << 13;
    let of = |units| contender.with_back_end(units, |back_end| back_end.metadata_bytes() as u64);
    if units <= 2 * SMALL {
        return of(units);
    }
    let (small, double) = (of(SMALL), of(2 * SMALL));
    let more = u128::from(double.saturating_sub(small)) * u128::from(units - SMALL);
    small.saturating_add(u64::try_from(more / u128::from(SMALL)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::{of_case, of_machine};
    use crate::market::{CONTENDERS, HEAPS, find};

    #[test]
    fn cases_take_what_they_will_allocate() {
        const UNITS: u64 = 1 << 18;
        for contender in CONTENDERS {
            let metadata = contender.with_back_end(UNITS, |back_end| back_end.metadata_bytes());
            let (told, all) = (of_case(contender, UNITS), 34 * UNITS + metadata as u64);
            let ratio = told as f64 / all as f64;
            assert!((0.9..1.1).contains(&ratio), "{}: {told}, not {all}", contender.name);
        }
        for heap in HEAPS {
            assert_eq!(of_case(heap, 1 << 20), 1 << 20, "{}", heap.name);
        }
    }

    /// The sums do not overflow, and no machine has so much memory.
    #[test]
    fn the_largest_arena_fits_no_machine() {
        let most = of_case(find("nbbs").unwrap(), nbbs::MAX_UNITS);
        assert!(most > 34 * nbbs::MAX_UNITS && most > of_machine(), "{most}");
    }
}
