//! What the operating system sees of a range of addresses.

use std::ops::Range;

use procfs::process::Process;

/// What is seen, as bytes and counts.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The bytes that are backed by memory, or swapped out: what the range costs.
    pub resident: u64,
    /// The bytes of these that are in huge pages.
    pub huge: u64,
    /// The page faults of the process so far.
    pub faults: u64,
    /// The stretches that the system keeps apart because their access rights differ.
    pub mappings: usize,
}

impl Seen {
    /// Returns what is seen now.
    pub fn of(addresses: Range<usize>) -> anyhow::Result<Self> {
        let process = Process::myself()?;
        let maps = process.smaps()?;
        let range = addresses.start as u64..addresses.end as u64;
        let mut seen = Self { resident: 0, huge: 0, faults: process.stat()?.minflt, mappings: 0 };
        for map in maps.into_iter().filter(|map| range.contains(&map.address.0)) {
            let figure = |name| map.extension.map.get(name).copied().unwrap_or(0);
            seen.resident += figure("Rss") + figure("Swap");
            seen.huge += figure("AnonHugePages");
            seen.mappings += 1;
        }
        Ok(seen)
    }

    /// Returns the same, with the page faults since `before`.
    pub fn since(self, before: &Self) -> Self {
        Self { faults: self.faults - before.faults, ..self }
    }
}
