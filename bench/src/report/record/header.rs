//! The header of a run: when, where and how the rows after it were measured.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

use crate::args::command_line;

/// The layout of the records that this command writes.
pub const FORMAT: u32 = 2;

/// The oldest layout that this command reads, in which runs have no end.
const OLDEST: u32 = 1;

/// The first line of a record, and of each further run in it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Header {
    /// The [`FORMAT`] of the command that wrote it.
    pub record: u32,
    /// The time in UTC, as in 2026-11-21T12:00:00Z.
    pub date: String,
    /// The command line.
    pub command: String,
    pub machine: Machine,
    pub versions: Versions,
}

/// The machine on which rows were measured.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Machine {
    pub cpu: String,
    /// The number of logical CPUs, all of which the command may use.
    pub cpus: usize,
    pub memory_bytes: u64,
    /// The operating system, the kernel and the architecture.
    pub system: String,
}

/// The versions of what was measured, and the compiler that built it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Versions {
    pub nbbs: String,
    /// The commit of the sources.
    pub revision: String,
    pub rustc: String,
    /// The crates that contenders of this build come from, with their versions. Records up to 2026-11-28 have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crates: Vec<String>,
}

impl Header {
    /// Returns the header for this machine, this build, this command line and this moment.
    pub fn of_this_run() -> Self {
        Self {
            record: FORMAT,
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            command: format!("nbbs {}", command_line()),
            machine: Machine::this(),
            versions: Versions::this(),
        }
    }

    /// Returns whether this command reads records of a format.
    pub fn reads(format: &Value) -> bool {
        format.as_u64().is_some_and(|format| (OLDEST.into()..=FORMAT.into()).contains(&format))
    }

    /// Returns whether an end follows the rows after it.
    pub fn has_end(&self) -> bool {
        self.record > OLDEST
    }

    /// Returns the day of the date.
    #[cfg(feature = "suite")]
    pub fn day(&self) -> &str {
        self.date.split('T').next().unwrap_or(&self.date)
    }
}

impl Machine {
    /// Returns the size of the memory, for readers.
    #[cfg(feature = "suite")]
    pub fn memory(&self) -> String {
        crate::table::bytes(self.memory_bytes)
    }

    fn this() -> Self {
        let cpu = RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing());
        let system =
            System::new_with_specifics(cpu.with_memory(MemoryRefreshKind::nothing().with_ram()));
        let brand = system.cpus().first().map_or("", |cpu| cpu.brand()).trim();
        let (name, kernel) = (System::name(), System::kernel_version());
        let name = [name, kernel, Some(System::cpu_arch())].map(Option::unwrap_or_default);
        Self {
            cpu: if brand.is_empty() { "unknown" } else { brand }.to_owned(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: system.total_memory(),
            system: name.join(" "),
        }
    }
}

impl Versions {
    /// Returns the versions of this build.
    pub fn this() -> Self {
        Self {
            nbbs: env!("CARGO_PKG_VERSION").to_owned(),
            revision: env!("BUILT_FROM").to_owned(),
            rustc: env!("BUILT_BY").to_owned(),
            crates: env!("BUILT_WITH").split_terminator(", ").map(str::to_owned).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Versions;
    use crate::market::{CONTENDERS, HEAPS};

    /// The build script has a list of its own, which a new contender must not miss.
    #[test]
    fn the_crate_of_each_contender_has_its_version_in_records() {
        let crates = Versions::this().crates;
        let mut named = 0;
        for contender in CONTENDERS.iter().chain(HEAPS) {
            let Some(of) = contender.source.strip_prefix("crate ") else { continue };
            let name = of.split([' ', ',', ':', ';']).next().unwrap();
            let versions =
                crates.iter().filter_map(|one| one.strip_prefix(name)?.strip_prefix(' '));
            assert!(versions.clone().any(|version| version.contains('.')), "{name}: {crates:?}");
            named += 1;
        }
        assert!(named > 0 || !cfg!(feature = "suite"));
    }

    #[test]
    fn records_without_crates_are_read() {
        let old = r#"{"nbbs":"0.1.0","revision":"abcdef","rustc":"rustc 1.95.0"}"#;
        let read: Versions = serde_json::from_str(old).unwrap();
        assert!(read.crates.is_empty());
        assert_eq!(serde_json::to_string(&read).unwrap(), old);
    }
}
