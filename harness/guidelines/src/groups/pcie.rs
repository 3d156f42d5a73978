//! The cost of MPS in PCIe traffic.

use collo_analysis::campaign::Analysis;
use collo_analysis::cell::Cell;
use collo_quantity::stats::RatioVerdict;
use collo_quantity::{Key, number};

use crate::published::Published;
use crate::rule::pairs::{Pairs, matched, together};
use crate::rule::{Claim, Guideline, STUDY, decide, nothing, on_a_card};
use crate::verdict::{self, Agreement, Holds};

const METRIC: Key = Key::PcieRx;

const PUBLISHED: Published = Published::new(
    "MPS needs more interconnect bandwidth: naive traffic grows linearly with the degree and sub-linearly at seven, MPS traffic super-linearly.",
    "MPS needs more",
    STUDY,
);

pub fn guideline(analysis: &Analysis) -> Option<Guideline> {
    let read = analysis.cells.iter().any(|c| c.metric(METRIC).is_some());
    if !on_a_card(analysis) || !read {
        return None;
    }
    let rate = |a: &Cell, b: &Cell| a.metric(METRIC)?.over(b.metric(METRIC)?).filter(|_| together(a, b));
    let pairs = Pairs::of(analysis, matched(analysis, "mps", "naive"), |_| METRIC, rate);
    if pairs.is_unasked() {
        return None;
    }
    let of = |wanted| pairs.how_many(wanted);
    let (more, less, same) = (of(RatioVerdict::Better), of(RatioVerdict::Worse), of(RatioVerdict::Same));
    let open = pairs.judged.len() - more - less - same + pairs.unjudged.len();
    // A rule for MPS in general needs most pairs to move more, and none less.
    let holds = match () {
        () if less > 0 => Holds::No,
        () if open == 0 && more > same => Holds::Yes,
        () if open == 0 => Holds::No,
        () => Holds::Open,
    };
    let most = pairs.extreme(true);
    let groups = pairs.groups();
    let without = || nothing(&groups, "the traffic into the GPU", crate::rule::NO_GROUP);
    let finding = most.map_or_else(without, |pair| {
        // In the unit of the figures of PCIe traffic.
        let rate = pair.left.metric(METRIC).map_or_else(String::new, |q| format!(", {} MB/s", number::three(q.estimate * 1e-6)));
        format!(
            "MPS moves up to {}× the bytes per second of naive sharing into the GPU (`{}` against `{}`{rate}); {}.",
            number::estimate(&pair.ratio),
            pair.left.name(),
            pair.right.name(),
            crate::rule::tally(
                &number::count(pairs.judged.len(), "pair"),
                &[
                    (more, "move more"),
                    (same, "the same"),
                    (less, "less"),
                    (pairs.judged.len() - more - less - same, "undecided")
                ]
            )
        )
    });
    let agrees = if more > 0 && less > 0 {
        verdict::where_possible(analysis, Agreement::Partly)
    } else {
        verdict::of_statement(analysis, holds)
    };
    Some(
        Claim {
            id: "mps-pcie",
            question: "Does MPS need more PCIe bandwidth?",
            advice: "Leave PCIe headroom for MPS.".into(),
            otherwise: if more > 0 { "not every group does." } else { "it needs none beyond that of naive sharing." }.into(),
            finding,
            holds,
            agrees,
            key: most.map(|pair| pair.evidence(METRIC).picked_from(pairs.judged.len())),
            tested: format!(
                "bytes per second into the GPU under MPS ÷ naive, same members, above 1 by more than {} in most pairs and below it in none; \
                 Holm-corrected over the pairs. Faster members read more per second: bytes per item are in the PCIe section",
                number::percent_as_written(analysis.campaign.thresholds.relevant_ratio)
            ),
            evidence: pairs.evidence(METRIC),
            published: Some(PUBLISHED),
            next: decide(analysis, &groups, pairs.tests(), "workload == \"small\""),
            scope: Some(groups.scope(analysis)),
        }
        .conclude(),
    )
}
