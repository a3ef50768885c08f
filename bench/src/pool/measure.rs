//! All contenders on one case.

use indicatif::ProgressBar;

use super::course::Plan;
use super::row::row;
use super::{Case, Contender};
use crate::output::in_turn;
use crate::row::Row;

/// Everyone in turn, round by round: what disturbs one round disturbs all.
pub fn measure(plan: &Plan, contenders: &[&'static Contender], rounds: usize) -> Vec<Row> {
    let able = |contender: &&&Contender| {
        let alone = plan.threads == 1 && plan.case != Case::Handover;
        plan.is_possible() && (contender.shared || alone)
    };
    let able: Vec<_> = contenders.iter().filter(able).collect();
    let figures = in_turn(&able, rounds, &ProgressBar::hidden(), |contender| (contender.run)(plan));
    able.iter().zip(&figures).map(|(contender, rounds)| row(contender, plan, rounds)).collect()
}
