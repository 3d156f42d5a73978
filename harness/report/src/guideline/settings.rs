//! The effect of a setting: the same workload with another batch size or another precision, in the same kind of group.

use std::collections::BTreeMap;

use super::{Evidence, Guideline, Holds, Match, Published, STUDY, agreement, command, held, worded};
use crate::analysis::{Analysis, Cell};
use crate::number;
use crate::quantity::Key;
use crate::stats::RatioVerdict as VariableContent;

const PUBLISHED: Published = Published {
    statement: "Seven small models take 2 to 2.5 times the epoch time of one at batch size 128 (a gain of 2.8 to 3.5×); at batch size 32 the \
                gain is 5.35×. Both under MPS.",
    short: "small ×7 MPS: 5.35× at b32, 2.8 to 3.5× at b128",
    source: STUDY,
};

pub(super) fn guideline(analysis: &Analysis) -> Option<Guideline> {
    let pairs = held(analysis, differing(analysis), |a, b| a.get(Key::ThroughputGain)?.over(b.get(Key::ThroughputGain)?));
    if pairs.is_empty() {
        return None;
    }
    let changed = pairs.iter().filter(|h| matches!(h.said, VariableContent::Better | VariableContent::Worse)).count();
    let holds = if changed > 0 {
        Holds::Yes
    } else if pairs.iter().all(|h| h.said == VariableContent::Same) {
        Holds::No
    } else {
        Holds::Open
    };
    let away = |h: &&super::Held| h.ratio.estimate.ln().abs();
    let most = pairs.iter().max_by(|a, b| away(a).total_cmp(&away(b)))?;
    let gain = |c: &Cell| c.get(Key::ThroughputGain).map_or_else(String::new, number::with_interval);
    let finding = format!(
        "`{}` gains {}, `{}` {}; a difference in {changed} of {}.",
        most.right.name(),
        gain(most.right),
        most.left.name(),
        gain(most.left),
        number::count(pairs.len(), "pair")
    );
    let (statement, finding) = worded(
        holds,
        "Does the batch size or the precision change the gain?",
        "Decide at the batch size and precision you train with.",
        "one represents the other here.",
        finding,
    );
    Some(Guideline {
        id: "settings",
        statement,
        finding,
        agrees: agreement(analysis, holds),
        key: Some(Evidence::between(most.left, most.right, Key::ThroughputGain, most.ratio.clone())),
        tested: format!(
            "throughput gains of groups that differ only in batch size or precision differ by more than {}; Holm-corrected over the pairs",
            number::percent(analysis.campaign.thresholds.relevant_ratio)
        ),
        holds,
        evidence: pairs.iter().map(|h| Evidence::between(h.left, h.right, Key::ThroughputGain, h.ratio.clone())).collect(),
        published: Some(PUBLISHED),
        command: (holds == Holds::Open).then(|| command(analysis)).flatten(),
        summary: false,
    })
}

/// Valid uniform groups of one workload, mode and degree that differ in exactly one of the two settings; the larger batch, or the other
/// precision, on the left.
fn differing(analysis: &Analysis) -> Vec<Match<'_>> {
    let groups: Vec<&Cell> = analysis.groups().filter(|c| c.is_valid() && c.record.is_uniform() && c.record.degree > 1).collect();
    let mut alike = BTreeMap::<(&str, &str, u32, &str), Vec<&Cell>>::new();
    for cell in groups {
        let Some(member) = cell.record.members.first() else { continue };
        let r = &cell.record;
        alike.entry((member.workload.as_str(), r.sharing.as_str(), r.degree, r.after_measured.as_str())).or_default().push(cell);
    }
    let mut found = Vec::new();
    for groups in alike.values() {
        for (a, b) in groups.iter().enumerate().flat_map(|(i, a)| groups[i + 1..].iter().map(move |b| (a, b))) {
            let (Some(x), Some(y)) = (a.record.members.first(), b.record.members.first()) else { continue };
            let mut names: Vec<&String> = x.settings.keys().chain(y.settings.keys()).collect();
            names.sort_unstable();
            names.dedup();
            let other: Vec<&&String> = names.iter().filter(|n| x.settings.get(**n) != y.settings.get(**n)).collect();
            match (x.batch_size == y.batch_size, &other[..]) {
                (false, []) => {
                    let (left, right) = if x.batch_size > y.batch_size { (a, b) } else { (b, a) };
                    found.push(Match { left, right });
                }
                (true, [only]) if only.as_str() == "precision" => found.push(Match { left: b, right: a }),
                _ => {}
            }
        }
    }
    found
}
