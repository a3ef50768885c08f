//! Two arenas of nbbs behind one handle.

use std::ops::Range;
use std::sync::Arc;

use nbbs::{AllocError, Request, Zone, Zones};
use testkit::program::{Arena, Ask, Held, No, within};
use testkit::{BackEnd, Oracle, Violation};

use crate::call::{Answer, Call, Cost};
use crate::places::{Ledger, Places};
use crate::system::{System, audit, cost, freed, look};
use crate::word::{Past, Stepped};

/// The memory of two zones: one of 64 units, and one of the rest behind them.
pub struct TwoZones {
    zones: [(u64, Arena<Stepped>, Arc<Places>); 2],
}

impl TwoZones {
    /// Creates zones of `units` units in all.
    pub fn of(units: u64) -> Self {
        let zone = |base, units| (base, Arena::new(units), Places::of(units));
        Self { zones: [zone(0, 64), zone(64, units - 64)] }
    }

    /// Lends the zones as a system.
    pub fn visit(&self, visit: &mut dyn FnMut(&dyn System)) {
        let zone = |number: usize| {
            let (base, arena, _) = &self.zones[number];
            Zone { base: *base, buddy: arena.buddy() }
        };
        let zones = [zone(0), zone(1)];
        let all = Zones::new(&zones).expect("they do not overlap");
        visit(&Lent { memory: self, zones: all });
    }
}

/// Zones of which even lanes prefer the first, and odd lanes the second.
struct Lent<'a> {
    memory: &'a TwoZones,
    zones: Zones<'a, Stepped>,
}

impl Lent<'_> {
    fn on(&self, lane: usize) -> (Zones<'_, Stepped>, [usize; 2]) {
        (self.zones.on(lane), [lane % 2, 1 - lane % 2])
    }
}

impl BackEnd for Lent<'_> {
    fn units(&self) -> u64 {
        self.zones.zones().iter().map(|zone| zone.buddy.units()).sum()
    }

    fn max_order(&self) -> u32 {
        self.zones.zones().iter().map(|zone| zone.buddy.max_order()).max().unwrap_or(0)
    }

    fn metadata_bytes(&self) -> usize {
        self.zones.zones().iter().map(|zone| zone.buddy.metadata_bytes()).sum()
    }

    fn alloc(&self, lane: usize, order: u32) -> Option<u64> {
        let (zones, preference) = self.on(lane);
        zones.alloc(&preference, order).ok()
    }

    fn free(&self, lane: usize, index: u64, order: u32) -> Result<(), String> {
        self.on(lane).0.free_sized(index, order).map_err(|error| error.to_string())
    }

    fn offers_runs(&self) -> bool {
        true
    }

    fn ask(&self, lane: usize, ask: Ask<'_>) -> Result<u64, No> {
        let (zones, preference) = self.on(lane);
        match ask {
            Ask::Units(units) => {
                zones.request(&preference, Request::units(units)).map_err(No::from)
            }
            Ask::At(Held { index, len }) => zones.alloc_at(index, len).map_err(No::from),
            Ask::Within(units, order, range, top_down) => {
                zones.request(&preference, within(units, order, range, top_down)).map_err(No::from)
            }
            Ask::Free(Held { index, len }) => {
                zones.free_units(index, len).map(|()| index).map_err(|_| No::Wrong)
            }
            Ask::Shrink(held, units) => {
                zones.shrink(held.index, units).map(|()| 0).map_err(No::from)
            }
            Ask::Grow(held, units) => zones.grow(held.index, units).map(|()| 0).map_err(No::from),
            Ask::SplitOff(held, units) => zones.split_off(held.index, units).map_err(No::from),
            Ask::Split(held, order) => zones.split(held.index, order).map(|()| 0).map_err(No::from),
            Ask::FreePart(held, part) => {
                zones.free_part(held.index, part).map(|()| 0).map_err(No::from)
            }
            Ask::Batch(order, blocks) => match zones.alloc_batch(&preference, order, blocks) {
                Ok(count) => {
                    blocks.truncate(count);
                    Ok(0)
                }
                Err(AllocError::Exhausted { .. }) => Err(No::Exhausted),
                Err(_) => Err(No::Wrong),
            },
            Ask::FreeBatch(order, blocks) => {
                zones.free_batch(order, blocks).map(|()| 0).map_err(|_| No::Wrong)
            }
        }
    }
}

impl System for Lent<'_> {
    fn extra(&self, lane: usize, call: &Call) -> Answer {
        match call {
            Call::Free(held) => freed(*held, self.on(lane).0.free(held.index)),
            Call::Look(op) => {
                self.zones.zones().iter().for_each(|zone| look(&zone.buddy, op));
                Answer::Yes(0)
            }
            _ => Answer::No(No::NotOffered),
        }
    }

    fn cost(&self, _oracle: &Oracle, call: &Call, past: &Past) -> Cost {
        let mut ledger = Ledger::default();
        for (base, arena, places) in &self.memory.zones {
            places.enter(arena, *base, &past.changes, &mut ledger);
        }
        cost(call, ledger)
    }

    fn borders(&self) -> Vec<u64> {
        self.zones.zones().iter().map(|zone| zone.base + zone.buddy.units()).collect()
    }

    fn check(&self) -> Result<(), (Violation, Range<u64>)> {
        self.zones.zones().iter().try_for_each(|zone| {
            audit(&zone.buddy).map_err(|(violation, units)| {
                (violation, zone.base + units.start..zone.base + units.end)
            })
        })
    }
}
