//! The effect of a setting: the same workload with another batch size or another precision, in the same kind of group.

use std::collections::BTreeMap;

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_quantity::stats::RatioVerdict;
use collo_quantity::{Key, number};

use crate::published::Published;
use crate::rule::pairs::{Match, Pair, Pairs};
use crate::rule::{Claim, Guideline, STUDY, decide, nothing};
use crate::verdict;

const PUBLISHED: Published = Published::new(
    "Seven small models take 2 to 2.5 times the epoch time of one at batch size 128 (a gain of 2.8 to 3.5×); at batch size 32 the \
                gain is 5.35×. Both under MPS.",
    "small ×7 MPS: 5.35× at b32, 2.8 to 3.5× at b128",
    STUDY,
);

pub fn guideline(analysis: &Analysis) -> Option<Guideline> {
    let matches = differing(analysis);
    let varied = Varied::of(matches.iter().map(|m| (m.left, m.right)));
    let pairs = Pairs::of(
        analysis,
        matches,
        |_| Key::ThroughputGain,
        |a, b| a.get(Key::ThroughputGain)?.over(b.get(Key::ThroughputGain)?),
    );
    if pairs.is_unasked() {
        return None;
    }
    let (same, all) = (pairs.how_many(RatioVerdict::Same), pairs.judged.len());
    let changed = pairs.how_many(RatioVerdict::Better) + pairs.how_many(RatioVerdict::Worse);
    let holds = verdict::of_some(changed, same, all - changed - same + pairs.unjudged.len());
    let decided =
        |p: &&Pair| holds != verdict::Holds::Yes || !crate::rule::is_undecided(&p.test) && p.test.verdict != RatioVerdict::Same;
    let away = |p: &Pair| p.ratio.estimate.ln().abs();
    let most = pairs.judged.iter().filter(decided).max_by(|a, b| away(a).total_cmp(&away(b)));
    let gain = |c: &Cell| c.get(Key::ThroughputGain).map_or_else(String::new, number::with_interval);
    let none = if same > 0 { format!(", none in {same}") } else { String::new() };
    let groups = pairs.groups();
    let finding = match most {
        None => nothing(&groups, "the throughput gain", crate::rule::NO_GROUP),
        Some(pair) => format!(
            "`{}` gains {}, `{}` {}; a difference in {changed} of {}{none}.",
            pair.right.name(),
            gain(pair.right),
            pair.left.name(),
            gain(pair.left),
            number::count(all, "pair")
        ),
    };
    let differ = |p: &&Pair| matches!(p.test.verdict, RatioVerdict::Better | RatioVerdict::Worse);
    let decisive = Varied::of(pairs.judged.iter().filter(differ).map(|p| (p.left, p.right)));
    Some(
        Claim {
            id: "settings",
            question: varied.question(),
            advice: format!("Decide at the {} you train with.", decisive.text()),
            otherwise: "one represents the other here.".into(),
            finding,
            holds,
            agrees: verdict::of_figures(analysis, |f| ["gain-small-7-mps", "slowdown-small-7-mps-b128"].contains(&f.id.as_str())),
            key: most.map(|pair| pair.evidence(Key::ThroughputGain).picked_from(all)),
            tested: format!(
                "throughput gains of groups that differ only in {} differ by more than {}; Holm-corrected over the pairs",
                varied.text().replace(" and ", " or "),
                number::percent_as_written(analysis.campaign.thresholds.relevant_ratio)
            ),
            evidence: pairs.evidence(Key::ThroughputGain),
            published: Some(PUBLISHED),
            next: decide(analysis, &groups, pairs.tests(), "workload == \"small\""),
            scope: Some(groups.scope(analysis)),
        }
        .conclude(),
    )
}

/// The settings in which pairs differ.
#[derive(Default)]
struct Varied {
    batch_size: bool,
    precision: bool,
}

impl Varied {
    /// Of pairs that differ in one of the two.
    fn of<'c>(pairs: impl Iterator<Item = (&'c Cell, &'c Cell)>) -> Varied {
        let batch = |c: &Cell| c.record.members.first().and_then(|m| m.batch_size);
        let mut found = Varied::default();
        for (left, right) in pairs {
            let place = if batch(left) == batch(right) { &mut found.precision } else { &mut found.batch_size };
            *place = true;
        }
        found
    }

    fn text(&self) -> &'static str {
        match (self.batch_size, self.precision) {
            (true, true) => "batch size and precision",
            (false, true) => "precision",
            _ => "batch size",
        }
    }

    fn question(&self) -> &'static str {
        match (self.batch_size, self.precision) {
            (true, true) => "Does the batch size or the precision change the gain?",
            (false, true) => "Does the precision change the gain?",
            _ => "Does the batch size change the gain?",
        }
    }
}

/// Uniform groups of one workload, mode and degree that differ in exactly one of the two settings; the larger batch, or the other
/// precision, on the left.
fn differing(analysis: &Analysis) -> Vec<Match<'_>> {
    let groups: Vec<&Cell> = crate::rule::training(analysis).filter(|c| c.record.is_uniform()).collect();
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
