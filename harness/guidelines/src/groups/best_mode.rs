//! Which sharing mode gives most throughput? Compares groups of the same members under two modes.

use collo_analysis::campaign::Analysis;
use collo_quantity::stats::RatioVerdict;
use collo_quantity::{Key, number};

use crate::published::Published;
use crate::rule::pairs::Pairs;
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
    fn ahead(&self) -> usize {
        self.pairs.how_many(RatioVerdict::Better) + self.pairs.right_out_of_memory.len()
    }

    fn behind(&self) -> usize {
        self.pairs.how_many(RatioVerdict::Worse) + self.pairs.left_out_of_memory.len()
    }

    fn all(&self) -> usize {
        self.pairs.judged.len()
            + self.pairs.unjudged.len()
            + self.pairs.left_out_of_memory.len()
            + self.pairs.right_out_of_memory.len()
    }

    /// True if MPS is ahead in most groups.
    fn is_beaten(&self) -> bool {
        2 * self.ahead() > self.all()
    }
}

pub fn guideline(analysis: &Analysis) -> Option<Guideline> {
    if !on_a_card(analysis) || crate::rule::training(analysis).next().is_none() && analysis.groups().any(|c| c.serves()) {
        return None;
    }
    let threshold = analysis.campaign.thresholds.relevant_ratio;
    let against = |other: &str, name| Rival { name, pairs: Pairs::of_work(analysis, "mps", other) };
    let rivals = [against("naive", "naive"), against("mig", "MIG"), against("threads", "threads of one process")];
    let measured: Vec<&Rival> = rivals.iter().filter(|r| !r.pairs.is_empty()).collect();
    let behind: usize = measured.iter().map(|r| r.behind()).sum();
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
    let otherwise =
        if behind > 0 { "choose the mode per workload.".to_string() } else { format!("a tie with {}.", ties.join(" and ")) };
    let sides: Vec<String> = measured.iter().filter_map(|r| r.pairs.text(r.name)).collect();
    let all = rivals.iter().fold(Pairs::default(), |all, r| all.with(r.pairs.clone()));
    let key = all.extreme(behind == 0);
    let finding = match (key, sides.is_empty()) {
        (_, true) => "No group is planned under MPS and in another mode with the same members.".to_string(),
        (None, _) => nothing(&all.groups(), "the work per second", crate::rule::NO_GROUP),
        (Some(pair), _) => {
            let furthest = if behind > 0 { "furthest behind" } else { "furthest" };
            format!("MPS is {}; {furthest}: `{}` against `{}`.", sides.join("; "), pair.left.name(), pair.right.name())
        }
    };
    let groups = all.groups();
    Some(
        Claim {
            id: "best-mode",
            question: "Does MPS give the most throughput?",
            advice: "Choose MPS for throughput.".into(),
            otherwise,
            finding,
            holds,
            agrees: verdict::of_figures(analysis, |f| f.id.starts_with("gain-small-7")),
            key: key.map(|pair| pair.evidence(Key::ThroughputGain).picked_from(all.judged.len())),
            tested: format!(
                "work per second under MPS ÷ under each other mode, same members: never below 1 by more than {0}, and above it by more than {0} in \
                 most groups; Holm-corrected over the groups of each mode. A mode whose group does not fit into memory is behind",
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
