//! Two zones: 16 MiB that every device can reach, kept for those who need it, and the rest.

use std::thread;

use nbbs::{Buddy, Metadata, Request, Zone, Zones, metadata_words};

const LOW: u64 = 1 << 12;
const HIGH: u64 = 1 << 14;
static LOW_METADATA: Metadata<{ metadata_words(LOW) }> = Metadata::new();
static HIGH_METADATA: Metadata<{ metadata_words(HIGH) }> = Metadata::new();

/// Orders of preference.
const ANYWHERE: [usize; 2] = [1, 0];
const REACHABLE: [usize; 1] = [0];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let zones = [
        Zone { base: 0, buddy: Buddy::new(LOW_METADATA.words(), LOW)? },
        Zone { base: LOW, buddy: Buddy::new(HIGH_METADATA.words(), HIGH)? },
    ];
    let zones = Zones::new(&zones)?;

    let ring = zones.request(&REACHABLE, Request::units(20).aligned(2))?;
    assert_eq!(zones.zone_of(ring), Some(0));
    let blocks = thread::scope(|scope| {
        let worker =
            || scope.spawn(|| (0..5).filter_map(|_| zones.alloc(&ANYWHERE, 11).ok()).collect());
        let workers: [_; 2] = [worker(), worker()];
        workers.map(|worker| worker.join().unwrap_or_else(|_| Vec::new())).concat()
    });
    // Eight from the large zone, and one from what the small one has left.
    assert_eq!(blocks.len(), 9);
    for (number, zone) in zones.zones().iter().enumerate() {
        let stats = zone.buddy.stats();
        println!("zone {number}: {} of {} units in use", stats.used_units, stats.units);
    }
    for block in blocks {
        zones.free(block)?;
    }
    zones.free(ring)?;
    assert!(zones.zones().iter().all(|zone| zone.buddy.stats().used_units == 0));
    Ok(())
}
