//! What was asked for and has no effect: allocators, numbers of threads and options that no workload takes.

use super::args::Suite;
use super::workloads::{Orders, Run, Workload};
use crate::market::{Kind, find};
use crate::{pool, table};

/// Returns the allocators, workloads and numbers of threads that are left out, with the reasons.
pub fn without_part(args: &Suite) -> Vec<String> {
    let workloads: Vec<_> = args.workloads().collect();
    let idle = |name: &&String| !workloads.iter().any(|workload| takes_part(workload, name, args));
    let mut left_out: Vec<String> =
        args.allocators.iter().filter(idle).map(|name| nowhere(name, args)).collect();
    let any_takes_part = left_out.len() < args.allocators.len();
    for workload in workloads {
        let empty = !args.allocators.iter().any(|name| takes_part(workload, name, args));
        if any_takes_part && empty && args.names(workload) {
            let (name, runs_on) = (workload.name, runs_on(workload));
            left_out.push(format!("{name} runs on {runs_on}, and none of them was asked for"));
        }
        let (least, most) = workload.threads;
        for &threads in args.threads.iter().filter(|threads| !(least..=most).contains(threads)) {
            let (bound, limit) = if threads < least { ("least", least) } else { ("most", most) };
            let limit = table::threads(limit);
            left_out.push(format!("{} runs on at {bound} {limit}, not {threads}", workload.name));
        }
    }
    left_out
}

/// Returns the options that are left out, with the workloads on which they have no effect.
pub fn without_effect(args: &Suite) -> Vec<String> {
    let asked = |kind| !args.contenders(kind).is_empty();
    let name = |workload: &Workload, option| match takes(workload, option, |_| true) {
        true => format!("{} with these allocators", workload.name),
        false => workload.name.to_owned(),
    };
    let told = |option: &'static str| {
        let (takes, ignores): (Vec<&Workload>, Vec<&Workload>) =
            args.workloads().partition(|workload| takes(workload, option, asked));
        // What only `all` asks for takes what it can.
        let named = ignores.iter().filter(|workload| args.names(workload));
        let mut names: Vec<String> = named.map(|workload| name(workload, option)).collect();
        if takes.is_empty() && names.len() < ignores.len() {
            names = vec!["any workload of `all`".to_owned()];
        }
        (!names.is_empty())
            .then(|| format!("{option}, which has no effect on {}", names.join(", ")))
    };
    options(args)
        .into_iter()
        .filter(|(_, given)| *given)
        .filter_map(|(option, _)| told(option))
        .collect()
}

/// Returns the options that some workloads do not take, and whether they are on the command line.
fn options(args: &Suite) -> [(&'static str, bool); 16] {
    [
        ("--orders", !args.orders.is_empty()),
        ("--sizes", !args.sizes.is_empty()),
        ("--arena", !args.arena.is_empty()),
        ("--heap", args.heap.is_some()),
        ("--traces", !args.traces.is_empty()),
        ("--heap-trace", args.heap_trace.is_some()),
        ("--duration", args.duration.is_some()),
        ("--rounds", args.rounds.is_some()),
        ("--instructions", args.instructions),
        ("--cases", args.objects.has_cases()),
        ("--pairs", args.objects.pairs.is_some()),
        ("--fills", !args.limit.fills.is_empty()),
        ("--loops", !args.cores.loops.is_empty()),
        ("--machine", args.cores.machine.is_some()),
        ("--long", args.cores.long),
        ("--check", args.cores.check),
    ]
}

/// Returns whether an option has an effect on a workload, with allocators of the kinds that were asked for.
fn takes(workload: &Workload, option: &str, asked: impl Fn(Kind) -> bool) -> bool {
    if let Run::Cases(cases) = workload.run {
        return cases.options.contains(&option);
    }
    let runs_on = |kind: Kind| workload.kinds.contains(&kind) && asked(kind);
    let by_operations = matches!(workload.run, Run::Blocks(_) | Run::Heap(_) | Run::Pages(_));
    match option {
        "--orders" => workload.orders == Orders::Asked && runs_on(Kind::BackEnd),
        "--sizes" => workload.orders == Orders::Asked && runs_on(Kind::Heap),
        "--arena" => runs_on(Kind::BackEnd),
        "--heap" => runs_on(Kind::Heap),
        "--traces" => workload.traces.is_some() && runs_on(Kind::BackEnd),
        "--heap-trace" => workload.traces.is_some() && runs_on(Kind::Heap),
        // A thread that sleeps takes the time that it takes.
        "--duration" | "--instructions" => by_operations,
        "--rounds" => true,
        _ => false,
    }
}

fn takes_part(workload: &Workload, name: &str, args: &Suite) -> bool {
    match workload.run {
        Run::Cases(cases) => (cases.allocators)(args).contains(&name),
        _ => workload.kinds.iter().any(|&kind| args.market(kind).any(|of| of.name == name)),
    }
}

/// Says why an allocator takes part in nothing.
fn nowhere(name: &str, args: &Suite) -> String {
    let is = match find(name).map(|contender| contender.kind()) {
        Some(Kind::BackEnd) => "a back-end",
        Some(Kind::Heap) => "a heap",
        Some(Kind::Pool) => "a pool",
        None if pool::CONTENDERS.iter().any(|pool| pool.name == name) => "a pool",
        None => "an allocator of `cores`",
    };
    let workloads: Vec<_> = args.workloads().collect();
    match workloads[..] {
        [one] => format!("{name} is {is}, and {} runs on {}", one.name, runs_on(one)),
        _ => format!("{name} is {is}, and none of {} runs on it", args.workloads.join(", ")),
    }
}

/// Returns what a workload runs on, for readers.
fn runs_on(workload: &Workload) -> String {
    if let Run::Cases(cases) = workload.run {
        return cases.runs_on.to_owned();
    }
    let kinds = workload.kinds.iter().map(|kind| match kind {
        Kind::BackEnd => "back-ends",
        Kind::Heap => "heaps",
        Kind::Pool => "pools",
    });
    kinds.collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command};

    use super::{Suite, options, takes};
    use crate::suite::workloads::WORKLOADS;

    /// No option is forgotten, and so ignored without a word.
    #[test]
    fn every_option_is_of_all_workloads_or_of_some() {
        const OF_ALL: [&str; 8] =
            ["threads", "allocators", "quick", "once", "json", "csv", "html", "record"];
        let command = Suite::augment_args(Command::new("bench"));
        let known = options(&Suite::of("fill")).map(|(option, _)| option);
        for name in command.get_arguments().filter_map(|argument| argument.get_long()) {
            let option = format!("--{name}");
            assert!(known.contains(&&*option) != OF_ALL.contains(&name), "{option}");
        }
        for option in known {
            let of = WORKLOADS.iter().filter(|workload| takes(workload, option, |_| true)).count();
            assert!((1..WORKLOADS.len()).contains(&of), "{option}: {of} workloads");
        }
    }
}
