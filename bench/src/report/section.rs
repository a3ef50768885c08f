//! Groups the rows of a record by workload, for the page's charts, tables and summary.

use crate::row::Row;
use crate::suite::report::FOOTER;
use crate::suite::workloads::{WORKLOADS, Workload};
use crate::table::{bytes, thread_count};
use crate::verdict::Verdict;

/// The rows of a workload.
pub struct Section<'a> {
    pub workload: &'a str,
    pub kind: &'a str,
    pub variants: Vec<Variant<'a>>,
}

/// The rows of a part of a workload at one size of block.
pub struct Variant<'a> {
    /// Its label, such as "alloc, 4 KiB".
    pub label: String,
    /// The numbers of threads, ascending.
    pub threads: Vec<usize>,
    pub lines: Vec<Line<'a>>,
}

/// The rows of an allocator.
pub struct Line<'a> {
    pub name: &'a str,
    /// The rows, by number of threads.
    pub entries: Vec<Option<&'a Row>>,
}

impl Variant<'_> {
    /// Returns the numbers of threads for readers, marked where there were fewer processors.
    pub fn places(&self) -> Vec<String> {
        let place = |(place, threads): (usize, &usize)| {
            let rows = self.lines.iter().filter_map(|line| line.entries[place]);
            rows.max_by_key(|row| row.is_crowded()).map_or(threads.to_string(), thread_count)
        };
        self.threads.iter().enumerate().map(place).collect()
    }
}

impl<'a> Line<'a> {
    /// Returns the row with the most threads.
    pub fn last(&self) -> Option<&'a Row> {
        self.entries.last().copied().flatten()
    }
}

/// Returns the allocators that the summaries of a kind are about: those of this project, each of which is compared with
/// its equals. The first is the one that is drawn as ours.
pub fn subjects(kind: &str) -> &'static [&'static str] {
    match kind {
        "backend" => &["nbbs", "nbbs-cached"],
        "heap" => &["nbbs-heap"],
        "pool" => &["nbbs-pool"],
        _ => &[],
    }
}

/// Returns the allocator that the figures of a kind are about: this project's, if it has one of that kind.
pub fn subject(kind: &str) -> Option<&'static str> {
    subjects(kind).first().copied()
}

/// Returns whether an allocator is of this project. All of its ways to be used are named after it, and none is a rival
/// of another.
pub fn is_ours(name: &str) -> bool {
    name == "nbbs" || name.starts_with("nbbs-") || name.starts_with("nbbs ")
}

/// The name of a loop without allocations, which is not a rival.
pub const FLOOR: &str = "nothing";

/// The name of this project called through its C interface, which is the same allocator.
pub const BY_C: &str = "nbbs-c";

/// Returns whether it is fair to compare the subject with that allocator.
pub fn is_rival(subject: &str, name: &str) -> bool {
    name != subject && name != FLOOR && !is_ours(name)
}

/// Returns the sections, in the order of the record.
pub fn sections(entries: &[Row]) -> Vec<Section<'_>> {
    let names = distinct(entries.iter().map(|entry| (&*entry.workload, &*entry.kind)));
    let section = |(workload, kind): (&'_ str, &'_ str)| {
        let of_it = |entry: &&Row| entry.workload == workload && entry.kind == kind;
        let rows: Vec<&Row> = entries.iter().filter(of_it).collect();
        let (workload, kind) = (&*rows[0].workload, &*rows[0].kind);
        Section { workload, kind, variants: variants(&rows) }
    };
    names.into_iter().map(section).collect()
}

impl Section<'_> {
    /// Returns the workload, if this build knows it.
    pub fn known(&self) -> Option<&'static Workload> {
        WORKLOADS.iter().find(|known| known.name == self.workload)
    }

    /// Returns what the workload does, and how to read its figures.
    pub fn about(&self) -> Option<String> {
        let known = self.known()?;
        // The usual footer is not repeated here.
        let own = (known.footer != FOOTER).then(|| format!(". {}", known.footer));
        Some(known.about.to_owned() + &own.unwrap_or_default())
    }

    /// Iterates over all measured cases.
    pub fn cases(&self) -> impl Iterator<Item = Together<'_>> {
        self.variants.iter().flat_map(|variant| {
            variant.threads.iter().enumerate().map(move |(place, &threads)| {
                let entries = variant.lines.iter().filter_map(|line| line.entries[place]);
                Together { variant, threads, entries: entries.collect() }
            })
        })
    }
}

/// All allocators that were measured at one case.
pub struct Together<'a> {
    pub variant: &'a Variant<'a>,
    pub threads: usize,
    pub entries: Vec<&'a Row>,
}

