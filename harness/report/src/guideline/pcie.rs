//! The cost of MPS in PCIe traffic.

use super::{Evidence, Guideline, Published, STUDY, Verdict, command, held, how_many, matched, on_a_card};
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
    let rate = |a: &Cell, b: &Cell| a.metric(METRIC)?.over(b.metric(METRIC)?);
    let pairs = held(analysis, matched(analysis, "mps", "naive"), rate);
    if pairs.is_empty() {
        return None;
    }
    let (more, less) = (how_many(&pairs, VariableContent::Better), how_many(&pairs, VariableContent::Worse));
    let verdict = match (more, less) {
        (1.., 0) => Verdict::Supported,
        (_, 1..) => Verdict::Contradicted,
        _ if pairs.iter().all(|h| h.said == VariableContent::Same) => Verdict::Contradicted,
        _ => Verdict::NotEnoughEvidence,
    };
    let most = pairs.iter().max_by(|a, b| a.ratio.estimate.total_cmp(&b.ratio.estimate));
    let statement = match verdict {
        Verdict::Supported => "Leave PCIe headroom for MPS.",
        Verdict::Contradicted => "Do not expect MPS to need more PCIe bandwidth.",
        Verdict::NotEnoughEvidence => "Whether MPS needs more PCIe bandwidth is open.",
    };
    let finding = most.map_or_else(String::new, |h| {
        let gibs = h.left.metric(METRIC).map_or_else(String::new, |q| format!(", {} GiB/s", number::gib_number(q.estimate)));
        format!(
            "Bytes per second into the GPU: most `{}` against `{}`{gibs}; more in {more} of {}.",
            h.left.name(),
            h.right.name(),
            number::count(pairs.len(), "pair")
        )
    });
    Some(Guideline {
        id: "mps-pcie",
        statement: statement.into(),
        finding,
        key: most.map(|h| Evidence::between(h.left, h.right, METRIC, h.ratio.clone())),
        tested: format!(
            "bytes per second into the GPU under MPS ÷ naive, same members, differ from 1 by more than {}; Holm-corrected over the pairs. Faster members \
             read more per second: bytes per item are in the PCIe section",
            number::percent(analysis.campaign.thresholds.relevant_ratio)
        ),
        verdict,
        evidence: pairs.iter().map(|h| Evidence::between(h.left, h.right, METRIC, h.ratio.clone())).collect(),
        published: Some(PUBLISHED),
        command: (verdict == Verdict::NotEnoughEvidence).then(|| command(analysis)).flatten(),
        summary: false,
    })
}
