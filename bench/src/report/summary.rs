//! Summarises which allocator wins where, and by what factor.

use super::section::{Section, Together, distinct, is_rival, subjects};
use crate::row::Row;
use crate::table::thread_count;
use crate::verdict::Verdict;

/// The factor up to which means have no colour, and losses are not listed.
pub const EVEN: f64 = 1.05;

/// The summary of one of this project's allocators beside all others of its kind.
pub struct Summary {
    pub kind: String,
    pub subject: &'static str,
    /// Whether it keeps free blocks for each thread. If it does not, neither do the rivals in the counts and factors.
    pub caches: bool,
    /// The numbers of cases: faster than every safe rival; neither faster nor slower beyond the spread of the rounds;
    /// slower than one.
    pub faster: usize,
    pub undecided: usize,
    pub slower: usize,
    /// The geometric means over the cases with the fewest threads and with the most.
    pub fewest: Option<(usize, Factor)>,
    pub most: Option<(String, Factor)>,
    /// The numbers of threads, marked where there were fewer processors.
    pub threads: Vec<String>,
    /// For each workload, the factor at each number of threads.
    pub matrix: Vec<(String, Vec<Option<Factor>>)>,
    pub rivals: Vec<Rival>,
    /// The cases in which a safe allocator is faster, with or without private caches. The worst come first.
    pub losses: Vec<Loss>,
}

/// The factor by which the other allocator takes longer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factor(pub f64);

/// A rival: one allocator beside the subject, over all cases that both have.
pub struct Rival {
    pub name: String,
    pub safe: bool,
    pub private_caches: bool,
    pub cases: usize,
    /// The number of cases in which it is slower, beyond the spread of the rounds.
    pub slower: usize,
    pub mean: Factor,
    /// The smallest factor and the largest.
    pub range: String,
}

/// A case in which another allocator is faster.
pub struct Loss {
    pub case: String,
    pub threads: String,
    pub rival: String,
    pub rival_ns: f64,
    pub subject_ns: f64,
    pub factor: Factor,
    /// Whether one of the two is noisy, or their rounds overlap or are too few.
    pub unsure: bool,
}

/// Returns a summary for each of this project's allocators that was measured beside others.
pub fn summaries(sections: &[Section<'_>]) -> Vec<Summary> {
    let kinds = distinct(sections.iter().map(|section| section.kind));
    let pairs = kinds.iter().flat_map(|&kind| subjects(kind).iter().map(move |&one| (kind, one)));
    pairs.filter_map(|(kind, subject)| summary(kind, subject, sections)).collect()
}

fn summary(kind: &str, subject: &'static str, sections: &[Section<'_>]) -> Option<Summary> {
    let sections: Vec<&Section<'_>> =
        sections.iter().filter(|section| section.kind == kind && is_timed(section)).collect();
    let cases: Vec<(&Section<'_>, Together<'_>)> = sections
        .iter()
        .flat_map(|&section| section.cases().map(move |case| (section, case)))
        .filter(|(_, case)| case.of(subject).is_some())
        .collect();
    let mut threads = distinct(cases.iter().map(|(_, case)| case.threads));
    threads.sort_unstable();
    let verdict = |case: &Together<'_>| {
        let (ours, _) = case.of(subject)?;
        case.verdict(subject, ours.private_caches)
    };
    let verdicts: Vec<Verdict> = cases.iter().filter_map(|(_, case)| verdict(case)).collect();
    let count = |verdict| verdicts.iter().filter(|&&one| one == verdict).count();
    let at = |threads: usize| {
        let at = cases.iter().filter(|(_, case)| case.threads == threads);
        mean(at.filter_map(|(_, case)| factor(case, subject))).map(|factor| (threads, factor))
    };
    let row = |section: &&Section<'_>| {
        let cell = |&threads: &usize| {
            let cases = section.cases().filter(|case| case.threads == threads);
            mean(cases.filter_map(|case| factor(&case, subject)))
        };
        (section.workload.to_owned(), threads.iter().map(cell).collect())
    };
    let place = |&threads: &usize| {
        let mut rows = cases.iter().filter_map(|(_, case)| Some(case.of(subject)?.0));
        rows.find(|row| row.threads == threads).map_or(threads.to_string(), thread_count)
    };
    let is_told = |(_, cells): &(String, Vec<Option<Factor>>)| cells.iter().any(Option::is_some);
    let matrix = sections.iter().map(row).filter(is_told).collect();
    (!verdicts.is_empty()).then(|| Summary {
        kind: kind.to_owned(),
        subject,
        caches: cases
            .iter()
            .any(|(_, case)| case.of(subject).is_some_and(|(ours, _)| ours.private_caches)),
        faster: count(Verdict::Faster),
        undecided: count(Verdict::Undecided),
        slower: count(Verdict::Slower),
        fewest: threads.first().and_then(|&threads| at(threads)),
        most: threads.last().and_then(|threads| Some((place(threads), at(*threads)?.1))),
        matrix,
        rivals: rivals(&cases, subject),
        losses: losses(&cases, subject),
        threads: threads.iter().map(place).collect(),
    })
}