impl<'a> Together<'a> {
    /// Returns the row of that allocator, if it was found correct.
    pub fn of(&self, name: &str) -> Option<(&'a Row, f64)> {
        let entry = *self.entries.iter().find(|entry| entry.allocator == name)?;
        Some((entry, entry.ns_per_op?))
    }

    /// Returns the fastest of the safe rivals; those with private caches only count if `caches` is set.
    pub fn best_rival(&self, subject: &str, caches: bool) -> Option<(&'a Row, f64)> {
        self.rivals(subject, caches).min_by(|one, other| one.1.total_cmp(&other.1))
    }

    /// Iterates over the safe rivals with their times: unless `caches` is set, only those that keep no free blocks for
    /// each thread.
    fn rivals(&self, subject: &str, caches: bool) -> impl Iterator<Item = (&'a Row, f64)> {
        let is_rival = move |entry: &&&Row| {
            let may_cache = caches || !entry.private_caches;
            is_rival(subject, &entry.allocator) && entry.safe && may_cache
        };
        let rivals = self.entries.iter().filter(is_rival);
        rivals.filter_map(|&entry| Some((entry, entry.ns_per_op?)))
    }

    /// Compares the subject with all rivals: faster than each, slower than one, or neither beyond the spread of the
    /// rounds.
    pub fn verdict(&self, subject: &str, caches: bool) -> Option<Verdict> {
        let (ours, _) = self.of(subject)?;
        let verdicts = self.rivals(subject, caches).map(|(rival, _)| Verdict::of(ours, rival));
        verdicts.max()
    }
}

fn variants<'a>(rows: &[&'a Row]) -> Vec<Variant<'a>> {
    let keys = distinct(rows.iter().map(|entry| key(entry)));
    let sizes = distinct(keys.iter().map(|key| key.1)).len();
    let arenas = distinct(keys.iter().map(|key| key.2)).len();
    let variant = |(phase, size, arena): (&'a str, Option<u64>, Option<u64>)| {
        let of_it = |entry: &&&Row| key(entry) == (phase, size, arena);
        let rows: Vec<&Row> = rows.iter().filter(of_it).copied().collect();
        let mut threads = distinct(rows.iter().map(|entry| entry.threads));
        threads.sort_unstable();
        let line = |name: &'a str| {
            let find = |&threads: &usize| {
                let is_it = |entry: &&&Row| (&*entry.allocator, entry.threads) == (name, threads);
                rows.iter().find(is_it).copied()
            };
            Line { name, entries: threads.iter().map(find).collect() }
        };
        let names = distinct(rows.iter().map(|entry| &*entry.allocator));
        let size = size.filter(|_| sizes > 1).map(bytes);
        let arena = arena.filter(|_| arenas > 1).map(|arena| format!("arena of {}", bytes(arena)));
        let phase = Some(phase.to_owned()).filter(|phase| !phase.is_empty());
        let label = [phase, size, arena].into_iter().flatten().collect::<Vec<_>>().join(", ");
        Variant { label, threads: threads.clone(), lines: names.into_iter().map(line).collect() }
    };
    keys.into_iter().map(variant).collect()
}

/// Returns what distinguishes one variant of a workload from another.
fn key(entry: &Row) -> (&str, Option<u64>, Option<u64>) {
    (&entry.phase, entry.size_bytes, entry.arena_bytes)
}

/// Returns each value once, in the order of first occurrence.
pub fn distinct<T: PartialEq>(things: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for thing in things {
        if !distinct.contains(&thing) {
            distinct.push(thing);
        }
    }
    distinct
}

#[cfg(test)]
mod tests {
    use super::{is_rival, subjects};
    use crate::market::{CONTENDERS, HEAPS, POOLS};
    use crate::pool;

    /// Whoever adds a way to use this project's allocators must not make it a rival of the others.
    #[test]
    fn nothing_of_this_project_is_a_rival_and_all_else_is() {
        for contender in CONTENDERS.iter().chain(POOLS).chain(HEAPS) {
            let others = !contender.source.starts_with("this project");
            assert_eq!(is_rival("nbbs", contender.name), others, "{}", contender.name);
        }
        for contender in pool::CONTENDERS {
            let others = !contender.name.starts_with("nbbs") && contender.name != "nothing";
            assert_eq!(is_rival("nbbs-pool", contender.name), others, "{}", contender.name);
        }
        let subjects = ["backend", "heap", "pool"].map(subjects).concat();
        assert!(subjects.iter().all(|subject| subjects.iter().all(|one| !is_rival(subject, one))));
    }
}
