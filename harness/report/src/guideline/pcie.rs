//! The cost of MPS in PCIe traffic.

use super::{
    Agreement, Evidence, Guideline, Holds, Published, STUDY, agreement, command, held, how_many, matched, on_a_card, together,
    worded,
};
use crate::analysis::{Analysis, Cell};
use crate::number;
use crate::quantity::Key;
use crate::stats::RatioVerdict as VariableContent;

const METRIC: Key = Key::PcieRx;

const PUBLISHED: Published = Published {
    statement: "MPS needs more interconnect bandwidth: naive traffic grows linearly with the degree and sub-linearly at seven, MPS traffic super-linearly.",
    short: "MPS needs more",
    source: STUDY,
};

pub(super) fn guideline(analysis: &Analysis) -> Option<Guideline> {
    let read = analysis.cells.iter().any(|c| c.metric(METRIC).is_some());
    if !on_a_card(analysis) || !read {
        return None;
    }
    let rate = |a: &Cell, b: &Cell| a.metric(METRIC)?.over(b.metric(METRIC)?).filter(|_| together(a, b));
    let pairs = held(analysis, matched(analysis, "mps", "naive"), rate);
    if pairs.is_empty() {
        return None;
    }
    let (more, less) = (how_many(&pairs, VariableContent::Better), how_many(&pairs, VariableContent::Worse));
    let holds = match (more, less) {
        (1.., 0) => Holds::Yes,
        (_, 1..) => Holds::No,
        _ if pairs.iter().all(|h| h.said == VariableContent::Same) => Holds::No,
        _ => Holds::Open,
    };
    let most = pairs.iter().max_by(|a, b| a.ratio.estimate.total_cmp(&b.ratio.estimate));
    let fewer = if less > 0 { format!(", less in {less}") } else { String::new() };
    let finding = most.map_or_else(String::new, |h| {
        let gibs = h.left.metric(METRIC).map_or_else(String::new, |q| format!(", {} GiB/s", number::gib_number(q.estimate)));
        format!(
            "MPS moves up to {}× the bytes per second of naive sharing into the GPU (`{}` against `{}`{gibs}); more in {more} of {}{fewer}.",
            number::estimate(&h.ratio),
            h.left.name(),
            h.right.name(),
            number::count(pairs.len(), "pair")
        )
    });
    let (statement, finding) = worded(
        holds,
        "Does MPS need more PCIe bandwidth?",
        "Leave PCIe headroom for MPS.",
        if more > 0 { "not every group does." } else { "it needs none beyond that of naive sharing." },
        finding,
    );
    Some(Guideline {
        id: "mps-pcie",
        statement,
        finding,
        agrees: if more > 0 && less > 0 { Agreement::Partly } else { agreement(analysis, holds) },
        key: most.map(|h| Evidence::between(h.left, h.right, METRIC, h.ratio.clone())),
        tested: format!(
            "bytes per second into the GPU under MPS ÷ naive, same members, differ from 1 by more than {}; Holm-corrected over the pairs. Faster members \
             read more per second: bytes per item are in the PCIe section",
            number::percent(analysis.campaign.thresholds.relevant_ratio)
        ),
        holds,
        evidence: pairs.iter().map(|h| Evidence::between(h.left, h.right, METRIC, h.ratio.clone())).collect(),
        published: Some(PUBLISHED),
        command: (holds == Holds::Open).then(|| command(analysis)).flatten(),
        summary: false,
    })
}
