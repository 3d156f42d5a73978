//! What makes a number less trustworthy than it looks. In: the repetitions of a campaign. Out: their validity, lowered with
//! reasons. Nothing here ever raises a verdict.

use std::collections::{BTreeMap, HashMap};

use collo_quantity::number;
use collo_store::{AfterMeasured, BlockEdge, Campaign, Validity, Verdict};

use super::repetition::{MeasuredBlock, Repetition};

/// Lower a run for too little overlap, starts too far apart, or a load from others that left little to its members.
pub fn run(repetition: &mut Repetition, campaign: &Campaign) {
    let t = &campaign.thresholds;
    let release = repetition.record().cell.after_measured == AfterMeasured::Exit;
    let mut reasons = Vec::new();
    if let Some(least) = repetition.least_overlap_ratio.filter(|o| !release && *o < t.overlap_ratio) {
        let (found, asked) = (number::percent(least), number::percent(t.overlap_ratio));
        reasons.push(format!("in one measured epoch all members trained for only {found} of the time ({asked} required)"));
    }
    if let Some(skew) = repetition.start_skew_s.filter(|s| *s > t.start_skew_s) {
        reasons.push(Validity::started_apart(skew, t.start_skew_s));
    }
    if let Some(others) = others_cores(repetition) {
        let cores = f64::from(campaign.machine_of(repetition.record().block).cpu_cores.max(1));
        if others > MOST_OTHERS_RATIO * cores {
            // Without the number, which is another in each repetition: the reasons of a cell are gathered by their words.
            let allowed = number::percent(MOST_OTHERS_RATIO);
            reasons
                .push(format!("other processes used more than {allowed} of the cores during one run, the limit of a single run"));
        }
    }
    for why in &campaign.indicative {
        reasons.push(format!("the whole campaign is indicative: {why}"));
    }
    if repetition.counts() {
        for reason in reasons {
            repetition.validity.lower(Verdict::Indicative, reason);
        }
    }
}

/// The share of the machine's cores that others may use during one run on the CPU. Less than that widens the intervals, as long
/// as it is less than [`OTHERS_RATIO`] on average.
const MOST_OTHERS_RATIO: f64 = 0.5;
/// The share that they may use on average over a campaign: beyond it the numbers are those of another machine.
pub const OTHERS_RATIO: f64 = 0.25;

/// Lower every run of a campaign on the CPU that was measured beside too much else; of a merged one those of that origin. Gives the
/// mean share of the cores that others used, the largest of all origins; `None` where it was not read, or on a GPU.
pub fn load(repetitions: &mut [Repetition], campaign: &Campaign) -> Option<f64> {
    let mut read = BTreeMap::<usize, Vec<f64>>::new();
    for r in repetitions.iter().filter(|r| r.counts()) {
        let cores = f64::from(campaign.machine_of(r.record().block).cpu_cores.max(1));
        read.entry(r.device).or_default().extend(others_cores(r).map(|others| others / cores));
    }
    read.retain(|_, ratios| !ratios.is_empty());
    let mean = |ratios: Vec<f64>| ratios.iter().sum::<f64>() / ratios.len() as f64;
    let means: BTreeMap<usize, f64> = read.into_iter().map(|(origin, ratios)| (origin, mean(ratios))).collect();
    for r in repetitions.iter_mut().filter(|r| r.counts()) {
        if let Some(mean) = means.get(&r.device).filter(|mean| **mean > OTHERS_RATIO) {
            let (found, allowed) = (number::percent(*mean), number::percent(OTHERS_RATIO));
            let why = format!("other processes used {found} of the cores on average over the campaign ({allowed} allowed)");
            r.validity.lower(Verdict::Indicative, why);
        }
    }
    means.into_values().reduce(f64::max)
}

/// Cores used by other processes than the members; `None` on a GPU, where the members' CPU is not the shared resource.
fn others_cores(repetition: &Repetition) -> Option<f64> {
    if repetition.record().device.kind != "cpu" {
        return None;
    }
    let members = repetition.used(|u| u.cpu_ratio)?;
    Some((repetition.metrics.get("cpu_ratio")? - members).max(0.0))
}

/// A drift of the baselines between the two ends of a block.
#[derive(Debug, Clone, PartialEq)]
pub struct Drift {
    pub block: u32,
    pub cell: String,
    /// Closing over opening epoch time; for a serving baseline, time per request at its capacity.
    pub ratio: f64,
    /// More than the experiment's `baseline_drift`.
    pub is_large: bool,
}

/// The drift measure of a baseline: its epoch time, or, if it serves, its time per request when none waits. Its latency would not
/// do: by chance alone it differs more between two runs than a drift may.
fn pace_s(r: &Repetition) -> Option<f64> {
    let capacity_per_s = || r.record().members.first()?.serving.as_ref()?.capacity_per_s.filter(|c| *c > 0.0);
    r.members.first().and_then(|m| m.epoch_s).or_else(|| capacity_per_s().map(f64::recip))
}

/// Find each block's drift. It lowers nothing: what changes between blocks cancels in ratios, and what changes inside one widens
/// their intervals.
pub fn drift(repetitions: &[Repetition], campaign: &Campaign) -> Vec<Drift> {
    let plan = &campaign.plan;
    let edges = plan.order.iter().filter_map(|p| Some(((plan.cells.get(p.cell)?.slug.as_str(), p.repetition), p.edge?)));
    let edges: HashMap<(&str, u32), BlockEdge> = edges.collect();
    let edge_of = |r: &Repetition| edges.get(&(r.record().cell.slug.as_str(), r.record().repetition)).copied();
    let mut ends = BTreeMap::<(MeasuredBlock, String), [Option<f64>; 2]>::new();
    for r in repetitions.iter().filter(|r| r.counts()) {
        if let (Some(edge), Some(pace_s)) = (edge_of(r), pace_s(r)) {
            let pair = ends.entry((r.block(), r.record().cell.cell.clone())).or_default();
            pair[usize::from(edge == BlockEdge::Closes)] = Some(pace_s);
        }
    }
    let limit = campaign.thresholds.baseline_drift_ratio;
    let drift = |(((block, _), cell), pair): ((MeasuredBlock, String), [Option<f64>; 2])| {
        let ratio = pair[1]? / pair[0]?;
        Some(Drift { block, cell, ratio, is_large: ratio.ln().abs() > limit.ln_1p() })
    };
    ends.into_iter().filter_map(drift).collect()
}
