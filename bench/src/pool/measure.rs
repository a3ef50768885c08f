//! All contenders on one case.

use super::course::Plan;
use super::row::row;
use super::{Case, Contender};
use crate::suite::row::Row;

/// Everyone in turn, round by round: what disturbs one round disturbs all.
pub fn measure(plan: &Plan, contenders: &[&'static Contender], rounds: usize) -> Vec<Row> {
    let able = |contender: &&&Contender| {
        let alone = plan.threads == 1 && plan.case != Case::Handover;
        plan.is_possible() && (contender.shared || alone)
    };
    let able: Vec<_> = contenders.iter().filter(able).collect();
    let mut figures = vec![Vec::new(); able.len()];
    for _ in 0..rounds {
        for (contender, figures) in able.iter().zip(&mut figures) {
            figures.push((contender.run)(plan));
        }
    }
    able.iter().zip(&figures).map(|(contender, rounds)| row(contender, plan, rounds)).collect()
}
