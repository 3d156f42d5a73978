//! Which sharing mode gives most throughput? Compares groups of the same members under two modes.

use collo_analysis::campaign::Analysis;
use collo_quantity::{Key, number};

use crate::published::Published;
use crate::rule::pairs::{Pairs, corrected_together};
use crate::rule::{Claim, Guideline, STUDY, decide, nothing, on_a_card};
use crate::verdict::{self, Holds};

const PUBLISHED: Published = Published::new(
    "MPS performs best across the board; MIG is sub-optimal compared with it. Seven small models gain 5.35× under MPS, 2.9× under MIG, \
                1.98× naively.",
    "MPS best; small ×7: 5.35 / 2.9 / 1.98×",
    STUDY,
);

/// MPS against one other mode.
struct Rival<'a> {
    name: &'static str,
    pairs: Pairs<'a>,
}

impl Rival<'_> {
    /// True if MPS is ahead in most groups.
    fn is_beaten(&self) -> bool {
        2 * self.pairs.ahead() > self.pairs.all()
    }
}

pub fn guideline(analysis: &Analysis) -> Option<Guideline> {
    if !on_a_card(analysis) || crate::rule::training(analysis).next().is_none() && analysis.groups().any(|c| c.serves()) {
        return None;
    }
    let threshold = analysis.campaign.thresholds.relevant_ratio;
    let others = [("naive", "naive"), ("mig", "MIG"), ("threads", "threads of one process")];
    let pairs = corrected_together(others.map(|(mode, _)| Pairs::of_work(analysis, "mps", mode)), threshold);
    let rivals: Vec<Rival> = others.into_iter().zip(pairs).map(|((_, name), pairs)| Rival { name, pairs }).collect();
    let measured: Vec<&Rival> = rivals.iter().filter(|r| !r.pairs.is_empty()).collect();
    let ahead: usize = measured.iter().map(|r| r.pairs.ahead()).sum();
    let behind: usize = measured.iter().map(|r| r.pairs.behind()).sum();
    let open: usize = measured.iter().map(|r| r.pairs.may_be_below(threshold) + r.pairs.unjudged.len()).sum();
    let undecided = measured.iter().flat_map(|r| r.pairs.tests()).filter(|test| crate::rule::is_undecided(test)).count();
    let ties: Vec<&str> = measured.iter().filter(|r| !r.is_beaten()).map(|r| r.name).collect();
    let holds = match () {
        () if behind > 0 => Holds::No,
        () if measured.is_empty() || open > 0 => Holds::Open,
        () if ties.is_empty() => Holds::Yes,
        () if undecided > 0 => Holds::Open,
        () => Holds::No,
    };
    // Ahead somewhere and behind nowhere is more than a tie.
    let is_ahead = measured.iter().any(|r| !r.is_beaten() && r.pairs.ahead() > 0);
    let otherwise = match () {
        () if behind > 0 => "choose the mode per workload.".to_string(),
        () if is_ahead => format!("MPS is never behind, and not ahead of {} in most groups.", ties.join(" and ")),
        () => format!("a tie with {}.", ties.join(" and ")),
    };
    let sides: Vec<String> = measured.iter().filter_map(|r| r.pairs.text(r.name)).collect();
    let all = rivals.iter().fold(Pairs::default(), |all, r| all.with(r.pairs.clone()));
    let key = all.extreme(behind == 0);
    let groups = all.groups();
    let finding = match key {
        Some(pair) => {
            let furthest = if behind > 0 { "furthest behind" } else { "furthest" };
            format!("MPS is {}; {furthest}: `{}` against `{}`.", sides.join("; "), pair.left.name(), pair.right.name())
        }
        None if ahead + behind > 0 => format!("MPS is {}, decided by which groups fit into memory.", sides.join("; ")),
        None => {
            nothing(&groups, "the work per second", "No group is planned under MPS and in another mode with the same members.")
        }
    };
    let beaten = measured.iter().map(|r| r.name).collect::<Vec<_>>().join(" and ");
    Some(
        Claim {
            id: "best-mode",
            question: "Does MPS give the most throughput?",
            advice: format!("Choose MPS over {beaten} for throughput."),
            otherwise,
            finding,
            holds,
            agrees: verdict::of_figures(analysis, |f| f.id.starts_with("gain-small-7")),
            key: key.map(|pair| pair.evidence(Key::ThroughputGain).picked_from(all.judged.len())),
            tested: format!(
                "work per second under MPS ÷ under each other mode, same members: never below 1 by more than {0}, and above it by more than {0} in \
                 most groups; Holm-corrected over the groups of all modes. A mode whose group does not fit into memory is behind",
                number::percent_as_written(threshold)
            ),
            evidence: all.evidence(Key::ThroughputGain),
            published: Some(PUBLISHED),
            next: decide(analysis, &groups, all.tests(), "workload == \"small\""),
            scope: Some(groups.scope(analysis)),
        }
        .conclude(),
    )
}