/// Returns whether a workload is judged by time per operation. Workloads with a suspended thread are judged by what the
/// others notice, and those that fill a heap by how full it gets.
fn is_timed(section: &Section<'_>) -> bool {
    let others = ["baseline_p999_ns", "efficiency_percent"];
    let is_other = |row: &Row| others.iter().any(|figure| row.figure(figure).is_some());
    !section.cases().any(|case| case.entries.iter().any(|row| is_other(row)))
}

/// Returns the time of the best safe rival beside that of the subject. Rivals with private caches only count if the
/// subject has some.
fn factor(case: &Together<'_>, subject: &str) -> Option<f64> {
    let (ours, ns) = case.of(subject)?;
    let (_, rival) = case.best_rival(subject, ours.private_caches)?;
    Some(rival / ns)
}

fn rivals(cases: &[(&Section<'_>, Together<'_>)], subject: &str) -> Vec<Rival> {
    let everyone = cases.iter().flat_map(|(_, case)| case.entries.iter().copied());
    let names = distinct(everyone.map(|entry| &*entry.allocator));
    let rival = |name: &str| {
        let pair = |(_, case): &(&Section<'_>, Together<'_>)| {
            let ((entry, ns), (ours, our_ns)) = (case.of(name)?, case.of(subject)?);
            Some((entry.clone(), ns / our_ns, Verdict::of(ours, entry)))
        };
        let pairs: Vec<(Row, f64, Verdict)> = cases.iter().filter_map(pair).collect();
        let (first, factors) = (&pairs.first()?.0, || pairs.iter().map(|pair| pair.1));
        Some(Rival {
            name: name.to_owned(),
            safe: first.safe,
            private_caches: first.private_caches,
            cases: pairs.len(),
            slower: pairs.iter().filter(|pair| pair.2 == Verdict::Faster).count(),
            mean: mean(factors())?,
            range: range(factors()),
        })
    };
    let names = names.into_iter().filter(|&name| is_rival(subject, name));
    let mut rivals: Vec<Rival> = names.filter_map(rival).collect();
    rivals.sort_by(|one, other| one.mean.0.total_cmp(&other.mean.0));
    rivals
}

fn losses(cases: &[(&Section<'_>, Together<'_>)], subject: &str) -> Vec<Loss> {
    let loss = |(section, case): &(&Section<'_>, Together<'_>)| {
        let ((ours, subject_ns), (rival, rival_ns)) =
            (case.of(subject)?, case.best_rival(subject, true)?);
        let factor = Factor(rival_ns / subject_ns);
        let case_name = [section.workload, &case.variant.label].map(str::to_owned);
        let is_named = |name: &&String| !name.is_empty();
        (factor.0 <= 1.0 / EVEN).then(|| Loss {
            case: case_name.iter().filter(is_named).cloned().collect::<Vec<_>>().join(": "),
            threads: thread_count(ours),
            rival: rival.label(),
            rival_ns,
            subject_ns,
            factor,
            unsure: ours.noisy || rival.noisy || Verdict::of(ours, rival) == Verdict::Undecided,
        })
    };
    let mut losses: Vec<Loss> = cases.iter().filter_map(loss).collect();
    losses.sort_by(|one, other| one.factor.0.total_cmp(&other.factor.0));
    losses
}

fn range(factors: impl Iterator<Item = f64> + Clone) -> String {
    let least = Factor(factors.clone().fold(f64::MAX, f64::min)).to_string();
    let most = Factor(factors.fold(0.0, f64::max));
    format!("{} to {most}", least.trim_end_matches(" ×"))
}

/// Returns the geometric mean, if there are any factors.
fn mean(factors: impl Iterator<Item = f64>) -> Option<Factor> {
    let logarithms: Vec<f64> =
        factors.filter(|&factor| factor > 0.0 && factor.is_finite()).map(f64::ln).collect();
    let sum: f64 = logarithms.iter().sum();
    (!logarithms.is_empty()).then(|| Factor((sum / logarithms.len() as f64).exp()))
}

impl Factor {
    /// Returns the class in the page's style, such as "faster", "even" or "slower".
    pub fn class(self) -> &'static str {
        match self.0 {
            _ if self.0 >= 10.0 => "much faster",
            _ if self.0 >= EVEN => "faster",
            _ if self.0 > 1.0 / EVEN => "even",
            _ => "slower",
        }
    }
}

impl std::fmt::Display for Factor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            factor if factor < 0.995 => write!(f, "{factor:.2} ×"),
            factor if factor < 9.95 => write!(f, "{factor:.1} ×"),
            factor => write!(f, "{factor:.0} ×"),
        }
    }
}
