//! The findings, in one or two sentences: for each workload the mode that gains most.

use collo_analysis::campaign::Analysis;
use collo_analysis::words::capital;
use collo_guidelines::groups::collocate::{Knee, knees, mode_name, rank};
use collo_quantity::{Key, number};
use collo_store::without_mode;

use super::panels::mode_and_degree;

/// The findings as remarks; the last says how many more there are. A report of several devices has none: which group ran on which is in
/// the runs.
pub fn remarks(analysis: &Analysis) -> Vec<String> {
    if analysis.is_reported() && analysis.devices.are_several() {
        return Vec::new();
    }
    let knees = knees(analysis);
    let threshold = analysis.campaign.thresholds.relevant_ratio;
    // Those that certainly gain come before larger estimates that are undecided.
    let order = |k: &Knee| (k.gains(), k.cell().get(Key::ThroughputGain).map_or(f64::NEG_INFINITY, |q| q.estimate));
    let best = analysis.workloads().into_iter().filter_map(|w| {
        let here = knees.iter().filter(|k| k.workload == w);
        here.max_by(|a, b| order(a).0.cmp(&order(b).0).then(order(a).1.total_cmp(&order(b).1)))
    });
    let several = knees.len() > 1;
    let remark = |k: &Knee| {
        let valid = k.groups.iter().all(|c| c.is_valid());
        let sentence = format!("{}{}", k.sentence()?, if valid { "" } else { " (indicative)" });
        let ranking = rank(&knees, k.workload, threshold);
        let tie = ranking.as_ref().and_then(|r| Some((r.leaders(), r.tie(threshold)?)));
        let modes = match &tie {
            // The first is the one that the sentence is about.
            Some((leaders, tie)) => {
                let others: Vec<String> =
                    leaders.iter().filter(|c| c.record.sharing != k.sharing).map(|c| mode_and_degree(c)).collect();
                format!("{} ({tie}: {})", mode_name(k.sharing), others.join(", "))
            }
            None => mode_name(k.sharing),
        };
        Some(if several { format!("`{}` under {modes}: {sentence}", without_mode(k.workload)) } else { sentence })
    };
    let mut found: Vec<String> = best.filter_map(remark).collect();
    let more = found.len().saturating_sub(2);
    found.truncate(2);
    if more > 0 {
        found.push(format!("… {} in the report", number::count(more, "more finding")));
    }
    found
}

/// The findings as sentences, for pages.
pub fn sentences(analysis: &Analysis) -> Vec<String> {
    remarks(analysis).iter().filter(|s| !s.starts_with('…')).map(|s| format!("{}.", capital(s))).collect()
}
