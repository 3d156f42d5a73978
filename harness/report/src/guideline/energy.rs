//! Which sharing mode needs least energy for the same work?

use super::collocate::mode_name;
use super::{
    Agreement, Evidence, Guideline, Holds, Published, STUDY, command, held, how_many, matched, on_a_card, study, worded,
};
use crate::analysis::{Analysis, Cell};
use crate::number;
use crate::quantity::Key;
use crate::stats::{self, RatioVerdict as VariableContent};

const PUBLISHED: Published = Published {
    statement: "MPS draws more power and uses less energy than naive sharing; MIG uses the least energy, at lower power, when the instances \
                fit the workload.",
    short: "MIG least, then MPS, then naive",
    source: STUDY,
};

pub(super) fn guideline(analysis: &Analysis) -> Option<Guideline> {
    if !on_a_card(analysis) {
        return None;
    }
    let threshold = analysis.campaign.thresholds.relevant_ratio;
    // The work is the same on both sides, so the joules of it are compared, not the watts.
    let joules = |a: &Cell, b: &Cell| b.get(Key::EnergyOfSolo)?.over(a.get(Key::EnergyOfSolo)?);
    let mut pairs = held(analysis, matched(analysis, "mig", "mps"), joules);
    pairs.extend(held(analysis, matched(analysis, "mps", "naive"), joules));
    let (less, more) = (how_many(&pairs, VariableContent::Better), how_many(&pairs, VariableContent::Worse));
    let agrees = match (less, more) {
        (1.., 1..) => Agreement::Partly,
        (_, 1..) => Agreement::No,
        (1.., 0) => Agreement::Yes,
        _ => Agreement::Open,
    };
    // What saves most against running in turn, whatever the order of the modes.
    let groups: Vec<&Cell> = analysis.groups().filter(|c| c.is_valid() && c.record.degree > 1).collect();
    let ratios: Vec<_> = groups.iter().map(|c| c.get(Key::EnergyOfSolo).cloned()).collect();
    let saves = stats::compare(&ratios, threshold);
    let saving = groups
        .iter()
        .zip(&saves)
        .filter(|(_, v)| v.as_ref().is_some_and(|v| v.verdict == VariableContent::Worse))
        .map(|(c, _)| *c);
    let best = saving.min_by(|a, b| estimate(a).total_cmp(&estimate(b)));
    let undecided =
        |v: &Option<stats::RatioTest>| v.as_ref().is_none_or(|v| matches!(v.verdict, VariableContent::CannotTell { .. }));
    let holds = match best {
        Some(_) => Holds::Yes,
        None if saves.is_empty() || saves.iter().any(undecided) => Holds::Open,
        None => Holds::No,
    };
    let advice = match best {
        Some(c) if matches!(agrees, Agreement::No | Agreement::Partly) => {
            format!("For energy, choose the mode per workload; `{}` saves most.", c.name())
        }
        Some(c) => format!("Share under {} to save energy.", mode_name(super::family(c))),
        None => String::new(),
    };
    let finding = match best.and_then(|c| Some((c, c.get(Key::EnergyOfSolo)?))) {
        Some((c, q)) => {
            let order = match (pairs.len(), more) {
                (0, _) => String::new(),
                (all, n) => {
                    format!("; the published order is contradicted in {n} of {}", number::count(all, "mode pair"))
                }
            };
            format!("`{}` needs {} of the energy of the same work in turn{order}.", c.name(), number::percent(q.estimate))
        }
        None if super::measured_once(analysis) => super::ONCE.into(),
        None if ratios.iter().all(Option::is_none) => "No group and its baselines have a readable energy counter.".into(),
        None => "No group needs less energy than the same work in turn, beyond the threshold.".into(),
    };
    let (statement, finding) = worded(holds, "Does sharing save energy?", advice, "do not share for that.", finding);
    Some(Guideline {
        id: "least-energy",
        statement,
        finding,
        agrees,
        key: best.and_then(|c| Evidence::of(c, Key::EnergyOfSolo)),
        tested: format!(
            "joules ÷ those of the same work in turn, the board's counter: below 1 by more than {0} in some group, Holm-corrected over the \
             groups. Agreement: MIG not above MPS, and MPS not above naive, by more than {0}, and below somewhere; Holm-corrected over \
             the pairs",
            number::percent(threshold)
        ),
        holds,
        evidence: groups.iter().filter_map(|c| Evidence::of(c, Key::EnergyOfSolo)).collect(),
        published: Some(PUBLISHED),
        command: (holds == Holds::Open)
            .then(|| if pairs.is_empty() { Some(study("workload == \"small\"")) } else { command(analysis) })
            .flatten(),
        summary: false,
    })
}

fn estimate(cell: &Cell) -> f64 {
    cell.get(Key::EnergyOfSolo).map_or(f64::INFINITY, |q| q.estimate)
}
