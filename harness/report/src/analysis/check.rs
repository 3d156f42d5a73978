//! What makes a number less trustworthy than it looks. In: the repetitions of a campaign. Out: their validity, lowered with
//! reasons. Nothing here ever raises a verdict.

use std::collections::{BTreeMap, HashMap};

use collo_store::{AfterMeasured, BlockEdge, Campaign, Verdict};

use super::repetition::Repetition;
use crate::number;

/// Lower a run for too little overlap, starts too far apart, or load from others.
pub fn run(repetition: &mut Repetition, campaign: &Campaign) {
    let t = &campaign.thresholds;
    let release = repetition.record().cell.after_measured == AfterMeasured::Exit;
    let mut reasons = Vec::new();
    if let Some(least) = repetition.least_overlap_ratio.filter(|o| !release && *o < t.overlap_ratio) {
        let (found, asked) = (number::percent(least), number::percent(t.overlap_ratio));
        reasons.push(format!("in one measured epoch all members trained for only {found} of the time ({asked} required)"));
    }
    if let Some(skew) = repetition.start_skew_s.filter(|s| *s > t.start_skew_s) {
        let (found, asked) = (number::milliseconds(skew), number::milliseconds(t.start_skew_s));
        reasons.push(format!("members started {found} apart (limit {asked})"));
    }
    if let Some(others) = others_cores(repetition) {
        let cores = f64::from(campaign.machine.cpu_cores.max(1));
        if others > OTHERS_RATIO * cores {
            // Without the number, which is another in each repetition: the reasons of a cell are gathered by their words.
            let allowed = number::percent(OTHERS_RATIO);
            reasons.push(format!("other processes used more than {allowed} of the cores while it was measured"));
        }
    }
    for why in &campaign.informative {
        reasons.push(format!("the whole campaign is informative: {why}"));
    }
    if repetition.counts() {
        for reason in reasons {
            repetition.validity.lower(Verdict::Informative, reason);
        }
    }
}

/// The share of the machine's cores that others may use while a run is measured on the CPU.
const OTHERS_RATIO: f64 = 0.10;

/// Cores used by other processes than the members; `None` on a GPU, where the members' CPU is not the shared resource.
fn others_cores(repetition: &Repetition) -> Option<f64> {
    if repetition.record().device.kind != "cpu" {
        return None;
    }
    let members: f64 = repetition.members.iter().map(|m| m.cpu_ratio).sum::<Option<f64>>()?;
    Some((repetition.metrics.get("cpu_ratio")? - members).max(0.0))
}

/// How far apart two repetitions of a cell may be before they disagree: as far as a baseline may drift, in each direction.
pub fn disagreement_ratio(campaign: &Campaign) -> f64 {
    (1.0 + campaign.thresholds.baseline_drift_ratio).powi(2)
}

/// A drift of the baselines between the two ends of a block.
#[derive(Debug, Clone, PartialEq)]
pub struct Drift {
    pub block: u32,
    pub cell: String,
    /// Closing over opening epoch time; for a serving baseline, time per request at its capacity.
    pub ratio: f64,
    pub void: bool,
}

/// The drift measure of a baseline: its epoch time, or, if it serves, its time per request when none waits. Its latency would not
/// do: by chance alone it differs more between two runs than a drift may.
fn pace_s(r: &Repetition) -> Option<f64> {
    let capacity_per_s = || r.record().members.first()?.serving.as_ref()?.capacity_per_s.filter(|c| *c > 0.0);
    r.members.first().and_then(|m| m.epoch_s).or_else(|| capacity_per_s().map(f64::recip))
}

/// Find each block's drift. If a baseline drifted beyond the threshold, its runs of that block and those compared with it are
/// void.
pub fn drift(repetitions: &mut [Repetition], campaign: &Campaign) -> Vec<Drift> {
    let plan = &campaign.plan;
    let edges = plan.order.iter().filter_map(|p| Some(((plan.cells.get(p.cell)?.slug.as_str(), p.repetition), p.edge?)));
    let edges: HashMap<(&str, u32), BlockEdge> = edges.collect();
    let edge_of = |r: &Repetition| edges.get(&(r.record().cell.slug.as_str(), r.record().repetition)).copied();
    let mut ends = BTreeMap::<(u32, String), [Option<f64>; 2]>::new();
    for r in repetitions.iter().filter(|r| r.counts()) {
        if let (Some(edge), Some(pace_s)) = (edge_of(r), pace_s(r)) {
            let pair = ends.entry((r.record().block, r.record().cell.cell.clone())).or_default();
            pair[usize::from(edge == BlockEdge::Closes)] = Some(pace_s);
        }
    }
    let limit = campaign.thresholds.baseline_drift_ratio;
    let mut found = Vec::new();
    for ((block, cell), pair) in ends {
        let [Some(opening), Some(closing)] = pair else { continue };
        let ratio = closing / opening;
        found.push(Drift { block, cell, ratio, void: ratio.ln().abs() > limit.ln_1p() });
    }
    for d in found.iter().filter(|d| d.void) {
        let change = format!("{:+.0} %", (d.ratio - 1.0) * 100.0);
        let allowed = number::percent(limit);
        let why = format!("`{}` changed by {change} from the start to the end of block {} (limit {allowed})", d.cell, d.block);
        let leans = |r: &Repetition| r.record().cell.members.iter().any(|m| m.solo == d.cell);
        for r in repetitions.iter_mut().filter(|r| r.record().block == d.block && r.counts() && leans(r)) {
            r.validity.lower(Verdict::Void, why.clone());
        }
    }
    found
}
