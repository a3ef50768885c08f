//! A program that has run for a while: it frees at random, asks for many sizes, and always holds about the same amount.

use super::Worker;

/// How often each order is asked for.
#[derive(Clone, Copy)]
enum Mix {
    /// Each order up to this half as often as the one below.
    Geometric(u32),
    /// Each order up to this as often as any other.
    Uniform(u32),
}

/// The number of steps, of all threads together.
const STEPS: u64 = 1_000_000;

/// The phases: the mix of orders, and how full the memory is in percent. Each mix begins with nothing held.
const PHASES: &[(Mix, [(u64, &str); 3])] = &[
    (Mix::Uniform(0), [(30, "order 0, 30 %"), (60, "order 0, 60 %"), (90, "order 0, 90 %")]),
    (
        Mix::Geometric(4),
        [(30, "geometric to 4, 30 %"), (60, "geometric to 4, 60 %"), (90, "geometric to 4, 90 %")],
    ),
    (
        Mix::Uniform(4),
        [(30, "uniform to 4, 30 %"), (60, "uniform to 4, 60 %"), (90, "uniform to 4, 90 %")],
    ),
    (
        Mix::Geometric(9),
        [(30, "geometric to 9, 30 %"), (60, "geometric to 9, 60 %"), (90, "geometric to 9, 90 %")],
    ),
    (
        Mix::Uniform(9),
        [(30, "uniform to 9, 30 %"), (60, "uniform to 9, 60 %"), (90, "uniform to 9, 90 %")],
    ),
];

/// Runs the phases. Below the fill, three steps in four allocate and one frees a random block; above it, all steps
/// free.
pub fn churn(worker: &mut Worker<'_>) {
    for &(mix, fills) in PHASES {
        let mut held_units = 0;
        worker.begin_anew();
        for (percent, name) in fills {
            let fill = worker.share(worker.units() * percent / 100);
            worker.prepare(|worker| {
                worker.until_done(|worker| {
                    held_units += allocate(worker, mix);
                    held_units < fill
                });
            });
            let steps = worker.share(STEPS);
            worker.stretch(name, |worker| {
                worker.up_to(steps, |worker| {
                    if held_units < fill && worker.random.u8(..4) > 0 {
                        held_units += allocate(worker, mix);
                    } else if let Some(block) = worker.free_any() {
                        held_units -= 1 << block.order;
                    }
                    true
                });
            });
        }
        worker.prepare(|worker| while worker.free_last() {});
    }
}

/// Allocates a block of a random order and keeps it. Returns its number of units.
fn allocate(worker: &mut Worker<'_>, mix: Mix) -> u64 {
    let order = mix.draw(worker);
    u64::from(worker.hold(order)) << order
}

impl Mix {
    fn draw(self, worker: &mut Worker<'_>) -> u32 {
        let most = worker.largest_of_mix();
        match self {
            Self::Uniform(max) => worker.random.u32(..=max.min(most)),
            Self::Geometric(max) => loop {
                let order = worker.random.u32(..).trailing_zeros();
                if order <= max.min(most) {
                    return order;
                }
            },
        }
    }
}
