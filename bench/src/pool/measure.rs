//! Measures all contenders, case by case.

use std::time::Duration;

use super::course::ObjectPlan;
use super::row::row;
use super::{CONTENDERS, Contender, ObjectCase};
use crate::clock::Clock;
use crate::output::{Output, in_turn};
use crate::suite::args::Suite;
use crate::suite::report;
use crate::suite::workloads::{Cases, Workload};

/// What `bench pool` measures.
pub const CASES: Cases = Cases {
    steps,
    run,
    allocators: |_| CONTENDERS.iter().map(|contender| contender.name).collect(),
    runs_on: "pools",
    options: &["--duration", "--rounds", "--cases", "--pairs"],
    left_out: |_, args| Ok(left_out(args)),
};

fn steps(workload: &Workload, args: &Suite) -> usize {
    plans(workload, args).map(|plan| contenders(args, &plan).count() * args.rounds(workload)).sum()
}

/// Runs the contenders in turn, round by round: a disturbance hits all of them.
fn run(workload: &Workload, args: &Suite, _: &Clock, output: &mut Output) -> anyhow::Result<()> {
    let mut all = Vec::new();
    for plan in plans(workload, args) {
        output.bar.set_message(format!("pool, {}, {} threads", plan.case.name(), plan.threads));
        let able: Vec<_> = contenders(args, &plan).collect();
        let run = |contender: &&Contender| (contender.run)(&plan);
        let figures = in_turn(&able, args.rounds(workload), &output.bar, run);
        let rows: Vec<_> = able
            .iter()
            .zip(&figures)
            .map(|(contender, rounds)| row(contender, &plan, rounds))
            .collect();
        output.add(&rows)?;
        all.extend(rows);
    }
    output.print(|| report::table(workload, &all))
}

/// Returns a plan for each case and number of threads.
fn plans(workload: &Workload, args: &Suite) -> impl Iterator<Item = ObjectPlan> {
    let (usual_pairs, bulk) =
        if args.quick { (20_000_000, 100_000) } else { (50_000_000, 1_000_000) };
    let pairs = args.objects.pairs.unwrap_or(usual_pairs);
    let most = Duration::from_secs_f64(args.duration());
    let of_case = move |&case: &ObjectCase| {
        let threads = args.threads(workload).into_iter();
        threads.map(move |threads| ObjectPlan { case, threads, pairs, most, bulk })
    };
    args.objects.cases().iter().flat_map(of_case)
}

/// Returns the contenders that can run the plan, of those that were asked for.
fn contenders(args: &Suite, plan: &ObjectPlan) -> impl Iterator<Item = &'static Contender> {
    let alone = plan.threads == 1 && plan.case != ObjectCase::Handover;
    let is_possible = plan.is_possible();
    CONTENDERS.iter().filter(move |contender| {
        args.takes_part(contender.name) && is_possible && (contender.shared || alone)
    })
}

/// Returns the numbers of threads that were asked for and that a case, or an allocator asked for, cannot have.
fn left_out(args: &Suite) -> Vec<String> {
    let mut left_out = Vec::new();
    let handed = args.objects.cases().contains(&ObjectCase::Handover);
    for &threads in &args.threads {
        if handed && !threads.is_multiple_of(2) {
            left_out.push(format!("pool: handover takes an even number of threads, not {threads}"));
        }
    }
    let is_named =
        |contender: &&Contender| args.allocators.iter().any(|name| name == contender.name);
    for contender in CONTENDERS.iter().filter(is_named).filter(|contender| !contender.shared) {
        let name = contender.name;
        let more = args.threads.iter().filter(|&&threads| threads > 1);
        left_out
            .extend(more.map(|threads| format!("pool: {name} runs on 1 thread, not {threads}")));
        if handed && args.objects.has_cases() {
            left_out.push(format!("pool: {name} runs on 1 thread, and handover takes 2"));
        }
    }
    left_out
}
